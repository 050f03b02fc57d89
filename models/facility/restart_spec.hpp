#pragma once

#include <chrono>

#include "sim/describe.hpp"
#include "sim/time.hpp"

/// How a cooling unit comes back after it stopped. All defaults are typical figures of the trade.
namespace trainyard::models {

/// The defaults are an ordinary chiller: 11 minutes from power to full cooling (typical 10-15).
struct UnitRestartSpec {
  Duration boot = std::chrono::seconds(45);         // controls; typical 30-60 s, none on a UPS
  Duration prove_flow = std::chrono::seconds(30);   // pumps up, flow switch closed
  Duration anti_recycle = std::chrono::minutes(6);  // from stop to start; typical 5-20 min
  Duration ramp = std::chrono::minutes(5);
  int ramp_steps = 4;
  double start_failure = 0.02;
  int attempts = 2;  // two failed starts, then a person
  bool operator==(const UnitRestartSpec&) const = default;
};

/// Inverter-driven with controls on a UPS: about 3 minutes to full cooling, as makers advertise.
inline UnitRestartSpec quick_start() {
  return {.boot = std::chrono::seconds(0),
          .prove_flow = std::chrono::seconds(15),
          .anti_recycle = std::chrono::seconds(30),
          .ramp = std::chrono::seconds(150)};
}

/// Fans and pumps: 20 s (typical 10-60), no lock-out.
inline UnitRestartSpec motor_restart() {
  return {.boot = std::chrono::seconds(20),
          .prove_flow = std::chrono::seconds(0),
          .anti_recycle = std::chrono::seconds(0),
          .ramp = std::chrono::seconds(0),
          .ramp_steps = 1,
          .start_failure = 0.0};
}

template <class Visitor>
void describe(Visitor& v, UnitRestartSpec& s) {
  v.optional("boot", s.boot, "from power to controls that work, s", at_least(0));
  v.optional("prove_flow", s.prove_flow, "from running pumps to a start, s", at_least(0));
  v.optional("anti_recycle", s.anti_recycle, "least time from a stop to the next start, s",
             at_least(0));
  v.optional("ramp", s.ramp, "from the start to full capacity, s", at_least(0));
  v.optional("ramp_steps", s.ramp_steps, "capacity comes in so many equal steps", between(1, 100));
  v.optional("start_failure", s.start_failure, "chance that a start fails", between(0, 1));
  v.optional("attempts", s.attempts, "failed starts in a row after which a person has to reset it",
             between(1, 100));
}

}  // namespace trainyard::models
