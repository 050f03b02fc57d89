#include "models/training/plan.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Count = std::int64_t;  // products of two user numbers must not overflow

// Beyond these the layout is a slip of the pen, and playing it would take minutes.
constexpr Count most_virtual_stages = 65536;
constexpr Count most_operations = 20'000'000;

bool can_divide(Count layers, Count virtual_stages) {
  if (virtual_stages > most_virtual_stages) return false;
  return layers % virtual_stages == 0 || (virtual_stages > 1 && (layers + 2) % virtual_stages == 0);
}

// Layers of every virtual stage.
std::vector<int> divide_layers(int layers, int virtual_stages) {
  const auto all = std::size_t(virtual_stages);
  if (layers % virtual_stages == 0) return std::vector<int>(all, layers / virtual_stages);
  std::vector<int> out(all, (layers + 2) / virtual_stages);
  --out.front();
  --out.back();
  return out;
}

// "8 or 16": the nearest numbers below and above `value` that fit, up to `limit`; empty when there
// are none.
template <class Fits>
std::string nearest(Count value, Count limit, const Fits& fits) {
  std::string out;
  for (Count below = std::min(value - 1, limit); below >= 1; --below) {
    if (!fits(below)) continue;
    out = std::to_string(below);
    break;
  }
  for (Count over = value + 1; over <= limit; ++over) {
    if (!fits(over)) continue;
    out += (out.empty() ? "" : " or ") + std::to_string(over);
    break;
  }
  return out;
}

std::string text(Count value) {
  return std::to_string(value);
}

// "16 or 24": the multiples of `step` around `value`, none of them zero.
std::string multiples_around(Count value, Count step) {
  const Count below = value / step * step;
  return (below > 0 ? text(below) + " or " : "") + text(below + step);
}

struct Checker {
  const JobSpec& job;
  Count gpus_per_server;
  Problems problems;

  void add(std::string path, std::string what, std::string right) {
    problems.push_back({std::move(path), std::move(what), std::move(right)});
  }

  // Every condition on the tensor-parallel size, so that one suggestion satisfies them all.
  bool tensor_fits(Count t) const {
    const TransformerSpec& m = job.model;
    return m.heads % t == 0 && kv_heads(m) % t == 0 && m.ffn % t == 0 && gpus_per_server % t == 0 &&
           (!job.parallel.sequence_parallel || job.sequence % t == 0);
  }

  void tensor() {
    const Count t = job.parallel.tensor;
    if (tensor_fits(t)) return;
    const TransformerSpec& m = job.model;
    std::string why;
    const auto say = [&](bool wrong, const std::string& reason) {
      if (wrong) why += (why.empty() ? "" : ", ") + reason;
    };
    if (t > gpus_per_server)
      say(true, "is larger than the " + text(gpus_per_server) + " GPUs of one server");
    else
      say(gpus_per_server % t != 0,
          "does not divide the " + text(gpus_per_server) + " GPUs of one server");
    say(m.heads % t != 0, "does not divide " + text(m.heads) + " heads");
    say(kv_heads(m) % t != 0, "does not divide " + text(kv_heads(m)) + " kv_heads");
    say(m.ffn % t != 0, "does not divide ffn " + text(m.ffn));
    say(job.parallel.sequence_parallel && job.sequence % t != 0,
        "does not divide the sequence of " + text(job.sequence) + " tokens (sequence_parallel)");
    add("parallel.tensor", text(t) + " " + why,
        nearest(t, gpus_per_server, [this](Count x) { return tensor_fits(x); }));
  }

  // Returns the data-parallel size, 0 when it cannot be had.
  Count data() {
    const Count replica = Count(job.parallel.tensor) * job.parallel.pipeline;
    if (job.gpus < replica || job.gpus % replica != 0) {
      add("gpus", text(job.gpus) + " is not a multiple of tensor * pipeline = " + text(replica),
          multiples_around(job.gpus, replica));
      return 0;
    }
    const Count data = job.gpus / replica;
    if (job.parallel.data && *job.parallel.data != data) {
      add("parallel.data",
          text(*job.parallel.data) + " contradicts gpus / (tensor * pipeline) = " + text(data),
          text(data) + ", or leave it out, or gpus " + text(*job.parallel.data * replica));
      return 0;
    }
    return data;
  }

  void batch(Count data) {
    const Count slice = data * job.parallel.micro_batch;
    if (job.global_batch < slice || job.global_batch % slice != 0) {
      add("global_batch",
          text(job.global_batch) + " is not a multiple of data * micro_batch = " + text(slice),
          multiples_around(job.global_batch, slice));
      return;
    }
    const Count micro_batches = job.global_batch / slice;
    const Count p = job.parallel.pipeline;
    const Count v = job.parallel.chunks;
    if (v > 1 && micro_batches % p != 0)
      add("global_batch",
          text(micro_batches) + " micro-batches of a replica are not a multiple of pipeline " +
              text(p) + ", which the interleaved schedule needs",
          "global_batch " + multiples_around(job.global_batch, p * slice) +
              ", or schedule \"1f1b\" with chunks 1");
    if (can_divide(job.model.layers, p * v) && 2 * micro_batches * p * v > most_operations)
      add("parallel.micro_batch",
          text(micro_batches) + " micro-batches of a replica on " + text(p * v) +
              " virtual stages are more than can be played",
          "a larger micro_batch, or a smaller global_batch");
  }

  void layers() {
    const Count layers = job.model.layers;
    const Count p = job.parallel.pipeline;
    const Count v = job.parallel.chunks;
    if (can_divide(layers, p * v)) return;
    const Count limit = std::min(layers + 2, most_virtual_stages);
    const std::string stages = nearest(
        p, limit / v, [&](Count x) { return (v == 1 || x > 1) && can_divide(layers, x * v); });
    const std::string chunks =
        nearest(v, limit / p, [&](Count x) { return can_divide(layers, p * x); });
    std::string right = stages.empty() ? "" : "pipeline " + stages;
    if (v > 1 && !chunks.empty()) right += (right.empty() ? "" : ", or ") + ("chunks " + chunks);
    if (right.empty()) right = "pipeline 1 with chunks 1";
    add("parallel.pipeline",
        text(layers) + " layers cannot be divided over pipeline * chunks = " + text(p * v) +
            (p * v > 1
                 ? " (neither " + text(layers) + " nor " + text(layers + 2) + " is a multiple)"
                 : ""),
        right);
  }
};

}  // namespace

double Plan::stage_parameters(int stage) const {
  double sum = 0;
  for (int c = 0; c < chunks; ++c) sum += share(stage, c).weights;
  return sum / tensor;
}

double Plan::largest_stage_parameters() const {
  double most = 0;
  for (int s = 0; s < pipeline; ++s) most = std::max(most, stage_parameters(s));
  return most;
}

RankPlace Plan::place_of(int rank) const {
  return {.tensor = rank % tensor, .data = rank / tensor % data, .pipeline = rank / tensor / data};
}

Problems check_plan(const JobSpec& job, int gpus_per_server) {
  check(gpus_per_server >= 1 && job.parallel.tensor >= 1 && job.parallel.pipeline >= 1 &&
            job.parallel.chunks >= 1 && job.parallel.micro_batch >= 1 && job.model.layers >= 1,
        "sizes are positive: the reader of the scenario refuses others");
  if (Problems unplayable = check_playable(job.model); !unplayable.empty()) return unplayable;
  Checker checker{job, gpus_per_server, {}};
  checker.tensor();
  if (const Count data = checker.data(); data > 0) checker.batch(data);
  checker.layers();
  return std::move(checker.problems);
}

Plan make_plan(const JobSpec& job) {
  const ParallelSpec& parallel = job.parallel;
  Plan plan;
  plan.model = job.model;
  plan.gpus = job.gpus;
  plan.sequence = job.sequence;
  plan.global_batch = job.global_batch;
  plan.tensor = parallel.tensor;
  plan.pipeline = parallel.pipeline;
  plan.data = job.gpus / parallel.tensor / parallel.pipeline;
  plan.chunks = parallel.chunks;
  plan.sequence_parallel = parallel.sequence_parallel && parallel.tensor > 1;
  plan.sharding = parallel.sharding;
  plan.recompute = parallel.recompute;
  plan.precision = parallel.precision;
  plan.micro_batch = parallel.micro_batch;
  check(plan.data * plan.tensor * plan.pipeline == plan.gpus,
        "check_plan() found the GPUs divisible", plan.gpus);
  plan.micro_batches = job.global_batch / (plan.data * plan.micro_batch);

  const int virtual_stages = plan.pipeline * plan.chunks;
  check(can_divide(job.model.layers, virtual_stages) && plan.micro_batches >= 1,
        "check_plan() found layers and batch divisible", job.model.layers, virtual_stages);
  const std::vector<int> layers = divide_layers(job.model.layers, virtual_stages);
  const double layer = layer_weights(job.model).total();
  plan.shares.resize(std::size_t(virtual_stages));
  for (int v = 0; v < virtual_stages; ++v) {
    ChunkShare& share =
        plan.shares[std::size_t(v % plan.pipeline * plan.chunks + v / plan.pipeline)];
    share.layers = layers[std::size_t(v)];
    share.embedding = v == 0;
    share.head = v == virtual_stages - 1;
    share.weights = share.layers * layer;
    if (share.embedding) share.weights += embedding_weights(job.model, job.sequence);
    if (share.head) share.weights += head_weights(job.model);
    // A tied output matrix is a second copy when the head sits on another stage than the embedding.
    if (share.head && !share.embedding && job.model.tied_embeddings)
      share.weights += double(job.model.vocabulary) * job.model.hidden;
  }
  return plan;
}

}  // namespace trainyard::models
