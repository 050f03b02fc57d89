#include "models/storage/loader.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <list>
#include <numeric>
#include <vector>

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
