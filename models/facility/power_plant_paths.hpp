#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/power_devices_spec.hpp"
#include "sim/units.hpp"

/// The paths of power from sources to racks, with the devices on them, at one instant.
///
///   down  a node is live if its gate is closed and one of its feeds is live (of a transfer switch:
///         the one it is connected to; a UPS that runs on its battery needs none)
///   up    P_in = P_out + P_r (a0 + a1 x + a2 x^2), x = P_out / P_r; shared equally between the
///         feeds that are live; a UPS takes part of it from its battery, and more to recharge
///
/// Racks with an A and a B feed, 2N, N+1 and a shared backup are the same graph.
///
///     PowerPaths paths(nodes);
///     paths.set_load(rack, 5_kW, 2.4_kVA);
///     paths.solve();
///     paths.flow(breaker).current;
namespace trainyard::models {

enum class PlantKind { utility, generators, transfer, ups, breaker, bus, rack };

/// One node of the plant. A bus is whatever has losses but no state: transformer, busway, PDU.
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
};

class PowerPaths {
 public:
  struct Flow {
    bool is_live = false;
    double out_W = 0, out_var = 0;
    double in_W = 0, in_var = 0;  // from the feeds; a UPS: without what its battery gives
    double loss_W = 0;
    double full_W = 0;  // what it would take from its feeds if no battery helped
    Amperes current{};  // at its output
  };

  /// In any order; feeds must be named nodes and no loop may be closed (else CheckFailed).
  explicit PowerPaths(const std::vector<PlantNode>& nodes);

  std::size_t size() const { return nodes_.size(); }
  std::size_t index(const std::string& name) const;
  const PlantNode& node(std::size_t n) const { return nodes_[n]; }
  const std::vector<std::size_t>& feeds(std::size_t n) const { return feeds_[n]; }
  /// Sources before what they feed.
  const std::vector<std::size_t>& order() const { return order_; }

  /// A source that gives nothing, an open breaker, a node that failed, a UPS without output.
  void set_gate(std::size_t n, bool is_closed) { states_[n].is_closed = is_closed; }
  void set_source(std::size_t n, std::optional<std::size_t> feed) { states_[n].source = feed; }
  void set_ups(std::size_t n, bool needs_input, double input_share, Watts recharge);
  void set_load(std::size_t n, Watts active, VoltAmperes reactive);
  /// A rack that is live but waits for its turn to start draws nothing.
  void set_draws(std::size_t n, bool draws) { states_[n].draws = draws; }
  Watts load(std::size_t n) const { return Watts(states_[n].load_W); }
  VoltAmperes reactive(std::size_t n) const { return VoltAmperes(states_[n].load_var); }

  void solve();
  const Flow& flow(std::size_t n) const { return flows_[n]; }
  bool has_live_feed(std::size_t n) const;
  /// Racks that get power through this node at present.
  std::vector<std::size_t> racks_behind(std::size_t n) const;

 private:
  struct State {
    bool is_closed = true;
    bool draws = true;
    std::optional<std::size_t> source = 0;  // transfer switch: which of its feeds
    bool needs_input = true;
    double input_share = 1.0;
    double recharge_W = 0.0;
    double load_W = 0.0, load_var = 0.0;
  };
  void pass_up(std::size_t n);

  std::vector<PlantNode> nodes_;
  std::vector<std::vector<std::size_t>> feeds_;
  std::vector<std::size_t> order_;
  std::vector<State> states_;
  std::vector<Flow> flows_;
};

}  // namespace trainyard::models
