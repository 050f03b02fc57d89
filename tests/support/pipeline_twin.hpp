#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "models/training/pipeline.hpp"

/// The slow, obvious twin of play_pipeline(): stages and links are resources, every end of an
/// operation and every delivery of a message is an event in time order. Orders are written out as
/// lists, as the papers draw them.
namespace trainyard::models::twin {

struct Result {
  double makespan_s = 0;
  std::vector<double> busy_s;
  std::vector<double> first_forward_s, first_forward_end_s;
  std::vector<double> last_backward_start_s, last_backward_s;
};

/// Sizes of the groups of micro-batches: none smaller than the stages, unless there is only one.
inline std::vector<int> written_groups(int p, int m, int group) {
  if (group == 0 && m <= p) group = m;
  for (int n = p; group == 0; ++n)
    if (m % n == 0 || m % n >= p) group = n;
  std::vector<int> sizes;
  for (int left = m; left > 0; left -= sizes.back()) sizes.push_back(std::min(group, left));
  return sizes;
}

/// 1F1B and interleaved.
inline std::vector<PipelineOp> alternating_order(int p, int v, int m, int stage, int group = 0) {
  std::vector<PipelineOp> forwards, backwards;
  const std::vector<int> sizes = v == 1 ? std::vector<int>{m} : written_groups(p, m, group);
  int first = 0;
  for (const int size : sizes) {
    for (int chunk = 0; chunk < v; ++chunk)
      for (int j = first; j < first + size; ++j) {
        forwards.push_back({false, chunk, j});
        backwards.push_back({true, v - 1 - chunk, j});
      }
    first += size;
  }
  std::size_t warm_up =
      v == 1 ? std::size_t(p - 1 - stage) : std::size_t(2 * (p - 1 - stage) + (v - 1) * sizes[0]);
  warm_up = std::min(warm_up, forwards.size());
  std::vector<PipelineOp> order(forwards.begin(), forwards.begin() + long(warm_up));
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (warm_up + i < forwards.size()) order.push_back(forwards[warm_up + i]);
    order.push_back(backwards[i]);
  }
  return order;
}

/// 1F1B, behind the backward of micro-batch j the weight gradient of micro-batch j - stage, what is
/// left at the end.
inline std::vector<PipelineOp> zero_bubble_order(int p, int m, int stage) {
  std::vector<PipelineOp> order;
  for (const PipelineOp& op : alternating_order(p, 1, m, stage)) {
    order.push_back(op);
    if (op.backward && op.micro_batch >= stage)
      order.push_back({true, 0, op.micro_batch - stage, true});
  }
  for (int j = std::max(0, m - stage); j < m; ++j) order.push_back({true, 0, j, true});
  return order;
}

inline std::vector<PipelineOp> gpipe_order(int m) {
  std::vector<PipelineOp> order;
  for (int j = 0; j < m; ++j) order.push_back({false, 0, j});
  for (int j = m; j-- > 0;) order.push_back({true, 0, j});
  return order;
}

inline std::vector<PipelineOp> written_order(const PipelineInput& in, int stage) {
  if (in.schedule == Schedule::gpipe) return gpipe_order(in.micro_batches);
  if (in.schedule == Schedule::zero_bubble)
    return zero_bubble_order(in.stages, in.micro_batches, stage);
  return alternating_order(in.stages, in.chunks, in.micro_batches, stage, in.group);
}

class Simulation {
 public:
  explicit Simulation(const PipelineInput& in) : in_(in), stages_(std::size_t(in.stages)) {
    for (int s = 0; s < in.stages; ++s) stages_[s].order = written_order(in, s);
    result_.busy_s.assign(stages_.size(), 0);
    result_.first_forward_s.assign(stages_.size() * std::size_t(in.chunks), -1);
    result_.first_forward_end_s = result_.last_backward_start_s = result_.last_backward_s =
        result_.first_forward_s;
  }

  Result run() {
    for (int j = 0; j < in_.micro_batches; ++j) inbox_.insert({false, 0, j, false});
    for (double ready : in_.parameters_ready_s) events_.push({ready, ++count_, Kind::look, 0, {}});
    start_all(0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      result_.makespan_s =
          event.kind == Kind::look ? result_.makespan_s : std::max(result_.makespan_s, event.time);
      if (event.kind == Kind::done) finish(event);
      if (event.kind == Kind::delivered) deliver(event);
      start_all(event.time);
    }
    return result_;
  }

 private:
  enum class Kind { done, delivered, look };
  struct Event {
    double time;
    long count;
    Kind kind;
    int stage;
    PipelineOp op;
    bool operator<(const Event& o) const {
      return std::tie(o.time, o.count) < std::tie(time, count);
    }
  };
  struct Stage {
    std::vector<PipelineOp> order;
    std::size_t at = 0;
    bool computing = false;
    int sending = 0;  // without overlap
  };
  struct Link {
    std::deque<std::tuple<int, PipelineOp>> queue;  // sender, what it did
    bool busy = false;
  };
  /// Backward, virtual stage, micro-batch, weight gradient: its input is there.
  using Key = std::tuple<bool, int, int, bool>;

  int last() const { return in_.stages * in_.chunks - 1; }
  bool splits() const { return in_.schedule == Schedule::zero_bubble; }
  double duration_of(const PipelineOp& op, std::size_t chunk) const {
    if (!op.backward) return in_.forward_s[chunk];
    if (op.weight_gradient) return in_.weight_gradient_s[chunk];
    return in_.backward_s[chunk] - (splits() ? in_.weight_gradient_s[chunk] : 0.0);
  }
  int virtual_stage(int stage, const PipelineOp& op) const { return op.chunk * in_.stages + stage; }

  void start_all(double now) {
    for (int s = 0; s < in_.stages; ++s) {
      Stage& stage = stages_[s];
      if (stage.computing || stage.sending > 0 || stage.at == stage.order.size()) continue;
      const PipelineOp op = stage.order[stage.at];
      if (!inbox_.count({op.backward, virtual_stage(s, op), op.micro_batch, op.weight_gradient}))
        continue;
      const auto chunk = std::size_t(s * in_.chunks + op.chunk);
      if (!op.backward && !in_.parameters_ready_s.empty() && now < in_.parameters_ready_s[chunk])
        continue;
      const double duration = duration_of(op, chunk);
      if (!op.backward && op.micro_batch == 0) {
        result_.first_forward_s[chunk] = now;
        result_.first_forward_end_s[chunk] = now + duration;
      }
      if (op.backward && (!splits() || op.weight_gradient)) {
        result_.last_backward_start_s[chunk] = now;
        result_.last_backward_s[chunk] = now + duration;
      }
      result_.busy_s[s] += duration;
      stage.computing = true;
      ++stage.at;
      events_.push({now + duration, ++count_, Kind::done, s, op});
    }
  }

  void finish(const Event& e) {
    stages_[e.stage].computing = false;
    const int here = virtual_stage(e.stage, e.op);
    if (e.op.weight_gradient) return;
    if (e.op.backward) inbox_.insert({true, here, e.op.micro_batch, true});
    if (!e.op.backward && here == last()) inbox_.insert({true, here, e.op.micro_batch, false});
    if (e.op.backward ? here == 0 : here == last()) return;
    const int to = (e.op.backward ? e.stage + in_.stages - 1 : e.stage + 1) % in_.stages;
    if (to == e.stage) return arrive(e.stage, e.op);
    if (!in_.overlap) ++stages_[e.stage].sending;
    Link& link = links_[{e.op.backward, e.op.backward ? to : e.stage}];
    link.queue.push_back({e.stage, e.op});
    transmit(e.op.backward, e.op.backward ? to : e.stage, e.time);
  }

  void transmit(bool backward, int boundary, double now) {
    Link& link = links_[{backward, boundary}];
    if (link.busy || link.queue.empty()) return;
    link.busy = true;
    const auto [sender, op] = link.queue.front();
    const auto b = std::size_t(boundary);
    const double transfer = backward ? in_.backward_transfer_s[b] : in_.forward_transfer_s[b];
    events_.push({now + transfer, ++count_, Kind::delivered, sender, op});
  }

  void deliver(const Event& e) {
    const int boundary = e.op.backward ? (e.stage + in_.stages - 1) % in_.stages : e.stage;
    Link& link = links_[{e.op.backward, boundary}];
    link.queue.pop_front();
    link.busy = false;
    if (!in_.overlap) --stages_[e.stage].sending;
    arrive(e.stage, e.op);
    transmit(e.op.backward, boundary, e.time);
  }

  void arrive(int sender, const PipelineOp& op) {
    inbox_.insert(
        {op.backward, virtual_stage(sender, op) + (op.backward ? -1 : 1), op.micro_batch, false});
  }

  const PipelineInput& in_;
  std::vector<Stage> stages_;
  std::map<std::pair<bool, int>, Link> links_;
  std::set<Key> inbox_;
  std::priority_queue<Event> events_;
  long count_ = 0;
  Result result_;
};

inline Result play(const PipelineInput& input) {
  return Simulation(input).run();
}

}  // namespace trainyard::models::twin
