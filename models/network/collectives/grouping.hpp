#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/network/collectives/plan.hpp"

/// The members of a group by node. Position within its node stands for the rail of a member.
namespace trainyard::models {

using NodeMembers = std::vector<Member>;

/// Nodes in the order of their first member, members of a node in the order given.
std::vector<NodeMembers> by_node(std::span<const Member> group);
/// Of the node with the fewest; 0 without nodes.
std::size_t least_members(std::span<const NodeMembers> nodes);
/// Every node brings as many members as the others.
bool is_even(std::span<const NodeMembers> nodes);
/// Member j of each node, for each j: the rails. The nodes are even.
std::vector<std::vector<Member>> by_rail(std::span<const NodeMembers> nodes);

}  // namespace trainyard::models
