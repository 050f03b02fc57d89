#pragma once

#include <cstddef>
#include <vector>

#include "sim/units.hpp"

/// Who gives up how much power. Racks of one priority give up the same share of what they can give;
/// a higher priority gives nothing until all lower ones are at their floor:
///
///     reduced_i = load_i - f_c (load_i - floor_i)     sum reduced = limit,
///     f_c = 1 for classes below, 0 above, one fraction in the class where the limit falls
///
///     std::vector<Watts> caps = share_limit(racks, 80_kW);
///     std::vector<std::size_t> dark = racks_to_cut(racks, 80_kW);
///
/// Floors: what the software cap can reach, or idle when jobs are suspended. Pure functions, no
/// clock; the power plant decides when.
namespace trainyard::models {

struct RackDemand {
  Watts load{};
  Watts floor{};
  int priority = 0;  // higher is kept longer
};

/// A cap for each rack so that the sum is within the limit, or all floors if it cannot be.
std::vector<Watts> share_limit(const std::vector<RackDemand>& racks, Watts limit);

/// Racks to switch off, in order: lowest priority first, the last of the list first within one,
/// until the rest is within the limit.
std::vector<std::size_t> racks_to_cut(const std::vector<RackDemand>& racks, Watts limit);

}  // namespace trainyard::models
