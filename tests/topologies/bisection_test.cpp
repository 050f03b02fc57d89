#include "topologies/bisection.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <limits>

#include "sim/check.hpp"
#include "tests/topologies/fabrics.hpp"

namespace trainyard::topologies {
namespace {

using namespace testing_fabrics;

struct Case {
  std::string name;
  int leaves, hosts_per_leaf, spines;
  double nic_rates;  // crossing, in units of one NIC
};
class LeafSpineBisection : public testing::TestWithParam<Case> {};
TEST_P(LeafSpineBisection, is_counted_by_hand) {
  const auto f = leaf_spine(GetParam().leaves, GetParam().hosts_per_leaf, GetParam().spines);
  const Bisection b = bisection(*f);
  EXPECT_DOUBLE_EQ(b.rate.value(), GetParam().nic_rates * 50e9);
  EXPECT_DOUBLE_EQ(b.of_injection,
                   GetParam().nic_rates / (GetParam().leaves * GetParam().hosts_per_leaf / 2));
}
INSTANTIATE_TEST_SUITE_P(
    Bisection, LeafSpineBisection,
    testing::Values(Case{"one_to_one", 8, 8, 8, 32},   // 32 NICs, 4 leaves x 8 uplinks
                    Case{"two_to_one", 8, 8, 4, 16},   // 4 leaves x 4 uplinks
                    Case{"four_to_one", 8, 8, 2, 8},   // 4 leaves x 2 uplinks
                    Case{"one_to_two", 8, 8, 16, 32},  // the NICs bind
                    Case{"one_leaf", 1, 8, 1, 4},      // inside the switch
                    // 3 leaves of 8: 12 servers a side; leaf 1 is shared, its 4 and 4 meet inside
                    // it. The rest: leaf 0 sends its 2 uplinks' worth, to leaf 1 (4 NICs there are
                    // served already) and leaf 2: 4 + 2.
                    Case{"odd_number_of_leaves", 3, 8, 2, 6}),
    [](const auto& p) { return p.param.name; });

TEST(Bisection, of_three_tiers_is_bound_by_the_core) {
  // 4 pods of 4 leaves x 2 servers, 2 spines a pod with 4 down; uplinks 2 of each spine: 2:1.
  const SwitchSpec box = switch_of(16);
  FabricSpec spec{.tiers = 3,
                  .hosts_per_leaf = 2,
                  .leaves_per_pod = 4,
                  .uplinks_per_leaf = 2,
                  .spines = 2,
                  .uplinks_per_spine = 2,
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  const auto f = must_build(spec, {.hosts = 32, .gpus = 1, .nics = 1});
  EXPECT_DOUBLE_EQ(bisection(*f).rate.value(), 2 * 2 * 2 * 50e9);  // 2 pods x 2 spines x 2
  EXPECT_DOUBLE_EQ(bisection(*f).of_injection, 0.5);
  EXPECT_DOUBLE_EQ(bisection_between_pods(*f).rate.value(), 8 * 50e9);
  // With 3 pods the halves share the middle pod: 4 leaves of it, 2 a side, exchange 4 NIC rates
  // inside. Pod 0 sends 4 over the core, which pod 2 takes. Whole pods: 0 against 2, the middle one
  // left out.
  const auto g = must_build(spec, {.hosts = 24, .gpus = 1, .nics = 1});
  EXPECT_DOUBLE_EQ(bisection(*g).rate.value(), (4 + 4) * 50e9);
  EXPECT_DOUBLE_EQ(bisection_between_pods(*g).rate.value(), 4 * 50e9);
  EXPECT_DOUBLE_EQ(bisection_between_pods(*g).of_injection, 0.5);
}

TEST(Bisection, one_server_has_none) {
  const auto f = leaf_spine(1, 1, 1);
  EXPECT_EQ(bisection(*f).rate.value(), 0.0);
}

TEST(MaxFlow, falls_by_what_fails) {
  const auto f = leaf_spine(2, 4, 4);
  std::vector<HostId> a, b;
  for (std::size_t h = 0; h < 4; ++h) {
    a.push_back(HostId(h));
    b.push_back(HostId(4 + h));
  }
  LinkState state(*f);
  EXPECT_DOUBLE_EQ(max_flow(*f, a, b, &state).value(), 4 * 50e9);
  state.set_up(f->leaf_uplink(0, 0), false);
  EXPECT_DOUBLE_EQ(max_flow(*f, a, b, &state).value(), 3 * 50e9);
  EXPECT_DOUBLE_EQ(max_flow(*f, b, a, &state).value(), 4 * 50e9);  // the other direction is whole
  state.set_capacity_factor(f->leaf_uplink(0, 1), 0.5);
  EXPECT_DOUBLE_EQ(max_flow(*f, a, b, &state).value(), 2.5 * 50e9);
  state.set_up(f->vertex(VertexKind::spine, 2), false);
  EXPECT_DOUBLE_EQ(max_flow(*f, a, b, &state).value(), 1.5 * 50e9);
  EXPECT_THROW(max_flow(*f, a, a), CheckFailed);
}

/// The slow twin: augmenting paths by breadth-first search on the whole graph, link by link, NIC by
/// NIC.
double slow_max_flow(const Fabric& f, const std::vector<HostId>& sources,
                     const std::vector<HostId>& sinks, const LinkState& state) {
  std::vector<char> is_source(f.vertex_count(), 0), is_sink(f.vertex_count(), 0);
  const auto mark = [&](const std::vector<HostId>& hosts, std::vector<char>& flag) {
    for (const HostId h : hosts)
      for (int n = 0; n < f.servers().nics; ++n)
        flag[f.vertex(f.nic(h, std::size_t(n))).index()] = 1;
  };
  mark(sources, is_source);
  mark(sinks, is_sink);
  std::vector<double> left(f.links().size());  // residual; a link's reverse takes back what it gave
  for (std::size_t l = 0; l < left.size(); ++l) left[l] = state.capacity(LinkId(l)).value();
  double total = 0;
  while (true) {
    std::vector<LinkId> by(f.vertex_count());
    std::vector<char> seen(is_source);
    std::deque<VertexId> queue;
    for (std::size_t v = 0; v < seen.size(); ++v)
      if (seen[v]) queue.push_back(VertexId(v));
    VertexId end;
    while (!queue.empty() && !end.is_valid()) {
      const VertexId v = queue.front();
      queue.pop_front();
      for (const LinkId l : f.out_links(v)) {
        const VertexId to = f.link(l).to;
        if (seen[to.index()] || left[l.index()] < 1) continue;
        if (!f.is_switch(to) && !is_sink[to.index()]) continue;  // servers do not forward
        seen[to.index()] = 1;
        by[to.index()] = l;
        if (is_sink[to.index()]) end = to;
        queue.push_back(to);
      }
    }
    if (!end.is_valid()) return total;
    double step = std::numeric_limits<double>::infinity();
    for (VertexId v = end; !is_source[v.index()]; v = f.link(by[v.index()]).from)
      step = std::min(step, left[by[v.index()].index()]);
    for (VertexId v = end; !is_source[v.index()]; v = f.link(by[v.index()]).from) {
      left[by[v.index()].index()] -= step;
      left[Fabric::reverse(by[v.index()]).index()] += step;
    }
    total += step;
  }
}

TEST(MaxFlow, agrees_with_augmenting_paths_on_the_whole_graph) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto f = any_fabric(random);
    LinkState state(*f);
    for (std::size_t l = 0; l < f->links().size(); ++l) {
      if (random() % 5 == 0) state.set_up(LinkId(l), false);
      if (random() % 5 == 0) state.set_capacity_factor(LinkId(l), 0.25);
    }
    std::vector<HostId> a, b;
    for (std::size_t h = 0; h < f->host_count(); ++h)
      if (const auto side = random() % 3; side < 2) (side == 0 ? a : b).push_back(HostId(h));
    const double expected = slow_max_flow(*f, a, b, state);
    EXPECT_NEAR(max_flow(*f, a, b, &state).value(), expected, 1.0);
  }
}

TEST(Bisection, of_the_first_half_is_the_least_of_many_halves) {
  const auto f = leaf_spine(6, 2, 1);
  const double claimed = bisection(*f).rate.value();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<HostId> hosts;
    for (std::size_t h = 0; h < f->host_count(); ++h) hosts.push_back(HostId(h));
    std::shuffle(hosts.begin(), hosts.end(), random);
    const std::vector<HostId> a(hosts.begin(), hosts.begin() + 6);
    const std::vector<HostId> b(hosts.begin() + 6, hosts.end());
    EXPECT_GE(max_flow(*f, a, b).value(), claimed);
  }
}

}  // namespace
}  // namespace trainyard::topologies
