#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "models/storage/store.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using testing::ElementsAre;

StoreSpec ten_and_hundred() {
  StoreSpec spec{10_GBps, 100_GBps, 50_GBps};
  return spec;
}

struct Rig {
  explicit Rig(StoreSpec spec)
      : network(engine, "stores"), store(engine, network, "pfs", std::move(spec), &recorder) {}

  sim::Process timed(StoreRequest& request, std::size_t slot) {
    co_await store.move(request);
    done[slot] = to_seconds(engine.now());
  }
  void begin(StoreRequest request) {
    done.push_back(-1);
    requests.push_back(std::make_unique<StoreRequest>(std::move(request)));
    engine.spawn("client", timed(*requests.back(), done.size() - 1));
  }
  sim::Process listen() {
    for (;;) {
      co_await store.changed().wait();
      heard.push_back(to_seconds(engine.now()));
    }
  }
  void to(Duration t) { engine.run_until(start_of_run + t); }
  double rate(std::size_t slot) { return store.rate(*requests[slot]).value(); }

  sim::Engine engine{sim::Seed{1}};
  sim::MemoryRecorder recorder;
  FluidNetwork network;
  SharedStore store;
  std::vector<std::unique_ptr<StoreRequest>> requests;
  std::vector<double> done;   // seconds; -1: not done
  std::vector<double> heard;  // seconds at which something changed
};

// 100 GB until 10 s, half of the rate until 20 s (50 GB more), the last 50 GB in 5 s.
TEST(StoreNeighbour, is_there_from_its_start_to_its_end) {
  StoreSpec spec = ten_and_hundred();
  spec.neighbours["etl"] = {.write = 1_TBps, .streams = 4, .start = 10s, .end = 20s};
  Rig rig(spec);
  rig.begin({.user = "job a", .servers = 4, .size = 200_GB});
  rig.to(10s - 1ns);
  EXPECT_DOUBLE_EQ(rig.rate(0), 2.5e9);
  EXPECT_TRUE(rig.store.busiest_other("job a", true).empty());
  rig.to(10s);
  EXPECT_DOUBLE_EQ(rig.rate(0), 1.25e9);
  EXPECT_EQ(rig.store.busiest_other("job a", true), "neighbour etl (5 GB/s)");
  rig.to(20s);
  EXPECT_DOUBLE_EQ(rig.rate(0), 2.5e9);
  rig.engine.run();
  EXPECT_DOUBLE_EQ(rig.done[0], 25);

  EXPECT_EQ(rig.recorder.to_text(),
            "10 s arrival neighbour began pfs/etl 1e+12\n"
            "20 s arrival neighbour ended pfs/etl 5e+10\n");
  ASSERT_EQ(rig.store.uses().size(), 2u);
  const auto& use = rig.store.uses()[0];
  EXPECT_EQ(use.user, "etl");
  EXPECT_TRUE(use.is_neighbour && use.is_write);
  EXPECT_EQ(use.start, start_of_run + 10s);
  EXPECT_EQ(use.end, start_of_run + 20s);
  EXPECT_NEAR(use.bytes.value(), 50e9, 1);
}

// It takes the 2 GB/s that it wants: 100 + 80 GB, and the last 20 GB in 2 s.
TEST(StoreNeighbour, takes_no_more_than_it_wants) {
  StoreSpec spec = ten_and_hundred();
  spec.neighbours["etl"] = {.write = 2_GBps, .streams = 4, .start = 10s, .end = 20s};
  Rig rig(spec);
  rig.begin({.user = "job a", .servers = 4, .size = 200_GB});
  rig.engine.run();
  EXPECT_DOUBLE_EQ(rig.done[0], 22);
}

// Sixteen servers of eight streams against 512: 128 of 640 shares of 100 GB/s are 20 GB/s, so 200
// GB take 10 s. The neighbour never ends: 80 GB/s of it, then all.
TEST(StoreNeighbour, of_many_streams_takes_most) {
  StoreSpec spec = ten_and_hundred();
  spec.neighbours["etl"] = {.read = 1_TBps, .streams = 512};
  Rig rig(spec);
  rig.begin(
      {.user = "job a", .is_write = false, .servers = 16, .size = 200_GB, .streams_per_server = 8});
  rig.to(5s);
  EXPECT_DOUBLE_EQ(rig.rate(0), 1.25e9);
  EXPECT_EQ(rig.store.busiest_other("job a", false), "neighbour etl (80 GB/s)");
  rig.to(20s);
  EXPECT_DOUBLE_EQ(rig.done[0], 10);
  ASSERT_EQ(rig.store.open_uses().size(), 1u);
  EXPECT_NEAR(rig.store.open_uses()[0].bytes.value(), 800e9 + 1000e9, 1e3);
}

TEST(StoreNeighbour, one_that_is_over_before_the_store_is_there_never_comes) {
  StoreSpec spec = ten_and_hundred();
  spec.neighbours["over"] = {.read = 1_GBps, .start = 1s, .end = 2s};
  spec.neighbours["here"] = {.read = 1_GBps, .start = 1s, .end = 4s};
  sim::Engine engine{sim::Seed{1}};
  engine.run_until(start_of_run + 3s);
  FluidNetwork network(engine, "stores");
  SharedStore store(engine, network, "pfs", spec);
  engine.run();
  ASSERT_EQ(store.uses().size(), 1u);
  EXPECT_EQ(store.uses()[0].user, "here");
  EXPECT_NEAR(store.uses()[0].bytes.value(), 1e9, 1e-3);
}

TEST(StoreReader, gets_what_it_asks_for_or_its_share) {
  Rig rig(ten_and_hundred());
  auto reader = rig.store.open_reader("job b");
  EXPECT_EQ(reader->granted().value(), 0);
  reader->set_demand(BytesPerSecond(7e9), 0, 3, 1);
  EXPECT_EQ(reader->granted(), BytesPerSecond(7e9));  // exactly
  reader->set_demand(80_GBps, 0, 8, 1);
  EXPECT_EQ(reader->granted(), 50_GBps);  // what one server can
  reader->set_demand(80_GBps, 0, 8, 2);
  EXPECT_EQ(reader->granted(), 80_GBps);
  rig.begin({.user = "job a", .is_write = false, .servers = 24, .size = 10_TB});
  rig.to(0s);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 25e9);  // 8 of 32 streams
  EXPECT_EQ(rig.store.busiest_other("job b", false), "job a (75 GB/s)");
  EXPECT_EQ(rig.store.busiest_other("job a", false), "job b (25 GB/s)");
  rig.to(4s);
  EXPECT_NEAR(reader->bytes_read().value(), 100e9, 1);
  reader->set_demand(BytesPerSecond(0), 0, 8, 2);
  EXPECT_EQ(reader->granted().value(), 0);
  EXPECT_DOUBLE_EQ(rig.rate(0), 100e9 / 24);
  reader->set_demand(10_GBps, 0, 16, 2);  // other streams: another flow
  rig.to(5s);
  EXPECT_NEAR(reader->bytes_read().value(), 110e9, 1);
  reader.reset();
  ASSERT_EQ(rig.store.uses().size(), 1u);
  EXPECT_EQ(rig.store.uses()[0].user, "job b");
  EXPECT_NEAR(rig.store.uses()[0].bytes.value(), 110e9, 1);
  EXPECT_DOUBLE_EQ(rig.rate(0), 100e9 / 24);
}

// 1,000 opens/s: of 4,000 that go with 40 GB/s a quarter, so 10 GB/s. The load has the other 90.
// With a neighbour of as many streams that wants all opens: an eighth.
TEST(StoreReader, its_bytes_follow_its_operations) {
  StoreSpec spec = ten_and_hundred();
  spec.metadata_rate = 1000;
  spec.neighbours["find"] = {.operations = 1e6, .streams = 16, .start = 10s, .end = 20s};
  Rig rig(spec);
  auto reader = rig.store.open_reader("job b");
  rig.begin({.user = "job a", .is_write = false, .servers = 16, .size = 10_TB});
  rig.to(1s);
  reader->set_demand(40_GBps, 4000, 16, 2);
  rig.to(2s);
  EXPECT_DOUBLE_EQ(rig.rate(0), 90e9 / 16);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 10e9);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 1000);
  EXPECT_TRUE(rig.store.busiest_other("job b", false).empty());
  rig.to(11s);
  EXPECT_DOUBLE_EQ(rig.rate(0), 95e9 / 16);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 5e9);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 500);
  EXPECT_EQ(rig.store.busiest_other("job b", false), "neighbour find (operations, 500 /s)");
  rig.to(21s);
  EXPECT_NEAR(reader->bytes_read().value(), (9 + 1) * 10e9 + 10 * 5e9, 100);
  // Its files packed a hundred to one, it is a reader of bytes again: 40 of the 50 it would get.
  reader->set_demand(40_GBps, 40, 16, 2);
  EXPECT_EQ(reader->granted(), 40_GBps);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 40);
  reader->set_demand(60_GBps, 60, 16, 2);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 50e9);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 50);
  reader->set_demand(BytesPerSecond(0), 4000, 16, 2);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 1000);
}

// Half of 2,000 opens/s, so a quarter of its 40 GB/s at most; but of the bytes it gets 16 of 256
// parts. Once the scan is over, opens are what is short.
TEST(StoreReader, is_held_by_the_smaller_of_its_shares) {
  StoreSpec spec = ten_and_hundred();
  spec.metadata_rate = 2000;
  spec.neighbours["find"] = {.operations = 1e6, .streams = 16};
  spec.neighbours["scan"] = {.read = 1_TBps, .streams = 240, .end = 10s};
  Rig rig(spec);
  auto reader = rig.store.open_reader("job b");
  reader->set_demand(40_GBps, 4000, 16, 2);
  rig.to(1s);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 6.25e9);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 625);
  EXPECT_EQ(rig.store.busiest_other("job b", false), "neighbour scan (93.8 GB/s)");
  rig.to(11s);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 10e9);
  EXPECT_EQ(rig.store.busiest_other("job b", false), "neighbour find (operations, 1 k/s)");
}

// Each of 16 streams has 10 ms an open, so 1,600 opens/s of 3,200.
TEST(StoreReader, waits_for_its_opens) {
  StoreSpec spec = ten_and_hundred();
  spec.open_latency = 10ms;
  Rig rig(spec);
  auto reader = rig.store.open_reader("job b");
  reader->set_demand(40_GBps, 3200, 16, 2);
  EXPECT_DOUBLE_EQ(reader->granted().value(), 20e9);
  EXPECT_DOUBLE_EQ(reader->granted_operations(), 1600);
  reader->set_demand(40_GBps, 800, 16, 2);
  EXPECT_EQ(reader->granted(), 40_GBps);
}

TEST(StoreReader, may_outlive_its_store) {
  sim::Engine engine{sim::Seed{1}};
  FluidNetwork network(engine, "stores");
  auto store = std::make_unique<SharedStore>(engine, network, "pfs", ten_and_hundred());
  auto reader = store->open_reader("job b");
  reader->set_demand(40_GBps, 0, 16, 2);
  store.reset();
  EXPECT_EQ(reader->granted().value(), 0);
  reader->set_demand(40_GBps, 0, 16, 2);
  EXPECT_EQ(reader->granted_operations(), 0);
}

// A reader that a second one joins at 1 s, a neighbour from 2 to 3 s, and a failed server at 4 s.
TEST(SharedStore, tells_once_when_rates_change_and_not_when_they_do_not) {
  StoreSpec spec = ten_and_hundred();
  spec.servers = 2;
  spec.neighbours["etl"] = {.read = 1_TBps, .write = 1_TBps, .streams = 4, .start = 2s, .end = 3s};
  Rig rig(spec);
  rig.engine.spawn("listener", rig.listen());
  auto first = rig.store.open_reader("a"), second = rig.store.open_reader("b");
  rig.engine.at(start_of_run, sim::Phase::arrival, [&] { first->set_demand(80_GBps, 0, 4, 4); });
  rig.engine.at(start_of_run + 1s, sim::Phase::arrival,
                [&] { second->set_demand(80_GBps, 0, 4, 4); });
  rig.engine.at(start_of_run + 1500ms, sim::Phase::arrival,
                [&] { second->set_demand(90_GBps, 0, 4, 4); });  // 50 as before
  rig.engine.at(start_of_run + 4s, sim::Phase::failure, [&] { rig.store.server_failed(); });
  rig.to(10s);
  EXPECT_THAT(rig.heard, ElementsAre(0, 1, 2, 3, 4));
}

TEST(SharedStore, nobody_who_listens_no_event) {
  Rig rig(ten_and_hundred());
  rig.begin({.user = "job a", .servers = 4, .size = 200_GB});
  rig.engine.run();
  EXPECT_LE(rig.engine.events_processed(), 3u);  // solved, completed, solved
}

// Two jobs whose operations and bytes cross: who holds whom is named by what is short.
TEST(SharedStore, names_who_takes_what_is_short) {
  StoreSpec spec = ten_and_hundred();
  spec.metadata_rate = 1000;
  Rig rig(spec);
  rig.begin({.user = "job a", .servers = 1, .size = 100_GB, .files = 1e6});
  rig.begin({.user = "job b", .servers = 3, .size = 100_GB, .files = 1e6});
  rig.begin({.user = "job c", .servers = 1, .size = 100_GB});
  rig.begin({.user = "job d", .servers = 1, .size = 100_GB, .limit = 1_GBps});
  rig.to(1s);
  EXPECT_EQ(rig.store.busiest_other("job a", true), "job b (operations, 750 /s)");
  EXPECT_EQ(rig.store.busiest_other("job b", true), "job a (operations, 250 /s)");
  EXPECT_EQ(rig.store.busiest_other("job c", true), "job d (1 GB/s)");
  EXPECT_EQ(rig.store.busiest_other("job d", true), "");                // at its own limit
  EXPECT_EQ(rig.store.busiest_other("job e", true), "job c (9 GB/s)");  // not there
  EXPECT_EQ(rig.store.busiest_other("job e", false), "");
}

}  // namespace
}  // namespace trainyard::models
