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

Progress::Progress(std::int64_t gpus) : gpus_(gpus) {
  check(gpus > 0, "a job has GPUs", gpus);
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

void Progress::set_gpus(std::int64_t gpus) {
  check(gpus > 0, "a job has GPUs", gpus);
  gpus_ = gpus;
}

void Progress::advance(Duration d) {
  if (d == Duration::zero()) return;
  check(profile_ != nullptr && d > Duration::zero(), "training has a profile and goes forward",
        d.count());
  Work& now = boxes_.back().work;
  now.ledger.add_steps(*profile_, gpus_, d);
  now.time += d;
  trained_ += d;
  if (d < left_) {
    left_ -= d;
    done_of_step_ += d;
    return;
  }
  const Duration step = profile_->step;
  const Duration after_first = d - left_;
  const std::int64_t done = 1 + after_first / step;
  last_step_ = done > 1 ? step : done_of_step_ + left_;
  done_of_step_ = after_first % step;
  left_ = step - done_of_step_;
  steps_ += done;
  trained_steps_ += done;
  now.steps += done;
  now.tokens += double(done) * profile_->tokens;
  now.model_flops += double(done) * profile_->model_flops;
  now.hardware_flops += double(done) * profile_->hardware_flops;
}

Duration Progress::time_to(std::int64_t n) const {
  check(profile_ != nullptr && n >= 0, "training has a profile", n);
  if (n == 0) return Duration::zero();
  const __int128 t = __int128(n - 1) * profile_->step.count() + left_.count();
  return t >= std::numeric_limits<std::int64_t>::max() ? forever
                                                       : Duration(static_cast<std::int64_t>(t));
}

std::int64_t Progress::steps_to(Duration missing) const {
  if (is_between_steps() && missing <= Duration::zero()) return 0;
  check(profile_ != nullptr, "training has a profile");
  if (missing <= left_) return 1;
  const std::int64_t step = profile_->step.count();
  const std::int64_t after_first = (missing - left_).count();
  return 1 + after_first / step + (after_first % step > 0 ? 1 : 0);
}

SnapshotId Progress::snapshot() {
  check(is_between_steps(), "a snapshot is taken between two steps", done_of_step_.count());
  const SnapshotId id(snapshots_++);
  boxes_.push_back({id, {}});
  return id;
}

std::size_t Progress::box_since(SnapshotId snapshot) const {
  const auto box =
      std::lower_bound(boxes_.begin() + 1, boxes_.end(), snapshot,
                       [](const Box& b, SnapshotId wanted) { return b.since < wanted; });
  check(box != boxes_.end() && box->since == snapshot,
        "a snapshot that is neither void nor forgotten", snapshot.index());
  return static_cast<std::size_t>(box - boxes_.begin());
}

std::int64_t Progress::steps_at(SnapshotId snapshot) const {
  const std::size_t end = box_since(snapshot);
  std::int64_t steps = 0;
  for (std::size_t i = 0; i < end; ++i) steps += boxes_[i].work.steps;
  return steps;
}

Work Progress::restore(std::optional<SnapshotId> to) {
  const std::size_t first = to ? box_since(*to) : 0;
  Work lost;
  for (std::size_t i = first; i < boxes_.size(); ++i) lost.add(boxes_[i].work);
  boxes_.resize(first + 1);
  boxes_.back().work = Work{};
  steps_ -= lost.steps;
  done_of_step_ = Duration::zero();
  if (profile_ != nullptr) left_ = profile_->step;
  return lost;
}

void Progress::forget_before(SnapshotId oldest) {
  const std::size_t end = box_since(oldest);
  for (std::size_t i = 1; i < end; ++i) boxes_.front().work.add(boxes_[i].work);
  boxes_.erase(boxes_.begin() + 1, boxes_.begin() + static_cast<std::ptrdiff_t>(end));
}

void Progress::end() {
  kept_ = total();
  boxes_.assign(1, Box{});
}

Duration Progress::time() const {
  Duration all = kept_.time;
  for (const Box& box : boxes_) all += box.work.time;
  return all;
}

Work Progress::total() const {
  Work all = kept_;
  for (const Box& box : boxes_) all.add(box.work);
  return all;
}

}  // namespace trainyard::models
