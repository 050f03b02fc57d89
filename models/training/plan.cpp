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
    return m.heads % t == 0 && keys_fit(t) && m.ffn % t == 0 && servers_fit(t) &&
           (!job.parallel.sequence_parallel || tokens_of_rank() % t == 0);
  }
  /// Fewer key/value heads than ranks are held by several ranks each.
  bool keys_fit(Count t) const {
    const Count kv = kv_heads(job.model);
    return kv % t == 0 || t % kv == 0;
  }
  /// A group fills part of a server, or whole servers.
  bool servers_fit(Count t) const { return gpus_per_server % t == 0 || t % gpus_per_server == 0; }
  Count tokens_of_rank() const { return job.sequence / std::max(1, job.parallel.context); }

  void tensor() {
    const Count t = job.parallel.tensor;
    if (tensor_fits(t)) return;
    const TransformerSpec& m = job.model;
    std::string why;
    const auto say = [&](bool wrong, const std::string& reason) {
      if (wrong) why += (why.empty() ? "" : ", ") + reason;
    };
    say(!servers_fit(t),
        t > gpus_per_server
            ? "is no multiple of the " + text(gpus_per_server) + " GPUs of one server"
            : "does not divide the " + text(gpus_per_server) + " GPUs of one server");
    say(m.heads % t != 0, "does not divide " + text(m.heads) + " heads");
    say(!keys_fit(t), "neither divides " + text(kv_heads(m)) + " kv_heads nor is a multiple");
    say(m.ffn % t != 0, "does not divide ffn " + text(m.ffn));
    say(job.parallel.sequence_parallel && tokens_of_rank() % t != 0,
        "does not divide the sequence of " + text(tokens_of_rank()) +
            " tokens of a rank (sequence_parallel)");
    add("parallel.tensor", text(t) + " " + why,
        nearest(t, std::max(gpus_per_server, Count(job.model.heads)),
                [this](Count x) { return tensor_fits(x); }));
  }

  // Returns the data-parallel size, 0 when it cannot be had.
  Count data() {
    const Count replica = Count(job.parallel.tensor) * job.parallel.context * job.parallel.pipeline;
    const std::string product =
        job.parallel.context > 1 ? "tensor * context * pipeline" : "tensor * pipeline";
    if (job.gpus < replica || job.gpus % replica != 0) {
      add("gpus", text(job.gpus) + " is not a multiple of " + product + " = " + text(replica),
          multiples_around(job.gpus, replica));
      return 0;
    }
    const Count data = job.gpus / replica;
    if (job.parallel.data && *job.parallel.data != data) {
      add("parallel.data",
          text(*job.parallel.data) + " contradicts gpus / (" + product + ") = " + text(data),
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
    // Forward and backward; a zero-bubble schedule splits the backward in two.
    const Count passes = job.parallel.schedule == Schedule::zero_bubble ? 3 : 2;
    if (p * v <= most_virtual_stages && passes * micro_batches * p * v > most_operations)
      add("parallel.micro_batch",
          text(micro_batches) + " micro-batches of a replica on " + text(p * v) +
              " virtual stages are more than can be played",
          "a larger micro_batch, or a smaller global_batch");
  }

  void context() {
    const Count c = job.parallel.context;
    // Causal attention is balanced by giving every rank an early and a late piece.
    if (c > 1 && job.sequence % (2 * c) != 0)
      add("parallel.context",
          text(c) + ": the sequence of " + text(job.sequence) +
              " tokens is not cut evenly into 2 * context = " + text(2 * c) + " pieces",
          nearest(c, job.sequence, [&](Count x) { return x == 1 || job.sequence % (2 * x) == 0; }));
  }

  void experts(Count data) {
    const ParallelSpec& p = job.parallel;
    const Count e = p.expert;
    Count fewest = 0;  // routed experts of the layers that have some
    for (const LayerGroup& group : layer_groups(job.model))
      if (group.layer.experts)
        fewest = fewest == 0 ? group.layer.experts->count
                             : std::min<Count>(fewest, group.layer.experts->count);
    if (fewest == 0) {
      if (e > 1) add("parallel.expert", text(e) + ", but the model has no experts", "1");
      if (p.expert_tensor)
        add("parallel.expert_tensor", "the model has no experts", "leave it out");
      return;
    }
    const Count ranks = Count(p.tensor) * p.context * data;
    const Count etp = p.expert_tensor.value_or(p.tensor);
    const auto fits = [&](Count x) { return fewest % x == 0 && ranks % (x * etp) == 0; };
    if (fits(e)) return;
    add("parallel.expert",
        text(e) + (fewest % e != 0 ? " does not divide " + text(fewest) + " experts"
                                   : " * expert_tensor " + text(etp) + " does not divide the " +
                                         text(ranks) + " ranks of a stage"),
        nearest(e, fewest, fits));
  }

  void shard_group(Count data) {
    if (!job.parallel.shard_group) return;
    const Count g = *job.parallel.shard_group, ranks = data * job.parallel.context;
    if (ranks % g != 0)
      add("parallel.shard_group",
          text(g) + " does not divide the " + text(ranks) + " ranks that share weights",
          nearest(g, ranks, [&](Count x) { return ranks % x == 0; }));
  }

  void layers() {
    const Count layers = job.model.layers;
    const Count p = job.parallel.pipeline;
    const Count v = job.parallel.chunks;
    if (!job.parallel.stage_layers.empty()) return stated_layers(layers, p * v);
    if (can_divide(layers, p * v)) return;
    const Count limit = std::min(layers + 2, most_virtual_stages);
    const std::string stages = nearest(
        p, limit / v, [&](Count x) { return (v == 1 || x > 1) && can_divide(layers, x * v); });
    const std::string chunks =
        nearest(v, limit / p, [&](Count x) { return can_divide(layers, p * x); });
    std::string right = stages.empty() ? "" : "pipeline " + stages;
    if (v > 1 && !chunks.empty()) right += (right.empty() ? "" : ", or ") + ("chunks " + chunks);
    if (right.empty()) right = "pipeline 1 with chunks 1";
    right += ", or stage_layers";
    add("parallel.pipeline",
        text(layers) + " layers cannot be divided over pipeline * chunks = " + text(p * v) +
            (p * v > 1
                 ? " (neither " + text(layers) + " nor " + text(layers + 2) + " is a multiple)"
                 : ""),
        right);
  }

  void stated_layers(Count layers, Count virtual_stages) {
    const std::vector<int>& stated = job.parallel.stage_layers;
    if (Count(stated.size()) != virtual_stages)
      return add("parallel.stage_layers",
                 text(Count(stated.size())) +
                     " numbers for pipeline * chunks = " + text(virtual_stages) + " virtual stages",
                 "one number for each");
    Count sum = 0;
    for (const int n : stated) sum += n;
    if (sum != layers)
      add("parallel.stage_layers", "layers add up to " + text(sum),
          "the model has " + text(layers));
  }
};

}  // namespace

double Plan::stage_parameters(int stage) const {
  double sum = 0;
  for (int c = 0; c < chunks; ++c)
    sum += shared_parameters(share(stage, c)) + expert_parameters(share(stage, c));
  return sum;
}

double Plan::largest_stage_parameters() const {
  double most = 0;
  for (int s = 0; s < pipeline; ++s) most = std::max(most, stage_parameters(s));
  return most;
}

int Plan::size(RankDimension d) const {
  switch (d) {
    case RankDimension::tensor:
      return tensor;
    case RankDimension::context:
      return context;
    case RankDimension::data:
      return data;
    case RankDimension::pipeline:
      return pipeline;
  }
  return 1;
}

int Plan::stride(RankDimension wanted) const {
  int stride = 1;
  for (const RankDimension d : order) {
    if (d == wanted) return stride;
    stride *= size(d);
  }
  return stride;
}

int Plan::rank_of(RankPlace place) const {
  return place.tensor * stride(RankDimension::tensor) +
         place.context * stride(RankDimension::context) + place.data * stride(RankDimension::data) +
         place.pipeline * stride(RankDimension::pipeline);
}

RankPlace Plan::place_of(int rank) const {
  const auto along = [&](RankDimension d) { return rank / stride(d) % size(d); };
  return {.tensor = along(RankDimension::tensor),
          .context = along(RankDimension::context),
          .data = along(RankDimension::data),
          .pipeline = along(RankDimension::pipeline)};
}

std::vector<int> Plan::ranks_of_stage(int stage) const {
  std::vector<int> ranks;
  ranks.reserve(std::size_t(stage_ranks()));
  for (int d = 0; d < data; ++d)
    for (int c = 0; c < context; ++c)
      for (int t = 0; t < tensor; ++t)
        ranks.push_back(rank_of({.tensor = t, .context = c, .data = d, .pipeline = stage}));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Problems check_plan(const JobSpec& job, int gpus_per_server) {
  check(gpus_per_server >= 1 && job.parallel.tensor >= 1 && job.parallel.pipeline >= 1 &&
            job.parallel.context >= 1 && job.parallel.expert >= 1 && job.parallel.chunks >= 1 &&
            job.parallel.micro_batch >= 1 && job.model.layers >= 1,
        "sizes are positive: the reader of the scenario refuses others");
  Checker checker{job, gpus_per_server, {}};
  checker.tensor();
  checker.context();
  if (const Count data = checker.data(); data > 0) {
    checker.batch(data);
    checker.experts(data);
    checker.shard_group(data);
  }
  checker.layers();
  return std::move(checker.problems);
}

namespace {

// Kinds of layers, and of which kind each layer is.
struct Kinds {
  std::vector<TransformerSpec> kinds;
  std::vector<int> of_layer;
};

Kinds kinds_of(const TransformerSpec& model) {
  Kinds out;
  for (const LayerGroup& group : layer_groups(model)) {
    const auto known = std::find(out.kinds.begin(), out.kinds.end(), group.layer);
    const int kind = int(known - out.kinds.begin());
    if (known == out.kinds.end()) out.kinds.push_back(group.layer);
    out.of_layer.insert(out.of_layer.end(), std::size_t(group.count), kind);
  }
  return out;
}

void add_layers(ChunkShare& share, const Plan& plan, int kind, int count) {
  const LayerWeights w = layer_weights(plan.kinds[std::size_t(kind)]);
  const double experts = w.experts * (w.expert + w.expert_biases);
  share.weights += count * (w.total() - experts);
  share.expert_weights += count * experts;
}

}  // namespace

Plan make_plan(const JobSpec& job) {
  const ParallelSpec& parallel = job.parallel;
  Plan plan;
  plan.model = job.model;
  plan.gpus = job.gpus;
  plan.sequence = job.sequence;
  plan.global_batch = job.global_batch;
  plan.tensor = parallel.tensor;
  plan.pipeline = parallel.pipeline;
  plan.context = parallel.context;
  plan.expert = parallel.expert;
  plan.expert_tensor = parallel.expert_tensor.value_or(parallel.tensor);
  plan.data = job.gpus / (parallel.tensor * parallel.context * parallel.pipeline);
  plan.chunks = parallel.chunks;
  plan.schedule = parallel.schedule;
  plan.order = rank_order(parallel.order).value_or(plan.order);
  plan.sequence_parallel = parallel.sequence_parallel && parallel.tensor > 1;
  plan.scatters_boundaries =
      job.software.scatter_pipeline && !plan.sequence_parallel && parallel.tensor > 1;
  plan.context_exchange = parallel.context_exchange;
  plan.sharding = parallel.sharding;
  plan.shard_group = parallel.sharding == Sharding::none
                         ? 1
                         : parallel.shard_group.value_or(plan.data * plan.context);
  plan.recompute = parallel.recompute;
  plan.recompute_share = parallel.recompute == Recompute::none ? 0 : parallel.recompute_share;
  plan.precision = parallel.precision;
  plan.mechanisms = job.mechanisms;
  plan.micro_batch = parallel.micro_batch;
  check(plan.stage_ranks() * plan.pipeline == plan.gpus, "check_plan() found the GPUs divisible",
        plan.gpus);
  plan.micro_batches = job.global_batch / (plan.data * plan.micro_batch);

  const int virtual_stages = plan.pipeline * plan.chunks;
  const bool stated = !parallel.stage_layers.empty();
  check((stated ? parallel.stage_layers.size() == std::size_t(virtual_stages)
                : can_divide(job.model.layers, virtual_stages)) &&
            plan.micro_batches >= 1,
        "check_plan() found layers and batch divisible", job.model.layers, virtual_stages);
  const std::vector<int> layers =
      stated ? parallel.stage_layers : divide_layers(job.model.layers, virtual_stages);
  Kinds kinds = kinds_of(job.model);
  plan.kinds = std::move(kinds.kinds);
  plan.shares.resize(std::size_t(virtual_stages));
  std::size_t layer = 0;
  for (int v = 0; v < virtual_stages; ++v) {
    ChunkShare& share =
        plan.shares[std::size_t(v % plan.pipeline * plan.chunks + v / plan.pipeline)];
    share.layers = layers[std::size_t(v)];
    share.layers_of_kind.assign(plan.kinds.size(), 0);
    for (int i = 0; i < share.layers; ++i, ++layer)
      ++share.layers_of_kind[std::size_t(kinds.of_layer[layer])];
    for (std::size_t kind = 0; kind < plan.kinds.size(); ++kind)
      add_layers(share, plan, int(kind), share.layers_of_kind[kind]);
    share.embedding = v == 0;
    share.head = v == virtual_stages - 1;
    if (share.embedding) share.weights += embedding_weights(job.model, job.sequence);
    if (share.head) {
      share.weights += head_weights(job.model) + prediction_weights(job.model);
      share.predictions = job.model.extra_predictions;
      add_layers(share, plan, kinds.of_layer.back(), share.predictions);
    }
    // A tied output matrix is a second copy when the head sits on another stage than the embedding.
    if (share.head && !share.embedding && job.model.tied_embeddings)
      share.weights += double(job.model.vocabulary) * job.model.hidden;
  }
  return plan;
}

}  // namespace trainyard::models
