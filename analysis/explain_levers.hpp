#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/explain_rows.hpp"

/// What would help a job, to first order: its own interruptions are replayed with one thing changed
/// and everything else as it was. Each lever stands for itself; two of them do not add up.
///
/// A lever takes L seconds out of a wall time of W, of which K are kept steps. The same steps are
/// then done in W - L, so goodput rises by
///
///     K / (W - L) - K / W  =  K L / (W (W - L))
///
/// which is never more than L / W, the share that the time had: L is at most what was measured.
/// For steps that get faster, goodput says nothing; there the gain is L / W of the job's time.
///
/// **Save interval.** In a run with the interval T, saves stalled training for S seconds in all and
/// failures destroyed V seconds of work that an earlier save would have kept. With the interval
/// r T, stalls are S / r and the loss is r V: every failure strikes at the same fraction of its
/// interval. The sum is least at r = sqrt(S / V), where both are sqrt(S V):
///
///     L = S + V - 2 sqrt(S V) = (sqrt(S) - sqrt(V))^2
///
/// With S = training C / T and V = n T / 2 this is Young's interval sqrt(2 C M), M = training / n.
/// Work done while a save drains is lost at any interval and is not part of V. An interval is not
/// shorter than a save takes, nor longer than the training time. (J. W. Young, CACM 17(9), 1974; J.
/// T. Daly, FGCS 22(3), 2006.)
///
/// **Repeat offenders.** Servers are taken out after their second interruption: what the third and
/// later ones cost is saved. By chance alone, n interruptions over N equal servers leave
/// N (1 - exp(-l) (1 + l + l^2 / 2)) servers with three or more, l = n / N: said beside it.
///
/// **Crews.** A wait for servers that ended when a repaired server came back would have been
/// shorter by the time which that repair waited for a crew, at most by the whole wait.
namespace trainyard::analysis {

/// Saves of one level.
struct SaveCost {
  std::string level;
  std::string kind;
  std::int64_t count = 0;
  std::int64_t emergency = 0;  // of count
  std::int64_t complete = 0;
  std::int64_t late = 0;
  std::int64_t lost = 0;
  std::vector<std::pair<std::string, std::int64_t>> why_lost;  // by name
  double stall_s = 0;                                          // training stood still, all of them
  double scheduled_stall_s = 0;                                // without emergency saves
  double interval_s = 0;                                       // training time between saves
  double save_s = 0;                                           // mean from start to complete
  double drain_s = 0;                                          // mean of the part behind training
  double best_interval_s = 0;                                  // to first order; 0: cannot be told
};

struct Lever {
  std::string what;
  std::string assumption;
  double saved_s = 0;  // of the job's time
  double gpu_s = 0;
  double points = 0;      // percentage points: of goodput, or of the job's time
  bool in_steps = false;  // steps get faster: goodput does not see it
};

/// What levers() needs beside the rows.
struct LeverInput {
  const JobRows* job = nullptr;
  double wall_s = 0;
  double kept_s = 0;
  double training_s = 0;
  /// What an account holds, in seconds of the job: caps.
  double saves_s = 0, detection_s = 0, restarts_s = 0, waiting_s = 0, lost_s = 0,
         disconnected_s = 0;
  std::vector<SaveCost> saves;
  double slow_members_s = 0;  // slower steps that were traced to an interruption
  double other_slow_s = 0;
  std::vector<std::pair<std::string, double>> data_waits;  // limit, seconds; most first
  std::string worst_class;
  double worst_class_s = 0;  // without slower steps
  std::vector<RepairRow> repairs;
};

/// Largest first; without those that would gain nothing. Sentences about what cannot be said go to
/// `notes`.
std::vector<Lever> levers(const LeverInput& input, std::vector<std::string>& notes);

/// Of one level of saves.
struct BestInterval {
  double interval_s = 0;
  double gain_s = 0;        // of the job's time, against the interval of the run
  double stalls_s = 0;      // S
  double lost_s = 0;        // V
  std::int64_t count = 0;   // interruptions that V is from
  bool is_bounded = false;  // by the time that a save takes
};
/// Nothing if there were no saves, or no interruption lost work that a save could have kept.
std::optional<BestInterval> best_interval(const LeverInput& input, const SaveCost& level);

/// The least of S / r + r V for r in [low, high]: where it is.
double best_stretch(double stall_s, double lost_s, double low, double high);

/// Servers out of `servers` that have three or more of `events` by chance.
double chance_of_three(double events, double servers);

}  // namespace trainyard::analysis
