#include "topologies/bisection.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <map>
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

std::vector<HostId> hosts_between(int first, int last) {
  std::vector<HostId> out;
  for (int h = first; h < last; ++h) out.push_back(HostId(std::size_t(h)));
  return out;
}

Bisection between(const Fabric& f, const std::vector<HostId>& a, const std::vector<HostId>& b) {
  if (a.empty() || b.empty()) return {};
  const double smaller = double(std::min(a.size(), b.size())) * f.shape().nics_per_host;
  const BytesPerSecond rate = max_flow(f, a, b);
  return {rate, rate / (f.servers().nic_rate * smaller)};
}

}  // namespace

BytesPerSecond max_flow(const Fabric& f, const std::vector<HostId>& sources,
                        const std::vector<HostId>& sinks, const LinkState* state) {
  const auto rate_of = [&](LinkId l) {
    return static_cast<Rate>(
        std::llround((state ? state->capacity(l) : f.link(l).capacity).value()));
  };
  // Servers of one leaf and side act as one: their NICs end at the same switch, so the leaf gets
  // one edge from the source and one to the sink. Parallel cables act as one too.
  const std::size_t first_switch = f.vertex(VertexKind::leaf, 0).index();
  const std::size_t switches = f.vertex_count() - first_switch;
  const std::size_t source = switches;
  const std::size_t sink = switches + 1;
  std::vector<Rate> in(switches, 0);
  std::vector<Rate> out(switches, 0);
  const auto add = [&](const std::vector<HostId>& hosts, std::vector<Rate>& sum, bool upward) {
    for (const HostId h : hosts)
      for (int n = 0; n < f.shape().nics_per_host; ++n) {
        const NicId nic = f.nic(h, std::size_t(n));
        sum[f.leaf_of(nic).index() - first_switch] +=
            rate_of(upward ? f.uplink(nic) : f.downlink(nic));
      }
  };
  add(sources, in, true);
  add(sinks, out, false);

  std::vector<char> is_host_on_both_sides(f.host_count(), 0);
  for (const HostId h : sources) is_host_on_both_sides[h.index()] = 1;
  for (const HostId h : sinks)
    check(!is_host_on_both_sides[h.index()], "the two sides share no server", h.index());

  Graph g(switches + 2);
  for (std::size_t v = 0; v < switches; ++v) {
    join(g, source, v, in[v]);
    join(g, v, sink, out[v]);
    std::map<std::size_t, std::pair<Rate, Rate>> above;
    for (const LinkId l : f.out_links(VertexId(first_switch + v))) {
      if (!Fabric::is_upward(l)) continue;
      auto& [up, down] = above[f.link(l).to.index() - first_switch];
      up += rate_of(l);
      down += rate_of(Fabric::reverse(l));
    }
    for (const auto& [upper, rates] : above) {
      join(g, v, upper, rates.first);
      join(g, upper, v, rates.second);
    }
  }
  return BytesPerSecond(static_cast<double>(boost::push_relabel_max_flow(g, source, sink)));
}

Bisection bisection(const Fabric& f) {
  const int n = f.shape().hosts;
  return between(f, hosts_between(0, n / 2), hosts_between(n - n / 2, n));
}

Bisection bisection_between_pods(const Fabric& f) {
  const FatTreeShape& t = f.shape();
  const bool by_pod = t.pods > 1;
  const int parts = by_pod ? t.pods : t.leaves;
  const int per_part = t.hosts_per_leaf * (by_pod ? t.leaves_per_pod : 1);
  const int first_end = std::min(t.hosts, parts / 2 * per_part);
  const int second_begin = std::min(t.hosts, (parts - parts / 2) * per_part);
  return between(f, hosts_between(0, first_end), hosts_between(second_begin, t.hosts));
}

}  // namespace trainyard::topologies
