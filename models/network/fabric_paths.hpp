#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "topologies/routing.hpp"

/// Collectives on a real fabric: what PathSource asks, answered by a Router.
///
/// Links keep their numbers: LinkIndex(l.index()) of a plan is LinkId l of the fabric. A connection
/// of Q queue pairs is one flow of weight 1/Q on each of its Q paths: a plan's rate is that of a
/// connection.
///
///     FabricPaths paths(router);
///     const std::vector<double> capacities = paths.capacities({.adapters = 0.96, .fabric = 0.96});
///     PhasedPlan plan = paths.plan(kind, algorithm, bytes, group, {});
///     if (paths.no_path()) …                              // tell the user which links are the cut
///     double alone_s = time_alone_s(plan, capacities);
///
/// *Two adapters that are not wired* (rail-only fabrics): the flow goes over the scale-up switch of
/// the sender to a GPU whose adapter is wired to the receiver, and from there.
///
/// *In-network reduction* on trees: the common leaf, else one spine of the pod, else one core, of
/// those that reach all adapters. The trees of a plan take them in turn from a place that the label
/// gives, as a manager of aggregation trees spreads them. Each adapter's share goes up and down its
/// tree once. A dual-homed adapter has half of it on the tree of each port. Other fabrics have
/// none.
///
/// *Speed.* Where neighbours are alike (sprayed and intact) paths are counted by pair of edge
/// switches and written out once a pair: a million pairs of GPUs are a thousand pairs of leaves.
///
/// Pages: docs/models/collectives.md, docs/models/routing.md.
namespace trainyard::models {

/// Achieved over nominal rate by kind of link.
struct LinkEfficiency {
  double scale_up = 1;
  double adapters = 1;  // adapter to its switch and back
  double fabric = 1;    // between switches
};

class FabricPaths final : public PathSource {
 public:
  explicit FabricPaths(const topologies::Router& router);

  /// plan_collective() over these paths.
  PhasedPlan plan(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                  std::span<const Member> group, const CollectiveOptions& options) const;
  /// Every member i sends `bytes` to the member half way round, i + n/2: streams of one phase.
  PhasedPlan plan_permutation(double bytes, std::span<const Member> group,
                              const CollectiveOptions& options) const;

  /// Adapters that could not be joined, the first since this was made: plans lack its flows.
  struct NoPath {
    topologies::NicId from, to;
  };
  const std::optional<NoPath>& no_path() const { return no_path_; }

  /// By link, as they are now: zero when down.
  std::vector<double> capacities(const LinkEfficiency& efficiency) const;
  static double of_kind(const LinkEfficiency& efficiency, topologies::LinkKind kind);

  void add_path(std::size_t from_nic, std::size_t to_nic, std::uint64_t label, double flows,
                LoadAccumulator& loads) const override;
  void add_scale_up(std::size_t from_gpu, std::size_t to_gpu, double flows,
                    LoadAccumulator& loads) const override;
  void add_scale_up_switch(std::span<const std::size_t> gpus, double out, double in,
                           LoadAccumulator& loads) const override;
  bool add_reduction_tree(std::span<const std::size_t> nics, std::uint64_t label, double weight,
                          LoadAccumulator& loads) const override;

 private:
  bool add_wired(topologies::NicId from, topologies::NicId to, std::uint64_t label, double flows,
                 LoadAccumulator& loads) const;
  bool add_over_other_rail(topologies::NicId from, topologies::NicId to, std::uint64_t label,
                           double flows, LoadAccumulator& loads) const;
  topologies::GpuId gpu_of(topologies::NicId nic) const;
  bool append_tree(std::span<const std::size_t> nics, int port, std::uint64_t turn,
                   std::vector<topologies::LinkId>& tree) const;
  bool append_tree_below(topologies::VertexId root, std::span<const topologies::VertexId> edges,
                         std::uint64_t cable, std::vector<topologies::LinkId>& tree) const;
  void write_out(std::vector<CollectivePhase>& phases) const;

  const topologies::Router& router_;
  const topologies::Fabric& fabric_;
  bool counts_by_edge_;  // loads beyond the adapters as numbers from links().size() on
  std::vector<topologies::NicId> first_nic_of_edge_;
  mutable std::optional<NoPath> no_path_;
  mutable std::optional<std::uint64_t> next_tree_;
};

}  // namespace trainyard::models
