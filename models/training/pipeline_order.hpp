#pragma once

#include <algorithm>

#include "models/training/parallel_spec.hpp"

/// In which order a stage of a pipeline runs its passes. The order is fixed before the step begins
/// and does not adapt to delays, so it can be replayed without a clock: by the pipeline
/// (pipeline.hpp) for time, by the memory model for what is held at once.
///
/// p stages, v chunks, m micro-batches, stage i counted from 0:
///
///     GPipe        all forwards, then all backwards, the newest micro-batch first
///     1F1B         min(m, p - i - 1) forwards, then forward and backward in turn, then the
///                  backwards left
///     interleaved  the same with min(m v, 2 (p - i - 1) + (v - 1) N) forwards first; groups of N
///                  micro-batches pass chunk 0, then chunk 1, ...; backwards from the last chunk
///                  to the first
///     zero-bubble  ZB-H1: 1F1B with the backward split into B, the gradient of the input, and W,
///                  the gradient of the weights. Stage i runs the W of a micro-batch i backwards
///                  late, so every stage holds at most min(m, p) micro-batches, as many as stage 0
///                  under 1F1B; the W left at the end fill the drain
///
///     PipelineOrder order(Schedule::zero_bubble, 3, 1, 4, 2);        // stages, chunks, m, stage
///     for (; !order.done(); order.next()) order.op();                // F B F B F B W F B W W W
///
/// Huang et al. 2019 (GPipe); Narayanan et al. 2021 (1F1B, interleaving); Megatron-Core,
/// pipeline_parallel/schedules.py (groups); Qi et al. 2023 (ZB-H1). Page: docs/models/pipeline.md.
namespace trainyard::models {

/// One pass of one micro-batch through one chunk of a stage.
struct PipelineOp {
  bool backward = false;
  int chunk = 0;
  int micro_batch = 0;
  /// Zero-bubble only: `backward` with this set is W, `backward` alone is B. In the other orders
  /// `backward` alone is both.
  bool weight_gradient = false;
  friend bool operator==(const PipelineOp&, const PipelineOp&) = default;
};

/// Micro-batches that pass a chunk before the next chunk begins: the fewest N from p on for which
/// the last group is whole or still has p micro-batches, as Megatron-Core demands. A shorter last
/// group stalls, or never ends: the first stage then waits for a pass that comes behind its own
/// next pass, around the ring. Fewer micro-batches than stages are one group.
int interleaved_group(int stages, int micro_batches);
/// Whether the interleaved order may have this group.
bool is_group_valid(int stages, int micro_batches, int group);

/// Forwards that a stage runs before forward and backward alternate: 1F1B, or interleaved in
/// groups as above.
int warm_up_passes(int stages, int chunks, int micro_batches, int stage);

/// The operations of one stage, in order.
class PipelineOrder {
 public:
  /// One chunk: 1F1B, several: interleaved.
  PipelineOrder(int stages, int chunks, int micro_batches, int stage)
      : PipelineOrder(Schedule::one_f_one_b, stages, chunks, micro_batches, stage) {}
  /// 1F1B and interleaved are one order: chunks tell them apart. The others take one chunk.
  /// group 0: interleaved_group().
  PipelineOrder(Schedule schedule, int stages, int chunks, int micro_batches, int stage,
                int group = 0);

  bool done() const { return left_ == 0; }
  const PipelineOp& op() const { return op_; }
  void next() {
    --left_;
    if (op_.weight_gradient)
      ++weights_;
    else if (op_.backward)
      backward_.advance(*this);
    else
      forward_.advance(*this);
    choose();
  }

  /// The operation ends the backward pass of its micro-batch: the gradients of its weights are
  /// added, its activations can go.
  bool completes(const PipelineOp& op) const {
    return op.backward && op.weight_gradient == splits_backward_;
  }
  bool splits_backward() const { return splits_backward_; }

 private:
  /// Walks a group of micro-batches through every chunk, then the next group.
  struct Cursor {
    int passed = 0;
    int chunk = 0;
    int micro_batch = 0;
    int first = 0;  // micro-batch of the group
    int end = 0;    // behind its last
    void advance(const PipelineOrder& order) {
      ++passed;
      if (++micro_batch < end) return;
      micro_batch = first;
      if (++chunk < order.chunks_) return;
      chunk = 0;
      micro_batch = first = end;
      end = std::min(end + order.group_, order.micro_batches_);
    }
  };

  void choose() {
    if (backward_.passed - weights_ > lag_ || backward_.passed == passes_)
      op_ = {true, 0, weights_, true};
    else if (forward_.passed < passes_ && forward_.passed <= warm_up_ + backward_.passed)
      op_ = {false, forward_.chunk, forward_.micro_batch};
    else
      op_ = {true, chunks_ - 1 - backward_.chunk,
             newest_first_ ? micro_batches_ - 1 - backward_.micro_batch : backward_.micro_batch};
  }

  int chunks_;
  int micro_batches_;
  int group_;    // micro-batches that pass a chunk before the next chunk begins
  int passes_;   // forwards of the stage
  int warm_up_;  // forwards before the first backward
  int lag_;      // B may be ahead of W by so many; not split: never reached
  bool splits_backward_;
  bool newest_first_;  // backwards
  int left_;           // operations
  Cursor forward_;
  Cursor backward_;
  int weights_ = 0;  // W run
  PipelineOp op_;
};

}  // namespace trainyard::models
