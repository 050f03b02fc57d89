#include "models/training/checkpoint_vault.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/check.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

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

/// One level, or all five: host 0, peer 1, nvme 2, store 3, off-site 4; four servers in two racks.
CheckpointVault one(LevelKind kind, int keep = 2, std::optional<Duration> verify = {}) {
  CheckpointVault vault({{"only", level(kind, keep, verify)}}, 4);
  if (kind == LevelKind::peer_memory) vault.set_peers(0, {{0, 2}, {1, 3}});
  return vault;
}
CheckpointVault all_five(int keep = 2) {
  CheckpointVault vault(vault_levels({{"a-off-site", level(LevelKind::off_site, keep)},
                                      {"b-store", level(LevelKind::store, keep)},
                                      {"c-nvme", level(LevelKind::local_nvme, keep)},
                                      {"d-peer", level(LevelKind::peer_memory, keep)},
                                      {"e-host", level(LevelKind::host_memory, keep)}}),
                        4);
  vault.set_peers(1, {{0, 2}, {1, 3}});
  return vault;
}

/// Complete one second after it was taken; snapshot n is step 10 n, taken at 100 n.
SaveId save(CheckpointVault& vault, std::size_t level, std::size_t n) {
  const auto t = static_cast<std::int64_t>(n);
  const SaveId id = vault.begin(level, SnapshotId(n), 10 * t, at(100 * t));
  vault.complete(id, at(100 * t + 1));
  return id;
}

std::vector<std::int64_t> steps_of(const CheckpointVault& vault) {
  std::vector<std::int64_t> steps;
  for (const CheckpointVault::Copy& copy : vault.copies()) steps.push_back(copy.step);
  return steps;
}

TEST(CheckpointVault, levels_are_ordered_by_how_fast_they_are_then_by_name) {
  std::vector<std::string> names;
  for (const VaultLevel& l : vault_levels({{"z", level(LevelKind::host_memory)},
                                           {"y", level(LevelKind::peer_memory)},
                                           {"x", level(LevelKind::local_nvme)},
                                           {"w", level(LevelKind::store)},
                                           {"b", level(LevelKind::off_site)},
                                           {"a", level(LevelKind::store)}}))
    names.push_back(l.name);
  EXPECT_THAT(names, ElementsAre("z", "y", "x", "a", "w", "b"));
  EXPECT_THROW(
      CheckpointVault({{"s", level(LevelKind::store)}, {"h", level(LevelKind::host_memory)}}, 4),
      CheckFailed);
}

TEST(CheckpointVault, a_peer_save_survives_one_server_and_dies_with_its_rack) {
  CheckpointVault vault = one(LevelKind::peer_memory);
  vault.set_peers(0, {{0, 1}, {2, 3}});  // both members in one rack: 0 and 1
  save(vault, 0, 1);
  vault.lose_server(0);
  ASSERT_TRUE(vault.newest());
  EXPECT_EQ(vault.newest()->step, 10);
  vault.lose_server(0);  // the same place once more: its new server held nothing of it
  vault.lose_server(2);  // of the other group
  ASSERT_TRUE(vault.newest());
  vault.lose_server(1);
  EXPECT_FALSE(vault.newest());
}

TEST(CheckpointVault, a_peer_save_across_racks_survives_its_rack) {
  CheckpointVault vault = one(LevelKind::peer_memory);
  vault.set_peers(0, peer_groups(4, 2, {0, 0, 1, 1}).groups);
  save(vault, 0, 1);
  vault.lose_server(0);
  vault.lose_server(1);
  EXPECT_TRUE(vault.newest());
}

TEST(CheckpointVault, a_new_server_holds_nothing_of_older_saves_but_its_part_of_newer_ones) {
  CheckpointVault vault = one(LevelKind::peer_memory);
  save(vault, 0, 1);
  vault.lose_server(0);
  save(vault, 0, 2);
  vault.lose_server(2);  // groups are {0, 2} and {1, 3}
  ASSERT_TRUE(vault.newest());
  EXPECT_EQ(vault.newest()->step, 20);
  EXPECT_THAT(steps_of(vault), ElementsAre(20));
}

TEST(CheckpointVault, new_groups_hold_for_later_saves_only) {
  CheckpointVault vault = one(LevelKind::peer_memory, 9);
  save(vault, 0, 1);
  vault.set_peers(0, {{0, 1}, {2, 3}});
  save(vault, 0, 2);
  vault.lose_server(0);
  vault.lose_server(1);
  EXPECT_THAT(steps_of(vault), ElementsAre(10));
}

TEST(CheckpointVault, a_local_save_dies_with_its_node) {
  CheckpointVault vault = one(LevelKind::local_nvme);
  save(vault, 0, 1);
  vault.restart_in_place();
  ASSERT_TRUE(vault.newest());
  vault.lose_server(3);
  EXPECT_FALSE(vault.newest());
}

TEST(CheckpointVault, a_store_save_survives_a_node_and_a_rack_and_dies_with_its_store) {
  CheckpointVault vault = one(LevelKind::store);
  save(vault, 0, 1);
  vault.lose_server(3);
  ASSERT_TRUE(vault.newest());
  for (std::size_t rank = 0; rank < 4; ++rank) vault.lose_server(rank);
  for (std::size_t rank = 0; rank < 4; ++rank) vault.lose_power(rank);
  vault.lose_store("another");
  ASSERT_TRUE(vault.newest());
  vault.lose_store("lustre");
  EXPECT_FALSE(vault.newest());
}

TEST(CheckpointVault, power_kills_memory_and_not_disks) {
  CheckpointVault vault = all_five();
  for (std::size_t l = 0; l < 4; ++l) save(vault, l, 1);
  vault.take_gone();
  vault.restart_in_place();
  EXPECT_EQ(vault.newest()->level, 0u);
  vault.lose_power(0);
  EXPECT_EQ(vault.newest()->level, 1u);  // host memory of one server is gone, its peer has a copy
  vault.lose_power(2);
  EXPECT_EQ(vault.newest()->level, 2u);  // both peers
  vault.lose_server(0);
  EXPECT_EQ(vault.newest()->level, 3u);
  std::vector<SaveEnd> why;
  for (const CheckpointVault::Gone& gone : vault.take_gone()) why.push_back(gone.why);
  EXPECT_THAT(why, ElementsAre(SaveEnd::lost_power, SaveEnd::lost_power, SaveEnd::lost_server));
  EXPECT_TRUE(vault.take_gone().empty());
}

TEST(CheckpointVault, an_interrupted_save_is_never_loaded) {
  for (const LevelKind kind :
       {LevelKind::host_memory, LevelKind::local_nvme, LevelKind::peer_memory, LevelKind::store}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const std::vector<std::function<void(CheckpointVault&, SaveId)>> interruptions = {
        [](CheckpointVault& v, SaveId id) { v.abort(id); },
        [](CheckpointVault& v, SaveId) { v.restart_in_place(); },
        [](CheckpointVault& v, SaveId) { v.lose_power(1); },
        [](CheckpointVault& v, SaveId) { v.lose_server(1); }};
    for (const auto& interrupt : interruptions) {
      CheckpointVault vault = one(kind);
      const SaveId id = vault.begin(0, SnapshotId(1), 10, at(100));
      EXPECT_FALSE(vault.newest());
      EXPECT_TRUE(vault.is_under_way(id));
      EXPECT_EQ(vault.oldest_restorable(), SnapshotId(1));  // it may still become one
      interrupt(vault, id);
      EXPECT_FALSE(vault.is_under_way(id));
      EXPECT_FALSE(vault.newest());
      EXPECT_FALSE(vault.oldest_restorable());
      EXPECT_THROW(vault.complete(id, at(101)), CheckFailed);
      EXPECT_NO_THROW(vault.abort(id));  // it is gone already
      EXPECT_NO_THROW(vault.verified(id, at(102)));
      EXPECT_THAT(vault.take_gone(),
                  ElementsAre(testing::Field(&CheckpointVault::Gone::why, SaveEnd::interrupted)));
    }
  }
}

TEST(CheckpointVault, a_complete_save_is_not_interrupted_any_more) {
  CheckpointVault vault = one(LevelKind::store);
  const SaveId id = save(vault, 0, 1);
  EXPECT_THROW(vault.abort(id), CheckFailed);
  EXPECT_THROW(vault.complete(id, at(102)), CheckFailed);
}

TEST(CheckpointVault, the_newest_step_wins_then_the_faster_level) {
  CheckpointVault vault = all_five();
  save(vault, 3, 2);
  save(vault, 0, 1);
  EXPECT_EQ(vault.newest()->level, 3u);
  save(vault, 2, 2);
  EXPECT_EQ(vault.newest()->level, 2u);
  save(vault, 0, 2);
  const CheckpointVault::Choice best = *vault.newest();
  EXPECT_EQ(best.level, 0u);
  EXPECT_EQ(best.snapshot, SnapshotId(2));
  EXPECT_EQ(best.step, 20);
  EXPECT_EQ(best.taken, at(200));
  EXPECT_EQ(vault.oldest_restorable(), SnapshotId(1));
}

TEST(CheckpointVault, older_saves_beyond_keep_are_dropped_when_a_newer_one_is_complete) {
  CheckpointVault vault = one(LevelKind::store, 2);
  const SaveId first = save(vault, 0, 1);
  save(vault, 0, 2);
  const SaveId third = vault.begin(0, SnapshotId(3), 30, at(300));
  EXPECT_EQ(vault.complete_on(0), 2u);
  EXPECT_THAT(steps_of(vault), ElementsAre(10, 20, 30));  // not before
  vault.complete(third, at(301));
  EXPECT_THAT(steps_of(vault), ElementsAre(20, 30));
  const std::vector<CheckpointVault::Gone> gone = vault.take_gone();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].save, first);
  EXPECT_EQ(gone[0].why, SaveEnd::pushed_out);
  EXPECT_EQ(vault.oldest_restorable(), SnapshotId(2));
}

TEST(CheckpointVault, levels_do_not_push_out_each_other) {
  CheckpointVault vault = all_five(1);
  save(vault, 3, 1);
  save(vault, 0, 2);
  save(vault, 0, 3);
  EXPECT_THAT(steps_of(vault), ElementsAre(10, 30));
}

TEST(CheckpointVault, an_unverified_save_does_not_push_out_the_last_good_one) {
  CheckpointVault vault = one(LevelKind::store, 1, 1h);
  vault.verified(save(vault, 0, 1), at(110));
  const SaveId second = save(vault, 0, 2);
  EXPECT_THAT(steps_of(vault), ElementsAre(10, 20));
  save(vault, 0, 3);
  EXPECT_THAT(steps_of(vault), ElementsAre(10, 20, 30));  // good; next to be known; newest
  save(vault, 0, 4);
  EXPECT_THAT(steps_of(vault), ElementsAre(10, 20, 40));
  vault.verified(second, at(410));
  EXPECT_THAT(steps_of(vault), ElementsAre(20, 40));
  EXPECT_EQ(*vault.copies()[0].verified, at(410));
  EXPECT_EQ(*vault.copies()[0].complete, at(201));
}

TEST(CheckpointVault, saves_of_corrupt_state_go_and_the_good_one_before_is_loaded) {
  CheckpointVault vault = one(LevelKind::store, 1, 1h);
  vault.verified(save(vault, 0, 1), at(110));
  save(vault, 0, 2);
  save(vault, 0, 3);
  const SaveId under_way = vault.begin(0, SnapshotId(4), 40, at(400));
  vault.void_since(at(200));
  EXPECT_EQ(vault.newest()->step, 10);
  EXPECT_FALSE(vault.is_under_way(under_way));

  CheckpointVault unverified = one(LevelKind::store, 1);
  save(unverified, 0, 1);
  save(unverified, 0, 2);
  unverified.void_since(at(200));
  EXPECT_FALSE(unverified.newest());
}

TEST(CheckpointVault, corruption_voids_what_was_taken_at_that_instant_and_not_before) {
  CheckpointVault vault = one(LevelKind::store);
  save(vault, 0, 1);
  vault.void_since(at(100) + 1ns);
  EXPECT_TRUE(vault.newest());
  vault.void_since(at(100));
  EXPECT_FALSE(vault.newest());
}

TEST(CheckpointVault, a_copy_off_site_survives_the_store_and_needs_no_server) {
  CheckpointVault vault = all_five();
  EXPECT_THROW(vault.begin(4, SnapshotId(1), 10, at(100)), CheckFailed);  // nothing to copy
  save(vault, 3, 1);
  const SaveId copy = vault.begin(4, SnapshotId(1), 10, at(100));
  vault.lose_server(0);
  vault.lose_power(1);
  vault.restart_in_place();
  ASSERT_TRUE(vault.is_under_way(copy));
  vault.complete(copy, at(150));
  vault.lose_store("lustre");
  ASSERT_TRUE(vault.newest());
  EXPECT_EQ(vault.newest()->level, 4u);
  vault.lose_store("vault");
  EXPECT_FALSE(vault.newest());
}

TEST(CheckpointVault, a_copy_off_site_is_interrupted_if_its_source_goes) {
  CheckpointVault vault = all_five();
  save(vault, 3, 1);
  const SaveId copy = vault.begin(4, SnapshotId(1), 10, at(100));
  vault.lose_store("lustre");
  EXPECT_FALSE(vault.is_under_way(copy));
  EXPECT_FALSE(vault.newest());
}

TEST(CheckpointVault, what_is_being_copied_off_site_is_not_pushed_out) {
  for (const bool is_aborted : {false, true}) {
    CheckpointVault vault = all_five(1);
    save(vault, 3, 1);
    const SaveId copy = vault.begin(4, SnapshotId(1), 10, at(100));
    save(vault, 3, 2);
    EXPECT_EQ(vault.complete_on(3), 2u);
    if (is_aborted)
      vault.abort(copy);
    else
      vault.complete(copy, at(250));
    EXPECT_EQ(vault.complete_on(3), 1u);
    EXPECT_EQ(vault.complete_on(4), is_aborted ? 0u : 1u);
  }
}

TEST(CheckpointVault, a_server_that_is_no_member_has_no_shard) {
  CheckpointVault vault = one(LevelKind::local_nvme);
  vault.lose_server(3);
  vault.set_member(3, false);
  save(vault, 0, 1);
  vault.lose_server(3);
  EXPECT_TRUE(vault.newest());
  vault.set_member(3, true);
  save(vault, 0, 2);
  vault.lose_server(3);
  EXPECT_EQ(vault.newest()->step, 10);
}

TEST(CheckpointVault, groups_hold_each_rank_once) {
  CheckpointVault vault = one(LevelKind::peer_memory);
  EXPECT_THROW(vault.set_peers(0, {{0, 1}, {2}}), CheckFailed);
  EXPECT_THROW(vault.set_peers(0, {{0, 1}, {1, 2, 3}}), CheckFailed);
  EXPECT_THROW(vault.set_peers(0, {{0, 1}, {2, 3, 4}}), CheckFailed);
  CheckpointVault bare({{"peers", level(LevelKind::peer_memory)}}, 4);
  EXPECT_THROW(bare.begin(0, SnapshotId(0), 0, at(0)), CheckFailed);
}

TEST(PeerGroups, partners_are_under_other_parents) {
  const PeerGroups racks = peer_groups(8, 2, {0, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_EQ(racks.groups, (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_FALSE(racks.is_short);
  const PeerGroups mixed = peer_groups(6, 3, {7, 5, 7, 9, 5, 9});  // sorted: 1 4 | 0 2 | 3 5
  EXPECT_EQ(mixed.groups, (Groups{{0, 1, 3}, {2, 4, 5}}));
  EXPECT_FALSE(mixed.is_short);
}

TEST(PeerGroups, a_remainder_makes_larger_groups_and_a_large_parent_a_shortfall) {
  const PeerGroups seven = peer_groups(7, 2, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ(seven.groups, (Groups{{0, 3, 6}, {1, 4}, {2, 5}}));
  EXPECT_FALSE(seven.is_short);
  EXPECT_FALSE(peer_groups(4, 2, {0, 0, 1, 1}).is_short);
  EXPECT_TRUE(peer_groups(4, 2, {0, 0, 0, 1}).is_short);  // three in one rack, two groups
  EXPECT_TRUE(peer_groups(1, 2, {0}).is_short);           // nobody to share with
}

// Deals every rank to every group and sees whether some way keeps parents apart.
bool can_be_apart(std::size_t rank, const std::vector<std::uint32_t>& parents,
                  std::vector<std::multiset<std::uint32_t>>& groups,
                  const std::vector<std::size_t>& sizes) {
  if (rank == parents.size()) return true;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].size() == sizes[g] || groups[g].contains(parents[rank])) continue;
    groups[g].insert(parents[rank]);
    if (can_be_apart(rank + 1, parents, groups, sizes)) return true;
    groups[g].erase(parents[rank]);
  }
  return false;
}

TEST(PeerGroups, are_apart_whenever_any_grouping_of_these_sizes_is) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream luck(sim::Seed{seed}, "groups");
    const std::size_t group = 2 + luck.below(2), ranks = group + luck.below(7);
    std::vector<std::uint32_t> parents(ranks);
    for (std::uint32_t& parent : parents)
      parent = static_cast<std::uint32_t>(luck.below(2 + luck.below(4)));
    const PeerGroups result = peer_groups(ranks, group, parents);
    std::vector<std::size_t> sizes;
    std::set<std::size_t> seen;
    for (const auto& members : result.groups) {
      sizes.push_back(members.size());
      seen.insert(members.begin(), members.end());
      ASSERT_GE(members.size(), group);
    }
    ASSERT_EQ(seen.size(), ranks);
    std::vector<std::multiset<std::uint32_t>> groups(sizes.size());
    ASSERT_EQ(result.is_short, !can_be_apart(0, parents, groups, sizes));
  }
}

}  // namespace
}  // namespace trainyard::models
