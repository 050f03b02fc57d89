#include "models/training/stage_costs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/compute/kernels.hpp"
#include "models/training/transformer.hpp"

namespace trainyard::models {
namespace {

// Bytes and launches of a training stack; where they come from: docs/models/kernels.md,
// "Constants".
constexpr double cast_bytes_factor =
    0.95;                             // FP8: quantise and transpose, over the tensors counted below
constexpr double logit_bytes = 22.0;  // softmax and cross entropy, forward and backward, per logit
constexpr double logit_forward_share = 0.4;
constexpr double regathered_inputs =
    0.6;  // of one all-gather: sequence-sharded inputs needed again for weight gradients
constexpr double kernel_floors_per_pass = 8.0;  // kernels of a block that are no matrix products
constexpr double host_launch_s = 7e-6;          // one kernel launched by the host
constexpr double fused_kernels = 14.0;          // launches of one pass of a block
constexpr double eager_kernels = 34.0;
constexpr double eager_elementwise =
    1.4;  // above this a stack counts as eager (fused 1.05, eager 1.87)
constexpr double optimizer_bytes =
    40.0;  // Adam, FP32 master weights: read and written, per parameter
constexpr double optimizer_fixed_s = 3e-3;  // norm clipping, small kernels, host
constexpr double optimizer_fixed_graphs_s = 1.5e-3;

struct Linear {
  double in;
  double out;
};

// Sizes on one GPU. A stack with the unfused kernels of 2020 to 2022 also has dropout.
struct Shapes {
  Shapes(const GpuSpec& a_gpu, const Plan& a_plan, const SoftwareSpec& a_software)
      : gpu(a_gpu),
        plan(a_plan),
        software(a_software),
        T(plan.micro_batch_tokens()),
        h(plan.model.hidden),
        a(plan.model.heads),
        kv(kv_heads(plan.model)),
        d(head_size(plan.model)),
        f(plan.model.ffn),
        t(plan.tensor),
        split(plan.sequence_split()),
        operands(plan.precision == Precision::fp8 ? Operands::fp8 : Operands::bits16) {}

  std::vector<Linear> linears() const {
    const double up = plan.model.gated ? 2.0 : 1.0;
    return {{h, (a + 2 * kv) * d / t}, {a * d / t, h}, {h, up * f / t}, {f / t, h}};
  }

  AttentionShape attention() const { return {T, double(plan.sequence), a / t, d}; }
  double attention_forward_s() const {
    return software.flash_attention ? flash_attention_forward_s(gpu, attention())
                                    : unfused_attention_forward_s(gpu, attention());
  }
  double attention_backward_s() const {
    return software.flash_attention ? flash_attention_backward_s(gpu, attention())
                                    : unfused_attention_backward_s(gpu, attention());
  }

  // Norms, residual (and dropout), activation, rotary or bias and transpose, casts: bytes of the
  // forward pass.
  double memory_bound_s() const {
    const double norms = 8 * h * T / split;
    const double residual = (software.flash_attention ? 12 : 14) * h * T / split;
    const double activation = (plan.model.gated ? 6 : 4) * f * T / t;
    const double heads = (plan.model.gated ? 8 * (a + kv) : 4 * (a + 2 * kv)) * d * T / t;
    const double casts = operands == Operands::fp8
                             ? cast_bytes_factor * T * (8 * h / split + 4 * a * d / t + 4 * f / t)
                             : 0;
    return hbm_s(gpu, software.elementwise * (norms + residual + activation + heads) + casts);
  }

  double floors_s() const {
    return kernel_floors_per_pass * to_seconds(gpu.calibration.kernel_floor);
  }
  double host_floor_s() const {
    if (software.cuda_graphs) return 0;
    return host_launch_s *
           (software.elementwise > eager_elementwise ? eager_kernels : fused_kernels);
  }
  double peak() const { return peak_flops(gpu, operands); }
  double hidden_bytes() const { return 2 * T * h; }  // one 16-bit tensor of the residual stream

  const GpuSpec& gpu;
  const Plan& plan;
  const SoftwareSpec& software;
  const double T, h, a, kv, d, f, t;
  const double split;
  const Operands operands;
};

// Exposed time of `gathers` and `scatters` of the residual stream in one pass. With sequence
// parallelism part of it hides behind the products; without, each pair is one all-reduce that
// nothing hides.
double exposed_tp_s(const Shapes& s, const CommCosts& comm, double pairs, double extra_gathers,
                    double overlap) {
  const int n = s.plan.tensor;
  if (n == 1) return 0;
  const double bytes = s.hidden_bytes();
  if (!s.plan.sequence_parallel) return pairs * comm.all_reduce_s(bytes, n);
  const double gather = comm.all_gather_s(bytes, n);
  const double scatter = comm.reduce_scatter_s(bytes, n);
  return (1 - overlap) * ((pairs + extra_gathers) * gather + pairs * scatter);
}

// Splits the compute of the two passes into model FLOPs at peak and the rest. Attention skips what
// the mask hides but the convention counts it, so a pass may take less than its FLOPs at peak; the
// other pass then carries the rest.
PassPair split(const Shapes& s, double forward_s, double backward_s, double forward_flops) {
  const double useful_s = 3 * forward_flops / s.peak();
  PassPair out;
  out.forward.useful_s = std::min(useful_s / 3, forward_s);
  out.backward.useful_s = std::min(useful_s - out.forward.useful_s, backward_s);
  out.forward.kernels_s = forward_s - out.forward.useful_s;
  out.backward.kernels_s = backward_s - out.backward.useful_s;
  return out;
}

}  // namespace

CommCosts CommCosts::free() {
  const auto nothing = [](double, int) { return 0.0; };
  return {nothing, nothing, nothing};
}

PassCost& PassCost::operator+=(const PassCost& o) {
  useful_s += o.useful_s;
  kernels_s += o.kernels_s;
  recompute_s += o.recompute_s;
  exposed_tp_s += o.exposed_tp_s;
  return *this;
}

PassPair operator*(const PassPair& pair, double n) {
  const auto scaled = [n](const PassCost& c) {
    return PassCost{c.useful_s * n, c.kernels_s * n, c.recompute_s * n, c.exposed_tp_s * n};
  };
  return {scaled(pair.forward), scaled(pair.backward)};
}

PassPair& PassPair::operator+=(const PassPair& o) {
  forward += o.forward;
  backward += o.backward;
  return *this;
}

PassPair layer_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                     const CommCosts& comm) {
  const Shapes s(gpu, plan, software);
  double forward = s.attention_forward_s() + s.memory_bound_s() + s.floors_s();
  double backward = s.attention_backward_s() + 2 * s.memory_bound_s() + s.floors_s();
  for (const Linear& linear : s.linears()) {
    forward += linear_forward_s(gpu, s.operands, s.T, linear.in, linear.out);
    backward += linear_backward_s(gpu, s.operands, s.T, linear.in, linear.out);
  }
  forward = std::max(forward, s.host_floor_s());
  backward = std::max(backward, s.host_floor_s());

  const double flops = layer_forward_flops(plan.model, plan.sequence) * s.T / s.t;
  PassPair out = split(s, forward, backward, flops);
  out.forward.exposed_tp_s = exposed_tp_s(s, comm, 2, 0, software.tensor_overlap_forward);
  out.backward.exposed_tp_s =
      exposed_tp_s(s, comm, 2, regathered_inputs, software.tensor_overlap_backward);
  switch (plan.recompute) {
    case Recompute::none:
      break;
    case Recompute::selective:
      out.backward.recompute_s = s.attention_forward_s();
      break;
    case Recompute::full:
      out.backward.recompute_s = forward;
      out.backward.exposed_tp_s += out.forward.exposed_tp_s;
      break;
  }
  return out;
}

PassPair embedding_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                         const CommCosts& comm) {
  const Shapes s(gpu, plan, software);
  PassPair out = split(s, hbm_s(gpu, 4 * s.h * s.T), hbm_s(gpu, 8 * s.h * s.T), 0);
  // Rows of the vocabulary that a GPU does not hold come from the others: one scatter forward, one
  // gather backward (the head: the other way round); without sequence parallelism one all-reduce in
  // both passes together.
  out.forward.exposed_tp_s = exposed_tp_s(s, comm, 0.5, 0, software.tensor_overlap_forward);
  out.backward.exposed_tp_s = exposed_tp_s(s, comm, 0.5, 0, software.tensor_overlap_backward);
  return out;
}

PassPair head_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                    const CommCosts& comm) {
  const Shapes s(gpu, plan, software);
  const double vocabulary =
      std::ceil(plan.model.vocabulary / s.t);  // padded to a multiple of tensor
  const double loss_s = hbm_s(gpu, logit_bytes * s.T * vocabulary);
  const double forward =
      linear_forward_s(gpu, Operands::bits16, s.T, s.h, vocabulary) + logit_forward_share * loss_s;
  const double backward = linear_backward_s(gpu, Operands::bits16, s.T, s.h, vocabulary) +
                          (1 - logit_forward_share) * loss_s;
  PassPair out = split(s, forward, backward, head_forward_flops(plan.model) * s.T / s.t);
  out.forward.exposed_tp_s = exposed_tp_s(s, comm, 0.5, 0, software.tensor_overlap_forward);
  out.backward.exposed_tp_s = exposed_tp_s(s, comm, 0.5, 0, software.tensor_overlap_backward);
  return out;
}

double StepCosts::micro_batch_s(int stage) const {
  double sum = 0;
  for (int c = 0; c < chunks_per_stage; ++c)
    sum += chunk(stage, c).forward.total_s() + chunk(stage, c).backward.total_s();
  return sum;
}

StepCosts step_costs(const GpuSpec& gpu, const Plan& plan, const SoftwareSpec& software,
                     const CommCosts& comm) {
  const PassPair layer = layer_costs(gpu, plan, software, comm);
  StepCosts out;
  out.chunks_per_stage = plan.chunks;
  for (const ChunkShare& share : plan.shares) {
    PassPair cost = layer * share.layers;
    if (share.embedding) cost += embedding_costs(gpu, plan, software, comm);
    if (share.head) cost += head_costs(gpu, plan, software, comm);
    // The weight-gradient kernel adds to the gradient buffer: one read, one write.
    cost.backward.kernels_s +=
        hbm_s(gpu, 2.0 * software.gradient_bytes * share.weights / plan.tensor);
    out.chunks.push_back(cost);
  }
  const double fixed = software.cuda_graphs ? optimizer_fixed_graphs_s : optimizer_fixed_s;
  const int shards = plan.sharding == Sharding::none ? 1 : plan.data;
  for (int stage = 0; stage < plan.pipeline; ++stage)
    out.optimizer_s.push_back(hbm_s(gpu, optimizer_bytes * plan.stage_parameters(stage) / shards) +
                              fixed);
  return out;
}

Problems check_precision(const JobSpec& job, const GpuSpec& gpu) {
  if (job.parallel.precision != Precision::fp8 || gpu.peak_fp8.value() > 0) return {};
  return {{"parallel.precision",
           "\"fp8\", but " + (gpu.name.empty() ? "this GPU" : gpu.name) + " has no FP8 units",
           "\"bf16\", or a GPU with peak_fp8"}};
}

double boundary_bytes(const Plan& plan) {
  return 2 * plan.micro_batch_tokens() * plan.model.hidden / plan.sequence_split();
}

}  // namespace trainyard::models
