#pragma once

#include <vector>

#include "models/training/pipeline_order.hpp"

/// One replica's pipeline, played operation by operation: exact for unequal stages, slow members
/// and slow links, where the bubble formula (p - 1) / (v m) only holds for equal stages.
///
/// Every stage runs its passes in a fixed order (pipeline_order.hpp); an operation starts when the
/// stage is free and its input has arrived. That is a recurrence in max and plus, evaluated in one
/// pass over the operations, no event queue:
///
///     start(op) = max(end(previous op of the stage), arrival of the input, parameters ready)
///     arrival   = max(end(producer), link free) + transfer          one transfer at a time per
///                                                                   link and direction
///
/// Zero-bubble sends the gradient on when B ends; W waits for nothing but its turn.
///
///     PipelineInput in = PipelineInput::equal(4, 1, 8, 1.0, 2.0);  // stages, chunks, m, F, B
///     play_pipeline(in).makespan_s;                                // (8 + 4 - 1) . 3 = 33
///     in.schedule = Schedule::zero_bubble;
///     in.weight_gradient_s.assign(4, 1.0);                         // half of each backward
///     play_pipeline(in).makespan_s;                                // 8 . 3 + 3 (1 + 1 - 1) = 27
///
/// Page: docs/models/pipeline.md. Twin: tests/support/pipeline_twin.hpp.
namespace trainyard::models {

struct PipelineInput {
  int stages = 1;
  int chunks = 1;
  int micro_batches = 1;
  Schedule schedule = Schedule::one_f_one_b;  // with several chunks: interleaved
  int group = 0;                  // interleaved: micro-batches of a group; 0: interleaved_group()
  bool overlap = true;            // false: the sender stands still during a transfer
  std::vector<double> forward_s;  // [stage * chunks + chunk]
  std::vector<double> backward_s;
  /// Zero-bubble: the part of backward_s that is W, [stage * chunks + chunk]. Others: not read.
  std::vector<double> weight_gradient_s;
  /// Activations from stage i to i + 1, and from the last stage to the first (next chunk): `stages`
  /// entries.
  std::vector<double> forward_transfer_s;
  /// Gradients back over the same boundary i: from stage i + 1 to i, from the first to the last.
  /// `stages` entries.
  std::vector<double> backward_transfer_s;
  /// When the parameters of a chunk are there, [stage * chunks + chunk]; empty: at the start.
  std::vector<double> parameters_ready_s;

  static PipelineInput equal(int stages, int chunks, int micro_batches, double forward_s,
                             double backward_s, double transfer_s = 0);
};

/// Per stage busy + waiting for compute + transfer + parameters = makespan.
struct StagePlay {
  double first_start_s = 0;
  double end_s = 0;
  double busy_s = 0;
  double waiting_compute_s = 0;  // another stage is not done: fill, drain, imbalance
  /// Done, but still on the link; without overlap also its own sending.
  double waiting_transfer_s = 0;
  double waiting_parameters_s = 0;
};

struct PipelinePlay {
  double makespan_s = 0;
  std::vector<StagePlay> stages;
  // All [stage * chunks + chunk].
  /// First forward of a chunk: its parameters are needed from the start on, layer by layer, the
  /// last at the end.
  std::vector<double> first_forward_s;
  std::vector<double> first_forward_end_s;
  /// Last backward of a chunk (zero-bubble: last W): its gradients become final, layer by layer,
  /// from the start on; all are at the end.
  std::vector<double> last_backward_start_s;
  std::vector<double> last_backward_s;

  double bubble_s() const;  // mean over stages of the time not busy
};

/// One pass as it was played.
struct PipelineSlice {
  int stage = 0;
  PipelineOp op{};
  double start_s = 0;
  double end_s = 0;
};

/// `slices`, if given, gets every pass: those of one stage in order.
PipelinePlay play_pipeline(const PipelineInput& input,
                           std::vector<PipelineSlice>* slices = nullptr);

}  // namespace trainyard::models
