#include "models/storage/store.hpp"

#include <gmock/gmock.h>

#include <memory>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;

struct Rig {
  explicit Rig(StoreSpec spec) : network(engine, "stores"), store(engine, network, "pfs", spec) {}

  sim::Process timed(std::size_t slot, std::int64_t servers, Bytes size, Duration start,
                     bool is_load) {
    co_await engine.delay(start);
    if (is_load)
      co_await store.load(servers, size);
    else
      co_await store.save(servers, size);
    done[slot] = to_seconds(engine.now());
  }
  sim::ProcessHandle begin(std::int64_t servers, Bytes size, Duration start = 0s,
                           bool is_load = false) {
    done.push_back(-1);
    return engine.spawn("client", timed(done.size() - 1, servers, size, start, is_load));
  }

  sim::Engine engine{sim::Seed{1}};
  FluidNetwork network;
  SharedStore store;
  std::vector<double> done;  // seconds; -1: not done
};

StoreSpec ten_and_twenty() {
  return {10_GBps, 20_GBps, 5_GBps, 0s};
}

TEST(SharedStore, the_aggregate_rate_limits_many_servers_and_the_client_rate_few) {
  Rig many(ten_and_twenty());
  many.begin(4, 100_GB);  // 4 * 5 > 10: 100 / 10 = 10 s
  many.engine.run();
  EXPECT_DOUBLE_EQ(many.done[0], 10);
  Rig few(ten_and_twenty());
  few.begin(1, 100_GB);  // one server: 100 / 5 = 20 s
  few.engine.run();
  EXPECT_DOUBLE_EQ(few.done[0], 20);
  EXPECT_EQ(transfer_time_alone(ten_and_twenty(), 10_GBps, 4, 100_GB), 10s);
  EXPECT_EQ(transfer_time_alone(ten_and_twenty(), 10_GBps, 1, 100_GB), 20s);
}

TEST(SharedStore, reading_and_writing_do_not_share) {
  Rig rig(ten_and_twenty());
  rig.begin(4, 100_GB);
  rig.begin(4, 100_GB, 0s, true);  // 100 / 20 = 5 s
  rig.engine.run();
  EXPECT_DOUBLE_EQ(rig.done[0], 10);
  EXPECT_DOUBLE_EQ(rig.done[1], 5);
}

// Fair over servers: 6 and 2 servers at 10 GB/s get 7.5 and 2.5. The small one is done with 25 GB
// at 10 s; by then the large one has 75 of its 100, and the last 25 take 2.5 s.
TEST(SharedStore, two_jobs_share_by_their_servers) {
  Rig rig(ten_and_twenty());
  rig.begin(6, 100_GB);
  rig.begin(2, 25_GB);
  rig.engine.run();
  EXPECT_NEAR(rig.done[1], 10, 2e-9);
  EXPECT_NEAR(rig.done[0], 12.5, 2e-9);
}

TEST(SharedStore, the_latency_comes_first) {
  StoreSpec spec = ten_and_twenty();
  spec.latency = 3s;
  Rig rig(spec);
  rig.begin(4, 100_GB);
  rig.engine.run();
  EXPECT_DOUBLE_EQ(rig.done[0], 13);
}

// Alone until 2 s (20 GB), half each until 4 s (10 GB more), then alone: 70 GB in 7 s.
TEST(SharedStore, a_stopped_save_frees_its_share_at_once) {
  Rig rig(ten_and_twenty());
  rig.begin(4, 100_GB);
  sim::ProcessHandle second = rig.begin(4, 100_GB, 2s);
  rig.engine.at(start_of_run + 4s, sim::Phase::failure, [&second] { second.stop(); });
  rig.engine.run();
  EXPECT_DOUBLE_EQ(rig.done[0], 11);
  EXPECT_EQ(rig.done[1], -1);
  EXPECT_EQ(rig.network.running(), 0u);
  EXPECT_NEAR(rig.store.bytes_written().value(), 110e9,
              1);  // what the stopped one wrote was written
}

// 5 GB/s each until the small one is done at 8 s; then 60 GB are left at 10 GB/s.
TEST(SharedStore, two_saves_of_unequal_size_share_until_the_small_one_is_done) {
  Rig rig(ten_and_twenty());
  rig.begin(4, 40_GB);
  rig.begin(4, 100_GB);
  rig.engine.run();
  EXPECT_DOUBLE_EQ(rig.done[0], 8);
  EXPECT_DOUBLE_EQ(rig.done[1], 14);
}

/// Requests with more to say, on the rig.
struct Desk : Rig {
  using Rig::Rig;

  sim::Process timed(StoreRequest& request, Duration start, std::size_t slot) {
    co_await engine.delay(start);
    co_await store.move(request);
    done[slot] = to_seconds(engine.now());
  }
  sim::ProcessHandle begin(StoreRequest request, Duration start = 0s) {
    done.push_back(-1);
    requests.push_back(std::make_unique<StoreRequest>(std::move(request)));
    return engine.spawn("client", timed(*requests.back(), start, done.size() - 1));
  }
  void to(Duration t) { engine.run_until(start_of_run + t); }
  double rate(std::size_t slot) { return store.rate(*requests[slot]).value(); }

  std::vector<std::unique_ptr<StoreRequest>> requests;
};

// Of 1 + 4 streams one each: 2 and 8 GB/s, though both have one server. 20 GB take 10 s.
TEST(SharedStore, it_is_shared_stream_by_stream) {
  StoreSpec spec = ten_and_twenty();
  spec.client_rate = 100_GBps;
  Desk desk(spec);
  desk.begin({.user = "a", .servers = 1, .size = 20_GB, .streams_per_server = 1});
  desk.begin({.user = "b", .servers = 1, .size = 80_GB, .streams_per_server = 4});
  desk.to(1s);
  EXPECT_DOUBLE_EQ(desk.rate(0), 2e9);
  EXPECT_DOUBLE_EQ(desk.rate(1), 8e9);
  desk.engine.run();
  EXPECT_DOUBLE_EQ(desk.done[0], 10);
  EXPECT_DOUBLE_EQ(desk.done[1], 10);
}

// 100 MB/s a stream: one stream takes 1,000 s for 100 GB, 25 streams 40 s; 100 streams of one
// server are held by its 5 GB/s, 4 servers of 100 by the store.
TEST(SharedStore, a_store_of_slow_streams_needs_many) {
  StoreSpec spec = ten_and_twenty();
  spec.stream_rate = BytesPerSecond(1e8);
  const auto time = [&](std::int64_t servers, int streams) {
    Desk desk(spec);
    desk.begin({.servers = servers, .size = 100_GB, .streams_per_server = streams});
    desk.engine.run();
    return desk.done[0];
  };
  EXPECT_DOUBLE_EQ(time(1, 1), 1000);
  EXPECT_DOUBLE_EQ(time(1, 25), 40);
  EXPECT_DOUBLE_EQ(time(1, 100), 20);
  EXPECT_DOUBLE_EQ(time(4, 100), 10);
}

// Alone 10 s. One of four servers fails at 4 s: the 6 s that are left become 8. If it is back at 8
// s (40 + 30 GB done), 30 GB are left: 3 s.
TEST(SharedStore, a_failed_server_stretches_what_is_left) {
  StoreSpec spec = ten_and_twenty();
  spec.servers = 4;
  Desk desk(spec);
  desk.begin({.servers = 4, .size = 100_GB});
  desk.to(4s);
  desk.store.server_failed();
  EXPECT_DOUBLE_EQ(desk.rate(0), 7.5e9 / 4);
  desk.engine.run();
  EXPECT_DOUBLE_EQ(desk.done[0], 12);

  Desk back(spec);
  back.begin({.servers = 4, .size = 100_GB});
  back.to(4s);
  back.store.server_failed();
  back.to(8s);
  back.store.server_back();
  back.engine.run();
  EXPECT_DOUBLE_EQ(back.done[0], 11);
}

TEST(SharedStore, without_servers_everything_stands_still) {
  StoreSpec spec = ten_and_twenty();
  spec.servers = 2;
  Desk desk(spec);
  desk.begin({.servers = 4, .size = 100_GB});
  desk.to(4s);
  desk.store.server_failed();
  EXPECT_FALSE(desk.store.is_down());
  desk.store.server_failed();
  EXPECT_TRUE(desk.store.is_down());
  EXPECT_THROW(desk.store.server_failed(), CheckFailed);
  desk.to(100s);
  EXPECT_EQ(desk.rate(0), 0);
  desk.store.server_back();
  desk.store.server_back();
  EXPECT_THROW(desk.store.server_back(), CheckFailed);
  desk.engine.run();
  EXPECT_DOUBLE_EQ(desk.done[0], 106);
}

// 5,000 creates at 1,000/s, then 100 GB: 5 + 10 s. Two at once: 10 + 20 s. Packed in 5 files the
// creates take nothing that is seen.
TEST(SharedStore, many_small_files_are_limited_by_metadata_until_packed) {
  StoreSpec spec = ten_and_twenty();
  spec.metadata_rate = 1000;
  const auto time = [&](double files, int savers) {
    Desk desk(spec);
    for (int i = 0; i < savers; ++i)
      desk.begin({.servers = 4, .size = 100_GB, .files = files, .streams_per_server = 2});
    desk.to(1ms);
    EXPECT_EQ(desk.rate(0), 0) << "no bytes before its files are open";
    desk.engine.run();
    return desk.done[0];
  };
  EXPECT_DOUBLE_EQ(time(5000, 1), 15);
  EXPECT_DOUBLE_EQ(time(5000, 2), 30);
  EXPECT_DOUBLE_EQ(time(5, 1), 10.005);
}

// A stream opens one file after the other. 600 files, 100 ms each, by 8 streams: 7.5 s. 3 files by
// 8 streams: 100 ms. With 40 operations/s for all: 15 s.
TEST(SharedStore, a_stream_waits_for_each_open) {
  StoreSpec spec = ten_and_twenty();
  spec.open_latency = 100ms;
  const auto time = [&](double files) {
    Desk desk(spec);
    desk.begin({.servers = 4, .size = 100_GB, .files = files, .streams_per_server = 2});
    desk.engine.run();
    return desk.done[0];
  };
  EXPECT_DOUBLE_EQ(time(600), 17.5);
  EXPECT_DOUBLE_EQ(time(3), 10.1);
  EXPECT_DOUBLE_EQ(time(0), 10);
  spec.metadata_rate = 1000;  // 8 streams of 10/s do not reach it
  EXPECT_DOUBLE_EQ(time(600), 17.5);
  EXPECT_DOUBLE_EQ(time(3), 10.1);
  spec.metadata_rate = 40;
  EXPECT_DOUBLE_EQ(time(600), 25);
}

// Of 4 servers: 40 GB in 4 s, 4 GB/s for 5 s, and 40 GB at 10 GB/s again: 13 s.
TEST(SharedStore, a_limit_changes_while_it_runs) {
  Desk desk(ten_and_twenty());
  desk.begin({.servers = 4, .size = 100_GB});
  desk.to(4s);
  EXPECT_DOUBLE_EQ(desk.rate(0), 2.5e9);
  desk.store.set_limit(*desk.requests[0], 1_GBps);
  EXPECT_DOUBLE_EQ(desk.rate(0), 1e9);
  desk.to(9s);
  desk.store.set_limit(*desk.requests[0], FluidNetwork::unlimited);
  EXPECT_DOUBLE_EQ(desk.rate(0), 2.5e9);
  desk.engine.run();
  EXPECT_DOUBLE_EQ(desk.done[0], 13);
  EXPECT_EQ(desk.rate(0), 0);
}

TEST(SharedStore, a_limit_set_before_the_bytes_flow_holds_from_their_start) {
  StoreSpec spec = ten_and_twenty();
  spec.latency = 3s;
  Desk desk(spec);
  desk.begin({.servers = 4, .size = 100_GB, .limit = 2_GBps});
  desk.to(2s);
  EXPECT_EQ(desk.rate(0), 0);
  desk.store.set_limit(*desk.requests[0], 1_GBps);
  desk.engine.run();
  EXPECT_DOUBLE_EQ(desk.done[0], 28);
}

// Stopped at 4 s in its bytes (20 GB each of 5 GB/s), or at 1 s among its creates.
TEST(SharedStore, what_a_stopped_save_had_is_free_and_what_it_wrote_is_known) {
  StoreSpec spec = ten_and_twenty();
  spec.metadata_rate = 1000;
  Desk desk(spec);
  desk.begin({.user = "job a", .servers = 4, .size = 100_GB});
  auto second = desk.begin({.user = "job b", .servers = 4, .size = 100_GB});
  auto third = desk.begin({.user = "job c", .servers = 4, .size = 100_GB, .files = 5000});
  desk.to(1s);
  ASSERT_EQ(desk.store.open_uses().size(), 3u);
  EXPECT_NEAR(desk.store.open_uses()[0].bytes.value(), 5e9, 1);
  third.stop();
  desk.to(4s);
  second.stop();
  EXPECT_EQ(desk.rate(1), 0);
  desk.engine.run();
  EXPECT_DOUBLE_EQ(desk.done[0], 12);
  EXPECT_EQ(desk.network.running(), 0u);
  ASSERT_EQ(desk.store.uses().size(), 3u);
  EXPECT_TRUE(desk.store.open_uses().empty());
  EXPECT_EQ(desk.store.uses()[0].user, "job c");
  EXPECT_EQ(desk.store.uses()[0].bytes, 0_B);
  EXPECT_EQ(desk.store.uses()[1].user, "job b");
  EXPECT_EQ(desk.store.uses()[1].end, start_of_run + 4s);
  EXPECT_NEAR(desk.store.uses()[1].bytes.value(), 20e9, 1);
  EXPECT_EQ(desk.store.uses()[2].bytes, 100_GB);
  EXPECT_TRUE(desk.store.uses()[2].is_write);
}

TEST(SharedStore, a_request_may_be_used_again_but_not_twice_at_once) {
  Desk desk(ten_and_twenty());
  desk.begin({.servers = 4, .size = 100_GB});
  desk.engine.run();
  StoreRequest& request = *desk.requests[0];
  request = {.user = "again", .servers = 4, .size = 50_GB};
  desk.done.push_back(-1);
  desk.engine.spawn("again", desk.timed(request, 0s, 1));
  desk.to(12s);
  EXPECT_DOUBLE_EQ(desk.rate(0), 2.5e9);
  desk.done.push_back(-1);
  desk.engine.spawn("twice", desk.timed(request, 0s, 2));
  EXPECT_THROW(desk.engine.run(), CheckFailed);
}

TEST(SharedStore, it_holds_its_capacity_and_no_more) {
  StoreSpec spec = ten_and_twenty();
  spec.capacity = 100_GB;
  Rig rig(spec);
  EXPECT_TRUE(rig.store.reserve(60_GB));
  EXPECT_FALSE(rig.store.reserve(Bytes(40e9 + 1)));
  EXPECT_EQ(rig.store.free_room(), 40_GB);
  EXPECT_TRUE(rig.store.reserve(40_GB));
  EXPECT_EQ(rig.store.free_room(), 0_GB);
  rig.store.release(60_GB);
  EXPECT_EQ(rig.store.free_room(), 60_GB);
  EXPECT_THROW(rig.store.release(50_GB), CheckFailed);

  Rig endless(ten_and_twenty());
  EXPECT_TRUE(endless.store.reserve(Bytes(1e30)));
  EXPECT_GT(endless.store.free_room(), Bytes(1e300));
}

TEST(SharedStore, store_and_request_may_go_before_the_process) {
  sim::Engine engine{sim::Seed{1}};
  FluidNetwork network(engine, "stores");
  auto store = std::make_unique<SharedStore>(engine, network, "pfs", ten_and_twenty());
  auto first =
      std::make_unique<StoreRequest>(StoreRequest{.user = "a", .servers = 4, .size = 100_GB});
  StoreRequest second{.user = "b", .servers = 4, .size = 100_GB};
  engine.spawn("a", store->move(*first));
  engine.spawn("b", store->move(second));
  engine.run_until(start_of_run + 1s);
  first.reset();
  EXPECT_EQ(store->open_uses().size(), 2u);
  store.reset();
  engine.clear();  // stops both
  EXPECT_EQ(network.running(), 0u);
}

}  // namespace
}  // namespace trainyard::models
