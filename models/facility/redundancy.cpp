#include "models/facility/redundancy.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/facility/breaker.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr std::size_t outside = std::size_t(-1);  // above all sources

/// The tree of immediate dominators.
class DominatorTree {
 public:
  explicit DominatorTree(const PowerPaths& paths)
      : above_(paths.size(), outside), depth_(paths.size(), 0) {
    for (const std::size_t n : paths.order()) {
      const std::vector<std::size_t>& feeds = paths.feeds(n);
      if (feeds.empty()) continue;
      std::size_t common = feeds.front();
      for (const std::size_t feed : feeds) common = meet(common, feed);
      above_[n] = common;
      depth_[n] = common == outside ? 0 : depth_[common] + 1;
    }
  }

  std::vector<std::size_t> of(std::size_t n) const {
    std::vector<std::size_t> all;
    for (n = above_[n]; n != outside; n = above_[n]) all.push_back(n);
    return all;
  }

 private:
  std::size_t meet(std::size_t a, std::size_t b) const {
    while (a != b) {
      if (a == outside || b == outside) return outside;
      std::size_t& deeper = depth_[a] >= depth_[b] ? a : b;
      deeper = above_[deeper];
    }
    return a;
  }

  std::vector<std::size_t> above_;
  std::vector<std::size_t> depth_;
};

/// State before a loss.
struct Before {
  std::vector<double> ratio;
  std::vector<double> current_A;
  std::vector<double> active_W;
};

double ratio_of(const SteadyPower& power, std::size_t n) {
  const NodeLimits& limits = power.layout().limits[n];
  const PowerPaths::Flow& flow = power.flow(n);
  double ratio = 0.0;
  if (limits.active) ratio = std::max(ratio, flow.out_W / limits.active->value());
  if (limits.apparent)
    ratio = std::max(ratio, std::hypot(flow.out_W, flow.out_var) / limits.apparent->value());
  if (limits.current) ratio = std::max(ratio, power.worst_current_A(n) / limits.current->value());
  return ratio;
}

Before whole(SteadyPower& power) {
  power.solve();
  Before before;
  for (std::size_t n = 0; n < power.layout().nodes.size(); ++n) {
    before.ratio.push_back(ratio_of(power, n));
    before.current_A.push_back(power.worst_current_A(n));
    before.active_W.push_back(power.flow(n).out_W);
  }
  return before;
}

bool has_rating(const NodeLimits& limits) {
  return limits.active || limits.apparent || limits.current;
}

Loss lose(SteadyPower& power, std::size_t lost, const NMinus1Options& options,
          const Before& before) {
  const PowerLayout& layout = power.layout();
  power.solve({lost});
  Loss loss;
  loss.node = lost;
  for (const std::size_t rack : layout.racks) {
    if (power.flow(rack).is_live) continue;
    loss.dark.push_back(rack);
    loss.dark_load += power.load(rack);
  }
  for (const auto& [name, load] : layout.loads)
    if (!power.flow(load).is_live) loss.dark_loads.push_back(load);
  for (std::size_t n = 0; n < layout.nodes.size(); ++n) {
    const PowerPaths::Flow& flow = power.flow(n);
    const NodeLimits& limits = layout.limits[n];
    if (n == lost || !flow.is_live || !has_rating(limits)) continue;
    if (layout.nodes[n].draws()) continue;
    if (options.only_more && flow.out_W <= before.active_W[n] * (1 + 1e-12)) continue;
    Survivor s;
    s.node = n;
    s.active = Watts(flow.out_W);
    s.apparent = VoltAmperes(std::hypot(flow.out_W, flow.out_var));
    s.current = Amperes(power.worst_current_A(n));
    s.ratio = ratio_of(power, n);
    s.before = before.ratio[n];
    if (layout.nodes[n].kind == PlantKind::breaker) {
      const double rated_A = limits.current->value();
      const double was = before.current_A[n] / rated_A;
      s.trips = trip_time(layout.nodes[n].breaker, was * was, s.current.value() / rated_A);
    }
    loss.survivors.push_back(s);
  }
  std::stable_sort(loss.survivors.begin(), loss.survivors.end(),
                   [](const Survivor& a, const Survivor& b) { return a.ratio > b.ratio; });
  if (options.keep > 0 && loss.survivors.size() > options.keep) loss.survivors.resize(options.keep);
  return loss;
}

std::string percent(double ratio) {
  return std::to_string(std::lround(ratio * 100)) + " %";
}

}  // namespace

std::vector<std::size_t> dominators(const PowerLayout& layout, std::size_t n) {
  return DominatorTree(PowerPaths(layout.nodes)).of(n);
}

std::vector<SharedPoint> shared_points(const PowerLayout& layout) {
  std::vector<SharedPoint> shared;
  std::vector<std::size_t> several;  // racks, then loads
  if (layout.feeds.size() > 1) several = layout.racks;
  for (const auto& [name, load] : layout.loads)
    if (layout.nodes[load].from.size() > 1) several.push_back(load);
  if (several.empty()) return shared;
  const DominatorTree tree{PowerPaths(layout.nodes)};
  std::map<std::size_t, std::size_t> place;  // of a node in `shared`
  std::vector<std::size_t> distance;         // from the nearest rack
  for (const std::size_t user : several) {
    std::size_t steps = 0;
    for (const std::size_t n : tree.of(user)) {
      const auto [at, is_new] = place.emplace(n, shared.size());
      if (is_new) {
        shared.push_back({n, layout.nodes[n].name, {}, layout.feeds, {}});
        distance.push_back(steps);
      }
      const PlantNode& node = layout.nodes[user];
      SharedPoint& point = shared[at->second];
      (node.kind == PlantKind::rack ? point.racks : point.loads).push_back(node.name);
      distance[at->second] = std::min(distance[at->second], steps++);
    }
  }
  std::vector<std::size_t> order(shared.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
  std::vector<SharedPoint> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(shared[i]));
  return sorted;
}

std::string to_text(const SharedPoint& shared) {
  if (shared.racks.empty()) {
    std::string text = "all feeds of ";
    for (std::size_t i = 0; i < shared.loads.size(); ++i)
      text += (i > 0 ? ", " : "") + shared.loads[i];
    return text + " go through " + shared.name;
  }
  std::string text = shared.racks.front() + "'s feeds ";
  for (std::size_t i = 0; i < shared.feeds.size(); ++i) {
    if (i > 0) text += i + 1 == shared.feeds.size() ? " and " : ", ";
    text += shared.feeds[i];
  }
  text += " share " + shared.name;
  if (shared.racks.size() == 2) text += ", so do " + shared.racks[1] + "'s";
  if (shared.racks.size() > 2)
    text += ", so do those of " + std::to_string(shared.racks.size() - 1) + " more racks";
  for (const std::string& load : shared.loads) text += ", and all of " + load;
  return text;
}

std::string to_text(const Loss& loss, const PowerLayout& layout) {
  std::string text = "without " + layout.nodes[loss.node].name + ": ";
  if (!loss.dark.empty()) {
    text += std::to_string(loss.dark.size()) + (loss.dark.size() == 1 ? " rack" : " racks");
    text += " dark (" + trainyard::to_text(loss.dark_load) + ")";
  } else {
    text += "all racks fed";
  }
  for (const std::size_t load : loss.dark_loads)
    text += ", " + layout.nodes[load].name + " without power";
  if (loss.survivors.empty()) return text;
  const Survivor& s = loss.survivors.front();
  text += "; " + layout.nodes[s.node].name + " at " + percent(s.ratio) + " of its rating, before " +
          percent(s.before);
  if (s.trips) text += ", trips after " + trainyard::to_text(*s.trips);
  return text;
}

Loss lose(SteadyPower& power, std::size_t lost, const NMinus1Options& options) {
  check(lost < power.layout().nodes.size(), "a node of the plant is lost", lost);
  const Before before = whole(power);
  return lose(power, lost, options, before);
}

std::vector<Loss> n_minus_1(SteadyPower& power, const NMinus1Options& options) {
  const PowerLayout& layout = power.layout();
  const Before before = whole(power);
  std::vector<Loss> losses;
  std::vector<bool> is_circuit(layout.nodes.size());
  for (const std::size_t rack : layout.racks)
    for (const std::size_t feed : power.feeds(rack)) is_circuit[feed] = true;
  for (std::size_t n = 0; n < layout.nodes.size(); ++n) {
    if (layout.nodes[n].draws()) continue;
    if (is_circuit[n] && !options.circuits) continue;
    losses.push_back(lose(power, n, options, before));
  }
  power.solve();
  std::stable_sort(losses.begin(), losses.end(), [](const Loss& a, const Loss& b) {
    if (a.worst() != b.worst()) return a.worst() > b.worst();
    return a.dark_load > b.dark_load;
  });
  return losses;
}

}  // namespace trainyard::models
