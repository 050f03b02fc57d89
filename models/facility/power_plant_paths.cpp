#include "models/facility/power_plant_paths.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/check.hpp"

namespace trainyard::models {

PowerPaths::PowerPaths(const std::vector<PlantNode>& nodes)
    : nodes_(nodes), feeds_(nodes.size()), states_(nodes.size()), flows_(nodes.size()) {
  std::map<std::string, std::size_t> place;
  for (std::size_t n = 0; n < nodes_.size(); ++n)
    check(place.emplace(nodes_[n].name, n).second, "names of nodes differ");
  std::vector<std::size_t> open(nodes_.size());
  std::vector<std::vector<std::size_t>> fed(nodes_.size());
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    for (const std::string& name : nodes_[n].from) {
      const auto found = place.find(name);
      check(found != place.end(), "a feed is a node of the plant");
      feeds_[n].push_back(found->second);
      fed[found->second].push_back(n);
    }
    open[n] = feeds_[n].size();
    if (open[n] == 0) order_.push_back(n);
  }
  for (std::size_t i = 0; i < order_.size(); ++i)
    for (const std::size_t n : fed[order_[i]])
      if (--open[n] == 0) order_.push_back(n);
  check(order_.size() == nodes_.size(), "feeds close no loop");
}

std::size_t PowerPaths::index(const std::string& name) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [&](const PlantNode& node) { return node.name == name; });
  check(found != nodes_.end(), "a node of the plant has this name");
  return std::size_t(found - nodes_.begin());
}

void PowerPaths::set_ups(std::size_t n, bool needs_input, double input_share, Watts recharge) {
  states_[n].needs_input = needs_input;
  states_[n].input_share = input_share;
  states_[n].recharge_W = recharge.value();
}

void PowerPaths::set_load(std::size_t n, Watts active, VoltAmperes reactive) {
  states_[n].load_W = active.value();
  states_[n].load_var = reactive.value();
}

bool PowerPaths::has_live_feed(std::size_t n) const {
  if (nodes_[n].kind == PlantKind::transfer)
    return states_[n].source && flows_[feeds_[n][*states_[n].source]].is_live;
  return std::any_of(feeds_[n].begin(), feeds_[n].end(),
                     [&](std::size_t feed) { return flows_[feed].is_live; });
}

void PowerPaths::pass_up(std::size_t n) {
  const PlantNode& node = nodes_[n];
  const State& state = states_[n];
  Flow& flow = flows_[n];
  const double rated_W = node.rating.value();
  const auto loss = [&](double out_W) {
    const double x = rated_W > 0 ? out_W / rated_W : 0.0;
    return rated_W * (node.a0 + node.a1 * x + node.a2 * x * x);
  };
  if (node.kind == PlantKind::rack) {
    const bool draws = flow.is_live && state.draws;
    flow.out_W = draws ? state.load_W : 0.0;
    flow.out_var = draws ? state.load_var : 0.0;
    flow.full_W += state.load_W;
  }
  flow.full_W += loss(flow.full_W);
  const double conductors = node.phases == 3 ? std::sqrt(3.0) : 1.0;
  flow.current =
      Amperes(std::hypot(flow.out_W, flow.out_var) / (conductors * node.voltage.value()));
  if (flow.is_live) {
    flow.loss_W = loss(flow.out_W);
    flow.in_W = flow.out_W + flow.loss_W;
    flow.in_var = flow.out_var;
  }
  if (node.kind == PlantKind::ups) {
    flow.in_W = flow.in_W * state.input_share + state.recharge_W;
    // Its rectifier takes active power only; in eco mode the load is behind the bypass.
    flow.in_var = node.ups.mode == UpsMode::eco ? flow.in_var * state.input_share : 0.0;
    flow.full_W += state.recharge_W;
  }
  if (feeds_[n].empty()) return;
  if (node.kind == PlantKind::transfer) {
    if (!state.source) return;
    Flow& feed = flows_[feeds_[n][*state.source]];
    if (feed.is_live) {
      feed.out_W += flow.in_W;
      feed.out_var += flow.in_var;
    }
    return;  // what all would take is kept here: any of its sources may have to give it
  }
  const bool is_fed = has_live_feed(n);
  double count = 0;
  for (const std::size_t feed : feeds_[n]) count += flows_[feed].is_live || !is_fed ? 1.0 : 0.0;
  for (const std::size_t feed : feeds_[n]) {
    if (is_fed && !flows_[feed].is_live) continue;
    flows_[feed].full_W += flow.full_W / count;
    if (!is_fed) continue;
    flows_[feed].out_W += flow.in_W / count;
    flows_[feed].out_var += flow.in_var / count;
  }
}

void PowerPaths::solve() {
  for (const std::size_t n : order_) {
    Flow& flow = flows_[n] = {};
    const bool is_source = feeds_[n].empty();
    const bool is_self_powered = nodes_[n].kind == PlantKind::ups && !states_[n].needs_input;
    flow.is_live = states_[n].is_closed && (is_source || is_self_powered || has_live_feed(n));
  }
  for (auto n = order_.rbegin(); n != order_.rend(); ++n) pass_up(*n);
}

std::vector<std::size_t> PowerPaths::racks_behind(std::size_t n) const {
  std::vector<bool> is_behind(nodes_.size());
  std::vector<std::size_t> racks;
  is_behind[n] = true;
  for (const std::size_t m : order_) {
    if (m != n && flows_[m].is_live) {
      for (std::size_t i = 0; i < feeds_[m].size(); ++i) {
        if (nodes_[m].kind == PlantKind::transfer && states_[m].source != i) continue;
        if (is_behind[feeds_[m][i]] && flows_[feeds_[m][i]].is_live) is_behind[m] = true;
      }
    }
    if (is_behind[m] && nodes_[m].kind == PlantKind::rack && flows_[m].out_W > 0)
      racks.push_back(m);
  }
  return racks;
}

}  // namespace trainyard::models
