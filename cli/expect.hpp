#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

/// Bounds on results, for automation: `--expect 'jobs.llama.goodput>=0.9'`. The left side is a path
/// into the object that --json prints, so every figure there can be bound.
namespace trainyard::cli {

struct Bound {
  std::string text;      // as written
  std::string path;      // "jobs.llama.goodput"; an array's elements by number
  std::string relation;  // >= <= == != > <
  std::string value;     // a number, or a text for == and !=
};

/// Throws UsageError.
std::vector<Bound> parse_bounds(const std::vector<std::string>& texts);

/// Every path exists in the object and holds something that can be compared. Throws UsageError with
/// the keys that there are. Commands ask this before a long run, of an object with the same keys.
void require_paths(const std::vector<Bound>& bounds, const std::string& json);

/// One sentence for each bound that is missed. What is null (not defined) meets no bound.
std::vector<std::string> missed(const std::vector<Bound>& bounds, const std::string& json);

}  // namespace trainyard::cli
