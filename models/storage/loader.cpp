#include "models/storage/loader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

/// No limit where nothing is needed.
double limited(double capacity, double each) {
  return each > 0 ? capacity / each : endless;
}

BytesPerSecond stream_rate(const StoreSpec& store) {
  return store.stream_rate ? std::min(*store.stream_rate, store.client_rate) : store.client_rate;
}

/// Brownian motion that drifts, kept between 0 and `room`: how far it is pushed at 0 in a step.
double push_at_empty(double drift, double variance, double room) {
  const double x = 2 * drift * room / variance;
  if (std::abs(x) < 1e-9) return variance / (2 * room);
  return drift / std::expm1(x);
}

}  // namespace

double worker_cycle_s(const DataSpec& data, const StoreSpec& store, double hit_rate) {
  const BytesPerSecond stream = stream_rate(store);
  const double fetch_s =
      data.files_per_sample * to_seconds(store.open_latency) + data.sample / Bytes(stream.value());
  return (1 - hit_rate) * fetch_s + hit_rate * (data.sample / Bytes(data.cache_rate.value())) +
         to_seconds(data.decode);
}

double batch_spread(const DataSpec& data, const StoreSpec& store, double hit_rate, double samples) {
  check(samples > 0, "a batch has samples", samples);
  if (data.sample_spread == 0) return 0;
  const double bytes_s = (1 - hit_rate) * (data.sample / Bytes(stream_rate(store).value())) +
                         hit_rate * (data.sample / Bytes(data.cache_rate.value()));
  return data.sample_spread * (bytes_s / worker_cycle_s(data, store, hit_rate)) /
         std::sqrt(samples);
}

double uneven_rate(double supply, double want, double spread, double queues, double prefetch) {
  check(supply > 0 && want > 0 && spread >= 0 && queues >= 1 && prefetch >= 1,
        "queues that are filled and emptied", supply, want, spread, queues, prefetch);
  if (spread == 0) return std::min(supply, want);
  const double log_n = std::log(queues);
  const double slowest = std::min(spread * std::sqrt(2 * log_n),
                                  0.6 * spread * spread * log_n / (prefetch - 1 + 0.58 * spread));
  const double batch = (1 + slowest) / supply;
  const double deviation = spread * batch;
  const double room = (prefetch - 1 + 1.17 * spread) * batch;
  return 1 / (1 / want + push_at_empty(1 / want - batch, deviation * deviation, room));
}

LoaderSupply loader_supply(const DataSpec& data, const StoreSpec& store,
                           std::int64_t gpus_per_server, double hit_rate) {
  check(gpus_per_server > 0, "readers belong to GPUs", gpus_per_server);
  check(hit_rate >= 0 && hit_rate <= 1, "a hit rate is a share", hit_rate);
  const double workers = double(data.workers) * double(gpus_per_server);
  const double from_store = data.sample.value() * (1 - hit_rate);
  const double from_cache = data.sample.value() * hit_rate;
  LoaderSupply out{limited(workers, worker_cycle_s(data, store, hit_rate)), SupplyLimit::workers};
  const auto also = [&](double samples_per_s, SupplyLimit limit) {
    if (samples_per_s < out.samples_per_s) out = {samples_per_s, limit};
  };
  also(limited(data.cores, to_seconds(data.decode)), SupplyLimit::cores);
  also(limited(store.client_rate.value(), from_store), SupplyLimit::client);
  also(limited(data.cache_rate.value(), from_cache), SupplyLimit::cache);
  return out;
}

double cached_fraction(const DataSpec& data) {
  if (data.samples == 0) return 0;
  return std::min(1.0, data.cache.value() / (data.sample.value() * double(data.samples)));
}

double cache_hit_rate(double fraction, std::int64_t servers, std::int64_t epochs_done,
                      bool shuffle) {
  check(servers > 0 && epochs_done >= 0, "somebody reads, from some epoch on", servers,
        epochs_done);
  if (epochs_done == 0 || fraction <= 0) return 0;
  const double x = std::min(1.0, fraction);
  const double share = 1.0 / double(servers);
  if (!shuffle) return x >= share * (1 - 1e-12) ? 1 : 0;
  // (1 - 1/n)^epochs, in logarithms for many servers.
  const double seen = servers == 1 ? 1 : -std::expm1(double(epochs_done) * std::log1p(-share));
  if (x >= 1) return seen;
  // Below u = a nothing seen was thrown out; above b everything in the cache is of this epoch.
  const double a = x <= seen ? 0 : std::min(share, (x - seen) / (1 - seen));
  const double b = std::min(x, share);
  return (seen * a + (b - a) + (1 - x) * std::log((1 - b) / (1 - a))) / share;
}

}  // namespace trainyard::models
