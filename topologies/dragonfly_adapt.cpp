#include <map>
#include <utility>
#include <vector>

#include "topologies/dragonfly_routes.hpp"
#include "topologies/dragonfly_ugal.hpp"

/// UGAL's part of the routes through a dragonfly: from announced traffic to shares.
namespace trainyard::topologies {

void DragonflyRoutes::adapt_to(std::span<const Demand> traffic) {
  if (policy_.kind != RoutingKind::ugal) return;
  demand_.clear();
  for (const Demand& d : traffic) {
    const Place a = groups_.place(d.from), b = groups_.place(d.to);
    if (a != b && d.rate > 0.0) demand_[{a, b}] += d.rate;
  }
  settle();
}

void DragonflyRoutes::state_changed() {
  if (!demand_.empty()) settle();
}

/// Where UGAL settles with the traffic that was announced and what works now.
void DragonflyRoutes::settle() {
  shares_.clear();
  const std::size_t links = fabric_.links().size();
  const std::size_t first = fabric_.first_trunk().index();
  std::vector<double> capacity(links - first), base(links - first, 0.0);
  for (std::size_t l = first; l < links; ++l)
    capacity[l - first] = state_.capacity(LinkId(l)).value();

  // The traffic of one pair of groups after the other; `sum` is the sparse vector of one of them.
  std::map<std::pair<int, int>, std::vector<std::pair<std::pair<Place, Place>, double>>> by_groups;
  for (const auto& [ends, rate] : demand_)
    by_groups[{ends.first.group, ends.second.group}].push_back({ends, rate});
  std::vector<double> sum(links - first, 0.0);
  std::vector<std::uint32_t> touched;
  struct Adder {
    std::vector<double>& sum;
    std::vector<std::uint32_t>& touched;
    std::size_t first;
  } adder{sum, touched, first};
  const LoadVisitor add(
      [](void* context, LinkId l, double w) {
        auto& a = *static_cast<Adder*>(context);
        const auto i = static_cast<std::uint32_t>(l.index() - a.first);
        if (a.sum[i] == 0.0) a.touched.push_back(i);
        a.sum[i] += w;
      },
      &adder);
  const auto take = [&] {
    std::vector<LinkLoad> out;
    for (const std::uint32_t l : touched) {
      out.push_back({l, sum[l]});
      sum[l] = 0.0;
    }
    touched.clear();
    return out;
  };

  std::vector<SplitTraffic> traffic;
  std::vector<std::pair<int, int>> pairs;
  for (const auto& [pair, flows] : by_groups) {
    SplitTraffic t;
    std::vector<const std::pair<std::pair<Place, Place>, double>*> free;  // to choose
    for (const auto& flow : flows) {
      const auto& [from, to] = flow.first;
      const bool is_minimal = has_minimal(from, to), is_detour = has_detour(from, to);
      if (from.group != to.group && is_minimal && is_detour)
        free.push_back(&flow);
      else if (is_minimal)
        visit_minimal(from, to, flow.second, add);
      else if (is_detour)
        visit_detour(from, to, flow.second, add);
    }
    for (const LinkLoad& l : take()) base[l.link] += l.load;
    if (free.empty()) continue;
    for (const auto* flow : free)
      visit_minimal(flow->first.first, flow->first.second, flow->second, add);
    t.minimal = take();
    for (const auto* flow : free)
      visit_detour(flow->first.first, flow->first.second, flow->second, add);
    t.indirect = take();
    traffic.push_back(std::move(t));
    pairs.push_back(pair);
  }
  balance(traffic, std::move(base), capacity);
  const std::size_t g = std::size_t(groups_.groups());
  shares_.assign(g * g, 1.0);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    shares_[std::size_t(pairs[i].first) * g + std::size_t(pairs[i].second)] =
        traffic[i].minimal_share;
}

}  // namespace trainyard::topologies
