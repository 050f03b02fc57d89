#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/scheduling/servers.hpp"
#include "models/storage/store.hpp"
#include "models/training/checkpoints.hpp"
#include "models/training/job_spec.hpp"
#include "models/training/ledger.hpp"
#include "models/training/progress.hpp"
#include "models/training/step_source.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

/// The life of one training job, told by Job::life() in job.cpp:
///
///     queued -> starting -> [loading] -> training <-> saving -> done
///                  ^                        |  a crash or hang, or a slow member is found
///                  +-- [waiting] <- [replacing] <- detecting
///
/// When the fabric fails it stands still until routing has converged (rerouting), or, with no path
/// left, until the fabric is repaired (cut_off).
///
/// While it trains, progress is linear (progress.hpp), so an undisturbed stretch between two saves
/// is one event however many steps it has. What a failure costs: the steps since the last complete
/// checkpoint (lost_work), the time until somebody knows (detection), replacement, start-up and
/// load (restart), and the wait for servers.
///
///     Job job(engine, recorder, pool, &store, steps, {.name = "llm70b", .spec = spec,
///     .checkpoint_size = 980_GB}); engine.run_until(end); job.close(); job.stats().goodput; //
///     definitions: docs/models/ledger.md; the model: docs/models/job.md
namespace trainyard::models {

enum class JobState : std::uint8_t {
  queued,
  starting,
  loading,
  training,
  saving,
  detecting,
  replacing,
  waiting,
  rerouting,
  cut_off,
  done
};
std::string_view name_of(JobState state);

struct JobSetup {
  std::string name;
  std::size_t number = 0;  // order among the jobs of a run; each has its own
  JobSpec spec;
  Bytes checkpoint_size;    // checkpoint_size(spec.checkpoint, parameters)
  Duration convergence{};   // of routing, after a failure in the fabric
  bool every_step = false;  // one engine event a step, each asking for its profile: the slow twin
};

/// A stretch of the job's life in one state under one profile.
struct SegmentRow {
  Time start, end;
  JobState state = JobState::queued;
  std::uint32_t profile = 0;  // of Job::profiles(), when training
  std::int64_t steps = 0;     // completed in it, whatever became of them later
  std::int64_t servers = 0;   // held at its end
};

/// A failure that struck servers of the job.
struct InterruptionRow {
  Time when;
  const FailureClass* cls = nullptr;
  topologies::HostId server;  // the first of `servers`
  std::int64_t servers = 1;
  std::optional<Time> found;    // somebody knows
  std::optional<Time> resumed;  // training goes on without it
  std::int64_t lost_steps = 0;  // made void by it
  Duration lost_time{};         // time of the job spent in them, and in the step under way
  sim::EventIndex event;
};

struct JobStats {
  std::string state;     // "running", "done", "waiting: ...", "stalled: ..."
  Duration queued{};     // submission to first start
  Duration wall{};       // first start to end
  Duration step_time{};  // spent in steps that were kept
  Duration lost_time{};  // spent in steps that were not
  std::int64_t steps_kept = 0;
  double step_s = 0;                                       // mean of the complete kept steps
  double tokens = 0, model_flops = 0, hardware_flops = 0;  // of complete kept steps
  double goodput = 0;                                      // step_time / wall
  double ettr = 0;                                         // step_time / (queued + wall)
  std::int64_t interruptions = 0;
  double mtbi_s = 0;  // wall / interruptions; 0 if none
  std::map<std::string, std::int64_t> interruptions_by_class;
  std::int64_t checkpoints = 0;  // complete
  std::int64_t saves_lost = 0;   // interrupted
  std::int64_t saves_late = 0;   // waited for the one before them: saves pile up
  std::int64_t reroutes = 0;     // times that traffic of the job moved to other paths
  std::int64_t cuts = 0;         // times that it had no path
  std::string last_cut;          // who had none the last time, and which failed links cut it
};

class Job final : public ServerHolder, public FabricUser {
 public:
  /// `store` may be null if the job never saves.
  Job(sim::Engine& engine, sim::Recorder& recorder, ServerPool& pool, SharedStore* store,
      StepSource& steps, JobSetup setup);
  ~Job() override;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::size_t number() const override { return setup_.number; }
  void on_strike(const Strike& strike) override;
  void on_granted(topologies::HostId server, topologies::HostId instead_of) override;
  void on_links_changed(const LinksChanged& change) override;

  /// What a step depends on changed (a link, a clock, other traffic): ask for the profile again.
  void refresh_profile();
  /// The end of the run, now: all processes stop, work under way counts as kept, tables and ledger
  /// are complete.
  void close();

  const JobSetup& setup() const { return setup_; }
  JobState state() const { return state_; }
  std::int64_t servers_needed() const { return servers_needed_; }
  std::int64_t servers_held() const { return held_; }
  const std::vector<topologies::HostId>& servers() const { return placement_.servers; }
  Placement placement() const;
  const Progress& progress() const { return progress_; }

  /// Of all time this job held GPUs; with the kept work only after close().
  const Ledger& ledger() const { return ledger_; }
  JobStats stats() const;
  const std::vector<SegmentRow>& segments() const { return segments_; }
  const std::vector<CheckpointRow>& checkpoints() const { return checkpoints_; }
  const std::vector<InterruptionRow>& interruptions() const { return interruptions_; }
  /// In the order of their first use.
  const std::vector<const StepProfile*>& profiles() const { return profiles_; }
  /// The one in use, or used last; null before the first step.
  const StepProfile* current_profile() const {
    return profiles_.empty() ? nullptr : profiles_[profile_];
  }

 private:
  /// A rank without a server.
  struct Vacancy {
    topologies::HostId left;
    std::size_t rank;
  };
  /// A failure that still acts on the job.
  struct Fault {
    std::size_t row;  // of interruptions_
    std::uint32_t unit;
    Time found_at;
    std::vector<topologies::HostId> servers;
    const FailureClassSpec* spec;
  };

  // The story.
  sim::Process life();
  sim::Process gang();
  sim::Process run();
  sim::Process train_until_due();
  sim::Process save();
  sim::Process drain();
  sim::Process detection();
  sim::Process replacement();
  void finish();

  // Its parts.
  void enter(JobState state);
  void settle();
  void open_segment();
  void close_segment();
  bool use_profile();
  void stand_cut_off(const StepProfile& profile);
  std::int64_t steps_to_go() const;
  bool is_done() const;
  bool must_stop() const;
  bool somebody_leaves() const;
  Time earliest_found() const;
  void lose_work();
  void let_go_of_struck();
  void complete_save();
  void note_resumed();
  bool can_start() const;
  std::string state_text() const;
  /// Into the log, as the consequence of what was reported before; the next one is the consequence
  /// of this.
  void report(sim::KindId kind, sim::Phase phase, double value = 0);
  /// Into the log, beside the chain of consequences.
  void note(sim::KindId kind, double value);

  sim::Engine& engine_;
  ServerPool& pool_;
  SharedStore* store_;
  StepSource& steps_;
  sim::Recorder& recorder_;
  JobSetup setup_;
  std::int64_t servers_needed_;
  std::int64_t gpus_per_server_;
  Duration stall_;

  JobState state_ = JobState::queued;
  Time since_;           // what came before is in the ledger
  Placement placement_;  // by rank; an invalid server is missing
  std::vector<Vacancy> vacancies_;
  std::int64_t held_ = 0;
  Progress progress_;
  Ledger ledger_;
  bool is_profile_stale_ = true;
  std::uint32_t profile_ = 0;  // of profiles_
  std::vector<const StepProfile*> profiles_;
  std::vector<Fault> faults_;
  std::vector<std::size_t>
      unresumed_;  // interruptions that are dealt with, but training does not go on yet
  bool is_draining_ = false;
  Time converged_at_{};     // traffic stands still until then
  std::string cut_off_by_;  // while there is no path
  std::string last_cut_;
  bool is_cut_for_good_ = false;
  std::int64_t reroutes_ = 0;
  std::int64_t cuts_ = 0;
  std::optional<Time> first_start_;
  std::optional<Time> ended_;
  Duration lost_time_{};
  Duration kept_in_steps_{};  // step_time without the step under way at the end

  std::vector<SegmentRow> segments_;
  std::int64_t steps_at_segment_start_ = 0;
  std::vector<CheckpointRow> checkpoints_;
  std::vector<InterruptionRow> interruptions_;

  sim::Signal stopped_;     // life(): something is broken, or was found
  sim::Signal pace_;        // train_until_due(): plan again
  sim::Signal complete_;    // all servers are there
  sim::Timer found_timer_;  // a slow member is found
  sim::ProcessHandle life_, run_, drain_;

  sim::SubjectId subject_;
  sim::EventIndex cause_;  // of what happens next
  sim::KindId placed_, interrupted_, found_, let_go_, starting_, resumed_, save_began_,
      save_complete_, save_lost_, done_, reroute_, cut_;
};

}  // namespace trainyard::models
