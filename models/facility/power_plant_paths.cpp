#include "models/facility/power_plant_paths.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Complex = std::complex<double>;
constexpr std::uint32_t none = std::uint32_t(-1);

/// The part of a circuit's power that each line gives.
std::array<Complex, 3> weights(Lines lines) {
  const double half = 0.5, side = std::sqrt(3.0) / 6;  // e^(±j30°) / sqrt(3)
  const Complex lags(half, -side), leads(half, side);
  switch (lines) {
    case Lines::abc:
      break;
    case Lines::a:
      return {1.0, 0.0, 0.0};
    case Lines::b:
      return {0.0, 1.0, 0.0};
    case Lines::c:
      return {0.0, 0.0, 1.0};
    case Lines::ab:
      return {lags, leads, 0.0};
    case Lines::bc:
      return {0.0, lags, leads};
    case Lines::ca:
      return {leads, 0.0, lags};
  }
  return {1.0 / 3, 1.0 / 3, 1.0 / 3};
}

/// What a solution needs of a node, apart from its names and specs: these fill the caches else.
struct Figures {
  double no_load_W = 0, a1 = 0, a2_per_W = 0;  // losses
  double volts = 0;                            // current = S / volts
  std::uint32_t first_feed = 0;
  std::uint32_t consumer = none;
  std::uint32_t split = none;
  PlantKind kind = PlantKind::bus;
  bool is_source = false;
  bool is_eco = false;
  bool is_fed_split = false;  // a feed of it is split
};

}  // namespace

struct PowerPaths::Shape {
  std::vector<PlantNode> nodes;
  std::vector<std::vector<std::size_t>> feeds;
  std::vector<std::size_t> order;
  std::vector<std::size_t> consumers;
  std::vector<Figures> figures;
  std::map<std::string, std::size_t> place;
  std::size_t splits = 0;

  explicit Shape(const std::vector<PlantNode>& all)
      : nodes(all), feeds(all.size()), figures(all.size()) {
    for (std::size_t n = 0; n < nodes.size(); ++n)
      check(place.emplace(nodes[n].name, n).second, "names of nodes differ");
    std::vector<std::size_t> open(nodes.size());
    std::vector<std::vector<std::size_t>> fed(nodes.size());
    std::uint32_t first_feed = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      for (const std::string& name : nodes[n].from) {
        const auto found = place.find(name);
        check(found != place.end(), "a feed is a node of the plant");
        feeds[n].push_back(found->second);
        fed[found->second].push_back(n);
      }
      open[n] = feeds[n].size();
      if (open[n] == 0) order.push_back(n);
      set_figures(n, first_feed);
      first_feed += std::uint32_t(feeds[n].size());
    }
    for (std::size_t i = 0; i < order.size(); ++i)
      for (const std::size_t n : fed[order[i]])
        if (--open[n] == 0) order.push_back(n);
    check(order.size() == nodes.size(), "feeds close no loop");
    for (auto n = order.rbegin(); n != order.rend(); ++n) {
      const PlantNode& node = nodes[*n];
      const bool is_uneven = node.phases == 1 ? node.lines != Lines::abc
                                              : figures[*n].split != none && !node.balances();
      for (const std::size_t feed : feeds[*n]) {
        if (!is_uneven || nodes[feed].phases == 1 || figures[feed].split != none) continue;
        figures[feed].split = std::uint32_t(splits++);
      }
    }
    for (std::size_t n = 0; n < nodes.size(); ++n)
      figures[n].is_fed_split = std::any_of(feeds[n].begin(), feeds[n].end(),
                                            [&](auto feed) { return figures[feed].split != none; });
  }

  void set_figures(std::size_t n, std::uint32_t first_feed) {
    const PlantNode& node = nodes[n];
    Figures& f = figures[n];
    const double rated_W = node.rating.value();
    if (rated_W > 0) {
      f.no_load_W = rated_W * node.a0;
      f.a1 = node.a1;
      f.a2_per_W = node.a2 / rated_W;
    }
    f.volts = (node.phases == 3 ? std::sqrt(3.0) : 1.0) * node.voltage.value();
    f.first_feed = first_feed;
    f.kind = node.kind;
    f.is_source = feeds[n].empty();
    f.is_eco = node.ups.mode == UpsMode::eco;
    if (!node.draws()) return;
    f.consumer = std::uint32_t(consumers.size());
    consumers.push_back(n);
  }
};

PowerPaths::PowerPaths(const std::vector<PlantNode>& nodes)
    : shape_(std::make_shared<const Shape>(nodes)), states_(nodes.size()) {
  std::size_t links = 0;
  for (const auto& feeds : shape_->feeds) links += feeds.size();
  links_.resize(links);
  solved_.loads.resize(shape_->consumers.size());
  solved_.flows.resize(nodes.size());
  solved_.lines.resize(shape_->splits);
}

std::size_t PowerPaths::index(const std::string& name) const {
  const auto found = shape_->place.find(name);
  check(found != shape_->place.end(), "a node of the plant has this name");
  return found->second;
}

const PlantNode& PowerPaths::node(std::size_t n) const {
  return shape_->nodes[n];
}

const std::vector<std::size_t>& PowerPaths::feeds(std::size_t n) const {
  return shape_->feeds[n];
}

const std::vector<std::size_t>& PowerPaths::order() const {
  return shape_->order;
}

const std::vector<std::size_t>& PowerPaths::consumers() const {
  return shape_->consumers;
}

std::size_t PowerPaths::consumer(std::size_t n) const {
  return shape_->figures[n].consumer;
}

void PowerPaths::exchange(Solved& other) {
  check(!is_stale_ && other.flows.size() == size(), "solutions take each other's place");
  std::swap(solved_, other);
}

PowerPaths::Solved PowerPaths::start(std::vector<Load> loads) {
  Solved fresh;
  fresh.loads = std::move(loads);
  fresh.flows.resize(solved_.flows.size());
  fresh.lines.resize(solved_.lines.size());
  std::swap(solved_, fresh);
  is_stale_ = true;
  return fresh;
}

void PowerPaths::set_gate(std::size_t n, bool is_closed) {
  if (states_[n].is_closed == is_closed) return;
  states_[n].is_closed = is_closed;
  is_live_known_ = false;
  is_stale_ = true;
}

void PowerPaths::set_source(std::size_t n, std::optional<std::size_t> feed) {
  if (states_[n].source == feed) return;
  states_[n].source = feed;
  is_live_known_ = false;
  is_stale_ = true;
}

void PowerPaths::set_ups(std::size_t n, bool needs_input, double input_share, Watts recharge) {
  is_live_known_ = is_live_known_ && states_[n].needs_input == needs_input;
  is_stale_ = true;
  states_[n].needs_input = needs_input;
  states_[n].input_share = input_share;
  states_[n].recharge_W = recharge.value();
}

void PowerPaths::set_load(std::size_t n, Watts active, VoltAmperes reactive) {
  check(shape_->figures[n].consumer != none, "only racks and loads have a load");
  solved_.loads[shape_->figures[n].consumer] = {active.value(), reactive.value()};
  is_stale_ = true;
}

void PowerPaths::set_draws(std::size_t n, bool draws) {
  if (states_[n].draws == draws) return;
  states_[n].draws = draws;
  is_stale_ = true;
}

Watts PowerPaths::load(std::size_t n) const {
  const std::uint32_t consumer = shape_->figures[n].consumer;
  return Watts(consumer == none ? 0.0 : solved_.loads[consumer].active_W);
}

VoltAmperes PowerPaths::reactive(std::size_t n) const {
  const std::uint32_t consumer = shape_->figures[n].consumer;
  return VoltAmperes(consumer == none ? 0.0 : solved_.loads[consumer].reactive_var);
}

bool PowerPaths::has_live_feed(std::size_t n) const {
  return states_[n].is_fed;
}

void PowerPaths::link(std::size_t n) {
  State& state = states_[n];
  const std::vector<std::size_t>& feeds = shape_->feeds[n];
  std::uint32_t* links = links_.data() + shape_->figures[n].first_feed;
  state.links = 0;
  state.is_fed = false;
  if (shape_->figures[n].kind == PlantKind::transfer) {
    if (!state.source || !states_[feeds[*state.source]].is_live) return;
    links[state.links++] = std::uint32_t(feeds[*state.source]);
    state.is_fed = true;
  } else {
    for (const std::size_t feed : feeds)
      if (states_[feed].is_live) links[state.links++] = std::uint32_t(feed);
    state.is_fed = state.links > 0;
    if (!state.is_fed)  // what it would take is asked of all
      for (const std::size_t feed : feeds) links[state.links++] = std::uint32_t(feed);
  }
  state.share = state.links > 0 ? 1.0 / state.links : 0.0;
}

void PowerPaths::find_live() {
  for (const std::size_t n : shape_->order) {
    State& state = states_[n];
    const Figures& figures = shape_->figures[n];
    link(n);
    const bool is_self_powered = figures.kind == PlantKind::ups && !state.needs_input;
    state.is_live = state.is_closed && (figures.is_source || is_self_powered || state.is_fed);
  }
  is_live_known_ = true;
}

/// The lines of a node whose flow is known, into those of its feeds.
void PowerPaths::split(std::size_t n, Flow& flow) {
  const Figures& figures = shape_->figures[n];
  const PlantNode& node = shape_->nodes[n];
  const Complex out(flow.out_W, flow.out_var), in(flow.in_W, flow.in_var);
  const bool is_split = figures.split != none;
  if (is_split) {
    double most_VA = 0;
    for (const Complex& line : solved_.lines[figures.split])
      most_VA = std::max(most_VA, std::abs(line));
    flow.current = Amperes(most_VA * std::sqrt(3.0) / node.voltage.value());
  }
  if (!figures.is_fed_split || !flow.is_live || !states_[n].is_fed) return;
  Lines3 taken = weights(node.lines);
  for (std::size_t i = 0; i < 3; ++i) {
    const bool passes = is_split && !node.balances() && std::abs(out) > 0;
    taken[i] = passes ? solved_.lines[figures.split][i] * (in / out) : taken[i] * in;
    taken[i] *= states_[n].share;
  }
  for (std::size_t i = 0; i < states_[n].links; ++i) {
    const std::uint32_t split = shape_->figures[links_[figures.first_feed + i]].split;
    if (split == none) continue;
    for (std::size_t line = 0; line < 3; ++line) solved_.lines[split][line] += taken[line];
  }
}

void PowerPaths::pass_up(std::size_t n) {
  const Figures& f = shape_->figures[n];
  const State& state = states_[n];
  Flow& flow = solved_.flows[n];
  Totals& totals = solved_.totals;
  const auto loss = [&f](double out_W) {
    return f.no_load_W + out_W * (f.a1 + f.a2_per_W * out_W);
  };
  if (f.consumer != none) {
    const Load& load = solved_.loads[f.consumer];
    if (flow.is_live && state.draws) {
      flow.out_W = load.active_W;
      flow.out_var = load.reactive_var;
    }
    flow.full_W += load.active_W;
    (f.kind == PlantKind::rack ? totals.to_racks_W : totals.to_loads_W) += flow.out_W;
  }
  flow.full_W += loss(flow.full_W);
  flow.current =
      Amperes(std::sqrt(flow.out_W * flow.out_W + flow.out_var * flow.out_var) / f.volts);
  if (flow.is_live) {
    flow.loss_W = loss(flow.out_W);
    flow.in_W = flow.out_W + flow.loss_W;
    flow.in_var = flow.out_var;
    if (flow.loss_W != 0) totals.losses_W[std::size_t(f.kind)] += flow.loss_W;
  }
  if (f.kind == PlantKind::ups) {
    flow.in_W = flow.in_W * state.input_share + state.recharge_W;
    // Its rectifier takes active power only; in eco mode the load is behind the bypass.
    flow.in_var = f.is_eco ? flow.in_var * state.input_share : 0.0;
    flow.full_W += state.recharge_W;
  }
  if (f.is_source) totals.from_sources_W += flow.in_W;
  if (f.split != none || f.is_fed_split) split(n, flow);
  const std::uint32_t* links = links_.data() + f.first_feed;
  // What all would take stays at a transfer switch: any of its sources may have to give it.
  const double full_W = f.kind == PlantKind::transfer ? 0.0 : flow.full_W * state.share;
  const double in_W = state.is_fed ? flow.in_W * state.share : 0.0;
  const double in_var = state.is_fed ? flow.in_var * state.share : 0.0;
  for (std::uint32_t i = 0; i < state.links; ++i) {
    Flow& feed = solved_.flows[links[i]];
    feed.full_W += full_W;
    feed.out_W += in_W;
    feed.out_var += in_var;
  }
}

void PowerPaths::solve() {
  if (!is_stale_) return;
  if (!is_live_known_) find_live();
  for (std::size_t n = 0; n < states_.size(); ++n) {
    solved_.flows[n] = {};
    solved_.flows[n].is_live = states_[n].is_live;
  }
  std::fill(solved_.lines.begin(), solved_.lines.end(), Lines3{});
  solved_.totals = {};
  for (auto n = shape_->order.rbegin(); n != shape_->order.rend(); ++n) pass_up(*n);
  is_stale_ = false;
}

std::array<double, 3> PowerPaths::line_currents_A(std::size_t n) const {
  const PlantNode& node = shape_->nodes[n];
  const Flow& flow = solved_.flows[n];
  std::array<double, 3> currents{};
  if (!flow.is_live) return currents;
  const std::uint32_t split = shape_->figures[n].split;
  const std::array<Complex, 3> has = weights(node.lines);
  for (std::size_t i = 0; i < 3; ++i) {
    if (split != none)
      currents[i] = std::abs(solved_.lines[split][i]) * std::sqrt(3.0) / node.voltage.value();
    else if (node.phases == 3 || std::abs(has[i]) > 0)
      currents[i] = flow.current.value();
  }
  return currents;
}

PowerPaths::Behind PowerPaths::behind(std::size_t n) const {
  std::vector<double> part(states_.size());  // of what a node takes, through n
  Behind found;
  part[n] = 1.0;
  for (const std::size_t m : shape_->order) {
    const State& state = states_[m];
    if (m != n && state.is_live && state.is_fed)
      for (std::uint32_t i = 0; i < state.links; ++i)
        part[m] += part[links_[shape_->figures[m].first_feed + i]] * state.share;
    const double out_W = solved_.flows[m].out_W;
    if (part[m] == 0.0 || out_W <= 0.0) continue;
    if (shape_->figures[m].kind == PlantKind::rack) {
      found.racks.push_back(m);
      found.racks_W += part[m] * out_W;
    }
    if (shape_->figures[m].kind == PlantKind::load) found.loads_W += part[m] * out_W;
  }
  return found;
}

}  // namespace trainyard::models
