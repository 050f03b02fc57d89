#include "models/facility/thermal_modes.hpp"

#include <algorithm>

namespace trainyard::models {

std::size_t ThermalModes::bytes() const {
  std::size_t sum = 0;
  for (const auto& [signature, kept] : kept_)
    sum += kept.mode->bytes() + signature.size() * sizeof(double);
  return sum;
}

std::shared_ptr<ThermalMode> ThermalModes::mode(const Signature& signature,
                                                const std::function<ThermalMatrix()>& matrix) {
  const std::int64_t request = made_ + reused_;
  if (const auto found = kept_.find(signature); found != kept_.end()) {
    ++reused_;
    found->second.used = request;
    return found->second.mode;
  }
  ++made_;
  const auto added = kept_.emplace(signature, Kept{make_mode(matrix()), request}).first;
  while (kept_.size() > 1 && bytes() > limit_)
    kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.used < b.second.used;
    }));
  return added->second.mode;
}

}  // namespace trainyard::models
