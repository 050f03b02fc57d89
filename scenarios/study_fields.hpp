#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/json_tree.hpp"

namespace trainyard::scenarios {

/// The members of one object of a study, whose values are of any form, so that no struct can
/// describe them. Keys that are not `known` are mistakes, with the nearest one named; so is what is
/// not of the kind that is asked for.
class Fields {
 public:
  Fields(const Node& object, std::string path, const std::vector<std::string>& known,
         std::vector<Diagnostic>& diagnostics);

  /// Null: not given, or null.
  const Node* find(const std::string& key) const;
  bool has(const std::string& key) const { return find(key) != nullptr; }
  std::optional<std::string> text(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  std::optional<double> number(const std::string& key, double above, double below) const;
  std::optional<std::int64_t> whole(const std::string& key, std::int64_t least,
                                    std::int64_t most) const;

  /// A mistake in the value of this key, or in the object if it has none.
  void wrong(const std::string& key, std::string what, std::string right = {}) const;
  void wrong(const Node& node, const std::string& path, std::string what,
             std::string right = {}) const;
  const std::string& path() const { return path_; }
  std::string path_of(const std::string& key) const {
    return path_.empty() ? key : path_ + '.' + key;
  }

 private:
  const Node& object_;
  std::string path_;
  std::vector<Diagnostic>& diagnostics_;
};

/// A name that tables and files can bear: letters, digits, '_', '-', at most 60.
bool is_plain_name(const std::string& name);

}  // namespace trainyard::scenarios
