#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <vector>

#include "models/network/flow_timeline.hpp"
#include "tests/bench/simgrid/workloads.hpp"

/// The same flows over the same routes in Trainyard, and in two plainer ways: Trainyard's own full
/// solve of the connected part at each event, and a bare full solve of everything.
namespace trainyard::bench {

/// All flows of a workload with their routes, one behind the other.
struct Case {
  std::vector<double> capacities_Bps;
  std::vector<Flow> flows;           // by start
  std::vector<std::uint32_t> route;  // of flow i: from first[i] to first[i + 1]
  std::vector<std::uint32_t> first;
};

inline void loads_of(const Case& c, std::size_t flow, std::vector<models::Load>& loads) {
  loads.clear();
  for (std::uint32_t r = c.first[flow]; r != c.first[flow + 1]; ++r)
    loads.push_back({models::LinkIndex(c.route[r]), 1.0});
}

/// At each event all that hangs together with it is solved in full.
constexpr models::FlowTimeline::Options never_incremental{
    .tuning = {.guard_factor = 0, .guard_base = 0}};

inline std::vector<double> run_trainyard(const Case& c,
                                         models::FlowTimeline::Options options = {}) {
  std::vector<double> finish(c.flows.size());
  models::FlowTimeline line(options);
  std::size_t together = 0;
  while (together < c.flows.size() && c.flows[together].start_s == c.flows[0].start_s) ++together;
  line.reserve(c.capacities_Bps.size(), together, c.first[together]);
  for (const double capacity : c.capacities_Bps) line.add_link(capacity);
  std::vector<std::size_t> flow_of(together);
  std::vector<models::Load> loads;
  for (std::size_t next = 0;;) {
    const auto completion_s = line.next_completion_s();
    if (!completion_s && next == c.flows.size()) return finish;
    const double start_s =
        next < c.flows.size() ? c.flows[next].start_s : std::numeric_limits<double>::infinity();
    for (const models::VarIndex var :
         line.advance(std::min(start_s, completion_s.value_or(start_s))))
      finish[flow_of[var.index()]] = line.now_s();
    for (; next < c.flows.size() && c.flows[next].start_s <= line.now_s(); ++next) {
      loads_of(c, next, loads);
      const models::VarIndex var = line.add(c.flows[next].bytes, loads);
      if (var.index() >= flow_of.size()) flow_of.resize(var.index() + 1);
      flow_of[var.index()] = next;
    }
  }
}

enum class RingForm { new_flows, restarted_flows, one_variable };

/// End of a ring of all hosts over `steps` steps, c.flows being those of one step.
inline double run_ring(const Case& c, std::size_t steps, RingForm form) {
  models::FlowTimeline line(models::FlowTimeline::Options{.takes_places = true});
  line.reserve(c.capacities_Bps.size(), c.flows.size(), c.route.size());
  for (const double capacity : c.capacities_Bps) line.add_link(capacity);
  std::vector<models::Load> loads;
  if (form == RingForm::one_variable) {
    for (const std::uint32_t link : c.route) loads.push_back({models::LinkIndex(link), 1.0});
    line.add(static_cast<double>(steps) * c.flows[0].bytes, loads);
    line.advance(*line.next_completion_s());
    return line.now_s();
  }
  std::vector<models::VarIndex> ended;
  for (std::size_t step = 0; step < steps; ++step) {
    if (step == 0 || form == RingForm::new_flows) {
      for (std::size_t i = 0; i < c.flows.size(); ++i) {
        loads_of(c, i, loads);
        line.add(c.flows[i].bytes, loads);
      }
    } else {
      for (const models::VarIndex var : ended) line.restart(var, c.flows[0].bytes);
    }
    ended.clear();
    while (ended.size() < c.flows.size())
      for (const models::VarIndex var : line.advance(*line.next_completion_s()))
        ended.push_back(var);
  }
  return line.now_s();
}

/// What a well written simulator without increments does: at each event all rates anew by
/// progressive filling over flat arrays, then a look at all flows for the next end.
class PlainResolve {
 public:
  explicit PlainResolve(const Case& c)
      : c_(c), count_(c.capacities_Bps.size()), left_(count_.size()), begin_(count_.size()) {}

  std::vector<double> run() {
    const std::size_t n = c_.flows.size();
    std::vector<double> finish(n), bytes(n);
    rate_.assign(n, 0.0);
    double now_s = 0;
    for (std::size_t next = 0; next < n || !running_.empty();) {
      double until_s = next < n ? c_.flows[next].start_s : std::numeric_limits<double>::infinity();
      for (const std::uint32_t f : running_)
        until_s = std::min(until_s, now_s + bytes[f] / rate_[f]);
      std::size_t kept = 0;
      for (const std::uint32_t f : running_) {
        // Ends that differ in rounding only are one event.
        if (now_s + bytes[f] / rate_[f] <= until_s + 1e-13 * (until_s - now_s)) {
          finish[f] = until_s;
        } else {
          bytes[f] -= rate_[f] * (until_s - now_s);
          running_[kept++] = f;
        }
      }
      running_.resize(kept);
      now_s = until_s;
      for (; next < n && c_.flows[next].start_s <= now_s; ++next) {
        bytes[next] = c_.flows[next].bytes;
        running_.push_back(static_cast<std::uint32_t>(next));
      }
      solve();
    }
    return finish;
  }

 private:
  void solve() {
    used_.clear();
    for (const std::uint32_t f : running_) {
      rate_[f] = -1;
      for (std::uint32_t r = c_.first[f]; r != c_.first[f + 1]; ++r)
        if (count_[c_.route[r]]++ == 0) used_.push_back(c_.route[r]);
    }
    std::uint32_t end = 0;
    Heap heap;
    for (const std::uint32_t l : used_) {
      begin_[l] = end;
      end += count_[l];
      left_[l] = c_.capacities_Bps[l];
      heap.push({left_[l] / count_[l], l});
      count_[l] = 0;
    }
    users_.resize(end);
    for (const std::uint32_t f : running_)
      for (std::uint32_t r = c_.first[f]; r != c_.first[f + 1]; ++r)
        users_[begin_[c_.route[r]] + count_[c_.route[r]]++] = f;
    rising_.assign(count_.begin(), count_.end());
    while (!heap.empty()) {
      const auto [key, l] = heap.top();
      heap.pop();
      if (rising_[l] == 0) continue;
      const double level = left_[l] / rising_[l];
      if (level > key * (1 + 1e-12)) {
        heap.push({level, l});
        continue;
      }
      for (std::uint32_t u = begin_[l]; u != begin_[l] + count_[l]; ++u) {
        const std::uint32_t f = users_[u];
        if (rate_[f] >= 0) continue;
        rate_[f] = level;
        for (std::uint32_t r = c_.first[f]; r != c_.first[f + 1]; ++r) {
          left_[c_.route[r]] -= level;
          --rising_[c_.route[r]];
        }
      }
    }
    for (const std::uint32_t l : used_) count_[l] = 0;
  }

  using Heap = std::priority_queue<std::pair<double, std::uint32_t>,
                                   std::vector<std::pair<double, std::uint32_t>>, std::greater<>>;
  const Case& c_;
  std::vector<std::uint32_t> count_, running_, used_, users_, rising_;
  std::vector<double> left_, rate_;
  std::vector<std::uint32_t> begin_;
};

}  // namespace trainyard::bench
