#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

/// Figures of a result by name: "jobs.llama.goodput".
namespace trainyard::scenarios {

/// The member that `path` names; an array's elements by number. A job's name may contain dots, so
/// every key that the path can begin with is tried. Null: there is none, and `known` holds the keys
/// at the place where nothing fits.
const nlohmann::json* find_figure(const nlohmann::json& at, const std::string& path,
                                  std::vector<std::string>& known);

}  // namespace trainyard::scenarios
