#include <gmock/gmock.h>

#include "tests/topologies/direct_fabrics.hpp"
#include "tests/topologies/dragonfly_twin.hpp"
#include "topologies/bisection.hpp"
#include "topologies/dragonfly.hpp"

namespace trainyard::topologies {
namespace {

using namespace direct_fabrics;
using testing::HasSubstr;

/// The dragonfly+ of radix-k switches (Shpiner et al. 2017): k/2 leaves and k/2 spines a group, k/2
/// NICs a leaf, k/2 global links a spine.
FabricSpec radix(int k, int groups) {
  FabricSpec spec{.kind = FabricKind::dragonfly_plus};
  spec.leaf_switch = spec.spine_switch = box_of(k);
  spec.groups = groups;
  return spec;
}

TEST(DragonflyPlus, of_radix_8_switches) {
  // 16 NICs a group; 16 global links a group, so 17 groups at most: 272 NICs, 136 switches.
  const auto f = built(build_dragonfly_plus(radix(8, 17), single_nic(272)));
  const auto& d = f->shape<DragonflyPlusShape>();
  EXPECT_EQ(d.hosts_per_leaf, 4);
  EXPECT_EQ(d.leaves_per_group, 4);
  EXPECT_EQ(d.spines_per_group, 4);
  EXPECT_EQ(d.global_links_per_router, 4);
  const auto cables = cables_by_kind(*f);
  EXPECT_EQ(f->switch_count(), 136u);
  EXPECT_EQ(cables.at(LinkKind::leaf_spine), 17 * 16);
  EXPECT_EQ(cables.at(LinkKind::global), 17 * 16 / 2);
  for (std::size_t s = 0; s < f->switch_count(); ++s)
    EXPECT_EQ(f->out_links(VertexId(f->first_switch().index() + s)).size(), 8u);
  EXPECT_EQ(f->name(f->edge_of(NicId(271))), "group-16/leaf-3");
  EXPECT_FALSE(build_dragonfly_plus(radix(8, 18), single_nic(272)).fabric);
}

TEST(DragonflyPlus, one_group_is_a_leaf_spine_network) {
  FabricSpec spec = radix(8, 1);
  spec.groups.reset();
  const auto f = built(build_dragonfly_plus(spec, single_nic(16)));
  EXPECT_EQ(f->shape<DragonflyPlusShape>().groups, 1);
  EXPECT_FALSE(cables_by_kind(*f).contains(LinkKind::global));
  std::vector<HostId> low, high;
  for (std::size_t h = 0; h < 16; ++h) (h < 8 ? low : high).push_back(HostId(h));
  EXPECT_DOUBLE_EQ(max_flow(*f, low, high) / 400_Gbps, 8.0);  // 1:1
}

struct Refusal {
  const char* name;
  void (*spoil)(FabricSpec&, HostShape&);
  const char* path;
  const char* what;
  const char* right;
};
class PlusRefused : public testing::TestWithParam<Refusal> {};
TEST_P(PlusRefused, with_the_nearest_valid_numbers) {
  FabricSpec spec = radix(8, 17);
  HostShape servers = single_nic(272);
  GetParam().spoil(spec, servers);
  const BuildResult r = build_dragonfly_plus(spec, servers);
  ASSERT_FALSE(r.fabric);
  ASSERT_EQ(r.problems.size(), 1u) << text_of(r.problems);
  EXPECT_EQ(r.problems[0].path, GetParam().path);
  EXPECT_THAT(r.problems[0].what, HasSubstr(GetParam().what));
  EXPECT_THAT(r.problems[0].right, HasSubstr(GetParam().right));
}
INSTANTIATE_TEST_SUITE_P(
    DragonflyPlus, PlusRefused,
    testing::Values(
        Refusal{"too_many_groups", [](FabricSpec& s, HostShape&) { s.groups = 18; }, "groups",
                "18 groups need 17 global links a group, it has 4 x 4 = 16", "at most 17"},
        Refusal{"too_few_groups", [](FabricSpec& s, HostShape&) { s.groups = 16; }, "groups",
                "hold 256 servers, there are 272", "at least 17"},
        Refusal{"a_full_leaf", [](FabricSpec& s, HostShape&) { s.hosts_per_leaf = 5; },
                "hosts_per_leaf", "5 ports down and 5 up, it has 8", "hosts_per_leaf at most 4"},
        Refusal{"spines_that_do_not_divide",
                [](FabricSpec& s, HostShape&) {
                  s.uplinks_per_leaf = 4;
                  s.spines_per_group = 3;
                },
                "spines_per_group", "3 spines do not divide the 4 uplinks", "2 or 4"},
        Refusal{"a_full_spine",
                [](FabricSpec& s, HostShape&) {
                  s.leaves_per_group = 5;
                  s.global_links_per_router = 4;
                },
                "leaves_per_group", "5 ports down and 4 global, it has 8",
                "leaves_per_group at most 4, or global_links_per_router at most 3"},
        Refusal{"a_ratio_that_cannot_be",
                [](FabricSpec& s, HostShape&) { s.leaf_oversubscription = 2.6; },
                "leaf_oversubscription", "within 10 % of 2.6:1", "uplinks_per_leaf 1 or 2"}),
    [](const auto& p) { return p.param.name; });

class DragonflyPlusSeeds : public testing::TestWithParam<int> {};
TEST_P(DragonflyPlusSeeds, routes_are_what_the_definition_says) {
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t seed = std::uint64_t(GetParam()) * 1000 + std::uint64_t(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    dragonfly_twin::check_routes(random, true);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(DragonflyPlus, DragonflyPlusSeeds, testing::Range(1, 6));

TEST(DragonflyPlus, throughput_of_uniform_and_of_next_group_traffic) {
  // Minimal, uniform: a global link carries 16 x 16 / 271 = 0.945 of the 272 NICs' rate: full rate.
  // Next group: 16 NICs over one link, 1/16; Valiant over 15 other groups: 2 x 16 / 15 on each
  // global link, 15/32. At an intermediate group no cable up or down carries more than that.
  const auto f = built(build_dragonfly_plus(radix(8, 17), single_nic(272)));
  const Router minimal(*f, RoutingKind::minimal, 1, 1);
  const Router valiant(*f, RoutingKind::valiant, 1, 1);
  EXPECT_NEAR(throughput(minimal, uniform(*f), 400_Gbps), 1.0, 1e-12);
  EXPECT_NEAR(throughput(minimal, shifted(*f, 16), 400_Gbps), 1.0 / 16, 1e-12);
  EXPECT_NEAR(throughput(valiant, shifted(*f, 16), 400_Gbps), 15.0 / 32, 1e-12);
}

}  // namespace
}  // namespace trainyard::topologies
