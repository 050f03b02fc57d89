#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sim/units.hpp"

/// Simulated time: int64 nanoseconds since the start of the run, on a clock of its own, so that it
/// cannot be mixed with wall time. Why not double: docs/decisions/0001-time.md.
namespace trainyard {

struct Clock {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
};

using Duration = Clock::duration;
using Time = Clock::time_point;

inline constexpr Time start_of_run{};
inline constexpr Duration forever = Duration::max();

/// Exact for plotting and for ratios; never for deciding what happens first.
constexpr double to_seconds(Duration d) {
  return double(d.count()) * 1e-9;
}
constexpr double to_seconds(Time t) {
  return to_seconds(t.time_since_epoch());
}

/// Seconds to nanoseconds, rounded *up* (nothing finishes early). Saturates at `forever`;
/// NaN and negative values are our own mistake and throw CheckFailed.
Duration seconds(double s);

/// t + d, saturating at the end of time (292 years) instead of overflowing.
Time add(Time t, Duration d);

/// The one place where a rate becomes a time. Rounded up; `forever` when the rate is zero and
/// something is left to move; zero when nothing is.
Duration transfer_time(Bytes size, BytesPerSecond rate);

/// "1.5 us", "820 ms", "6.72 s", "12 min 30 s", "3 d 2 h": three significant digits or two units.
std::string to_text(Duration);

}  // namespace trainyard
