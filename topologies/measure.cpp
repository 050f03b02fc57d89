#include "topologies/measure.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "topologies/custom.hpp"
#include "topologies/distances.hpp"
#include "topologies/fat_tree_counts.hpp"

namespace trainyard::topologies {

namespace {

TierReport measure_tier(const Fabric& f, VertexKind kind) {
  const SwitchSpec& box = box_of(f, kind);
  const bool knows_ports = f.kind() != FabricKind::custom || is_given(box);
  TierReport r;
  r.kind = kind;
  r.switches = static_cast<int>(f.count(kind));
  std::map<std::pair<bool, double>, int> links;  // each direction and rate has ports of its own
  for (std::size_t i = 0; i < f.count(kind); ++i) {
    BytesPerSecond up{};
    BytesPerSecond down{};
    links.clear();
    for (const LinkId l : f.out_links(f.vertex(kind, i))) {
      const Link& link = f.link(l);
      const bool is_down = f.kind(link.to) < kind;  // kinds are ordered from the servers up
      const BytesPerSecond rate = std::max(link.capacity, f.link(Fabric::reverse(l)).capacity);
      (is_down ? down : up) += link.capacity;
      ++(is_down ? r.cables_down : r.cables_up);
      ++links[{is_down, rate.value()}];
    }
    int used = 0;
    for (const auto& [key, n] : links)
      used += knows_ports
                  ? static_cast<int>(ports_for(n, box.port_rate, BytesPerSecond(key.second)))
                  : n;
    r.ports_used += used;
    r.ports_free += box.ports - used;
    if (up.value() > 0) r.oversubscription = std::max(r.oversubscription, down / up);
  }
  if (!knows_ports) r.ports_free = -1;
  r.power = box.power * r.switches;
  r.price = box.price * r.switches;
  return r;
}

template <class T>
std::pair<T, T> least_and_median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[(values.size() - 1) / 2]};
}

PathDiversity measure_diversity(const Fabric& f) {
  constexpr int sampled = 16;
  const auto pairs = far_pairs(f, sampled);
  PathDiversity d;
  d.pairs = static_cast<int>(pairs.size());
  if (pairs.empty()) return d;
  std::vector<double> shortest;
  for (const auto& [a, b] : pairs) shortest.push_back(shortest_routes(f, a, b));
  std::tie(d.shortest_least, d.shortest_median) = least_and_median(std::move(shortest));
  std::tie(d.disjoint_least, d.disjoint_median) = least_and_median(disjoint_routes(f, pairs));
  return d;
}

void add_notes(const Fabric& f, const Diameter& d, MeasuredFabric& m) {
  const auto note = [&](const char* text) { m.notes.emplace_back(text); };
  if (f.kind() == FabricKind::rail_only)
    note("rails are not joined: a server's GPUs meet other rails over the scale-up links");
  else if (!d.joins_all_pairs)
    note("some pairs of NICs have no route; their servers have one over other NICs");
  if (!d.is_exact) note("the diameter is the longest route found from a sample of switches");
  const bool has_routers = f.edge_kind() == VertexKind::router;
  if (has_routers)
    note(
        "down : up of a router is the rate of its servers against that of all its cables to other "
        "switches; a long route uses several of those, so 1:1 is not full rate");
  if (f.kind() == FabricKind::custom && !is_given(f.spec().router_switch))
    note("router_switch is not given: ports, price and power of the switches are not known");
}

}  // namespace

MeasuredFabric measure(const Fabric& f) {
  MeasuredFabric m;
  m.hosts = static_cast<int>(f.host_count());
  m.gpus = static_cast<int>(f.gpu_count());
  m.nics = static_cast<int>(f.nic_count());
  m.storage_ports = static_cast<int>(f.count(VertexKind::storage));
  for (const VertexKind kind :
       {VertexKind::leaf, VertexKind::spine, VertexKind::core, VertexKind::router})
    if (f.count(kind) > 0) m.tiers.push_back(measure_tier(f, kind));
  for (const TierReport& t : m.tiers) m.switches += t.switches;

  m.cable_kinds = count_cables(f);
  for (const CableReport& c : m.cable_kinds) {
    m.cables += static_cast<int>(c.count);
    (c.is_optical ? m.optic_cables : m.copper_cables) += static_cast<int>(c.count);
  }
  m.items = bill_of(f, m.cable_kinds);
  for (const CostItem& item : m.items) {
    m.power += item.power;
    m.price += item.price;
  }

  const Diameter d = diameter(f);
  m.diameter_hops = d.hops;
  m.diversity = measure_diversity(f);
  const bool is_torus = std::holds_alternative<TorusShape>(f.any_shape());
  m.bisection = is_torus ? bisection_across_longest_dimension(f) : bisection(f);
  m.bisection_between_pods = bisection_between_pods(f);
  add_notes(f, d, m);
  return m;
}

}  // namespace trainyard::topologies
