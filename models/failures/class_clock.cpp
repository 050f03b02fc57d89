#include "models/failures/class_clock.hpp"

#include <cmath>

namespace trainyard::models {

FailureClocks::Clock::Clock(FailureClocks& all, const FailureClass& cls)
    : all_(all),
      class_(cls),
      per_server_(static_cast<std::uint32_t>(all.counts_.per_server(cls.spec.component))),
      luck_(all.engine_.random("failures/" + cls.name)),
      failed_(all.recorder_.kind(cls.name + " failed", "")) {
  if (warning() > Duration::zero()) announced_ = all.recorder_.kind(cls.name + " announced", "s");
  const LifetimeSpec& life = cls.spec.lifetime;
  mean_s_ = life.mean_s();
  scale_s_ = mean_s_ / std::tgamma(1.0 + 1.0 / life.shape);
}

Duration FailureClocks::Clock::life_of(std::uint32_t unit, std::uint32_t life) const {
  sim::Stream luck = luck_.child(unit).child(life);
  const LifetimeSpec& spec = class_.spec.lifetime;
  const double age_s = to_seconds(spec.age);
  double life_s = 0;
  if (spec.law != Law::weibull) {
    life_s = luck.exponential(mean_s_);
  } else if (life > 0 || age_s == 0) {
    life_s = luck.weibull(spec.shape, scale_s_);
  } else {
    // What is left at age a: eta ((a/eta)^k - ln U)^(1/k) - a, without the difference of two large
    // numbers.
    const double surplus = luck.exponential(1.0) * std::pow(scale_s_ / age_s, spec.shape);
    life_s = age_s * std::expm1(std::log1p(surplus) / spec.shape);
  }
  if (has_server() && !all_.lemon_.empty())
    life_s /= all_.relative_rate(topologies::HostId(unit / per_server_));
  return seconds(life_s);
}

Failure FailureClocks::Clock::failure_of(std::uint32_t unit, std::uint32_t life) const {
  sim::Stream luck = luck_.child(unit).child(life);
  luck.bits();  // the life itself
  return all_.failure_of(class_, unit, luck);
}

void FailureClocks::Clock::strike(std::uint32_t unit, std::uint32_t life) {
  sim::EventIndex announced;
  if (const auto found = announcements_.find(unit); found != announcements_.end()) {
    announced = found->second;
    announcements_.erase(found);
  }
  all_.report(failure_of(unit, life), failed_, announced);
}

void FailureClocks::Clock::announce(std::uint32_t unit, std::uint32_t life, Time strikes_at) {
  // Known before anybody hears of it, so that a failure that follows at once has its cause.
  announcements_[unit] = sim::EventIndex();
  announcements_[unit] = all_.announce(failure_of(unit, life), announced_, strikes_at);
}

}  // namespace trainyard::models
