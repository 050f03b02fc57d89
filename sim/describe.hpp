#pragma once

#include <array>
#include <limits>
#include <string_view>
#include <utility>

/// The vocabulary with which a plain struct describes itself, once, for reading, validation,
/// defaults, writing, the generated schema and the reference page. It knows no file format.
///
///     struct DriveSpec { Bytes capacity; BytesPerSecond read_rate; int queue_depth = 64; };
///
///     template <class Visitor>
///     void describe(Visitor& v, DriveSpec& s) {
///       v.required("capacity", s.capacity, "usable bytes", above(0.0));
///       v.required("read_rate", s.read_rate, "sequential read");
///       v.optional("queue_depth", s.queue_depth, "requests in flight", at_least(1));
///     }
///
/// A member may be: bool, int, std::int64_t, std::uint64_t, double (a pure number), std::string, a
/// Quantity of sim/units.hpp, Duration, an enumeration with Names<E>, std::optional<T>,
/// std::vector<T>, std::map<std::string, T>, or another described struct. `v.part(key, member,
/// kind, doc)` is a described struct that may also be named from the catalog: "h100-sxm", or
/// {"part": "h100-sxm", …fields that differ…}. It must be given if it has required members;
/// `v.optional_part(…)` is one that only some scenarios need.
/// `v.check(condition, key, message)` states what must hold between members; `message` says what
/// would be right. It is evaluated after all members were read without error.
namespace trainyard {

/// Allowed range of a number, in the SI base unit of the member.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
};

constexpr Range at_least(double low) {
  return {low};
}
constexpr Range above(double low) {
  return {low, std::numeric_limits<double>::infinity(), true};
}
constexpr Range between(double low, double high) {
  return {low, high};
}

/// Names of an enumeration, specialised beside it:
///     template <> struct Names<Color> { static constexpr auto all = names<Color>({{Color::red,
///     "red"}}); };
template <class E>
struct Names;

template <class E, std::size_t N>
constexpr std::array<std::pair<E, std::string_view>, N> names(
    const std::pair<E, std::string_view> (&list)[N]) {
  std::array<std::pair<E, std::string_view>, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = list[i];
  return out;
}

template <class E>
constexpr std::string_view name_of(E value) {
  for (const auto& [v, text] : Names<E>::all)
    if (v == value) return text;
  return "?";
}

}  // namespace trainyard
