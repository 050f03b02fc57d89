#pragma once

#include <optional>
#include <span>

#include "models/network/collectives/plan.hpp"

/// Reductions done by switches: of the fabric (SHARP), of the scale-up domain (NVLS), or NVLS
/// inside nodes with double binary trees between them (NVLS tree). All phases of one call overlap
/// chunk by chunk, so each stream is one variable over all links that it uses.
///
///     sharp      weight 1 on each member's adapter in both directions and once on each link of the
///                switch tree in both directions, for S bytes: S/C where a ring takes 2(n-1)/n·S/C.
///                With k members a node one tree a rail with S/k each; inside the node each member
///                scatters to the others, which reduce their part, and gathers it again.
///     nvls       a GPU sends S and receives S/g to reduce (g GPUs in the domain), and the reverse
///                to gather: (1 + 1/g)·S in each direction for an all-reduce.
///     nvls-tree  each GPU is the head of S/g: nvls in the node, a double binary tree a rail.
///
/// What a scale-up switch reaches of its line rate (0.85 on Hopper, 0.74 on Blackwell by NCCL's
/// constants) is not part of the plan: it belongs to the capacities.
///
/// Sources: R. Graham et al., *Scalable Hierarchical Aggregation and Reduction Protocol*, COMHPC
/// 2016; NCCL 2.17 and later (src/device/all_reduce.h of github.com/NVIDIA/nccl). NVLS weights are
/// derived from this traffic; no message-level simulation stands beside them.
namespace trainyard::models {

/// All-reduce. None: the fabric has no reduction tree over these adapters.
std::optional<CollectivePlan> plan_sharp(double bytes, std::span<const Member> group,
                                         const PathSource& paths, const StreamOptions& options);

/// All-reduce, reduce-scatter or all-gather in one domain.
CollectivePlan plan_nvls(CollectiveKind kind, double bytes, std::span<const Member> group,
                         const PathSource& paths, const StreamOptions& options);

/// All-reduce over several domains, as many members in each.
CollectivePlan plan_nvls_tree(double bytes, std::span<const Member> group, const PathSource& paths,
                              const StreamOptions& options);

}  // namespace trainyard::models
