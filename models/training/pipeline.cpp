#include "models/training/pipeline.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// Where a message came from: when its producer ended and when it is here.
struct Arrival {
  double produced = never;
  double here = never;
};

class Player {
 public:
  explicit Player(const PipelineInput& input, std::vector<PipelineSlice>* slices)
      : in_(input),
        slices_(slices),
        p_(input.stages),
        v_(input.chunks),
        m_(input.micro_batches),
        virtual_stages_(p_ * v_),
        arrival_(std::size_t(virtual_stages_) * m_),
        is_awake_(std::size_t(p_), false),
        forward_link_free_(std::size_t(p_), 0.0),
        backward_link_free_(std::size_t(p_), 0.0) {
    const int group = v_ == 1 || in_.group > 0 ? in_.group : interleaved_group(p_, m_);
    orders_.reserve(std::size_t(p_));
    for (int s = 0; s < p_; ++s) orders_.emplace_back(in_.schedule, p_, v_, m_, s, group);
    if (orders_[0].splits_backward())
      for (std::size_t c = 0; c < in_.backward_s.size(); ++c)
        input_gradient_s_.push_back(in_.backward_s[c] - in_.weight_gradient_s[c]);
    out_.stages.resize(std::size_t(p_));
    for (std::vector<double>* times : {&out_.first_forward_s, &out_.first_forward_end_s,
                                       &out_.last_backward_start_s, &out_.last_backward_s})
      times->assign(std::size_t(virtual_stages_), 0.0);
    for (int j = 0; j < m_; ++j) arrival_[slot(0, j)] = {0.0, 0.0};  // the batch is there
  }

  PipelinePlay play() {
    // A stage runs until its next operation lacks its input; a message wakes it.
    for (int s = p_ - 1; s >= 0; --s) wake(s);
    while (!awake_.empty()) {
      const int stage = awake_.back();
      awake_.pop_back();
      PipelineOrder& order = orders_[std::size_t(stage)];
      while (!order.done() && run(stage, order)) order.next();
      is_awake_[std::size_t(stage)] = false;
    }
    return finish();
  }

 private:
  void wake(int stage) {
    if (is_awake_[std::size_t(stage)]) return;
    is_awake_[std::size_t(stage)] = true;
    awake_.push_back(stage);
  }

  std::size_t slot(int virtual_stage, int micro_batch) const {
    return std::size_t(virtual_stage) * m_ + micro_batch;
  }
  std::size_t chunk_of(int stage, int chunk) const { return std::size_t(stage * v_ + chunk); }

  // False: its input has no time yet.
  bool run(int stage, const PipelineOrder& order) {
    const PipelineOp& op = order.op();
    StagePlay& play = out_.stages[std::size_t(stage)];
    const std::size_t chunk = chunk_of(stage, op.chunk);
    if (op.weight_gradient) {
      complete(play, chunk, play.end_s, in_.weight_gradient_s[chunk]);
      record(stage, op, play.end_s, in_.weight_gradient_s[chunk]);
      return true;
    }
    const int virtual_stage = op.chunk * p_ + stage;
    Arrival& message = arrival_[slot(virtual_stage, op.micro_batch)];
    const Arrival input = message;
    if (input.here == never) return false;

    const double computed = std::max(play.end_s, input.produced);
    const double arrived = std::max(play.end_s, input.here);
    play.waiting_compute_s += computed - play.end_s;
    play.waiting_transfer_s += arrived - computed;
    if (op.backward) {
      const double length =
          order.splits_backward() ? input_gradient_s_[chunk] : in_.backward_s[chunk];
      if (order.splits_backward())
        pass(play, arrived, length);
      else
        complete(play, chunk, arrived, length);
      record(stage, op, play.end_s, length);
      if (virtual_stage > 0) send_backward(stage, virtual_stage, op.micro_batch, play.end_s);
      return true;
    }
    const double parameters = in_.parameters_ready_s.empty() ? 0.0 : in_.parameters_ready_s[chunk];
    const double start = std::max(arrived, parameters);
    play.waiting_parameters_s += start - arrived;
    const double end = pass(play, start, in_.forward_s[chunk]);
    record(stage, op, end, in_.forward_s[chunk]);
    if (op.micro_batch == 0) {
      out_.first_forward_s[chunk] = start;
      out_.first_forward_end_s[chunk] = end;
      if (op.chunk == 0) play.first_start_s = start;
    }
    if (virtual_stage + 1 < virtual_stages_) {
      message = {};  // for the gradient that will come back
      send_forward(stage, virtual_stage, op.micro_batch, end);
    } else {
      message = {end, end};  // the loss is computed here
    }
    return true;
  }

  void record(int stage, const PipelineOp& op, double end, double length) {
    if (slices_ != nullptr) slices_->push_back({stage, op, end - length, end});
  }

  static double pass(StagePlay& play, double start, double duration) {
    play.busy_s += duration;
    return play.end_s = start + duration;
  }

  // Of all micro-batches that complete in this chunk, the last writes last.
  void complete(StagePlay& play, std::size_t chunk, double start, double duration) {
    out_.last_backward_start_s[chunk] = start;
    out_.last_backward_s[chunk] = pass(play, start, duration);
  }

  void send_forward(int stage, int virtual_stage, int micro_batch, double end) {
    const int to = stage + 1 == p_ ? 0 : stage + 1;
    arrival_[slot(virtual_stage + 1, micro_batch)] =
        send(stage, to, forward_link_free_[std::size_t(stage)],
             in_.forward_transfer_s[std::size_t(stage)], end);
    wake(to);
  }

  void send_backward(int stage, int virtual_stage, int micro_batch, double end) {
    const int to = stage == 0 ? p_ - 1 : stage - 1;
    arrival_[slot(virtual_stage - 1, micro_batch)] =
        send(stage, to, backward_link_free_[std::size_t(to)],
             in_.backward_transfer_s[std::size_t(to)], end);
    wake(to);
  }

  Arrival send(int stage, int to, double& link_free, double transfer, double end) {
    if (to == stage) return {end, end};  // a single stage with chunks hands over in memory
    const double here = std::max(end, link_free) + transfer;
    link_free = here;
    if (!in_.overlap) {
      StagePlay& sender = out_.stages[std::size_t(stage)];
      sender.waiting_transfer_s += here - end;
      sender.end_s = here;
    }
    return {end, here};
  }

  PipelinePlay finish() {
    for (const PipelineOrder& order : orders_)
      check(order.done(), "every operation of the pipeline runs");
    for (const StagePlay& stage : out_.stages)
      out_.makespan_s = std::max(out_.makespan_s, stage.end_s);
    for (StagePlay& stage : out_.stages)
      stage.waiting_compute_s += out_.makespan_s - stage.end_s;  // drain
    return std::move(out_);
  }

  const PipelineInput& in_;
  std::vector<PipelineSlice>* const slices_;
  const int p_, v_, m_;
  const int virtual_stages_;
  /// [virtual stage][micro-batch]: the activations, and once the forward took them, the gradient.
  std::vector<Arrival> arrival_;
  std::vector<PipelineOrder> orders_;
  std::vector<double> input_gradient_s_;  // of B, [stage * chunks + chunk]
  std::vector<int> awake_;
  std::vector<char> is_awake_;
  std::vector<double> forward_link_free_;  // [boundary]
  std::vector<double> backward_link_free_;
  PipelinePlay out_;
};

}  // namespace

PipelineInput PipelineInput::equal(int stages, int chunks, int micro_batches, double forward_s,
                                   double backward_s, double transfer_s) {
  PipelineInput in;
  in.stages = stages;
  in.chunks = chunks;
  in.micro_batches = micro_batches;
  in.forward_s.assign(std::size_t(stages * chunks), forward_s / chunks);
  in.backward_s.assign(std::size_t(stages * chunks), backward_s / chunks);
  in.forward_transfer_s.assign(std::size_t(stages), transfer_s);
  in.backward_transfer_s.assign(std::size_t(stages), transfer_s);
  return in;
}

double PipelinePlay::bubble_s() const {
  double sum = 0;
  for (const StagePlay& stage : stages) sum += makespan_s - stage.busy_s;
  return stages.empty() ? 0 : sum / double(stages.size());
}

PipelinePlay play_pipeline(const PipelineInput& input, std::vector<PipelineSlice>* slices) {
  const auto all = std::size_t(input.stages * input.chunks);
  check(input.stages >= 1 && input.chunks >= 1 && input.micro_batches >= 1,
        "a pipeline has stages, chunks, micro-batches");
  check(input.forward_s.size() == all && input.backward_s.size() == all,
        "one time for every chunk of every stage");
  check(input.forward_transfer_s.size() == std::size_t(input.stages) &&
            input.backward_transfer_s.size() == std::size_t(input.stages),
        "one transfer for every boundary");
  if (input.schedule == Schedule::zero_bubble) {
    check(input.weight_gradient_s.size() == all, "a weight gradient for every chunk");
    for (std::size_t c = 0; c < all; ++c)
      check(0 <= input.weight_gradient_s[c] && input.weight_gradient_s[c] <= input.backward_s[c],
            "the weight gradient is a part of the backward pass", input.weight_gradient_s[c],
            input.backward_s[c]);
  }
  check(input.parameters_ready_s.empty() || input.parameters_ready_s.size() == all,
        "parameters of every chunk, or of none");
  return Player(input, slices).play();
}

}  // namespace trainyard::models
