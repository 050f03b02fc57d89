#pragma once

#include <vector>

#include "models/training/job_spec.hpp"
#include "sim/problem.hpp"

/// The parallel layout of a job, checked and resolved once, used by every other part of the
/// training model.
///
/// Layers go to virtual stages in order: chunk c of stage s is virtual stage c . pipeline + s. When
/// the layers do not divide but layers + 2 do, the first and the last virtual stage hold one layer
/// less: they carry the embedding and the head (Llama 3 405B: 126 layers on 16 stages = 16 . 8 -
/// 2).
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
  bool embedding = false;
  bool head = false;
  double weights = 0;
};

/// Coordinates of a rank.
struct RankPlace {
  int tensor = 0;
  int data = 0;
  int pipeline = 0;
};

struct Plan {
  TransformerSpec model;
  int gpus = 0;
  int sequence = 0;
  int global_batch = 0;

  int tensor = 1;
  int pipeline = 1;
  int data = 1;
  int chunks = 1;
  bool sequence_parallel = false;  // false whenever tensor is 1
  Sharding sharding = Sharding::none;
  Recompute recompute = Recompute::none;
  Precision precision = Precision::bf16;

  int micro_batch = 1;             // sequences of one micro-batch of one replica
  int micro_batches = 1;           // of one replica in one step
  std::vector<ChunkShare> shares;  // [stage * chunks + chunk]

  const ChunkShare& share(int stage, int chunk) const {
    return shares[std::size_t(stage * chunks + chunk)];
  }
  double micro_batch_tokens() const { return double(micro_batch) * sequence; }
  double tokens() const { return double(global_batch) * sequence; }  // of one step
  /// Parameters on one GPU of this stage, and on the fullest stage.
  double stage_parameters(int stage) const;
  double largest_stage_parameters() const;
  /// tensor or 1: over how many GPUs norms and residuals are split.
  int sequence_split() const { return sequence_parallel ? tensor : 1; }

  /// Ranks in order tensor, data, pipeline (fastest first); they fill servers in this order.
  int rank_of(RankPlace place) const {
    return place.tensor + tensor * (place.data + data * place.pipeline);
  }
  RankPlace place_of(int rank) const;
};

/// Everything that makes the layout impossible, each with the nearest valid numbers. Memory:
/// check_memory().
Problems check_plan(const JobSpec& job, int gpus_per_server);

/// Needs a job without problems.
Plan make_plan(const JobSpec& job);

}  // namespace trainyard::models
