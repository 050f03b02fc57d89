#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/network/completion_heap.hpp"
#include "models/network/max_min.hpp"

/// Flows in time: who has how much left and who finishes next, when all share links max-min fairly.
/// Pure mathematics with a clock of its own in seconds; the engine is not involved.
///
/// Between two events all rates are constant, so a flow's remaining bytes fall in a straight line
/// and are written down (settled) only when *its* rate changes. All changes of one instant are
/// solved once. A completion is the truth: at it, the remaining bytes are zero.
///
///     FlowTimeline line;
///     LinkIndex link = line.add_link(50e9);
///     VarIndex a = line.add(1e9, loads), b = line.add(2e9, loads);   // both over `link`
///     line.advance(*line.next_completion_s());                       // {a} at 0.04 s
///     line.advance(*line.next_completion_s());                       // {b} at 0.06 s
///
/// Two computed times that ought to be equal differ in the last bits. Flows that finish within
/// 1e-13 of their present leg (and four units in the last place of the clock) of the first count as
/// one instant.
namespace trainyard::models {

/// What a variable stands for; only the correction below asks.
enum class FlowKind : std::uint8_t { lone, collective };

class FlowTimeline {
 public:
  struct Options {
    /// Correction for lone flows beside throttled collectives, which use their share in bursts: a
    /// lone flow advances with x - phi · (x - F), F = min C/W over its links, if two or more of its
    /// links carry a collective that is held elsewhere. 0: pure max-min. Suggested 0.5
    /// (docs/models/fluid-network.md). Every solve then looks at all flows.
    double phi = 0;
    MaxMin::Tuning tuning = {};
    /// A flow that is added in the instant in which another over the very same loads ended takes
    /// its place and its index, at the same rate: no solve (the steps of a ring). Whoever switches
    /// it on must have dealt with all that advance() gave before adding.
    bool takes_places = false;
  };

  FlowTimeline() = default;
  explicit FlowTimeline(Options options) : options_(options), solver_(options.tuning) {}

  /// Room for so many at once, so that nothing is copied on the way there.
  void reserve(std::size_t links, std::size_t flows, std::size_t loads);
  LinkIndex add_link(double capacity_Bps) { return solver_.add_link(capacity_Bps); }

  /// All of these act at now_s().
  VarIndex add(double bytes, std::span<const Load> loads, double cap_Bps = MaxMin::unlimited,
               FlowKind kind = FlowKind::lone);
  /// Gives a running or just finished flow this much to move, on the same path; costs no solve.
  void restart(VarIndex flow, double bytes);
  void remove(VarIndex flow);
  void set_capacity(LinkIndex link, double capacity_Bps) {
    solver_.set_capacity(link, capacity_Bps);
  }

  double now_s() const { return now_s_; }
  /// None: nothing runs, or all that runs stands still.
  std::optional<double> next_completion_s();
  /// Moves the clock to `to_s` or to the next completion, whichever is first, and gives the flows
  /// that finish there (valid until the next advance). A finished flow that is not restarted at
  /// once is removed when time goes on.
  std::span<const VarIndex> advance(double to_s);

  double bytes_left(VarIndex flow);
  /// With the correction of Options::phi.
  double progress_Bps(VarIndex flow);
  std::size_t running() const { return running_; }
  const MaxMin& solver() const { return solver_; }
  /// Of flows and solver; docs/models/fluid-network.md has the sum.
  std::size_t memory_bytes() const;

 private:
  struct Flow {
    double bytes_left = 0;  // at settled_s
    double settled_s = 0;
  };
  struct State {
    FlowKind kind = FlowKind::lone;
    bool is_running = false;
    bool is_finished = false;  // keeps its variable until time goes on
  };

  void solve();
  std::optional<VarIndex> place_of_ended(std::span<const Load> loads, double cap_Bps,
                                         FlowKind kind);
  double progress_of(std::size_t index) const;
  double left_at(const Flow& flow, double progress_Bps) const;
  void aim(std::size_t index, double progress_Bps);
  void proceed(std::size_t index, double old_progress_Bps, double progress_Bps);
  void correct_lone_flows();

  Options options_;
  MaxMin solver_;
  double now_s_ = 0;
  std::size_t running_ = 0;
  std::vector<Flow> flows_;  // by variable
  std::vector<State> states_;
  CompletionHeap<double> completions_;
  std::vector<VarIndex> finished_;        // by the last advance
  bool has_leaving_ = false;              // some of them still have their variables
  std::size_t next_place_ = 0;            // of finished_, where the last place was found
  std::vector<double> corrected_Bps_;     // by variable, with Options::phi only
  std::vector<unsigned char> is_bursty_;  // links that carry a collective held elsewhere
};

}  // namespace trainyard::models
