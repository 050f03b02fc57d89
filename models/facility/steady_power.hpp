#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <optional>
#include <vector>

#include "models/facility/power_layout.hpp"

/// The power graph long after some of its nodes were lost: batteries are empty, transfer switches
/// stand on the first of their sources that is live, generators have started. What planning asks.
///
/// Beside what PowerPaths gives, the current of each line. The powers of the three lines add up to
/// that of the node; a circuit puts its power S into them as
///
///     three-phase        S/3 each
///     a to the neutral   S into a
///     a to b             S V_a/(V_a - V_b) = S/sqrt(3) e^(-j30°) into a,  S/sqrt(3) e^(j30°) into
///     b current of a line  |S_line| sqrt(3) / V
///
/// A UPS with double conversion and a rectifier take the same from each line, whatever their load.
///
///     SteadyPower power(layout);
///     power.set_racks(40_kW, 0.98);
///     power.solve({ups_a});                                // without one node
///     power.line_currents_A(pdu)[0];
namespace trainyard::models {

class SteadyPower {
 public:
  /// The layout must live as long.
  explicit SteadyPower(const PowerLayout& layout);
  explicit SteadyPower(PowerLayout&&) = delete;

  void set_load(std::size_t rack, Watts active, VoltAmperes reactive);
  /// All racks alike.
  void set_racks(Watts active, double power_factor);
  void solve(const std::vector<std::size_t>& lost = {});

  const PowerLayout& layout() const { return layout_; }
  const PowerPaths::Flow& flow(std::size_t n) const { return paths_.flow(n); }
  Watts load(std::size_t rack) const { return paths_.load(rack); }
  const std::vector<std::size_t>& feeds(std::size_t n) const { return paths_.feeds(n); }
  /// Sources before what they feed.
  const std::vector<std::size_t>& order() const { return paths_.order(); }
  /// Of lines a, b, c at the output; a line that the node has not carries nothing.
  std::array<double, 3> line_currents_A(std::size_t n) const;
  double worst_current_A(std::size_t n) const;

 private:
  using Lines3 = std::array<std::complex<double>, 3>;
  void choose_sources(const std::vector<std::size_t>& lost);
  void split_into_lines();

  const PowerLayout& layout_;
  PowerPaths paths_;
  std::vector<std::optional<std::size_t>> sources_;  // of transfer switches
  std::vector<Lines3> lines_;                        // VA at the output of three-phase nodes
};

}  // namespace trainyard::models
