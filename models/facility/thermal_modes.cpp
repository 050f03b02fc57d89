#include "models/facility/thermal_modes.hpp"

namespace trainyard::models {

void ThermalModes::use(Place place) {
  Kept& kept = place->second;
  by_use_.erase(kept.used);
  kept.used = made_ + reused_;
  by_use_[kept.used] = place;
  bytes_ -= kept.bytes;
  kept.bytes = kept.mode->bytes() + place->first.size() * sizeof(double);
  bytes_ += kept.bytes;
}

std::shared_ptr<ThermalMode> ThermalModes::mode(const Signature& signature,
                                                const std::function<ThermalMatrix()>& matrix) {
  Place place = kept_.find(signature);
  if (place != kept_.end()) {
    ++reused_;
  } else {
    ++made_;
    place = kept_.emplace(signature, Kept{.mode = make_mode(matrix())}).first;
  }
  use(place);
  while (kept_.size() > 1 && (bytes_ > limit_ || kept_.size() > most_)) {
    const Place oldest = by_use_.begin()->second;
    bytes_ -= oldest->second.bytes;
    by_use_.erase(by_use_.begin());
    kept_.erase(oldest);
  }
  return place->second.mode;
}

}  // namespace trainyard::models
