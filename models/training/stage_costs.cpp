#include "models/training/stage_costs.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "models/training/pass_costs.hpp"
#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

// Softmax and cross entropy read and write logits forward, write their gradient backward.
constexpr double logit_forward_share = 0.4;
// Norm clipping, small kernels and host time around the optimizer (docs/models/kernels.md).
constexpr double optimizer_fixed_s = 3e-3;
constexpr double optimizer_fixed_graphs_s = 1.5e-3;

double memory_bound_s(const GpuSpec& gpu, const Plan& plan, double bytes) {
  return plan.mechanisms.memory_bound_work ? hbm_s(gpu, bytes) : 0;
}

void set_exposed_tp(PassPair& out, const Seconds& exposed) {
  out.forward.exposed_tp_s = exposed.forward;
  out.backward.exposed_tp_s = exposed.backward;
}

// The matrix that joins the last layer's output with the embedding of the next token, and the norms
// around it: 2 hidden -> hidden.
PassPair joining_costs(const GpuSpec& gpu, const Plan& plan) {
  const double T = plan.micro_batch_tokens(), h = plan.model.hidden, t = plan.tensor;
  const KernelTerms terms = kernel_terms(plan);
  const Operands operands = operands_of(plan.precision);
  const LinearShape join{T, 2 * h, h / t};
  const double norms = memory_bound_s(gpu, plan, 3 * 4 * h * T / plan.sequence_split());
  Seconds compute = linear_s(gpu, operands, join, terms);
  compute += {norms, 2 * norms};
  return split_useful(compute, 4 * h * h * T / t / peak_flops(gpu, operands));
}

// Costs of everything a chunk is made of, each computed once for all stages with the same traffic.
class Parts {
 public:
  Parts(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software, const CommCosts& comm)
      : gpu_(gpu), plan_(plan), software_(software), comm_(comm), layers_(plan.kinds.size()) {}

  PassPair chunk(const ChunkShare& share) {
    PassPair cost;
    for (std::size_t kind = 0; kind < layers_.size(); ++kind)
      if (const int n = share.layers_of_kind[kind]; n > 0) cost += layer(kind) * n;
    if (share.embedding) cost += embedding_costs(gpu_, plan_, software_, comm_);
    if (!share.head) return cost;
    PassPair prediction = head_costs(gpu_, plan_, software_, comm_);
    cost += prediction;
    if (share.predictions > 0) {
      prediction += layer(last_kind());
      prediction += joining_costs(gpu_, plan_);
      cost += prediction * share.predictions;
    }
    return cost;
  }

 private:
  const PassPair& layer(std::size_t kind) {
    std::optional<PassPair>& cost = layers_[kind];
    if (!cost) cost = layer_costs(gpu_, plan_, plan_.kinds[kind], software_, comm_);
    return *cost;
  }

  // Of the model's last layer, on this chunk or, when this one has none, before it.
  std::size_t last_kind() const {
    const TransformerSpec last = layer_groups(plan_.model).back().layer;
    for (std::size_t kind = 0; kind < layers_.size(); ++kind)
      if (plan_.kinds[kind] == last) return kind;
    check(false, "kinds hold every layer of the model");
    return 0;
  }

  const GpuSpec& gpu_;
  const Plan& plan_;
  const SoftwareSpec& software_;
  const CommCosts& comm_;
  std::vector<std::optional<PassPair>> layers_;
};

// The weight-gradient kernel adds to the gradient buffer. Sharded weights have none: gradients are
// scattered as they are made, into a shard too small to count.
double accumulation_s(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                      const ChunkShare& share) {
  if (!plan.mechanisms.gradient_accumulation || shards_weights(plan.sharding)) return 0;
  const double bytes = software.accumulation_bytes.value_or(2.0 * software.gradient_bytes);
  return hbm_s(gpu, bytes * (plan.shared_parameters(share) + plan.expert_parameters(share)));
}

double optimizer_parameters(const Plan& plan, int stage) {
  const bool sharded = plan.sharding != Sharding::none;
  double sum = 0;
  for (int c = 0; c < plan.chunks; ++c) {
    const ChunkShare& share = plan.share(stage, c);
    sum += plan.shared_parameters(share) / (sharded ? plan.shard_group : 1) +
           plan.expert_parameters(share) / (sharded ? plan.expert_replicas() : 1);
  }
  return sum;
}

}  // namespace

Operands operands_of(Precision precision) {
  switch (precision) {
    case Precision::bf16:
    case Precision::fp16:
      return Operands::bits16;
    case Precision::fp8:
      return Operands::fp8;
    case Precision::fp8_rowwise:
      return Operands::fp8_rowwise;
    case Precision::mxfp8:
      return Operands::mxfp8;
    case Precision::nvfp4:
      return Operands::nvfp4;
  }
  return Operands::bits16;
}

PassCost& PassCost::operator+=(const PassCost& o) {
  useful_s += o.useful_s;
  kernels_s += o.kernels_s;
  recompute_s += o.recompute_s;
  exposed_tp_s += o.exposed_tp_s;
  exposed_cp_s += o.exposed_cp_s;
  exposed_ep_s += o.exposed_ep_s;
  weight_gradient_s += o.weight_gradient_s;
  return *this;
}

PassPair operator*(const PassPair& pair, double n) {
  const auto scaled = [n](const PassCost& c) {
    return PassCost{c.useful_s * n,         c.kernels_s * n,    c.recompute_s * n,
                    c.exposed_tp_s * n,     c.exposed_cp_s * n, c.exposed_ep_s * n,
                    c.weight_gradient_s * n};
  };
  return {scaled(pair.forward), scaled(pair.backward)};
}

PassPair& PassPair::operator+=(const PassPair& o) {
  forward += o.forward;
  backward += o.backward;
  return *this;
}

KernelTerms kernel_terms(const Plan& plan) {
  return {.shape = plan.mechanisms.gemm_shape,
          .saturation = plan.mechanisms.k_saturation,
          .floor = plan.mechanisms.kernel_floor};
}

double floor_s(const GpuSpec& gpu, KernelTerms terms) {
  return terms.floor ? to_seconds(gpu.calibration.kernel_floor) : 0;
}

Seconds linear_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                 KernelTerms terms) {
  return {linear_forward_s(gpu, operands, shape, terms),
          linear_backward_s(gpu, operands, shape, terms),
          linear_weight_gradient_s(gpu, operands, shape, terms)};
}

PassPair split_useful(const Seconds& compute, double useful_s) {
  PassPair out;
  out.forward.useful_s = std::min(useful_s, compute.forward);
  out.backward.useful_s = std::min(3 * useful_s - out.forward.useful_s, compute.backward);
  out.forward.kernels_s = compute.forward - out.forward.useful_s;
  out.backward.kernels_s = compute.backward - out.backward.useful_s;
  out.backward.weight_gradient_s = compute.weight_gradient;
  return out;
}

// With sequence parallelism part of both passes can hide behind the products. Without, the forward
// pass waits for its all-reduce; backward it hides behind the product of the weight gradient.
Seconds exposed_tensor_s(const Plan& plan, const SoftwareSpec& software, const CommCosts& comm,
                         const TensorTraffic& traffic) {
  if (plan.tensor == 1 || !plan.mechanisms.tensor_traffic) return {};
  const bool overlap = plan.mechanisms.tensor_overlap;
  const double forward = 1 - (overlap ? software.tensor_overlap_forward : 0);
  const double backward = 1 - (overlap ? software.tensor_overlap_backward : 0);
  const double bytes = 2 * plan.micro_batch_tokens() * plan.model.hidden;
  if (!plan.sequence_parallel) {
    const double all = traffic.pairs * comm.tensor.all_reduce_s(bytes);
    return {all, backward * all};
  }
  const double gather = comm.tensor.all_gather_s(traffic.fp8_gathers ? bytes / 2 : bytes);
  const double pairs = traffic.pairs * (gather + comm.tensor.reduce_scatter_s(bytes));
  return {forward * pairs, backward * pairs + traffic.regathered * gather};
}

PassPair embedding_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                         const CommCosts& comm) {
  const double tensor_bytes = 4 * plan.model.hidden * plan.micro_batch_tokens();
  const double once = memory_bound_s(gpu, plan, tensor_bytes);
  PassPair out = split_useful({once, 2 * once}, 0);
  // Rows of the vocabulary that a GPU does not hold come from the others: one scatter forward, one
  // gather backward (the head: the other way round); without sequence parallelism one all-reduce in
  // both passes together.
  set_exposed_tp(out, exposed_tensor_s(plan, software, comm, {.pairs = 0.5}));
  return out;
}

PassPair head_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                    const CommCosts& comm) {
  const double T = plan.micro_batch_tokens(), t = plan.tensor;
  const double vocabulary = std::ceil(plan.model.vocabulary / t);  // padded to a multiple of tensor
  const LinearShape logits{T, double(plan.model.hidden), vocabulary};
  const KernelTerms terms = kernel_terms(plan);
  const double loss_s = memory_bound_s(gpu, plan, gpu.calibration.logit_bytes * T * vocabulary);
  Seconds compute = linear_s(gpu, Operands::bits16, logits, terms);
  compute += {logit_forward_share * loss_s, (1 - logit_forward_share) * loss_s};
  PassPair out = split_useful(compute, head_forward_flops(plan.model) * T / t /
                                           peak_flops(gpu, operands_of(plan.precision)));
  set_exposed_tp(out, exposed_tensor_s(plan, software, comm, {.pairs = 0.5}));
  return out;
}

double StepCosts::micro_batch_s(int stage) const {
  double sum = 0;
  for (int c = 0; c < chunks_per_stage; ++c)
    sum += chunk(stage, c).forward.total_s() + chunk(stage, c).backward.total_s();
  return sum;
}

StepCosts step_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                     const std::vector<CommCosts>& comm) {
  check(comm.size() == 1 || comm.size() == std::size_t(plan.pipeline),
        "traffic is that of every stage, or one for all", comm.size(), plan.pipeline);
  StepCosts out;
  out.chunks_per_stage = plan.chunks;
  out.chunks.reserve(plan.shares.size());
  out.optimizer_s.reserve(std::size_t(plan.pipeline));
  const double engine = plan.pipeline > 1 ? software.pipeline_overhead : 0;
  const double fixed = software.cuda_graphs ? optimizer_fixed_graphs_s : optimizer_fixed_s;

  std::optional<Parts> parts;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    if (stage == 0 || comm.size() > 1)
      parts.emplace(gpu, plan, software, comm[comm.size() > 1 ? std::size_t(stage) : 0]);
    for (int c = 0; c < plan.chunks; ++c) {
      const ChunkShare& share = plan.share(stage, c);
      PassPair cost = parts->chunk(share);
      cost.forward.kernels_s += engine * cost.forward.total_s();
      cost.backward.kernels_s += engine * cost.backward.total_s();
      const double accumulation = accumulation_s(gpu, plan, software, share);
      cost.backward.kernels_s += accumulation;
      cost.backward.weight_gradient_s += accumulation;
      out.chunks.push_back(cost);
    }
    out.optimizer_s.push_back(
        hbm_s(gpu, gpu.calibration.optimizer_bytes * optimizer_parameters(plan, stage)) + fixed);
  }
  return out;
}

Problems check_precision(const JobSpec& job, const GpuSpec& gpu) {
  const Precision precision = job.parallel.precision;
  const Operands operands = operands_of(precision);
  if (peak_flops(gpu, operands) > 0) return {};
  const bool fp4 = operands == Operands::nvfp4;
  return {{"parallel.precision",
           "\"" + std::string(trainyard::name_of(precision)) + "\", but " +
               (gpu.name.empty() ? "this GPU" : gpu.name) + " has no " + (fp4 ? "FP4" : "FP8") +
               " units",
           std::string("\"bf16\", or a GPU with ") + (fp4 ? "peak_fp4" : "peak_fp8")}};
}

double boundary_bytes(const Plan& plan) {
  return 2 * plan.micro_batch_tokens() * plan.model.hidden / plan.boundary_split();
}

}  // namespace trainyard::models
