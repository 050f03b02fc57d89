#include "models/training/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "models/training/activations.hpp"
#include "models/training/memory_advice.hpp"
#include "models/training/pipeline_order.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"

namespace trainyard::models {
namespace {

constexpr double weight_bytes = 2;      // BF16
constexpr double optimizer_state = 12;  // FP32 weights and two Adam moments
constexpr double driver_bytes =
    2.5 * 1073741824.0;  // driver, libraries, communicators: 2.5 to 3 GiB

/// Layers of a pipeline stage stay gathered from the first micro-batch to the last.
bool keeps_whole_weights(const Plan& plan) {
  return !shards_weights(plan.sharding) || plan.pipeline > 1;
}

/// Reduced layer by layer in every backward pass: only the layer at work has whole gradients.
bool reduces_by_layer(const Plan& plan) {
  return plan.pipeline == 1 && (plan.sharding == Sharding::zero2 || shards_weights(plan.sharding));
}

/// One preallocated buffer for the gradients of all chunks (Megatron-Core's distributed optimizer:
/// 6 + 12/S bytes a parameter with FP32 gradients).
bool keeps_whole_gradients(const Plan& plan) {
  return plan.sharding == Sharding::none || plan.sharding == Sharding::zero1;
}

/// A figure of a chunk's parameters on one GPU, by how many ranks share them out.
struct Parameters {
  double shared = 0;
  double experts = 0;

  Parameters(const Plan& plan, const ChunkShare& share)
      : shared(plan.shared_parameters(share)), experts(plan.expert_parameters(share)) {}

  double whole() const { return shared + experts; }
  double shard(const Plan& plan) const {
    if (plan.sharding == Sharding::none) return whole();
    const double group = plan.shard_group;
    const double same_experts = plan.expert_replicas() * group / plan.weight_replicas();
    return shared / group + experts / std::max(1.0, same_experts);
  }
};

/// What one micro-batch leaves in one chunk.
struct ChunkActivations {
  double blocks = 0;
  double ends = 0;     // dropout mask of the embedding, final norm, joined inputs of predictions
  double logits = 0;   // gone as soon as the backward pass leaves the head
  double dropped = 0;  // recomputed in the backward pass, of all blocks
  double dropped_once = 0;  // of the largest block

  double kept() const { return blocks + ends + logits; }

  ChunkActivations(const Plan& plan, const SoftwareSpec& software, const ChunkShare& share) {
    std::vector<int> count = share.layers_of_kind;
    if (share.predictions > 0) count[last_kind(plan)] += share.predictions;
    for (std::size_t kind = 0; kind < count.size(); ++kind)
      if (count[kind] > 0) add_blocks(plan, plan.kinds[kind], software, count[kind]);

    const double tokens = plan.micro_batch_tokens();
    const double vector = tokens * plan.model.hidden / plan.sequence_split();
    if (share.embedding && !software.flash_attention) ends += vector;
    if (share.head) {
      const int heads = 1 + share.predictions;
      ends += 4 * vector * heads + 6 * vector * share.predictions;
      logits = heads * tokens * software.logit_memory * plan.model.vocabulary / plan.tensor;
    }
  }

 private:
  // Further predictions have a layer like the last.
  static std::size_t last_kind(const Plan& plan) {
    const TransformerSpec last = layer_groups(plan.model).back().layer;
    return std::size_t(std::find(plan.kinds.begin(), plan.kinds.end(), last) - plan.kinds.begin());
  }

  void add_blocks(const Plan& plan, const TransformerSpec& kind, const SoftwareSpec& software,
                  int count) {
    const double kept = kept_block_bytes(plan, kind, software);
    blocks += count * kept;
    if (plan.recompute_share == 0) return;
    const double all = block_activation_bytes(plan, kind, software, Recompute::none);
    dropped += count * (all - kept);
    dropped_once = std::max(dropped_once, (all - kept) / plan.recompute_share);
  }
};

/// Activations and gradients of one stage while its operations pass.
class Occupancy {
 public:
  Occupancy(const Plan& plan, const SoftwareSpec& software, int stage)
      : plan_(plan), stage_(stage), begun_(std::size_t(plan.chunks), 0) {
    for (int c = 0; c < plan.chunks; ++c) {
      const ChunkShare& share = plan.share(stage, c);
      const Parameters parameters(plan, share);
      activations_.emplace_back(plan, software, share);
      whole_gradients_.push_back(software.gradient_bytes * parameters.whole());
      shard_gradients_.push_back(software.gradient_bytes * parameters.shard(plan));
      all_whole_ += whole_gradients_.back();
      all_shards_ += shard_gradients_.back();
    }
  }

  struct Peak {
    double activations = 0;
    double gradients = 0;
    double blocks = 0;  // most that blocks keep: part of activations, at a moment of its own
    double total() const { return activations + gradients; }
  };

  Peak peak() {
    // After four groups of micro-batches the order repeats, and so does the occupancy.
    const int p = plan_.pipeline;
    const int group = plan_.chunks > 1 ? interleaved_group(p, plan_.micro_batches) : p;
    const int m = plan_.schedule == Schedule::gpipe ? plan_.micro_batches
                                                    : std::min(plan_.micro_batches, 4 * group);
    Peak peak;
    for (PipelineOrder order(plan_.schedule, p, plan_.chunks, m, stage_, group); !order.done();
         order.next()) {
      const PipelineOp& op = order.op();
      const auto chunk = std::size_t(op.chunk);
      const ChunkActivations& a = activations_[chunk];
      if (!op.backward) {
        in_flight_ += a.kept();
        blocks_in_flight_ += a.blocks;
        raise(peak, 0);
        continue;
      }
      if (order.completes(op) && begun_[chunk]++ == 0) whole_ += whole_gradients_[chunk];
      if (!op.weight_gradient) {  // logits are gone when the first block is recomputed
        const double at_work = order.splits_backward() ? a.dropped : a.dropped_once;
        raise(peak, std::max(0.0, at_work - a.logits));
        in_flight_ -= a.logits;
        if (order.splits_backward()) in_flight_ += a.dropped;  // read again for the weights
      }
      if (!order.completes(op)) continue;
      in_flight_ -= a.kept() - a.logits + (order.splits_backward() ? a.dropped : 0);
      blocks_in_flight_ -= a.blocks;
      if (begun_[chunk] == m) chunk_done(chunk);
    }
    return peak;
  }

 private:
  void raise(Peak& peak, double at_work) const {
    const double blocks = std::max(peak.blocks, blocks_in_flight_);
    const Peak now{in_flight_ + at_work, gradients_now(), blocks};
    if (now.total() > peak.total()) peak = now;
    peak.blocks = blocks;
  }

  // Its gradients begin to be reduced; those of the chunk before it are shards by now.
  void chunk_done(std::size_t chunk) {
    if (reducing_) {
      whole_ -= whole_gradients_[*reducing_];
      shards_ += shard_gradients_[*reducing_];
    }
    reducing_ = chunk;
  }

  double gradients_now() const {
    if (keeps_whole_gradients(plan_)) return all_whole_;
    if (reduces_by_layer(plan_)) return all_shards_;
    return whole_ + shards_;
  }

  const Plan& plan_;
  const int stage_;
  std::vector<ChunkActivations> activations_;  // of one micro-batch, per chunk
  std::vector<double> whole_gradients_;        // per chunk
  std::vector<double> shard_gradients_;
  std::vector<int> begun_;  // backward passes per chunk so far
  double all_whole_ = 0;
  double all_shards_ = 0;
  double in_flight_ = 0;
  double blocks_in_flight_ = 0;
  double whole_ = 0;
  double shards_ = 0;
  std::optional<std::size_t> reducing_{};
};

// Tensors of one layer that come and go.
double exchange_bytes(const Plan& plan, const TransformerSpec& kind) {
  const double tokens = plan.micro_batch_tokens();
  double bytes = 0;
  if (kind.experts && plan.expert > 1)  // copies of tokens on their way out and in
    bytes += 2 * 2.0 * kind.hidden * expert_copies(plan, kind);
  if (plan.context > 1) {
    // A ring holds the block in use and the one that arrives; a gather holds all.
    const double blocks = plan.context_exchange == ContextExchange::ring ? 2 : plan.context;
    bytes += blocks * tokens * key_value_bytes(plan, kind);
  }
  return bytes;
}

// Weights that are gathered as one unit.
double unit_parameters(const Plan& plan, const TransformerSpec& kind) {
  const LayerWeights w = layer_weights(kind);
  const double experts = w.experts * (w.expert + w.expert_biases);
  return (w.total() - experts) / plan.tensor + experts / (double(plan.expert) * plan.expert_tensor);
}

double buffer_bytes(const Plan& plan, const SoftwareSpec& software) {
  double bytes = driver_bytes;
  if (plan.sequence_parallel) bytes += 2 * 2 * plan.micro_batch_tokens() * plan.model.hidden;
  if (plan.pipeline > 1) bytes += 2 * boundary_bytes(plan);
  double exchange = 0, unit = 0;
  for (const TransformerSpec& kind : plan.kinds) {
    exchange = std::max(exchange, exchange_bytes(plan, kind));
    unit = std::max(unit, unit_parameters(plan, kind));
  }
  bytes += exchange;
  const double table = double(plan.model.vocabulary) * plan.model.hidden / plan.tensor;
  const double largest = std::max(unit, table);
  if (reduces_by_layer(plan)) bytes += software.gradient_bytes * largest;
  if (!keeps_whole_weights(plan)) bytes += weight_bytes * (largest + unit);  // at work, prefetched
  return bytes;
}

}  // namespace

int MemoryEstimate::fullest_stage() const {
  int fullest = 0;
  for (int s = 1; s < int(stages.size()); ++s)
    if (stages[std::size_t(s)].total() > stages[std::size_t(fullest)].total()) fullest = s;
  return fullest;
}

double MemoryEstimate::share() const {
  return stages.empty() ? 0 : stages[std::size_t(fullest_stage())].total() / capacity;
}

StageMemory stage_memory(const Plan& plan, const SoftwareSpec& software, int stage) {
  double whole = 0, shard = 0;
  for (int c = 0; c < plan.chunks; ++c) {
    const Parameters parameters(plan, plan.share(stage, c));
    whole += parameters.whole();
    shard += parameters.shard(plan);
  }
  const Occupancy::Peak peak = Occupancy(plan, software, stage).peak();
  StageMemory out;
  out.weights = Bytes(weight_bytes * (keeps_whole_weights(plan) ? whole : shard));
  out.gradients = Bytes(peak.gradients);
  out.optimizer = Bytes(optimizer_state * shard);
  out.activations = Bytes(peak.activations);
  out.buffers = Bytes(buffer_bytes(plan, software));
  return out;
}

MemoryEstimate memory_estimate(const Plan& plan, const SoftwareSpec& software, const GpuSpec& gpu) {
  MemoryEstimate out;
  out.capacity = gpu.memory;
  for (int stage = 0; stage < plan.pipeline; ++stage)
    out.stages.push_back(stage_memory(plan, software, stage));
  return out;
}

Bytes largest_stage_memory(const Plan& plan, const SoftwareSpec& software) {
  // Equal stages between the first and the last hold the less the later they come, so that the
  // first, the second (no embedding, but perhaps a layer more) or the last is the fullest.
  const auto like_second = [&](int stage) {
    for (int c = 0; c < plan.chunks; ++c)
      if (plan.share(stage, c).layers_of_kind != plan.share(1, c).layers_of_kind) return false;
    return true;
  };
  Bytes most{};
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    if (stage > 1 && stage + 1 < plan.pipeline && like_second(stage)) continue;
    most = std::max(most, stage_memory(plan, software, stage).total());
  }
  return most;
}

Bytes kept_activations(const Plan& plan, const SoftwareSpec& software, int stage) {
  return Bytes(Occupancy(plan, software, stage).peak().blocks);
}

Bytes allocated(const StageMemory& memory) {
  return memory.total() - Bytes(driver_bytes);
}

std::string gigabytes(Bytes b) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", b.value() / 1e9);
  return text;
}

Problems check_memory(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server) {
  const Plan plan = make_plan(job);
  if (largest_stage_memory(plan, job.software) <= gpu.memory) return {};
  const MemoryEstimate estimate = memory_estimate(plan, job.software, gpu);
  const int stage = estimate.fullest_stage();
  const StageMemory& m = estimate.stages[std::size_t(stage)];
  const std::string where =
      plan.pipeline > 1 ? "stage " + std::to_string(stage) + " of " + std::to_string(plan.pipeline)
                        : "every GPU";
  return {{"parallel",
           where + " needs " + gigabytes(m.total()) + " GB of " + gigabytes(estimate.capacity) +
               " GB: weights " + gigabytes(m.weights) + ", gradients " + gigabytes(m.gradients) +
               ", optimizer " + gigabytes(m.optimizer) + ", activations " +
               gigabytes(m.activations) + ", buffers " + gigabytes(m.buffers),
           nearest_plan_that_fits(job, gpu, gpus_per_server)}};
}

}  // namespace trainyard::models
