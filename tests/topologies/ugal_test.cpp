#include <gmock/gmock.h>

#include <cmath>
#include <map>

#include "tests/topologies/direct_fabrics.hpp"
#include "topologies/dragonfly_routes.hpp"
#include "topologies/dragonfly_ugal.hpp"

namespace trainyard::topologies {
namespace {

using namespace direct_fabrics;

TEST(Ugal, one_pair_splits_where_both_ways_cost_the_same) {
  // A direct link against a detour of two, all of capacity 1: s^64 = 2 (1-s)^64.
  std::vector<SplitTraffic> t{{.minimal = {{0, 5.0}}, .indirect = {{1, 5.0}, {2, 5.0}}}};
  balance(t, {0, 0, 0}, {1, 1, 1});
  EXPECT_NEAR(t[0].minimal_share, 1.0 / (1.0 + std::pow(2.0, -1.0 / 64)), 1e-5);
  // Twice the traffic, the same split; a direct link twice as fast takes nearly two thirds.
  t[0].minimal[0].load = t[0].indirect[0].load = t[0].indirect[1].load = 10.0;
  balance(t, {0, 0, 0}, {1, 1, 1});
  EXPECT_NEAR(t[0].minimal_share, 1.0 / (1.0 + std::pow(2.0, -1.0 / 64)), 1e-5);
  balance(t, {0, 0, 0}, {2, 1, 1});
  EXPECT_NEAR(t[0].minimal_share, 2.0 / (2.0 + std::pow(2.0, -1.0 / 64)), 1e-5);
}

TEST(Ugal, equal_ways_go_minimal_and_loaded_ones_are_left) {
  // The detour shares its links with another load: only when the direct link is busier.
  std::vector<SplitTraffic> t{{.minimal = {{0, 1.0}}, .indirect = {{1, 1.0}, {2, 1.0}}}};
  balance(t, {0, 1.5, 0}, {1, 1, 1});
  EXPECT_EQ(t[0].minimal_share, 1.0);
  balance(t, {5, 0, 0}, {1, 1, 1});
  EXPECT_EQ(t[0].minimal_share, 0.0);
}

TEST(Ugal, at_the_end_no_pair_would_gain_by_shifting) {
  std::mt19937_64 random(11);
  for (int n = 0; n < 200; ++n) {
    SCOPED_TRACE(n);
    const std::size_t links = 4 + random() % 12;
    const auto unit = [&] { return double(random() >> 11) * 0x1p-53; };
    std::vector<double> capacity(links), base(links);
    for (std::size_t l = 0; l < links; ++l) {
      capacity[l] = 0.5 + unit();
      base[l] = random() % 3 == 0 ? unit() : 0.0;
    }
    std::vector<SplitTraffic> traffic(1 + random() % 6);
    for (SplitTraffic& t : traffic)
      for (std::uint32_t l = 0; l < links; ++l) {
        const std::uint64_t dice = random() % 6;
        if (dice <= 1) t.minimal.push_back({l, unit()});
        if (dice >= 1 && dice <= 3) t.indirect.push_back({l, unit()});
      }
    balance(traffic, base, capacity);

    std::vector<double> load = base;
    for (const SplitTraffic& t : traffic) {
      EXPECT_GE(t.minimal_share, 0.0);
      EXPECT_LE(t.minimal_share, 1.0);
      for (const LinkLoad& l : t.minimal) load[l.link] += t.minimal_share * l.load;
      for (const LinkLoad& l : t.indirect) load[l.link] += (1 - t.minimal_share) * l.load;
    }
    double busiest = 0.0;
    for (std::size_t l = 0; l < links; ++l) busiest = std::max(busiest, load[l] / capacity[l]);
    if (busiest == 0.0) continue;
    // What the links that differ cost, as a utilisation: the 64th root.
    for (const SplitTraffic& t : traffic) {
      std::map<std::uint32_t, double> gain;
      for (const LinkLoad& l : t.minimal) gain[l.link] += l.load;
      for (const LinkLoad& l : t.indirect) gain[l.link] -= l.load;
      double minimal = 0.0, indirect = 0.0;
      for (const auto& [link, g] : gain)
        (g > 0.0 ? minimal : indirect) +=
            std::abs(g) * std::pow(load[link] / capacity[link] / busiest, 64);
      minimal = std::pow(minimal, 1.0 / 64);
      indirect = std::pow(indirect, 1.0 / 64);
      if (t.minimal_share > 0.0) {
        EXPECT_LE(minimal, indirect + 0.003);
      }
      if (t.minimal_share < 1.0) {
        EXPECT_GE(minimal, indirect - 0.003);
      }
    }
  }
}

/// Uniform traffic by router instead of by NIC: one NIC of each stands for all of its p. NIC links
/// are left out; they allow a throughput of 1.
double uniform_throughput(const Fabric& f, RoutingKind kind, int p) {
  std::vector<Demand> traffic;
  const std::size_t n = f.nic_count();
  for (std::size_t i = 0; i < n; i += std::size_t(p))
    for (std::size_t j = 0; j < n; j += std::size_t(p))
      if (i != j) traffic.push_back({NicId(i), NicId(j), double(p * p) / double(n - 1)});
  Router router(f, kind, 1, 1);
  router.adapt_to(traffic);
  std::vector<double> load(f.links().size(), 0.0);
  for (const Demand& d : traffic)
    router.for_each_load(d.from, d.to, 0, d.rate,
                         [&](LinkId l, double w) { load[l.index()] += w; });
  double busiest = 1.0;
  for (std::size_t l = f.first_trunk().index(); l < load.size(); ++l)
    busiest = std::max(busiest, load[l]);
  return 1.0 / busiest;
}

double shift_throughput(const Fabric& f, RoutingKind kind, std::size_t shift) {
  Router router(f, kind, 1, 1);
  const auto traffic = shifted(f, shift);
  router.adapt_to(traffic);
  return throughput(router, traffic, 400_Gbps);
}

// docs/models/dragonfly.md has the derivations.
class Canonical : public testing::TestWithParam<Arrangement> {};

TEST_P(Canonical, next_group_traffic_of_1056_hosts) {
  const auto f = dragonfly(4, 8, 4, 33, GetParam());
  EXPECT_NEAR(shift_throughput(*f, RoutingKind::minimal, 32), 1.0 / 32, 1e-12);
  EXPECT_NEAR(shift_throughput(*f, RoutingKind::valiant, 32), 31.0 / 64, 1e-12);
  const double ugal = shift_throughput(*f, RoutingKind::ugal, 32);
  EXPECT_LE(ugal, 33.0 / 64 + 1e-9);  // as much as the global links allow
  EXPECT_GE(ugal, 31.0 / 64);         // as Valiant
  // Absolute: minimal traffic would load the local links towards a gateway that carry Valiant's.
  if (GetParam() == Arrangement::palm_tree) {
    EXPECT_GE(ugal, 0.98 * 33.0 / 64);
  }
}

TEST_P(Canonical, uniform_traffic_of_1056_hosts) {
  const auto f = dragonfly(4, 8, 4, 33, GetParam());
  const double minimal = uniform_throughput(*f, RoutingKind::minimal, 4);
  const double ugal = uniform_throughput(*f, RoutingKind::ugal, 4);
  EXPECT_DOUBLE_EQ(minimal, 1.0);
  EXPECT_DOUBLE_EQ(ugal, 1.0);
  EXPECT_NEAR(uniform_throughput(*f, RoutingKind::valiant, 4), 1055.0 / 2048, 1e-9);
}

TEST_P(Canonical, the_shift_by_h_groups_that_valiant_does_not_spread) {
  // At an intermediate group the h flows that arrive at one router all leave by the next one.
  const auto f = dragonfly(4, 8, 4, 33, GetParam());
  const double valiant = shift_throughput(*f, RoutingKind::valiant, 4 * 32);
  EXPECT_NEAR(valiant, 31.0 / 160, 1e-12);
  // UGAL: 32 s on the direct link, 160 (1-s) / 31 on the local one: s = 5/36, 9/40 at best.
  const double ugal = shift_throughput(*f, RoutingKind::ugal, 4 * 32);
  EXPECT_LE(ugal, 9.0 / 40 + 1e-9);
  EXPECT_GE(ugal, 0.98 * 9.0 / 40);
}

INSTANTIATE_TEST_SUITE_P(Ugal, Canonical,
                         testing::Values(Arrangement::absolute, Arrangement::palm_tree),
                         [](const auto& p) {
                           return p.param == Arrangement::absolute ? "absolute" : "palm_tree";
                         });

TEST(Ugal, rings_through_one_global_link) {
  // 72 hosts, 8 rings of 9, ring j over hosts j, j + 8, …: every global link of the rings carries 8
  // edges, so an all-reduce of 1 GiB takes 2 x 8/9 GiB x 8 / (50 GB/s) = 305.4 ms.
  const auto f = dragonfly(2, 4, 2, 9);
  const double share = shift_throughput(*f, RoutingKind::minimal, 8);
  EXPECT_NEAR(share, 1.0 / 8, 1e-12);
  EXPECT_NEAR(2.0 * 8 / 9 * 1073741824 / (share * 50e9) * 1e3, 305.419897, 1e-6);
}

TEST(Ugal, never_worse_than_the_better_of_minimal_and_valiant) {
  std::mt19937_64 random(21);
  const auto f = dragonfly(2, 4, 2, 9);
  for (int n = 0; n < 30; ++n) {
    SCOPED_TRACE(n);
    std::vector<Demand> traffic;
    if (n < 9) {
      traffic = shifted(*f, std::size_t(8 * n + (n == 0)));
    } else {
      std::vector<std::size_t> order(f->nic_count());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t i = 0; i < order.size(); ++i)
        traffic.push_back({NicId(i), NicId(order[i]), 1.0});
    }
    const auto of = [&](RoutingKind kind) {
      Router router(*f, kind, 1, 1);
      router.adapt_to(traffic);
      return throughput(router, traffic, 400_Gbps);
    };
    const double better = std::max(of(RoutingKind::minimal), of(RoutingKind::valiant));
    EXPECT_GE(of(RoutingKind::ugal), 0.93 * better);
  }
}

TEST(Ugal, shares_are_of_pairs_of_groups_and_minimal_until_told_otherwise) {
  const auto f = dragonfly(2, 4, 2, 9, Arrangement::palm_tree);
  const LinkState state(*f);
  DragonflyRoutes routes(*f, state, {RoutingKind::ugal, 1, 1});
  EXPECT_EQ(routes.minimal_share(0, 1), 1.0);
  routes.adapt_to(shifted(*f, 8));
  EXPECT_LT(routes.minimal_share(0, 1), 0.5);
  EXPECT_EQ(routes.minimal_share(0, 2), 1.0);  // no traffic there
  // Every group of the pattern is alike: about 2/g.
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(routes.minimal_share(i, (i + 1) % 9), 2.0 / 9, 0.03) << i;
}

TEST(Ugal, a_slow_direct_link_gets_less_and_repair_brings_it_back) {
  const auto f = dragonfly(2, 4, 2, 9, Arrangement::palm_tree);
  const auto direct = f->find_link("group-0/router-3 -> group-1/router-0");
  ASSERT_TRUE(direct.has_value());
  Router router(*f, RoutingKind::ugal, 1, 1);
  router.adapt_to(shifted(*f, 8));
  const auto on_direct = [&] { return loads_of(router, NicId(0), NicId(8))[*direct]; };
  const double before = on_direct();
  EXPECT_GT(before, 0.1);
  router.change([&](LinkState& s) { s.set_capacity_factor(*direct, 0.5); });
  const double slow = on_direct();
  EXPECT_NEAR(slow, before / 2, 0.15 * before);
  router.set_up(*direct, false);
  EXPECT_EQ(on_direct(), 0.0);
  router.change([&](LinkState& s) {
    s.set_up(*direct, true);
    s.set_capacity_factor(*direct, 1.0);
  });
  EXPECT_DOUBLE_EQ(on_direct(), before);
}

TEST(Ugal, one_hashed_path_in_as_many_goes_minimal_as_the_share_says) {
  const auto f = dragonfly(2, 4, 2, 9, Arrangement::palm_tree);
  Router router(*f, RoutingKind::ugal, 1, 1);
  router.adapt_to(shifted(*f, 8));
  const auto direct = f->find_link("group-0/router-3 -> group-1/router-0");
  const double share = loads_of(router, NicId(0), NicId(8))[*direct];
  std::vector<LinkId> path;
  int minimal = 0;
  for (std::uint64_t label = 0; label < 10000; ++label) {
    ASSERT_TRUE(router.path(NicId(0), NicId(8), label, path));
    minimal += std::find(path.begin(), path.end(), *direct) != path.end() ? 1 : 0;
  }
  // Four standard deviations of a binomial: 4 sqrt(0.2 x 0.8 x 10000) = 160.
  EXPECT_NEAR(minimal, 10000 * share, 170);
}

}  // namespace
}  // namespace trainyard::topologies
