#include "scenarios/facility_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "scenarios/power_meter.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {

using models::Finding;
using models::NodeLimits;
using models::PlantKind;
using models::SteadyPower;

namespace {

constexpr double rounding = 1e-9;

std::vector<NodeLoad> loads_of(PlantAtRest& plant) {
  std::vector<NodeLoad> loads;
  const SteadyPower& power = *plant.power();
  const models::PowerLayout& graph = power.layout();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeLimits& limits = graph.limits[n];
    const models::PowerPaths::Flow& flow = power.flow(n);
    NodeLoad worst{.node = graph.nodes[n].name, .group = plant.group(n), .kind = plant.kind(n)};
    const auto consider = [&](double load, double allowed, const char* unit,
                              const std::string& where = {}) {
      if (worst.allowed > 0 && load / allowed <= worst.share()) return;
      worst.load = load;
      worst.allowed = allowed;
      worst.unit = unit;
      worst.where = where;
    };
    if (limits.active) consider(flow.out_W, limits.active->value(), "W");
    if (limits.apparent)
      consider(std::hypot(flow.out_W, flow.out_var), limits.apparent->value(), "VA");
    if (limits.current) {
      const std::array<double, 3> lines = power.line_currents_A(n);
      const auto line = std::size_t(std::max_element(lines.begin(), lines.end()) - lines.begin());
      const bool is_even = lines[0] == lines[1] && lines[1] == lines[2];
      consider(lines[line], limits.current->value() * limits.continuous, "A",
               graph.nodes[n].phases == 3 && !is_even ? std::string("line ") + "abc"[line] : "");
    }
    if (worst.allowed > 0) loads.push_back(std::move(worst));
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const NodeLoad& a, const NodeLoad& b) { return a.share() > b.share(); });
  return loads;
}

std::vector<Finding> violations_of(const Scenario& scenario, PlantAtRest& plant) {
  std::vector<Finding> found = models::check_ratings(*plant.power());
  for (Finding& f :
       models::check_servers(*scenario.facility->power, plant.power()->layout(),
                             plant.server(plant.peak_gpu()), int(plant.layout().servers_per_rack)))
    // Of whole racks each is looked at by itself.
    if (f.rating != models::Rating::rack) found.push_back(std::move(f));
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.ratio() > b.ratio(); });
  return found;
}

std::size_t dark_without(SteadyPower& power, const std::vector<std::size_t>& lost) {
  power.solve(lost);
  const auto& racks = power.layout().racks;
  return std::size_t(std::count_if(racks.begin(), racks.end(),
                                   [&](std::size_t rack) { return !power.flow(rack).is_live; }));
}

NodeLoss loss_of(PlantAtRest& plant, std::size_t node) {
  SteadyPower& power = *plant.power();
  const models::Loss loss = models::lose(power, node, {.keep = 0});
  NodeLoss out{.node = power.layout().nodes[node].name, .group = plant.group(node)};
  out.dark_racks = out.dark_after_trips = loss.dark.size();
  out.dark_load = loss.dark_load;
  for (const std::size_t load : loss.dark_loads)
    out.dark_loads.push_back(power.layout().nodes[load].name);
  std::vector<std::size_t> gone{node};
  for (const models::Survivor& s : loss.survivors) {
    if (s.ratio > 1 + rounding) ++out.overloaded;
    if (s.trips) gone.push_back(s.node);
    if (!out.worst) out.worst = {power.layout().nodes[s.node].name, s.ratio, s.before, s.trips};
  }
  if (gone.size() > 1) out.dark_after_trips = dark_without(power, gone);
  return out;
}

/// Of each node but racks with their circuits and other loads; those of one group that do the same
/// are one entry.
std::vector<NodeLoss> losses_of(PlantAtRest& plant) {
  SteadyPower& power = *plant.power();
  const models::PowerLayout& graph = power.layout();
  std::vector<bool> is_passed(graph.nodes.size());
  for (const std::size_t rack : graph.racks) {
    is_passed[rack] = true;
    for (const std::size_t circuit : power.feeds(rack)) is_passed[circuit] = true;
  }
  for (const auto& [name, load] : graph.loads) is_passed[load] = true;
  std::vector<NodeLoss> losses;
  std::map<std::tuple<std::string, std::size_t, std::size_t, std::vector<std::string>, long, long>,
           std::size_t>
      place;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (is_passed[n]) continue;
    NodeLoss loss = loss_of(plant, n);
    const auto key = std::tuple(
        loss.group, loss.dark_racks, loss.dark_after_trips, loss.dark_loads,
        std::lround(loss.worst ? loss.worst->ratio * 1000 : 0),
        std::lround(loss.worst && loss.worst->trips ? to_seconds(*loss.worst->trips) : -1));
    const auto [at, is_new] = place.emplace(key, losses.size());
    if (is_new)
      losses.push_back(std::move(loss));
    else
      ++losses[at->second].alike;
  }
  power.solve();
  std::stable_sort(losses.begin(), losses.end(), [](const NodeLoss& a, const NodeLoss& b) {
    const auto rank = [](const NodeLoss& l) {
      return std::tuple(l.dark_after_trips, l.dark_racks, l.dark_loads.size(), l.overloaded,
                        l.worst ? l.worst->ratio : 0.0);
    };
    return rank(a) > rank(b);
  });
  return losses;
}

}  // namespace

FacilityReport facility_report(const Scenario& scenario) {
  check(scenario.facility.has_value(), "a report on a facility is of a scenario with one");
  Site site(scenario);
  PlantAtRest plant(scenario, power_of_switches(*site.fabric));
  FacilityReport report;
  report.scenario = scenario.name;
  report.racks = plant.layout().racks;
  report.servers = scenario.cluster.servers;
  report.gpus = report.servers * scenario.cluster.server.gpus;
  report.outdoors = plant.outdoors();
  report.idle = plant.roll_up(plant.idle_gpu());
  report.peak = plant.roll_up(plant.peak_gpu());
  report.has_power_graph = plant.power() != nullptr;
  if (plant.power()) {
    report.ratings = loads_of(plant);
    report.violations = violations_of(scenario, plant);
    report.losses = losses_of(plant);
    report.shared = models::shared_points(plant.power()->layout());
  }
  report.steps = step_powers(scenario, site);
  return report;
}

namespace {

// More of a kind are told by their number: a plant that is too small is so in every rack.
constexpr std::size_t told = 3;

void tell(std::vector<std::string>& warnings, const std::vector<std::string>& texts,
          const char* rest) {
  for (std::size_t i = 0; i < std::min(told, texts.size()); ++i)
    warnings.push_back("facility.power: " + texts[i]);
  if (texts.size() > told)
    warnings.push_back("facility.power: " + std::to_string(texts.size() - told) + " more " + rest +
                       "; trainyard facility names them all");
}

bool has_limits(const models::SwingLimitsSpec& s) {
  return s.breaker || s.generator_step || s.ramp || s.range || s.amplitude;
}

}  // namespace

std::vector<std::string> facility_warnings(const Scenario& scenario) {
  std::vector<std::string> warnings = cooling_warnings(scenario);
  if (!scenario.facility) return warnings;
  if (scenario.facility->power) {
    PlantAtRest plant(scenario);
    const auto& loads = scenario.facility->power->loads;
    const bool has_units = std::any_of(loads.begin(), loads.end(),
                                       [](const auto& load) { return !load.second.units.empty(); });
    if (has_units)
      plant.roll_up(plant.peak_gpu());  // what cooling units draw
    else
      plant.load(plant.peak_gpu(), {});
    const models::PowerLayout& graph = plant.power()->layout();
    std::vector<std::string> texts;
    for (const Finding& f : violations_of(scenario, plant))
      texts.push_back("with every GPU at its limit, " + to_text(f));
    tell(warnings, texts, "nodes are overloaded like this");
    texts.clear();
    for (const models::SharedPoint& s : models::shared_points(graph))
      if (graph.nodes[s.node].kind != PlantKind::utility) texts.push_back(to_text(s));
    tell(warnings, texts, "nodes are shared by feeds of one rack");
  }
  if (!has_limits(scenario.facility->swing)) return warnings;
  Site site(scenario);
  for (const models::SwingViolation& v : step_powers(scenario, site).violations)
    warnings.push_back(to_text(v));
  return warnings;
}

}  // namespace trainyard::scenarios
