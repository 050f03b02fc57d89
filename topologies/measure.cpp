#include "topologies/measure.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "topologies/fat_tree_counts.hpp"

namespace trainyard::topologies {

namespace {

TierReport measure_tier(const Fabric& f, VertexKind kind, const SwitchSpec& box) {
  TierReport r;
  r.kind = kind;
  r.switches = static_cast<int>(f.count(kind));
  for (std::size_t i = 0; i < f.count(kind); ++i) {
    BytesPerSecond up{};
    BytesPerSecond down{};
    std::map<std::pair<bool, double>, int>
        links;  // by direction and rate: each kind has ports of its own
    for (const LinkId l : f.out_links(f.vertex(kind, i))) {
      const bool is_up = Fabric::is_upward(l);
      const BytesPerSecond rate = f.link(l).capacity;
      (is_up ? up : down) += rate;
      ++(is_up ? r.cables_up : r.cables_down);
      ++links[{is_up, rate.value()}];
    }
    int used = 0;
    for (const auto& [key, n] : links)
      used += static_cast<int>(ports_for(n, box.port_rate, BytesPerSecond(key.second)));
    r.ports_used += used;
    r.ports_free += box.ports - used;
    if (up.value() > 0) r.oversubscription = std::max(r.oversubscription, down / up);
  }
  r.power = box.power * r.switches;
  r.price = box.price * r.switches;
  return r;
}

/// Breadth first from one NIC. In a fat tree every NIC sees the same: others on its leaf, in its
/// pod, beyond; so the farthest from the first is as far as any two are apart.
int farthest_nic(const Fabric& f) {
  std::vector<int> hops(f.vertex_count(), -1);
  std::vector<VertexId> queue{f.vertex(NicId(0))};
  hops[queue.front().index()] = 0;
  int farthest = 0;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const VertexId v = queue[next];
    if (f.kind(v) == VertexKind::nic) farthest = std::max(farthest, hops[v.index()]);
    for (const LinkId l : f.out_links(v)) {
      const VertexId to = f.link(l).to;
      if (hops[to.index()] >= 0) continue;
      hops[to.index()] = hops[v.index()] + 1;
      queue.push_back(to);
    }
  }
  return farthest;
}

}  // namespace

MeasuredFabric measure(const Fabric& f) {
  MeasuredFabric m;
  m.hosts = static_cast<int>(f.host_count());
  m.gpus = static_cast<int>(f.gpu_count());
  m.nics = static_cast<int>(f.nic_count());
  m.tiers.push_back(measure_tier(f, VertexKind::leaf, f.spec().leaf_switch));
  m.tiers.push_back(measure_tier(f, VertexKind::spine, f.spec().spine_switch));
  if (f.shape().tiers == 3)
    m.tiers.push_back(measure_tier(f, VertexKind::core, f.spec().core_switch));
  for (const TierReport& t : m.tiers) {
    m.switches += t.switches;
    m.power += t.power;
    m.price += t.price;
  }
  for (std::size_t l = 0; l < f.links().size(); l += 2) {  // a cable is two links
    const LinkKind kind = f.link(LinkId(l)).kind;
    if (kind == LinkKind::nvlink) continue;
    ++m.cables;
    ++(kind == LinkKind::nic_leaf ? m.copper_cables : m.optic_cables);
  }
  m.diameter_hops = farthest_nic(f);
  m.bisection = bisection(f);
  m.bisection_between_pods = bisection_between_pods(f);
  return m;
}

}  // namespace trainyard::topologies
