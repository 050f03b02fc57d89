#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Which kind of member a visitor of describe() has in hand. Used by read, write and schema;
/// nothing else.
namespace trainyard::scenarios::visit {

struct AnyVisitor {};

template <class T>
concept Described = requires(AnyVisitor& v, T& t) {
  describe(v, t);
};

template <class T>
inline constexpr bool is_quantity = false;
template <class D>
inline constexpr bool is_quantity<Quantity<D>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;
template <class T>
inline constexpr bool is_map = false;
template <class T>
inline constexpr bool is_map<std::map<std::string, T>> = true;

template <class T>
concept Whole = std::integral<T> && !std::same_as<T, bool>;

/// describe() evaluates the conditions of its checks even when a member has no usable value yet (a
/// required one before it is read). A whole number that must be positive is lifted to its least
/// value, so that no condition divides by zero.
template <class T>
void keep_checks_safe(T& member, Range range) {
  if constexpr (Whole<T>) {
    if (static_cast<double>(member) < range.low && range.low < 1e6)
      member = static_cast<T>(range.low);
    if (range.low_open && static_cast<double>(member) <= range.low && range.low < 1e6)
      member = static_cast<T>(range.low + 1);
  }
}

/// Does a struct have members that must be given? Such a part cannot be left out.
class RequiredFinder {
 public:
  bool found = false;
  template <class T>
  void required(std::string_view, T& member, std::string_view, Range range = {}) {
    found = true;
    keep_checks_safe(member, range);
  }
  template <class T>
  void optional(std::string_view, T& member, std::string_view, Range range = {}) {
    keep_checks_safe(member, range);
  }
  template <class T>
  void part(std::string_view, T& member, std::string_view, std::string_view) {
    RequiredFinder inner;
    describe(inner, member);
    found = found || inner.found;
  }
  template <class T>
  void optional_part(std::string_view, T&, std::string_view, std::string_view) {}
  void check(bool, std::string_view, std::string_view) {}
};

template <Described T>
bool has_required() {
  T value{};
  RequiredFinder finder;
  describe(finder, value);
  return finder.found;
}

}  // namespace trainyard::scenarios::visit
