#pragma once

#include <cstddef>
#include <span>

#include "models/network/collectives/grouping.hpp"

/// Parts of the double binary tree that nvls-tree shares with it.
namespace trainyard::models {

/// From one node to another of a tree, between the adapters of the channel.
void add_tree_edge(std::span<const NodeMembers> nodes, std::size_t from, std::size_t to,
                   std::size_t channel, int tree, const PathSource& paths,
                   const StreamOptions& options, LoadAccumulator& loads);
/// Both directions of every edge.
void add_tree_edges(std::span<const NodeMembers> nodes, std::size_t channel, int tree,
                    const PathSource& paths, const StreamOptions& options, LoadAccumulator& loads);
/// Steps and fill for a tree over so many nodes, with a chain of `chain` hops in each.
void set_tree_latency(CollectivePlan& plan, std::size_t nodes, std::size_t chain, bool up_and_down,
                      const StreamOptions& options);

}  // namespace trainyard::models
