#include "topologies/bisection.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::topologies {

namespace {

// Whole bytes per second: push-relabel with rounding errors need not end. 1e6 ports of 100 GB/s are
// 1e17, so sums fit in 63 bits.
using Rate = std::int64_t;

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using Graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<
        boost::edge_capacity_t, Rate,
        boost::property<boost::edge_residual_capacity_t, Rate,
                        boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

/// An edge with a residual edge of its own: Boost's push-relabel returns surplus only along edges
/// of capacity zero, so the two directions of a cable cannot be each other's residual.
void join(Graph& g, std::size_t from, std::size_t to, Rate capacity) {
  if (capacity == 0) return;
  const auto edge = boost::add_edge(from, to, g).first;
  const auto residual = boost::add_edge(to, from, g).first;
  boost::put(boost::edge_capacity, g, edge, capacity);
  boost::put(boost::edge_capacity, g, residual, 0);
  boost::put(boost::edge_reverse, g, edge, residual);
  boost::put(boost::edge_reverse, g, residual, edge);
}

std::vector<NicId> nics_of(const Fabric& f, const std::vector<HostId>& hosts) {
  std::vector<NicId> out;
  for (const HostId h : hosts)
    for (std::size_t n = 0; n < std::size_t(f.servers().nics); ++n) out.push_back(f.nic(h, n));
  return out;
}

Bisection between(const Fabric& f, const std::vector<NicId>& a, const std::vector<NicId>& b) {
  if (a.empty() || b.empty()) return {};
  const BytesPerSecond rate = max_flow(f, a, b);
  return {rate, rate / (f.servers().nic_rate * double(std::min(a.size(), b.size())))};
}

/// The cables between switches, both directions of all parallel ones as two edges. `value` of a
/// link is its capacity in the graph.
template <class Value>
void join_switches(Graph& g, const Fabric& f, const Value& value) {
  const std::size_t first_switch = f.first_switch().index();
  std::map<std::size_t, std::pair<Rate, Rate>> above;  // of one switch: there and back
  for (std::size_t v = 0; v < f.switch_count(); ++v) {
    above.clear();
    for (const LinkId l : f.out_links(VertexId(first_switch + v))) {
      if (!Fabric::is_upward(l) || !f.is_switch(f.link(l).to)) continue;
      auto& [up, down] = above[f.link(l).to.index() - first_switch];
      up += value(l);
      down += value(Fabric::reverse(l));
    }
    for (const auto& [upper, rates] : above) {
      join(g, v, upper, rates.first);
      join(g, upper, v, rates.second);
    }
  }
}

}  // namespace

BytesPerSecond max_flow(const Fabric& f, const std::vector<HostId>& sources,
                        const std::vector<HostId>& sinks, const LinkState* state) {
  return max_flow(f, nics_of(f, sources), nics_of(f, sinks), state);
}

BytesPerSecond max_flow(const Fabric& f, const std::vector<NicId>& sources,
                        const std::vector<NicId>& sinks, const LinkState* state) {
  const auto rate_of = [&](LinkId l) {
    return static_cast<Rate>(
        std::llround((state ? state->capacity(l) : f.link(l).capacity).value()));
  };
  // NICs of one switch and side act as one: the switch gets one edge from the source and one to
  // the sink. Parallel cables act as one too.
  const std::size_t first_switch = f.first_switch().index();
  const std::size_t switches = f.switch_count();
  std::vector<Rate> in(switches, 0);
  std::vector<Rate> out(switches, 0);
  std::vector<char> is_source(f.nic_count(), 0);
  for (const NicId n : sources) is_source[n.index()] = 1;
  for (const NicId n : sinks) check(!is_source[n.index()], "the two sides share no NIC", n.index());
  for (const NicId n : sources)
    for (int p = 0; p < f.ports_of(n); ++p)
      in[f.edge_of(n, p).index() - first_switch] += rate_of(f.uplink(n, p));
  for (const NicId n : sinks)
    for (int p = 0; p < f.ports_of(n); ++p)
      out[f.edge_of(n, p).index() - first_switch] += rate_of(f.downlink(n, p));

  Graph g(switches + 2);
  const std::size_t source = switches;
  const std::size_t sink = switches + 1;
  for (std::size_t v = 0; v < switches; ++v) {
    join(g, source, v, in[v]);
    join(g, v, sink, out[v]);
  }
  join_switches(g, f, rate_of);
  return BytesPerSecond(static_cast<double>(boost::push_relabel_max_flow(g, source, sink)));
}

std::vector<int> disjoint_routes(const Fabric& f,
                                 const std::vector<std::pair<NicId, NicId>>& pairs) {
  Graph g(f.switch_count());
  join_switches(g, f, [](LinkId) { return Rate{1}; });
  std::vector<int> routes;
  for (const auto& [a, b] : pairs) {
    const std::size_t from = f.edge_of(a).index() - f.first_switch().index();
    const std::size_t to = f.edge_of(b).index() - f.first_switch().index();
    check(from != to, "disjoint routes are counted between two switches");
    routes.push_back(static_cast<int>(boost::push_relabel_max_flow(g, from, to)));
  }
  return routes;
}

Bisection bisection(const Fabric& f) {
  const std::size_t n = f.host_count();
  std::vector<HostId> first, second;
  for (std::size_t h = 0; h < n / 2; ++h) {
    first.emplace_back(h);
    second.emplace_back(n - n / 2 + h);
  }
  return between(f, nics_of(f, first), nics_of(f, second));
}

Bisection bisection_between_pods(const Fabric& f) {
  // Parts are numbered as their servers come: pods, or the switches at which servers begin.
  const auto parts_by = [&](auto part_of) {
    std::vector<std::size_t> part(f.host_count());
    std::map<std::int64_t, std::size_t> numbers;
    for (std::size_t h = 0; h < f.host_count(); ++h)
      part[h] = numbers.try_emplace(part_of(HostId(h)), numbers.size()).first->second;
    return std::pair(std::move(part), numbers.size());
  };
  auto [part, parts] = parts_by([&](HostId h) { return std::int64_t{f.pod_of(h)}; });
  if (parts < 2)
    std::tie(part, parts) = parts_by([&](HostId h) { return std::int64_t(f.edge_of(h).index()); });
  std::vector<HostId> first, second;
  for (std::size_t h = 0; h < f.host_count(); ++h) {
    if (part[h] < parts / 2) first.emplace_back(h);
    if (part[h] >= parts - parts / 2) second.emplace_back(h);
  }
  return between(f, nics_of(f, first), nics_of(f, second));
}

Bisection bisection_across_longest_dimension(const Fabric& f) {
  const std::vector<int>& dimensions = f.shape<TorusShape>().dimensions;
  std::size_t longest = 0, stride = 1, stride_of_longest = 1;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    if (dimensions[d] >= dimensions[longest]) {
      longest = d;
      stride_of_longest = stride;
    }
    stride *= std::size_t(dimensions[d]);
  }
  const auto n = std::size_t(dimensions[longest]);
  std::vector<NicId> first, second;
  for (std::size_t i = 0; i < f.nic_count(); ++i) {
    const std::size_t layer = f.index_in_kind(f.edge_of(NicId(i))) / stride_of_longest % n;
    if (layer < n / 2) first.emplace_back(i);
    if (layer >= n - n / 2) second.emplace_back(i);
  }
  return between(f, first, second);
}

}  // namespace trainyard::topologies
