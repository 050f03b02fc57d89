#include "models/facility/power_flow_memory.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr std::size_t most_solutions = 64;
constexpr std::size_t most_bytes = 64 << 20;
constexpr std::size_t most_ways = 4 * most_solutions;
/// A part of an image that is no more than rounding, of what a tripped breaker has.
constexpr double no_part = 1e-18;

std::uint64_t word(const std::byte* at) {
  std::uint64_t w = 0;
  std::memcpy(&w, at, sizeof w);
  return w;
}

/// Four chains that do not wait for each other; equal hashes are compared byte by byte.
std::uint64_t hash_of(FlowMemory::Key key) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
  std::uint64_t lanes[4] = {1, 2, 3, key.size()};
  const std::byte* at = key.data();
  std::size_t left = key.size() / sizeof(std::uint64_t);
  for (; left >= 4; left -= 4, at += 32)
    for (std::size_t i = 0; i < 4; ++i) {
      lanes[i] = (lanes[i] ^ word(at + 8 * i)) * odd;
      lanes[i] ^= lanes[i] >> 29;
    }
  for (std::size_t i = 0; i < left; ++i) lanes[i] = (lanes[i] ^ word(at + 8 * i)) * odd;
  std::uint64_t hash = 0;
  for (const std::uint64_t lane : lanes) hash = (hash ^ lane ^ (lane >> 31)) * odd;
  return hash;
}

}  // namespace

FlowMemory::FlowMemory(std::vector<double> time_constants_s, std::size_t nodes)
    : most_(std::clamp<std::size_t>(most_bytes / (sizeof(PowerPaths::Flow) * (nodes + 1)), 4,
                                    most_solutions)) {
  for (const double tau_s : time_constants_s) {
    auto at = std::find_if(coolings_.begin(), coolings_.end(),
                           [&](const Cooling& c) { return c.tau_s == tau_s; });
    if (at == coolings_.end()) at = coolings_.insert(at, Cooling{tau_s});
    cooling_of_.push_back(std::size_t(at - coolings_.begin()));
  }
}

std::optional<std::size_t> FlowMemory::find(Key key) {
  const std::uint64_t hash = hash_of(key);
  last_way_ = none;
  for (std::size_t w = 0; w < ways_.size(); ++w) {
    const Way& way = ways_[w];
    if (way.hash != hash || (way.from != none && way.from != at_) || way.key.size() != key.size() ||
        std::memcmp(way.key.data(), key.data(), key.size()) != 0)
      continue;
    last_way_ = w;
    return way.to;
  }
  return std::nullopt;
}

std::optional<std::size_t> FlowMemory::find(std::uint64_t name) const {
  if (name == 0) return std::nullopt;
  for (const Way& way : ways_)
    if (way.name == name && (way.from == none || way.from == at_)) return way.to;
  return std::nullopt;
}

void FlowMemory::name_last(std::uint64_t name) {
  if (last_way_ < ways_.size()) ways_[last_way_].name = name;
}

std::optional<std::size_t> FlowMemory::find(const std::vector<PowerPaths::Load>& loads) const {
  for (std::size_t k = 0; k < known_.size(); ++k)
    if (k != at_ && known_[k].solved.loads == loads) return k;
  return std::nullopt;
}

void FlowMemory::learn(Key key, std::size_t from, std::size_t to) {
  if (ways_.size() == most_ways) ways_.erase(ways_.begin());
  last_way_ = ways_.size();
  ways_.push_back({hash_of(key), from, to, std::vector(key.begin(), key.end())});
}

std::size_t FlowMemory::oldest() const {
  std::size_t old = none;
  for (std::size_t k = 0; k < known_.size(); ++k)
    if (k != at_ && (old == none || known_[k].used < known_[old].used)) old = k;
  return old;
}

bool FlowMemory::must_settle() const {
  if (known_.size() < most_) return false;
  const std::size_t old = oldest();
  return std::any_of(coolings_.begin(), coolings_.end(),
                     [old](const Cooling& c) { return c.weights[old] > no_part; });
}

void FlowMemory::add(std::vector<double> heating, PowerPaths::Solved before, Time now) {
  check(heating.size() == cooling_of_.size(), "each breaker has its heating");
  pass(now);
  std::size_t place = known_.size();
  if (known_.size() < most_) {
    known_.emplace_back();
    for (Cooling& c : coolings_) c.weights.push_back(0.0);
  } else {
    place = oldest();
    std::erase_if(ways_, [&](const Way& w) { return w.to == place || w.from == place; });
    last_way_ = none;
    for (Cooling& c : coolings_) c.weights[place] = 0.0;
  }
  if (at_ != none) {
    known_[at_].solved = std::move(before);
    has_changed_ = true;
  }
  known_[place] = {{}, std::move(heating), ++uses_};
  at_ = place;
}

PowerPaths::Solved& FlowMemory::change_to(std::size_t k, Time now) {
  pass(now);
  std::swap(known_[k].solved, known_[at_].solved);
  // The exchange with the paths fills the place of what was in force until now.
  PowerPaths::Solved& place = known_[at_].solved;
  known_[k].used = ++uses_;
  at_ = k;
  has_changed_ = true;
  return place;
}

void FlowMemory::hold(std::size_t k) {
  check(at_ == none, "one solution is in force");
  known_[k].solved = {};
  known_[k].used = ++uses_;
  at_ = k;
}

void FlowMemory::leave(PowerPaths::Solved before) {
  if (at_ == none) return;
  check(!has_changed_, "images are taken before");
  known_[at_].solved = std::move(before);
  at_ = none;
}

void FlowMemory::forget() {
  check(!has_changed_, "images are taken before");
  known_.clear();
  ways_.clear();
  last_way_ = none;
  for (Cooling& c : coolings_) c.weights.clear();
  at_ = none;
}

void FlowMemory::settle(Time now) {
  for (Cooling& c : coolings_) {
    c.start = 1.0;
    std::fill(c.weights.begin(), c.weights.end(), 0.0);
  }
  settled_ = since_ = now;
  has_changed_ = false;
}

void FlowMemory::pass(Time now) {
  const double dt_s = to_seconds(now - since_);
  since_ = now;
  if (dt_s <= 0 || at_ == none) return;
  for (Cooling& c : coolings_) {
    const double kept = std::exp(-dt_s / c.tau_s);
    c.start *= kept;
    for (double& weight : c.weights) weight *= kept;
    c.weights[at_] += 1.0 - kept;
  }
}

double FlowMemory::image(std::size_t breaker, double image) const {
  const Cooling& cooling = coolings_[cooling_of_[breaker]];
  double sum = cooling.start * image;
  for (std::size_t k = 0; k < known_.size(); ++k)
    if (cooling.weights[k] > 0) sum += cooling.weights[k] * known_[k].heating[breaker];
  return sum;
}

}  // namespace trainyard::models
