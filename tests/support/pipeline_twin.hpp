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
  std::vector<double> first_forward_s;
  std::vector<double> last_backward_s;
};

inline std::vector<PipelineOp> written_order(int p, int v, int m, int stage) {
  std::vector<PipelineOp> forwards, backwards;
  const int group = v == 1 ? m : p;
  for (int first = 0; first < m; first += group)
    for (int chunk = 0; chunk < v; ++chunk)
      for (int j = first; j < first + group; ++j) {
        forwards.push_back({false, chunk, j});
        backwards.push_back({true, v - 1 - chunk, j});
      }
  std::size_t warm_up =
      v == 1 ? std::size_t(p - 1 - stage) : std::size_t(2 * (p - 1 - stage) + (v - 1) * p);
  warm_up = std::min(warm_up, forwards.size());
  std::vector<PipelineOp> order(forwards.begin(), forwards.begin() + long(warm_up));
  for (std::size_t i = 0; i < backwards.size(); ++i) {
    if (warm_up + i < forwards.size()) order.push_back(forwards[warm_up + i]);
    order.push_back(backwards[i]);
  }
  return order;
}

class Simulation {
 public:
  explicit Simulation(const PipelineInput& in) : in_(in), stages_(std::size_t(in.stages)) {
    for (int s = 0; s < in.stages; ++s)
      stages_[s].order = written_order(in.stages, in.chunks, in.micro_batches, s);
    result_.busy_s.assign(stages_.size(), 0);
    result_.first_forward_s.assign(stages_.size() * std::size_t(in.chunks), -1);
    result_.last_backward_s = result_.first_forward_s;
  }

  Result run() {
    for (int j = 0; j < in_.micro_batches; ++j) inbox_.insert({false, 0, j});
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
  using Key = std::tuple<bool, int, int>;  // backward, virtual stage, micro-batch: input is there

  int last() const { return in_.stages * in_.chunks - 1; }
  int virtual_stage(int stage, const PipelineOp& op) const { return op.chunk * in_.stages + stage; }

  void start_all(double now) {
    for (int s = 0; s < in_.stages; ++s) {
      Stage& stage = stages_[s];
      if (stage.computing || stage.sending > 0 || stage.at == stage.order.size()) continue;
      const PipelineOp op = stage.order[stage.at];
      if (!inbox_.count({op.backward, virtual_stage(s, op), op.micro_batch})) continue;
      const auto chunk = std::size_t(s * in_.chunks + op.chunk);
      if (!op.backward && !in_.parameters_ready_s.empty() && now < in_.parameters_ready_s[chunk])
        continue;
      if (!op.backward && op.micro_batch == 0) result_.first_forward_s[chunk] = now;
      const double duration = op.backward ? in_.backward_s[chunk] : in_.forward_s[chunk];
      result_.busy_s[s] += duration;
      stage.computing = true;
      ++stage.at;
      events_.push({now + duration, ++count_, Kind::done, s, op});
    }
  }

  void finish(const Event& e) {
    stages_[e.stage].computing = false;
    const int here = virtual_stage(e.stage, e.op);
    if (e.op.backward)
      result_.last_backward_s[std::size_t(e.stage * in_.chunks + e.op.chunk)] = e.time;
    if (!e.op.backward && here == last()) inbox_.insert({true, here, e.op.micro_batch});
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
        {op.backward, virtual_stage(sender, op) + (op.backward ? -1 : 1), op.micro_batch});
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
