#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/describe.hpp"

namespace trainyard::models {

/// The keys of describe() whose rule is broken.
struct Mistakes {
  std::vector<std::string> keys = {};
  template <class T>
  void required(std::string_view, T&, std::string_view, Range = {}) {}
  template <class T>
  void optional(std::string_view, T&, std::string_view, Range = {}) {}
  void check(bool holds, std::string_view key, std::string_view) {
    if (!holds) keys.emplace_back(key);
  }
};

template <class Spec>
std::vector<std::string> mistakes_of(Spec spec) {
  Mistakes m;
  describe(m, spec);
  return m.keys;
}

}  // namespace trainyard::models
