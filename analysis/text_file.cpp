#include "analysis/text_file.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace trainyard::analysis {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int reason) {
  throw TextFileError(what + " '" + path + "': " + std::strerror(reason));
}

void write_to(const std::string& path, std::string_view content) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  if (!out) fail("cannot write", path, errno);
  out.write(content.data(), std::streamsize(content.size()));
  out.close();
  if (!out) fail("cannot write", path, errno);
}

}  // namespace

std::string read_text_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) fail("cannot read", path, EISDIR);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read", path, errno);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) fail("cannot read", path, errno);
  return text;
}

void write_text_file(const std::string& path, std::string_view content) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) {
    write_to(path, content);
    return;
  }
  static std::atomic<unsigned> writers = 0;
  const std::string partial =
      path + ".part-" + std::to_string(getpid()) + '-' + std::to_string(writers++);
  try {
    write_to(partial, content);
  } catch (const TextFileError&) {
    const int reason = errno;
    std::remove(partial.c_str());
    fail("cannot write", path, reason);
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(partial.c_str());
    fail("cannot write", path, reason);
  }
}

}  // namespace trainyard::analysis
