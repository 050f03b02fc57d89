#include "scenarios/facility_at_rest.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/facility/gpu_power.hpp"
#include "models/facility/power_groups.hpp"
#include "sim/check.hpp"
#include "sim/engine.hpp"

namespace trainyard::scenarios {

using models::PowerKind;

namespace {

constexpr double sheet_die_C = 25;  // of `power_idle`: models/facility/gpu_power_spec.hpp
constexpr auto settling = std::chrono::hours(48);
constexpr auto looked_at = std::chrono::hours(6);

models::Outdoors hottest_hour(const FacilitySpec& spec) {
  const models::Weather weather(spec.cooling->weather, spec.weather);
  const Time end = add(start_of_run, std::chrono::hours(24 * 365));
  return weather.at(weather.hottest(start_of_run, end));
}

}  // namespace

Watts RollUp::lost() const {
  Watts sum{};
  for (const GroupLoss& loss : losses) sum += loss.lost;
  return sum;
}

PlantAtRest::PlantAtRest(const Scenario& scenario) : PlantAtRest(scenario, Watts(0)) {}

PlantAtRest::PlantAtRest(const Scenario& scenario, Watts switches)
    : scenario_(scenario), layout_(scenario), switches_(switches) {
  const FacilitySpec& spec = *scenario.facility;
  if (spec.cooling) outdoors_ = hottest_hour(spec);
  if (!spec.power) return;
  graph_ = models::lay_out_power(*spec.power, int(layout_.racks));
  power_ = std::make_unique<models::SteadyPower>(graph_);
  groups_.resize(graph_.nodes.size());
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
    if (const auto named = models::find_named(*spec.power, graph_.nodes[n].name))
      groups_[n] = named->group;
  for (const std::size_t rack : graph_.racks) {
    groups_[rack] = "racks";
    // Its circuits, feed after feed.
    std::size_t next = 0;
    for (const auto& [name, feed] : spec.power->racks.feeds)
      for (int i = 0; i < feed.circuits; ++i)
        groups_[power_->feeds(rack)[next++]] = "rack feed " + name;
  }
}

std::string PlantAtRest::group(std::size_t node) const {
  return groups_[node];
}

std::string PlantAtRest::kind(std::size_t node) const {
  const auto& nodes = scenario_.facility->power->nodes;
  if (const auto at = nodes.find(groups_[node]); at != nodes.end())
    return std::string(name_of(at->second.kind));
  switch (graph_.nodes[node].kind) {
    case models::PlantKind::rack:
      return "rack";
    case models::PlantKind::breaker:
      return "breaker";
    default:
      return "circuit";
  }
}

Watts PlantAtRest::idle_gpu() const {
  return models::GpuPower(layout_.gpu).static_power(sheet_die_C);
}

Watts PlantAtRest::server(Watts gpu) const {
  const models::ServerSpec& server = scenario_.cluster.server;
  return gpu * server.gpus + server.power_overhead;
}

/// The last rack may be shorter.
std::int64_t PlantAtRest::servers_of(std::size_t rack) const {
  const std::int64_t before = std::int64_t(rack) * layout_.servers_per_rack;
  return std::min(layout_.servers_per_rack, scenario_.cluster.servers - before);
}

void PlantAtRest::load(Watts gpu, const std::map<std::string, Watts>& units) {
  if (!power_) return;
  const double reactive = models::reactive_share(scenario_.facility->power->racks.power_factor);
  for (std::size_t r = 0; r < layout_.racks; ++r) {
    const Watts active = server(gpu) * double(servers_of(r));
    power_->set_load(graph_.racks[r], active, VoltAmperes(active.value() * reactive));
  }
  power_->set_loads(*scenario_.facility->power, units);
  power_->solve();
}

void PlantAtRest::add_losses(RollUp& result) const {
  std::map<std::string, std::size_t> place;
  for (const std::size_t n : power_->order()) {
    if (groups_[n].empty()) continue;
    const auto [at, is_new] = place.emplace(groups_[n], result.losses.size());
    if (is_new) result.losses.push_back({groups_[n], kind(n), 0, Watts(0)});
    GroupLoss& loss = result.losses[at->second];
    ++loss.units;
    loss.lost += Watts(power_->flow(n).loss_W);
  }
  std::erase_if(result.losses, [](const GroupLoss& loss) { return loss.lost <= Watts(0); });
}

/// In an engine of its own: the same laws as in a run.
void PlantAtRest::cool(RollUp& result, Watts gpu) const {
  const FacilitySpec& facility = *scenario_.facility;
  models::CoolingPlantSpec spec = *facility.cooling;
  spec.leaks.reset();
  sim::Engine engine(sim::Seed{1});
  sim::NullRecorder nobody;
  models::CoolingPlant plant(
      engine, nobody, spec, layout_.cooled, {},
      models::WeatherSeries{.dry = {outdoors_->dry}, .wet = {outdoors_->wet}});
  for (std::size_t z = 0; z < layout_.zones.size(); ++z) {
    std::int64_t servers = 0;
    for (const std::size_t r : layout_.zones[z].racks) servers += servers_of(r);
    plant.set_rack_heat(z, server(gpu) * (double(servers) / double(layout_.zones[z].racks.size())));
  }
  const auto are_cooled = [&] {
    for (std::size_t z = 0; z < layout_.zones.size(); ++z)
      if (!plant.is_cooled(z)) return false;
    return true;
  };
  // A plant that falls short never comes to rest.
  for (Time at = add(start_of_run, std::chrono::hours(1));
       at <= add(start_of_run, settling) && result.is_cooled; at = add(at, std::chrono::hours(1))) {
    engine.run_until(at);
    result.is_cooled = are_cooled();
  }
  const models::CoolingPlant::Energy before = plant.energy();
  const Time from = engine.now();
  engine.run_until(add(from, result.is_cooled ? Duration(looked_at) : std::chrono::minutes(1)));
  const models::CoolingPlant::Energy after = plant.energy();
  const double time_s = to_seconds(engine.now() - from);
  const auto mean = [&](Joules models::CoolingPlant::Energy::*what) {
    return Watts((after.*what - before.*what).value() / time_s);
  };
  result.fans = mean(&models::CoolingPlant::Energy::fans);
  result.pumps = mean(&models::CoolingPlant::Energy::pumps);
  result.chillers = mean(&models::CoolingPlant::Energy::chillers);
  result.coolers = mean(&models::CoolingPlant::Energy::coolers);
  if (facility.power) {
    const std::vector<std::string> parts = plant_parts(scenario_);
    for (const auto& [name, load] : facility.power->loads)
      for (const std::string& units : load.units)
        for (const std::string& unit : cooling_units_named(units, parts))
          result.units[name] += plant.power(unit);
  }
  result.limit = plant.limit();
  for (const auto& [name, loop] : spec.loops)
    if (plant.is_short(name)) result.short_loops.push_back(name);
  for (std::size_t z = 0; z < layout_.zones.size(); ++z) {
    const models::RackCondition condition = plant.condition(z);
    result.warmest_air_C = std::max(result.warmest_air_C, condition.air_C);
    if (!layout_.cooled[z].spec.cdu.empty())
      result.coolant_C = std::max(result.coolant_C, condition.coolant_C);
  }
}

RollUp PlantAtRest::roll_up(Watts gpu) {
  RollUp result;
  const double servers = scenario_.cluster.servers;
  result.gpu = gpu;
  result.gpus = gpu * double(scenario_.cluster.server.gpus) * servers;
  result.servers = scenario_.cluster.server.power_overhead * servers;
  result.switches = switches_;
  if (outdoors_) cool(result, gpu);
  load(gpu, result.units);
  if (power_) {
    add_losses(result);
    for (const auto& [name, other] : scenario_.facility->power->loads)
      result.others += other.constant;
  }
  return result;
}

}  // namespace trainyard::scenarios
