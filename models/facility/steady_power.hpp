#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "models/facility/power_layout.hpp"

/// The power graph long after some of its nodes were lost: batteries are empty, transfer switches
/// stand on the first of their sources that is live, generators have started. What planning asks.
///
///     SteadyPower power(layout);
///     power.set_racks(40_kW, 0.98);
///     power.set_loads(spec, {{"chillers", 900_kW}});
///     power.solve({ups_a});                                // without one node
///     power.line_currents_A(pdu)[0];
namespace trainyard::models {

class SteadyPower {
 public:
  /// The layout must live as long.
  explicit SteadyPower(const PowerLayout& layout);
  explicit SteadyPower(PowerLayout&&) = delete;

  /// Of a rack or another load; both start at nothing.
  void set_load(std::size_t node, Watts active, VoltAmperes reactive);
  /// All racks alike.
  void set_racks(Watts active, double power_factor);
  /// All other loads: what each draws constantly, and what its units draw.
  void set_loads(const PowerSpec& spec, const std::map<std::string, Watts>& units = {});
  void solve(const std::vector<std::size_t>& lost = {});

  const PowerLayout& layout() const { return layout_; }
  const PowerPaths::Flow& flow(std::size_t n) const { return paths_.flow(n); }
  Watts load(std::size_t node) const { return paths_.load(node); }
  const std::vector<std::size_t>& feeds(std::size_t n) const { return paths_.feeds(n); }
  /// Sources before what they feed.
  const std::vector<std::size_t>& order() const { return paths_.order(); }
  /// Of lines a, b, c at the output; a line that the node has not carries nothing.
  std::array<double, 3> line_currents_A(std::size_t n) const { return paths_.line_currents_A(n); }
  double worst_current_A(std::size_t n) const;

 private:
  void choose_sources(const std::vector<std::size_t>& lost);

  const PowerLayout& layout_;
  PowerPaths paths_;
};

}  // namespace trainyard::models
