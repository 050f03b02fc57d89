#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
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
/// max(P·s/x, s/x + alpha), and the last one has a tail of min(alpha, s/x).
struct LatencyTerms {
  double base_s = 0;
  double alpha_s = 0;  // mean over the edges a chunk passes
  double steps = 0;    // T
  double loops = 1;    // L
  double slices = 2;   // P
  LatencyForm form = LatencyForm::pipelined;
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

/// The part of the latency that moving `bytes` per flow at `rate_Bps` does not hide.
double exposed_latency_s(const LatencyTerms& terms, double bytes_per_flow, double rate_Bps);
/// bytes / rate + exposed latency.
double stream_time_s(const LatencyTerms& terms, double bytes_per_flow, double rate_Bps);

struct PlanTime {
  double time_s = 0;  // alone on the fabric, latency included
  double fluid_s = 0;
  std::optional<LinkIndex> bottleneck;
};
/// No time on these links can be shorter: the bytes of the busiest link over its capacity.
/// Capacities by link index. Alone, streams of equal bytes reach it.
PlanTime time_alone(const CollectivePlan& plan, std::span<const double> capacities_Bps);
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
