#include "models/storage/store.hpp"

#include <gmock/gmock.h>

#include <memory>

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

}  // namespace
}  // namespace trainyard::models
