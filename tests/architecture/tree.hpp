#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace trainyard::architecture {

inline std::filesystem::path root() {
  return TRAINYARD_SOURCE_DIR;
}

/// Paths from the root of all files with one of the endings, sorted; builds and hidden folders are
/// left out.
inline std::vector<std::string> files_of_the_tree(const std::vector<std::string>& endings) {
  std::vector<std::string> out;
  for (auto entry = std::filesystem::recursive_directory_iterator(root());
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() &&
        (name[0] == '.' || (entry.depth() == 0 && name.starts_with("build")))) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() &&
               std::find(endings.begin(), endings.end(), entry->path().extension().string()) !=
                   endings.end()) {
      out.push_back(std::filesystem::relative(entry->path(), root()).generic_string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline std::string content_of(const std::string& file) {
  std::ifstream in(root() / file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace trainyard::architecture
