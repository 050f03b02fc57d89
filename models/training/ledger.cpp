#include "models/training/ledger.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

void Ledger::add(Account account, std::int64_t gpus, Duration d) {
  check(gpus >= 0 && d >= Duration::zero(), "time is only added to an account", gpus, d.count());
  amount_[static_cast<std::size_t>(account)] += GpuNanoseconds(gpus) * d.count();
}

void Ledger::add(const Ledger& other) {
  for (std::size_t a = 0; a < accounts; ++a) amount_[a] += other.amount_[a];
}

void Ledger::add_as(Account account, const Ledger& other) {
  amount_[static_cast<std::size_t>(account)] += other.total();
}

// Part i ends at the share c_i / step of the whole, c_i the sum of the first i + 1 parts, rounded
// down. What is added is the difference of neighbours, so nothing is lost between them and the last
// one ends at the whole.
void Ledger::add_steps(const StepProfile& profile, std::int64_t gpus, Duration d) {
  check(gpus >= 0 && d >= Duration::zero(), "time is only added to an account", gpus, d.count());
  check(profile.step > Duration::zero(), "a step takes time", profile.step.count());
  const GpuNanoseconds whole = GpuNanoseconds(gpus) * d.count();
  GpuNanoseconds done = 0;
  Duration parts{};
  for (std::size_t i = 0; i < step_parts; ++i) {
    parts += profile.parts[i];
    // whole * parts may pass 128 bits (10^5 GPUs for 100 years, steps of an hour: 2^78 * 2^42):
    // split at the step.
    const GpuNanoseconds step = profile.step.count();
    const GpuNanoseconds end = whole / step * parts.count() + whole % step * parts.count() / step;
    amount_[i] += end - done;
    done = end;
  }
  check(parts == profile.step, "the parts of a step sum to the step", parts.count(),
        profile.step.count());
}

GpuNanoseconds Ledger::total() const {
  GpuNanoseconds sum = 0;
  for (const GpuNanoseconds amount : amount_) sum += amount;
  return sum;
}

double Ledger::gpu_s(Account account) const {
  return static_cast<double>((*this)[account]) * 1e-9;
}

}  // namespace trainyard::models
