#include "scenarios/json_path.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

namespace trainyard::scenarios {

using Json = nlohmann::json;

const Json* find_figure(const Json& at, const std::string& path, std::vector<std::string>& known) {
  if (path.empty()) return &at;
  if (at.is_array()) {
    std::size_t index = 0;
    const auto [stop, error] = std::from_chars(path.data(), path.data() + path.size(), index);
    const std::size_t used = std::size_t(stop - path.data());
    if (error == std::errc{} && index < at.size() && (used == path.size() || path[used] == '.'))
      return find_figure(at[index], used == path.size() ? "" : path.substr(used + 1), known);
    known = {"0 to " + std::to_string(at.size()) + " (not included)"};
    return nullptr;
  }
  if (!at.is_object()) return nullptr;
  bool entered = false;
  for (const auto& [key, member] : at.items()) {
    if (path == key) return &member;
    if (path.size() > key.size() && path.compare(0, key.size(), key) == 0 &&
        path[key.size()] == '.') {
      entered = true;
      if (const Json* found = find_figure(member, path.substr(key.size() + 1), known)) return found;
    }
  }
  if (!entered) {
    known.clear();
    for (const auto& [key, member] : at.items()) known.push_back(key);
  }
  return nullptr;
}

}  // namespace trainyard::scenarios
