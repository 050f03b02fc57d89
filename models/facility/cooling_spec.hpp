#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/facility/restart_spec.hpp"
#include "models/facility/thermal_spec.hpp"
#include "models/facility/weather_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// The cooling of a site: loops of water with what takes heat out of them, rooms with air units,
/// coolant distribution units, and which rack hangs on what. Equal units are a bank: bank "chiller"
/// of 4 is chiller-1 ... chiller-4 to everybody who fails, feeds or restores one.
namespace trainyard::models {

enum class Rejection { air, tower };

/// A bank of chillers. COP = efficiency · T_e / (T_c - T_e), in kelvin.
struct ChillersSpec {
  int units = 2;
  Watts capacity{1e6};  // of one, up to the design temperature
  Rejection rejection = Rejection::air;
  std::optional<double> efficiency = {};  // 0.40 air, 0.60 tower: COP about 3 and 6, typical
  double evaporator_approach = 5;         // typical figure
  std::optional<double> condenser_approach = {};  // air 12 K, tower 8 K: typical
  std::optional<double> design = {};              // dry bulb 35, wet bulb 24: usual rating points
  double capacity_loss = 0.015;                   // typical: 1-2 %/K
  double trip_margin = 9;                         // typical: high-pressure cut-out at +8-10 K
  UnitRestartSpec restart = {};
  int group_lock = 0;
  double second_law() const { return efficiency.value_or(is_air() ? 0.40 : 0.60); }
  double condenser() const { return condenser_approach.value_or(is_air() ? 12.0 : 8.0); }
  double design_C() const { return design.value_or(is_air() ? 35.0 : 24.0); }
  bool is_air() const { return rejection == Rejection::air; }
};

template <class Visitor>
void describe(Visitor& v, ChillersSpec& s) {
  v.optional("units", s.units, "equal chillers", between(1, 1000));
  v.required("capacity", s.capacity, "heat that one removes at the design temperature, W",
             above(0));
  v.optional("rejection", s.rejection,
             "air: condensers in outdoor air, follows the dry bulb; tower: follows the wet bulb");
  v.optional("efficiency", s.efficiency,
             "part of the COP of Carnot that it reaches; default 0.40 air, 0.60 tower",
             between(0.05, 0.95));
  v.optional("evaporator_approach", s.evaporator_approach, "evaporation below the supply, K",
             between(0, 30));
  v.optional("condenser_approach", s.condenser_approach,
             "condensation above the outdoor temperature, K; default 12 air, 8 tower",
             between(1, 40));
  v.optional("design", s.design,
             "outdoor temperature of the rating, degrees Celsius; default dry bulb 35 air, wet "
             "bulb 24 tower",
             between(0, 60));
  v.optional("capacity_loss", s.capacity_loss, "capacity lost per K above the design temperature",
             between(0, 0.1));
  v.optional("trip_margin", s.trip_margin,
             "K above the design temperature at which high pressure trips it", above(0));
  v.optional("restart", s.restart, "how one comes back after it stopped");
  v.optional("group_lock", s.group_lock,
             "as many locked out at once lock all others that do not run; 0: no such control",
             between(0, 1000));
}

/// Towers or dry coolers: they cool the loop by themselves when it is cold enough outside, and
/// towers carry away the heat of chillers of kind tower.
struct CoolersSpec {
  int units = 2;
  Watts capacity{1e6};
  Rejection kind = Rejection::tower;
  double approach = 5;       // typical: tower 3-5 K to the wet bulb, dry cooler 5-10 K to the dry
  double fan_share = 0.015;  // of the heat rejected; typical 1-2 %
  bool economizer = true;
  double cycles = 4;  // of concentration; typical 3-6
  UnitRestartSpec restart = motor_restart();
};

template <class Visitor>
void describe(Visitor& v, CoolersSpec& s) {
  v.optional("units", s.units, "equal towers or dry coolers", between(1, 1000));
  v.required("capacity", s.capacity, "heat that one rejects at the approach, W", above(0));
  v.optional("kind", s.kind, "tower: to the wet bulb, evaporates water; air: dry, to the dry bulb");
  v.optional("approach", s.approach,
             "water above the outdoor temperature at which it rejects its capacity, K",
             between(0.5, 30));
  v.optional("fan_share", s.fan_share, "power of the fans, part of the heat rejected",
             between(0, 0.2));
  v.optional("economizer", s.economizer, "cools the loop without chillers when it is cold enough");
  v.optional("cycles", s.cycles, "concentration of salts at which water is let off",
             between(1.5, 20));
  v.optional("restart", s.restart, "how one comes back after it stopped");
}

/// Parallel pumps on one system curve: with n of `normal` running the flow is (n/normal)^0.6.
struct PumpsSpec {
  int units = 2;
  int normal = 2;       // as many make the full flow; more units than that stand by
  double share = 0.02;  // power of the full flow, part of the design heat; typical 1-3 %
  UnitRestartSpec restart = motor_restart();
  bool operator==(const PumpsSpec&) const = default;
};

template <class Visitor>
void describe(Visitor& v, PumpsSpec& s) {
  v.optional("units", s.units, "equal pumps", between(1, 1000));
  v.optional("normal", s.normal, "pumps that make the full flow; the others stand by",
             between(1, 1000));
  v.optional("share", s.share, "power at full flow, part of the design heat", between(0, 0.2));
  v.optional("restart", s.restart, "how one comes back after it stopped");
  v.check(s.units >= s.normal, "normal", "at most as many pumps run as there are");
}

/// Facility water: chillers, coolers, pumps, and the water itself.
struct WaterLoopSpec {
  double volume = 100;    // m3, tank included: 6 K carry 5 MW for 500 s
  double set_point = 18;  // typical for machine halls of today; 7 where it dries air as well
  double band = 1;        // typical control band of leaving water
  Watts design_heat{1e6};
  std::optional<ChillersSpec> chillers = {};
  std::optional<CoolersSpec> coolers = {};
  PumpsSpec pumps = {};
};

template <class Visitor>
void describe(Visitor& v, WaterLoopSpec& s) {
  v.optional("volume", s.volume, "water in pipes and buffer tank, m3", above(0));
  v.optional("set_point", s.set_point, "supply temperature, degrees Celsius", between(2, 60));
  v.optional("band", s.band, "above the set-point at full load, K", between(0.05, 20));
  v.required("design_heat", s.design_heat, "heat that it is laid out for, W", above(0));
  v.optional("chillers", s.chillers, "bank <loop>/chiller");
  v.optional("coolers", s.coolers, "bank <loop>/cooler: towers or dry coolers");
  v.optional("pumps", s.pumps, "bank <loop>/pump");
  v.check(s.chillers || s.coolers, "chillers", "something takes the heat out: chillers or coolers");
  v.check(!s.chillers || s.chillers->is_air() || (s.coolers && s.coolers->kind == Rejection::tower),
          "coolers", "chillers with rejection \"tower\" need coolers of kind \"tower\"");
}

/// A room with its air units (CRAH) on a loop.
struct CooledRoomSpec {
  std::string loop = {};
  double set_point = 24;        // supply air; ASHRAE recommends 18-27 degrees at the inlet
  double recirculation = 0.05;  // contained aisles; open aisles 0.2-0.4: typical figures
  double dead_band = 0.5;       // typical
  int units = 4;
  Watts capacity{100e3};
  double difference = 6;     // supply air above loop water at which a unit removes its capacity
  double air_rise = 12;      // typical 10-14 K
  double fan_share = 0.04;   // of the capacity at full speed; typical 2-6 %
  double least_speed = 0.4;  // typical
  UnitRestartSpec restart = motor_restart();
  RoomThermalSpec thermal = {};
};

template <class Visitor>
void describe(Visitor& v, CooledRoomSpec& s) {
  v.required("loop", s.loop, "name of the water loop of its air units");
  v.optional("set_point", s.set_point, "supply air, degrees Celsius", between(5, 45));
  v.optional("recirculation", s.recirculation,
             "part of the air at the inlets that comes from outlets: 0.05 contained, 0.3 open",
             between(0.01, 0.9));
  v.optional("dead_band", s.dead_band, "supply air may stray so far before valves move again, K",
             between(0.05, 5));
  v.optional("units", s.units, "equal air units, bank <room>/crah", between(1, 10000));
  v.required("capacity", s.capacity, "heat that one removes, W", above(0));
  v.optional("difference", s.difference,
             "supply air above loop water at which it removes its capacity, K", between(0.5, 40));
  v.optional("air_rise", s.air_rise, "of air from supply to return at its capacity, K",
             between(3, 40));
  v.optional("fan_share", s.fan_share, "power at full speed, part of the capacity",
             between(0, 0.3));
  v.optional("least_speed", s.least_speed, "least speed of the fans", between(0.05, 1));
  v.optional("restart", s.restart, "how one comes back after it stopped");
  v.optional("thermal", s.thermal, "air and structure");
}

/// Coolant distribution unit with its secondary loop; with `tank` it serves immersion tanks. Of
/// `count` equal ones called "cdu" each has a name of its own: "cdu-1" ... "cdu-64".
struct CduSpec {
  std::string loop = {};
  int count = 1;
  double set_point = 30;  // inside water classes W32 to W40
  double dead_band = 0.5;
  Watts capacity{1e6};
  double approach = 4;  // secondary above facility water at capacity; typical 3-5 K
  double volume = 1.0;  // m3; typical 100 L per rack of 120 kW
  PumpsSpec pumps = {.units = 2, .normal = 2, .share = 0.015};  // typical 1-3 % of the heat
  double tank = 0;  // J/K; 2-4 MJ/K each: 1-2 t of fluid at 1.5-2.2 kJ/kg/K
  bool operator==(const CduSpec&) const = default;
};

template <class Visitor>
void describe(Visitor& v, CduSpec& s) {
  v.required("loop", s.loop, "name of the water loop that it gives its heat to");
  v.optional("count", s.count, "equal units; more than one are called <cdu>-1, <cdu>-2, ...",
             between(1, 10000));
  v.optional("set_point", s.set_point, "coolant supply, degrees Celsius", between(5, 70));
  v.optional("dead_band", s.dead_band, "coolant may stray so far before valves move again, K",
             between(0.05, 5));
  v.required("capacity", s.capacity, "heat that it passes on at the approach, W", above(0));
  v.optional("approach", s.approach, "coolant above facility water at capacity, K",
             between(0.5, 30));
  v.optional("volume", s.volume, "coolant in the secondary loop, m3", above(0));
  v.optional("pumps", s.pumps, "bank <cdu>/pump");
  v.optional("tank", s.tank, "heat capacity of immersion tanks on it, J/K", at_least(0));
}

/// Water at a rack. Every default is a typical figure, and weak: few leaks are published.
struct LeakSpec {
  double per_rack_year = 0.003;  // 0.001-0.01
  double detected = 0.95;        // 0.9-0.99
  Duration detection = std::chrono::seconds(5);
  Duration valve = std::chrono::seconds(15);       // 5-30 s
  Duration found_late = std::chrono::minutes(30);  // by people, when the rope did not
  int neighbours = 2;                              // racks that an undetected one takes along
};

template <class Visitor>
void describe(Visitor& v, LeakSpec& s) {
  v.optional("per_rack_year", s.per_rack_year, "leaks of one liquid-cooled rack a year",
             between(0, 100));
  v.optional("detected", s.detected, "chance that the leak detector sees it", between(0, 1));
  v.optional("detection", s.detection, "from the leak to the alarm, s", at_least(0));
  v.optional("valve", s.valve, "from the alarm to closed valves, s", at_least(0));
  v.optional("found_late", s.found_late, "until a leak is found that the detector missed, s",
             at_least(0));
  v.optional("neighbours", s.neighbours, "racks that such a leak takes along", between(0, 100));
}

/// People who reset what locked out.
struct CoolingCrewSpec {
  int people = 2;
  Duration arrival = std::chrono::minutes(10);  // from the first lock-out; typical, on site
  Duration reset = std::chrono::minutes(15);    // of one unit by one person: typical
};

template <class Visitor>
void describe(Visitor& v, CoolingCrewSpec& s) {
  v.optional("people", s.people, "people on site", between(1, 1000));
  v.optional("arrival", s.arrival, "from the first lock-out until they are there, s", at_least(0));
  v.optional("reset", s.reset, "one person resets one unit, s", at_least(0));
}

struct CoolingLimitsSpec {
  double report = 0.5;          // step of temperatures that the owner is told
  double air_warning = 32;      // upper allowable inlet of ASHRAE class A1
  double air_off = 45;          // of class A4
  double coolant_warning = 45;  // water class W45
  double coolant_off = 55;      // typical figure
  double plate_off = 95;        // typical shut-down of accelerators
  double hysteresis = 5;
};

template <class Visitor>
void describe(Visitor& v, CoolingLimitsSpec& s) {
  v.optional("report", s.report, "change of a rack's temperature that matters, K",
             between(0.01, 10));
  v.optional("air_warning", s.air_warning, "inlet air that is recorded, degrees Celsius",
             between(10, 70));
  v.optional("air_off", s.air_off, "inlet air that shuts racks down, degrees Celsius",
             between(20, 90));
  v.optional("coolant_warning", s.coolant_warning, "coolant that is recorded, degrees Celsius",
             between(10, 90));
  v.optional("coolant_off", s.coolant_off, "coolant that shuts racks down, degrees Celsius",
             between(20, 95));
  v.optional("plate_off", s.plate_off, "cold plate that shuts racks down, degrees Celsius",
             between(40, 150));
  v.optional("hysteresis", s.hysteresis, "below the limit by so much it may run again, K",
             between(0.1, 30));
  v.check(s.air_warning <= s.air_off, "air_warning", "at most air_off");
  v.check(s.coolant_warning <= s.coolant_off, "coolant_warning", "at most coolant_off");
}

struct CoolingPlantSpec {
  WeatherSpec weather = {};
  std::map<std::string, WaterLoopSpec> loops = {};
  std::map<std::string, CooledRoomSpec> rooms = {};
  std::map<std::string, CduSpec> cdus = {};
  std::optional<LeakSpec> leaks = {};
  CoolingCrewSpec crew = {};
  CoolingLimitsSpec limits = {};
  double room_dew_point = 15;  // upper recommended limit of ASHRAE: air is dried to it
};

/// Of all units, in the order of the groups' names: "cdu" is one unit, or "cdu-1", "cdu-2", ...
std::vector<std::string> cdu_names(const std::string& group, const CduSpec& spec);
std::vector<std::string> cdu_names(const CoolingPlantSpec& spec);

template <class Visitor>
void describe(Visitor& v, CoolingPlantSpec& s) {
  v.optional("weather", s.weather, "the air outside");
  v.required("loops", s.loops, "water loops by name");
  v.required("rooms", s.rooms, "rooms by name");
  v.optional("cdus", s.cdus, "coolant distribution units by name");
  v.optional("leaks", s.leaks, "leaks at liquid-cooled racks; default: none");
  v.optional("crew", s.crew, "people who reset what locked out");
  v.optional("limits", s.limits, "temperatures that matter");
  v.optional("room_dew_point", s.room_dew_point,
             "indoor air is dried to this dew point, degrees Celsius; coolant stays 2 K above it",
             between(-10, 30));
  bool loops_exist = true;
  for (const auto& [name, room] : s.rooms) loops_exist = loops_exist && s.loops.contains(room.loop);
  v.check(loops_exist, "rooms", "every room names one of the loops");
  bool are_reached = true;
  for (const auto& [name, cdu] : s.cdus) are_reached = are_reached && s.loops.contains(cdu.loop);
  v.check(are_reached, "cdus", "every CDU names one of the loops");
  const std::vector<std::string> cdus = cdu_names(s);
  const std::set<std::string> unlike(cdus.begin(), cdus.end());
  bool are_unique = true;
  for (const auto& [name, room] : s.rooms)
    are_unique = are_unique && !s.loops.contains(name) && !unlike.contains(name);
  for (const std::string& name : cdus) are_unique = are_unique && !s.loops.contains(name);
  v.check(are_unique, "rooms", "loops, rooms and CDUs have names of their own");
  v.check(unlike.size() == cdus.size(), "cdus",
          "every CDU has a name of its own, those of a group included: of 4 \"cdu\" one is "
          "\"cdu-3\"");
}

/// Where a rack, or a cohort of equal ones, gets its cooling. Numbers are for one rack.
struct RackCoolingSpec {
  std::string room = {};
  std::string cdu = {};
  int count = 1;
  double liquid_share = 0;              // cold plates 0.7-0.9; 1 in a tank: typical
  double air_flow = 40e3 / 12.0;        // W/K: 40 kW at 12 K
  double plate_capacity = 72 * 300;     // 72 accelerators with 300 J/K of die, plate and coolant
  double plate_to_coolant = 72 / 0.03;  // 0.025-0.035 K/W each: typical
  double rear_door = 0;                 // effectiveness against the loop of its room
  Watts rear_door_capacity{30e3};       // passive 20-30 kW, active 40-70 kW: typical
  RackThermalSpec thermal = {};
  bool operator==(const RackCoolingSpec&) const = default;
};

template <class Visitor>
void describe(Visitor& v, RackCoolingSpec& s) {
  v.required("room", s.room, "name of its room");
  v.optional("cdu", s.cdu, "name of its CDU, of one unit; default: air only");
  v.optional("count", s.count, "equal racks that stand and are loaded alike", between(1, 100000));
  v.optional("liquid_share", s.liquid_share, "part of the heat that goes to the coolant",
             between(0, 1));
  v.optional("air_flow", s.air_flow, "air through the servers, mass flow times heat capacity, W/K",
             above(0));
  v.optional("plate_capacity", s.plate_capacity, "dies, cold plates and trapped coolant, J/K",
             above(0));
  v.optional("plate_to_coolant", s.plate_to_coolant, "from them to the coolant at full flow, W/K",
             above(0));
  v.optional("rear_door", s.rear_door, "effectiveness of a rear-door heat exchanger; 0: none",
             between(0, 0.95));
  v.optional("rear_door_capacity", s.rear_door_capacity, "most heat that the door takes, W",
             above(0));
  v.optional("thermal", s.thermal, "air and mass of the rack");
  v.check((s.liquid_share > 0) == !s.cdu.empty(), "cdu",
          "a rack with a liquid share names its CDU, no other does");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Rejection> {
  static constexpr auto all = names<models::Rejection>(
      {{models::Rejection::air, "air"}, {models::Rejection::tower, "tower"}});
};
}  // namespace trainyard
