#include "models/network/collectives/play.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <sstream>
#include <utility>

#include "models/network/collectives/hierarchical.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

std::vector<double> capacities_of(const FlowTimeline& line) {
  std::vector<double> capacities(line.solver().links());
  for (std::size_t l = 0; l < capacities.size(); ++l)
    capacities[l] = line.solver().capacity(LinkIndex(l));
  return capacities;
}

/// One phase of one collective: which bucket it works on.
struct Station {
  CollectivePlan plan;  // of one bucket
  int arrived = 0;      // buckets that have left the station before
  int done = 0;         // buckets that have left this one
  bool is_busy = false;
  std::size_t running = 0;   // streams
  double start_s = 0;        // of the present bucket
  double end_s = 0;          // of its streams
  double stretched_s = 0;    // the longest stream of the present bucket at its fair share
  double latest_free_s = 0;  // when the last bucket left, at fair shares
  std::vector<double> latest_arrival_s;  // of each bucket
};

struct Wake {
  double when_s;
  std::size_t order;  // of equal times the first scheduled
  std::size_t job;
  std::optional<std::size_t> leaving;  // the station; none: the start of the job
  bool operator>(const Wake& other) const {
    return std::pair(when_s, order) > std::pair(other.when_s, other.order);
  }
};

class Player {
 public:
  Player(FlowTimeline& line, std::span<const TimedCollective> collectives,
         const PlayOptions& options)
      : line_(line), options_(options), capacities_(capacities_of(line)) {
    for (const TimedCollective& timed : collectives) add(timed);
  }

  std::vector<PlayedCollective> play() {
    while (unfinished_ > 0) {
      const double next_s = wakes_.empty() ? never : wakes_.top().when_s;
      const std::optional<double> flow_s = line_.next_completion_s();
      if (next_s == never && !flow_s) break;  // what is left stands still
      const double to_s = std::min(next_s, flow_s.value_or(never));
      note_surplus(to_s);
      for (const VarIndex var : line_.advance(to_s)) finish_stream(var);
      while (!wakes_.empty() && wakes_.top().when_s <= line_.now_s()) {
        const Wake wake = wakes_.top();
        wakes_.pop();
        wake.leaving ? leave(wake.job, *wake.leaving) : enter(wake.job, 0);
      }
    }
    for (std::size_t v = 0; v < streams_.size(); ++v)
      if (streams_[v].is_ours) line_.remove(VarIndex(v));
    return std::move(played_);
  }

 private:
  struct Running {
    bool is_ours = false;
    std::size_t job = 0, station = 0;
    double stretched_s = 0;  // time so far, had it moved at its fair share
  };

  void add(const TimedCollective& timed) {
    const PhasedPlan& plan = *timed.plan;
    PlayedCollective& out = played_.emplace_back();
    out.notes = plan.notes;
    out.start_s = line_.now_s();
    if (!timed.ready_s.empty()) {
      const auto [first, last] = std::minmax_element(timed.ready_s.begin(), timed.ready_s.end());
      out.start_s = options_.last_ready ? *last : *first;
      if (options_.last_ready && *first < *last)
        out.notes.push_back("last-ready: starts when the last member is ready");
    }
    check(out.start_s >= line_.now_s(), "a collective starts now or later", out.start_s);
    std::vector<Station>& stations = stations_.emplace_back();
    // Mixed forms have no messages to follow: the one variable, longer by what the mix adds alone.
    double stretch = 1;
    if (plan.batches_share > 0) {
      PhasedPlan one = plan;
      one.batches_share = 0;
      const double one_s = time_alone_s(one, capacities_);
      if (one_s > 0 && one_s < never) stretch = time_alone_s(plan, capacities_) / one_s;
    }
    for (const CollectivePhase& phase : plan.phases) {
      Station& station = stations.emplace_back();
      station.plan = scaled(phase.plan, stretch / plan.buckets);
      out.phases.push_back({phase.name, never, never});
    }
    plans_.push_back(&plan);
    out.finish_s = out.latest_finish_s = plan.phases.empty() ? out.start_s : never;
    if (plan.phases.empty()) return;
    ++unfinished_;
    stations.front().arrived = plan.buckets;
    stations.front().latest_arrival_s.assign(static_cast<std::size_t>(plan.buckets), out.start_s);
    wakes_.push({out.start_s, order_++, played_.size() - 1, std::nullopt});
  }

  /// The station takes its next bucket, if it is free and one is there.
  void enter(std::size_t job, std::size_t number) {
    Station& s = stations_[job][number];
    if (s.is_busy || s.done == s.arrived) return;
    s.is_busy = true;
    s.start_s = s.end_s = line_.now_s();
    s.stretched_s = 0;
    PlayedPhase& phase = played_[job].phases[number];
    phase.start_s = std::min(phase.start_s, s.start_s);
    const FlowKind kind =
        s.plan.kind == CollectiveKind::point_to_point ? FlowKind::lone : FlowKind::collective;
    for (const Stream& stream : s.plan.streams) {
      if (stream.bytes_per_flow == 0 || stream.loads.empty()) continue;  // nothing that could wait
      const VarIndex var = line_.add(stream.bytes_per_flow, stream.loads, MaxMin::unlimited, kind);
      if (var.index() >= streams_.size()) streams_.resize(var.index() + 1);
      streams_[var.index()] = {true, job, number, 0};
      ++s.running;
    }
    if (s.running == 0) streams_end(job, number);
  }

  void finish_stream(VarIndex var) {
    if (var.index() >= streams_.size() || !streams_[var.index()].is_ours) return;
    const Running stream = std::exchange(streams_[var.index()], {});
    Station& s = stations_[stream.job][stream.station];
    s.end_s = line_.now_s();
    s.stretched_s = std::max(s.stretched_s, stream.stretched_s);
    if (--s.running == 0) streams_end(stream.job, stream.station);
  }

  void streams_end(std::size_t job, std::size_t number) {
    Station& s = stations_[job][number];
    const double fluid_s = s.end_s - s.start_s;
    const double bytes = s.plan.streams.empty() ? 0.0 : s.plan.streams.front().bytes_per_flow;
    const double rate_Bps = fluid_s > 0 ? bytes / fluid_s : never;
    const double exposed_s = exposed_latency_s(s.plan.latency, bytes, rate_Bps);
    s.stretched_s = std::max(s.stretched_s, fluid_s) + exposed_s;
    wakes_.push({line_.now_s() + exposed_s, order_++, job, number});
  }

  /// A bucket leaves: the next may enter, here and in the station behind.
  void leave(std::size_t job, std::size_t number) {
    std::vector<Station>& stations = stations_[job];
    Station& s = stations[number];
    s.latest_free_s =
        std::max(s.latest_free_s, s.latest_arrival_s[static_cast<std::size_t>(s.done)]) +
        s.stretched_s;
    s.is_busy = false;
    ++s.done;
    played_[job].phases[number].finish_s = line_.now_s();
    if (number + 1 < stations.size()) {
      Station& next = stations[number + 1];
      ++next.arrived;
      next.latest_arrival_s.push_back(s.latest_free_s);
      enter(job, number + 1);
    } else if (s.done == plans_[job]->buckets) {
      end(job, s.latest_free_s);
    }
    enter(job, number);
  }

  void end(std::size_t job, double latest_s) {
    PlayedCollective& out = played_[job];
    out.finish_s = line_.now_s();
    out.latest_finish_s = out.finish_s;
    --unfinished_;
    if (options_.surplus_range && latest_s > out.finish_s * (1 + 1e-9)) {
      out.latest_finish_s = latest_s;
      std::ostringstream text;
      text << "surplus-range: " << out.finish_s - out.start_s << " s if it can use all that others"
           << " leave, " << latest_s - out.start_s << " s at its fair share";
      out.notes.push_back(text.str());
    }
    const double took_s = out.finish_s - out.start_s, least_s = bound_s(*plans_[job], capacities_);
    // The clock of the timeline has units of its own near large times.
    check(took_s >= least_s * (1 - 1e-9) - 1e-15 * out.finish_s,
          "no collective is faster than its bound", took_s, least_s);
  }

  /// What each of our streams would have needed until `to_s` at its fair share.
  void note_surplus(double to_s) {
    if (!options_.surplus_range) return;
    const double step_s = to_s - line_.now_s();
    for (std::size_t v = 0; v < streams_.size() && step_s > 0; ++v) {
      if (!streams_[v].is_ours) continue;
      double share_Bps = never;
      line_.solver().for_each_load(VarIndex(v), [&](const Load& load) {
        share_Bps = std::min(share_Bps,
                             line_.solver().capacity(load.link) / line_.solver().weight(load.link));
      });
      const double rate_Bps = line_.progress_Bps(VarIndex(v));
      streams_[v].stretched_s +=
          step_s * (share_Bps > 0 ? std::max(1.0, rate_Bps / share_Bps) : 1.0);
    }
  }

  FlowTimeline& line_;
  PlayOptions options_;
  std::vector<double> capacities_;
  std::vector<PlayedCollective> played_;
  std::vector<const PhasedPlan*> plans_;
  std::vector<std::vector<Station>> stations_;  // by job
  std::vector<Running> streams_;                // by variable
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  std::size_t order_ = 0;
  std::size_t unfinished_ = 0;
};

}  // namespace

std::vector<PlayedCollective> play_collectives(FlowTimeline& line,
                                               std::span<const TimedCollective> collectives,
                                               const PlayOptions& options) {
  return Player(line, collectives, options).play();
}

}  // namespace trainyard::models
