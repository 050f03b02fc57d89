#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/cooling_spec.hpp"
#include "models/facility/gpu_power_spec.hpp"
#include "models/facility/power_policy_spec.hpp"
#include "models/facility/power_spec.hpp"
#include "models/facility/step_power_spec.hpp"
#include "models/facility/weather.hpp"
#include "models/failures/plant_faults_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// What a scenario says about the plant behind its racks: the power graph, what its operator does,
/// the cooling, and how warm GPUs may become. Racks are those of cluster.parents.
///
///     "cluster":  { …, "parents": { "servers_per_rack": 4, "servers_per_cdu": 32 } },
///     "facility": {
///       "power":   { "nodes": { "utility": {"kind": "utility"}, … },
///                    "racks": { "feeds": { "a": {"from": "pdu"}, … } } },
///       "cooling": { "loops": {…}, "rooms": { "hall": {"loop": "north", …} }, "cdus": {…} },
///       "racks":   { "liquid_share": 0.8 }
///     }
///
/// Either of power and cooling may be left out: then it never fails and is not counted.
namespace trainyard::scenarios {

/// How racks stand in rooms and give their heat away. All racks are equal.
struct FacilityRacksSpec {
  std::vector<std::string> rooms = {};
  double liquid_share = 0;
  double air_rise = 12;  // typical 10-14 K
  double rear_door = 0;
  Watts rear_door_capacity{30e3};  // passive 20-30 kW, active 40-70 kW: typical
  double mass_capacity = 300e3;    // 600 kg of steel and servers at 0.5 kJ/kg/K
};

template <class Visitor>
void describe(Visitor& v, FacilityRacksSpec& s) {
  v.optional("rooms", s.rooms,
             "rooms by name, in the order of racks, each with an equal part of them; default: all");
  v.optional(
      "liquid_share", s.liquid_share,
      "part of the heat that cold plates give to the coolant of the CDU; 0: air only, 0.7 to "
      "0.9 usual",
      between(0, 1));
  v.optional("air_rise", s.air_rise, "of air through the servers at full load, K", between(3, 40));
  v.optional("rear_door", s.rear_door,
             "effectiveness of a rear-door heat exchanger on the loop of the room; 0: none",
             between(0, 0.95));
  v.optional("rear_door_capacity", s.rear_door_capacity, "most heat that the door takes, W",
             above(0));
  v.optional("mass_capacity", s.mass_capacity, "steel and servers of a rack, J/K", above(0));
}

struct FacilitySpec {
  std::optional<models::PowerSpec> power = {};
  models::PowerPolicySpec policy = {};
  std::optional<models::CoolingPlantSpec> cooling = {};
  FacilityRacksSpec racks = {};
  std::optional<models::GpuPowerSpec> gpu = {};
  Duration detection = std::chrono::seconds(10);  // heart-beats of a job: typical 5-30 s
  models::SwingLimitsSpec swing = {};
  std::map<std::string, models::PlantFaultSpec> faults = {};
  std::map<std::string, models::PlantScriptSpec> script = {};
  std::optional<models::WeatherSeries> weather = {};  // what cooling.weather.file holds
};

template <class Visitor>
void describe(Visitor& v, FacilitySpec& s) {
  v.optional("power", s.power, "the power graph; default: power never fails and has no losses");
  v.optional("policy", s.policy, "what the operator does when a part of it carries too much");
  v.optional("cooling", s.cooling, "the cooling plant; default: racks are always cool enough");
  v.optional("racks", s.racks, "how racks stand in rooms and give their heat away");
  v.optional("gpu", s.gpu,
             "power, clocks and temperature limits of a GPU; default: from its data sheet");
  v.optional("detection", s.detection,
             "from the moment that servers lose power or cooling until their job knows, s",
             at_least(0));
  v.optional("swing", s.swing,
             "limits for the power of training, second by second; what is passed is a warning");
  v.optional("faults", s.faults, "parts of the plant that fail at random, by name");
  v.optional("script", s.script, "what happens to parts of the plant at given times, by name");
  v.check(s.power || s.cooling, "power", "a facility has power, cooling or both");
}

}  // namespace trainyard::scenarios
