#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "models/training/checkpoint_vault.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

using Groups = std::vector<std::vector<std::size_t>>;

constexpr Time at(std::int64_t s) {
  return start_of_run + std::chrono::seconds(s);
}

LevelSpec level(LevelKind kind, int keep = 2, std::optional<Duration> verify = {}) {
  LevelSpec spec;
  spec.kind = kind;
  if (kind == LevelKind::store) spec.store = "lustre";
  if (kind == LevelKind::off_site) spec.store = "vault";
  spec.keep = keep;
  spec.verify = verify;
  return spec;
}

// The slow twin: a list of pieces (save, holder, shard), nothing else decides what can be loaded.
struct Twin {
  struct Save {
    SaveId id;
    std::size_t level;
    SnapshotId snapshot;
    Time taken;
    bool is_complete = false, is_verified = false, is_gone = false;
    std::set<std::size_t> shards;                             // that must be somewhere
    std::set<std::tuple<bool, std::size_t, std::size_t>> at;  // (on disk, holder, shard)
  };
  std::vector<VaultLevel> levels;
  std::vector<Save> saves;
  Groups groups;
  std::set<std::size_t> members;

  LevelKind kind(const Save& s) const { return levels[s.level].spec.kind; }
  bool is_stored(const Save& s) const {
    return kind(s) == LevelKind::store || kind(s) == LevelKind::off_site;
  }
  void begin(SaveId id, std::size_t level, SnapshotId snapshot, Time taken) {
    Save s{id, level, snapshot, taken, false, false, false, {}, {}};
    if (!is_stored(s)) {
      s.shards = members;
      for (const std::size_t shard : members) {
        if (kind(s) == LevelKind::host_memory) s.at.insert({false, shard, shard});
        if (kind(s) == LevelKind::local_nvme) s.at.insert({true, shard, shard});
        if (kind(s) == LevelKind::peer_memory)
          for (const auto& group : groups)
            if (std::count(group.begin(), group.end(), shard))
              for (const std::size_t holder : group)
                if (members.contains(holder)) s.at.insert({false, holder, shard});
      }
    }
    saves.push_back(s);
  }
  void interrupt() {
    for (Save& s : saves)
      if (!s.is_complete && kind(s) != LevelKind::off_site) s.is_gone = true;
  }
  void lose(std::size_t rank, bool disks_too) {
    interrupt();
    for (Save& s : saves) {
      std::erase_if(s.at, [&](const auto& piece) {
        return std::get<1>(piece) == rank && (disks_too || !std::get<0>(piece));
      });
      for (const std::size_t shard : s.shards)
        if (std::none_of(s.at.begin(), s.at.end(),
                         [&](const auto& piece) { return std::get<2>(piece) == shard; }))
          s.is_gone = true;
    }
  }
  void push_out() {
    for (std::size_t level = 0; level < levels.size(); ++level) {
      std::vector<Save*> here;  // newest first
      for (Save& s : saves)
        if (s.level == level && s.is_complete && !s.is_gone) here.push_back(&s);
      std::sort(here.begin(), here.end(),
                [](Save* a, Save* b) { return a->snapshot > b->snapshot; });
      for (std::size_t i = static_cast<std::size_t>(levels[level].spec.keep); i < here.size();
           ++i) {
        bool stays = false;
        if (levels[level].spec.verify) {
          const bool newer_good = std::any_of(here.begin(), here.begin() + std::ptrdiff_t(i),
                                              [](Save* s) { return s->is_verified; });
          const bool next_is_good = i + 1 == here.size() || here[i + 1]->is_verified;
          stays = !newer_good && (here[i]->is_verified || next_is_good);
        }
        for (const Save& s : saves)
          if (kind(s) == LevelKind::off_site && !s.is_gone && !s.is_complete &&
              kind(*here[i]) == LevelKind::store && s.snapshot == here[i]->snapshot)
            stays = true;
        if (!stays) here[i]->is_gone = true;
      }
    }
  }
  bool has_source(SnapshotId snapshot) const {
    return std::any_of(saves.begin(), saves.end(), [&](const Save& s) {
      return kind(s) == LevelKind::store && s.is_complete && !s.is_gone && s.snapshot == snapshot;
    });
  }
  const Save* newest() const {
    const Save* best = nullptr;
    for (const Save& s : saves)
      if (!s.is_gone && s.is_complete &&
          (best == nullptr || s.snapshot > best->snapshot ||
           (s.snapshot == best->snapshot && s.level < best->level)))
        best = &s;
    return best;
  }
};

TEST(CheckpointVault, any_history_agrees_with_a_list_of_pieces) {
  int loadable = 0, nothing = 0, gone = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream luck(sim::Seed{seed}, "vault");
    const auto keep = [&] { return 1 + static_cast<int>(luck.below(3)); };
    const auto verify = [&] {
      return luck.below(2) == 0 ? std::optional<Duration>(1h) : std::nullopt;
    };
    const std::size_t ranks = 2 + luck.below(7);
    std::map<std::string, LevelSpec> specs;
    for (const auto& [name, kind] :
         {std::pair("host", LevelKind::host_memory), std::pair("peer", LevelKind::peer_memory),
          std::pair("nvme", LevelKind::local_nvme), std::pair("store", LevelKind::store),
          std::pair("away", LevelKind::off_site)})
      specs[name] = level(kind, keep(), verify());
    Twin twin{vault_levels(specs), {}, {}, {}};
    CheckpointVault vault(twin.levels, static_cast<std::int64_t>(ranks));
    for (std::size_t r = 0; r < ranks; ++r) twin.members.insert(r);
    const auto regroup = [&] {
      std::vector<std::uint32_t> parents(ranks);
      for (std::uint32_t& p : parents) p = static_cast<std::uint32_t>(luck.below(3));
      twin.groups = peer_groups(ranks, 2 + luck.below(2), parents).groups;
      vault.set_peers(1, twin.groups);
    };
    regroup();
    std::size_t snapshots = 0;
    for (int action = 0; action < 80; ++action) {
      const Time now = at(10 * action);
      const auto any = [&](bool is_complete) -> Twin::Save* {
        std::vector<Twin::Save*> those;
        for (Twin::Save& s : twin.saves)
          if (!s.is_gone && s.is_complete == is_complete) those.push_back(&s);
        return those.empty() ? nullptr : those[luck.below(those.size())];
      };
      switch (luck.below(14)) {
        case 0:
        case 1: {  // one snapshot, several levels
          const SnapshotId snapshot(snapshots++);
          for (std::size_t l = 0; l < 4; ++l)
            if (luck.below(2) == 0)
              twin.begin(vault.begin(l, snapshot, std::int64_t(snapshots), now), l, snapshot, now);
          break;
        }
        case 2: {
          const Twin::Save* source = any(true);
          if (source == nullptr || twin.kind(*source) != LevelKind::store) break;
          const SnapshotId snapshot = source->snapshot;
          const Time taken = source->taken;
          const bool is_known = std::any_of(
              twin.saves.begin(), twin.saves.end(),
              [&](const Twin::Save& s) { return s.level == 4 && s.snapshot == snapshot; });
          if (is_known) break;
          twin.begin(vault.begin(4, snapshot, std::int64_t(snapshot.index()) + 1, taken), 4,
                     snapshot, taken);
          break;
        }
        case 3:
        case 4:
        case 5:
        case 6:
          if (Twin::Save* s = any(false)) {
            vault.complete(s->id, now);
            s->is_complete = true;
            twin.push_out();
          }
          break;
        case 7:
          if (Twin::Save* s = any(true)) {
            vault.verified(s->id, now);
            s->is_verified = true;
            twin.push_out();
          }
          break;
        case 8: {
          const std::size_t rank = luck.below(ranks);
          vault.lose_server(rank);
          twin.lose(rank, true);
          break;
        }
        case 9: {
          const std::size_t rank = luck.below(ranks);
          vault.lose_power(rank);
          twin.lose(rank, false);
          break;
        }
        case 10:
          vault.restart_in_place();
          twin.interrupt();
          break;
        case 11:
          if (luck.below(4) == 0) {
            const std::string store = luck.below(2) == 0 ? "lustre" : "vault";
            vault.lose_store(store);
            for (Twin::Save& s : twin.saves)
              if (twin.levels[s.level].spec.store == store) s.is_gone = true;
            for (Twin::Save& s : twin.saves)
              if (s.level == 4 && !s.is_complete && !twin.has_source(s.snapshot)) s.is_gone = true;
            twin.push_out();
          } else if (Twin::Save* s = any(false)) {
            vault.abort(s->id);
            s->is_gone = true;
            twin.push_out();
          }
          break;
        case 12:
          if (luck.below(4) == 0) {
            const Time corrupted = at(10 * action - 10 * std::int64_t(luck.below(30)));
            vault.void_since(corrupted);
            for (Twin::Save& s : twin.saves)
              if (s.taken >= corrupted) s.is_gone = true;
          } else {
            regroup();
          }
          break;
        default: {
          const std::size_t rank = luck.below(ranks);
          vault.lose_server(rank);
          twin.lose(rank, true);
          const bool is_member = twin.members.size() == 1 || !twin.members.contains(rank);
          vault.set_member(rank, is_member);
          if (is_member)
            twin.members.insert(rank);
          else
            twin.members.erase(rank);
        }
      }
      std::vector<std::pair<SaveId, bool>> expected, found;
      std::optional<SnapshotId> oldest;
      for (const Twin::Save& s : twin.saves) {
        if (s.is_gone) continue;
        expected.push_back({s.id, s.is_complete});
        oldest = oldest ? std::min(*oldest, s.snapshot) : s.snapshot;
      }
      for (const CheckpointVault::Copy& c : vault.copies())
        found.push_back({c.save, c.complete.has_value()});
      ASSERT_EQ(found, expected);
      ASSERT_EQ(vault.oldest_restorable(), oldest);
      for (const CheckpointVault::Gone& g : vault.take_gone()) {
        ASSERT_TRUE(twin.saves.at(g.save.index()).is_gone);
        ++gone;
      }
      const Twin::Save* best = twin.newest();
      ASSERT_EQ(vault.newest().has_value(), best != nullptr);
      if (best != nullptr) {
        ASSERT_EQ(vault.newest()->save, best->id);
      }
      ++(best != nullptr ? loadable : nothing);
    }
    const auto all_gone = std::count_if(twin.saves.begin(), twin.saves.end(),
                                        [](const Twin::Save& s) { return s.is_gone; });
    gone -= static_cast<int>(all_gone);
    ASSERT_EQ(gone, 0);  // each is reported once
  }
  EXPECT_GT(loadable, 1000);
  EXPECT_GT(nothing, 1000);
}

}  // namespace
}  // namespace trainyard::models
