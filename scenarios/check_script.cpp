#include "scenarios/check_script.hpp"

#include <algorithm>
#include <vector>

#include "scenarios/diagnostic.hpp"

namespace trainyard::scenarios {
namespace {

using models::Component;
using models::UnitCounts;
using topologies::Fabric;
using topologies::VertexId;

/// Hears the checks that a describe() makes, and nothing else.
class CheckListener {
 public:
  Problems problems;
  template <class T>
  void required(std::string_view, T&, std::string_view, Range = {}) {}
  template <class T>
  void optional(std::string_view, T&, std::string_view, Range = {}) {}
  void check(bool condition, std::string_view key, std::string_view message) {
    if (!condition) problems.push_back({std::string(key), std::string(message), ""});
  }
};

/// The rules of failure classes, for the component that the name means.
Problems broken_rules(const models::ScriptedFaultSpec& fault, const models::UnitRef& unit) {
  models::FailureClassSpec spec;
  spec.component = unit.component;
  spec.effect = fault.effect;
  spec.replace = fault.replace;
  spec.speed = fault.speed;
  spec.warning = fault.warning;
  spec.store = unit.store;
  CheckListener listener;
  describe(listener, spec);
  return std::move(listener.problems);
}

std::string numbers(const std::string& key, std::int64_t count) {
  if (count <= 0) return "there is none";
  return count == 1 ? key + "-0" : key + "-0 to " + key + "-" + std::to_string(count - 1);
}

std::string nearest_switch(const Fabric& fabric, const std::string& name) {
  constexpr std::size_t most = 20'000;  // names compared for a suggestion
  std::vector<std::string> names;
  for (std::size_t v = fabric.first_switch().index(); v < fabric.vertex_count(); ++v) {
    if (names.size() == most) break;
    names.push_back(fabric.name(VertexId(v)));
  }
  return nearest(name, names);
}

/// What a name of this form could have been.
std::string suggestion(const UnitCounts& counts, const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (name.find("->") != name.npos)
    return "a cable is called by its ends, \"A -> B\", parallel ones with \" #0\", \" #1\", ... "
           "behind, as trainyard topology prints them";
  if (slash != name.npos && counts.store_servers.contains(name.substr(0, slash))) {
    const std::string store = name.substr(0, slash);
    return "servers of this store: " + numbers(store + "/server", counts.store_servers.at(store));
  }
  if (name.starts_with("node")) {
    const std::string servers = "servers: " + numbers("node", counts.servers);
    if (slash == name.npos) return servers;
    return servers + ", each with " + numbers("gpu", counts.gpus_per_server) + " and " +
           numbers("nic", counts.nics_per_server) + " (node-0/gpu-0)";
  }
  for (const Component parent : {Component::rack, Component::pdu, Component::cdu}) {
    const std::string key(name_of(parent));
    if (!name.starts_with(key)) continue;
    if (counts.servers_per(parent) == 0)
      return "say how many servers share one: cluster.parents.servers_per_" + key;
    return "there are " + numbers(key, counts.of(parent));
  }
  const std::string near = counts.fabric ? nearest_switch(*counts.fabric, name) : std::string();
  if (!near.empty()) return "did you mean " + in_quotes(near) + "?";
  return "node-17/gpu-3, node-17/nic-0, node-17, rack-2, pdu-0, cdu-1, a switch or a cable as "
         "trainyard topology prints it, or scratch/server-3 of a store";
}

}  // namespace

Problems check_script(const models::FailuresSpec& failures, const models::UnitNames& units) {
  Problems problems;
  for (const auto& [key, fault] : failures.script) {
    const std::string path = "failures.script." + key;
    const auto unit = units.find(fault.fail);
    if (!unit) {
      problems.push_back({path + ".fail", "there is no unit " + in_quotes(fault.fail),
                          suggestion(units.counts(), fault.fail)});
      continue;
    }
    const std::string what = in_quotes(fault.fail) + " is of component \"" +
                             std::string(name_of(unit->component)) + "\"";
    for (const Problem& broken : broken_rules(fault, *unit)) {
      const bool is_name = broken.path == "component";
      problems.push_back({path + "." + (is_name ? "effect" : broken.path), what, broken.what});
    }
  }
  return problems;
}

}  // namespace trainyard::scenarios
