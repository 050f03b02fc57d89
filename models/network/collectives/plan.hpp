#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/network/max_min.hpp"
#include "sim/describe.hpp"

/// A collective as the fluid network sees it.
///
/// The members of a collective advance in lock-step, so each independent stream of it (one channel
/// of a ring, one rail of a hierarchy) is *one* variable: x = the rate of one flow, w(l) = its
/// number of flows on link l, bytes = what one flow carries. Alone it takes bytes · max w/C:
/// exactly what the messages would take one by one (docs/models/collectives.md).
///
/// A collective whose steps differ in distance or bytes is a sequence of such plans, its phases.
///
/// Where the ranks are, and which links a path uses, comes from outside: a list of members and a
/// PathSource. Bytes are those of the full tensor of one rank, as nccl-tests count them.
namespace trainyard::models {

enum class CollectiveKind {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  point_to_point
};

/// One rank of a group.
struct Member {
  std::size_t gpu = 0;
  std::size_t nic = 0;   // the adapter nearest to its GPU
  std::size_t node = 0;  // its scale-up domain
};

/// Weights by link, in any order, summed when taken.
class LoadAccumulator {
 public:
  void add(LinkIndex link, double weight) {
    loads_.push_back({link, weight});
    if (loads_.size() >= room_) sum_up();
  }
  /// In order of links, each once; the accumulator is empty afterwards.
  std::vector<Load> take();

 private:
  void sum_up();
  std::vector<Load> loads_;
  std::size_t room_ = 4096;  // a million pairs over a thousand links do not need a million entries
};

/// The fabric, as far as collectives need it.
class PathSource {
 public:
  virtual ~PathSource() = default;
  /// Adds `flows` flows from one adapter to another on every directed link between them, the links
  /// of both adapters included. Equal labels take equal paths; a hash over paths uses the label.
  virtual void add_path(std::size_t from_nic, std::size_t to_nic, std::uint64_t label, double flows,
                        LoadAccumulator& loads) const = 0;
  /// Adds flows from one GPU to another of the same scale-up domain. Left out: never the limit.
  virtual void add_scale_up([[maybe_unused]] std::size_t from_gpu,
                            [[maybe_unused]] std::size_t to_gpu, [[maybe_unused]] double flows,
                            [[maybe_unused]] LoadAccumulator& loads) const {}
  /// Adds `out` flows from each of these GPUs into the switch of their scale-up domain, and `in`
  /// flows back to each: reduction and multicast in that switch. Left out: flows from each to the
  /// next (one GPU: to itself), which load both directions with the larger of the two.
  virtual void add_scale_up_switch(std::span<const std::size_t> gpus, double out, double in,
                                   LoadAccumulator& loads) const;
  /// Adds a reduction tree of switches over these adapters, `weight` flows on each link of it in
  /// *both* directions, the links of the adapters included. The label chooses among equal trees.
  /// False, and nothing added: the switches cannot reduce, or no tree joins these adapters.
  virtual bool add_reduction_tree([[maybe_unused]] std::span<const std::size_t> nics,
                                  [[maybe_unused]] std::uint64_t label,
                                  [[maybe_unused]] double weight,
                                  [[maybe_unused]] LoadAccumulator& loads) const {
    return false;
  }
};

enum class LatencyForm {
  pipelined,  // a step's latency hides behind the other slices in flight
  additive    // every step pays it in full: the conservative form
};

/// What a step costs besides moving bytes.
struct MessageCosts {
  double base_s = 0;             // once a call
  double scale_up_s = 0;         // one step inside a node
  double nic_s = 0;              // one step between nodes
  double slice_bytes = 1048576;  // largest slice of a step; NCCL with 4 MiB buffers
  int slices = 2;                // slices in flight a step; NCCL 2
  LatencyForm form = LatencyForm::pipelined;
};

/// T steps in L loops of P slices. With slices of s bytes at rate x a step takes
/// max(P·s/x, s/x + alpha), and the last one has a tail of min(alpha, s/x). A tree must first be
/// filled, once: fill_chunks · chunk/x more.
struct LatencyTerms {
  double base_s = 0;
  double alpha_s = 0;  // mean over the edges a chunk passes
  double steps = 0;    // T
  double loops = 1;    // L
  double slices = 2;   // P
  LatencyForm form = LatencyForm::pipelined;
  double fill_chunks = 0;  // that one flow could pass before the tree is full
  double chunk_bytes = 0;  // of one flow
};

struct Stream {
  std::vector<Load> loads;
  double bytes_per_flow = 0;
};

/// Streams start together; the collective ends with the last of them, plus what of its latency
/// shows.
struct CollectivePlan {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double bytes = 0;
  std::size_t ranks = 0;
  std::vector<Stream> streams;
  LatencyTerms latency;
};

/// One part of a collective; it begins when the one before has ended.
struct CollectivePhase {
  std::string name;
  CollectivePlan plan;
};

/// How the streams of rings and trees are laid over adapters.
struct StreamOptions {
  int channels_per_nic = 1;  // m
  int queue_pairs = 1;       // flows an edge, each with a path and an equal part of the bytes
  bool pxn = true;           // a chunk changes rails inside the node, not in the fabric
  /// One stream for all channels instead of one each: fewer variables. Exact when channels are
  /// alike.
  bool merge_channels = false;
  std::uint64_t label = 0;  // of the collective, for hashed paths
  MessageCosts costs = {};
};

/// The part of the latency that moving `bytes` per flow at `rate_Bps` does not hide.
double exposed_latency_s(const LatencyTerms& terms, double bytes_per_flow, double rate_Bps);
/// bytes / rate + exposed latency.
double stream_time_s(const LatencyTerms& terms, double bytes_per_flow, double rate_Bps);

/// The same plan for a part of its bytes, cut into slices of the same size.
CollectivePlan scaled(CollectivePlan plan, double fraction);

struct PlanTime {
  double time_s = 0;  // alone on the fabric, latency included
  double fluid_s = 0;
  std::optional<LinkIndex> bottleneck;
};
/// No time on these links can be shorter: the bytes of the busiest link over its capacity.
/// Capacities by link index. Alone, streams of equal bytes reach it.
PlanTime time_alone(const CollectivePlan& plan, std::span<const double> capacities_Bps);
/// Bytes that the plan puts on each link, in order of links, each once.
std::vector<Load> bytes_by_link(const CollectivePlan& plan);
double bound_s(const CollectivePlan& plan, std::span<const double> capacities_Bps);

/// Bytes each rank's link must carry over the bytes of the tensor, by the definitions of
/// nccl-tests: all-reduce 2(n-1)/n; all-gather, reduce-scatter, all-to-all (n-1)/n; else 1.
double bus_factor(CollectiveKind kind, std::size_t ranks);
/// Algorithm bandwidth: bytes of the tensor over time.
double algbw_Bps(double bytes, double time_s);
/// Bus bandwidth: what the busiest link of a rank would show; comparable between group sizes.
double busbw_Bps(CollectiveKind kind, std::size_t ranks, double bytes, double time_s);

/// One stream that stands for several of equal bytes: loads summed. Exact when all have the same
/// loads (sprayed paths); else it is as slow as the slowest (coupled-flow error,
/// docs/models/collectives.md).
Stream merged(std::span<const Stream> streams);

/// A label of its own for each connection, from the collective's label and up to three numbers.
std::uint64_t connection_label(std::uint64_t label, std::uint64_t a, std::uint64_t b,
                               std::uint64_t c);

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::CollectiveKind> {
  static constexpr auto all =
      names<models::CollectiveKind>({{models::CollectiveKind::all_reduce, "all-reduce"},
                                     {models::CollectiveKind::reduce_scatter, "reduce-scatter"},
                                     {models::CollectiveKind::all_gather, "all-gather"},
                                     {models::CollectiveKind::broadcast, "broadcast"},
                                     {models::CollectiveKind::all_to_all, "all-to-all"},
                                     {models::CollectiveKind::point_to_point, "point-to-point"}});
};
template <>
struct Names<models::LatencyForm> {
  static constexpr auto all = names<models::LatencyForm>(
      {{models::LatencyForm::pipelined, "pipelined"}, {models::LatencyForm::additive, "additive"}});
};
}  // namespace trainyard
