#pragma once

#include <vector>

#include "models/training/parallel_spec.hpp"

/// One replica's pipeline, played operation by operation: exact for unequal stages, slow members
/// and slow links, where the bubble formula (p - 1) / (v m) only holds for equal stages.
///
/// Every stage runs its forward and backward passes in a fixed order; an operation starts when the
/// stage is free and its input has arrived. With a fixed order that is a recurrence in max and
/// plus, evaluated in one pass over the operations, no event queue:
///
///     start(op) = max(end(previous op of the stage), arrival of the input, parameters ready)
///     arrival   = max(end(producer), link free) + transfer          one transfer at a time per
///     link and direction
///
/// Orders, p stages, v chunks, m micro-batches, stage i counted from 0 (Narayanan et al. 2021,
/// Megatron-LM):
///
///     1F1B         min(m, p - i - 1) forwards, then forward and backward in turn, then the
///     backwards left interleaved  the same with min(m v, 2 (p - i - 1) + (v - 1) p) forwards
///     first; p micro-batches of chunk 0,
///                  then the same p of chunk 1, …; backwards from the last chunk to the first;
///                  needs m a multiple of p
///
///     PipelineInput in = PipelineInput::equal(4, 1, 8, 1.0, 2.0);        // stages, chunks, m,
///     forward, backward play_pipeline(in).makespan_s;                                     // (8 +
///     4 - 1) . 3 = 33
///
/// Page: docs/models/pipeline.md. Twin: tests/support/pipeline_twin.hpp.
namespace trainyard::models {

/// One pass of one micro-batch through one chunk of a stage.
struct PipelineOp {
  bool backward = false;
  int chunk = 0;
  int micro_batch = 0;
  friend bool operator==(const PipelineOp&, const PipelineOp&) = default;
};

/// Forwards that a stage runs before forward and backward alternate.
int warm_up_passes(int stages, int chunks, int micro_batches, int stage);

/// The operations of one stage, in order. One chunk: 1F1B, several: interleaved.
///
///     for (PipelineOrder order(stages, chunks, micro_batches, stage); !order.done(); order.next())
///     order.op();
class PipelineOrder {
 public:
  PipelineOrder(int stages, int chunks, int micro_batches, int stage);

  bool done() const { return index_ == 2 * passes_; }
  PipelineOp op() const {
    const Cursor& c = is_backward() ? backward_ : forward_;
    return {is_backward(), is_backward() ? chunks_ - 1 - c.chunk : c.chunk, c.first + c.within};
  }
  void next() {
    (is_backward() ? backward_ : forward_).advance(group_, chunks_);
    ++index_;
  }

 private:
  /// Walks a group of micro-batches through every chunk, then the next group.
  struct Cursor {
    int first = 0;  // micro-batch that opens the group
    int chunk = 0;
    int within = 0;
    void advance(int group, int chunks) {
      if (++within < group) return;
      within = 0;
      if (++chunk < chunks) return;
      chunk = 0;
      first += group;
    }
  };

  bool is_backward() const {
    if (index_ < warm_up_) return false;
    const int steady = index_ - warm_up_;
    return steady % 2 == 1 || warm_up_ + steady / 2 >= passes_;
  }

  int chunks_;
  int group_;   // micro-batches that pass a chunk before the next chunk begins
  int passes_;  // forwards of the stage
  int warm_up_;
  int index_ = 0;
  Cursor forward_;
  Cursor backward_;
};

struct PipelineInput {
  int stages = 1;
  int chunks = 1;
  int micro_batches = 1;
  bool overlap = true;            // false: the sender stands still during a transfer
  std::vector<double> forward_s;  // [stage * chunks + chunk]
  std::vector<double> backward_s;
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
  double waiting_transfer_s =
      0;  // done, but still on the link; without overlap also its own sending
  double waiting_parameters_s = 0;
};

struct PipelinePlay {
  double makespan_s = 0;
  std::vector<StagePlay> stages;
  std::vector<double>
      first_forward_s;  // start of the first forward of a chunk: its parameters are needed
  std::vector<double>
      last_backward_s;  // end of the last backward of a chunk: its gradients are ready

  double bubble_s() const;  // mean over stages of the time not busy
};

PipelinePlay play_pipeline(const PipelineInput& input);

}  // namespace trainyard::models
