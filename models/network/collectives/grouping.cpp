#include "models/network/collectives/grouping.hpp"

#include <algorithm>
#include <map>

#include "sim/check.hpp"

namespace trainyard::models {

std::vector<NodeMembers> by_node(std::span<const Member> group) {
  std::vector<NodeMembers> nodes;
  std::map<std::size_t, std::size_t> place;
  for (const Member& m : group) {
    const auto [at, is_new] = place.try_emplace(m.node, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[at->second].push_back(m);
  }
  return nodes;
}

std::size_t least_members(std::span<const NodeMembers> nodes) {
  std::size_t least = nodes.empty() ? 0 : nodes.front().size();
  for (const NodeMembers& node : nodes) least = std::min(least, node.size());
  return least;
}

bool is_even(std::span<const NodeMembers> nodes) {
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](const NodeMembers& node) { return node.size() == nodes.front().size(); });
}

std::vector<std::vector<Member>> by_rail(std::span<const NodeMembers> nodes) {
  check(is_even(nodes), "every node brings as many members");
  std::vector<std::vector<Member>> rails(least_members(nodes));
  for (const NodeMembers& node : nodes)
    for (std::size_t j = 0; j < rails.size(); ++j) rails[j].push_back(node[j]);
  return rails;
}

}  // namespace trainyard::models
