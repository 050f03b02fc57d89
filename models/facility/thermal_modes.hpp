#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "models/facility/thermal_mode.hpp"

/// Decompositions that were made, by the numbers they were made of.
///
/// A plant has few modes and visits them again and again: cooling on, one fan wall out, chillers
/// out and fans on. The signature is the list of capacities, conductances and rates itself, so two
/// modes are one exactly if their matrices are. The least recently used go when all together
/// exceed `bytes_kept`; the one just asked for always stays.
///
///     auto modes = std::make_shared<ThermalModes>();
///     ThermalNetwork hall_1(modes), hall_2(modes);     // built alike: decomposed once
namespace trainyard::models {

class ThermalModes {
 public:
  using Signature = std::vector<double>;

  explicit ThermalModes(std::size_t bytes_kept = std::size_t{256} << 20) : limit_(bytes_kept) {}

  std::shared_ptr<ThermalMode> mode(const Signature& signature,
                                    const std::function<ThermalMatrix()>& matrix);

  std::int64_t decompositions() const { return made_; }
  std::int64_t reuses() const { return reused_; }
  std::size_t size() const { return kept_.size(); }
  std::size_t bytes() const;

 private:
  struct Kept {
    std::shared_ptr<ThermalMode> mode;
    std::int64_t used = 0;  // the request that used it last
  };

  std::map<Signature, Kept> kept_;
  std::size_t limit_;
  std::int64_t made_ = 0, reused_ = 0;
};

}  // namespace trainyard::models
