#include "models/training/progress.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

void Work::add(const Work& other) {
  ledger.add(other.ledger);
  time += other.time;
  steps += other.steps;
  tokens += other.tokens;
  model_flops += other.model_flops;
  hardware_flops += other.hardware_flops;
}

void Progress::set_profile(const StepProfile& profile) {
  check(profile.step > Duration::zero(), "a step takes time", profile.step.count());
  if (profile_ == nullptr || is_between_steps()) {
    left_ = profile.step;
  } else {
    const __int128 left = __int128(left_.count()) * profile.step.count();
    const __int128 old = profile_->step.count();
    left_ = Duration(static_cast<std::int64_t>((left + old - 1) / old));
  }
  profile_ = &profile;
}

void Progress::advance(Duration d) {
  if (d == Duration::zero()) return;
  check(profile_ != nullptr && d > Duration::zero(), "training has a profile and goes forward",
        d.count());
  pending_.ledger.add_steps(*profile_, gpus_, d);
  pending_.time += d;
  if (d < left_) {
    left_ -= d;
    done_of_step_ += d;
    return;
  }
  const Duration step = profile_->step;
  const Duration after_first = d - left_;
  const std::int64_t more = after_first / step;
  last_step_ = more > 0 ? step : done_of_step_ + left_;
  done_of_step_ = after_first % step;
  left_ = step - done_of_step_;
  pending_.steps += 1 + more;
  pending_.tokens += double(1 + more) * profile_->tokens;
  pending_.model_flops += double(1 + more) * profile_->model_flops;
  pending_.hardware_flops += double(1 + more) * profile_->hardware_flops;
}

Duration Progress::time_to(std::int64_t n) const {
  check(profile_ != nullptr && n >= 0, "training has a profile", n);
  if (n == 0) return Duration::zero();
  const __int128 t = __int128(n - 1) * profile_->step.count() + left_.count();
  return t >= std::numeric_limits<std::int64_t>::max() ? forever
                                                       : Duration(static_cast<std::int64_t>(t));
}

std::int64_t Progress::steps_to(Duration interval) const {
  const Duration missing = interval - pending_.time;
  if (is_between_steps() && missing <= Duration::zero() && pending_.steps > 0) return 0;
  if (missing <= left_) return 1;
  const std::int64_t step = profile_->step.count();
  return 1 + ((missing - left_).count() + step - 1) / step;
}

void Progress::snapshot() {
  check(is_between_steps(), "a snapshot is taken between two steps", done_of_step_.count());
  check(saving_.time == Duration::zero(), "one snapshot is saved at a time");
  std::swap(saving_, pending_);
}

void Progress::keep() {
  kept_.add(saving_);
  saving_ = Work{};
}

Work Progress::interrupt() {
  Work lost = std::exchange(saving_, Work{});
  lost.add(pending_);
  pending_ = Work{};
  done_of_step_ = Duration::zero();
  if (profile_ != nullptr) left_ = profile_->step;
  return lost;
}

void Progress::end() {
  keep();
  kept_.add(std::exchange(pending_, Work{}));
}

}  // namespace trainyard::models
