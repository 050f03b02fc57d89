#pragma once

#include <optional>
#include <vector>

#include "models/facility/cooling_spec.hpp"
#include "sim/random.hpp"
#include "sim/time.hpp"

/// Leaks at liquid-cooled racks: a Poisson process for each group of equal racks.
///
/// A leak that the detector sees ends with closed valves a few seconds later: one rack down. One
/// that it misses is found by people, and takes neighbours along.
///
///     Leaks leaks(spec, 18, engine.random("cooling/leaks/row-1"));
///     while (auto t = leaks.next_event()) if (auto leak = leaks.take(*t)) isolate(*leak);
namespace trainyard::models {

struct Leak {
  int rack = 0;  // of the group, from 0
  bool was_detected = true;
  Time at{};
  Time isolated{};
  std::vector<int> neighbours = {};  // that go down with it
};

class Leaks {
 public:
  Leaks(const LeakSpec& spec, int racks, sim::Stream luck, Time start = start_of_run);
  /// When the next leak begins.
  std::optional<Time> next_event() const { return next_; }
  /// The leak that began at or before now, if any; each is told once.
  std::optional<Leak> take(Time now);

 private:
  void draw(Time from);

  LeakSpec spec_;
  int racks_;
  sim::Stream luck_;
  std::optional<Time> next_;
};

}  // namespace trainyard::models
