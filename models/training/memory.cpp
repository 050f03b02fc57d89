#include "models/training/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "models/training/pipeline.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"

namespace trainyard::models {
namespace {

constexpr double weight_bytes = 2;       // BF16
constexpr double optimizer_state = 12;   // FP32 weights and two Adam moments
constexpr double flash_logit_bytes = 6;  // BF16 logits, FP32 gradient (Megatron)
constexpr double unfused_logit_bytes = 4;
constexpr double context_bytes =
    2.5 * 1073741824.0;  // driver, libraries, communicators: 2.5 to 3 GiB

bool keeps_whole_weights(const Plan& plan) {
  return plan.sharding != Sharding::fsdp || plan.pipeline > 1;
}

int shards(const Plan& plan) {
  return plan.sharding == Sharding::none ? 1 : plan.data;
}

double chunk_activation_bytes(const Plan& plan, const SoftwareSpec& software,
                              const ChunkShare& share) {
  const double tokens = plan.micro_batch_tokens();
  const double h = plan.model.hidden;
  double bytes = share.layers * layer_activation_bytes(plan, software, plan.recompute);
  if (share.embedding && !software.flash_attention)
    bytes += tokens * h / plan.sequence_split();  // dropout mask
  if (share.head) {
    const double logit = software.flash_attention ? flash_logit_bytes : unfused_logit_bytes;
    bytes += tokens * (4 * h / plan.sequence_split() + logit * plan.model.vocabulary / plan.tensor);
  }
  return bytes;
}

/// Activations and gradients of one stage while its operations pass.
class Occupancy {
 public:
  Occupancy(const Plan& plan, const SoftwareSpec& software, int stage)
      : plan_(plan), stage_(stage), begun_(std::size_t(plan.chunks), 0) {
    for (int c = 0; c < plan.chunks; ++c) {
      activations_.push_back(chunk_activation_bytes(plan, software, plan.share(stage, c)));
      gradients_.push_back(software.gradient_bytes * plan.share(stage, c).weights / plan.tensor);
      all_gradients_ += gradients_.back();
    }
    if (plan.recompute == Recompute::full)
      recomputed_layer_ = layer_activation_bytes(plan, software, Recompute::none);
  }

  struct Peak {
    double activations = 0;
    double gradients = 0;
    double total() const { return activations + gradients; }
  };

  Peak peak() {
    // After four groups of micro-batches the order repeats, and so does the occupancy.
    const int m = std::min(plan_.micro_batches, 4 * plan_.pipeline);
    Peak peak;
    for (PipelineOrder order(plan_.pipeline, plan_.chunks, m, stage_); !order.done();
         order.next()) {
      const PipelineOp op = order.op();
      const auto chunk = std::size_t(op.chunk);
      if (!op.backward) {
        in_flight_ += activations_[chunk];
        peak = fuller(peak, {in_flight_, gradients_now()});
        continue;
      }
      if (begun_[chunk]++ == 0) whole_ += gradients_[chunk];
      peak = fuller(peak, {in_flight_ + recomputed_layer_, gradients_now()});
      in_flight_ -= activations_[chunk];
      if (begun_[chunk] == m) {  // its last: the chunk reduced before it is done by now
        whole_ -= reducing_;
        shards_ += reducing_ / shards(plan_);
        reducing_ = gradients_[chunk];
      }
    }
    return peak;
  }

 private:
  static Peak fuller(const Peak& a, const Peak& b) { return b.total() > a.total() ? b : a; }

  double gradients_now() const {
    if (plan_.sharding == Sharding::none) return all_gradients_;
    // FSDP without pipeline reduces layer by layer: shards here, the layer at work among the
    // buffers.
    if (!keeps_whole_weights(plan_)) return all_gradients_ / plan_.data;
    return whole_ + shards_;
  }

  const Plan& plan_;
  const int stage_;
  std::vector<double> activations_;  // of one micro-batch, per chunk
  std::vector<double> gradients_;    // per chunk, whole
  std::vector<int> begun_;           // backward passes per chunk so far
  double all_gradients_ = 0;
  double recomputed_layer_ = 0;
  double in_flight_ = 0;
  double whole_ = 0;
  double reducing_ = 0;  // part of whole_
  double shards_ = 0;
};

double buffer_bytes(const Plan& plan, const SoftwareSpec& software) {
  const double stream = 2 * plan.micro_batch_tokens() * plan.model.hidden;
  double bytes = context_bytes;
  if (plan.sequence_parallel) bytes += 2 * stream;
  if (plan.pipeline > 1) bytes += 2 * boundary_bytes(plan);
  if (!keeps_whole_weights(plan)) {
    const double layer = layer_weights(plan.model).total() / plan.tensor;
    const double largest =
        std::max(layer, double(plan.model.vocabulary) * plan.model.hidden / plan.tensor);
    bytes += weight_bytes * (largest + layer) +
             software.gradient_bytes * largest;  // at work and prefetched
  }
  return bytes;
}

std::string gigabytes(Bytes b) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", b.value() / 1e9);
  return text;
}

// The fullest stage is the first, the second (no embedding, but a layer more) or the last.
Bytes fullest(const Plan& plan, const SoftwareSpec& software) {
  Bytes most{};
  for (int stage : std::set<int>{0, std::min(1, plan.pipeline - 1), plan.pipeline - 1})
    most = std::max(most, stage_memory(plan, software, stage).total());
  return most;
}

// A changed plan, what it changes in words, and how much that is likely to cost.
struct Candidate {
  ParallelSpec parallel;
  std::string changes;
  int cost = 0;

  void say(int price, const std::string& change) {
    cost += price;
    changes += (changes.empty() ? "" : ", ") + change;
  }
};

// Prices order the answers: sharding is nearly free, a smaller micro-batch costs kernel efficiency,
// recomputation a quarter of the step, a larger replica the batch or the bubble.
constexpr int zero1_price = 1, micro_batch_price = 2, selective_price = 2, fsdp_price = 3,
              doubling_price = 4, full_price = 5;

std::vector<Candidate> candidates(const JobSpec& job, int gpus_per_server) {
  std::vector<Candidate> found{{job.parallel, "", 0}};
  const auto vary = [&found](auto&& variants) {
    std::vector<Candidate> more;
    for (const Candidate& c : found) variants(c, more);
    found.insert(found.end(), more.begin(), more.end());
  };
  vary([](const Candidate& c, std::vector<Candidate>& out) {
    const auto shard = [&](Sharding to, int price) {
      Candidate next = c;
      next.parallel.sharding = to;
      next.say(price, "sharding \"" + std::string(name_of(to)) + "\"");
      out.push_back(next);
    };
    if (c.parallel.sharding == Sharding::none) shard(Sharding::zero1, zero1_price);
    if (c.parallel.sharding != Sharding::fsdp && c.parallel.pipeline == 1)
      shard(Sharding::fsdp, fsdp_price);
  });
  vary([](const Candidate& c, std::vector<Candidate>& out) {
    int price = micro_batch_price;
    for (int b = c.parallel.micro_batch / 2; b >= 1; b /= 2, ++price) {
      Candidate next = c;
      next.parallel.micro_batch = b;
      next.say(price, "micro_batch " + std::to_string(b));
      out.push_back(next);
    }
  });
  vary([&job](const Candidate& c, std::vector<Candidate>& out) {
    const auto recompute = [&](Recompute to, int price) {
      Candidate next = c;
      next.parallel.recompute = to;
      next.say(price, "recompute \"" + std::string(name_of(to)) + "\"");
      out.push_back(next);
    };
    // A fused attention kernel already keeps nothing that selective recomputation could drop.
    if (c.parallel.recompute == Recompute::none && !job.software.flash_attention)
      recompute(Recompute::selective, selective_price);
    if (c.parallel.recompute != Recompute::full) recompute(Recompute::full, full_price);
  });
  vary([gpus_per_server](const Candidate& c, std::vector<Candidate>& out) {
    int price = doubling_price;
    for (int t = 2 * c.parallel.tensor; t <= gpus_per_server; t *= 2, price += doubling_price) {
      Candidate next = c;
      next.parallel.tensor = t;
      next.parallel.data.reset();
      next.say(price, "tensor " + std::to_string(t));
      out.push_back(next);
    }
  });
  vary([&job](const Candidate& c, std::vector<Candidate>& out) {
    int price = doubling_price;
    for (long p = 2L * c.parallel.pipeline; p <= std::min(job.gpus, job.model.layers + 2);
         p *= 2, price += doubling_price) {
      Candidate next = c;
      next.parallel.pipeline = int(p);
      next.parallel.data.reset();
      next.say(price, "pipeline " + std::to_string(p));
      out.push_back(next);
    }
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  found.erase(found.begin());  // the plan itself
  return found;
}

std::string nearest_that_fits(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server) {
  for (const Candidate& candidate : candidates(job, gpus_per_server)) {
    JobSpec changed = job;
    changed.parallel = candidate.parallel;
    if (!check_plan(changed, gpus_per_server).empty()) continue;
    const Bytes total = fullest(make_plan(changed), job.software);
    if (total > gpu.memory) continue;
    return candidate.changes + " (" + gigabytes(total) + " GB)";
  }
  return "more GPUs to a replica, a smaller model, or a GPU with more memory: no plan of this job "
         "fits";
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

double layer_activation_bytes(const Plan& plan, const SoftwareSpec& software, Recompute recompute) {
  const TransformerSpec& m = plan.model;
  const double tokens = plan.micro_batch_tokens();
  const double split = plan.sequence_split();
  const double h = m.hidden;
  const double t = plan.tensor;
  if (recompute == Recompute::full) return tokens * 2 * h / split;
  const double heads = 4.0 * (m.heads + kv_heads(m)) * head_size(m) / t;
  const double ffn = (m.gated ? 6.0 : 4.0) * m.ffn / t;
  if (software.flash_attention) return tokens * (8 * h / split + heads + ffn);
  const double scores = recompute == Recompute::selective ? 0 : 5.0 * m.heads * plan.sequence / t;
  return tokens * (10 * h / split + heads + ffn + scores);
}

StageMemory stage_memory(const Plan& plan, const SoftwareSpec& software, int stage) {
  const double parameters = plan.stage_parameters(stage);
  const Occupancy::Peak peak = Occupancy(plan, software, stage).peak();
  StageMemory out;
  out.weights = Bytes(weight_bytes * parameters / (keeps_whole_weights(plan) ? 1 : plan.data));
  out.gradients = Bytes(peak.gradients);
  out.optimizer = Bytes(optimizer_state * parameters / shards(plan));
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

Problems check_memory(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server) {
  const Plan plan = make_plan(job);
  const MemoryEstimate estimate = memory_estimate(plan, job.software, gpu);
  if (estimate.share() <= 1) return {};
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
           nearest_that_fits(job, gpu, gpus_per_server)}};
}

}  // namespace trainyard::models
