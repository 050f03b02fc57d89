#pragma once

#include <array>
#include <vector>

#include "models/training/job_spec.hpp"
#include "sim/problem.hpp"

/// The parallel layout of a job, checked and resolved once, used by every other part of the
/// training model.
///
/// Layers go to virtual stages in order: chunk c of stage s is virtual stage c . pipeline + s. When
/// the layers do not divide but layers + 2 do, the first and the last virtual stage hold one layer
/// less: they carry the embedding and the head (Llama 3 405B: 126 layers on 16 stages = 16 . 8 -
/// 2). `stage_layers` states any other division.
///
///     if (Problems problems = check_plan(job, 8); problems.empty()) {
///       const Plan plan = make_plan(job);
///       plan.micro_batches;                       // 16
///       plan.share(0, 0).layers;                  // 7
///       plan.rank_of({.tensor = 3, .data = 0, .pipeline = 1});
///     }
namespace trainyard::models {

/// What one model chunk of one stage holds. Weights are of the whole tensor-parallel group.
struct ChunkShare {
  int layers = 0;
  std::vector<int> layers_of_kind;  // [kind of Plan::kinds]; sums to layers
  int predictions = 0;              // further predictions, each with a layer of the last kind
  bool embedding = false;
  bool head = false;
  double weights = 0;         // all but routed experts
  double expert_weights = 0;  // of all routed experts of these layers

  /// Transformer blocks computed here: layers and those of further predictions.
  int blocks() const { return layers + predictions; }
};

/// Coordinates of a rank.
struct RankPlace {
  int tensor = 0;
  int context = 0;
  int data = 0;
  int pipeline = 0;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};

struct Plan {
  TransformerSpec model;
  std::vector<TransformerSpec> kinds;  // of layers, each as layer_weights() takes it
  int gpus = 0;
  int sequence = 0;
  int global_batch = 0;

  int tensor = 1;
  int pipeline = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  int expert_tensor = 1;
  int chunks = 1;
  Schedule schedule = Schedule::one_f_one_b;
  std::array<RankDimension, 4> order{RankDimension::tensor, RankDimension::context,
                                     RankDimension::data, RankDimension::pipeline};
  bool sequence_parallel = false;    // false whenever tensor is 1
  bool scatters_boundaries = false;  // ranks that hold all of the stream send a slice each
  ContextExchange context_exchange = ContextExchange::ring;
  Sharding sharding = Sharding::none;
  int shard_group = 1;  // ranks over which weights other than experts' are sharded; 1: not at all
  Recompute recompute = Recompute::none;
  double recompute_share = 1;
  Precision precision = Precision::bf16;
  Mechanisms mechanisms;

  int micro_batch = 1;             // sequences of one micro-batch of one replica
  int micro_batches = 1;           // of one replica in one step
  std::vector<ChunkShare> shares;  // [stage * chunks + chunk]

  const ChunkShare& share(int stage, int chunk) const {
    return shares[std::size_t(stage * chunks + chunk)];
  }
  /// Of one micro-batch on one context-parallel rank.
  double micro_batch_tokens() const { return double(micro_batch) * sequence / context; }
  double tokens() const { return double(global_batch) * sequence; }  // of one step
  /// Parameters on one GPU of this stage as it computes (unsharded), and on the fullest stage.
  double stage_parameters(int stage) const;
  double largest_stage_parameters() const;
  /// The two parts of it: weights that all data * context ranks share, and experts' weights.
  double shared_parameters(const ChunkShare& share) const { return share.weights / tensor; }
  double expert_parameters(const ChunkShare& share) const {
    return share.expert_weights / (double(expert) * expert_tensor);
  }
  /// Ranks that hold the same weights, and the same experts.
  int weight_replicas() const { return data * context; }
  int expert_replicas() const { return stage_ranks() / (expert * expert_tensor); }
  int stage_ranks() const { return tensor * context * data; }
  /// tensor or 1: over how many GPUs norms and residuals are split.
  int sequence_split() const { return sequence_parallel ? tensor : 1; }

  /// Over how many of its GPUs a replica cuts what it sends to the next stage.
  int boundary_split() const { return scatters_boundaries ? tensor : sequence_split(); }

  /// How far apart neighbours of a dimension are, in ranks. Ranks fill servers in order.
  int stride(RankDimension d) const;
  int size(RankDimension d) const;
  int rank_of(RankPlace place) const;
  RankPlace place_of(int rank) const;
  /// All ranks of a stage, ascending; expert-parallel groups are cut from this list: with
  /// expert_tensor = tensor every tensor-th, with expert_tensor = 1 neighbours.
  std::vector<int> ranks_of_stage(int stage) const;
};

/// Everything that makes the layout impossible, each with the nearest valid numbers. Memory:
/// check_memory().
Problems check_plan(const JobSpec& job, int gpus_per_server);

/// Needs a job without problems.
Plan make_plan(const JobSpec& job);

}  // namespace trainyard::models
