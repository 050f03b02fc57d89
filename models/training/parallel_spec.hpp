#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

enum class Precision { bf16, fp16, fp8, fp8_rowwise, mxfp8, nvfp4 };
enum class Recompute { none, selective, per_operation, full };
enum class Sharding { none, zero1, zero2, zero3, fsdp };
enum class Schedule { gpipe, one_f_one_b, interleaved, zero_bubble };
enum class ContextExchange { ring, all_gather };

/// ZeRO-3 and FSDP: no rank holds whole weights between uses.
constexpr bool shards_weights(Sharding s) {
  return s == Sharding::zero3 || s == Sharding::fsdp;
}

/// The four dimensions of a rank order, fastest first: "tp-cp-dp-pp". Experts live inside the
/// first three (docs/models/step.md).
enum class RankDimension { tensor, context, data, pipeline };

/// Empty if the text is not a permutation of tp, cp, dp and pp.
inline std::optional<std::array<RankDimension, 4>> rank_order(const std::string& text) {
  constexpr std::array<std::string_view, 4> names{"tp", "cp", "dp", "pp"};
  std::array<RankDimension, 4> order{};
  std::array<bool, 4> seen{};
  std::istringstream words(text);
  std::string word;
  std::size_t n = 0;
  for (; std::getline(words, word, '-'); ++n) {
    const auto at = std::find(names.begin(), names.end(), word);
    if (n == 4 || at == names.end()) return {};
    const auto d = std::size_t(at - names.begin());
    if (seen[d]) return {};
    seen[d] = true;
    order[n] = RankDimension(d);
  }
  if (n != 4) return {};
  return order;
}

/// How one step is spread over GPUs. Ranks are ordered tensor, context, data, pipeline (fastest
/// first), as in Megatron, unless `order` says otherwise. Expert-parallel groups are neighbours
/// among the ranks of one stage.
struct ParallelSpec {
  int tensor = 1;
  int pipeline = 1;
  int context = 1;
  int expert = 1;
  std::optional<int> expert_tensor{};  // default: tensor
  std::optional<int> data{};           // default: gpus / (tensor * context * pipeline)
  std::string order = "tp-cp-dp-pp";
  bool sequence_parallel =
      true;  // with tensor parallelism: norms and dropout split over the sequence
  Schedule schedule = Schedule::one_f_one_b;
  int chunks = 1;                   // model chunks of one stage (interleaved)
  std::vector<int> stage_layers{};  // layers of each virtual stage; default: divided evenly
  int micro_batch = 1;              // sequences
  ContextExchange context_exchange = ContextExchange::ring;
  Sharding sharding = Sharding::zero1;
  std::optional<int> shard_group{};  // ranks over which is sharded; default: all that share weights
  Recompute recompute = Recompute::none;
  double recompute_share = 1.0;  // of the layers
  Precision precision = Precision::bf16;
};

template <class Visitor>
void describe(Visitor& v, ParallelSpec& s) {
  v.optional("tensor", s.tensor, "tensor-parallel size (TP)", at_least(1));
  v.optional("pipeline", s.pipeline, "pipeline stages (PP)", at_least(1));
  v.optional("context", s.context, "context-parallel size (CP): splits every sequence",
             at_least(1));
  v.optional("expert", s.expert,
             "expert-parallel size (EP), among the ranks of one stage; needs a model with experts",
             at_least(1));
  v.optional("expert_tensor", s.expert_tensor,
             "tensor-parallel size inside experts (ETP): 1 or tensor; default: tensor",
             at_least(1));
  v.optional("data", s.data,
             "data-parallel size (DP); default: gpus / (tensor * context * pipeline)", at_least(1));
  v.optional("order", s.order, "rank order, fastest first: a permutation of tp-cp-dp-pp");
  v.optional("sequence_parallel", s.sequence_parallel,
             "split norms and dropout over the sequence inside a tensor-parallel group");
  v.optional("schedule", s.schedule, "pipeline schedule");
  v.optional("chunks", s.chunks,
             "model chunks of one stage (virtual stages), with the interleaved schedule",
             at_least(1));
  v.optional("stage_layers", s.stage_layers,
             "layers of every virtual stage, in the order of the model (pipeline * chunks "
             "numbers); default: divided evenly",
             at_least(0));
  v.optional("micro_batch", s.micro_batch, "sequences of one micro-batch", at_least(1));
  v.optional("context_exchange", s.context_exchange,
             "how context-parallel ranks see each other's keys and values: passed around a ring "
             "behind attention, or gathered before it");
  v.optional("sharding", s.sharding,
             "what is sharded over the ranks that share weights: nothing, optimizer state "
             "(zero-1), gradients too (zero-2), weights too (zero-3, fsdp)");
  v.optional("shard_group", s.shard_group,
             "ranks over which is sharded (hybrid sharding, HSDP); default: all data * context "
             "ranks",
             at_least(1));
  v.optional("recompute", s.recompute, "activation recomputation in the backward pass");
  v.optional("recompute_share", s.recompute_share, "share of the layers that recompute",
             between(0, 1));
  v.optional("precision", s.precision, "precision of matrix products");
  v.check(s.schedule == Schedule::interleaved || s.chunks == 1, "chunks",
          "only the interleaved schedule has several chunks; set schedule to \"interleaved\" or "
          "chunks to 1");
  v.check(s.schedule != Schedule::interleaved || s.pipeline > 1, "schedule",
          "the interleaved schedule needs pipeline of at least 2");
  v.check(rank_order(s.order).has_value(), "order",
          "must name tp, cp, dp and pp once each, joined by \"-\": \"tp-cp-dp-pp\"");
  v.check(!s.expert_tensor || *s.expert_tensor == 1 || *s.expert_tensor == s.tensor,
          "expert_tensor", "must be 1 or equal to tensor");
  v.check(!s.shard_group || s.sharding != Sharding::none, "shard_group",
          "needs sharding of \"zero-1\" or more");
}

/// Documented switches and constants of a training software stack; defaults: current Megatron-Core.
struct SoftwareSpec {
  std::string name;
  double tensor_overlap_forward =
      0.0;  // hidden share of tensor-parallel traffic, with sequence parallelism
  double tensor_overlap_backward = 0.5;  // behind the product that gives the weight gradient
  double tensor_regather = 0.6;    // of a gather: sequence-sharded inputs needed again in backward
  bool gather_in_fp8 = false;      // tensor-parallel gathers of FP8 products in one byte
  bool overlap_data = true;        // gradient reduction and parameter gather behind compute
  Bytes bucket{250e6};             // gradients reduced in one piece
  double data_slowdown = 0.2;      // time that kernels lose beside a data-parallel collective
  bool overlap_pipeline = true;    // transfers between stages behind compute
  bool scatter_pipeline = true;    // tensor-parallel ranks send a slice each
  double pipeline_overhead = 0.0;  // of a pass through a stage, with pipeline parallelism
  int gradient_bytes = 4;          // per parameter in the gradient reduction
  std::optional<double> accumulation_bytes{};  // per parameter and micro-batch; default: read and
                                               // write of gradient_bytes
  bool flash_attention = true;
  double logit_memory = 6;      // bytes held for a logit: fused loss 4, Megatron 6, PyTorch 12
  double attention_rate = 1.0;  // of the GPU's calibrated attention kernel
  bool cuda_graphs = false;
  Duration host_floor{98000};  // least host time of one pass of a layer: 14 launches of 7 us
  double elementwise =
      1.05;  // bytes moved over the least for norms and activations: fused 1.05, eager 1.87
  double cast_bytes = 0.95;         // FP8 and FP4: of the tensors to quantise, over the least
  double fsdp_exposed = 0.72;       // share of FSDP traffic that is not hidden at best
  int gathers_per_layer = 1;        // collectives of one layer with sharded weights
  double data_rate = 1.0;           // achieved by data-parallel traffic over what the network gives
  double context_overhead = 0.025;  // of attention, for splitting it over context-parallel ranks
  double expert_overlap = 0.0;      // hidden share of the expert all-to-all
  bool expert_deduplication = false;  // a token crosses once to a server that holds several of its
                                      // experts
  bool fused_permute = true;          // tokens are sorted by expert in one kernel each way
  double expert_permute = 1.35;       // bytes of sorting tokens by expert, over the least
  bool fused_experts = false;  // activation and quantisation inside the products of the experts
  Duration expert_host_floor{98000};  // host_floor of a layer with experts
  bool latent_recompute = false;  // up-projections of latent attention again in the backward pass
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
  v.optional("tensor_regather", s.tensor_regather,
             "share of one more gather in the backward pass: inputs split over the sequence are "
             "needed whole again",
             between(0, 1));
  v.optional("gather_in_fp8", s.gather_in_fp8,
             "tensor-parallel gathers in front of FP8 products carry one byte an element");
  v.optional("overlap_data", s.overlap_data,
             "hide gradient reduction and parameter gather behind compute");
  v.optional("bucket", s.bucket, "gradients that are reduced in one piece, as they become ready",
             above(0));
  v.optional("overlap_pipeline", s.overlap_pipeline,
             "hide transfers between pipeline stages behind compute");
  v.optional("data_slowdown", s.data_slowdown,
             "what kernels lose while a gradient reduction or parameter gather runs beside them, "
             "of its time (it takes SMs and memory bandwidth)",
             between(0, 1));
  v.optional("scatter_pipeline", s.scatter_pipeline,
             "without sequence parallelism: each tensor-parallel rank sends a slice to the next "
             "stage, which gathers them inside its server; false: each sends all of it");
  v.optional("pipeline_overhead", s.pipeline_overhead,
             "what the pipeline engine adds to every pass through a stage, relative",
             between(0, 1));
  v.optional("gradient_bytes", s.gradient_bytes, "bytes per parameter in the gradient reduction",
             between(1, 4));
  v.optional("accumulation_bytes", s.accumulation_bytes,
             "bytes per parameter moved to add the gradients of one micro-batch; default: read "
             "and write gradient_bytes",
             at_least(0));
  v.optional("flash_attention", s.flash_attention, "fused attention kernel");
  v.optional("logit_memory", s.logit_memory,
             "bytes held for one logit while the loss is computed (fused 4, Megatron 6, PyTorch's "
             "cross entropy 12)",
             at_least(0));
  v.optional("attention_rate", s.attention_rate,
             "rate of this stack's attention kernel over the calibrated one of the GPU",
             between(0.05, 2));
  v.optional("cuda_graphs", s.cuda_graphs, "kernels launched from captured graphs: no host floor");
  v.optional("host_floor", s.host_floor,
             "least time in which the host launches one pass of a layer", at_least(0));
  v.optional("elementwise", s.elementwise,
             "bytes moved by norms and activations over the least possible", at_least(1));
  v.optional("cast_bytes", s.cast_bytes,
             "bytes moved to quantise operands over those of the tensors (FP8, FP4)", at_least(0));
  v.optional("fsdp_exposed", s.fsdp_exposed,
             "share of FSDP traffic exposed even under long compute", between(0, 1));
  v.optional("gathers_per_layer", s.gathers_per_layer,
             "collectives in which a layer of sharded weights is gathered", at_least(1));
  v.optional("data_rate", s.data_rate, "rate of data-parallel traffic over what the network gives",
             between(0.01, 1));
  v.optional("context_overhead", s.context_overhead,
             "what context parallelism adds to attention, relative", between(0, 1));
  v.optional("expert_overlap", s.expert_overlap, "hidden share of the expert all-to-all",
             between(0, 1));
  v.optional("expert_deduplication", s.expert_deduplication,
             "a token is sent once to a scale-up domain that holds several of its experts");
  v.optional("fused_permute", s.fused_permute,
             "one kernel sorts tokens by expert, one brings them back and weighs them; false: "
             "gather, weights and scatter-add apart");
  v.optional("expert_permute", s.expert_permute,
             "bytes moved to sort tokens by expert over the least possible", at_least(0));
  v.optional("fused_experts", s.fused_experts,
             "products of the experts apply the activation and quantise its result themselves");
  v.optional("expert_host_floor", s.expert_host_floor,
             "host_floor of a layer with experts, whose kernels are many", at_least(0));
  v.optional("latent_recompute", s.latent_recompute,
             "latent attention: queries, keys and values are projected up again in the backward "
             "pass instead of kept");
  v.optional("jitter_per_doubling", s.jitter_per_doubling,
             "relative growth of the step per doubling of GPUs above 8", between(0, 0.1));
}

/// Mechanisms of the step model, to be turned off one by one in ablations
/// (docs/validation.md). Not a setting of scenarios.
struct Mechanisms {
  bool tensor_traffic = true;
  bool data_traffic = true;
  bool pipeline_traffic = true;
  bool context_traffic = true;
  bool expert_traffic = true;
  bool tensor_overlap = true;
  bool data_overlap = true;
  bool bubble = true;
  bool interleaving = true;
  bool recompute = true;
  bool memory_bound_work = true;
  bool gemm_shape = true;    // saturation, waves, padding
  bool k_saturation = true;  // of these, saturation alone
  bool gradient_accumulation = true;
  bool kernel_floor = true;
  bool host_floor = true;
  bool deduplication = true;
  bool jitter = true;
};

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Precision> {
  using P = models::Precision;
  static constexpr auto all = names<P>({{P::bf16, "bf16"},
                                        {P::fp16, "fp16"},
                                        {P::fp8, "fp8"},
                                        {P::fp8_rowwise, "fp8-rowwise"},
                                        {P::mxfp8, "mxfp8"},
                                        {P::nvfp4, "nvfp4"}});
};
template <>
struct Names<models::Recompute> {
  using R = models::Recompute;
  static constexpr auto all = names<R>({{R::none, "none"},
                                        {R::selective, "selective"},
                                        {R::per_operation, "per-operation"},
                                        {R::full, "full"}});
};
template <>
struct Names<models::Sharding> {
  using S = models::Sharding;
  static constexpr auto all = names<S>({{S::none, "none"},
                                        {S::zero1, "zero-1"},
                                        {S::zero2, "zero-2"},
                                        {S::zero3, "zero-3"},
                                        {S::fsdp, "fsdp"}});
};
template <>
struct Names<models::Schedule> {
  using S = models::Schedule;
  static constexpr auto all = names<S>({{S::gpipe, "gpipe"},
                                        {S::one_f_one_b, "1f1b"},
                                        {S::interleaved, "interleaved"},
                                        {S::zero_bubble, "zero-bubble"}});
};
template <>
struct Names<models::ContextExchange> {
  using C = models::ContextExchange;
  static constexpr auto all = names<C>({{C::ring, "ring"}, {C::all_gather, "all-gather"}});
};
}  // namespace trainyard
