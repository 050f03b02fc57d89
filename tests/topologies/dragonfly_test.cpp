#include "topologies/dragonfly.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/topologies/direct_fabrics.hpp"
#include "tests/topologies/dragonfly_twin.hpp"
#include "topologies/bisection.hpp"
#include "topologies/dragonfly_cables.hpp"

namespace trainyard::topologies {
namespace {

using namespace direct_fabrics;
using testing::HasSubstr;

std::vector<HostId> hosts(std::size_t first, std::size_t end) {
  std::vector<HostId> out;
  for (std::size_t h = first; h < end; ++h) out.push_back(HostId(h));
  return out;
}

TEST(Dragonfly, the_canonical_one_of_1056_hosts) {
  // p = 4, a = 8, h = 4, g = a h + 1 = 33.
  const auto f = dragonfly(4, 8, 4, 33);
  EXPECT_EQ(f->host_count(), 1056u);
  EXPECT_EQ(f->count(VertexKind::router), 264u);
  const auto cables = cables_by_kind(*f);
  EXPECT_EQ(cables.at(LinkKind::nic_leaf), 1056);
  EXPECT_EQ(cables.at(LinkKind::local), 33 * 8 * 7 / 2);  // 924
  EXPECT_EQ(cables.at(LinkKind::global), 33 * 32 / 2);    // 528: one for each pair of groups
  EXPECT_EQ(switch_diameter(*f, 264), 3);                 // local, global, local
  for (std::size_t r = 0; r < 264; ++r)                   // every port of 15 is used
    EXPECT_EQ(f->out_links(f->vertex(VertexKind::router, r)).size(), 15u);
  EXPECT_EQ(f->name(f->edge_of(NicId(1055))), "group-32/router-7");
}

TEST(Dragonfly, bisection_of_the_canonical_one) {
  // 16 groups against 16: 16 x 16 direct links, and 16 by way of the group left out.
  const auto f = dragonfly(4, 8, 4, 33);
  const BytesPerSecond rate = max_flow(*f, hosts(0, 512), hosts(544, 1056));
  EXPECT_DOUBLE_EQ(rate / 400_Gbps, 16 * 16 + 16);
  // With 32 groups the halves are whole: (g/2)^2 links and 32 ports more, one for each group to
  // its opposite: every one of the 16 pairs of opposites lies across.
  const auto even = dragonfly(4, 8, 4, 32);
  EXPECT_EQ(cables_by_kind(*even).at(LinkKind::global), 32 * 32 / 2);
  EXPECT_DOUBLE_EQ(max_flow(*even, hosts(0, 512), hosts(512, 1024)) / 400_Gbps, 16 * 16 + 16);
}

TEST(Dragonfly, parallel_links_where_groups_are_few) {
  // 4 groups of 4 routers x 3 global links: 12 ports over 3 others, 4 cables a pair.
  const auto f = dragonfly(1, 4, 3, 4);
  EXPECT_EQ(cables_by_kind(*f).at(LinkKind::global), 4 * 3 / 2 * 4);
  // The cables of a pair end at different routers.
  const GlobalCables c(4, 4, 3, Arrangement::absolute);
  std::set<int> routers;
  for (int n = 0; n < 4; ++n) routers.insert(c.cable(0, 3, n).router_here);
  EXPECT_EQ(routers.size(), 4u);
}

TEST(Dragonfly, arrangements_of_the_papers) {
  // 9 groups of 4 routers with 2 ports. Absolute: group 0's port 4 (router 2) leads to group 5,
  // and that one's port 0 (router 0) back.
  const GlobalCables absolute(9, 4, 2, Arrangement::absolute);
  EXPECT_EQ(absolute.cable(0, 5, 0).router_here, 2);
  EXPECT_EQ(absolute.cable(0, 5, 0).router_there, 0);
  // Palm-tree: port k of group i to group i-k-1. From 0 to 5 = 0-3-1 mod 9: port 3, router 1; back
  // 0 = 5-4-1: port 4, router 2.
  const GlobalCables palm(9, 4, 2, Arrangement::palm_tree);
  EXPECT_EQ(palm.cable(0, 5, 0).router_here, 1);
  EXPECT_EQ(palm.cable(0, 5, 0).router_there, 2);
  // Palm-tree looks the same from every group, absolute does not.
  for (int i = 0; i < 9; ++i) EXPECT_EQ(palm.cable(i, (i + 5) % 9, 0).router_here, 1);
  EXPECT_NE(absolute.cable(4, 0, 0).router_here, absolute.cable(0, 5, 0).router_here);
}

TEST(Dragonfly, global_cables_use_each_port_once_and_each_pair_equally_often) {
  for (const Arrangement arrangement : {Arrangement::absolute, Arrangement::palm_tree})
    for (int routers = 1; routers <= 4; ++routers)
      for (int h = 1; h <= 4; ++h)
        for (int g = 1; g <= routers * h + 1; ++g) {
          SCOPED_TRACE(std::string(name_of(arrangement)) + " " + std::to_string(routers) + " x " +
                       std::to_string(h) + ", groups " + std::to_string(g));
          const GlobalCables c(g, routers, h, arrangement);
          std::map<std::size_t, std::set<std::pair<int, int>>> ends;  // by index: group, router
          std::map<std::pair<int, int>, int> ports;
          std::set<int> multiplicities;
          for (int i = 0; i < g; ++i)
            for (int j = 0; j < g; ++j) {
              if (i == j) continue;
              ASSERT_EQ(c.between(i, j), c.between(j, i));
              ASSERT_GE(c.between(i, j), 1);
              multiplicities.insert(c.between(i, j));
              for (int n = 0; n < c.between(i, j); ++n) {
                const auto here = c.cable(i, j, n), there = c.cable(j, i, n);
                ASSERT_EQ(here.index, there.index);
                ASSERT_EQ(here.router_here, there.router_there);
                ASSERT_LT(here.index, c.count());
                ends[here.index].insert({i, here.router_here});
                ++ports[{i, here.router_here}];
              }
            }
          ASSERT_EQ(ends.size(), c.count());  // no gaps
          for (const auto& [index, two] : ends) ASSERT_EQ(two.size(), 2u);
          int used = 0;
          for (const auto& [router, n] : ports) {
            ASSERT_LE(n, h);
            used += n;
          }
          // Every port is used, but one a group where they do not pair off.
          const int left = g < 2 ? 0 : routers * h % (g - 1);
          const int free = g < 2 ? routers * h : left % 2 == 1 && g % 2 == 1 ? 1 : 0;
          ASSERT_EQ(used, g * (routers * h - free));
          if (g < 2) continue;
          ASSERT_LE(multiplicities.size(), 2u);
          ASSERT_LE(*multiplicities.rbegin(), *multiplicities.begin() + 1);
          ASSERT_EQ(multiplicities.size() == 2, left > (g % 2));  // with g odd one port is too few
        }
}

TEST(Dragonfly, what_is_left_open_is_balanced) {
  FabricSpec spec{.kind = FabricKind::dragonfly};
  spec.router_switch = box_of(64);
  const HostShape servers{.hosts = 128, .gpus = 8, .nics = 8};
  // From the ports alone: 4 p - 1 <= 64, so p = h = 16, a = 32: 512 NICs a group, two groups.
  auto f = built(build_dragonfly(spec, servers));
  DragonflyShape d = f->shape<DragonflyShape>();
  EXPECT_EQ(d.nics_per_router, 16);
  EXPECT_EQ(d.routers_per_group, 32);
  EXPECT_EQ(d.global_links_per_router, 16);
  EXPECT_EQ(d.groups, 2);
  EXPECT_EQ(cables_by_kind(*f).at(LinkKind::global), 512);  // every port of both
  EXPECT_EQ(f->spec().groups, 2);                           // the input as built
  // From p: h = p, a = 2 p.
  spec.nics_per_router = 4;
  d = built(build_dragonfly(spec, servers))->shape<DragonflyShape>();
  EXPECT_EQ(d.routers_per_group, 8);
  EXPECT_EQ(d.global_links_per_router, 4);
  EXPECT_EQ(d.groups, 32);  // 1024 NICs, 32 a group
  // A server of 8 NICs spans two routers of 4.
  f = built(build_dragonfly(spec, servers));
  EXPECT_EQ(f->name(f->edge_of(NicId(3))), "group-0/router-0");
  EXPECT_EQ(f->name(f->edge_of(NicId(4))), "group-0/router-1");
}

TEST(Dragonfly, fast_ports_split_for_slow_nics) {
  // 16 NICs of 400 Gb/s on 8 ports of 800: 8 + 7 + 4 = 19 ports.
  FabricSpec spec = dragonfly_spec(16, 8, 4, 3);
  spec.router_switch = box_of(19, 800_Gbps);
  built(build_dragonfly(spec, single_nic(100)));
  spec.router_switch.ports = 18;
  EXPECT_FALSE(build_dragonfly(spec, single_nic(100)).fabric);
}

struct Refusal {
  const char* name;
  void (*spoil)(FabricSpec&, HostShape&);
  const char* path;
  const char* what;
  const char* right;
};
class Refused : public testing::TestWithParam<Refusal> {};
TEST_P(Refused, with_the_nearest_valid_numbers) {
  FabricSpec spec = dragonfly_spec(4, 8, 4, 33);
  HostShape servers = single_nic(1056);
  GetParam().spoil(spec, servers);
  const BuildResult r = build_dragonfly(spec, servers);
  ASSERT_FALSE(r.fabric);
  ASSERT_EQ(r.problems.size(), 1u) << text_of(r.problems);
  EXPECT_EQ(r.problems[0].path, GetParam().path);
  EXPECT_THAT(r.problems[0].what, HasSubstr(GetParam().what));
  EXPECT_THAT(r.problems[0].right, HasSubstr(GetParam().right));
}
INSTANTIATE_TEST_SUITE_P(
    Dragonfly, Refused,
    testing::Values(
        Refusal{"too_many_groups", [](FabricSpec& s, HostShape&) { s.groups = 34; }, "groups",
                "34 groups need 33 global links a group, it has 8 x 4 = 32",
                "at most 33, or global_links_per_router at least 5"},
        Refusal{"too_few_groups", [](FabricSpec& s, HostShape&) { s.groups = 32; }, "groups",
                "hold 1024 NICs, the servers have 1056", "at least 33"},
        Refusal{"too_few_ports", [](FabricSpec& s, HostShape&) { s.router_switch.ports = 14; },
                "nics_per_router", "4 ports for servers, 7 local and 4 global, it has 14",
                "nics_per_router at most 3, or routers_per_group at most 7, or "
                "global_links_per_router at most 3, or a router of at least 15 ports"},
        Refusal{"doubled_local_links", [](FabricSpec& s, HostShape&) { s.local_links = 2; },
                "nics_per_router", "14 local", "routers_per_group at most 4"},
        Refusal{"more_servers_than_groups_can_be_joined",
                [](FabricSpec& s, HostShape& h) {
                  s.groups.reset();
                  h.hosts = 1057;
                },
                "server.hosts", "34 groups need 33", "global_links_per_router at least 5"},
        Refusal{"a_nic_too_fast", [](FabricSpec&, HostShape& h) { h.nic_rate = 800_Gbps; },
                "server.nic_rate", "does not fit a port of 400 Gb/s", "router_switch.port_rate"},
        Refusal{"no_routers", [](FabricSpec& s, HostShape&) { s.routers_per_group = 0; },
                "routers_per_group", "is 0", "1 or more"}),
    [](const auto& p) { return p.param.name; });

TEST(Dragonfly, storage_is_spread_over_the_routers) {
  FabricSpec spec = dragonfly_spec(2, 4, 2, 9);
  HostShape servers = single_nic(72);
  servers.storage_ports = 4;
  EXPECT_FALSE(build_dragonfly(spec, servers).fabric);  // no port free
  spec.router_switch.ports += 1;
  const auto f = built(build_dragonfly(spec, servers));
  EXPECT_EQ(f->name(f->edge_of(f->storage_port(0))), "group-0/router-0");
  EXPECT_EQ(f->name(f->edge_of(f->storage_port(3))), "group-6/router-3");  // 3 x 36 / 4 = 27
}

TEST(Dragonfly, names_lead_back) {
  std::mt19937_64 random(5);
  for (const bool is_plus : {false, true}) {
    const auto f = dragonfly_twin::any_dragonfly(random, is_plus);
    for (std::size_t v = 0; v < f->vertex_count(); ++v)
      EXPECT_EQ(f->find_vertex(f->name(VertexId(v))), VertexId(v));
    for (std::size_t l = 0; l < f->links().size(); ++l)
      EXPECT_EQ(f->find_link(f->name(LinkId(l))), LinkId(l)) << f->name(LinkId(l));
  }
}

TEST(Dragonfly, every_cable_is_two_links_the_even_one_from_the_lower_number) {
  std::mt19937_64 random(6);
  for (int n = 0; n < 40; ++n) {
    const auto f = dragonfly_twin::any_dragonfly(random, n % 2 == 0);
    for (std::size_t l = 0; l < f->links().size(); l += 2) {
      const Link &up = f->link(LinkId(l)), &down = f->link(LinkId(l + 1));
      EXPECT_EQ(up.from, down.to);
      EXPECT_EQ(up.to, down.from);
      EXPECT_LT(up.from, up.to);
      EXPECT_EQ(up.capacity, down.capacity);
      const bool is_global = up.kind == LinkKind::global;
      const bool is_trunk = l >= f->first_trunk().index();
      EXPECT_EQ(is_global, is_trunk && f->pod_of(up.from) != f->pod_of(up.to));
    }
  }
}

class DragonflySeeds : public testing::TestWithParam<int> {};
TEST_P(DragonflySeeds, routes_are_what_the_definition_says) {
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t seed = std::uint64_t(GetParam()) * 1000 + std::uint64_t(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    dragonfly_twin::check_routes(random, false);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Dragonfly, DragonflySeeds, testing::Range(1, 6));

TEST(Dragonfly, hashed_paths_use_the_parallel_links_evenly) {
  // Two groups, 32 cables between them, one pair of NICs: 3200 labels, 100 a cable, and a
  // chi-square of 31 degrees below its once-in-10,000 value of 68.
  const auto f = dragonfly(4, 8, 4, 2);
  const Router router(*f, RoutingKind::ecmp, 3, 1);
  std::map<LinkId, int> uses;
  std::vector<LinkId> path;
  for (std::uint64_t label = 0; label < 3200; ++label) {
    ASSERT_TRUE(router.path(NicId(0), NicId(40), label, path));
    for (const LinkId l : path)
      if (f->link(l).kind == LinkKind::global) ++uses[l];
  }
  ASSERT_EQ(uses.size(), 32u);
  double chi_square = 0.0;
  for (const auto& [l, n] : uses) chi_square += (n - 100.0) * (n - 100.0) / 100.0;
  EXPECT_LT(chi_square, 68.0);
}

TEST(Dragonfly, a_pair_that_lost_its_only_link_goes_around_if_it_may) {
  const auto f = dragonfly(2, 4, 2, 9);
  for (const RoutingKind kind : {RoutingKind::minimal, RoutingKind::ecmp, RoutingKind::spray,
                                 RoutingKind::valiant, RoutingKind::ugal}) {
    SCOPED_TRACE(std::string(name_of(kind)));
    Router router(*f, kind, 1, 1);
    const auto direct = f->find_link("group-0/router-2 -> group-5/router-0");
    ASSERT_TRUE(direct.has_value());
    router.set_up(*direct, false);
    const NicId from(0), to(41);  // group 0 router 0, group 5 router 0
    const bool may = kind != RoutingKind::minimal && kind != RoutingKind::ecmp;
    EXPECT_EQ(router.has_path(from, to), may);
    EXPECT_TRUE(router.has_path(to, from));  // the way back is another link
    EXPECT_EQ(router.cut(from, to), may ? std::vector<LinkId>{} : std::vector<LinkId>{*direct});
    router.set_up(*direct, true);
    EXPECT_TRUE(router.has_path(from, to));
  }
}

}  // namespace
}  // namespace trainyard::topologies
