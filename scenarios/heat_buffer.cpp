#include "scenarios/heat_buffer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

constexpr double same_share = 1e-3;  // of the most that a zone draws: no change worth telling
constexpr double touch_J = 1e-3;

}  // namespace

HeatBuffer::HeatBuffer(std::vector<Watts> most) : told_(most.size()) {
  for (std::size_t i = 0; i < most.size(); ++i) {
    const double most_J = most[i].value() * to_seconds(hold);
    auto zone = std::find_if(zones_.begin(), zones_.end(),
                             [&](const Zone& z) { return z.most_J == most_J; });
    if (zone == zones_.end()) {
      zone = zones_.emplace(zone);
      zone->most_J = most_J;
    }
    zone->members.push_back(i);
  }
}

/// Zones that draw differently from now on part.
void HeatBuffer::split(std::span<const Watts> drawn) {
  for (std::size_t k = 0; k < zones_.size(); ++k) {
    const Watts first = drawn[zones_[k].members.front()];
    const auto is_like_first = [&](std::size_t i) { return drawn[i] == first; };
    std::vector<std::size_t>& all = zones_[k].members;
    if (std::all_of(all.begin(), all.end(), is_like_first)) continue;
    Zone rest = zones_[k];
    std::erase_if(rest.members, is_like_first);
    std::erase_if(all, [&](std::size_t i) { return !is_like_first(i); });
    zones_.push_back(std::move(rest));  // looked at in its turn
  }
}

void HeatBuffer::integrate(Time now) {
  const double dt_s = to_seconds(now - now_);
  now_ = now;
  if (dt_s <= 0) return;
  for (Zone& z : zones_) z.stored_J += (z.drawn_W - z.base_W - z.extra_W) * dt_s;
}

void HeatBuffer::set(Time now, std::span<const Watts> drawn) {
  check(drawn.size() == told_.size(), "every zone draws something", drawn.size());
  integrate(now);
  split(drawn);
  for (Zone& z : zones_) {
    const double drawn_W = drawn[z.members.front()].value();
    if (z.drawn_W == drawn_W) continue;
    z.drawn_W = drawn_W;
    z.is_answered = false;
    const double same_W = same_share * z.most_J / to_seconds(hold);
    if (std::abs(z.drawn_W - z.base_W) <= same_W)
      z.settles.reset();
    else
      z.settles = add(now, hold);
  }
}

bool HeatBuffer::advance(Time now) {
  integrate(now);
  bool is_new = false;
  for (Zone& z : zones_) {
    const bool settles = z.settles && *z.settles <= now;
    if (settles) {
      z.base_W = z.drawn_W;
      z.settles.reset();
    }
    const bool is_full =
        !z.is_answered && z.is_pushing() && std::abs(z.stored_J) >= z.most_J - touch_J;
    const bool is_empty = z.extra_W != 0 && z.extra_W * z.stored_J <= 0;
    if (!settles && !is_full && !is_empty) continue;
    z.is_answered = is_full;
    z.extra_W = is_empty ? 0.0 : z.stored_J / to_seconds(release);
    if (std::abs(z.stored_J) < 1e-6 * z.most_J) z.extra_W = 0;
    const Watts told(z.base_W + z.extra_W);
    is_new = is_new || told != told_[z.members.front()];
    for (const std::size_t i : z.members) told_[i] = told;
  }
  return is_new;
}

std::optional<Time> HeatBuffer::next_event() const {
  std::optional<Time> next;
  double least_s = std::numeric_limits<double>::infinity();
  for (const Zone& z : zones_) {
    if (z.settles && (!next || *z.settles < *next)) next = z.settles;
    const double rate_W = z.drawn_W - z.base_W - z.extra_W;
    if (rate_W == 0) continue;
    if (z.is_pushing() && !z.is_answered)
      least_s = std::min(least_s, (z.most_J - std::abs(z.stored_J)) / std::abs(rate_W));
    else if (!z.is_pushing() && z.extra_W != 0)
      least_s = std::min(least_s, std::abs(z.stored_J / rate_W));
  }
  if (std::isinf(least_s)) return next;
  // After it, not at it: what a double cannot tell must have happened.
  const Time after = add(add(now_, seconds(std::max(0.0, least_s))), Duration(1));
  return next ? std::min(*next, after) : after;
}

Joules HeatBuffer::stored() const {
  double all_J = 0;
  for (const Zone& z : zones_) all_J += z.stored_J * double(z.members.size());
  return Joules(all_J);
}

}  // namespace trainyard::scenarios
