#include "sim/units.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace trainyard {
namespace {

struct Scaled {
  std::string number;
  std::string prefix;
};

/// Three significant digits and an SI prefix: 85'899'345'920 is 85.9 and G. Rounding comes first,
/// so that 999.9 k is 1 M and not 1000 k.
Scaled scale(double value) {
  if (!std::isfinite(value)) return {std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf", ""};
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  const double rounded = std::strtod(text, nullptr);

  constexpr const char* prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
  double left = rounded;
  std::size_t i = 0;
  // Dividing by powers of ten one at a time would leave 999.9999…; one division is exact enough.
  while (std::abs(left) >= 1000.0 * (1.0 - 1e-12) && i + 1 < std::size(prefixes)) {
    ++i;
    left = rounded / std::pow(10.0, 3.0 * double(i));
  }
  std::snprintf(text, sizeof text, "%.3g", left);
  if (std::abs(left) >= 999.5) std::snprintf(text, sizeof text, "%.0f", left);
  return {text, prefixes[i]};
}

std::string with_unit(double value, const char* unit) {
  const Scaled s = scale(value);
  return s.number + ' ' + s.prefix + unit;
}

}  // namespace

std::string to_text(Bytes q) {
  return with_unit(q.value(), "B");
}
std::string to_text(BytesPerSecond q) {
  return with_unit(q.value(), "B/s");
}
std::string to_text(Flops q) {
  return with_unit(q.value(), "FLOP");
}
std::string to_text(FlopsPerSecond q) {
  return with_unit(q.value(), "FLOP/s");
}
std::string to_text(Watts q) {
  return with_unit(q.value(), "W");
}
std::string to_text(VoltAmperes q) {
  return with_unit(q.value(), "VA");
}
std::string to_text(Volts q) {
  return with_unit(q.value(), "V");
}
std::string to_text(Amperes q) {
  return with_unit(q.value(), "A");
}
std::string to_text(Joules q) {
  return with_unit(q.value(), "J");
}

std::string to_text(Dollars q) {
  const Scaled s = scale(std::abs(q.value()));
  return (q.value() < 0 ? "-$" : "$") + s.number + (s.prefix.empty() ? "" : " " + s.prefix);
}

std::string to_text(PerSecond q) {
  const Scaled s = scale(q.value());
  return s.number + (s.prefix.empty() ? " /s" : " " + s.prefix + "/s");
}

}  // namespace trainyard
