#pragma once

#include <optional>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// What a feed, a generator and the grid allow of the waveform of training. Only limits that are
/// given are checked. Operators pose them as ramp rate, dynamic range and amplitude between 0.1 and
/// 20 Hz: Choukse et al. (Microsoft, OpenAI, NVIDIA), "Power Stabilization for AI Training
/// Datacenters", arXiv 2508.14318.
namespace trainyard::models {

struct SwingLimitsSpec {
  std::optional<Watts> breaker;                         // highest power, to the millisecond
  std::optional<Watts> generator_step;                  // largest rise within `generator_window`
  Duration generator_window = std::chrono::seconds(1);  // typical: a governor answers in 0.5 to 2 s
  std::optional<double> ramp;                           // MW/s over `ramp_window`
  Duration ramp_window = std::chrono::seconds(1);
  std::optional<Watts> range;      // highest less lowest power
  std::optional<Watts> amplitude;  // of the strongest line between the two frequencies
  double band_low = 0.1;           // Hz
  double band_high = 20;
};

template <class Visitor>
void describe(Visitor& v, SwingLimitsSpec& s) {
  v.optional("breaker", s.breaker, "highest power allowed", above(0));
  v.optional("generator_step", s.generator_step, "largest rise within generator_window", above(0));
  v.optional("generator_window", s.generator_window, "how fast a generator answers", above(0));
  v.optional("ramp", s.ramp, "steepest ramp of the grid, MW/s", above(0));
  v.optional("ramp_window", s.ramp_window, "over which the ramp is measured", above(0));
  v.optional("range", s.range, "largest difference of highest and lowest power", above(0));
  v.optional("amplitude", s.amplitude, "largest amplitude of a frequency in the band", above(0));
  v.optional("band_low", s.band_low, "lowest frequency of the band, Hz", above(0));
  v.optional("band_high", s.band_high, "highest frequency of the band, Hz", above(0));
  v.check(s.band_low < s.band_high, "band_low", "must be below band_high");
}

}  // namespace trainyard::models
