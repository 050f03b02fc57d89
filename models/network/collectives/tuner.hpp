#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "models/network/collectives/algorithm.hpp"
#include "models/network/collectives/link_generation.hpp"
#include "models/network/collectives/plan.hpp"

/// What a collective costs by each algorithm and protocol, and which one NCCL would take.
///
///     time = latency + fill + bytes / bandwidth           hypot(that, launch floor) if there is
///     one
///
/// *latency*: a base for the call and so much for every step, by kind of link, algorithm and
/// protocol: NCCL's constants. *bandwidth*: the slower of the scale-up links and the adapters, each
/// times its efficiency: LL sends a flag with every 4 bytes (half), LL128 8 flag bytes in 128.
/// *fill*: what makes the curves bend between 1 and 100 MiB, and a plain latency-bandwidth law
/// misses: a pipeline has to be filled with chunks before it runs at its bandwidth. In a tree every
/// level waits for a chunk from all channels of an adapter, so the fill is
///
///     2 · ceil(log2 domains) · min(S/g, 1 MiB) / adapter      NVLS tree: 16 channels of 64 KiB
///
/// and with 20.9 us a hop a level costs 2·(20.9 + 21.8) us at 400 Gb/s: published curves from 32 to
/// 8,192 GPUs say 62 to 133 us. Inside a domain: ring and NVLS hold a window of bytes in flight;
/// smaller messages go in smaller chunks: fill = (window · S / (window + S)) / bandwidth.
///
///     const LinkConstants h100 = constants_of(LinkGeneration::hopper);
///     best(CollectiveKind::all_reduce, 1 << 30, {.ranks = 32, .per_domain = 8}, h100)
///         → nvls-tree, simple: 109 us + 87 us + 5,900 us
///
/// Equations, the origin of every constant, errors by group: docs/models/collective-costs.md.
/// Source: NCCL's tuner (src/graph/tuning.cc), chunk sizes of src/enqueue.cc.
namespace trainyard::models {

/// `per_domain` ranks share a scale-up domain; each rank has an adapter of LinkConstants::nic_Bps
/// to itself (two GPUs on one adapter: half of its rate).
struct CollectiveGroup {
  std::size_t ranks = 1;
  std::size_t per_domain = 8;
};

/// One way to do it, alone on the network.
struct CollectiveCost {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  double latency_s = 0;
  double fill_s = 0;
  double bandwidth_s = 0;
  double time_s = 0;
  /// Achieved over nominal link rate, for flows over the real fabric: such a flow takes latency_s +
  /// fill_s + bytes / rate, with every scale-up link at inside_efficiency and every adapter at
  /// network_efficiency of its nominal rate. On a fabric without contention that is time_s.
  double inside_efficiency = 1;
  double network_efficiency = 1;
};

/// What the user fixed; empty: NCCL's choice.
struct TunerChoice {
  std::optional<CollectiveAlgorithm> algorithm;
  std::optional<Protocol> protocol;
};

/// All ways that NCCL has for this kind and group, in a fixed order. S is `bytes` of the full
/// tensor of one rank, as nccl-tests count it (all-to-all: what one rank sends in all, its own part
/// included). Empty for less than two ranks.
std::vector<CollectiveCost> costs(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                                  const LinkConstants& constants);

/// The one with the least predicted time among what the choice leaves; between the protocols of a
/// ring without the fill, which NCCL does not know. More bytes never take less. Nothing if there is
/// none: a tree for an all-gather, NVLS on Ampere. Less than two ranks: no time.
std::optional<CollectiveCost> best(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                                   const LinkConstants& constants, const TunerChoice& choice = {});

/// No algorithm can be faster: the bytes that must cross a scale-up link or an adapter, over its
/// nominal rate. Where switches reduce, all-reduce needs half of the bytes.
double least_time_s(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                    const LinkConstants& constants);

}  // namespace trainyard::models
