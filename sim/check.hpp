#pragma once

#include <concepts>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

/// Invariants, always on, in release too. A failed check is *our* mistake, never the user's: it
/// says what should have held, where, with the values at hand, and ends the run through `main`.
///
///     check(free_units <= capacity, "a semaphore never holds more than it was made with",
///     free_units);
///
/// While the condition holds a check costs one compare: nothing is printed. Hand it plain values,
/// not calls that build text.
namespace trainyard {

class CheckFailed : public std::logic_error {
 public:
  explicit CheckFailed(std::string message)
      : std::logic_error(message), message_(std::move(message)) {}

  const char* what() const noexcept override { return message_.c_str(); }

  /// The engine adds the simulated time and the process on the way out.
  void add_context(std::string_view context) { message_.append("\n  ").append(context); }

 private:
  std::string message_;
};

/// The sentence that should hold, and where it was written.
struct Expectation {
  template <class Text>
  requires std::convertible_to<const Text&, std::string_view>
  constexpr Expectation(const Text& sentence,
                        std::source_location location = std::source_location::current())
      : text(sentence), where(location) {}

  std::string_view text;
  std::source_location where;
};

namespace detail {

[[noreturn]] void fail(const Expectation& expected, std::string_view values);

template <class... Values>
[[noreturn]] [[gnu::noinline, gnu::cold]] void fail_with(const Expectation& expected,
                                                         const Values&... values) {
  std::ostringstream text;
  text.precision(17);
  ((text << ' ' << values), ...);
  fail(expected, text.view());
}

}  // namespace detail

template <class... Values>
constexpr void check(bool condition, const Expectation& expected, const Values&... values) {
  if (!condition) [[unlikely]]
    detail::fail_with(expected, values...);
}

namespace sim {
using trainyard::check;
using trainyard::CheckFailed;
}  // namespace sim

}  // namespace trainyard
