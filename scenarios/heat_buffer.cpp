#include "scenarios/heat_buffer.hpp"

#include <cmath>

#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

constexpr double same_share = 1e-3;  // of the most that a zone draws: no change worth telling
constexpr double touch_J = 1e-3;

}  // namespace

HeatBuffer::HeatBuffer(std::vector<Watts> most) : told_(most.size()) {
  for (const Watts watts : most) {
    Zone zone;
    zone.most_J = watts.value() * to_seconds(hold);
    zones_.push_back(zone);
  }
}

void HeatBuffer::integrate(Time now) {
  const double dt_s = to_seconds(now - now_);
  now_ = now;
  if (dt_s <= 0) return;
  for (Zone& z : zones_) z.stored_J += (z.drawn_W - z.base_W - z.extra_W) * dt_s;
}

void HeatBuffer::set(Time now, std::span<const Watts> drawn) {
  check(drawn.size() == zones_.size(), "every zone draws something", drawn.size());
  integrate(now);
  for (std::size_t i = 0; i < zones_.size(); ++i) {
    Zone& z = zones_[i];
    if (z.drawn_W == drawn[i].value()) continue;
    z.drawn_W = drawn[i].value();
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
  for (std::size_t i = 0; i < zones_.size(); ++i) {
    Zone& z = zones_[i];
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
    is_new = is_new || told != told_[i];
    told_[i] = told;
  }
  return is_new;
}

std::optional<Time> HeatBuffer::next_event() const {
  std::optional<Time> next;
  const auto take = [&](Time t) {
    if (!next || t < *next) next = t;
  };
  const auto after = [&](double s) {
    return add(add(now_, seconds(std::max(0.0, s))), Duration(1));
  };
  for (const Zone& z : zones_) {
    if (z.settles) take(*z.settles);
    const double rate_W = z.drawn_W - z.base_W - z.extra_W;
    if (rate_W == 0) continue;
    // After it, not at it: what a double cannot tell must have happened.
    if (z.is_pushing() && !z.is_answered)
      take(after((z.most_J - std::abs(z.stored_J)) / std::abs(rate_W)));
    else if (!z.is_pushing() && z.extra_W != 0)
      take(after(std::abs(z.stored_J / rate_W)));
  }
  return next;
}

Joules HeatBuffer::stored() const {
  double all_J = 0;
  for (const Zone& z : zones_) all_J += z.stored_J;
  return Joules(all_J);
}

}  // namespace trainyard::scenarios
