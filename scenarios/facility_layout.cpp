#include "scenarios/facility_layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/facility/power_layout.hpp"
#include "models/failures/plant_faults.hpp"
#include "scenarios/diagnostic.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

const models::CduSpec& cdu_of(const models::CoolingPlantSpec& spec, const std::string& name) {
  for (const auto& [group, cdu] : spec.cdus) {
    const std::vector<std::string> units = models::cdu_names(group, cdu);
    if (std::find(units.begin(), units.end(), name) != units.end()) return cdu;
  }
  check(false, "a CDU of this name exists: " + name);
  return spec.cdus.begin()->second;
}

std::vector<std::string> rooms_in_order(const FacilitySpec& spec) {
  if (!spec.racks.rooms.empty()) return spec.racks.rooms;
  std::vector<std::string> rooms;
  for (const auto& [name, room] : spec.cooling->rooms) rooms.push_back(name);
  return rooms;
}

std::size_t parts_of(std::size_t all, std::size_t each) {
  return (all + each - 1) / each;
}

}  // namespace

std::vector<std::string> plant_parts(const Scenario& scenario) {
  std::vector<std::string> names;
  const FacilitySpec& spec = *scenario.facility;
  const auto bank = [&](const std::string& owner, const char* what, int units) {
    for (int i = 1; i <= units; ++i) names.push_back(owner + "/" + what + "-" + std::to_string(i));
  };
  if (spec.power) {
    const auto racks =
        int(parts_of(std::size_t(scenario.cluster.servers),
                     std::size_t(scenario.cluster.parents.servers_per_rack.value_or(1))));
    for (const models::PlantNode& node : models::lay_out_power(*spec.power, racks).nodes)
      if (node.kind != models::PlantKind::rack && node.kind != models::PlantKind::load)
        names.push_back(node.name);
  }
  if (!spec.cooling) return names;
  for (const auto& [name, loop] : spec.cooling->loops) {
    if (loop.chillers) bank(name, "chiller", loop.chillers->units);
    if (loop.coolers) bank(name, "cooler", loop.coolers->units);
    bank(name, "pump", loop.pumps.units);
  }
  for (const auto& [name, room] : spec.cooling->rooms) bank(name, "crah", room.units);
  for (const std::string& name : models::cdu_names(*spec.cooling))
    bank(name, "pump", cdu_of(*spec.cooling, name).pumps.units);
  return names;
}

std::vector<std::string> cooling_units_named(const std::string& name,
                                             const std::vector<std::string>& parts) {
  std::vector<std::string> units;
  for (const std::string& part : parts) {
    const std::size_t slash = part.find('/');
    if (slash == std::string::npos || part.rfind("rack-", 0) == 0) continue;
    const std::string owner = part.substr(0, slash), bank = part.substr(0, part.rfind('-'));
    if (name == part || name == bank || name == owner) units.push_back(part);
  }
  return units;
}

FacilityLayout::FacilityLayout(const Scenario& scenario) {
  check(scenario.facility && scenario.cluster.parents.servers_per_rack, "a facility has racks");
  const FacilitySpec& spec = *scenario.facility;
  const models::ServerSpec& server = scenario.cluster.server;
  servers_per_rack = *scenario.cluster.parents.servers_per_rack;
  racks = parts_of(std::size_t(scenario.cluster.servers), std::size_t(servers_per_rack));
  gpu = spec.gpu ? *spec.gpu : models::gpu_power_of(server.gpu);
  const bool has_plates = spec.racks.liquid_share > 0;
  cooler = has_plates ? gpu.cold_plate : gpu.air;
  rack_power = (gpu.power_limit * server.gpus + server.power_overhead) * double(servers_per_rack);
  if (!spec.cooling) return;

  const std::vector<std::string> rooms = rooms_in_order(spec);
  const std::vector<std::string> cdus = models::cdu_names(*spec.cooling);
  const std::size_t racks_per_room = parts_of(racks, rooms.size());
  const auto servers_per_cdu =
      std::size_t(scenario.cluster.parents.servers_per_cdu.value_or(scenario.cluster.servers));
  const double gpus = double(server.gpus) * double(servers_per_rack);

  models::RackCoolingSpec rack;
  rack.liquid_share = spec.racks.liquid_share;
  rack.air_flow = std::max(rack_power.value() * (1 - rack.liquid_share), 1.0) / spec.racks.air_rise;
  rack.plate_capacity = gpus * gpu.cold_plate.capacity;
  rack.plate_to_coolant = gpus / gpu.cold_plate.resistance;
  rack.rear_door = spec.racks.rear_door;
  rack.rear_door_capacity = spec.racks.rear_door_capacity;
  rack.thermal.mass_capacity = spec.racks.mass_capacity;

  std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;
  zone_of.resize(racks);
  for (std::size_t r = 0; r < racks; ++r) {
    const std::size_t room = r / racks_per_room;
    const std::size_t cdu =
        has_plates ? r * std::size_t(servers_per_rack) / servers_per_cdu : cdus.size();
    const auto [at, is_new] = known.emplace(std::pair(room, cdu), zones.size());
    if (is_new) {
      rack.room = rooms[room];
      rack.cdu = has_plates ? cdus.at(cdu) : std::string();
      zones.push_back({.name = has_plates ? rack.cdu : rack.room, .racks = {}});
      cooled.push_back({"", rack});
    }
    zone_of[r] = at->second;
    zones[at->second].racks.push_back(r);
  }
  for (std::size_t z = 0; z < zones.size(); ++z) {
    const auto same = [&](const FacilityZone& other) { return other.name == zones[z].name; };
    if (std::count_if(zones.begin(), zones.end(), same) > 1)
      zones[z].name = cooled[z].spec.room + "/" + zones[z].name;
    cooled[z].name = "racks of " + zones[z].name;
    cooled[z].spec.count = int(zones[z].racks.size());
  }
  const models::CooledRoomSpec& first = spec.cooling->rooms.at(rooms.front());
  idle_C = has_plates ? cdu_of(*spec.cooling, cooled.front().spec.cdu).set_point : first.set_point;
}

namespace {

/// Somebody may want to see what too few machines do.
bool is_a_warning(const Problem& problem) {
  return problem.path.ends_with(".design_heat");
}

class FacilityChecks {
 public:
  explicit FacilityChecks(const Scenario& scenario)
      : scenario_(scenario), spec_(*scenario.facility) {}

  Problems check() {
    if (!scenario_.cluster.parents.servers_per_rack) {
      add("cluster.parents", "a facility feeds and cools racks, and there are none",
          "\"parents\": { \"servers_per_rack\": 4 }");
      return problems_;
    }
    if (spec_.power) under("facility.power", models::check_power(*spec_.power));
    if (spec_.cooling) cooling_fits();
    if (problems_.empty() && spec_.cooling) {
      Problems found = models::check_cooling(*spec_.cooling, FacilityLayout(scenario_).cooled);
      std::erase_if(found, is_a_warning);
      under("facility.cooling", found);
    }
    if (problems_.empty()) faults_fit();
    if (problems_.empty() && spec_.power) loads_fit();
    return problems_;
  }

 private:
  void add(std::string path, std::string what, std::string right) {
    problems_.push_back({std::move(path), std::move(what), std::move(right)});
  }
  void under(const std::string& prefix, const Problems& found) {
    for (const Problem& p : found) add(prefix + "." + p.path, p.what, p.right);
  }

  void cooling_fits() {
    const auto& cooling = *spec_.cooling;
    for (const std::string& room : spec_.racks.rooms)
      if (!cooling.rooms.contains(room))
        add("facility.racks.rooms", "there is no room \"" + room + "\"", "one of the rooms");
    if (cooling.rooms.empty())
      add("facility.cooling.rooms", "racks stand in rooms, and there are none",
          "\"rooms\": { \"hall\": { \"loop\": …, \"capacity\": … } }");
    const bool has_plates = spec_.racks.liquid_share > 0;
    if (!has_plates && !cooling.cdus.empty())
      add("facility.cooling.cdus", "no rack has cold plates, so nothing is on a CDU",
          "facility.racks.liquid_share above 0, or no CDUs");
    if (!has_plates) return;
    const auto per_cdu = scenario_.cluster.parents.servers_per_cdu;
    if (!per_cdu) {
      add("cluster.parents.servers_per_cdu", "racks with cold plates hang on CDUs",
          "how many servers share one");
      return;
    }
    const auto servers = std::size_t(scenario_.cluster.servers);
    const auto per_rack = std::size_t(*scenario_.cluster.parents.servers_per_rack);
    if (std::size_t(*per_cdu) % per_rack != 0)
      add("cluster.parents.servers_per_cdu",
          std::to_string(*per_cdu) + " servers are no whole number of racks of " +
              std::to_string(per_rack),
          "a multiple of servers_per_rack");
    const std::size_t needed = parts_of(servers, std::size_t(*per_cdu));
    const std::size_t there = models::cdu_names(cooling).size();
    if (needed != there)
      add("facility.cooling.cdus",
          "there are " + std::to_string(there) + ", but " + std::to_string(servers) +
              " servers with " + std::to_string(*per_cdu) + " a CDU need " + std::to_string(needed),
          "as many as the cluster has, by \"count\" or by name");
  }

  void loads_fit() {
    const std::vector<std::string> parts = plant_parts(scenario_);
    std::map<std::string, std::string> feeds;
    for (const auto& [name, load] : spec_.power->loads)
      for (const std::string& units : load.units) {
        const std::vector<std::string> found = cooling_units_named(units, parts);
        const std::string path = "facility.power.loads." + name + ".units";
        if (found.empty())
          add(path, "there is no cooling unit, bank or owner \"" + units + "\"",
              "such as \"north/chiller\", \"hall\"");
        for (const std::string& unit : found)
          if (const auto [at, is_new] = feeds.emplace(unit, name); !is_new)
            add(path, unit + " is fed by " + at->second + " already", "one load for each unit");
      }
  }

  void faults_fit() {
    if (spec_.faults.empty() && spec_.script.empty()) return;
    under("facility",
          models::check_plant_faults(spec_.faults, spec_.script, plant_parts(scenario_), nearest));
    using models::PlantAction;
    for (const auto& [name, entry] : spec_.script) {
      const std::string path = "facility.script." + name + ".action";
      const bool is_of_cooling = entry.part.find('/') != std::string::npos;
      if (entry.action == PlantAction::people && !spec_.cooling)
        add(path, "people reset what locked out in the cooling plant, and there is none",
            "facility.cooling");
      if (entry.action == PlantAction::trip && !is_of_cooling)
        add(path, "\"" + entry.part + "\" is no unit of the cooling plant",
            "\"fail\", which opens a breaker and takes anything else down");
      if (entry.action == PlantAction::return_by_hand && is_of_cooling)
        add(path, "\"" + entry.part + "\" is no UPS", "\"restore\"");
    }
  }

  const Scenario& scenario_;
  const FacilitySpec& spec_;
  Problems problems_;
};

}  // namespace

std::vector<std::string> cooling_warnings(const Scenario& scenario) {
  std::vector<std::string> warnings;
  if (!scenario.facility || !scenario.facility->cooling) return warnings;
  for (const Problem& p :
       models::check_cooling(*scenario.facility->cooling, FacilityLayout(scenario).cooled))
    if (is_a_warning(p))
      warnings.push_back("facility.cooling." + p.path + ": " + p.what +
                         ", would be right: " + p.right);
  return warnings;
}

Problems check_facility(const Scenario& scenario) {
  if (!scenario.facility) return {};
  return FacilityChecks(scenario).check();
}

}  // namespace trainyard::scenarios
