#include "models/facility/leaks.hpp"

namespace trainyard::models {

Leaks::Leaks(const LeakSpec& spec, int racks, sim::Stream luck, Time start)
    : spec_(spec), racks_(racks), luck_(luck) {
  draw(start);
}

void Leaks::draw(Time from) {
  constexpr double year_s = 365.25 * 86400.0;
  next_.reset();
  if (spec_.per_rack_year <= 0 || racks_ <= 0) return;
  const Time t = add(from, seconds(luck_.exponential(year_s / (spec_.per_rack_year * racks_))));
  if (t < Time::max()) next_ = t;
}

std::optional<Leak> Leaks::take(Time now) {
  if (!next_ || *next_ > now) return {};
  Leak leak{.at = *next_};
  leak.rack = int(luck_.below(std::uint64_t(racks_)));
  leak.was_detected = luck_.uniform() < spec_.detected;
  if (leak.was_detected) {
    leak.isolated = add(add(leak.at, spec_.detection), spec_.valve);
  } else {
    leak.isolated = add(leak.at, spec_.found_late);
    // Nearest first, on both sides.
    for (int step = 1; step < racks_ && int(leak.neighbours.size()) < spec_.neighbours; ++step)
      for (const int other : {leak.rack - step, leak.rack + step})
        if (other >= 0 && other < racks_ && int(leak.neighbours.size()) < spec_.neighbours)
          leak.neighbours.push_back(other);
  }
  draw(leak.at);
  return leak;
}

}  // namespace trainyard::models
