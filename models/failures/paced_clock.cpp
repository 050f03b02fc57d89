#include <algorithm>
#include <cmath>
#include <limits>

#include "models/failures/class_clock.hpp"
#include "models/failures/inlet.hpp"
#include "sim/check.hpp"

/// Hazards that follow load and temperature, exact and without touching units when whole jobs start
/// and stop:
///
/// Two clocks for the class show the operational time of a server that was always idle and of one
/// that always trained; a server's own time is that of the clock it follows now plus an offset, and
/// a unit has its due time on the clock of its server. A server that starts or stops training
/// changes its offset: one addition for all its units.
///
/// Which unit is next depends on what the servers will do. The class keeps a short list of the
/// units that could act before a horizon if all servers went at the faster pace; all others cannot,
/// whatever happens. Every change looks through the short list; at the horizon, all units are
/// looked through for a new one. With n units the list has about sqrt(n), which balances the two.
namespace trainyard::models {

using topologies::HostId;

FailureClocks::PacedClock::PacedClock(FailureClocks& all, const FailureClass& cls)
    : Clock(all, cls),
      settled_(all.engine_.now()),
      offset_(has_server() ? static_cast<std::size_t>(all.counts_.servers) : 1, 0),
      timer_(all.engine_, sim::Phase::failure, [this] { act(); }) {
  fast_ = cls.spec.idle_factor > 1.0 && has_server() ? Pace::idle : Pace::training;
  if (all.inlet_) {
    const InletSpec& inlet = *all.inlet_;
    set_temperature(inlet.mean + inlet.day_swing + inlet.year_swing);
    fastest_pace_ = pace(fast_);
    set_temperature(inlet_temperature(inlet, settled_.time_since_epoch() / std::chrono::hours(1)));
  } else {
    set_temperature(0);
    fastest_pace_ = pace(fast_);
  }
  units_.resize(unit_count());
  for (std::uint32_t u = 0; u < units_.size(); ++u) begin_life(u);
  look_ahead();
  arm();
}

bool FailureClocks::PacedClock::follows_temperature() const {
  return class_.spec.activation_energy > 0 && all_.inlet_.has_value();
}

void FailureClocks::PacedClock::set_temperature(double celsius) {
  for (const Pace p : {Pace::idle, Pace::training}) clock_[std::size_t(p)] = clock(p);
  settled_ = now();
  const double factor = follows_temperature() ? arrhenius(class_.spec.activation_energy,
                                                          all_.inlet_->reference, celsius)
                                              : 1.0;
  const double idle = has_server() ? class_.spec.idle_factor : 1.0;
  static constexpr double fastest = 1 << 20;
  const auto whole = [](double x) {
    return std::llround(std::ldexp(std::min(x, fastest), fraction_bits));
  };
  pace_[std::size_t(Pace::idle)] = whole(factor * idle);
  pace_[std::size_t(Pace::training)] = whole(factor);
  if (!units_.empty()) arm();
}

FailureClocks::Pace FailureClocks::PacedClock::pace_of(std::uint32_t u) const {
  return has_server() ? all_.pace_of(u / per_server_) : Pace::training;
}

FailureClocks::PacedClock::Wide FailureClocks::PacedClock::clock(Pace p) const {
  if (p == Pace::down) return 0;
  return clock_[std::size_t(p)] + Wide{pace(p)} * (now() - settled_).count();
}

/// Operational time until the unit fails.
FailureClocks::PacedClock::Wide FailureClocks::PacedClock::left(std::uint32_t u) const {
  return units_[u].due - clock(pace_of(u)) - offset_[server_of(u)];
}

/// When that much operational time has passed at a pace.
Time FailureClocks::PacedClock::due_at(Wide left, std::int64_t pace) const {
  if (left <= 0) return now();
  if (pace == 0) return Time::max();
  const Wide wait = (left + pace - 1) / pace;
  if (wait >= std::numeric_limits<std::int64_t>::max()) return Time::max();
  return add(now(), Duration(static_cast<std::int64_t>(wait)));
}

void FailureClocks::PacedClock::begin_life(std::uint32_t u) {
  Unit& unit = units_[u];
  const Duration life = life_of(u, unit.life);
  const Wide time = clock(pace_of(u)) + offset_[server_of(u)];
  unit.due = life == forever ? never : time + (Wide{life.count()} << fraction_bits);
  unit.has_failed = unit.is_announced = false;
}

void FailureClocks::PacedClock::renew(std::uint32_t u) {
  Unit& unit = units_[u];
  check(unit.has_failed || unit.is_announced,
        "a new life begins after a failure, or after its announcement", class_.name, u);
  ++unit.life;
  begin_life(u);
  add_if_near(u);
  arm();
}

/// The server's time goes on from where it is, at another pace.
void FailureClocks::PacedClock::change(std::uint32_t server, Pace from, Pace to) {
  offset_[server] += clock(from) - clock(to);
}

void FailureClocks::PacedClock::pause(std::uint32_t server) {
  if (!has_server()) return;
  change(server, all_.training_[server] ? Pace::training : Pace::idle, Pace::down);
  arm();
}

void FailureClocks::PacedClock::resume(std::uint32_t server, Duration) {
  if (!has_server()) return;
  change(server, Pace::down, all_.training_[server] ? Pace::training : Pace::idle);
  arm();
}

void FailureClocks::PacedClock::set_training(std::span<const std::uint32_t> servers,
                                             bool training) {
  if (!has_server()) return;
  const Wide ahead = clock(Pace::training) - clock(Pace::idle);
  for (const std::uint32_t server : servers) offset_[server] += training ? -ahead : ahead;
  arm();
}

/// An announcement comes at most this much operational time before the failure.
void FailureClocks::PacedClock::add_if_near(std::uint32_t u) {
  const Wide margin = Wide{fastest_pace_} * warning().count();
  if (units_[u].is_near || units_[u].due == never) return;
  if (left(u) > horizon_ - clock(fast_) + margin) return;
  units_[u].is_near = true;
  near_.push_back(u);
}

/// A new horizon: where the sqrt(n)-th unit would fail if all went at the faster pace.
void FailureClocks::PacedClock::look_ahead() {
  near_.clear();
  std::vector<Wide> all;
  all.reserve(units_.size());
  for (std::uint32_t u = 0; u < units_.size(); ++u) {
    units_[u].is_near = false;
    if (!units_[u].has_failed && units_[u].due != never) all.push_back(left(u));
  }
  if (all.empty()) {
    horizon_ = never;
    return;
  }
  const auto few = static_cast<std::size_t>(std::sqrt(double(units_.size()))) + 16;
  const auto last = all.begin() + std::ptrdiff_t(std::min(few, all.size()) - 1);
  std::nth_element(all.begin(), last, all.end());
  // At least a second on, whatever fails at once.
  const Wide ahead = std::max(*last, Wide{pace(fast_)} * 1'000'000'000);
  horizon_ = clock(fast_) + ahead;
  for (std::uint32_t u = 0; u < units_.size(); ++u)
    if (!units_[u].has_failed) add_if_near(u);
}

void FailureClocks::PacedClock::arm() {
  // The least operational time left: by pace, and whether an announcement comes first.
  Wide least[2][2] = {{never, never}, {never, never}};
  for (const std::uint32_t u : near_) {
    const Pace p = pace_of(u);
    if (p == Pace::down) continue;
    Wide& slot = least[std::size_t(p)][units_[u].is_announced || warning() == Duration::zero()];
    slot = std::min(slot, left(u));
  }
  Time when = horizon_ == never ? Time::max() : due_at(horizon_ - clock(fast_), pace(fast_));
  for (const Pace p : {Pace::idle, Pace::training}) {
    if (least[std::size_t(p)][1] != never)
      when = std::min(when, due_at(least[std::size_t(p)][1], pace(p)));
    if (least[std::size_t(p)][0] == never) continue;
    const Time due = due_at(least[std::size_t(p)][0], pace(p));
    if (due != Time::max()) when = std::min(when, std::max(now(), due - warning()));
  }
  if (when == Time::max()) return timer_.cancel();
  if (timer_.expiry() != when) timer_.arm_at(when);
}

void FailureClocks::PacedClock::act() {
  if (horizon_ != never && clock(fast_) >= horizon_) look_ahead();
  // Of those that are due at this instant, the unit with the lowest number.
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t failing = none, announcing = none;
  Time strikes_at{};
  for (const std::uint32_t u : near_) {
    const Pace p = pace_of(u);
    if (p == Pace::down || u > std::min(failing, announcing)) continue;
    const Wide rest = left(u);
    const bool announces = warning() > Duration::zero() && !units_[u].is_announced;
    if (announces) {
      const Time due = due_at(rest, pace(p));
      if (due == Time::max() || due - warning() > now()) continue;
      announcing = u;
      strikes_at = due;
    } else if (rest <= 0) {
      failing = u;
    }
  }
  if (announcing < failing) {
    units_[announcing].is_announced = true;
    announce(announcing, units_[announcing].life, strikes_at);
  } else if (failing != none) {
    Unit& unit = units_[failing];
    const std::uint32_t life = unit.life;
    std::erase(near_, failing);
    unit.is_near = false;
    unit.has_failed = true;
    if (!class_.spec.replace) renew(failing);
    strike(failing, life);
  }
  arm();
}

}  // namespace trainyard::models
