#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Plain inputs of the fabric: what a user writes under cluster.fabric.
namespace trainyard::topologies {

/// One kind of switch box. Figures: scenarios/parts/switch/.
struct SwitchSpec {
  std::string name{};
  int ports = 64;  // at port_rate
  BytesPerSecond port_rate{50e9};
  Duration latency{};  // one hop: switch, two ports, cable
  Watts power{};       // with optics
  Dollars price{};
};

template <class Visitor>
void describe(Visitor& v, SwitchSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.required("ports", s.ports, "ports at port_rate", at_least(2));
  v.required("port_rate", s.port_rate, "rate of one port and direction", above(0));
  v.optional("latency", s.latency, "delay of one hop: switch, both ports and the cable",
             at_least(0));
  v.optional("power", s.power, "power of the box with its optics", at_least(0));
  v.optional("price", s.price, "price of the box", at_least(0));
}

enum class FabricKind {
  fat_tree,
  rail_optimized,
  rail_only,
  dragonfly,
  dragonfly_plus,
  torus,
  custom
};

/// How one of several paths is chosen. Which fabric offers which: docs/models/routing.md.
enum class RoutingKind {
  ecmp,      // a hash of the flow, hop by hop, among the equal shortest paths
  spray,     // evenly over all of them
  adaptive,  // over all of them, in proportion to the capacity that is left
  fixed,     // by destination alone, as forwarding tables without load balancing
  minimal,   // dragonfly: the direct global link; torus: dimension order
  valiant,   // by way of a random group or node
  ugal       // minimal or Valiant, whichever is less loaded
};

enum class Arrangement { absolute, palm_tree };  // of a dragonfly's global links

/// A fabric of one kind. What is not given is derived, and what contradicts is refused with the
/// nearest valid numbers. Settings of another kind are refused too.
struct FabricSpec {
  FabricKind kind = FabricKind::fat_tree;
  RoutingKind routing = RoutingKind::ecmp;
  int flows_per_pair = 1;        // queue pairs a connection, hashed apart (ecmp)
  Duration cable_latency{};      // added to each switch-to-switch link
  Duration convergence_delay{};  // from a failure in the fabric until traffic has moved away

  // Fat tree of 2 tiers (leaf, spine) or 3 (leaf, spine = one pod, core); rail-optimised the same
  // with one leaf a rail and unit; rail-only without links between rails.
  std::optional<int> tiers{};  // default 2
  std::optional<int>
      hosts_per_leaf{};              // servers of a leaf, or of a unit of rails; each brings NICs
  std::optional<int> rails{};        // leaves of a unit; default: as many as a server has NICs
  std::optional<bool> dual_homed{};  // each NIC is split over two leaves
  std::optional<int> leaves_per_pod{};  // 3 tiers; default: as many as the spine's ports allow
  std::optional<int> pods{};            // 3 tiers; more than the servers need: built, not used
  std::optional<double>
      leaf_oversubscription{};  // downlink rate : uplink rate of a leaf; default 1
  std::optional<double>
      spine_oversubscription{};  // the same for a pod's spines towards the core; 3 tiers; default 1
  std::optional<int> uplinks_per_leaf{};  // explicit counts instead of ratios
  std::optional<int> spines{};  // per pod with 3 tiers, in all with 2, per rail if rail-only
  std::optional<int> uplinks_per_spine{};  // towards the core
  std::optional<int> cores{};
  std::vector<BytesPerSecond> uplink_rates{};  // of a leaf's uplinks in turn, where they differ
  SwitchSpec leaf_switch{};                    // dragonfly+ too
  SwitchSpec spine_switch{};
  SwitchSpec core_switch{};

  // Dragonfly: groups of fully meshed routers (Kim et al. 2008: p, a, h, g), and dragonfly+: groups
  // of leaves and spines (Shpiner et al. 2017).
  std::optional<int> nics_per_router{};          // p; of a torus node too
  std::optional<int> routers_per_group{};        // a
  std::optional<int> global_links_per_router{};  // h; of a spine of a dragonfly+
  std::optional<int> groups{};                   // g; default: as many as the servers need
  std::optional<int> local_links{};              // parallel cables between two routers of a group
  std::optional<Arrangement> arrangement{};      // default absolute
  std::optional<int> leaves_per_group{};         // dragonfly+
  std::optional<int> spines_per_group{};
  SwitchSpec router_switch{};  // dragonfly, torus, custom

  // Torus of any number of dimensions.
  std::vector<int> dimensions{};             // nodes along each
  std::optional<int> links_per_direction{};  // parallel cables between neighbours; default 1

  // Custom: read from a file.
  std::optional<std::string> graph{};  // GraphML, DOT or edge list
};

/// Calls f(key, is given, kinds that know it) for every setting that only some kinds have.
template <class F>
void for_each_kind_setting(const FabricSpec& s, F&& f);

template <class Visitor>
void describe(Visitor& v, FabricSpec& s) {
  v.optional("kind", s.kind, "topology");
  v.optional("routing", s.routing, "how paths are chosen");
  v.optional("flows_per_pair", s.flows_per_pair,
             "queue pairs of one connection, hashed apart (ecmp)", between(1, 256));
  v.optional("cable_latency", s.cable_latency, "delay added to each switch-to-switch link",
             at_least(0));
  v.optional("convergence_delay", s.convergence_delay,
             "from a failure of a link or switch until traffic has moved to other paths",
             at_least(0));
  v.optional("tiers", s.tiers, "switch tiers of a tree; default 2", between(1, 3));
  v.optional("hosts_per_leaf", s.hosts_per_leaf,
             "servers attached to one leaf switch, or to one unit of rails", at_least(1));
  v.optional("rails", s.rails, "leaf switches of one unit; default: NICs of a server",
             between(1, 72));
  v.optional("dual_homed", s.dual_homed, "each NIC is split over two leaf switches");
  v.optional("leaves_per_pod", s.leaves_per_pod, "leaf switches of one pod (3 tiers)", at_least(1));
  v.optional("pods", s.pods, "pods that are built (3 tiers); default: as many as servers need",
             at_least(1));
  v.optional("leaf_oversubscription", s.leaf_oversubscription, "down : up rate of a leaf",
             above(0));
  v.optional("spine_oversubscription", s.spine_oversubscription,
             "down : up rate of a pod's spines (3 tiers)", above(0));
  v.optional("uplinks_per_leaf", s.uplinks_per_leaf, "uplinks of one leaf, instead of its ratio",
             at_least(1));
  v.optional("spines", s.spines, "spine switches (per pod with 3 tiers)", at_least(1));
  v.optional("uplinks_per_spine", s.uplinks_per_spine,
             "uplinks of one spine to the core, instead of its ratio", at_least(1));
  v.optional("cores", s.cores, "core switches (3 tiers)", at_least(1));
  v.optional("uplink_rates", s.uplink_rates, "rates of a leaf's uplinks in turn, where they differ",
             above(0));
  v.optional_part("leaf_switch", s.leaf_switch, "switch", "kind of the leaf switches");
  v.optional_part("spine_switch", s.spine_switch, "switch", "kind of the spine switches");
  v.optional_part("core_switch", s.core_switch, "switch", "kind of the core switches (3 tiers)");
  v.optional("nics_per_router", s.nics_per_router,
             "NICs attached to one router (dragonfly: p; torus: of one node)", at_least(1));
  v.optional("routers_per_group", s.routers_per_group, "routers of one dragonfly group: a",
             at_least(1));
  v.optional("global_links_per_router", s.global_links_per_router,
             "links of one router to other groups: h; of one spine in a dragonfly+", at_least(1));
  v.optional("groups", s.groups, "dragonfly groups: g; default: as many as the servers need",
             at_least(1));
  v.optional("local_links", s.local_links,
             "parallel cables between two routers of a group; default 1", at_least(1));
  v.optional("arrangement", s.arrangement, "which router has the link to which group");
  v.optional("leaves_per_group", s.leaves_per_group, "leaf switches of one dragonfly+ group",
             at_least(1));
  v.optional("spines_per_group", s.spines_per_group, "spine switches of one dragonfly+ group",
             at_least(1));
  v.optional_part("router_switch", s.router_switch, "switch",
                  "kind of the routers (dragonfly, torus, custom)");
  v.optional("dimensions", s.dimensions, "nodes along each dimension of a torus", at_least(2));
  v.optional("links_per_direction", s.links_per_direction,
             "parallel cables between neighbours of a torus; default 1", at_least(1));
  v.optional("graph", s.graph, "file of a custom fabric: GraphML, DOT or edge list");

  v.check(!(s.leaf_oversubscription && s.uplinks_per_leaf), "leaf_oversubscription",
          "give either the ratio or uplinks_per_leaf, not both");
  v.check(!(s.spine_oversubscription && s.uplinks_per_spine), "spine_oversubscription",
          "give either the ratio or uplinks_per_spine, not both");
  const bool has_tiers = s.kind == FabricKind::fat_tree || s.kind == FabricKind::rail_optimized;
  const bool has_cores = has_tiers && s.tiers.value_or(2) == 3;
  v.check(has_cores || !has_tiers || !s.spine_oversubscription, "spine_oversubscription",
          "only 3 tiers have spines with uplinks; set tiers to 3 or remove it");
  v.check(has_cores || !has_tiers || !s.leaves_per_pod, "leaves_per_pod",
          "only 3 tiers have pods; set tiers to 3 or remove it");
  v.check(has_cores || !has_tiers || !s.pods, "pods",
          "only 3 tiers have pods; set tiers to 3 or remove it");
  v.check(has_cores || !has_tiers || !s.uplinks_per_spine, "uplinks_per_spine",
          "only 3 tiers have spines with uplinks; set tiers to 3 or remove it");
  v.check(has_cores || !has_tiers || !s.cores, "cores",
          "only 3 tiers have core switches; set tiers to 3 or remove it");
  for_each_kind_setting(s, [&](const char* key, bool is_given, auto... kinds) {
    static_assert(sizeof...(kinds) > 0);
    v.check(!is_given || ((s.kind == kinds) || ...), key,
            "is a setting of another kind of fabric; remove it or change kind");
  });
}

template <class F>
void for_each_kind_setting(const FabricSpec& s, F&& f) {
  using K = FabricKind;
  f("tiers", s.tiers.has_value(), K::fat_tree, K::rail_optimized, K::rail_only);
  f("hosts_per_leaf", s.hosts_per_leaf.has_value(), K::fat_tree, K::rail_optimized, K::rail_only,
    K::dragonfly_plus);
  f("rails", s.rails.has_value(), K::rail_optimized, K::rail_only);
  f("dual_homed", s.dual_homed.has_value(), K::fat_tree, K::rail_optimized, K::rail_only);
  f("leaves_per_pod", s.leaves_per_pod.has_value(), K::fat_tree, K::rail_optimized);
  f("pods", s.pods.has_value(), K::fat_tree, K::rail_optimized);
  f("leaf_oversubscription", s.leaf_oversubscription.has_value(), K::fat_tree, K::rail_optimized,
    K::rail_only, K::dragonfly_plus);
  f("spine_oversubscription", s.spine_oversubscription.has_value(), K::fat_tree, K::rail_optimized);
  f("uplinks_per_leaf", s.uplinks_per_leaf.has_value(), K::fat_tree, K::rail_optimized,
    K::rail_only, K::dragonfly_plus);
  f("spines", s.spines.has_value(), K::fat_tree, K::rail_optimized, K::rail_only);
  f("uplinks_per_spine", s.uplinks_per_spine.has_value(), K::fat_tree, K::rail_optimized);
  f("cores", s.cores.has_value(), K::fat_tree, K::rail_optimized);
  f("uplink_rates", !s.uplink_rates.empty(), K::fat_tree, K::rail_optimized, K::rail_only);
  f("nics_per_router", s.nics_per_router.has_value(), K::dragonfly, K::torus);
  f("routers_per_group", s.routers_per_group.has_value(), K::dragonfly);
  f("global_links_per_router", s.global_links_per_router.has_value(), K::dragonfly,
    K::dragonfly_plus);
  f("groups", s.groups.has_value(), K::dragonfly, K::dragonfly_plus);
  f("local_links", s.local_links.has_value(), K::dragonfly);
  f("arrangement", s.arrangement.has_value(), K::dragonfly, K::dragonfly_plus);
  f("leaves_per_group", s.leaves_per_group.has_value(), K::dragonfly_plus);
  f("spines_per_group", s.spines_per_group.has_value(), K::dragonfly_plus);
  f("dimensions", !s.dimensions.empty(), K::torus);
  f("links_per_direction", s.links_per_direction.has_value(), K::torus);
  f("graph", s.graph.has_value(), K::custom);
}

}  // namespace trainyard::topologies

namespace trainyard {
template <>
struct Names<topologies::FabricKind> {
  using K = topologies::FabricKind;
  static constexpr auto all = names<K>({{K::fat_tree, "fat-tree"},
                                        {K::rail_optimized, "rail-optimized"},
                                        {K::rail_only, "rail-only"},
                                        {K::dragonfly, "dragonfly"},
                                        {K::dragonfly_plus, "dragonfly+"},
                                        {K::torus, "torus"},
                                        {K::custom, "custom"}});
};
template <>
struct Names<topologies::RoutingKind> {
  using R = topologies::RoutingKind;
  static constexpr auto all = names<R>({{R::ecmp, "ecmp"},
                                        {R::spray, "spray"},
                                        {R::adaptive, "adaptive"},
                                        {R::fixed, "static"},
                                        {R::minimal, "minimal"},
                                        {R::valiant, "valiant"},
                                        {R::ugal, "ugal"}});
};
template <>
struct Names<topologies::Arrangement> {
  using A = topologies::Arrangement;
  static constexpr auto all = names<A>({{A::absolute, "absolute"}, {A::palm_tree, "palm-tree"}});
};
}  // namespace trainyard
