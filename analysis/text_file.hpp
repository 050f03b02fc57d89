#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace trainyard::analysis {

/// A file that cannot be read or written: which, and the system's reason.
struct TextFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The whole file. Throws TextFileError.
std::string read_text_file(const std::string& path);

/// Writes to a file beside `path` and renames it into place, so that a half-written result is never
/// found under the name, whoever else writes it at the same time. A path that is no regular file
/// (/dev/stdout, a pipe) is written directly. Throws TextFileError.
void write_text_file(const std::string& path, std::string_view content);

}  // namespace trainyard::analysis
