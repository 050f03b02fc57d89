#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Who may include whom (docs/ARCHITECTURE.md), as a function of two texts.
namespace trainyard::architecture {

struct Include {
  std::string target;  // what stands between the quotes or brackets
  int line = 0;
};

/// The #include lines of a source text.
std::vector<Include> includes_of(std::string_view text);

/// The sentences that `file` ("models/network/max_min.cpp") breaks by including `target`; normally
/// none.
std::vector<std::string> broken_rules(std::string_view file, std::string_view target);

}  // namespace trainyard::architecture
