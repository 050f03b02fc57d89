#pragma once

#include <optional>
#include <string>

#include "sim/describe.hpp"

namespace trainyard::models {

enum class Precision { bf16, fp8 };
enum class Recompute { none, selective, full };
enum class Sharding { none, zero1, fsdp };
enum class Schedule { one_f_one_b, interleaved };

/// How one step is spread over GPUs. Ranks are ordered tensor, data, pipeline (fastest first), as
/// in Megatron without context and expert parallelism: rank = tp_rank + tp * (dp_rank + dp *
/// pp_rank).
struct ParallelSpec {
  int tensor = 1;
  int pipeline = 1;
  std::optional<int> data;  // default: gpus / (tensor * pipeline)
  bool sequence_parallel =
      true;  // with tensor parallelism: norms and dropout split over the sequence
  Schedule schedule = Schedule::one_f_one_b;
  int chunks = 1;       // model chunks of one stage (interleaved)
  int micro_batch = 1;  // sequences
  Sharding sharding = Sharding::zero1;
  Recompute recompute = Recompute::none;
  Precision precision = Precision::bf16;
};

template <class Visitor>
void describe(Visitor& v, ParallelSpec& s) {
  v.optional("tensor", s.tensor, "tensor-parallel size (TP)", at_least(1));
  v.optional("pipeline", s.pipeline, "pipeline stages (PP)", at_least(1));
  v.optional("data", s.data, "data-parallel size (DP); default: gpus / (tensor * pipeline)",
             at_least(1));
  v.optional("sequence_parallel", s.sequence_parallel,
             "split norms and dropout over the sequence inside a tensor-parallel group");
  v.optional("schedule", s.schedule, "pipeline schedule");
  v.optional("chunks", s.chunks,
             "model chunks of one stage (virtual stages), with the interleaved schedule",
             at_least(1));
  v.optional("micro_batch", s.micro_batch, "sequences of one micro-batch", at_least(1));
  v.optional("sharding", s.sharding,
             "what is sharded over data-parallel ranks: nothing, optimizer state (ZeRO-1), "
             "everything (FSDP)");
  v.optional("recompute", s.recompute, "activation recomputation in the backward pass");
  v.optional("precision", s.precision, "precision of matrix products");
  v.check(s.schedule == Schedule::interleaved || s.chunks == 1, "chunks",
          "only the interleaved schedule has several chunks; set schedule to \"interleaved\" or "
          "chunks to 1");
  v.check(s.schedule != Schedule::interleaved || s.pipeline > 1, "schedule",
          "the interleaved schedule needs pipeline of at least 2");
}

/// Documented switches and constants of a training software stack; defaults: current Megatron-Core.
struct SoftwareSpec {
  std::string name;
  double tensor_overlap_forward =
      0.0;  // hidden share of tensor-parallel traffic, with sequence parallelism
  double tensor_overlap_backward = 0.5;  // behind the product that gives the weight gradient
  bool overlap_data = true;              // gradient reduction and parameter gather behind compute
  bool overlap_pipeline = true;          // transfers between stages behind compute
  int gradient_bytes = 4;                // per parameter in the gradient reduction
  bool flash_attention = true;
  bool cuda_graphs = false;
  double elementwise =
      1.05;  // bytes moved over the least for norms and activations: fused 1.05, eager 1.87
  double fsdp_exposed = 0.72;  // share of FSDP traffic that is not hidden at best
  double jitter_per_doubling =
      0.006;  // mean of the maximum over ranks, per doubling above one server of 8
};

template <class Visitor>
void describe(Visitor& v, SoftwareSpec& s) {
  v.optional("name", s.name, "name shown in reports");
  v.optional(
      "tensor_overlap_forward", s.tensor_overlap_forward,
      "hidden share of tensor-parallel traffic in the forward pass (needs sequence_parallel)",
      between(0, 1));
  v.optional("tensor_overlap_backward", s.tensor_overlap_backward, "the same in the backward pass",
             between(0, 1));
  v.optional("overlap_data", s.overlap_data,
             "hide gradient reduction and parameter gather behind compute");
  v.optional("overlap_pipeline", s.overlap_pipeline,
             "hide transfers between pipeline stages behind compute");
  v.optional("gradient_bytes", s.gradient_bytes, "bytes per parameter in the gradient reduction",
             between(1, 4));
  v.optional("flash_attention", s.flash_attention, "fused attention kernel");
  v.optional("cuda_graphs", s.cuda_graphs, "kernels launched from captured graphs: no host floor");
  v.optional("elementwise", s.elementwise,
             "bytes moved by norms and activations over the least possible", at_least(1));
  v.optional("fsdp_exposed", s.fsdp_exposed,
             "share of FSDP traffic exposed even under long compute", between(0, 1));
  v.optional("jitter_per_doubling", s.jitter_per_doubling,
             "relative growth of the step per doubling of GPUs above 8", between(0, 0.1));
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Precision> {
  static constexpr auto all = names<models::Precision>(
      {{models::Precision::bf16, "bf16"}, {models::Precision::fp8, "fp8"}});
};
template <>
struct Names<models::Recompute> {
  static constexpr auto all = names<models::Recompute>({{models::Recompute::none, "none"},
                                                        {models::Recompute::selective, "selective"},
                                                        {models::Recompute::full, "full"}});
};
template <>
struct Names<models::Sharding> {
  static constexpr auto all = names<models::Sharding>({{models::Sharding::none, "none"},
                                                       {models::Sharding::zero1, "zero-1"},
                                                       {models::Sharding::fsdp, "fsdp"}});
};
template <>
struct Names<models::Schedule> {
  static constexpr auto all = names<models::Schedule>(
      {{models::Schedule::one_f_one_b, "1f1b"}, {models::Schedule::interleaved, "interleaved"}});
};
}  // namespace trainyard
