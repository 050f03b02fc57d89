#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/time.hpp"
#include "sim/units.hpp"

/// Quantities as text in scenario files: "400 Gb/s", "80 GiB", "1.5 ms". A number and one unit;
/// bits (b) and bytes (B), decimal (k, M, G: powers of 1000) and binary prefixes (Ki, Mi, Gi:
/// powers of 1024) are different things. One spelling a unit: "Gbps" is refused with the right one
/// named. Reading is exactly rounded, and what `to_exact_text` prints reads back as the very same
/// value.
namespace trainyard::scenarios {

enum class Dimension {
  bytes,
  rate,
  flops,
  flop_rate,
  power,
  apparent,
  voltage,
  current,
  energy,
  money,
  frequency,
  time
};

/// The dimension of each Quantity type.
template <class Q>
inline constexpr Dimension dimension_of = Dimension::bytes;
template <>
inline constexpr Dimension dimension_of<BytesPerSecond> = Dimension::rate;
template <>
inline constexpr Dimension dimension_of<Flops> = Dimension::flops;
template <>
inline constexpr Dimension dimension_of<FlopsPerSecond> = Dimension::flop_rate;
template <>
inline constexpr Dimension dimension_of<Watts> = Dimension::power;
template <>
inline constexpr Dimension dimension_of<VoltAmperes> = Dimension::apparent;
template <>
inline constexpr Dimension dimension_of<Volts> = Dimension::voltage;
template <>
inline constexpr Dimension dimension_of<Amperes> = Dimension::current;
template <>
inline constexpr Dimension dimension_of<Joules> = Dimension::energy;
template <>
inline constexpr Dimension dimension_of<Dollars> = Dimension::money;
template <>
inline constexpr Dimension dimension_of<PerSecond> = Dimension::frequency;

/// "a rate such as "7 GB/s"", for messages.
std::string expected(Dimension dimension);

/// What went wrong in reading a text; `right` says what would be right and may be empty.
struct UnitError {
  std::string what;
  std::string right;
};

/// The value in SI base units (bytes, bytes/s, FLOP, FLOP/s, W, VA, V, A, J, USD, 1/s); none and
/// `error` filled in otherwise.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension, UnitError& error);

/// Times are whole nanoseconds: a fraction of one is rounded up, a positive time below one
/// nanosecond is refused, and so is what exceeds 292 years. Several units may follow each other,
/// largest first: "3 d 2 h".
std::optional<Duration> parse_duration(std::string_view text, UnitError& error);

/// The shortest text that reads back as exactly this value. Infinite and undefined values are our
/// own mistake.
std::string to_exact_text(double value, Dimension dimension);
std::string to_exact_text(Duration duration);

template <class D>
std::string to_exact_text(Quantity<D> q) {
  return to_exact_text(q.value(), dimension_of<Quantity<D>>);
}

}  // namespace trainyard::scenarios
