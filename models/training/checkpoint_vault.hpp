#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/training/checkpoint_spec.hpp"
#include "models/training/progress.hpp"
#include "sim/id.hpp"
#include "sim/time.hpp"

/// Which copies of the state of training exist, which of them a failure destroys, and which is the
/// newest that can be loaded. Bookkeeping only: no clock, no bytes.
///
/// A save is cut into one shard a server of the job (a rank). Where the shards are:
///
///     host-memory, local-nvme    on their own server: the save needs every server
///     peer-memory                on every member of the server's group: it needs one of each group
///     store, off-site            behind the network: it needs the store
///
/// It can be loaded if it is complete and every shard is still somewhere. A new server in the place
/// of a lost one holds nothing of older saves.
///
///     CheckpointVault vault(vault_levels(spec.all_levels()), 4);
///     vault.set_peers(0, peer_groups(4, 2, {0, 0, 1, 1}).groups);  // {0, 2}, {1, 3}: two racks
///     const SaveId save = vault.begin(0, progress.snapshot(), progress.steps(), now);
///     vault.complete(save, later);
///     vault.lose_server(0);   // its copies are on server 2 as well: newest() is still `save`
///     vault.lose_server(2);   // the whole group: newest() is an older one, or nothing
///
/// Levels and groups of peers: Moody et al., "Design, modeling, and evaluation of a scalable
/// multi-level checkpointing system", SC 2010 (SCR); Wang et al., "GEMINI: fast failure recovery in
/// distributed training with in-memory checkpoints", SOSP 2023.
namespace trainyard::models {

struct VaultLevel {
  std::string name;
  LevelSpec spec;
};

/// In the order in which equally new saves are preferred: host memory, peer memory, local NVMe,
/// store, off-site, then by name.
std::vector<VaultLevel> vault_levels(const std::map<std::string, LevelSpec>& levels);

struct PeerGroups {
  std::vector<std::vector<std::size_t>> groups;  // each rank in one
  bool is_short = false;  // a group has two members under one parent, or fewer members than wanted
};
/// Groups of `group` ranks (a remainder makes some larger by one) under different parents: ranks
/// are sorted by parent and dealt out one by one, so that no group meets a parent twice unless the
/// parent has more ranks than there are groups; then as rarely as possible.
PeerGroups peer_groups(std::size_t ranks, std::size_t group,
                       const std::vector<std::uint32_t>& parent_of_rank);

using SaveId = Id<struct SaveTag>;

enum class SaveEnd { interrupted, pushed_out, lost_server, lost_power, lost_store, corrupt };

constexpr std::string_view name_of(SaveEnd end) {
  constexpr std::string_view names[] = {"interrupted", "pushed out", "server lost",
                                        "power lost",  "store lost", "corrupt"};
  return names[static_cast<std::size_t>(end)];
}

class CheckpointVault {
 public:
  struct Copy {
    SaveId save;
    std::size_t level = 0;
    SnapshotId snapshot;
    std::int64_t step = 0;
    Time taken{};
    std::optional<Time> complete;  // none: under way
    std::optional<Time> verified;
  };
  struct Choice {
    SaveId save;
    std::size_t level = 0;
    SnapshotId snapshot;
    std::int64_t step = 0;
    Time taken{};
  };
  struct Gone {
    SaveId save;
    SaveEnd why;
  };

  /// Levels in the order of vault_levels(); ranks: servers of the job.
  CheckpointVault(std::vector<VaultLevel> levels, std::int64_t ranks);

  const std::vector<VaultLevel>& levels() const { return levels_; }
  /// Ranks that hold each other's copies, from the next save on: each rank in exactly one group.
  void set_peers(std::size_t level, std::vector<std::vector<std::size_t>> groups);
  /// A job that shrinks: without the rank, coming saves have no shard there (lose_server says that
  /// the present ones are gone).
  void set_member(std::size_t rank, bool is_member);

  /// Of the state at `snapshot`. An off-site copy is made from a complete save of this snapshot on
  /// a store.
  SaveId begin(std::size_t level, SnapshotId snapshot, std::int64_t step, Time taken);
  bool is_under_way(SaveId save) const;
  /// From now on it can be loaded. Older ones beyond the level's `keep` are dropped. With `verify`,
  /// two more stay: the newest one known to be good, and the next one that will be known (else
  /// saves would push each other out before they are).
  void complete(SaveId save, Time now);
  /// Its content is known to be good. Nothing happens if the save is gone by now.
  void verified(SaveId save, Time now);
  /// It is no checkpoint and never becomes one. Nothing happens if the save is gone by now.
  void abort(SaveId save);

  /// The server left the job: its memory and disks are gone.
  void lose_server(std::size_t rank);
  /// Memory is gone, disks stay.
  void lose_power(std::size_t rank);
  /// Processes end and begin again; what servers hold stays. Like the two above, it interrupts
  /// saves that are under way, except copies off site, which need no server of the job.
  void restart_in_place();
  void lose_store(const std::string& store);
  /// Results were wrong from then on: saves taken at or after it go.
  void void_since(Time corrupted);

  /// The newest that can be loaded; of equally new ones that of the first level.
  std::optional<Choice> newest() const;
  /// No save before it can ever be loaded: for Progress::forget_before. Saves under way count.
  std::optional<SnapshotId> oldest_restorable() const;
  /// All that are complete or under way, oldest save first.
  std::vector<Copy> copies() const;
  std::size_t complete_on(std::size_t level) const;
  /// What went since this was called last, in order: frees room on stores, explains rows.
  std::vector<Gone> take_gone();

 private:
  struct Groups {
    std::vector<std::vector<std::size_t>> members;
    std::vector<std::uint32_t> of_rank;
  };
  struct Save {
    Copy copy;
    std::vector<bool> holds;  // by rank: has its part; empty: on a store
    std::shared_ptr<const Groups> groups;
    std::vector<std::uint32_t> holders;  // left, by group
    bool is_whole = true;                // each shard is somewhere
  };

  LevelKind kind(const Save& save) const { return levels_[save.copy.level].spec.kind; }
  Save* find(SaveId save);
  template <class Condition>
  void drop_if(SaveEnd why, Condition condition);
  void interrupt_all();
  void lose_memory(std::size_t rank, SaveEnd why, bool disks_too);
  bool has_source(const Save& off_site) const;
  void push_out_old();
  void push_out_old(std::size_t level);

  std::vector<VaultLevel> levels_;
  std::vector<std::shared_ptr<const Groups>> peers_;  // by level; none: not set
  std::vector<bool> is_member_;                       // by rank
  std::vector<Save> saves_;                           // by SaveId, ascending; the dropped ones not
  std::vector<Gone> gone_;
  std::size_t begun_ = 0;
};

}  // namespace trainyard::models
