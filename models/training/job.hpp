#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/scheduling/fabric_faults.hpp"
#include "models/scheduling/servers.hpp"
#include "models/storage/data_feed.hpp"
#include "models/training/fabric_neighbours.hpp"
#include "models/training/job_records.hpp"
#include "models/training/job_spec.hpp"
#include "models/training/ledger.hpp"
#include "models/training/progress.hpp"
#include "models/training/saves.hpp"
#include "models/training/step_source.hpp"
#include "sim/engine.hpp"
#include "sim/random.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"

/// The life of one training job, told by Job::life() in job.cpp:
///
///     queued -> starting -> [loading] -> training <-> saving -> done
///                  ^                        |  a crash or hang, or what was wrong is found
///                  +-- [waiting] <- [replacing] <- [diagnosing] <- detecting
///
/// When the fabric fails it stands still until routing has converged (rerouting), or, with no path
/// left, until the fabric is repaired or its watchdog gives up (cut_off). A server that must leave
/// in peace (maintenance, preemption) leaves after the step under way and a save; so does a job
/// that grows back. An elastic job that misses servers goes on with fewer replicas.
///
/// While it trains, progress is linear (progress.hpp), so an undisturbed stretch between two saves
/// is one event however many steps it has. What a failure costs: the steps since the newest copy
/// that survives it (lost_work), the time until somebody knows (detection), diagnosis, replacement,
/// start-up and load (restart), and the wait for servers.
///
///     Job job(engine, recorder, pool, {{"pfs", {&store}}}, steps, {.name = "llm70b", .spec = spec,
///     .checkpoint_size = 980_GB}); engine.run_until(end); job.close(); job.stats().goodput; //
///     definitions: docs/models/ledger.md; the model: docs/models/job.md
namespace trainyard::models {

struct JobSetup {
  std::string name;
  std::size_t number = 0;  // order among the jobs of a run; each has its own
  JobSpec spec;
  Bytes checkpoint_size;    // checkpoint_size(spec.checkpoint, parameters)
  Duration convergence{};   // of routing, after a failure in the fabric
  bool every_step = false;  // one engine event a step, each asking for its profile: the slow twin
};

class Job final : public ServerHolder,
                  public FabricUser,
                  public FabricNeighbours::Member,
                  private Saves::Client {
 public:
  /// `feed` may be null: batches are always there.
  Job(sim::Engine& engine, sim::Recorder& recorder, ServerPool& pool, const StoreShelf& stores,
      StepSource& steps, JobSetup setup, std::unique_ptr<DataFeed> feed = nullptr,
      StoreAccess data_store = {});
  ~Job() override;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  std::size_t number() const override { return setup_.number; }
  int priority() const override { return setup_.spec.priority; }
  bool is_preemptible() const override { return setup_.spec.preemptible; }
  void on_strike(const Strike& strike) override;
  void on_warning(const Failure& failure, std::span<const topologies::HostId> servers,
                  Time strikes_at) override;
  void on_preempted(topologies::HostId server) override;
  void on_granted(topologies::HostId server, topologies::HostId instead_of) override;
  void on_links_changed(const LinksChanged& change) override;

  /// Other jobs on the same fabric: saves, loads and batches meet their collectives too. Before the
  /// run; `neighbours` must outlive the job.
  void share_fabric(FabricNeighbours& neighbours);
  void on_neighbours_changed() override;
  StepOnLinks step_on_links() override;

  /// From now on the GPUs of these servers run at this part of their speed, all others at full.
  /// `cause` made it so.
  void set_speeds(std::map<topologies::HostId, double> speeds, sim::EventIndex cause);
  /// Between two steps it stops and stands, or goes on: an order of the power plant. Its time goes
  /// to the account down_fed.
  void suspend(bool is_suspended, sim::EventIndex cause);
  /// What a step depends on changed (a link, a clock, other traffic): ask for the profile again.
  void refresh_profile();
  /// The end of the run, now: all processes stop, work under way counts as kept, tables and ledger
  /// are complete.
  void close();

  const JobSetup& setup() const { return setup_; }
  JobState state() const { return state_; }
  std::int64_t servers_needed() const { return servers_needed_; }
  std::int64_t servers_held() const { return held_; }
  /// Fewer than it holds while it is shrunk, or waits.
  std::int64_t servers_training() const { return std::min(active_, held_); }
  const std::vector<topologies::HostId>& servers() const { return placement_.servers; }
  /// Of the servers that train: those of whole replicas, if the job is shrunk.
  Placement placement() const override;
  const Progress& progress() const { return progress_; }

  /// Of all time this job held GPUs; with the kept work only after close().
  const Ledger& ledger() const { return ledger_; }
  JobStats stats() const;
  const std::vector<SegmentRow>& segments() const { return segments_; }
  const std::vector<CheckpointRow>& checkpoints() const { return saves_.rows(); }
  const std::vector<InterruptionRow>& interruptions() const { return interruptions_; }
  const std::vector<DataWaitRow>& data_waits() const { return data_waits_; }
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
  /// Something that still acts on the job.
  struct Fault {
    std::size_t row = 0;  // of interruptions_
    std::uint32_t unit = 0;
    Time found_at{};
    std::vector<topologies::HostId> servers;
    Effect effect = Effect::crash;
    Component component = Component::server;
    double speed = 1.0;
    bool replaces = true;
    bool loses_power = false;
    Duration detection{};
    Time corrupt_since{};
    bool is_missed =
        false;  // the diagnosis did not find it: it strikes again when training goes on
    bool is_peaceful() const { return effect == Effect::maintenance; }
    bool stops_at_once() const { return effect == Effect::crash || effect == Effect::hang; }
  };
  enum class Why { done, leaves, regrows };

  // The story: job.cpp.
  sim::Process life();
  sim::Process gang();
  sim::Process run();
  void begin_training();
  sim::Process train_until_due();
  sim::Process stand_until_back();
  sim::Process detection();
  sim::Process diagnosis();
  sim::Process replacement();
  sim::Process wait_for_servers();
  sim::Process watch_feed();
  void finish();

  // What happens to it: job_events.cpp.
  std::int64_t active_servers() const override { return active_; }
  void bring_up_to_date() override { settle(); }
  void on_save_complete() override { pace_.notify_all(); }
  void on_flows_changed() override { refresh_profile(); }
  void on_bad_save(Time taken) override;
  bool has_neighbours() const override { return neighbours_ && neighbours_->has_others(); }
  void on_transfers_changed(std::vector<StoreFlow> transfers) override;
  void look_at_neighbours() const override;
  void step_is_another();
  bool is_plugged() const override { return !is_blocked_; }
  sim::Signal& paths_changed() override { return paths_changed_; }
  bool is_corrupt(Time taken) const override;
  void add_fault(const Strike& strike);
  void add_leave(topologies::HostId server, const std::string& why, Effect effect);
  void give_up_cut_off_servers();
  void arm_found_timer();
  bool must_stop() const;
  bool must_leave() const;
  bool wants_to_regrow() const;
  bool is_on_fabric() const;
  bool somebody_leaves() const;
  Time earliest_found() const;
  void stop_work();
  void restore();
  bool stays_unseen(const Fault& fault) const;
  void let_go_of_struck();
  void let_go_of_idle();
  bool let_go(topologies::HostId server);
  void lose_copies_of(topologies::HostId server, bool only_memory);
  void note_resumed();
  std::vector<std::uint32_t> parents_of_ranks(Component component) const;

  // Its parts: job_parts.cpp.
  void enter(JobState state);
  void settle();
  void open_segment();
  void close_segment();
  bool use_profile();
  void note_throttle(const StepProfile& profile);
  bool is_unplugged() const;
  void note_link_changes(const LinksChanged& change);
  void tell_link_changes();
  void stand_cut_off();
  const StepProfile& with_data_wait(const StepProfile& profile);
  void note_data_wait(double share = 0);
  std::int64_t steps_to_go() const;
  bool is_done() const;
  bool can_start() const;
  Duration start_up() const;
  /// Sets how many servers train: all, or those of the replicas that are whole.
  void take_size(std::int64_t replicas_now);
  std::int64_t replicas() const;
  std::int64_t whole_replicas() const;
  std::string state_text() const;
  /// Into the log, as the consequence of what was reported before; the next one is the consequence
  /// of this.
  void report(sim::KindId kind, sim::Phase phase, double value = 0);
  /// Into the log, beside the chain of consequences.
  void note(sim::KindId kind, double value);

  sim::Engine& engine_;
  ServerPool& pool_;
  StepSource& steps_;
  sim::Recorder& recorder_;
  JobSetup setup_;
  std::int64_t servers_needed_;
  std::int64_t gpus_per_server_;

  JobState state_ = JobState::queued;
  Time since_;           // what came before is in the ledger
  Placement placement_;  // by rank; an invalid server is missing
  std::vector<Vacancy> vacancies_;
  std::int64_t held_ = 0;
  std::vector<topologies::HostId> training_on_;  // those that train, in rank order
  std::int64_t active_ = 0;                      // how many
  std::int64_t active_gpus_ = 0;                 // GPUs that train
  Progress progress_;
  Saves saves_;
  std::unique_ptr<DataFeed> feed_;
  StoreAccess data_store_;
  FabricNeighbours* neighbours_ = nullptr;
  std::vector<StoreFlow> neighbours_transfers_;
  mutable bool is_look_due_ = false;     // at the steps of the neighbours
  std::optional<StepOnLinks> on_links_;  // of this job, once somebody asked
  Ledger ledger_;
  bool is_profile_stale_ = true;
  bool is_in_training_ = false;  // as the pool knows it
  bool is_waiting_for_data_ = false;
  double seconds_per_step_without_store_ = 0;
  std::uint32_t profile_ = 0;  // of profiles_
  std::vector<const StepProfile*> profiles_;
  std::map<std::pair<const StepProfile*, Duration>, std::unique_ptr<StepProfile>> waiting_profiles_;
  std::vector<Fault> faults_;
  std::vector<std::size_t>
      unresumed_;  // interruptions that are dealt with, but training does not go on yet
  std::optional<std::size_t> guilty_;  // the interruption whose recovery is under way
  bool is_restore_pending_ = false;
  std::optional<Time> warned_until_;  // a failure is announced for then
  Why why_ended_ = Why::done;
  std::optional<Time> all_back_since_;  // servers of a shrunk job
  bool servers_changed_ = true;         // since the last start
  std::uint64_t diagnoses_ = 0;
  Time converged_at_{};     // traffic stands still until then
  std::string cut_off_by_;  // while there is no path
  /// A server that trains has an adapter without a link, so there is no step: what happens to links
  /// meanwhile is told to the step afterwards, and a flap, which leaves nothing behind, never.
  bool is_blocked_ = false;
  bool is_suspended_ = false;
  std::map<topologies::HostId, double> speeds_;  // of GPUs that are throttled
  std::optional<sim::EventIndex> throttled_by_;  // until the next step profile is known
  std::set<topologies::LinkId> lost_links_;  // while it is blocked, and not back
  std::vector<topologies::LinkId> other_changes_;
  bool is_cut_for_good_ = false;
  std::optional<Time> first_start_;
  std::optional<Time> ended_;
  Duration kept_in_steps_{};  // step_time without the step under way at the end
  JobStats counted_;          // what is counted as it happens

  std::vector<SegmentRow> segments_;
  std::int64_t steps_at_segment_start_ = 0;
  std::vector<InterruptionRow> interruptions_;
  std::vector<DataWaitRow> data_waits_;

  sim::Signal stopped_;        // life(): something is broken, or was found
  sim::Signal pace_;           // train_until_due(): plan again
  sim::Signal complete_;       // all servers are there
  sim::Signal paths_changed_;  // Saves: something happened to links
  sim::Timer found_timer_;     // a slow or corrupting member is found
  sim::Timer regrow_timer_;
  sim::Timer step_changed_timer_;  // neighbours hear of it when all have dealt with the fabric
  sim::ProcessHandle life_, run_, feed_watch_;

  sim::SubjectId subject_;
  sim::EventIndex cause_;  // of what happens next
  sim::KindId placed_, interrupted_, found_, missed_, let_go_, starting_, restored_, resumed_,
      done_, reroute_, cut_, gave_up_, warned_, leaving_, shrunk_, grown_, data_wait_;
};

}  // namespace trainyard::models
