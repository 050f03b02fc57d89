#include <algorithm>

#include "models/network/fabric_paths.hpp"

/// Reduction trees of switches, for in-network reduction.
namespace trainyard::models {

using topologies::Fabric;
using topologies::FabricKind;
using topologies::LinkId;
using topologies::LinkState;
using topologies::NicId;
using topologies::VertexId;
using topologies::VertexKind;

namespace {

bool is_tree(FabricKind kind) {
  return kind == FabricKind::fat_tree || kind == FabricKind::rail_optimized ||
         kind == FabricKind::rail_only;
}

bool works_both_ways(const LinkState& state, LinkId link) {
  return state.is_up(link) && state.is_up(Fabric::reverse(link));
}

/// Switches that may be the root: the spines of the one pod, the cores, or all spines of a fabric
/// without cores.
std::vector<VertexId> roots(const Fabric& fabric, std::span<const VertexId> edges) {
  const int pod = fabric.pod_of(edges.front());
  const bool is_one_pod =
      std::all_of(edges.begin(), edges.end(), [&](VertexId v) { return fabric.pod_of(v) == pod; });
  const bool has_cores = fabric.count(VertexKind::core) > 0;
  const VertexKind kind = has_cores && !is_one_pod ? VertexKind::core : VertexKind::spine;
  std::vector<VertexId> out;
  for (std::size_t i = 0; i < fabric.count(kind); ++i) {
    const VertexId v = fabric.vertex(kind, i);
    if (kind == VertexKind::core || !has_cores || fabric.pod_of(v) == pod) out.push_back(v);
  }
  return out;
}

}  // namespace

bool FabricPaths::append_tree_below(VertexId root, std::span<const VertexId> edges,
                                    std::uint64_t cable, std::vector<LinkId>& tree) const {
  // Downwards from the root; the switch from which another was met first is its own.
  const std::size_t first = fabric_.first_switch().index();
  std::vector<LinkId> to_switch(fabric_.switch_count());
  std::vector<VertexId> front{root};
  for (std::size_t i = 0; i < front.size(); ++i) {
    std::vector<LinkId> down;
    for (const LinkId link : fabric_.out_links(front[i])) {
      const VertexId below = fabric_.link(link).to;
      if (!Fabric::is_upward(link) && fabric_.is_switch(below) && below != root &&
          works_both_ways(router_.state(), link) && !to_switch[below.index() - first].is_valid())
        down.push_back(link);
    }
    const auto to = [&](LinkId link) { return fabric_.link(link).to; };
    std::stable_sort(down.begin(), down.end(), [&](LinkId a, LinkId b) { return to(a) < to(b); });
    for (std::size_t k = 0; k < down.size();) {
      std::size_t end = k;
      while (end < down.size() && to(down[end]) == to(down[k])) ++end;
      to_switch[to(down[k]).index() - first] = down[k + cable % (end - k)];  // of parallel cables
      front.push_back(to(down[k]));
      k = end;
    }
  }
  const std::size_t before = tree.size();
  std::vector<bool> is_joined(fabric_.switch_count(), false);
  for (VertexId v : edges) {
    while (v != root && !is_joined[v.index() - first]) {
      is_joined[v.index() - first] = true;
      const LinkId link = to_switch[v.index() - first];
      if (!link.is_valid()) {
        tree.resize(before);
        return false;
      }
      tree.push_back(link);
      v = fabric_.link(link).from;
    }
  }
  return true;
}

bool FabricPaths::append_tree(std::span<const std::size_t> nics, int port, std::uint64_t turn,
                              std::vector<LinkId>& tree) const {
  std::vector<VertexId> edges;
  for (const std::size_t n : nics) {
    const NicId nic(n);
    if (!works_both_ways(router_.state(), fabric_.uplink(nic, port))) return false;
    tree.push_back(fabric_.uplink(nic, port));
    edges.push_back(fabric_.edge_of(nic, port));
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  if (edges.size() == 1) return true;
  const std::vector<VertexId> candidates = roots(fabric_, edges);
  for (std::size_t i = 0; i < candidates.size(); ++i)
    if (append_tree_below(candidates[(i + turn) % candidates.size()], edges,
                          turn / candidates.size(), tree))
      return true;
  return false;
}

bool FabricPaths::add_reduction_tree(std::span<const std::size_t> nics, std::uint64_t label,
                                     double weight, LoadAccumulator& loads) const {
  if (!is_tree(fabric_.kind()) || nics.empty()) return false;
  const int ports = fabric_.servers().ports_per_nic;
  if (!next_tree_) next_tree_ = label % 65536;
  const std::uint64_t turn = (*next_tree_)++;
  std::vector<LinkId> tree;
  for (int port = 0; port < ports; ++port)
    if (!append_tree(nics, port, turn, tree)) return false;
  for (const LinkId link : tree) {
    loads.add(LinkIndex(link.index()), weight / ports);
    loads.add(LinkIndex(Fabric::reverse(link).index()), weight / ports);
  }
  return true;
}

}  // namespace trainyard::models
