#pragma once

#include <fstream>
#include <string>
#include <string_view>

namespace trainyard::cli {

/// Throw Failure with the system's reason.
std::ifstream open_to_read(const std::string& path);

/// Writes to a file beside `path` and renames it into place, so that a half-written result is never
/// found under the name. A path that is no regular file (/dev/stdout, a pipe) is written directly.
void write_file(const std::string& path, std::string_view content);

}  // namespace trainyard::cli
