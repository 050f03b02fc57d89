#pragma once

#include <optional>

#include "models/facility/power_devices_spec.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// An inverse-time breaker: a thermal image theta of the current, heated by its square. With
/// i = I / I_n constant since t_0,
///
///     tau d(theta)/dt = i^2 - theta        theta(t) = i^2 + (theta_0 - i^2) exp(-(t - t_0) / tau)
///     trips at theta = theta_t:            t = tau ln((i^2 - theta_0) / (i^2 - theta_t)),
///
/// never if i^2 <= theta_t. What the breaker carried before counts: it is theta_0. Above the
/// magnetic limit of its curve it trips after 20 ms. So a feed that takes over the load of its twin
/// at 0.8 of its rating holds it for 76 s, at 0.6 for ever.
///
///     Breaker breaker({.rating = 16_A});
///     breaker.set_current(start_of_run, 12.6_A);
///     breaker.set_current(add(start_of_run, 1h), 25.3_A);
///     std::optional<Time> trip = breaker.next_event();      // 81 s later
///
/// Source: the first-order thermal image of IEC 60255-149; constants in power_devices_spec.hpp.
namespace trainyard::models {

/// From a thermal image (squares of I_n) at a constant ratio I / I_n; none: it holds for ever.
std::optional<Duration> trip_time(const BreakerSpec& spec, double image, double ratio);

/// Limit of the magnetic trip in multiples of I_n; infinite without one.
double magnetic_limit(MagneticCurve curve);

class Breaker {
 public:
  explicit Breaker(const BreakerSpec& spec);

  /// Steps exactly to `now`; trips and automatic resets up to then have happened.
  void advance(Time now);
  /// Effective (root mean square) current through the closed contacts from now on.
  void set_current(Time now, Amperes current);
  /// It carried other currents until now, which left this image.
  void resume(Time now, double image, Amperes current);
  /// Closes it by hand. The image is what it is: a warm breaker trips sooner.
  void close(Time now);
  /// Opens it by hand, or because it failed.
  void open(Time now);

  /// When it trips, or closes by itself; none: never at this current.
  std::optional<Time> next_event() const { return next_; }
  bool is_closed() const { return is_closed_; }
  bool has_tripped() const { return has_tripped_; }
  double image(Time now) const;
  const BreakerSpec& spec() const { return spec_; }

 private:
  void rebase(Time now);
  void predict();

  BreakerSpec spec_;
  Time since_{};  // of the present current: a closed form from here, so splitting changes nothing
  double image_ = 0.0;
  double ratio_ = 0.0;
  bool is_closed_ = true;
  bool has_tripped_ = false;
  std::optional<Time> over_magnetic_;  // since when
  std::optional<Time> next_;
};

}  // namespace trainyard::models
