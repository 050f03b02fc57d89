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
/// exceed `bytes_kept` or are more than `modes_kept`; the one just asked for always stays.
///
///     auto modes = std::make_shared<ThermalModes>();
///     ThermalNetwork hall_1(modes), hall_2(modes);     // built alike: decomposed once
namespace trainyard::models {

class ThermalModes {
 public:
  using Signature = std::vector<double>;

  explicit ThermalModes(std::size_t bytes_kept = std::size_t{256} << 20,
                        std::size_t modes_kept = 4096)
      : limit_(bytes_kept), most_(modes_kept) {}

  std::shared_ptr<ThermalMode> mode(const Signature& signature,
                                    const std::function<ThermalMatrix()>& matrix);

  std::int64_t decompositions() const { return made_; }
  std::int64_t reuses() const { return reused_; }
  std::size_t size() const { return kept_.size(); }
  /// As of the last request of each: a directed mode grows with use.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Kept {
    std::shared_ptr<ThermalMode> mode;
    std::int64_t used = 0;  // the request that used it last
    std::size_t bytes = 0;
  };
  using Place = std::map<Signature, Kept>::iterator;

  void use(Place place);

  std::map<Signature, Kept> kept_;
  std::map<std::int64_t, Place> by_use_;
  std::size_t bytes_ = 0;
  std::size_t limit_, most_;
  std::int64_t made_ = 0, reused_ = 0;
};

}  // namespace trainyard::models
