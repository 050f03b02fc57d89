#pragma once

#include <chrono>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// What the operator does when a part of the power plant carries more than it can: cap, brake,
/// suspend, cut; and how racks come back.
namespace trainyard::models {

struct PowerPolicySpec {
  bool cap = true;
  Duration cap_delay = std::chrono::seconds(3);  // typical 1-5 s: measure, decide, set the limits
  bool brake = true;
  Duration brake_delay = std::chrono::milliseconds(10);  // hardware power brake: typical
  double brake_ratio = 0.5;                              // clock ratio under the brake: typical
  bool suspend = true;
  Duration suspend_delay = std::chrono::seconds(10);  // typical figure: jobs stop between steps
  bool cut = true;
  Duration cut_delay = std::chrono::seconds(15);  // after the other means: typical figure
  double target = 0.95;  // of the limit that was passed: room for what follows the load
  Duration release_delay = std::chrono::seconds(30);  // the plant carries all again: typical
  int restart_group = 16;                             // racks that start together: typical figure
  Duration restart_delay = std::chrono::seconds(30);  // between two groups: typical figure
  Duration hold_up = std::chrono::milliseconds(12);   // server power supplies: typical 10-20 ms
};

template <class Visitor>
void describe(Visitor& v, PowerPolicySpec& s) {
  v.optional("cap", s.cap, "software caps on racks, lowest priority first");
  v.optional("cap_delay", s.cap_delay, "from the overload to the cap in force, s", at_least(0));
  v.optional("brake", s.brake,
             "hardware brake on all racks of an overloaded part, if a cap would "
             "come too late");
  v.optional("brake_delay", s.brake_delay, "from the overload to the brake, ms", at_least(0));
  v.optional("brake_ratio", s.brake_ratio, "clock ratio under the brake", between(0.05, 1));
  v.optional("suspend", s.suspend, "suspend jobs when caps are not enough");
  v.optional("suspend_delay", s.suspend_delay, "from the cap to suspension, s", at_least(0));
  v.optional("cut", s.cut, "cut racks off, lowest priority first, when nothing else is enough");
  v.optional("cut_delay", s.cut_delay, "from the suspension to the cut, s", at_least(0));
  v.optional("target", s.target, "part of the limit to which load is reduced", between(0.1, 1));
  v.optional("release_delay", s.release_delay,
             "caps end when the plant could carry everything for so long, s", at_least(0));
  v.optional("restart_group", s.restart_group, "racks that start together after an outage",
             between(1, 1'000'000));
  v.optional("restart_delay", s.restart_delay, "between two groups, s", at_least(0));
  v.optional("hold_up", s.hold_up, "server power supplies ride through a gap up to this, ms",
             at_least(0));
}

}  // namespace trainyard::models
