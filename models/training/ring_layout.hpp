#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/training/plan.hpp"

/// Which ranks reduce and gather together, and what their rings put between servers; ranks only,
/// no fabric.
///
///     shards     ranks over which weights other than experts' are sharded (Plan::shard_group);
///                without sharding all ranks that hold the same weights
///     replicas   hybrid sharding: the ranks at one position of all shard groups
///     experts    ranks that hold the same experts
///
/// Ranks with the same tensor coordinate of one stage hold the same weights: all their (data,
/// context) coordinates, ascending. Neighbours in that list make a shard group. Expert-parallel
/// groups are `expert` neighbours of the same list, or, where experts are not split
/// (expert_tensor = 1), of all ranks of the stage; the ranks at one position of all of them hold
/// the same experts.
///
///     ring_groups(plan, 0, RingKind::shards);  // {{0, 2, 4, 6}, {1, 3, 5, 7}}
///
/// A ring visits its members in rank order, so those of one server together. With at least k
/// members in every server it has k channels. A channel enters and leaves a server by the adapter
/// of one member and visits all others over the scale-up links:
///
///     bytes of one channel, every edge = (n - 1)/n · S / k
///
/// Page: docs/models/data-traffic.md.
namespace trainyard::models {

enum class RingKind { shards, replicas, experts };
inline constexpr std::size_t ring_kinds = 3;

/// Ranks of one group; 1: nothing to do.
int ring_size(const Plan& plan, RingKind kind);

/// The groups of a stage, each ascending; empty if a group is one rank.
std::vector<std::vector<int>> ring_groups(const Plan& plan, int stage, RingKind kind);

/// One connection between two servers, by place of the GPUs in them. `weight`: flows of it for one
/// flow of the ring.
struct RingConnection {
  int from = 0;
  int to = 0;
  int channel = 0;
  double weight = 1;
  friend auto operator<=>(const RingConnection&, const RingConnection&) = default;
};
using RingConnections = std::vector<RingConnection>;

/// Every list of connections once: most edges of a job are alike.
class RingShapes {
 public:
  int number_of(const RingConnections& connections);
  const RingConnections& operator[](int number) const { return *shapes_[std::size_t(number)]; }

 private:
  std::map<RingConnections, int> numbers_;
  std::vector<const RingConnections*> shapes_;
};

/// All rings of one kind and stage together. Servers are numbered as the job's ranks fill them.
struct RingLayout {
  struct Edge {
    int from = 0;
    int to = 0;
    int shape = 0;
  };
  int channels = 1;          // of the ring with the fewest
  int servers = 1;           // of the ring with the most; 1: all live inside scale-up domains
  std::vector<Edge> edges;   // between servers, each pair of them once
  std::vector<int> passing;  // ranks that pass on to others of their server
};

/// Rings with more channels than the fewest have proportionally thinner connections: all of them
/// move their bytes in the same time.
RingLayout ring_layout(const Plan& plan, int stage, RingKind kind, int gpus_per_server,
                       RingShapes& shapes);

/// The servers that a stage has ranks on, ascending.
std::vector<int> servers_of_stage(const Plan& plan, int stage, int gpus_per_server);

}  // namespace trainyard::models
