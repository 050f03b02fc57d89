#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/facility/first_crossing.hpp"
#include "models/facility/thermal_modes.hpp"
#include "models/facility/thermal_stream.hpp"
#include "sim/id.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Temperatures of a room, its racks and its loops, exact between events.
///
/// A node is a lump with one temperature and a heat capacity (J/K); a boundary is a temperature
/// that somebody else holds (the weather, supply air at its set-point). Links carry heat in
/// proportion to a difference (W/K); streams carry it one way (air or water that runs through nodes
/// in order); sources give watts. With nothing changed between two events
///
///     C dT/dt = -L T + q,        y = C^(1/2) T  makes the matrix symmetric,
///
/// so the network is decomposed once for each *mode* (the set of conductances: fans, pumps and
/// valves that are on), kept, and stepped by exponentials: one long step or many short ones give
/// the same temperatures. Integrals are exact too, so heat in = heat out + heat stored.
///
///     ThermalNetwork net;
///     ThermalNode air = net.add_node("air", 25e3, 22.0), mass = net.add_node("mass", 300e3, 22.0);
///     net.connect(air, mass, 100.0);
///     net.set_heat(air, 5_kW);
///     net.advance(start_of_run + 189s);            // net.temperature(air) = 48.7285
///
/// Passive: the owner advances it to every event, sets what changed, and asks next_event() when the
/// next watched limit is reached. Setters act at now(). Nothing here is random.
///
/// Source: lumped capacity networks as in F. Incropera, D. DeWitt, Fundamentals of Heat and Mass
/// Transfer, ch. 5; the symmetric form is the usual one of linear vibration. Page:
/// docs/models/thermal-network.md.
namespace trainyard::models {

struct ThermalNodeTag;
struct ThermalBoundaryTag;
struct ThermalLinkTag;
struct ThermalStreamTag;
struct ThermalWatchTag;
using ThermalNode = Id<ThermalNodeTag>;
using ThermalBoundary = Id<ThermalBoundaryTag>;
using ThermalLink = Id<ThermalLinkTag>;
using ThermalStream = Id<ThermalStreamTag>;
using ThermalWatch = Id<ThermalWatchTag>;
/// One end of a link.
using ThermalPlace = std::variant<ThermalNode, ThermalBoundary>;
inline bool is_node(const ThermalPlace& place) {
  return std::holds_alternative<ThermalNode>(place);
}

/// A node on the way of a stream, and the share of the way to its temperature that the stream goes
/// there: 1 is a well-mixed node, less is a heat exchanger.
struct StreamStop {
  ThermalNode node;
  double effectiveness = 1.0;
};

/// The heat of the whole network since it was made. `residual` is rounding.
struct HeatBalance {
  Joules given;     // by sources, temperature dependence included
  Joules removed;   // to boundaries
  Joules stored;    // now, above what nodes brought with them when they were added
  Joules residual;  // given - removed - stored
};

class ThermalNetwork {
 public:
  /// Networks built alike may share their decompositions.
  explicit ThermalNetwork(std::shared_ptr<ThermalModes> modes = std::make_shared<ThermalModes>());

  // --- what there is; may also change during the run, at now() ---

  /// Capacity in J/K, above zero: air in a duct has some (1.2 kJ/K a cubic metre).
  ThermalNode add_node(std::string name, double capacity_J_per_K, double temperature_C);
  ThermalBoundary add_boundary(std::string name, double temperature_C);
  /// Heat from a to b: conductance · (T_a - T_b).
  ThermalLink connect(ThermalPlace a, ThermalPlace b, double conductance_W_per_K);
  /// A flow with rate m·cp (W/K). With a boundary it enters at that temperature, passes the stops
  /// in order and takes its heat back there; without, it runs round the stops. The flow itself
  /// stores nothing. Where it makes the matrix non-symmetric (three stops or more in a circuit, two
  /// or more behind a boundary) the whole network is stepped by a dense exponential: good to some
  /// 200 nodes.
  ThermalStream add_stream(std::string name, std::optional<ThermalBoundary> from,
                           std::vector<StreamStop> stops, double rate_W_per_K);

  // --- what changes; a value as before costs nothing and is no new mode ---

  void set_heat(ThermalNode, Watts);
  /// Heat that grows with temperature, added to set_heat: slope · (T - reference). Leakage of
  /// chips.
  void set_heat_slope(ThermalNode, double slope_W_per_K, double reference_C);
  void set_conductance(ThermalLink, double conductance_W_per_K);  // 0: shut
  void set_rate(ThermalStream, double rate_W_per_K);              // 0: stopped
  void set_temperature(ThermalBoundary, double temperature_C);

  // --- time ---

  /// Step to `now`, which is not before now(). Splitting an interval changes nothing.
  void advance(Time now);
  Time now() const { return now_; }

  // --- at now() ---

  double temperature(ThermalNode) const;  // degrees Celsius
  double temperature(ThermalBoundary) const;
  double slope(ThermalNode) const;  // K/s
  Watts heat(ThermalNode) const;    // of its source, temperature dependence included
  Watts flow(ThermalLink) const;    // from a to b
  Watts flow(ThermalStream) const;  // into its boundary; zero for a circuit
  /// Temperatures after all transients with the inputs of now, by node index. Every part of the
  /// network must reach a boundary.
  std::vector<double> steady_state() const;
  /// Put all nodes there, as the start of a run in balance.
  void settle();

  // --- since the start, exact ---

  double temperature_integral(ThermalNode) const;  // degrees Celsius times seconds
  Joules heat_given(ThermalNode) const;
  Joules heat_removed(ThermalBoundary) const;  // from the network into the boundary
  Joules heat_moved(ThermalLink) const;        // from a to b
  HeatBalance balance() const;

  // --- limits ---

  /// From now on with the inputs of now: the first time at or beyond the limit (now, if it is there
  /// already).
  std::optional<Time> first_crossing(ThermalNode, double limit_C, Direction) const;
  /// At or beyond the limit now, within touch_K: what to ask when an event arrives.
  bool is_beyond(ThermalNode, double limit_C, Direction) const;

  /// Report each *arrival* at the limit. A node that is beyond it already is reported when it has
  /// left and comes back.
  ThermalWatch watch(ThermalNode, double limit_C, Direction);  // infinite: sleeps, costs nothing
  void move_watch(ThermalWatch, double limit_C);
  void remove_watch(ThermalWatch);

  /// The earliest arrival with the inputs of now, over all watches; one that was not taken yet may
  /// lie at now(). Time stops at each: advance() to it, take it, go on. Kept until an input
  /// changes, so it may be asked after every event.
  std::optional<Time> next_event();
  /// The watches whose limit was reached by now(), in order of id; each arrival is told once.
  std::vector<ThermalWatch> take_arrivals();

  // --- cohorts and accounts ---

  double capacity(ThermalNode) const;  // J/K
  double conductance(ThermalLink) const;
  const std::string& name(ThermalNode) const;
  std::size_t node_count() const { return rows_.size(); }
  /// Another capacity at the same temperature: part of the node was taken out or put in.
  void set_capacity(ThermalNode, double capacity_J_per_K);
  /// `from` becomes part of `into`: capacities add, the temperature is their mean by capacity.
  /// Links and watches of `from` go; its heat given and moved stays in the balance.
  void absorb(ThermalNode into, ThermalNode from);
  /// The link goes; what it moved stays in the accounts of its ends.
  void disconnect(ThermalLink);

  const ThermalModes& modes() const { return *modes_; }
  /// Stepped by a dense exponential, since a stream makes the matrix non-symmetric?
  bool is_directed() const;

 private:
  struct Node {
    std::string name;
    double capacity = 0.0;     // J/K
    double temperature = 0.0;  // valid while no mode is entered
    double heat = 0.0;         // W
    double slope = 0.0, reference = 0.0;
    bool alive = true;
    std::size_t row = 0;
    double integral = 0.0;  // degrees Celsius times seconds, up to the entry of the mode
    double given = 0.0;     // J, up to heat_since (constant part), to the entry (slope)
    Time heat_since{};
  };
  struct Boundary {
    std::string name;
    double temperature = 0.0;
    double integral = 0.0;  // up to `since`
    Time since{};
    double at_entry = 0.0;  // the integral when the mode was entered
    double removed = 0.0;   // J, up to the entry of the mode
  };
  struct Link {
    ThermalPlace a = {}, b = {};
    double conductance = 0.0;
    bool alive = true;
    double moved = 0.0;  // J from a to b, up to the entry of the mode
  };
  struct Stream {
    std::string name;
    std::optional<ThermalBoundary> from = {};
    std::vector<ThermalNode> stops = {};
    StreamShape shape = {};
    double rate = 0.0;
  };
  struct Watch {
    ThermalNode node = {};
    double limit = 0.0;
    Direction direction = Direction::rising;
    bool alive = true;
    bool armed = true;  // was last seen away from the limit
    std::optional<Time> due = {};
    Time searched{};  // no arrival before this
  };

  const Node& at(ThermalNode) const;
  Node& at(ThermalNode);
  void check_place(ThermalPlace) const;

  void enter_mode() const;
  void leave_mode();
  ThermalModes::Signature signature() const;
  ThermalMatrix matrix() const;
  std::vector<double> watts() const;
  void number_rows();

  double seconds_in_mode() const { return to_seconds(now_ - entered_); }
  double boundary_integral(const Boundary&) const;
  /// Of a place since the mode was entered.
  double integral_in_mode(ThermalPlace) const;
  double moved_in_mode(const Link&) const;
  double taken_in_mode(const Stream&) const;

  void inputs_changed();
  void predict();
  void predict(Watch&, Course&, Time horizon);

  std::vector<Node> nodes_;
  std::vector<std::size_t> free_nodes_;
  std::vector<std::size_t> rows_;  // node index of each row
  std::vector<Boundary> boundaries_;
  std::vector<Link> links_;
  std::vector<std::size_t> free_links_;
  std::vector<Stream> streams_;
  std::vector<Watch> watches_;
  std::vector<std::size_t> free_watches_;
  bool predicted_ = true;
  bool voided_ = true;  // no prediction of the inputs before this moment is left
  Time now_ = start_of_run;
  double brought_ = 0.0;  // J: heat content of nodes and parts as they were added or taken out

  // The present mode and the state in its coordinates; entered by the first question that needs it.
  std::shared_ptr<ThermalModes> modes_;
  mutable std::shared_ptr<ThermalMode> mode_;
  mutable std::vector<double> coordinates_, integrals_, sources_;
  mutable Time entered_ = start_of_run;
};

}  // namespace trainyard::models
