#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "models/network/collectives/plan.hpp"

/// Double binary trees over nodes, a chain inside each node, as NCCL builds them.
///
/// Two trees carry half of the bytes each; who is a leaf in one is an inner node in the other. In
/// an all-reduce a chunk goes up the tree (reduced on the way) and down again: one flow in each
/// direction for each pair of child and parent. So the adapter of an inner node sends 3 + 1 = 4
/// flows of the two trees, that of the first and last node 2, and with n >= 4 nodes
///
///     x = C/4,   time = (S/2)/x = 2·S/C          (n = 2: S/C, n = 3: 1.5·S/C)
///
/// independent of n, but for the time until the tree is full: 2·depth·(alpha + chunk/C), once a
/// call. With k members on each node and m channels an adapter there are k·m such pairs of trees,
/// each with 1/(k·m) of the bytes; pair c meets its node at local member c mod k, and the chain
/// passes all members from there on.
///
/// A broadcast uses the way down only. It starts at the first member of the group, which also feeds
/// the root of the second tree.
///
///     CollectivePlan plan = plan_tree(CollectiveKind::all_reduce, 1_GiB, group, fabric, {});
///
/// Sources: P. Sanders, J. Speck, J. L. Träff, *Two-tree algorithms for full bandwidth broadcast,
/// reduction and scan*, Parallel Computing 35(12), 2009; the construction follows
/// src/graph/trees.cc of github.com/NVIDIA/nccl. NCCL may enter a node by two adapters, one for the
/// parent and the second child each; summed over channels the loads are the same.
namespace trainyard::models {

/// The parent of `rank` among n in the first or second (`tree` 0 or 1) tree; none: the root.
std::optional<std::size_t> tree_parent(std::size_t rank, std::size_t n, int tree);
/// Edges from the root to the farthest rank of the first tree; the second is its image.
std::size_t tree_depth(std::size_t n);

/// All-reduce or broadcast.
CollectivePlan plan_tree(CollectiveKind kind, double bytes, std::span<const Member> group,
                         const PathSource& paths, const StreamOptions& options);

}  // namespace trainyard::models
