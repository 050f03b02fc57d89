#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/facility/cooling_plant_parts.hpp"
#include "models/facility/leaks.hpp"
#include "models/facility/weather.hpp"
#include "sim/engine.hpp"
#include "sim/problem.hpp"
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

/// Mistakes that the specs of single parts cannot show: racks on rooms and CDUs that do not exist,
/// parts that nothing uses, loops that are laid out for more than their machines remove, ... The
/// paths are "loops.NAME.x", "rooms.NAME.x", "cdus.NAME.x" and "racks.NAME.x".
Problems check_cooling(const CoolingPlantSpec& spec, std::span<const CooledRack> racks);

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

  using Limit = CoolingLimit;

  CoolingPlant(sim::Engine& engine, sim::Recorder& recorder, const CoolingPlantSpec& spec,
               const std::vector<CooledRack>& racks, Callbacks callbacks,
               std::optional<WeatherSeries> series = {});
  CoolingPlant(const CoolingPlant&) = delete;
  CoolingPlant& operator=(const CoolingPlant&) = delete;

  /// Of one rack of the entry.
  void set_rack_heat(std::size_t rack, Watts heat, Cause cause = {});
  /// Of one rack of each entry, all at once: one step of the plant, none if nothing changes.
  void set_rack_heats(std::span<const Watts> heats, Cause cause = {});

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
  /// The limit at the moment, up to now, when most was asked for.
  Limit worst() const;
  const Outdoors& outdoors() const { return outdoors_; }
  const Weather& weather() const { return weather_; }

  /// Up to now, exact.
  Energy energy();
  /// Of the thermal network, with negative sources for what chillers take at a constant rate.
  HeatBalance balance();
  /// How often anything was looked at: at its own events, each hour, at changes of heat.
  std::size_t steps() const { return steps_; }
  /// Of stems that run alike: what the plant costs.
  std::size_t branches() const;
  const ThermalModes& modes() const { return network_.modes(); }

 private:
  using Unit = CoolingParts::Unit;
  using Bank = CoolingParts::Bank;
  using Band = CoolingParts::Band;
  using Loop = CoolingParts::Loop;
  using Valve = CoolingParts::Valve;
  using Room = CoolingParts::Room;
  using Cdu = CoolingParts::Cdu;
  using Rack = CoolingParts::Rack;
  using Stem = CoolingParts::Stem;
  using Part = CoolingParts::Part;
  using Branch = CoolingParts::Branch;

  // cooling_plant_build.cpp
  void build(const CoolingPlantSpec& spec, const std::vector<CooledRack>& racks);
  Bank add_bank(const std::string& owner_name, const std::string& what, CoolingUnitKind kind,
                std::size_t owner, int count, const UnitRestartSpec& restart);
  Band make_band(ThermalNode node);

  // cooling_plant_update.cpp
  void update();
  void step(Time now);
  void integrate(Time now);
  void change_heat(Rack& rack, double heat_W, Cause cause);
  void run_machines(Time now);
  void lock_groups(Time now);
  void run_crew(Time now);
  void take_leaks(Time now);
  void arm();
  void see(Unit& unit, Time now);
  Cause record(std::string_view kind, sim::SubjectId subject, sim::Phase phase, Cause cause,
               double value = 0.0);

  // cooling_plant_branches.cpp
  void build_branches();
  std::size_t sprout(std::vector<std::size_t> stems, const Branch* like);
  void scale(Branch& branch);
  void put(const Branch& branch, const Part& part);
  bool are_of_a_kind(const Stem& a, const Stem& b) const;
  bool have_equal_inputs(const Stem& a, const Stem& b) const;
  bool are_alike(const Branch& a, const Branch& b) const;
  void split_branches();
  void join_branches();
  void join(Branch& into, Branch& from);
  void read(Branch& branch);
  const Branch& branch_of(const Rack& rack) const { return branches_[stems_[rack.stem].branch]; }
  const Part& part_of(const Rack& rack) const { return branch_of(rack).parts[rack.place]; }

  // cooling_plant_laws.cpp
  void apply();
  void apply_pumps();
  void apply_racks();
  void apply_rooms();
  void apply_cdus();
  void apply_loops();
  void enter_piece(Loop& loop);
  void move_valve(Valve& valve, double T, double set_point, double dead_band, double weight,
                  Watts flowing_in, double cold_C);
  int running(const Bank& bank) const;
  double shares(const Bank& bank) const;
  void set_ready(const Bank& bank, bool is_ready, Cause cause);

  // cooling_plant_reports.cpp
  void report(Time now);
  void report_loops();
  void report_rack(std::size_t index);
  void aim();
  void aim(Branch& branch);
  void aim(Band& band, double above_C, double below_C);
  void warn(Time now);
  std::optional<Time> too_hot(Branch& branch, Part& part);
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
  std::vector<Stem> stems_;
  std::vector<Branch> branches_;
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
  std::size_t steps_ = 0;
  Time integrated_to_;
  Energy energy_;
  double cdu_pumps_W_ = 0;
  Limit worst_;
  Cause last_cause_{};
  Time warned_ = Time::max();
  std::vector<std::size_t> warned_racks_;
  double told_power_W_ = -1;
  sim::Timer wake_;
};

}  // namespace trainyard::models
