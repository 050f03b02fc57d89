#include "models/facility/generators.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

constexpr double short_overload = 1.10;
constexpr Duration overload_time = std::chrono::seconds(10);

void take_earlier(std::optional<Time>& best, std::optional<Time> other) {
  if (other && (!best || *other < *best)) best = other;
}

/// Attempts that a sound set needs: geometric, given that one of the `tries` succeeds.
int attempts_needed(double u, double try_fails, int tries) {
  const double total = 1.0 - std::pow(try_fails, tries);
  double seen = 0.0;
  for (int j = 1; j < tries; ++j) {
    seen += std::pow(try_fails, j - 1) * (1.0 - try_fails);
    if (u * total < seen) return j;
  }
  return tries;
}

}  // namespace

double chance_fewer_start(int k, int n, double fail, double beta) {
  const double q = (1.0 - beta) * fail;
  double tail = 0.0;
  for (int j = n - k + 1; j <= n; ++j) {
    double term = 1.0;  // C(n, j) q^j (1-q)^(n-j)
    for (int i = 1; i <= j; ++i) term *= double(n - j + i) / i * q;
    tail += term * std::pow(1.0 - q, n - j);
  }
  return beta * fail + (1.0 - beta * fail) * tail;
}

double chance_of_service(const GeneratorSpec& spec, Duration outage) {
  return (1.0 - spec.unavailable) * (1.0 - spec.fail_to_start) *
         std::exp(-to_seconds(outage) / to_seconds(spec.mttf));
}

Generators::Generators(const GeneratorSpec& spec, sim::Stream stream)
    : spec_(spec), common_luck_(stream.child(0)), sets_(std::size_t(spec.sets)) {
  check(spec.rating > Watts(0), "a generator set has a rating", spec.rating.value());
  for (std::size_t i = 0; i < sets_.size(); ++i) sets_[i].luck = stream.child(1 + i);
}

int Generators::blocks_to_full() const {
  return std::max(1, int(std::ceil(1.0 / spec_.block - 1e-9)));
}

int Generators::running() const {
  return int(std::count_if(sets_.begin(), sets_.end(),
                           [](const Set& s) { return s.state == State::running; }));
}

double Generators::consumption() const {
  const int n = running();
  if (n == 0) return 0.0;
  const double full = 1.0 / to_seconds(spec_.fuel) / spec_.sets;  // of one set
  const double x = load_ / (spec_.rating * n);
  return full * n * (spec_.idle_consumption + (1.0 - spec_.idle_consumption) * x);
}

double Generators::fuel(Time now) const {
  if (empty_ && now >= *empty_) return 0.0;
  return std::max(fuel_ - consumption() * to_seconds(now - since_), 0.0);
}

void Generators::rebase(Time now) {
  fuel_ = fuel(now);
  since_ = now;
}

void Generators::start(Time now) {
  advance(now);
  if (is_ordered_) return;
  is_ordered_ = true;
  rebase(now);
  if (!refill_ && spec_.refill) refill_ = add(now, *spec_.refill);
  const bool all_fail = common_luck_.uniform() < spec_.common_cause * spec_.fail_to_start;
  const double alone = (1.0 - spec_.common_cause) * spec_.fail_to_start;
  std::vector<std::pair<Time, Set*>> ready;
  for (Set& set : sets_) {
    // Always five draws, so that what happens to one start does not change the luck of the next.
    const bool is_away = set.luck.uniform() < spec_.unavailable;
    const bool fails = set.luck.uniform() < alone || all_fail;
    const int attempts = attempts_needed(set.luck.uniform(), spec_.try_fails, spec_.tries);
    const double start_s = set.luck.log_normal(to_seconds(spec_.start_median), spec_.start_sigma);
    const double life_s = set.luck.exponential(to_seconds(spec_.mttf));
    if (set.state == State::failed || set.state == State::running) continue;
    if (is_away) {
      set.state = State::maintenance;
      set.change.reset();
    } else if (fails) {
      set.state = State::cranking;
      set.closed = Time::max();
      set.change = add(now, spec_.try_pause * spec_.tries);
    } else {
      set.state = State::cranking;
      set.fails = add(now, seconds(life_s));
      ready.emplace_back(add(add(now, spec_.try_pause * (attempts - 1)), seconds(start_s)), &set);
    }
  }
  std::stable_sort(ready.begin(), ready.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::optional<Time> bus = running() > 0 ? std::optional(now) : std::nullopt;
  for (auto& [when, set] : ready) {
    bus = bus ? add(std::max(*bus, when), spec_.synchronise) : when;
    set->closed = *bus;
    set->change = *bus;
    set->fails = add(*bus, set->fails - now);
  }
  predict(now);
}

void Generators::leave_bus(Set& set, Time now) {
  set.blocks = 0;
  set.next_block.reset();
  set.state = State::failed;
  set.change = add(now, spec_.repair);
}

void Generators::stop(Time now) {
  advance(now);
  rebase(now);
  is_ordered_ = false;
  refill_.reset();
  for (Set& set : sets_) {
    if (set.state == State::failed) continue;
    set.state = State::standby;
    set.change.reset();
    set.blocks = 0;
    set.next_block.reset();
  }
  predict(now);
}

void Generators::happen(Time now) {
  rebase(now);
  for (Set& set : sets_) {
    if (set.next_block && *set.next_block <= now) {
      ++set.blocks;
      set.next_block = set.blocks < blocks_to_full()
                           ? std::optional(add(*set.next_block, spec_.block_interval))
                           : std::nullopt;
    }
    if (!set.change || *set.change > now) continue;
    switch (set.state) {
      case State::cranking:
        if (set.closed == Time::max()) {
          leave_bus(set, now);
          break;
        }
        set.state = State::running;
        set.change = set.fails;
        set.blocks = 1;
        if (set.blocks < blocks_to_full()) set.next_block = add(now, spec_.block_interval);
        break;
      case State::running:
        leave_bus(set, now);
        break;
      default:
        set.state = State::standby;
        set.change.reset();
        is_ordered_ = false;  // repaired: the next order starts it beside those that run
    }
  }
  const bool is_empty = empty_ && *empty_ <= now;
  if (is_empty || (overload_trip_ && *overload_trip_ <= now)) {
    for (Set& set : sets_) {
      if (set.state != State::running) continue;
      leave_bus(set, now);
    }
    overload_trip_.reset();
  }
  if (refill_ && *refill_ <= now) {
    fuel_ = 1.0;
    refill_ = add(*refill_, *spec_.refill);
  }
  predict(now);
}

void Generators::predict(Time now) {
  capacity_ = Watts(0);
  for (const Set& set : sets_)
    if (set.state == State::running)
      capacity_ += spec_.rating * std::min(1.0, set.blocks * spec_.block);
  const Watts full = spec_.rating * running();
  if (running() == 0 || load_ <= full * short_overload)
    overload_trip_.reset();
  else if (!overload_trip_)
    overload_trip_ = add(now, overload_time);
  empty_.reset();
  if (const double rate = consumption(); rate > 0) {
    const Duration left = seconds(fuel_ / rate);
    if (left != forever) empty_ = add(since_, left);
  }
  next_.reset();
  for (const Set& set : sets_) {
    take_earlier(next_, set.change);
    take_earlier(next_, set.next_block);
  }
  take_earlier(next_, empty_);
  take_earlier(next_, overload_trip_);
  take_earlier(next_, refill_);
}

void Generators::advance(Time now) {
  check(now >= since_, "generators do not go back in time");
  while (next_ && *next_ <= now) happen(*next_);
}

void Generators::set_load(Time now, Watts load) {
  advance(now);
  if (load == load_) return;
  rebase(now);
  load_ = load;
  predict(now);
}

void Generators::fail_set(Time now, int set) {
  check(set >= 0 && set < spec_.sets, "a set of the group", set);
  advance(now);
  rebase(now);
  leave_bus(sets_[std::size_t(set)], now);
  predict(now);
}

void Generators::fail_all(Time now) {
  for (int i = 0; i < spec_.sets; ++i) fail_set(now, i);
}

void Generators::repair_all(Time now) {
  advance(now);
  rebase(now);
  for (Set& set : sets_) {
    if (set.state != State::failed && set.state != State::maintenance) continue;
    set.state = State::standby;
    set.change.reset();
    is_ordered_ = false;
  }
  predict(now);
}

bool Generators::is_settled(Time now) const {
  return is_ordered_ && std::none_of(sets_.begin(), sets_.end(), [now](const Set& s) {
           return (s.state == State::cranking && s.change && *s.change >= now) || s.next_block;
         });
}

}  // namespace trainyard::models
