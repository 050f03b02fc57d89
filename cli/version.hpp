#pragma once

#include <string>

namespace trainyard::cli {

/// "0.1.0".
const char* version();
/// `git describe` of the sources, "unknown" outside a clone.
const char* commit();

/// Version, commit and the libraries, as --version prints them.
std::string version_text();

}  // namespace trainyard::cli
