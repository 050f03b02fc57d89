#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "models/facility/cooling_plant.hpp"

namespace trainyard::models {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string quoted(const std::string& name) {
  return "\"" + name + "\"";
}

/// "one of north, south" of a map's keys.
template <class Parts>
std::string one_of(const Parts& parts, const char* nothing) {
  std::string text;
  for (const auto& [name, part] : parts) text += (text.empty() ? "one of " : ", ") + name;
  return text.empty() ? nothing : text;
}

std::string one_of_cdus(const CoolingPlantSpec& spec) {
  std::string text;
  for (const auto& [group, s] : spec.cdus) {
    text += (text.empty() ? "one of " : ", ") + group;
    if (s.count > 1) text += "-1 to -" + std::to_string(s.count);
  }
  return text.empty() ? "there are no CDUs" : text;
}

/// All machines running on the day that the chillers are rated for. Coolers without chillers are
/// rated for whatever day gives their approach.
double capacity_W(const WaterLoopSpec& s) {
  const double coolers_W = s.coolers ? s.coolers->units * s.coolers->capacity.value() : 0.0;
  if (!s.chillers) return s.coolers->economizer ? coolers_W : 0.0;
  const ChillersSpec& chillers = *s.chillers;
  const double design = chillers.design_C();
  RemovalInputs in{.mechanical = chillers.units * chillers.capacity.value()};
  if (!chillers.is_air()) {
    in.towers = coolers_W;
    in.work = 1.0 / chiller_cop(chillers, s.set_point, {.dry = design, .wet = design});
  }
  if (s.coolers && s.coolers->economizer && s.coolers->kind == chillers.rejection) {
    in.free_slope = coolers_W / s.coolers->approach;
    in.free_most = coolers_W;
    in.outdoors = design;
  }
  return able(in, s.set_point + s.band);
}

class Inspection {
 public:
  Inspection(const CoolingPlantSpec& spec, std::span<const CooledRack> racks)
      : spec_(spec), racks_(racks) {}

  Problems run() {
    names();
    loops();
    rooms();
    cdus();
    for (const CooledRack& rack : racks_) inspect(rack);
    unused();
    return std::move(problems_);
  }

 private:
  void say(std::string path, std::string what, std::string right) {
    problems_.push_back({std::move(path), std::move(what), std::move(right)});
  }

  void names() {
    const auto inspect_name = [&](const std::string& path, const std::string& name) {
      if (name.find('/') != std::string::npos)
        say(path, quoted(name) + " looks like the name of a unit", "a name without \"/\"");
      const auto [at, is_new] = owners_.emplace(name, path);
      if (!is_new)
        say(path, quoted(name) + " is a name of " + at->second + " already", "another name");
    };
    for (const auto& [name, s] : spec_.loops) inspect_name("loops." + name, name);
    for (const auto& [name, s] : spec_.rooms) inspect_name("rooms." + name, name);
    for (const auto& [group, s] : spec_.cdus)
      for (const std::string& name : cdu_names(group, s)) inspect_name("cdus." + group, name);
    std::set<std::string> racks;
    for (const CooledRack& rack : racks_)
      if (!racks.insert(rack.name).second)
        say("racks." + rack.name, "two entries are called " + quoted(rack.name),
            "a name for each entry");
  }

  void loops() {
    for (const auto& [name, s] : spec_.loops) {
      if (!s.chillers && !s.coolers) {
        say("loops." + name, "nothing takes heat out of the loop", "chillers, coolers or both");
        continue;
      }
      const double able_W = capacity_W(s), design_W = s.design_heat.value();
      if (able_W >= design_W * (1 - 1e-9)) continue;
      say("loops." + name + ".design_heat",
          "its machines remove " + number(able_W / 1e3) + " kW at the design temperature",
          "more units or capacity, or at most that for a design heat of " + number(design_W / 1e3) +
              " kW");
    }
  }

  /// Of a room or a CDU: is there a loop, and is its water cold enough?
  void on_loop(const std::string& path, const std::string& loop, double set_point,
               const char* what) {
    const auto found = spec_.loops.find(loop);
    if (found == spec_.loops.end())
      return say(path + ".loop", "there is no loop " + quoted(loop),
                 one_of(spec_.loops, "there are no loops"));
    used_.insert(loop);
    const double warmest = found->second.set_point + found->second.band;
    if (set_point <= warmest)
      say(path + ".set_point",
          std::string(what) + " at " + number(set_point) + " degrees from water of up to " +
              number(warmest),
          "above that of its loop and the band of it");
  }

  void rooms() {
    for (const auto& [name, s] : spec_.rooms)
      on_loop("rooms." + name, s.loop, s.set_point, "supply air");
  }

  void cdus() {
    for (const auto& [name, s] : spec_.cdus)
      on_loop("cdus." + name, s.loop, s.set_point, "coolant");
  }

  void inspect(const CooledRack& rack) {
    const std::string path = "racks." + rack.name;
    if (!spec_.rooms.contains(rack.spec.room))
      say(path + ".room", "there is no room " + quoted(rack.spec.room),
          one_of(spec_.rooms, "there are no rooms"));
    used_.insert(rack.spec.room);
    const std::string& cdu = rack.spec.cdu;
    if ((rack.spec.liquid_share > 0) == cdu.empty())
      say(path + ".cdu",
          cdu.empty() ? "a liquid share without a CDU" : "a CDU without a liquid share",
          "a rack with a liquid share names its CDU, no other does");
    if (cdu.empty()) return;
    used_.insert(cdu);
    const auto owner = owners_.find(cdu);
    if (owner == owners_.end() || owner->second.rfind("cdus.", 0) != 0)
      say(path + ".cdu", "there is no CDU " + quoted(cdu), one_of_cdus(spec_));
  }

  void unused() {
    for (const auto& [name, s] : spec_.loops)
      if (!used_.contains(name))
        say("loops." + name, "no room and no CDU is on the loop",
            "a room or a CDU, or no such loop");
    for (const auto& [name, s] : spec_.rooms)
      if (!used_.contains(name))
        say("rooms." + name, "no rack is in the room", "a rack, or no such room");
    for (const auto& [group, s] : spec_.cdus) {
      std::vector<std::string> idle;
      for (const std::string& name : cdu_names(group, s))
        if (!used_.contains(name)) idle.push_back(name);
      if (idle.empty()) continue;
      say("cdus." + group,
          idle.size() == 1 ? "no rack is on " + idle.front()
                           : "no rack is on " + std::to_string(idle.size()) + " units, from " +
                                 idle.front() + " on",
          "racks on each, or fewer units");
    }
  }

  const CoolingPlantSpec& spec_;
  std::span<const CooledRack> racks_;
  std::map<std::string, std::string> owners_;  // path of each name
  std::set<std::string> used_;
  Problems problems_;
};

}  // namespace

std::vector<std::string> cdu_names(const std::string& group, const CduSpec& spec) {
  if (spec.count == 1) return {group};
  std::vector<std::string> names;
  for (int i = 1; i <= spec.count; ++i) names.push_back(group + "-" + std::to_string(i));
  return names;
}

std::vector<std::string> cdu_names(const CoolingPlantSpec& spec) {
  std::vector<std::string> all;
  for (const auto& [group, s] : spec.cdus)
    for (std::string& name : cdu_names(group, s)) all.push_back(std::move(name));
  return all;
}

Problems check_cooling(const CoolingPlantSpec& spec, std::span<const CooledRack> racks) {
  return Inspection(spec, racks).run();
}

}  // namespace trainyard::models
