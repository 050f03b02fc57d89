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
  explicit Player(const PipelineInput& input)
      : in_(input),
        p_(input.stages),
        v_(input.chunks),
        m_(input.micro_batches),
        virtual_stages_(p_ * v_),
        forward_arrival_(std::size_t(virtual_stages_) * m_),
        backward_arrival_(forward_arrival_.size()),
        is_awake_(std::size_t(p_), false),
        forward_link_free_(std::size_t(p_), 0.0),
        backward_link_free_(std::size_t(p_), 0.0) {
    for (int s = 0; s < p_; ++s) orders_.emplace_back(p_, v_, m_, s);
    out_.stages.resize(std::size_t(p_));
    out_.first_forward_s.assign(std::size_t(virtual_stages_), 0.0);
    out_.last_backward_s.assign(std::size_t(virtual_stages_), 0.0);
    for (int j = 0; j < m_; ++j) forward_arrival_[slot(0, j)] = {0.0, 0.0};  // the batch is there
  }

  PipelinePlay play() {
    // A stage runs until its next operation lacks its input; a message wakes it.
    for (int s = p_ - 1; s >= 0; --s) wake(s);
    while (!awake_.empty()) {
      const int stage = awake_.back();
      awake_.pop_back();
      PipelineOrder& order = orders_[std::size_t(stage)];
      while (!order.done() && run(stage, order.op())) order.next();
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
  bool run(int stage, const PipelineOp& op) {
    const int virtual_stage = op.chunk * p_ + stage;
    const Arrival input =
        (op.backward ? backward_arrival_ : forward_arrival_)[slot(virtual_stage, op.micro_batch)];
    if (input.here == never) return false;

    StagePlay& play = out_.stages[std::size_t(stage)];
    const std::size_t chunk = chunk_of(stage, op.chunk);
    const double parameters =
        op.backward || in_.parameters_ready_s.empty() ? 0.0 : in_.parameters_ready_s[chunk];
    const double computed = std::max(play.end_s, input.produced);
    const double arrived = std::max(play.end_s, input.here);
    const double start = std::max(arrived, parameters);
    const double duration = op.backward ? in_.backward_s[chunk] : in_.forward_s[chunk];
    play.waiting_compute_s += computed - play.end_s;
    play.waiting_transfer_s += arrived - computed;
    play.waiting_parameters_s += start - arrived;
    play.busy_s += duration;
    const double end = start + duration;
    play.end_s = end;

    if (op.backward) {
      out_.last_backward_s[chunk] = end;
      if (virtual_stage > 0) send_backward(stage, virtual_stage, op.micro_batch, end);
    } else {
      if (op.micro_batch == 0) out_.first_forward_s[chunk] = start;
      if (op.chunk == 0 && op.micro_batch == 0) play.first_start_s = start;
      if (virtual_stage + 1 < virtual_stages_)
        send_forward(stage, virtual_stage, op.micro_batch, end);
      else
        backward_arrival_[slot(virtual_stage, op.micro_batch)] = {
            end, end};  // the loss is computed here
    }
    return true;
  }

  void send_forward(int stage, int virtual_stage, int micro_batch, double end) {
    const int to = stage + 1 == p_ ? 0 : stage + 1;
    forward_arrival_[slot(virtual_stage + 1, micro_batch)] =
        send(stage, to, forward_link_free_[std::size_t(stage)],
             in_.forward_transfer_s[std::size_t(stage)], end);
    wake(to);
  }

  void send_backward(int stage, int virtual_stage, int micro_batch, double end) {
    const int to = stage == 0 ? p_ - 1 : stage - 1;
    backward_arrival_[slot(virtual_stage - 1, micro_batch)] =
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
  const int p_, v_, m_;
  const int virtual_stages_;
  std::vector<Arrival> forward_arrival_;  // [virtual stage][micro-batch]
  std::vector<Arrival> backward_arrival_;
  std::vector<PipelineOrder> orders_;
  std::vector<int> awake_;
  std::vector<char> is_awake_;
  std::vector<double> forward_link_free_;  // [boundary]
  std::vector<double> backward_link_free_;
  PipelinePlay out_;
};

}  // namespace

int warm_up_passes(int stages, int chunks, int micro_batches, int stage) {
  if (chunks == 1) return std::min(micro_batches, stages - stage - 1);
  return std::min(micro_batches * chunks, 2 * (stages - stage - 1) + (chunks - 1) * stages);
}

PipelineOrder::PipelineOrder(int stages, int chunks, int micro_batches, int stage)
    : chunks_(chunks),
      group_(chunks == 1 ? micro_batches : stages),
      passes_(micro_batches * chunks),
      warm_up_(warm_up_passes(stages, chunks, micro_batches, stage)) {}

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

PipelinePlay play_pipeline(const PipelineInput& input) {
  const auto all = std::size_t(input.stages * input.chunks);
  check(input.stages >= 1 && input.chunks >= 1 && input.micro_batches >= 1,
        "a pipeline has stages, chunks, micro-batches");
  check(input.chunks == 1 || input.micro_batches % input.stages == 0,
        "the interleaved schedule has whole groups of micro-batches", input.micro_batches,
        input.stages);
  check(input.forward_s.size() == all && input.backward_s.size() == all,
        "one time for every chunk of every stage");
  check(input.forward_transfer_s.size() == std::size_t(input.stages) &&
            input.backward_transfer_s.size() == std::size_t(input.stages),
        "one transfer for every boundary");
  check(input.parameters_ready_s.empty() || input.parameters_ready_s.size() == all,
        "parameters of every chunk, or of none");
  return Player(input).play();
}

}  // namespace trainyard::models
