#include "sim/time.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "sim/check.hpp"

namespace trainyard {
namespace {

constexpr double end_of_int64 = 9223372036854775808.0;  // 2^63

/// Up to a whole nanosecond. A surplus of a few units in the last place is the noise of computing
/// the double (0.7 s × 1e9 need not be a whole number), not time that passes.
Duration round_up_ns(double nanoseconds) {
  if (nanoseconds >= end_of_int64) return forever;
  const double whole = std::floor(nanoseconds);
  const double noise = 4.0 * std::numeric_limits<double>::epsilon() * nanoseconds;
  const double up = nanoseconds - whole <= noise ? whole : whole + 1.0;
  return up >= end_of_int64 ? forever : Duration(static_cast<std::int64_t>(up));
}

}  // namespace

Duration seconds(double s) {
  check(s >= 0.0, "a number of seconds is neither negative nor NaN", s);
  return round_up_ns(s * 1e9);
}

Time add(Time t, Duration d) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(t.time_since_epoch().count(), d.count(), &sum))
    return d.count() > 0 ? Time::max() : Time::min();
  return Time(Duration(sum));
}

Duration transfer_time(Bytes size, BytesPerSecond rate) {
  check(size.value() >= 0.0 && rate.value() >= 0.0,
        "a size and a rate are neither negative nor NaN", size.value(), rate.value());
  if (size.value() == 0.0) return Duration::zero();
  if (rate.value() == 0.0) return forever;
  if (std::isinf(rate.value())) {
    check(!std::isinf(size.value()), "an infinite size at an infinite rate has no time");
    return Duration::zero();
  }
  const Duration d = round_up_ns(size.value() / rate.value() * 1e9);
  // Something to move takes time, even if the quotient underflows.
  return d == Duration::zero() ? Duration(1) : d;
}

std::string to_text(Duration d) {
  if (d == forever) return "forever";
  if (d == Duration::zero()) return "0 s";
  if (d < Duration::zero()) return "-" + to_text(d == Duration::min() ? forever - Duration(1) : -d);

  std::int64_t ns = d.count();
  constexpr std::int64_t second = 1'000'000'000, minute = 60 * second, hour = 60 * minute;
  if (ns < minute) {  // three significant digits, rounded in whole numbers
    std::int64_t digit = 1;
    while (ns / digit >= 1000) digit *= 10;
    ns = (ns + digit / 2) / digit * digit;
  }
  if (ns < minute) {
    struct Unit {
      std::int64_t size;
      const char* name;
    };
    constexpr std::array units{Unit{second, " s"}, Unit{1'000'000, " ms"}, Unit{1'000, " us"},
                               Unit{1, " ns"}};
    std::size_t i = 0;
    while (ns < units[i].size) ++i;
    std::string text = std::to_string(ns / units[i].size);
    if (std::int64_t part = ns % units[i].size; part != 0) {
      std::string fraction = std::to_string(units[i].size + part).substr(1);
      fraction.erase(fraction.find_last_not_of('0') + 1);
      text += '.' + fraction;
    }
    return text + units[i].name;
  }

  // Two units: the smaller one rounded to the nearest, with the carry into the larger.
  auto two_units = [](std::int64_t count, std::int64_t large, const char* large_name,
                      const char* small_name) {
    std::string text = std::to_string(count / large) + large_name;
    if (count % large != 0) text += ' ' + std::to_string(count % large) + small_name;
    return text;
  };
  auto rounded = [ns](std::int64_t unit) { return ns / unit + (ns % unit >= unit / 2 ? 1 : 0); };
  if (rounded(second) < 3600) return two_units(rounded(second), 60, " min", " s");
  if (rounded(minute) < 24 * 60) return two_units(rounded(minute), 60, " h", " min");
  return two_units(rounded(hour), 24, " d", " h");
}

}  // namespace trainyard
