#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/chiller.hpp"
#include "models/facility/cooling_spec.hpp"
#include "models/facility/leaks.hpp"
#include "models/facility/restart_machine.hpp"
#include "models/facility/thermal_network.hpp"
#include "models/facility/weather.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"

/// The cooling of a site in a run: where the heat of racks goes, how warm that makes them, and what
/// happens when weather, power or a part of it fails.
///
///     rack heat ─ air ──▶ inlet air ─▶ room ─ air units ─▶ water loop ─ chillers, coolers ─▶
///     weather
///              └ plates ▶ coolant of a CDU ─ exchanger ──────▲
///
/// All temperatures are nodes of one thermal network, so they are exact between events. Controls
/// are piecewise: chillers and coolers follow the loop by `removal`; a valve stands still until the
/// temperature that it holds has strayed by its dead band, then opens to what is needed. Weather
/// comes by the hour. One timer waits for the earliest own event of anything.
///
///     CoolingPlant plant(engine, recorder, spec, {{"rack-1", {.room = "hall"}}},
///                        {.on_inlet = [&](std::size_t rack, const RackCondition& c, auto why) {
///                           gpu[rack].set_inlet(engine.now(), c.air_C); }});
///     plant.set_rack_heat(0, 40_kW);
///     plant.set_fed("north/chiller-1", false);    // and true a second later: it is off for
///     minutes
///
/// Every recorded event names its cause, back to who failed or unplugged the first unit.
namespace trainyard::models {

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

class CoolingPlant {
 public:
  using Cause = sim::EventIndex;

  struct Callbacks {
    /// The condition of a rack changed by the reporting step, or its flow changed at all.
    std::function<void(std::size_t rack, const RackCondition&, Cause)> on_inlet = {};
    /// Too hot to run, or cool enough again.
    std::function<void(std::size_t rack, bool is_cooled, Cause)> on_cooled = {};
    /// These racks reach a shut-down limit in so long if nothing else happens; `forever` when the
    /// danger is over.
    std::function<void(const std::vector<std::size_t>& racks, Duration window, Cause)> on_warning =
        {};
    /// A leak was isolated: these racks of the entry are without coolant.
    std::function<void(std::size_t rack, const Leak&, Cause)> on_leak = {};
    /// The power of all units changed by 1 % or more.
    std::function<void(Watts, Cause)> on_power = {};
  };

  struct Energy {
    Joules racks{}, fans{}, pumps{}, chillers{}, coolers{};
    Joules rejected{};  // taken out of loops, to the weather
    double evaporated_kg = 0, make_up_kg = 0;
    Joules cooling() const { return fans + pumps + chillers + coolers; }
    /// `losses` of the power chain.
    double pue(Joules losses = Joules(0)) const { return (racks + cooling() + losses) / racks; }
    /// Water usage effectiveness, litres per kWh.
    double wue() const { return make_up_kg / (racks.value() / 3.6e6); }
  };

  /// What is nearest to its limit: part and what is asked of it over what it can do.
  struct Limit {
    std::string part;
    double utilisation = 0;
  };

  CoolingPlant(sim::Engine& engine, sim::Recorder& recorder, const CoolingPlantSpec& spec,
               const std::vector<CooledRack>& racks, Callbacks callbacks,
               std::optional<WeatherSeries> series = {});
  CoolingPlant(const CoolingPlant&) = delete;
  CoolingPlant& operator=(const CoolingPlant&) = delete;

  /// Of one rack of the entry.
  void set_rack_heat(std::size_t rack, Watts heat, Cause cause = {});

  // Units by name: "north/chiller-1", "north/pump-2", "hall/crah-3", "cdu-1/pump-1".
  Cause fail(const std::string& unit, Cause cause = {});
  Cause restore(const std::string& unit, Cause cause = {});
  void set_fed(const std::string& unit, bool is_fed, Cause cause = {});
  /// Protection stops it, as after a voltage sag.
  Cause trip(const std::string& unit, Cause cause = {});
  /// More or fewer people to reset what locked out.
  void set_people(int people);

  std::vector<std::string> unit_names() const;
  RestartMachine::State state(const std::string& unit) const;
  Watts power(const std::string& unit) const;
  Watts power() const;

  RackCondition condition(std::size_t rack) const;
  bool is_cooled(std::size_t rack) const { return racks_.at(rack).is_cooled; }
  double loop_temperature(const std::string& loop) const;
  double room_temperature(const std::string& room) const;
  double coolant_temperature(const std::string& cdu) const;
  double plate_temperature(std::size_t rack) const;
  /// All that a loop can do is asked for, and more.
  bool is_short(const std::string& loop) const;
  Limit limit() const;
  const Outdoors& outdoors() const { return outdoors_; }
  const Weather& weather() const { return weather_; }

  /// Up to now, exact.
  Energy energy();
  /// Of the thermal network, with negative sources for what chillers take at a constant rate.
  HeatBalance balance();

 private:
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
  };
  using Bank = std::vector<std::size_t>;
  struct Loop {
    std::string name;
    WaterLoopSpec spec;
    Bank chillers = {}, coolers = {}, pumps = {};
    sim::SubjectId subject = {};
    ThermalNode water = {};
    ThermalBoundary outside = {};
    ThermalLink out = {};
    ThermalWatch above = {}, below = {};
    double above_C = 0, below_C = 0;
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
    ThermalWatch above = {}, below = {};
    double full = 0;  // W/K when open
    double opening = 0;
    bool is_due = true;
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
    double recirculation = 0.05, fans_W = 0;
    Cause cause{};
  };
  struct Cdu {
    std::string name;
    CduSpec spec;
    std::size_t loop = 0;
    Bank pumps = {};
    ThermalNode coolant = {};
    Valve valve = {};
    double flow = 1, pump_W = 0, set_point = 30;
    Cause cause{};
  };
  struct Rack {
    std::string name;
    RackCoolingSpec spec;
    std::size_t room = 0;
    std::optional<std::size_t> cdu = {};
    sim::SubjectId subject = {};
    ThermalNode inlet = {}, mass = {};
    std::optional<ThermalNode> plate = {};
    ThermalLink to_room = {}, to_mass = {};
    std::optional<ThermalLink> to_coolant = {}, to_door = {};
    ThermalWatch above = {}, below = {}, warning = {}, off = {}, back = {};
    std::vector<ThermalWatch> liquid = {};  // coolant up, down, off, back; plate off, back
    double heat_W = 0;                      // of one
    bool is_cooled = true, is_warm = false;
    std::optional<RackCondition> told = {};
    Cause cause{};
  };

  // cooling_plant_build.cpp
  void build(const CoolingPlantSpec& spec, const std::vector<CooledRack>& racks);
  Bank add_bank(const std::string& owner_name, const std::string& what, CoolingUnitKind kind,
                std::size_t owner, int count, const UnitRestartSpec& restart);

  // cooling_plant_update.cpp
  void update();
  void step(Time now);
  void integrate(Time now);
  void take_arrivals();
  void run_machines(Time now);
  void lock_groups(Time now);
  void run_crew(Time now);
  void take_leaks(Time now);
  void arm();
  void see(Unit& unit, Time now);
  Cause record(std::string_view kind, sim::SubjectId subject, sim::Phase phase, Cause cause,
               double value = 0.0);

  // cooling_plant_laws.cpp
  void apply(Time now);
  void apply_rooms();
  void apply_cdus();
  void apply_racks();
  void apply_loops();
  void enter_piece(Loop& loop);
  void move_valve(Valve& valve, ThermalNode node, double set_point, double dead_band, double full,
                  Watts flowing_in, ThermalNode cold);
  int running(const Bank& bank) const;
  double shares(const Bank& bank) const;
  void set_ready(const Bank& bank, bool is_ready, Cause cause);

  // cooling_plant_reports.cpp
  void report(Time now);
  void report_loops();
  void report_rack(std::size_t index);
  void warn(Time now);
  Cause why(const Rack& rack) const;
  const ThermalNetwork& network() const {
    network_.advance(engine_.now());
    return network_;
  }
  double cooler_heat(const Loop& loop, double total, double chilled) const;

  Unit& unit(const std::string& name);
  const Unit& unit(const std::string& name) const;
  Cause& cause_of(const Unit& unit);

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  CoolingPlantSpec spec_;
  Callbacks callbacks_;
  Weather weather_;
  Outdoors outdoors_;
  mutable ThermalNetwork network_;  // a question brings it to the present

  std::vector<Unit> units_;
  std::map<std::string, std::size_t> unit_of_;
  std::vector<Loop> loops_;
  std::vector<Room> rooms_;
  std::vector<Cdu> cdus_;
  std::vector<Rack> racks_;
  std::map<std::size_t, Leaks> leaks_;
  struct Isolation {
    std::size_t rack;
    Leak leak;
    Cause cause;
  };
  std::multimap<Time, Isolation> isolations_;

  int people_;
  std::optional<Time> crew_at_;
  std::vector<std::size_t> locked_;  // first locked out first

  bool is_updating_ = false, is_dirty_ = false;
  Time integrated_to_;
  Energy energy_;
  Cause last_cause_{};
  Time warned_ = Time::max();
  std::vector<std::size_t> warned_racks_;
  double told_power_W_ = -1;
  sim::Timer wake_;
};

}  // namespace trainyard::models
