#include "cli/files.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "analysis/text_file.hpp"
#include "cli/command.hpp"

namespace trainyard::cli {

std::ifstream open_to_read(const std::string& path) {
  const auto fail = [&](int reason) {
    throw Failure("cannot read '" + path + "': " + std::strerror(reason));
  };
  if (std::filesystem::is_directory(path)) fail(EISDIR);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(errno);
  return in;
}

void write_file(const std::string& path, std::string_view content) {
  try {
    analysis::write_text_file(path, content);
  } catch (const analysis::TextFileError& error) {
    throw Failure(error.what());
  }
}

}  // namespace trainyard::cli
