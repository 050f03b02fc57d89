#include "models/storage/data_feed.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Rates closer than this are equal: a queue that drains by a rounding error is full.
constexpr double rounding = 1e-9;
// Demand that is trimmed to what the other resource allows follows it in steps of this size, so
// that two jobs which trim against each other settle.
constexpr double trim = 1e-6;
// A hit rate that changes by less is not worth an event: at most 500 of them over all epochs.
constexpr double hit_rate_step = 0.002;
// Waits for uneven samples that are a smaller share of the step are none.
constexpr double least_wait = 1e-6;

bool about(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace

DataFeed::DataFeed(sim::Engine& engine, SharedStore& store, DataSpec data, std::string user,
                   std::int64_t servers, std::int64_t gpus_per_server, double samples_per_step)
    : engine_(engine),
      store_(store),
      data_(std::move(data)),
      user_(std::move(user)),
      servers_(servers),
      gpus_per_server_(gpus_per_server),
      samples_per_step_(samples_per_step),
      bytes_{store.open_reader(user_), true},
      operations_{store.open_reader(user_), false},
      changed_("data of " + user_),
      timer_(engine, sim::Phase::completion,
             [this] {
               advance();
               if (snaps_) level_ = snap_level_;
               decide();
             }),
      follower_(engine.spawn("data feed of " + user_, follow_store())),
      as_of_(engine.now()) {
  check(servers > 0 && gpus_per_server > 0 && samples_per_step > 0, "a job that trains has data",
        servers, gpus_per_server, samples_per_step);
}

DataFeed::~DataFeed() {
  follower_.stop();
}

sim::Process DataFeed::follow_store() {
  for (;;) {
    co_await store_.changed().wait();
    if (state_ == State::off) continue;
    advance();
    decide();
  }
}

void DataFeed::train(Duration step) {
  check(step > Duration::zero(), "a step takes time", to_seconds(step));
  if (state_ == State::off) restart(position_);
  advance();
  state_ = State::training;
  asked_step_ = step;
  decide();
}

void DataFeed::stand() {
  if (state_ == State::off) return;
  advance();
  state_ = State::standing;
  decide();
}

void DataFeed::stop() {
  advance();
  state_ = State::off;
  supply_ = demand_ = 0;
  level_ = 0;
  timer_.cancel();
  let_through(bytes_, 0);
  let_through(operations_, 0);
}

void DataFeed::restart(double samples_done) {
  restart(samples_done, servers_, samples_per_step_);
}

void DataFeed::restart(double samples_done, std::int64_t servers, double samples_per_step) {
  check(samples_done >= 0 && servers > 0 && samples_per_step > 0, "somebody reads on", samples_done,
        servers, samples_per_step);
  if (servers != servers_) bytes_.told = operations_.told = -1;  // other streams
  servers_ = servers;
  samples_per_step_ = samples_per_step;
  position_ = samples_done;
  level_ = -1;  // the first batch is not there yet
  as_of_ = engine_.now();
  state_ = State::standing;
  update_hit_rate();
  decide();
}

double DataFeed::wanted() const {
  return state_ == State::training ? 1 / to_seconds(pace_) : 0;
}

/// GPUs whose batch is less than a sample share one.
Duration DataFeed::pace_of(Duration step) const {
  if (data_.sample_spread == 0) return step;
  const double queues = std::min(double(servers_ * gpus_per_server_), samples_per_step_);
  const double spread = batch_spread(data_, store_.spec(), hit_rate_, samples_per_step_ / queues);
  const double workers = double(data_.workers) * double(gpus_per_server_ * servers_);
  const double supply =
      workers / worker_cycle_s(data_, store_.spec(), hit_rate_) / samples_per_step_;
  const double most = 1 / to_seconds(step);
  const double rate = uneven_rate(supply, most, spread, queues, double(data_.prefetch));
  return rate < most * (1 - least_wait) ? seconds(1 / rate) : step;
}

void DataFeed::advance() {
  const double elapsed_s = to_seconds(engine_.now() - as_of_);
  as_of_ = engine_.now();
  if (state_ == State::off) return;
  const double before = level_;
  level_ = std::min(capacity(), level_ + (supply_ - demand_) * elapsed_s);
  if (before >= 0) level_ = std::max(0.0, level_);
  position_ += supply_ * samples_per_step_ * elapsed_s;
  // The timer is rounded up: an epoch that ends by it has ended.
  if (next_hit_rate_at_ < never && about(position_, next_hit_rate_at_, 1e-12))
    position_ = std::max(position_, next_hit_rate_at_);
  if (position_ >= next_hit_rate_at_) update_hit_rate();
}

/// The hit rate of the present epoch, and the epoch in which it will be noticeably another one.
void DataFeed::update_hit_rate() {
  const double fraction = cached_fraction(data_);
  next_hit_rate_at_ = never;
  hit_rate_ = 0;
  if (fraction == 0) return;
  const double samples = double(data_.samples);
  const auto rate_in = [&](std::int64_t epoch) {
    return cache_hit_rate(fraction, servers_, epoch, data_.shuffle);
  };
  const auto epoch = std::int64_t(position_ / samples * (1 + 1e-12));
  hit_rate_ = rate_in(epoch);
  const auto is_other = [&](std::int64_t e) {
    return std::abs(rate_in(e) - hit_rate_) > hit_rate_step;
  };
  // It grows with the epochs: double the distance, then halve it.
  std::int64_t ahead = 1;
  while (!is_other(epoch + ahead)) {
    if (ahead > std::int64_t{1} << 40) return;
    ahead *= 2;
  }
  std::int64_t behind = ahead / 2;  // not yet another one
  while (ahead - behind > 1) {
    const std::int64_t middle = behind + (ahead - behind) / 2;
    (is_other(epoch + middle) ? ahead : behind) = middle;
  }
  next_hit_rate_at_ = double(epoch + ahead) * samples;
}

/// The store is told only what changed. Batches a second; infinity: as many as asked for.
double DataFeed::let_through(Demand& demand, double batches_per_s) {
  const double each = samples_per_step_ * (1 - hit_rate_) *
                      (demand.is_bytes ? data_.sample.value() : data_.files_per_sample);
  const double amount = batches_per_s * each;
  demand.batches = batches_per_s;
  if (!demand.is_bytes && !store_.spec().metadata_rate) return never;  // nobody counts them
  if (amount != std::exchange(demand.told, amount))
    demand.reader->set_demand(BytesPerSecond(demand.is_bytes ? amount : 0),
                              demand.is_bytes ? 0 : amount,
                              int(data_.workers * gpus_per_server_ * servers_), servers_);
  if (amount == 0) return never;
  const double got =
      demand.is_bytes ? demand.reader->granted().value() : demand.reader->granted_operations();
  return got < amount * (1 - rounding) ? got / each : never;
}

/// What the store lets through if the readers ask for `target` batches a second.
double DataFeed::supply_of(double target) {
  const auto before = [&](const Demand& d) {
    return d.batches > 0 ? std::min(d.batches, target) : target;
  };
  double by_bytes = before(bytes_), by_operations = before(operations_);
  for (int round = 0;; ++round) {
    const double most_bytes = let_through(bytes_, by_bytes);
    const double most_operations = let_through(operations_, by_operations);
    const double supply = std::min({target, most_bytes, most_operations});
    if (supply == most_operations)
      limit_ = SupplyLimit::metadata;
    else if (supply == most_bytes)
      limit_ = SupplyLimit::bandwidth;
    by_bytes = supply == most_bytes ? target : supply;
    by_operations = supply == most_operations ? target : supply;
    if (round == 8 ||
        (about(by_bytes, bytes_.batches, trim) && about(by_operations, operations_.batches, trim)))
      return supply;
  }
}

void DataFeed::decide() {
  if (state_ == State::off) return;
  const LoaderSupply local = loader_supply(data_, store_.spec(), gpus_per_server_, hit_rate_);
  const double target = local.samples_per_s * double(servers_) / samples_per_step_;
  if (state_ == State::training) pace_ = pace_of(asked_step_);
  const double want = wanted();
  const auto from_store = [&](double batches_per_s) {
    limit_ = local.limit;
    const double supply = supply_of(batches_per_s);
    return about(supply, want, rounding) ? want : supply;
  };
  const bool is_full = level_ >= capacity();
  supply_ = from_store(is_full ? std::min(want, target) : target);
  if (is_full && supply_ < want) supply_ = std::min(want, from_store(target));
  if (state_ == State::training && pace_ > asked_step_ && supply_ >= want &&
      target * to_seconds(asked_step_) >= 1)
    limit_ = SupplyLimit::uneven;
  demand_ = level_ > 0 ? want : level_ < 0 ? 0 : std::min(want, supply_);
  arm();
  announce();
}

/// One timer for whatever comes first: a batch, an empty or a full queue, another hit rate.
void DataFeed::arm() {
  const double filling = supply_ - demand_;
  double level_in_s = never;
  if (level_ < 0)
    snap_level_ = 0;
  else
    snap_level_ = filling > 0 ? capacity() : 0;
  if (filling != 0 && level_ != snap_level_) level_in_s = (snap_level_ - level_) / filling;
  const double reading = supply_ * samples_per_step_;
  const double epoch_in_s = reading > 0 ? (next_hit_rate_at_ - position_) / reading : never;
  snaps_ = level_in_s <= epoch_in_s;
  const double next_s = std::min(level_in_s, epoch_in_s);
  timer_.arm(next_s < never ? seconds(std::max(0.0, next_s)) : forever);
}

Duration DataFeed::step() const {
  check(state_ == State::training, "only a job that trains has a step");
  if (level_ > 0 || (level_ == 0 && supply_ >= wanted())) return pace_;
  if (level_ < 0 || supply_ <= 0) return forever;
  return seconds(1 / supply_);
}

void DataFeed::announce() {
  if (state_ != State::training) return;
  const Duration now = step();
  if (now == std::exchange(announced_, now)) return;
  changed_.notify_all();
}

double DataFeed::queue_batches() const {
  const double since_s = state_ == State::off ? 0 : to_seconds(engine_.now() - as_of_);
  return std::clamp(level_ + (supply_ - demand_) * since_s, 0.0, capacity());
}

double DataFeed::samples_read() const {
  const double since_s = state_ == State::off ? 0 : to_seconds(engine_.now() - as_of_);
  return position_ + supply_ * samples_per_step_ * since_s;
}

std::string DataFeed::limit() const {
  switch (limit_) {
    case SupplyLimit::workers:
      return "workers";
    case SupplyLimit::uneven:
      return "uneven samples";
    case SupplyLimit::cores:
      return "CPU cores";
    case SupplyLimit::client:
      return "client limit";
    case SupplyLimit::cache:
      return "cache";
    case SupplyLimit::bandwidth:
    case SupplyLimit::metadata:
      break;
  }
  const std::string what = limit_ == SupplyLimit::bandwidth ? "read bandwidth of " : "metadata of ";
  const std::string other = store_.busiest_other(user_, false);
  return what + data_.store + (other.empty() ? "" : ", shared with " + other);
}

}  // namespace trainyard::models
