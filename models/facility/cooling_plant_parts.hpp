#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/chiller.hpp"
#include "models/facility/cooling_spec.hpp"
#include "models/facility/restart_machine.hpp"
#include "models/facility/thermal_network.hpp"
#include "sim/recorder.hpp"

/// What a CoolingPlant is made of.
///
/// A *stem* is what may be told apart: a CDU with its racks, or an entry of racks on air alone.
/// Stems of one kind (equal specs on one loop, in one room) with equal heat, flow and valve and
/// equal temperatures are one *branch* of the thermal network, with as many times the capacity,
/// conductance and heat: the same equations, as in rack_cohorts.hpp. So a plant of 64 CDUs that
/// run alike costs as much as one of a single CDU. A fault or another heat splits a stem off; when
/// its inputs are those of the others again and its temperatures within 1e-10 K of theirs, it joins
/// them, heat kept.
namespace trainyard::models {

/// What is nearest to its limit: part and what is asked of it over what it can do.
struct CoolingLimit {
  std::string part;
  double utilisation = 0;
  Time at{};
};

/// What a rack breathes and drinks.
struct RackCondition {
  double air_C = 0;      // at the inlet
  double coolant_C = 0;  // supply of its CDU; as air_C without one
  double flow = 1;       // of coolant, part of the design
};

struct CooledRack {
  std::string name;
  RackCoolingSpec spec = {};
};

enum class CoolingUnitKind { chiller, cooler, loop_pump, crah, cdu_pump };

struct CoolingParts {
  using Cause = sim::EventIndex;
  using Bank = std::vector<std::size_t>;
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct Unit {
    std::string name;
    CoolingUnitKind kind;
    std::size_t owner;  // loop, room or CDU
    RestartMachine machine;
    sim::SubjectId subject;
    RestartMachine::State seen = RestartMachine::State::running;
    int failed_starts = 0;
    Cause trigger{};  // what stopped it
    Cause event{};    // its last change
    std::optional<Time> reset_at = {};
    bool is_reset = false;  // by hand, and did not run since: the group leaves it alone
  };
  /// The next temperatures of a node that matter to anybody.
  struct Band {
    ThermalWatch above = {}, below = {};
    double above_C = never, below_C = -never;
  };
  struct Loop {
    std::string name;
    WaterLoopSpec spec;
    Bank chillers = {}, coolers = {}, pumps = {};
    sim::SubjectId subject = {};
    ThermalNode water = {};
    ThermalBoundary outside = {};
    ThermalLink out = {};
    Band band = {};
    RemovalInputs inputs = {};
    std::vector<RemovalPiece> pieces = {};
    std::size_t piece = 0;
    double flow = 1, cop = 5;
    int running_chillers = 0;
    double pump_W = 0, door_W = 0;
    double seen_integral = 0;  // of the temperature, at integrated_to_
    bool was_short = false, was_hot = false;
    Cause cause{};
  };
  struct Valve {
    ThermalLink link = {};
    double full = 0;  // W/K when open, of one
    double opening = 0;
    double above_C = never, below_C = -never;  // where it moves again
    bool is_due = true;
    bool is_left(double T) const {
      return T >= above_C - 2 * touch_K || T <= below_C + 2 * touch_K;
    }
  };
  struct Room {
    std::string name;
    CooledRoomSpec spec;
    std::size_t loop = 0;
    Bank units = {};
    ThermalNode air = {}, structure = {};
    ThermalLink to_structure = {}, to_outside = {};
    ThermalBoundary outside = {};
    Valve valve = {};
    Band band = {};
    double draw = 0, recirculation = 0.05, fans_W = 0;
    Cause cause{};
  };
  struct Cdu {
    std::string name;
    CduSpec spec;
    std::size_t loop = 0;
    Bank pumps = {};
    double flow = 1, pump_W = 0, set_point = 30;
    bool is_due = true;  // its valve is to be looked at
    Cause cause{};
  };
  struct Rack {
    std::string name;
    RackCoolingSpec spec;
    std::size_t room = 0;
    std::optional<std::size_t> cdu = {};
    std::size_t stem = 0, place = 0;  // of its stem's racks
    sim::SubjectId subject = {};
    double heat_W = 0;  // of one
    bool is_cooled = true, is_warm = false;
    std::optional<RackCondition> told = {};
    Cause cause{};
    /// Fans of a rack without heat idle at a tenth: typical figure.
    double draw() const { return spec.count * spec.air_flow * (heat_W > 0 ? 1.0 : 0.1); }
  };
  /// The first stems are those of the CDUs, in their order.
  struct Stem {
    std::string name;
    std::optional<std::size_t> cdu = {};
    std::vector<std::size_t> racks = {};
    std::size_t kind = 0, branch = 0;
  };
  /// The racks of one place in all stems of a branch.
  struct Part {
    ThermalNode inlet = {}, mass = {};
    std::optional<ThermalNode> plate = {};
    ThermalLink to_room = {}, to_mass = {};
    std::optional<ThermalLink> to_coolant = {}, to_door = {};
    Band air = {}, plates = {};
    // Of one stem: heat put in, W, and conductances, W/K.
    double inlet_W = 0, plate_W = 0, room_link = 0, coolant_link = 0, door_link = 0;
    double inlet_C = 0, mass_C = 0, plate_C = 0;      // as of the last step
    std::optional<std::optional<Time>> too_hot = {};  // when, once it was searched for
  };
  struct Branch {
    std::vector<std::size_t> stems = {};  // ascending; none: free for another
    std::optional<ThermalNode> coolant = {};
    Valve valve = {};
    Band band = {};
    double coolant_C = 0;
    std::vector<Part> parts = {};
    double weight() const { return double(stems.size()); }
  };
};

}  // namespace trainyard::models
