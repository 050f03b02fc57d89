#include "models/storage/loader.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>
#include <vector>

#include "models/storage/data_feed.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;

// Samples of 10 MB, a file each: open 2 ms, read 10 MB at 1 GB/s 10 ms, decode 8 ms: 20 ms.
DataSpec images() {
  DataSpec data;
  data.sample = 10_MB;
  data.files_per_sample = 1;
  data.workers = 2;
  data.decode = 8ms;
  data.cores = 64;
  data.cache_rate = 20_GBps;
  return data;
}
StoreSpec files() {
  StoreSpec store{100_GBps, 100_GBps, 10_GBps, 0s};
  store.stream_rate = 1_GBps;
  store.open_latency = 2ms;
  return store;
}

TEST(LoaderSupply, workers_alternate_open_read_and_decode) {
  EXPECT_DOUBLE_EQ(worker_cycle_s(images(), files(), 0), 0.020);
  const LoaderSupply supply = loader_supply(images(), files(), 8, 0);
  EXPECT_DOUBLE_EQ(supply.samples_per_s, 16 / 0.020);  // 2 · 8 workers
  EXPECT_EQ(supply.limit, SupplyLimit::workers);
}

TEST(LoaderSupply, more_workers_than_cores_are_not_better) {
  DataSpec data = images();
  data.cores = 4;  // 4 / 8 ms = 500 a second
  EXPECT_DOUBLE_EQ(loader_supply(data, files(), 8, 0).samples_per_s, 500);
  EXPECT_EQ(loader_supply(data, files(), 8, 0).limit, SupplyLimit::cores);
  data.workers = 200;
  EXPECT_DOUBLE_EQ(loader_supply(data, files(), 8, 0).samples_per_s, 500);
  data.workers = 1;  // 8 / 20 ms = 400: fewer do limit
  EXPECT_DOUBLE_EQ(loader_supply(data, files(), 8, 0).samples_per_s, 400);
}

TEST(LoaderSupply, the_adapter_limits_what_comes_from_the_store_and_not_what_is_cached) {
  DataSpec data = images();
  data.workers = 8;  // 64 / 20 ms = 3,200 > 10 GB/s / 10 MB = 1,000
  EXPECT_DOUBLE_EQ(loader_supply(data, files(), 8, 0).samples_per_s, 1000);
  EXPECT_EQ(loader_supply(data, files(), 8, 0).limit, SupplyLimit::client);
  EXPECT_DOUBLE_EQ(loader_supply(data, files(), 8, 0.5).samples_per_s, 2000);
  data.cores = 1000;
  data.cache_rate = 5_GBps;  // 500 a second, all of them hits: no open, 2 + 8 ms
  EXPECT_DOUBLE_EQ(worker_cycle_s(data, files(), 1), 0.010);
  EXPECT_DOUBLE_EQ(loader_supply(data, files(), 8, 1).samples_per_s, 500);
  EXPECT_EQ(loader_supply(data, files(), 8, 1).limit, SupplyLimit::cache);
}

TEST(LoaderSupply, a_stream_is_not_faster_than_its_adapter) {
  StoreSpec store = files();
  store.stream_rate = 100_GBps;
  store.client_rate = 2_GBps;
  EXPECT_DOUBLE_EQ(worker_cycle_s(images(), store, 0), 0.002 + 0.005 + 0.008);
}

// 10 of 20 ms are for bytes: sizes that vary by 0.4 make the cycle vary by 0.2, a batch of 16
// samples by a quarter of that. Of a hit, 0.5 of 8.5 ms.
TEST(UnevenSamples, only_the_time_for_bytes_varies_and_batches_average) {
  DataSpec data = images();
  EXPECT_EQ(batch_spread(data, files(), 0, 16), 0);
  data.sample_spread = 0.4;
  EXPECT_DOUBLE_EQ(batch_spread(data, files(), 0, 1), 0.2);
  EXPECT_DOUBLE_EQ(batch_spread(data, files(), 0, 16), 0.05);
  EXPECT_NEAR(batch_spread(data, files(), 1, 1), 0.4 * 0.5 / 8.5, 1e-15);
}

TEST(UnevenSamples, without_spread_the_slower_of_the_two_counts) {
  EXPECT_EQ(uneven_rate(0.8, 1, 0, 512, 2), 0.8);
  EXPECT_EQ(uneven_rate(1.2, 1, 0, 512, 2), 1);
  EXPECT_NEAR(uneven_rate(0.8, 1, 1e-4, 512, 2), 0.8, 1e-5);
  EXPECT_NEAR(uneven_rate(1.2, 1, 1e-4, 512, 2), 1, 1e-12);
  // One queue, exactly as fast as the step: c²/(2 B), B = 1 + 1.17 · 0.1.
  EXPECT_NEAR(uneven_rate(1, 1, 0.1, 1, 2), 1 / (1 + 0.01 / (2 * 1.117)), 1e-9);
}

TEST(UnevenSamples, more_spread_and_more_gpus_cost_and_prefetch_and_faster_readers_help) {
  for (const double supply : {0.7, 0.95, 1.0, 1.02, 1.2})
    for (const double spread : {0.02, 0.1, 0.3, 1.0, 3.0})
      for (const double n : {1.0, 8.0, 1024.0, 1e5})
        for (const double prefetch : {1.0, 2.0, 8.0}) {
          SCOPED_TRACE(testing::Message()
                       << supply << ' ' << spread << ' ' << n << ' ' << prefetch);
          const double rate = uneven_rate(supply, 1, spread, n, prefetch);
          EXPECT_GT(rate, 0);
          EXPECT_LE(rate, std::min(supply, 1.0) * (1 + 1e-12));
          EXPECT_LE(uneven_rate(supply, 1, spread * 1.5, n, prefetch), rate * (1 + 1e-12));
          EXPECT_LE(uneven_rate(supply, 1, spread, n * 4, prefetch), rate * (1 + 1e-12));
          EXPECT_GE(uneven_rate(supply, 1, spread, n, prefetch + 1), rate * (1 - 1e-12));
          EXPECT_GE(uneven_rate(supply * 1.1, 1, spread, n, prefetch), rate * (1 - 1e-12));
          EXPECT_NEAR(uneven_rate(supply * 5, 5, spread, n, prefetch), 5 * rate, 1e-9);
        }
}

/// n GPUs whose readers make one batch after the other while less than `prefetch` wait; a step
/// takes one of each. All readers share `bandwidth` batches a second, none gets more than 1 of
/// them; a step alone takes 1 / want.
class UnevenQueues {
 public:
  UnevenQueues(int n, int prefetch, double spread, double bandwidth)
      : prefetch_(prefetch),
        spread_(spread),
        bandwidth_(bandwidth),
        unread_(std::size_t(n)),
        queue_(std::size_t(n), 0) {
    for (double& x : unread_) x = size();
  }

  double rate(double want, int steps) {
    double at = 0, from = 0, step_left = 0;
    for (int done = 0; done < steps;) {
      if (step_left <= 0 &&
          std::all_of(queue_.begin(), queue_.end(), [](int q) { return q > 0; })) {
        for (int& q : queue_) --q;
        step_left = 1 / want;
        if (++done == steps / 10) from = at;
      }
      const auto reads = [&](std::size_t i) { return queue_[i] < prefetch_; };
      double readers = 0, next = endless;
      for (std::size_t i = 0; i < queue_.size(); ++i) readers += reads(i) ? 1 : 0;
      const double each = readers > 0 ? std::min(1.0, bandwidth_ / readers) : 0;
      if (step_left > 0) next = step_left;
      for (std::size_t i = 0; i < queue_.size(); ++i)
        if (reads(i)) next = std::min(next, unread_[i] / each);
      at += next;
      step_left -= next;
      for (std::size_t i = 0; i < queue_.size(); ++i) {
        if (!reads(i) || (unread_[i] -= next * each) > 1e-12) continue;
        ++queue_[i];
        unread_[i] = size();
      }
      if (step_left < 1e-12) step_left = 0;
    }
    return (steps - steps / 10) / (at - from);
  }

 private:
  static constexpr double endless = 1e300;
  /// Gamma with a mean of 1: the sum of 1/c² exponentials.
  double size() {
    const int k = int(std::lround(1 / (spread_ * spread_)));
    double sum = 0;
    for (int i = 0; i < k; ++i) sum -= std::log(1 - random_.uniform());
    return sum / k;
  }

  int prefetch_;
  double spread_;
  double bandwidth_;
  std::vector<double> unread_;
  std::vector<int> queue_;
  sim::Stream random_{sim::Seed{11}, "batches"};
};

// The closed form is good to 2 % for batches that vary by up to a fifth, to 7 % at a half.
TEST(UnevenSamples, agree_with_queues_played_batch_by_batch) {
  for (const int n : {1, 8, 48})
    for (const int prefetch : {2, 4})
      for (const double spread : {0.1, 0.2, 0.5})
        for (const double want : {0.75, 1.0, 1.25})
          EXPECT_NEAR(uneven_rate(1, want, spread, n, prefetch) /
                          UnevenQueues(n, prefetch, spread, 1e9).rate(want, 3000),
                      1, spread > 0.2 ? 0.07 : 0.02)
              << n << " GPUs, " << prefetch << " batches, spread " << spread << ", want " << want;
}

// Where all readers share what is short, who has a full queue leaves his part to those who are
// late: sizes average over all of them, and the mean decides.
TEST(UnevenSamples, do_not_matter_where_readers_share_what_is_short) {
  constexpr int n = 32;
  for (const double share : {0.3, 0.6}) {
    const double rate = UnevenQueues(n, 2, 0.2, share * n).rate(1, 4000);
    EXPECT_NEAR(rate / share, 1, 0.02) << share;
  }
}

/// A job on 10 servers of 8 GPUs with one reader each at 2.5 GB/s, after a minute.
struct UnevenJob {
  UnevenJob(double spread, BytesPerSecond read_rate)
      : store(engine, network, "scratch", spec_of(read_rate)),
        feed(engine, store, data_of(spread), "job llm", 10, 8, 8000) {}
  static StoreSpec spec_of(BytesPerSecond read_rate) {
    StoreSpec spec{100_GBps, read_rate, 20_GBps, 0s};
    spec.stream_rate = 2.5_GBps;
    return spec;
  }
  static DataSpec data_of(double spread) {
    DataSpec data;
    data.sample = 10_MB;
    data.sample_spread = spread;
    data.files_per_sample = 0;
    data.workers = 1;
    return data;
  }
  Duration step(Duration asked) {
    feed.train(asked);
    engine.run_until(engine.now() + 60s);
    return feed.step();
  }
  sim::Engine engine{sim::Seed{1}};
  FluidNetwork network{engine, "stores"};
  SharedStore store;
  DataFeed feed;
};

// 100 samples a GPU are 1 GB in 0.4 s. A spread of 2 makes batches vary by 0.2.
TEST(UnevenSamples, stretch_the_steps_of_readers_that_are_just_fast_enough) {
  EXPECT_EQ(UnevenJob(0, 250_GBps).step(400ms), 400ms);
  UnevenJob job(2, 250_GBps);
  const double rate = uneven_rate(2.5, 2.5, 0.2, 80, 2);
  EXPECT_LT(rate, 2.3);
  EXPECT_EQ(job.step(400ms), seconds(1 / rate));
  EXPECT_EQ(job.feed.limit(), "uneven samples");
  EXPECT_NEAR(job.feed.supply_batches(), rate, 1e-6);  // it asks the store for no more
  EXPECT_EQ(job.step(800ms), 800ms);                   // much to spare
  // Half as many samples a GPU: a batch varies more.
  job.feed.restart(0, 10, 4000);
  EXPECT_EQ(job.step(200ms), seconds(1 / uneven_rate(5, 5, 0.2 * std::sqrt(2.0), 80, 2)));
  // What all share is short: the mean decides.
  UnevenJob shared(2, 100_GBps);
  EXPECT_EQ(shared.step(400ms), 800ms);
  EXPECT_EQ(shared.feed.limit(), "read bandwidth of ");
}

TEST(CacheHitRate, by_hand) {
  EXPECT_EQ(cache_hit_rate(0.5, 1, 0, true), 0);  // the first epoch
  EXPECT_DOUBLE_EQ(cache_hit_rate(1, 1, 1, true), 1);
  EXPECT_DOUBLE_EQ(cache_hit_rate(0.5, 1, 1, true), 0.5 + 0.5 * std::log(0.5));  // 15 %
  // Four servers that hold everything have seen a quarter after one epoch, 1 - (3/4)² after two.
  EXPECT_DOUBLE_EQ(cache_hit_rate(1, 4, 1, true), 0.25);
  EXPECT_DOUBLE_EQ(cache_hit_rate(1, 4, 2, true), 0.4375);
  // Many servers and epochs: what they hold.
  EXPECT_NEAR(cache_hit_rate(0.3, 1000, 100000, true), 0.3, 0.001);
  // A fixed order: all or nothing, around a quarter of the data set each.
  EXPECT_EQ(cache_hit_rate(0.25, 4, 1, false), 1);
  EXPECT_EQ(cache_hit_rate(0.249, 4, 1, false), 0);
  EXPECT_EQ(cache_hit_rate(0, 4, 9, true), 0);
}

TEST(CacheHitRate, of_a_data_set) {
  DataSpec data = images();
  data.cache = 100_GB;
  EXPECT_EQ(cached_fraction(data), 0);  // endless
  data.samples = 20'000;                // 200 GB
  EXPECT_DOUBLE_EQ(cached_fraction(data), 0.5);
  data.samples = 5'000;
  EXPECT_DOUBLE_EQ(cached_fraction(data), 1);
}

/// Slow twin: caches that throw out what was used longest ago, sample by sample.
class Caches {
 public:
  Caches(int samples, int servers, int held)
      : servers_(std::size_t(servers)), held_(std::size_t(held)) {
    for (Cache& c : servers_) c.place.assign(std::size_t(samples), c.order.end());
    order_.resize(std::size_t(samples));
    std::iota(order_.begin(), order_.end(), 0);
  }
  double hit_rate_of_epoch(sim::Stream& random, bool shuffle) {
    if (shuffle)
      for (std::size_t i = order_.size(); i > 1; --i)
        std::swap(order_[i - 1], order_[std::size_t(random.uniform() * double(i))]);
    int hits = 0;
    const std::size_t share = order_.size() / servers_.size();
    for (std::size_t s = 0; s < servers_.size(); ++s)
      for (std::size_t i = s * share; i < (s + 1) * share; ++i)
        hits += read(servers_[s], order_[i]);
    return double(hits) / double(share * servers_.size());
  }

 private:
  struct Cache {
    std::list<int> order;  // last used first
    std::vector<std::list<int>::iterator> place;
  };
  bool read(Cache& c, int sample) {
    auto& place = c.place[std::size_t(sample)];
    const bool hit = place != c.order.end();
    if (hit) c.order.erase(place);
    c.order.push_front(sample);
    place = c.order.begin();
    if (c.order.size() > held_) {
      c.place[std::size_t(c.order.back())] = c.order.end();
      c.order.pop_back();
    }
    return hit;
  }

  std::vector<Cache> servers_;
  std::size_t held_;
  std::vector<int> order_;
};

TEST(CacheHitRate, agrees_with_caches_played_sample_by_sample) {
  constexpr int samples = 24'000;
  for (const int servers : {1, 2, 8, 40})
    for (const double fraction : {0.02, 0.1, 0.3, 0.5, 0.8, 1.0})
      for (const bool shuffle : {true, false}) {
        sim::Stream random(sim::Seed{7}, "caches");
        Caches caches(samples, servers, int(samples * fraction));
        for (int epoch = 0; epoch < 5; ++epoch)
          EXPECT_NEAR(caches.hit_rate_of_epoch(random, shuffle),
                      cache_hit_rate(fraction, servers, epoch, shuffle), 0.015)
              << servers << " servers, " << fraction << " held, epoch " << epoch << ", shuffle "
              << shuffle;
      }
}

}  // namespace
}  // namespace trainyard::models
