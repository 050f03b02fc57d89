#include <gmock/gmock.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tests/topologies/fabrics.hpp"
#include "topologies/measure.hpp"

/// What fat trees, rails included, make of their input: built as asked, or refused with the nearest
/// valid numbers.
namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;
using testing::HasSubstr;

// Ratios: what is asked, what the nearest whole number of uplinks gives.
struct Ratio {
  std::string name;
  double asked;
  int uplinks;  // 32 NICs down; 0: refused
};
class LeafRatio : public testing::TestWithParam<Ratio> {};
TEST_P(LeafRatio, gives_the_nearest_whole_number_of_uplinks) {
  FabricSpec spec{.hosts_per_leaf = 4,
                  .leaf_oversubscription = GetParam().asked,
                  .leaf_switch = switch_of(96),
                  .spine_switch = switch_of(64)};
  const BuildResult r = build_fat_tree(spec, {.hosts = 16});
  ASSERT_EQ(r.fabric != nullptr, GetParam().uplinks != 0) << text(r.problems);
  if (!r.fabric) return;
  EXPECT_EQ(r.fabric->shape<FatTreeShape>().uplinks_per_leaf, GetParam().uplinks);
  EXPECT_DOUBLE_EQ(measure(*r.fabric).tiers[0].oversubscription, 32.0 / GetParam().uplinks);
}
INSTANTIATE_TEST_SUITE_P(
    FatTree, LeafRatio,
    testing::Values(Ratio{"one", 1.0, 32}, Ratio{"two", 2.0, 16}, Ratio{"four", 4.0, 8},
                    Ratio{"three_is_built_as_32_to_11", 3.0, 11},  // 2.91
                    Ratio{"seven_is_built_as_32_to_5", 7.0, 5},    // 6.4, 8.6 % off
                    Ratio{"twelve_would_be_32_to_3", 12.0, 0},     // 10.7, 11 % off
                    Ratio{"thirty_two", 32.0, 1}, Ratio{"undersubscribed", 0.5, 64}),
    [](const auto& p) { return p.param.name; });

TEST(FatTree, refuses_ratios_that_no_count_comes_near) {
  FabricSpec spec{.hosts_per_leaf = 1,
                  .leaf_oversubscription = 3.0,
                  .leaf_switch = switch_of(64),
                  .spine_switch = switch_of(64)};
  // 4 NICs down: one uplink is 4:1, two are 2:1.
  const BuildResult r = build_fat_tree(spec, {.hosts = 4, .nics = 4});
  ASSERT_EQ(r.problems.size(), 1u);
  EXPECT_EQ(r.problems[0].path, "leaf_oversubscription");
  EXPECT_EQ(r.problems[0].right, "uplinks_per_leaf 1 (4:1) or 2 (2:1)");
}

// What is refused: the field, and the number that would be right.
struct Refusal {
  std::string name;
  std::function<void(FabricSpec&, HostShape&)> change;
  std::string path;
  std::string right;
};
class TreeRefused : public testing::TestWithParam<Refusal> {};
TEST_P(TreeRefused, with_the_nearest_valid_numbers) {
  const SwitchSpec box = switch_of(64);
  FabricSpec spec{.hosts_per_leaf = 4, .leaf_switch = box, .spine_switch = box, .core_switch = box};
  HostShape servers{.hosts = 256};
  ASSERT_TRUE(build_fat_tree(spec, servers).fabric);  // 64 leaves and 32 spines: exactly full
  GetParam().change(spec, servers);
  const BuildResult r = build_fat_tree(spec, servers);
  ASSERT_EQ(r.fabric, nullptr);
  ASSERT_EQ(r.problems.size(), 1u) << text(r.problems);
  EXPECT_EQ(r.problems[0].path, GetParam().path) << text(r.problems);
  EXPECT_THAT(r.problems[0].right, HasSubstr(GetParam().right)) << text(r.problems);
}
INSTANTIATE_TEST_SUITE_P(
    FatTree, TreeRefused,
    testing::Values(
        Refusal{"one_server_too_many_for_two_tiers", [](auto&, auto& h) { h.hosts = 257; }, "tiers",
                "3 tiers, or at most 256 servers"},
        // 8 x 8 = 64 ports and no uplink. 7 servers take 56 and leave 8.
        Refusal{"leaf_without_uplinks", [](auto& s, auto&) { s.hosts_per_leaf = 8; },
                "hosts_per_leaf", "at most 7"},
        // 5 servers: 40 down and 40 up. With 24 up it is 40:24.
        Refusal{"one_to_one_needs_too_many_ports", [](auto& s, auto&) { s.hosts_per_leaf = 5; },
                "leaf_oversubscription", "at least 1.67, or hosts_per_leaf at most 4"},
        Refusal{"more_uplinks_than_ports", [](auto& s, auto&) { s.uplinks_per_leaf = 33; },
                "uplinks_per_leaf", "at most 32, or hosts_per_leaf at most 3"},
        Refusal{"spines_that_do_not_divide",
                [](auto& s, auto&) {
                  s.uplinks_per_leaf = 32;
                  s.spines = 20;
                },
                "spines", "16 or 32 spines"},
        // A ratio adapts to the spines if it can: 1:1 with 20 spines means 40 uplinks (0.8) or 20
        // (1.6).
        Refusal{"ratio_and_spines", [](auto& s, auto&) { s.spines = 20; }, "leaf_oversubscription",
                "uplinks_per_leaf 20 (1.6:1) or 40 (0.8:1)"},
        Refusal{"too_few_spines", [](auto& s, auto&) { s.spines = 16; }, "spines", "at least 32"},
        Refusal{"nic_faster_than_port", [](auto&, auto& h) { h.nic_rate = 800_Gbps; },
                "server.nic_rate", "leaf_switch.port_rate of at least 800 Gb/s"},
        Refusal{"ratio_given_twice",
                [](auto& s, auto&) {
                  s.uplinks_per_leaf = 32;
                  s.leaf_oversubscription = 1.0;
                },
                "leaf_oversubscription", "either"},
        Refusal{"cores_of_two_tiers", [](auto& s, auto&) { s.cores = 4; }, "cores", "tiers 3"},
        // 3 tiers: each of 32 spines takes one cable a leaf and as many up: 32 leaves.
        Refusal{"pod_too_large",
                [](auto& s, auto&) {
                  s.tiers = 3;
                  s.leaves_per_pod = 33;
                },
                "leaves_per_pod", "leaves_per_pod at most 32"},
        // 64 leaves in 2 pods, 32 spines with 32 uplinks each: 2048 cables, so 32 cores; 31 is
        // prime.
        Refusal{"cores_that_cannot_be_cabled",
                [](auto& s, auto&) {
                  s.tiers = 3;
                  s.uplinks_per_spine = 32;
                  s.cores = 31;
                },
                "cores", "16 or 32 cores"},
        Refusal{"too_few_cores",
                [](auto& s, auto&) {
                  s.tiers = 3;
                  s.cores = 16;
                },
                "cores", "at least 32"},
        Refusal{"more_pods_than_core_ports",
                [](auto& s, auto& h) {
                  s.tiers = 3;
                  h.hosts = 64 * 128 + 1;
                },
                "core_switch.ports", "at least 65 ports, or at most 8192 servers"},
        Refusal{"no_servers", [](auto&, auto& h) { h.hosts = 0; }, "server.hosts", "1 or more"},
        Refusal{"a_slip_of_the_keyboard",
                [](auto& s, auto& h) {
                  s.tiers = 3;
                  s.core_switch.ports = 100'000;
                  h.hosts = 10'000'000;
                },
                "server.hosts", "at most 100000000 links"}),
    [](const auto& p) { return p.param.name; });

class RailsRefused : public testing::TestWithParam<Refusal> {};
TEST_P(RailsRefused, with_the_nearest_valid_numbers) {
  FabricSpec spec = rail_spec(FabricKind::rail_optimized, 2, 32);
  HostShape servers{.hosts = 256};
  ASSERT_TRUE(build_fat_tree(spec, servers).fabric);  // 64 leaves and 32 spines: exactly full
  GetParam().change(spec, servers);
  const BuildResult r = build_fat_tree(spec, servers);
  ASSERT_EQ(r.fabric, nullptr);
  ASSERT_EQ(r.problems.size(), 1u) << text(r.problems);
  EXPECT_EQ(r.problems[0].path, GetParam().path) << text(r.problems);
  EXPECT_THAT(r.problems[0].right, HasSubstr(GetParam().right)) << text(r.problems);
}
void rail_only(FabricSpec& s, int tiers) {
  s.kind = FabricKind::rail_only;
  s.tiers = tiers;
}
INSTANTIATE_TEST_SUITE_P(
    Rails, RailsRefused,
    testing::Values(
        Refusal{"rails_that_do_not_divide_the_nics", [](auto& s, auto&) { s.rails = 3; }, "rails",
                "2 or 4"},
        Refusal{"more_rails_than_nics", [](auto& s, auto&) { s.rails = 9; }, "rails", "8"},
        Refusal{"a_unit_without_uplinks", [](auto& s, auto&) { s.hosts_per_leaf = 64; },
                "hosts_per_leaf", "at most 63"},
        // 9 units are 72 leaves; a spine of 64 ports takes 8 units.
        Refusal{"one_server_too_many_for_two_tiers", [](auto&, auto& h) { h.hosts = 257; }, "tiers",
                "3 tiers, or at most 256 servers"},
        Refusal{"pods_of_broken_units",
                [](auto& s, auto&) {
                  s.tiers = 3;
                  s.leaves_per_pod = 12;
                },
                "leaves_per_pod", "8 or 16"},
        Refusal{"fewer_pods_than_servers_need",
                [](auto& s, auto&) {
                  s.tiers = 3;
                  s.leaves_per_pod = 16;
                  s.pods = 3;
                },
                "pods", "at least 4, or at most 192 servers"},
        Refusal{"more_pods_than_core_ports",
                [](auto& s, auto&) {
                  s.tiers = 3;
                  s.pods = 65;
                },
                "core_switch.ports", "at least 65 ports, or at most 64 pods"},
        Refusal{"pods_of_two_tiers", [](auto& s, auto&) { s.pods = 4; }, "pods", "tiers 3"},
        Refusal{"rail_only_with_cores", [](auto& s, auto&) { rail_only(s, 3); }, "tiers", "1 or 2"},
        Refusal{"rail_only_of_one_tier_and_many_units", [](auto& s, auto&) { rail_only(s, 1); },
                "tiers", "2 tiers, or hosts_per_leaf at least 256"},
        Refusal{"rail_only_of_one_tier_too_large",
                [](auto& s, auto& h) {
                  rail_only(s, 1);
                  h.hosts = 65;
                  s.hosts_per_leaf = 65;
                },
                "hosts_per_leaf", "at most 64"},
        Refusal{"spines_of_one_tier",
                [](auto& s, auto& h) {
                  rail_only(s, 1);
                  h.hosts = 32;
                  s.spines = 2;
                },
                "spines", "tiers 2"},
        Refusal{"rail_only_too_large",
                [](auto& s, auto& h) {
                  rail_only(s, 2);
                  h.hosts = 2049;
                },
                "server.hosts", "at most 2048 servers"},
        Refusal{"rails_of_a_fat_tree",
                [](auto& s, auto&) {
                  s.kind = FabricKind::fat_tree;
                  s.rails = 8;
                },
                "rails", "change kind"},
        Refusal{"a_dragonfly_setting", [](auto& s, auto&) { s.groups = 8; }, "groups",
                "change kind"},
        Refusal{"an_uplink_faster_than_its_ports",
                [](auto& s, auto&) {
                  s.uplink_rates = {400_Gbps, 800_Gbps};
                },
                "uplink_rates/1", "at most 400 Gb/s"},
        Refusal{"more_rates_than_uplinks",
                [](auto& s, auto&) {
                  s.uplinks_per_leaf = 1;
                  s.uplink_rates = {400_Gbps, 200_Gbps};
                },
                "uplink_rates", "at most 1 rates, or uplinks_per_leaf at least 2"},
        // 64 links of 200 Gb/s down fill 32 ports of 400, 1:1 takes 32 ports up: one server less.
        Refusal{"a_dual_homed_unit_too_large",
                [](auto& s, auto&) {
                  s.dual_homed = true;
                  s.hosts_per_leaf = 65;
                },
                "leaf_oversubscription", "hosts_per_leaf at most 64"}),
    [](const auto& p) { return p.param.name; });

TEST(FatTree, whatever_is_asked_is_built_within_its_ports_or_refused) {
  int built = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto up_to = [&](int n) { return 1 + static_cast<int>(random() % std::uint64_t(n)); };
    const auto maybe = [&](int n) -> std::optional<int> {
      if (random() % 3 != 0) return {};
      return up_to(n);
    };
    const BytesPerSecond rates[] = {200_Gbps, 400_Gbps, 800_Gbps};
    const auto box = [&] { return switch_of(1 + up_to(24), rates[random() % 3]); };
    const FabricKind kinds[] = {FabricKind::fat_tree, FabricKind::fat_tree,
                                FabricKind::rail_optimized, FabricKind::rail_only};
    FabricSpec spec{.kind = kinds[random() % 4],
                    .tiers = 1 + up_to(2),
                    .hosts_per_leaf = up_to(6),
                    .leaf_switch = box(),
                    .spine_switch = box(),
                    .core_switch = box()};
    if (spec.kind == FabricKind::rail_only) spec.tiers = up_to(2);
    if (spec.kind != FabricKind::fat_tree) spec.rails = maybe(3);
    if (random() % 3 == 0) spec.dual_homed = true;
    if (random() % 4 == 0)
      for (int n = up_to(3); n > 0; --n) spec.uplink_rates.push_back(rates[random() % 3]);
    spec.uplinks_per_leaf = maybe(8);
    if (!spec.uplinks_per_leaf && random() % 2) spec.leaf_oversubscription = 0.5 * up_to(8);
    spec.spines = maybe(6);
    if (spec.tiers == 3) {
      spec.leaves_per_pod = maybe(6);
      spec.uplinks_per_spine = maybe(6);
      if (!spec.uplinks_per_spine && random() % 2) spec.spine_oversubscription = 0.5 * up_to(8);
      spec.cores = maybe(8);
      spec.pods = maybe(8);
    }
    const HostShape servers{.hosts = up_to(40),
                            .gpus = 2,
                            .nics = up_to(4),
                            .nic_rate = rates[random() % 3],
                            .storage_ports = up_to(3) - 1};
    const BuildResult r = build_fat_tree(spec, servers);
    ASSERT_EQ(r.fabric == nullptr, !r.problems.empty());
    for (const Problem& p : r.problems) {
      EXPECT_NE(p.path, "");
      EXPECT_NE(p.what, "");
      EXPECT_NE(p.right, "");
    }
    ++(r.fabric ? built : refused);
    if (!r.fabric) continue;
    const Fabric& f = *r.fabric;
    const std::pair<VertexKind, SwitchSpec> boxes[] = {{VertexKind::leaf, spec.leaf_switch},
                                                       {VertexKind::spine, spec.spine_switch},
                                                       {VertexKind::core, spec.core_switch}};
    for (const auto& [kind, sw] : boxes)
      for (std::size_t i = 0; i < f.count(kind); ++i) {
        BytesPerSecond rate{};
        for (const LinkId l : f.out_links(f.vertex(kind, i))) {
          EXPECT_LE(f.link(l).capacity.value(), sw.port_rate.value());
          rate += f.link(l).capacity;
        }
        EXPECT_LE(rate.value(), sw.ports * sw.port_rate.value() * (1 + 1e-9))
            << f.name(f.vertex(kind, i));
      }
    const MeasuredFabric m = measure(f);
    for (const TierReport& t : m.tiers) EXPECT_GE(t.ports_free, 0);
    const FatTreeShape& t = f.shape<FatTreeShape>();
    if (spec.leaf_oversubscription) {
      const double down = double(t.hosts_per_leaf) * t.nics_per_host / t.rails / t.ports_per_nic *
                          servers.nic_rate.value();
      double up = 0;
      for (int u = 0; u < t.uplinks_per_leaf; ++u)
        up += f.link(f.leaf_uplink(0, u)).capacity.value();
      EXPECT_NEAR(down / up, *spec.leaf_oversubscription, 0.1001 * *spec.leaf_oversubscription);
    }
    EXPECT_EQ(t.rails, spec.kind == FabricKind::fat_tree ? 1 : spec.rails.value_or(servers.nics));
    EXPECT_EQ(t.pods, spec.pods.value_or(t.pods));
    EXPECT_EQ(t.ports_per_nic, spec.dual_homed ? 2 : 1);
    EXPECT_EQ(t.spines_per_pod, spec.spines.value_or(t.spines_per_pod));
    EXPECT_EQ(t.cores(), spec.cores.value_or(t.cores()));
    EXPECT_EQ(t.uplinks_per_leaf, spec.uplinks_per_leaf.value_or(t.uplinks_per_leaf));
    EXPECT_EQ(t.leaves_per_pod, spec.leaves_per_pod.value_or(t.leaves_per_pod));
    EXPECT_EQ(t.uplinks_per_spine, spec.uplinks_per_spine.value_or(t.uplinks_per_spine));
  }
  EXPECT_GT(built, 300);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace trainyard::topologies
