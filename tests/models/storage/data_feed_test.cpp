#include "models/storage/data_feed.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <vector>

#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;

// 10 servers of 8 GPUs, one reader each: 80 streams. A step takes 8,000 samples of 10 MB = 80 GB,
// which at 100 GB/s is 0.8 s.
constexpr double batch = 8000;
DataSpec data_80_GB() {
  DataSpec data;
  data.store = "scratch";
  data.sample = 10_MB;
  data.files_per_sample = 0;
  data.workers = 1;
  data.prefetch = 2;
  return data;
}
StoreSpec scratch() {
  return {100_GBps, 100_GBps, 20_GBps, 0s};
}

struct Rig {
  explicit Rig(DataSpec data = data_80_GB(), StoreSpec spec = scratch())
      : network(engine, "stores"),
        store(engine, network, "scratch", std::move(spec)),
        feed(engine, store, std::move(data), "job llm", 10, 8, batch) {
    engine.spawn("job", count_steps());
  }
  /// Steps done so far, as a job counts them: linear between changes.
  sim::Process count_steps() {
    for (;;) {
      count();
      co_await feed.changed().wait();
    }
  }
  void count() {
    steps_done += rate * to_seconds(engine.now() - since);
    since = engine.now();
    rate = is_training && feed.step() != forever ? 1 / to_seconds(feed.step()) : 0;
  }
  void train(Duration step) {
    feed.train(step);
    is_training = true;
    count();
  }
  void stand() {
    feed.stand();
    is_training = false;
    count();
  }
  void restart(double samples) {
    is_training = false;
    count();
    feed.restart(samples);
  }
  void run_to(Duration t) { engine.run_until(start_of_run + t); }

  sim::Engine engine{sim::Seed{1}};
  FluidNetwork network;
  SharedStore store;
  DataFeed feed;
  bool is_training = false;
  double steps_done = 0, rate = 0;
  Time since{};
};

StoreSpec with_neighbour(int streams, Duration start, std::optional<Duration> end = {}) {
  StoreSpec store = scratch();
  store.neighbours["etl"] = {.read = 1000_GBps, .streams = streams, .start = start, .end = end};
  return store;
}

// 80 of 150 streams leave 53.3 of 100 GB/s: 80 GB in 1.5 s. The queue, full at 100 s, loses
// 1/0.8 - 1/1.5 = 0.583 batches a second: 2 batches last 3.43 s.
TEST(DataFeed, a_neighbour_stretches_a_step_of_800_ms_to_1500_ms) {
  Rig rig({data_80_GB()}, with_neighbour(70, 100s, 200s));
  rig.restart(0);
  rig.run_to(10s);
  EXPECT_DOUBLE_EQ(rig.feed.queue_batches(), 2);
  rig.train(800ms);
  rig.run_to(100s + 3428ms);
  EXPECT_EQ(rig.feed.step(), 800ms);
  EXPECT_EQ(rig.feed.limit(), "read bandwidth of scratch, shared with neighbour etl (46.7 GB/s)");
  rig.run_to(100s + 3429ms);
  EXPECT_EQ(rig.feed.step(), 1500ms);
  EXPECT_DOUBLE_EQ(rig.feed.queue_batches(), 0);
  rig.run_to(201s);
  EXPECT_EQ(rig.feed.step(), 800ms);
  rig.run_to(300s);
  rig.count();
  // 90 s and 3.43 s full speed, 96.57 s at 1.5 s, 100 s at 0.8 s.
  const double drained = 2 / (1 / 0.8 - 1 / 1.5);
  EXPECT_NEAR(rig.steps_done, (190 + drained) / 0.8 + (100 - drained) / 1.5, 1e-6);
  EXPECT_LT(rig.engine.events_processed(), 60u);
}

TEST(DataFeed, a_smaller_neighbour_does_no_harm) {
  // 10 readers want 10 GB/s of the 100: the job with a step of 0.9 s needs 88.9.
  StoreSpec spec = scratch();
  spec.neighbours["etl"] = {.read = 10_GBps, .streams = 10, .start = 100s};
  Rig rig(data_80_GB(), spec);
  rig.train(900ms);
  rig.run_to(500s);
  EXPECT_EQ(rig.feed.step(), 900ms);
  rig.train(888ms);  // 90.09 > 90
  rig.run_to(3000s);
  EXPECT_EQ(rig.feed.step(), seconds(80.0 / 90));
}

TEST(DataFeed, the_first_batch_takes_the_time_of_a_batch) {
  Rig rig;
  rig.train(1s);
  EXPECT_EQ(rig.feed.step(), forever);
  rig.run_to(800ms - 1ns);
  EXPECT_EQ(rig.feed.step(), forever);
  rig.run_to(801ms);
  EXPECT_EQ(rig.feed.step(), 1s);
  // Then 0.25 batches a second more come than are taken: 2 are ahead after 8 s.
  rig.run_to(4800ms);
  EXPECT_NEAR(rig.feed.queue_batches(), 1, 1e-6);
  rig.run_to(20s);
  EXPECT_DOUBLE_EQ(rig.feed.queue_batches(), 2);
  EXPECT_DOUBLE_EQ(rig.feed.supply_batches(), 1);  // no more than is taken
}

TEST(DataFeed, standing_fills_the_queue_and_a_restart_loses_it) {
  Rig rig;
  rig.train(500ms);  // the supply's 0.8 s
  rig.run_to(100s);
  EXPECT_EQ(rig.feed.step(), 800ms);
  rig.stand();
  rig.run_to(101s);
  EXPECT_NEAR(rig.feed.queue_batches(), 1.25, 1e-6);
  rig.train(500ms);
  EXPECT_EQ(rig.feed.step(), 500ms);
  // 1.25 batches at 2 - 1.25 a second: 1.667 s
  rig.run_to(101s + 1666ms);
  EXPECT_EQ(rig.feed.step(), 500ms);
  rig.run_to(101s + 1667ms);
  EXPECT_EQ(rig.feed.step(), 800ms);
  rig.restart(batch * 50);
  EXPECT_DOUBLE_EQ(rig.feed.samples_read(), batch * 50);
  EXPECT_DOUBLE_EQ(rig.feed.queue_batches(), 0);
  rig.train(500ms);
  EXPECT_EQ(rig.feed.step(), forever);
}

TEST(DataFeed, who_has_stopped_leaves_the_store_to_others) {
  Rig rig;
  auto other = rig.store.open_reader("job other");
  other->set_demand(1000_GBps, 0, 80, 10);
  rig.train(800ms);
  rig.run_to(10s);
  EXPECT_DOUBLE_EQ(other->granted().value(), 50e9);
  EXPECT_EQ(rig.feed.limit(), "read bandwidth of scratch, shared with job other (50 GB/s)");
  rig.feed.stop();
  EXPECT_DOUBLE_EQ(other->granted().value(), 100e9);
  EXPECT_EQ(rig.feed.queue_batches(), 0);
}

// 2,000 opens a second: 8,000 files take 4 s; packed, a thousand samples a file, 8 opens a step.
TEST(DataFeed, small_files_are_limited_by_metadata_until_they_are_packed) {
  StoreSpec spec = scratch();
  spec.metadata_rate = 2000;
  DataSpec data = data_80_GB();
  data.files_per_sample = 1;
  Rig files(data, spec);
  files.train(900ms);
  files.run_to(60s);
  EXPECT_EQ(files.feed.step(), 4s);
  EXPECT_EQ(files.feed.limit(), "metadata of scratch");
  // It asks for no more bytes than its opens allow: 20 GB/s.
  auto other = files.store.open_reader("job other");
  other->set_demand(100_GBps, 0, 1000, 10);
  EXPECT_NEAR(other->granted().value(), 100e9 * 1000 / 1080, 1e3);
  other->set_demand(80_GBps, 0, 8, 10);
  files.run_to(61s);
  EXPECT_NEAR(other->granted().value(), 80e9, 80e9 * 1e-5);

  data.files_per_sample = 1.0 / 1000;
  Rig packed(data, spec);
  packed.train(900ms);
  packed.run_to(60s);
  EXPECT_EQ(packed.feed.step(), 900ms);
}

// One epoch is 10 steps. The cache of each of the 10 servers holds everything: of the second
// epoch a tenth has been seen. 80 · 0.9 GB take 0.72 s.
TEST(DataFeed, the_second_epoch_is_faster_by_the_hit_rate) {
  DataSpec data = data_80_GB();
  data.samples = std::int64_t(10 * batch);
  data.cache = 800_GB;
  data.cache_rate = 1_TBps;
  Rig rig(data);
  rig.train(100ms);
  rig.run_to(7900ms);
  EXPECT_EQ(rig.feed.step(), 800ms);
  EXPECT_EQ(rig.feed.hit_rate(), 0);
  rig.run_to(8100ms);
  EXPECT_NEAR(rig.feed.hit_rate(), 0.1, 1e-12);
  EXPECT_EQ(rig.feed.step(), 720ms);
  rig.run_to(15'300ms);
  EXPECT_NEAR(rig.feed.hit_rate(), 0.19, 1e-12);
  // At last everything is in every cache, and nobody asks the store: 20 GB/s of the adapter and
  // 80 streams are no limit any more, 8,000 · 10 MB / (10 · 1 TB/s) = 8 ms.
  rig.run_to(1h);
  EXPECT_EQ(rig.feed.step(), 100ms);
  EXPECT_GT(rig.feed.hit_rate(), 0.99);
  EXPECT_LT(rig.engine.events_processed(), 500u);  // epochs of a second: none of them is an event
}

TEST(DataFeed, in_a_fixed_order_a_cache_below_the_share_is_of_no_use) {
  DataSpec data = data_80_GB();
  data.samples = std::int64_t(10 * batch);
  data.shuffle = false;
  data.cache = 80_GB;  // a tenth
  Rig fits(data);
  fits.train(100ms);
  fits.run_to(100s);
  EXPECT_EQ(fits.feed.hit_rate(), 1);
  EXPECT_EQ(fits.feed.limit(), "cache");
  EXPECT_EQ(fits.feed.step(), seconds(80.0 / 200));  // 10 · 20 GB/s
  data.cache = 79_GB;
  Rig too_small(data);
  too_small.train(100ms);
  too_small.run_to(100s);
  EXPECT_EQ(too_small.feed.hit_rate(), 0);
  EXPECT_EQ(too_small.feed.step(), 800ms);
}

TEST(DataFeed, more_workers_than_cores_do_not_help) {
  DataSpec data = data_80_GB();
  data.decode = 4ms;
  data.cores = 2;  // 10 servers · 2 cores / 4 ms = 5,000 samples a second: 1.6 s a step
  for (const int workers : {1, 4, 50}) {
    data.workers = workers;
    Rig rig(data);
    rig.train(1s);
    rig.run_to(60s);
    EXPECT_EQ(rig.feed.step(), 1600ms) << workers;
    EXPECT_EQ(rig.feed.limit(), "CPU cores");
  }
  data.cores = 64;
  data.workers = 1;  // 10 MB at 20 GB/s + 4 ms: 80 / 4.5 ms = 17,778 a second, the store's 10,000
  Rig rig(data);
  rig.train(500ms);
  rig.run_to(60s);
  EXPECT_EQ(rig.feed.step(), 800ms);
}

TEST(DataFeed, a_store_that_is_down_stops_the_job_when_the_queue_is_empty) {
  Rig rig;
  rig.train(1s);
  rig.run_to(30s);
  rig.store.server_failed();
  rig.run_to(31'999ms);
  EXPECT_EQ(rig.feed.step(), 1s);
  rig.run_to(32'001ms);
  EXPECT_EQ(rig.feed.step(), forever);
  rig.store.server_back();
  rig.run_to(33s);
  EXPECT_EQ(rig.feed.step(), 1s);
}

TEST(DataFeed, fewer_servers_after_a_restart_have_fewer_streams) {
  Rig rig(data_80_GB(), with_neighbour(40, 0s));
  rig.train(100ms);
  rig.run_to(10s);
  EXPECT_EQ(rig.feed.step(), seconds(80 / (100.0 * 80 / 120)));
  rig.feed.restart(0, 5, batch / 2);
  rig.train(100ms);
  rig.run_to(20s);
  EXPECT_EQ(rig.feed.step(), 800ms);  // 40 GB at 50 GB/s
}

// ---- The slow twin: whole batches, one after the other.

class BatchByBatch {
 public:
  explicit BatchByBatch(int prefetch) : prefetch_(prefetch) {}

  /// For so long, readers make `supply` batches a second; a step takes `step_s`, 0: the job stands.
  void run(double duration_s, double supply, double step_s) {
    double left = duration_s;
    while (left > 0) {
      if (!is_reading_ && queue_ < prefetch_) is_reading_ = true, unread_ = 1;
      if (step_s > 0 && !is_stepping_ && queue_ > 0) --queue_, is_stepping_ = true, undone_ = 1;
      if (!is_reading_ && queue_ < prefetch_) continue;
      double next = left;
      if (is_reading_ && supply > 0) next = std::min(next, unread_ / supply);
      if (is_stepping_ && step_s > 0) next = std::min(next, undone_ * step_s);
      left -= next;
      if (is_reading_ && (unread_ -= next * supply) < 1e-12) is_reading_ = false, ++queue_;
      if (is_stepping_ && step_s > 0 && (undone_ -= next / step_s) < 1e-12)
        is_stepping_ = false, ++steps_;
    }
  }
  void restart() { queue_ = 0, is_reading_ = is_stepping_ = false; }
  double steps() const { return steps_ + (is_stepping_ ? 1 - undone_ : 0); }

 private:
  int prefetch_;
  int queue_ = 0, steps_ = 0;
  bool is_reading_ = false, is_stepping_ = false;
  double unread_ = 1, undone_ = 1;
};

TEST(DataFeed, agrees_with_batch_by_batch_over_random_histories) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Stream random(sim::Seed{seed}, "histories");
    const auto draw = [&](double low, double high) {
      return low + (high - low) * random.uniform();
    };
    DataSpec data = data_80_GB();
    data.prefetch = int(draw(1, 9));
    StoreSpec spec = scratch();
    struct Phase {
      double duration_s, supply, step_s;
    };
    std::vector<Phase> phases;
    double at_s = 0;
    for (int i = 0; i < 40; ++i) {
      Phase phase{double(int(draw(20, 300))), 1.25, random.uniform() < 0.2 ? 0 : draw(0.3, 2.5)};
      if (random.uniform() < 0.6) {
        const int streams = int(draw(1, 200));
        spec.neighbours["n" + std::to_string(i)] = {.read = 1e6 * 1_GBps,
                                                    .streams = streams,
                                                    .start = seconds(at_s),
                                                    .end = seconds(at_s + phase.duration_s)};
        phase.supply = 100.0 * 80 / (80 + streams) / 80;
      }
      phases.push_back(phase);
      at_s += phase.duration_s;
    }
    Rig rig(data, spec);
    BatchByBatch twin(data.prefetch);
    at_s = 0;
    rig.restart(0);
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const Phase& phase = phases[i];
      if (i % 10 == 9) {
        rig.restart(0);
        twin.restart();
      }
      if (phase.step_s > 0)
        rig.train(seconds(phase.step_s));
      else
        rig.stand();
      at_s += phase.duration_s;
      rig.run_to(seconds(at_s));
      twin.run(phase.duration_s, phase.supply, phase.step_s);
    }
    rig.count();
    EXPECT_NEAR(rig.steps_done / twin.steps(), 1, 0.01) << twin.steps();
  }
}

TEST(DataFeed, agrees_with_batch_by_batch_exactly_while_nothing_changes) {
  for (const double step_s : {0.3, 0.799, 0.8, 0.801, 2.0}) {
    Rig rig;
    BatchByBatch twin(2);
    rig.train(seconds(step_s));
    rig.run_to(1000s);
    twin.run(1000, 1.25, step_s);
    rig.count();
    const double before = rig.steps_done, twin_before = twin.steps();
    rig.run_to(2000s);
    twin.run(1000, 1.25, step_s);
    rig.count();
    const double each = std::max(step_s, 0.8);
    EXPECT_NEAR(rig.steps_done - before, 1000 / each, 1e-4);
    EXPECT_NEAR(twin.steps() - twin_before, 1000 / each, 1) << step_s;
  }
}

}  // namespace
}  // namespace trainyard::models
