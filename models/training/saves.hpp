#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/storage/store.hpp"
#include "models/training/checkpoint_vault.hpp"
#include "models/training/checkpoints.hpp"
#include "models/training/progress.hpp"
#include "models/training/step_source.hpp"
#include "sim/engine.hpp"
#include "sim/process.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

/// The saves of one job: when each level is due, what runs behind training, what can be loaded.
///
///     due         a level is due at the first end of a step at which its interval (training time
///     or
///                 steps) has passed since its last snapshot; while its last save is still being
///                 written it waits, and is late
///     snapshot    all levels that are due together share one: training stands still for the copy
///     to
///                 host memory, if any of them is asynchronous
///     write       a synchronous level is waited for; the others drain behind training. To a store
///                 whose servers are on the training fabric, and to peers, this takes rate from the
///                 collectives (StepSource::set_store_flows)
///     complete    from here on it can be loaded (CheckpointVault says what survives which loss);
///                 older ones are dropped; an off-site copy begins, if one is due
///     interrupt() what was being written is no checkpoint
///
/// Page: docs/models/checkpoint.md. Cost: a few events a save and level, whatever the size of the
/// job.
namespace trainyard::models {

/// A store, and where its servers are if they are on the training fabric.
struct StoreAccess {
  SharedStore* store = nullptr;
  std::vector<topologies::HostId> on_fabric = {};
};
using StoreShelf = std::map<std::string, StoreAccess>;

class Saves {
 public:
  /// What saves need of the job they belong to.
  class Client {
   public:
    virtual ~Client() = default;
    virtual Placement placement() const = 0;
    /// Servers that write and read now.
    virtual std::int64_t active_servers() const = 0;
    /// Brings progress up to now, before it is looked at or divided.
    virtual void bring_up_to_date() = 0;
    /// A drain ended: more levels may be due.
    virtual void on_save_complete() = 0;
    /// The traffic beside the step is another one now.
    virtual void on_flows_changed() = 0;
    /// A save that was verified is bad: the job has been corrupt since before it was taken.
    virtual void on_bad_save(Time taken) = 0;
    /// Other jobs that see what this one transfers; and what they see is this now.
    virtual bool has_neighbours() const { return false; }
    virtual void on_transfers_changed(std::vector<StoreFlow> /*transfers*/) {}
    /// A transfer of this job is about to ask for its share: others should be known to the step.
    virtual void look_at_neighbours() const {}
    /// Every server of the job has its links; and something about that changed.
    virtual bool is_plugged() const = 0;
    virtual sim::Signal& paths_changed() = 0;
    /// Something corrupted the state that is saved at `taken`.
    virtual bool is_corrupt(Time taken) const = 0;
  };

  Saves(sim::Engine& engine, sim::Recorder& recorder, Client& client, Progress& progress,
        StepSource& steps, const StoreShelf& stores, const CheckpointSpec& spec, std::string job,
        Bytes size, std::int64_t gpus, std::int64_t servers);
  ~Saves();
  Saves(const Saves&) = delete;
  Saves& operator=(const Saves&) = delete;

  /// Every store that a level names is there.
  bool has_stores() const { return missing_store_.empty(); }
  const std::string& missing_store() const { return missing_store_; }

  /// As Engine::glide_to, through what it finds out about earlier saves on the way.
  bool glide_to(Time when, const std::function<bool()>& holds);

  /// Steps until the next level is due; the largest number if none ever is.
  std::int64_t steps_to_due() const;
  /// While training stands still, at the end of a step. An emergency save goes to the stores (to
  /// all levels if there is none), at once; where this state is already, or on its way, nothing is
  /// begun.
  sim::Process save(bool is_emergency);
  /// How long an emergency save would take by itself, from its beginning.
  bool can_save() const { return !levels_.empty(); }

  /// What is being written is lost.
  void interrupt(const std::string& why, sim::EventIndex cause);
  /// Training is at this snapshot now, or at its beginning.
  void went_back_to(std::optional<SnapshotId> snapshot);
  /// Training goes on, perhaps from an earlier state: no level is ahead of it.
  void begin_intervals();
  /// The end of the run: nothing goes on.
  void stop();

  /// Copies that are gone: of a server that left the job, or of one that lost its power.
  void lose_server(std::size_t rank, bool only_memory);
  /// Ranks that train and save; all, unless the job is shrunk. Copies go to the next member of
  /// their group.
  void set_members(const std::vector<bool>& is_member);
  void void_since(Time corrupted);
  /// Ranks that hold each other's copies, `parents[component]` by rank.
  void set_peers(const std::function<std::vector<std::uint32_t>(Component)>& parents);

  std::optional<CheckpointVault::Choice> newest() const { return vault_.newest(); }
  const std::string& level_name(std::size_t level) const { return levels_[level]->name; }
  sim::Process load(CheckpointVault::Choice choice);

  /// What a transfer may have of the fabric is another share now.
  void update_limits();
  /// Batches that come over the training fabric, beside the saves.
  void set_data_flow(std::optional<StoreFlow> flow);
  /// Batches move only while steps go on.
  void set_training(bool trains);

  const std::vector<CheckpointRow>& rows() const { return rows_; }
  std::int64_t failed() const { return failed_; }  // not begun: the store was full

 private:
  struct Level {
    std::string name;
    LevelSpec spec;
    std::size_t at = 0;  // of the vault
    StoreAccess own_access;
    const StoreAccess* access = nullptr;  // null: not on a store
    /// How far training was at the last snapshot of this level that is still part of its history.
    struct Mark {
      Duration time{};
      std::int64_t steps = 0;
    };
    Mark mark, mark_before;
    std::int64_t trained_steps = -1;  // at the last snapshot, lost steps included
    bool is_writing = false;
    std::size_t row = 0;  // of what is being written
    SaveId save;
    SnapshotId snapshot;
    StoreRequest request;
    BytesPerSecond peer_rate{};
    sim::ProcessHandle drain, watch;
  };

  bool is_due(const Level& level) const;
  std::int64_t steps_to(const Level& level) const;
  std::int64_t steps_to_interval(const Level& level) const;
  SnapshotId snapshot_of_now();
  bool has(const Level& level, SnapshotId snapshot) const;
  bool begin(Level& level, SnapshotId snapshot, bool is_emergency);
  void complete(Level& level);
  void abort(Level& level, const std::string& why);
  void collect_gone();
  sim::Process write(Level& level);
  sim::Process drain(Level& level);
  sim::Process watch(Level& level);
  sim::Process watch_load();
  void end_load();
  struct Check {
    Level* level;
    SaveId save;
    std::size_t row;
  };
  void check_due();
  void aim_at_next_check();
  void verify(const Check& check);
  void copy_off_site(const Level& from);
  void forget_what_no_one_needs();
  void update_flows();
  void publish();
  /// Of each server, to or from these; nothing while there is no path.
  BytesPerSecond fabric_limit(std::span<const topologies::HostId> to, bool is_write) const;
  bool is_on_fabric(const Level& level) const;
  std::vector<topologies::HostId> partners(const Level& level) const;
  void note(sim::KindId kind, const Level& level, double value);

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  Client& client_;
  Progress& progress_;
  StepSource& steps_;
  CheckpointSpec spec_;
  std::string job_;
  Bytes size_;
  std::int64_t gpus_;
  std::int64_t servers_;
  Duration stall_;
  std::string missing_store_;
  std::vector<std::unique_ptr<Level>> levels_;  // in the order of the vault
  CheckpointVault vault_;
  std::map<std::size_t, std::vector<std::size_t>> partner_of_;  // by level, rank of a partner
  std::vector<bool> is_member_;                                 // by rank; empty: all
  std::optional<StoreFlow> data_flow_;
  bool trains_ = false;
  StoreRequest load_;  // while is_loading_
  bool is_loading_ = false;
  StoreAccess load_from_;
  std::string load_name_;
  sim::ProcessHandle load_watch_;
  std::vector<StoreFlow> flows_;
  std::optional<SnapshotId> here_;  // of the state when so many steps had been trained
  std::int64_t here_trained_ = -1;
  std::vector<CheckpointRow> rows_;
  std::map<SaveId, std::pair<std::size_t, std::size_t>> held_;  // level and row of what is there
  std::int64_t failed_ = 0;
  sim::EventIndex cause_;              // of a save that is lost
  std::multimap<Time, Check> checks_;  // of complete saves, when their content will be known
  sim::Timer next_check_;
  sim::SubjectId subject_;
  sim::KindId began_, complete_, lost_, full_, verified_, bad_;
};

}  // namespace trainyard::models
