#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/power_devices_spec.hpp"
#include "sim/describe.hpp"
#include "sim/units.hpp"

/// The paths of power from sources to racks and other loads, with the devices on them, at one
/// instant.
///
///   down  a node is live if its gate is closed and one of its feeds is live (of a transfer switch:
///         the one it is connected to; a UPS that runs on its battery needs none)
///   up    P_in = P_out + P_r (a0 + a1 x + a2 x^2), x = P_out / P_r; shared equally between the
///         feeds that are live; a UPS takes part of it from its battery, and more to recharge
///
/// Lines. The powers of the three lines of a node add up to its own; a circuit puts its power S
/// into them as
///
///     three-phase        S/3 each
///     a to the neutral   S into a
///     a to b             S V_a/(V_a - V_b) = S/sqrt(3) e^(-j30°) into a,  S/sqrt(3) e^(j30°) into
///     b current of a line  |S_line| sqrt(3) / V
///
/// A UPS with double conversion and a rack take the same from each line, whatever their load. Only
/// nodes with single-phase circuits somewhere below are split: in all others the lines are alike.
///
/// Racks with an A and a B feed, 2N, N+1 and a shared backup are the same graph.
///
///     PowerPaths paths(nodes);
///     paths.set_load(rack, 5_kW, 2.4_kVA);
///     paths.solve();
///     paths.flow(breaker).current;
namespace trainyard::models {

/// From `transformer` on, all are buses: losses and no state.
enum class PlantKind : std::uint8_t {
  utility,
  generators,
  transfer,
  ups,
  breaker,
  bus,
  rack,
  load,
  transformer,
  switchgear,
  busway,
  pdu,
  rectifier
};
inline constexpr std::size_t plant_kinds = 13;

/// The lines that a node has: all three, one and the neutral, or two of them.
enum class Lines { abc, a, b, c, ab, bc, ca };

/// One node of the plant. A bus is whatever has losses but no state.
struct PlantNode {
  std::string name;
  PlantKind kind = PlantKind::bus;
  std::vector<std::string> from = {};  // feeds; of a transfer switch by priority
  Watts rating{};                      // of a UPS, and what the losses refer to
  double a0 = 0.0, a1 = 0.0, a2 = 0.0;
  Volts voltage{400.0};  // between two conductors
  int phases = 3;
  BreakerSpec breaker = {};
  UpsSpec ups = {};
  GeneratorSpec generators = {};
  TransferSpec transfer = {};
  Lines lines = Lines::abc;  // of one phase and `abc`: a third of it in each

  bool draws() const { return kind == PlantKind::rack || kind == PlantKind::load; }
  /// Takes the same from each line.
  bool balances() const {
    return draws() || (kind == PlantKind::ups && ups.mode == UpsMode::double_conversion);
  }
};

class PowerPaths {
 public:
  struct Flow {
    bool is_live = false;
    double out_W = 0, out_var = 0;
    double in_W = 0, in_var = 0;  // from the feeds; a UPS: without what its battery gives
    double loss_W = 0;
    double full_W = 0;  // what it would take from its feeds if no battery helped
    Amperes current{};  // at its output, in the line that carries most
  };
  struct Load {
    double active_W = 0, reactive_var = 0;
    bool operator==(const Load&) const = default;
  };
  /// Sums over all nodes.
  struct Totals {
    double from_sources_W = 0, to_racks_W = 0, to_loads_W = 0;
    std::array<double, plant_kinds> losses_W{};  // by kind
  };
  using Lines3 = std::array<std::complex<double>, 3>;  // VA
  /// Loads, and what follows from them as long as nothing else changes.
  struct Solved {
    std::vector<Load> loads = {};  // of racks and loads, in the order of consumers()
    std::vector<Flow> flows = {};
    std::vector<Lines3> lines = {};  // at the output of nodes that are split
    Totals totals = {};
  };

  /// In any order; feeds must be named nodes and no loop may be closed (else CheckFailed).
  explicit PowerPaths(const std::vector<PlantNode>& nodes);

  std::size_t size() const { return states_.size(); }
  std::size_t index(const std::string& name) const;
  const PlantNode& node(std::size_t n) const;
  const std::vector<std::size_t>& feeds(std::size_t n) const;
  /// Sources before what they feed.
  const std::vector<std::size_t>& order() const;
  /// Racks and loads.
  const std::vector<std::size_t>& consumers() const;
  /// Place of a rack or load among them.
  std::size_t consumer(std::size_t n) const;

  /// A source that gives nothing, an open breaker, a node that failed, a UPS without output.
  void set_gate(std::size_t n, bool is_closed);
  void set_source(std::size_t n, std::optional<std::size_t> feed);
  void set_ups(std::size_t n, bool needs_input, double input_share, Watts recharge);
  void set_load(std::size_t n, Watts active, VoltAmperes reactive);
  /// A rack that is live but waits for its turn to start draws nothing.
  void set_draws(std::size_t n, bool draws);
  Watts load(std::size_t n) const;
  VoltAmperes reactive(std::size_t n) const;

  /// Nothing to do when nothing was set since.
  void solve();
  const Flow& flow(std::size_t n) const { return solved_.flows[n]; }
  const Totals& totals() const { return solved_.totals; }
  /// Of lines a, b, c at the output; a line that the node has not carries nothing.
  std::array<double, 3> line_currents_A(std::size_t n) const;
  bool has_live_feed(std::size_t n) const;
  /// Racks that get power through this node at present.
  std::vector<std::size_t> racks_behind(std::size_t n) const { return behind(n).racks; }
  struct Behind {
    std::vector<std::size_t> racks = {};
    double racks_W = 0, loads_W = 0;  // what comes through the node, without losses
  };
  Behind behind(std::size_t n) const;

  const Solved& solved() const { return solved_; }
  /// Another solution for the same gates, sources and UPS takes the place of this one.
  void exchange(Solved& other);
  /// Other loads, not yet solved; what was solved until now is given back.
  Solved start(std::vector<Load> loads);

 private:
  struct Shape;
  struct State {
    bool is_closed = true;
    bool draws = true;
    bool needs_input = true;
    bool is_live = false;
    bool is_fed = false;
    std::uint32_t links = 0;  // feeds that it takes from
    double share = 0.0;       // of each of them
    double input_share = 1.0;
    double recharge_W = 0.0;
    std::optional<std::size_t> source = 0;  // transfer switch: which of its feeds
  };
  void find_live();
  void link(std::size_t n);
  void pass_up(std::size_t n);
  void split(std::size_t n, Flow& flow);

  std::shared_ptr<const Shape> shape_;
  std::vector<State> states_;
  std::vector<std::uint32_t> links_;  // of all nodes, at the places of their feeds
  Solved solved_;
  bool is_stale_ = true;
  bool is_live_known_ = false;
};

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::PlantKind> {
  static constexpr auto all =
      names<models::PlantKind>({{models::PlantKind::utility, "utility"},
                                {models::PlantKind::generators, "generators"},
                                {models::PlantKind::transfer, "transfer-switch"},
                                {models::PlantKind::ups, "ups"},
                                {models::PlantKind::breaker, "breaker"},
                                {models::PlantKind::bus, "bus"},
                                {models::PlantKind::rack, "rack"},
                                {models::PlantKind::load, "load"},
                                {models::PlantKind::transformer, "transformer"},
                                {models::PlantKind::switchgear, "switchgear"},
                                {models::PlantKind::busway, "busway"},
                                {models::PlantKind::pdu, "pdu"},
                                {models::PlantKind::rectifier, "rectifier"}});
};
}  // namespace trainyard
