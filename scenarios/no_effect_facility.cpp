#include <algorithm>

#include "scenarios/no_effect.hpp"

/// Power and cooling: what is only looked at together with something else.
namespace trainyard::scenarios {

void facility_without_effect(NoEffectLines& out) {
  if (!out.scenario.facility) return;
  const FacilitySpec& f = *out.scenario.facility;
  const std::string path = "facility.";
  if (!f.power)
    out.idle(path + "policy", "there is no facility.power whose parts could be overloaded");
  const auto& p = f.policy;
  if (!p.cap) out.idle(path + "policy.cap_delay", "policy.cap is false");
  if (!p.brake) out.idle(path + "policy", {"brake_delay", "brake_ratio"}, "policy.brake is false");
  if (!p.suspend) out.idle(path + "policy.suspend_delay", "policy.suspend is false");
  if (!p.cut) out.idle(path + "policy.cut_delay", "policy.cut is false");
  if (!f.cooling) {
    out.idle(path + "racks", "there is no facility.cooling to give heat to");
    return;
  }
  if (f.racks.rear_door == 0) out.idle(path + "racks.rear_door_capacity", "racks.rear_door is 0");
  if (f.cooling->rooms.size() < 2)
    out.idle(path + "racks.rooms", "there is one room, and all racks stand in it");
  if (f.racks.liquid_share == 0) {
    out.idle(path + "gpu.cold_plate", "racks.liquid_share is 0: GPUs are cooled by air");
    out.idle(path + "cooling.leaks", "no rack has coolant that could leak");
    out.idle(path + "cooling.limits", {"coolant_warning", "coolant_off", "plate_off"},
             "no rack has coolant");
  } else {
    out.idle(path + "gpu.air", "racks.liquid_share is above 0: GPUs have cold plates");
  }
  const auto& weather = f.cooling->weather;
  if (!weather.file.empty())
    out.idle(path + "cooling.weather",
             {"mean", "day_swing", "year_swing", "start_day", "heat_waves"},
             "the hours of weather.file stand in its place");
}

}  // namespace trainyard::scenarios
