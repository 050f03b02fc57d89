#include "sim/check.hpp"

namespace trainyard::detail {

void fail(const Expectation& expected, std::string_view values) {
  std::ostringstream text;
  // The path up to the repository is the builder's business, not the reader's.
  std::string_view file = expected.where.file_name();
  for (std::string_view folder :
       {"tests/", "sim/", "topologies/", "models/", "analysis/", "scenarios/", "cli/"})
    if (auto at = file.rfind(folder);
        at != std::string_view::npos && (at == 0 || file[at - 1] == '/')) {
      file.remove_prefix(at);
      break;
    }
  text << file << ':' << expected.where.line() << ": does not hold: " << expected.text;
  if (!values.empty()) text << " [values:" << values << ']';
  throw CheckFailed(text.str());
}

}  // namespace trainyard::detail
