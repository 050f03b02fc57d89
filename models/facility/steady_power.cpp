#include "models/facility/steady_power.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

VoltAmperes reactive_of(Watts active, double power_factor) {
  return VoltAmperes(active.value() * reactive_share(power_factor));
}

}  // namespace

SteadyPower::SteadyPower(const PowerLayout& layout) : layout_(layout), paths_(layout.nodes) {
  check(layout.limits.size() == layout.nodes.size(), "each node has its limits");
}

void SteadyPower::set_load(std::size_t node, Watts active, VoltAmperes reactive) {
  paths_.set_load(node, active, reactive);
}

void SteadyPower::set_racks(Watts active, double power_factor) {
  for (const std::size_t rack : layout_.racks)
    paths_.set_load(rack, active, reactive_of(active, power_factor));
}

void SteadyPower::set_loads(const PowerSpec& spec, const std::map<std::string, Watts>& units) {
  for (const auto& [name, watts] : units)
    check(layout_.loads.contains(name), "only loads of the plant have units");
  for (const auto& [name, node] : layout_.loads) {
    const PowerLoadSpec& load = spec.loads.at(name);
    const auto drawn = units.find(name);
    const Watts active = load.constant + (drawn == units.end() ? Watts(0) : drawn->second);
    paths_.set_load(node, active, reactive_of(active, load.power_factor));
  }
}

void SteadyPower::choose_sources(const std::vector<std::size_t>& lost) {
  for (std::size_t n = 0; n < paths_.size(); ++n) paths_.set_gate(n, true);
  for (const std::size_t n : lost) paths_.set_gate(n, false);
  std::vector<bool> is_live(paths_.size(), true);
  for (const std::size_t n : lost) is_live[n] = false;
  for (const std::size_t n : paths_.order()) {
    const std::vector<std::size_t>& feeds = paths_.feeds(n);
    if (feeds.empty()) continue;
    const auto live = std::find_if(feeds.begin(), feeds.end(), [&](auto f) { return is_live[f]; });
    if (live == feeds.end()) is_live[n] = false;
    if (paths_.node(n).kind != PlantKind::transfer) continue;
    paths_.set_source(
        n, live == feeds.end() ? std::nullopt : std::optional(std::size_t(live - feeds.begin())));
  }
}

void SteadyPower::solve(const std::vector<std::size_t>& lost) {
  choose_sources(lost);
  paths_.solve();
}

double SteadyPower::worst_current_A(std::size_t n) const {
  const std::array<double, 3> currents = line_currents_A(n);
  return *std::max_element(currents.begin(), currents.end());
}

}  // namespace trainyard::models
