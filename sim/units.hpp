#pragma once

#include <compare>
#include <string>

/// Physical quantities. One type a dimension, double inside, SI base units (bytes, seconds, watts);
/// construction from a plain number is explicit, so a bit rate cannot become a byte rate by
/// accident. Everything inside the program is *bytes*: `400_Gbps` is 50e9 bytes/s.
///
///     Bytes size = 80_GiB;
///     BytesPerSecond rate = 400_Gbps;
///     Duration t = transfer_time(size, rate);        // sim/time.hpp
namespace trainyard {

template <class Dimension>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  /// The number in SI base units.
  constexpr double value() const { return value_; }

  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double f) {
    value_ *= f;
    return *this;
  }
  constexpr Quantity& operator/=(double f) {
    value_ /= f;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value_ + b.value_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value_ - b.value_);
  }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.value_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.value_ * f); }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.value_ / f); }
  /// A ratio of two like quantities is a plain number.
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  friend constexpr auto operator<=>(Quantity a, Quantity b) = default;

 private:
  double value_ = 0.0;
};

namespace dimension {
struct bytes;
struct bytes_per_second;
struct flops;
struct flops_per_second;
struct watts;
struct volt_amperes;
struct volts;
struct amperes;
struct joules;
struct dollars;
struct per_second;
}  // namespace dimension

using Bytes = Quantity<dimension::bytes>;
using BytesPerSecond = Quantity<dimension::bytes_per_second>;
using Flops = Quantity<dimension::flops>;
using FlopsPerSecond = Quantity<dimension::flops_per_second>;
using Watts = Quantity<dimension::watts>;
/// Apparent power, P and Q together: what cables, transformers and breakers are rated for.
using VoltAmperes = Quantity<dimension::volt_amperes>;
using Volts = Quantity<dimension::volts>;
using Amperes = Quantity<dimension::amperes>;
using Joules = Quantity<dimension::joules>;
using Dollars = Quantity<dimension::dollars>;
/// A rate of events: failures, I/O operations.
using PerSecond = Quantity<dimension::per_second>;

/// Text for people, three significant digits, with unit: "1.5 GB", "50 GB/s", "989 TFLOP/s", "700
/// W".
std::string to_text(Bytes);
std::string to_text(BytesPerSecond);
std::string to_text(Flops);
std::string to_text(FlopsPerSecond);
std::string to_text(Watts);
std::string to_text(VoltAmperes);
std::string to_text(Volts);
std::string to_text(Amperes);
std::string to_text(Joules);
std::string to_text(Dollars);
std::string to_text(PerSecond);

namespace literals {
#define TRAINYARD_LITERAL(suffix, type, factor)              \
  constexpr type operator""_##suffix(long double v) {        \
    return type(double(v) * (factor));                       \
  }                                                          \
  constexpr type operator""_##suffix(unsigned long long v) { \
    return type(double(v) * (factor));                       \
  }
TRAINYARD_LITERAL(B, Bytes, 1.0)
TRAINYARD_LITERAL(KB, Bytes, 1e3)
TRAINYARD_LITERAL(MB, Bytes, 1e6)
TRAINYARD_LITERAL(GB, Bytes, 1e9)
TRAINYARD_LITERAL(TB, Bytes, 1e12)
TRAINYARD_LITERAL(KiB, Bytes, 1024.0)
TRAINYARD_LITERAL(MiB, Bytes, 1048576.0)
TRAINYARD_LITERAL(GiB, Bytes, 1073741824.0)
TRAINYARD_LITERAL(Bps, BytesPerSecond, 1.0)
TRAINYARD_LITERAL(GBps, BytesPerSecond, 1e9)
TRAINYARD_LITERAL(TBps, BytesPerSecond, 1e12)
TRAINYARD_LITERAL(Gbps, BytesPerSecond, 1e9 / 8.0)
TRAINYARD_LITERAL(TFLOP, Flops, 1e12)
TRAINYARD_LITERAL(TFLOPps, FlopsPerSecond, 1e12)
TRAINYARD_LITERAL(W, Watts, 1.0)
TRAINYARD_LITERAL(kW, Watts, 1e3)
TRAINYARD_LITERAL(MW, Watts, 1e6)
TRAINYARD_LITERAL(VA, VoltAmperes, 1.0)
TRAINYARD_LITERAL(kVA, VoltAmperes, 1e3)
TRAINYARD_LITERAL(V, Volts, 1.0)
TRAINYARD_LITERAL(A, Amperes, 1.0)
TRAINYARD_LITERAL(J, Joules, 1.0)
#undef TRAINYARD_LITERAL
}  // namespace literals

}  // namespace trainyard
