#pragma once

#include <optional>
#include <string>

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

enum class FabricKind { fat_tree };
enum class RoutingKind { ecmp, spray };

/// A fat tree of 2 tiers (leaf, spine) or 3 (leaf, spine = one pod, core). Either the explicit
/// counts (uplinks_per_leaf, spines, …) or an oversubscription ratio per tier; what is not given is
/// derived, and what contradicts is refused with the nearest valid numbers.
struct FabricSpec {
  FabricKind kind = FabricKind::fat_tree;
  int tiers = 2;
  int hosts_per_leaf = 16;              // servers; each brings its NICs
  std::optional<int> leaves_per_pod{};  // 3 tiers; default: as many as the spine's ports allow
  std::optional<double>
      leaf_oversubscription{};  // downlink rate : uplink rate of a leaf; default 1
  std::optional<double>
      spine_oversubscription{};  // the same for a pod's spines towards the core; 3 tiers; default 1
  std::optional<int> uplinks_per_leaf{};   // explicit counts instead of ratios
  std::optional<int> spines{};             // per pod with 3 tiers, in all with 2
  std::optional<int> uplinks_per_spine{};  // towards the core
  std::optional<int> cores{};
  SwitchSpec leaf_switch{};
  SwitchSpec spine_switch{};
  SwitchSpec core_switch{};
  RoutingKind routing = RoutingKind::ecmp;
  int flows_per_pair = 1;    // queue pairs a connection, hashed apart (ecmp)
  Duration cable_latency{};  // added to each switch-to-switch link
};

template <class Visitor>
void describe(Visitor& v, FabricSpec& s) {
  v.optional("kind", s.kind, "topology");
  v.optional("tiers", s.tiers, "switch tiers", between(2, 3));
  v.required("hosts_per_leaf", s.hosts_per_leaf, "servers attached to one leaf switch",
             at_least(1));
  v.optional("leaves_per_pod", s.leaves_per_pod, "leaf switches of one pod (3 tiers)", at_least(1));
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
  v.part("leaf_switch", s.leaf_switch, "switch", "kind of the leaf switches");
  v.part("spine_switch", s.spine_switch, "switch", "kind of the spine switches");
  v.optional_part("core_switch", s.core_switch, "switch", "kind of the core switches (3 tiers)");
  v.optional("routing", s.routing, "how paths are chosen among equals");
  v.optional("flows_per_pair", s.flows_per_pair,
             "queue pairs of one connection, hashed apart (ecmp)", between(1, 256));
  v.optional("cable_latency", s.cable_latency, "delay added to each switch-to-switch link",
             at_least(0));
  v.check(s.tiers == 3 || !s.spine_oversubscription, "spine_oversubscription",
          "only a fat tree of 3 tiers has spines with uplinks; set tiers to 3 or remove it");
  v.check(s.tiers == 3 || !s.leaves_per_pod, "leaves_per_pod",
          "only a fat tree of 3 tiers has pods; set tiers to 3 or remove it");
  v.check(s.tiers == 3 || !s.uplinks_per_spine, "uplinks_per_spine",
          "only a fat tree of 3 tiers has spines with uplinks; set tiers to 3 or remove it");
  v.check(s.tiers == 3 || !s.cores, "cores",
          "only a fat tree of 3 tiers has core switches; set tiers to 3 or remove it");
  v.check(!(s.leaf_oversubscription && s.uplinks_per_leaf), "leaf_oversubscription",
          "give either the ratio or uplinks_per_leaf, not both");
  v.check(!(s.spine_oversubscription && s.uplinks_per_spine), "spine_oversubscription",
          "give either the ratio or uplinks_per_spine, not both");
}

}  // namespace trainyard::topologies

namespace trainyard {
template <>
struct Names<topologies::FabricKind> {
  static constexpr auto all =
      names<topologies::FabricKind>({{topologies::FabricKind::fat_tree, "fat-tree"}});
};
template <>
struct Names<topologies::RoutingKind> {
  static constexpr auto all = names<topologies::RoutingKind>(
      {{topologies::RoutingKind::ecmp, "ecmp"}, {topologies::RoutingKind::spray, "spray"}});
};
}  // namespace trainyard
