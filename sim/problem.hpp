#pragma once

#include <string>
#include <vector>

namespace trainyard {

/// A mistake in the user's input, found by a part that knows no files: `path` is relative to what
/// the part was given ("parallel.tensor"), `what` says what is wrong with the value found, `right`
/// what would be right. The reader of scenario files turns it into file:line:column.
struct Problem {
  std::string path;
  std::string what;
  std::string right;
};

using Problems = std::vector<Problem>;

}  // namespace trainyard
