#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/study_axes.hpp"
#include "scenarios/study_fields.hpp"

/// Conditions on points, as text: "scale <= 4096 or topology = fat-tree".
namespace trainyard::scenarios {

/// None: there is a mistake in it, which was told.
std::optional<Condition> parse_condition(const Fields& study, const Node& node,
                                         const AxisPlan& plan);

/// Of this name; axes.size(): there is none.
std::size_t index_of(const std::vector<Axis>& axes, const std::string& name);
/// "axes: topology, scale", for messages.
std::string known_axes(const std::vector<Axis>& axes);

}  // namespace trainyard::scenarios
