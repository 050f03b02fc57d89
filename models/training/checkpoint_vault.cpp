#include "models/training/checkpoint_vault.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

int preference(LevelKind kind) {
  switch (kind) {
    case LevelKind::host_memory:
      return 0;
    case LevelKind::peer_memory:
      return 1;
    case LevelKind::local_nvme:
      return 2;
    case LevelKind::store:
      return 3;
    case LevelKind::off_site:
      break;
  }
  return 4;
}

bool is_before(const VaultLevel& a, const VaultLevel& b) {
  return std::pair(preference(a.spec.kind), std::string_view(a.name)) <
         std::pair(preference(b.spec.kind), std::string_view(b.name));
}

bool is_on_store(LevelKind kind) {
  return kind == LevelKind::store || kind == LevelKind::off_site;
}

}  // namespace

std::vector<VaultLevel> vault_levels(const std::map<std::string, LevelSpec>& levels) {
  std::vector<VaultLevel> sorted;
  for (const auto& [name, spec] : levels) sorted.push_back({name, spec});
  std::sort(sorted.begin(), sorted.end(), is_before);
  return sorted;
}

PeerGroups peer_groups(std::size_t ranks, std::size_t group,
                       const std::vector<std::uint32_t>& parent_of_rank) {
  check(ranks > 0 && group > 0 && parent_of_rank.size() == ranks, "each rank has a parent", ranks,
        group, parent_of_rank.size());
  std::vector<std::size_t> dealt(ranks);
  std::iota(dealt.begin(), dealt.end(), std::size_t(0));
  std::stable_sort(dealt.begin(), dealt.end(), [&](std::size_t a, std::size_t b) {
    return parent_of_rank[a] < parent_of_rank[b];
  });
  PeerGroups result;
  result.groups.resize(std::max<std::size_t>(1, ranks / group));
  for (std::size_t i = 0; i < ranks; ++i)
    result.groups[i % result.groups.size()].push_back(dealt[i]);
  for (std::vector<std::size_t>& members : result.groups) {
    std::set<std::uint32_t> parents;
    for (const std::size_t rank : members) parents.insert(parent_of_rank[rank]);
    if (parents.size() < members.size() || members.size() < group) result.is_short = true;
    std::sort(members.begin(), members.end());
  }
  return result;
}

CheckpointVault::CheckpointVault(std::vector<VaultLevel> levels, std::int64_t ranks)
    : levels_(std::move(levels)), peers_(levels_.size()) {
  check(ranks > 0, "a job has servers", ranks);
  check(std::is_sorted(levels_.begin(), levels_.end(), is_before),
        "levels are in the order of vault_levels()");
  is_member_.assign(static_cast<std::size_t>(ranks), true);
}

void CheckpointVault::set_peers(std::size_t level, std::vector<std::vector<std::size_t>> groups) {
  check(level < levels_.size() && levels_[level].spec.kind == LevelKind::peer_memory,
        "only peer memory has groups", level);
  auto peers = std::make_shared<Groups>();
  const auto none = static_cast<std::uint32_t>(groups.size());
  peers->of_rank.assign(is_member_.size(), none);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::size_t rank : groups[g]) {
      check(rank < is_member_.size() && peers->of_rank[rank] == none,
            "each rank is in one group of peers", rank, g);
      peers->of_rank[rank] = static_cast<std::uint32_t>(g);
    }
  check(std::find(peers->of_rank.begin(), peers->of_rank.end(), none) == peers->of_rank.end(),
        "each rank is in a group of peers");
  peers->members = std::move(groups);
  peers_[level] = std::move(peers);
}

void CheckpointVault::set_member(std::size_t rank, bool is_member) {
  check(rank < is_member_.size(), "a rank of the job", rank);
  is_member_[rank] = is_member;
}

SaveId CheckpointVault::begin(std::size_t level, SnapshotId snapshot, std::int64_t step,
                              Time taken) {
  check(level < levels_.size() && snapshot.is_valid() && step >= 0, "a snapshot for a level", level,
        step);
  Save save;
  save.copy = {SaveId(begun_), level, snapshot, step, taken, {}, {}};
  const LevelKind where = kind(save);
  check(where != LevelKind::off_site || has_source(save),
        "a copy off site is made from a complete save of this snapshot on a store",
        snapshot.index());
  if (!is_on_store(where)) save.holds = is_member_;
  if (where == LevelKind::peer_memory) {
    save.groups = peers_[level];
    check(save.groups != nullptr, "a level of peer memory has groups", level);
    save.holders.assign(save.groups->members.size(), 0);
    for (std::size_t rank = 0; rank < is_member_.size(); ++rank)
      if (is_member_[rank]) ++save.holders[save.groups->of_rank[rank]];
  }
  ++begun_;
  saves_.push_back(std::move(save));
  return saves_.back().copy.save;
}

CheckpointVault::Save* CheckpointVault::find(SaveId save) {
  check(save.is_valid() && save.index() < begun_, "a save that began");
  const auto found =
      std::lower_bound(saves_.begin(), saves_.end(), save,
                       [](const Save& s, SaveId wanted) { return s.copy.save < wanted; });
  return found != saves_.end() && found->copy.save == save ? &*found : nullptr;
}

bool CheckpointVault::is_under_way(SaveId save) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const Save& s) {
    return s.copy.save == save && !s.copy.complete.has_value();
  });
}

void CheckpointVault::complete(SaveId save, Time now) {
  Save* s = find(save);
  check(s != nullptr && !s->copy.complete, "a save completes once, and not if it was interrupted",
        save.index());
  check(now >= s->copy.taken, "a save takes time", to_seconds(now), to_seconds(s->copy.taken));
  s->copy.complete = now;
  push_out_old();
}

void CheckpointVault::verified(SaveId save, Time now) {
  Save* s = find(save);
  if (s == nullptr) return;
  check(s->copy.complete && now >= *s->copy.complete, "what is verified is complete", save.index());
  s->copy.verified = now;
  push_out_old();
}

void CheckpointVault::abort(SaveId save) {
  const Save* s = find(save);
  if (s == nullptr) return;
  check(!s->copy.complete, "only a save under way is interrupted", save.index());
  drop_if(SaveEnd::interrupted, [&](const Save& other) { return other.copy.save == save; });
  push_out_old();  // a copy off site may have held on to its source
}

template <class Condition>
void CheckpointVault::drop_if(SaveEnd why, Condition condition) {
  std::erase_if(saves_, [&](const Save& save) {
    const bool goes = condition(save);
    if (goes) gone_.push_back({save.copy.save, why});
    return goes;
  });
}

void CheckpointVault::interrupt_all() {
  drop_if(SaveEnd::interrupted, [&](const Save& save) {
    return !save.copy.complete && kind(save) != LevelKind::off_site;
  });
}

void CheckpointVault::lose_memory(std::size_t rank, SaveEnd why, bool disks_too) {
  check(rank < is_member_.size(), "a rank of the job", rank);
  interrupt_all();
  for (Save& save : saves_) {
    if (save.holds.empty() || !save.holds[rank]) continue;
    if (kind(save) == LevelKind::local_nvme && !disks_too) continue;
    save.holds[rank] = false;
    save.is_whole = save.groups != nullptr && --save.holders[save.groups->of_rank[rank]] > 0;
  }
  drop_if(why, [](const Save& save) { return !save.is_whole; });
}

void CheckpointVault::lose_server(std::size_t rank) {
  lose_memory(rank, SaveEnd::lost_server, true);
}

void CheckpointVault::lose_power(std::size_t rank) {
  lose_memory(rank, SaveEnd::lost_power, false);
}

void CheckpointVault::restart_in_place() {
  interrupt_all();
}

void CheckpointVault::lose_store(const std::string& store) {
  drop_if(SaveEnd::lost_store, [&](const Save& save) {
    return save.holds.empty() && levels_[save.copy.level].spec.store == store;
  });
  drop_if(SaveEnd::interrupted, [&](const Save& save) {
    return kind(save) == LevelKind::off_site && !save.copy.complete && !has_source(save);
  });
  push_out_old();
}

void CheckpointVault::void_since(Time corrupted) {
  drop_if(SaveEnd::corrupt, [&](const Save& save) { return save.copy.taken >= corrupted; });
}

bool CheckpointVault::has_source(const Save& off_site) const {
  return std::any_of(saves_.begin(), saves_.end(), [&](const Save& save) {
    return kind(save) == LevelKind::store && save.copy.complete &&
           save.copy.snapshot == off_site.copy.snapshot;
  });
}

void CheckpointVault::push_out_old() {
  for (std::size_t level = 0; level < levels_.size(); ++level) push_out_old(level);
}

void CheckpointVault::push_out_old(std::size_t level) {
  const LevelSpec& spec = levels_[level].spec;
  const auto keep = static_cast<std::size_t>(spec.keep);
  std::vector<const Save*> all;  // complete ones, newest first
  for (auto save = saves_.rbegin(); save != saves_.rend(); ++save)
    if (save->copy.level == level && save->copy.complete) all.push_back(&*save);
  if (all.size() <= keep) return;
  std::sort(all.begin(), all.end(), [](const Save* a, const Save* b) {
    return std::pair(a->copy.snapshot, a->copy.save) > std::pair(b->copy.snapshot, b->copy.save);
  });

  std::vector<SaveId> go;
  for (std::size_t i = keep; i < all.size(); ++i) go.push_back(all[i]->copy.save);
  const auto stays = [&](SaveId save) { std::erase(go, save); };
  if (spec.verify) {
    const auto good = std::find_if(
        all.begin(), all.end(), [](const Save* save) { return save->copy.verified.has_value(); });
    if (good != all.end()) stays((*good)->copy.save);
    if (good != all.begin()) stays((*(good - 1))->copy.save);
  }
  // What is being copied off site stays until the copy is made.
  if (spec.kind == LevelKind::store)
    for (const Save& copy : saves_) {
      if (kind(copy) != LevelKind::off_site || copy.copy.complete) continue;
      for (const Save* save : all)
        if (save->copy.snapshot == copy.copy.snapshot) stays(save->copy.save);
    }
  if (go.empty()) return;
  drop_if(SaveEnd::pushed_out, [&](const Save& save) {
    return std::find(go.begin(), go.end(), save.copy.save) != go.end();
  });
}

std::optional<CheckpointVault::Choice> CheckpointVault::newest() const {
  const auto rank = [](const Save& save) {
    return std::tuple(-save.copy.step, save.copy.level, ~save.copy.snapshot.index(),
                      ~save.copy.save.index());
  };
  const Save* best = nullptr;
  for (const Save& save : saves_)
    if (save.copy.complete && (best == nullptr || rank(save) < rank(*best))) best = &save;
  if (best == nullptr) return {};
  const Copy& copy = best->copy;
  return Choice{copy.save, copy.level, copy.snapshot, copy.step, copy.taken};
}

std::optional<SnapshotId> CheckpointVault::oldest_restorable() const {
  std::optional<SnapshotId> oldest;
  for (const Save& save : saves_)
    if (!oldest || save.copy.snapshot < *oldest) oldest = save.copy.snapshot;
  return oldest;
}

std::vector<CheckpointVault::Copy> CheckpointVault::copies() const {
  std::vector<Copy> all;
  for (const Save& save : saves_) all.push_back(save.copy);
  return all;
}

std::size_t CheckpointVault::complete_on(std::size_t level) const {
  return static_cast<std::size_t>(std::count_if(saves_.begin(), saves_.end(), [&](const Save& s) {
    return s.copy.level == level && s.copy.complete;
  }));
}

std::vector<CheckpointVault::Gone> CheckpointVault::take_gone() {
  return std::exchange(gone_, {});
}

}  // namespace trainyard::models
