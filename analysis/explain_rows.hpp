#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/breakdown.hpp"
#include "analysis/run_reader.hpp"

/// The tables of one job as plain rows, as explain.hpp needs them: checked, with what a file lacks
/// filled in and named in `missing`. Times are nanoseconds of the run, -1 "never" or "unknown".
///
///     const JobRows job = read_job(run, "llama");
///     for (const JobRows::Interruption& i : job.interruptions) … i.lost_s …
///     for (const std::string& what : job.missing) std::cerr << what << '\n';
///
/// Phases of a recovery (detection, diagnosis, replacement, waiting, start-up, loading) come from
/// the columns of `interruptions`. A row without them gets them from the segments: a segment in
/// which the job did not train belongs to the latest interruption that had struck when it began and
/// was not over.
namespace trainyard::analysis {

struct JobRows {
  struct Segment {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::string state;
    std::int64_t profile = 0;
    std::int64_t steps = 0;
    std::int64_t servers = 0;
    double length_s() const { return static_cast<double>(end_ns - start_ns) / 1e9; }
    bool is_training() const { return state == "training"; }
  };
  struct Profile {
    double step_s = 0;
    double data_stall_s = 0;
    double tokens = 0;
    std::vector<double> parts_s;  // as JobRows::parts
  };
  struct Save {
    std::int64_t start_ns = 0;
    std::int64_t stall_end_ns = -1;
    std::int64_t complete_ns = -1;
    std::int64_t step = 0;
    double bytes = 0;
    bool is_lost = false;
    bool was_late = false;
    bool is_emergency = false;
    std::string level;  // "" if the file does not say
    std::string kind;
    std::string why_lost;
  };
  /// What happened to the job between the failure and the next step, in seconds.
  struct Phases {
    double detection_s = 0;
    double diagnosis_s = 0;
    double replace_s = 0;
    double waiting_s = 0;
    double start_up_s = 0;
    double load_s = 0;
    double disconnected_s = 0;  // rerouting, cut off; from segments alone
    double restart_s() const { return diagnosis_s + replace_s + start_up_s + load_s; }
    double total_s() const { return detection_s + waiting_s + restart_s() + disconnected_s; }
  };
  struct Interruption {
    std::int64_t time_ns = 0;
    std::string cls;
    std::string server;
    std::string unit;    // what failed; the server if the file does not say
    std::string effect;  // "" if the file does not say
    std::int64_t servers = 0;
    std::int64_t found_ns = -1;
    std::int64_t resumed_ns = -1;
    std::int64_t lost_steps = 0;
    double lost_s = 0;
    std::int64_t event = -1;
    std::string restored_level;
    std::int64_t restored_step = -1;
    Phases phases;
    /// While it ran slow without anybody knowing: set by explain().
    double slow_s = 0;
    double cost_s() const { return phases.total_s() + lost_s + slow_s; }
    bool is_over_at(std::int64_t ns) const { return resumed_ns >= 0 && resumed_ns <= ns; }
  };
  struct DataWait {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    double share = 0;
    std::string limit;
  };

  std::string name;
  std::int64_t gpus = 0;
  std::optional<Breakdown> ledger;
  std::vector<Segment> segments;   // in order, not overlapping
  std::vector<std::string> parts;  // of a step
  std::vector<Profile> profiles;
  std::vector<Save> saves;
  std::vector<Interruption> interruptions;  // in order of time
  std::optional<std::vector<DataWait>> data_waits;
  bool has_levels = false;    // of saves
  bool has_restored = false;  // levels from which interruptions recovered
  std::vector<std::string> missing;
};

struct StoreUse {
  std::string store;
  std::string user;
  bool is_write = false;
  bool is_neighbour = false;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  double bytes = 0;
};

struct RepairRow {
  std::string server;
  std::int64_t down_ns = 0;
  std::int64_t back_ns = -1;
  std::int64_t waited_ns = 0;  // for a crew
};

/// Names as people wrote them ("a/b", stored as "a%2Fb"), in the order of the file.
std::vector<std::string> job_names(const RunReader& run);

/// Throws RunFileError if a table does not add up.
JobRows read_job(const RunReader& run, const std::string& name);
std::vector<StoreUse> read_store_uses(const RunReader& run);
std::vector<RepairRow> read_repairs(const RunReader& run);

}  // namespace trainyard::analysis
