#include "models/network/max_min.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Loads = std::vector<Load>;
constexpr double any = MaxMin::unlimited;

template <class T>
std::string name_of(const testing::TestParamInfo<T>& test) {
  return test.param.name;
}

// ---- By hand
// ----------------------------------------------------------------------------------------

struct Flow {
  double cap = any;
  double weight = 1;
};
struct Case {
  const char* name;
  double capacity;
  std::vector<Flow> flows;
  std::vector<double> rates;
};
class SharedLink : public testing::TestWithParam<Case> {};

TEST_P(SharedLink, gives_these_rates) {
  MaxMin net;
  const LinkIndex link = net.add_link(GetParam().capacity);
  std::vector<VarIndex> vars;
  for (const Flow& f : GetParam().flows) vars.push_back(net.add(Loads{{link, f.weight}}, f.cap));
  net.solve();
  for (std::size_t i = 0; i < vars.size(); ++i)
    EXPECT_DOUBLE_EQ(net.rate(vars[i]), GetParam().rates[i]) << i;
  net.check_certificate(1e-14);
}

INSTANTIATE_TEST_SUITE_P(
    MaxMin, SharedLink,
    testing::Values(
        Case{"one_flow_takes_all", 10, {{}}, {10}},
        Case{"two_flows_share_equally", 10, {{}, {}}, {5, 5}},
        Case{"a_capped_flow_leaves_the_rest", 10, {{2}, {}}, {2, 8}},  // 10 - 2
        Case{"caps_that_do_not_bind_change_nothing", 10, {{6}, {7}}, {5, 5}},
        Case{"a_cap_of_zero_is_a_pause", 10, {{0}, {}}, {0, 10}},
        Case{"three_flows_in_one_variable", 12, {{any, 3}, {}}, {3, 3}},  // (3 + 1) x = 12
        Case{"fractions_of_a_flow", 12, {{any, 0.5}, {any, 1}}, {8, 8}},  // 1.5 x = 12
        Case{"a_broken_link_stops_all", 0, {{}, {any, 2}}, {0, 0}}),
    name_of<Case>);

TEST(MaxMin, a_flow_over_two_links_is_held_by_the_busier_and_leaves_the_other_to_its_neighbour) {
  MaxMin net;
  const LinkIndex a = net.add_link(10), b = net.add_link(10);
  const VarIndex both = net.add(Loads{{a}, {b}});
  const VarIndex a1 = net.add(Loads{{a}}),
                 a2 = net.add(Loads{{a}, {a, 1}});  // named twice: weight 2
  const VarIndex b1 = net.add(Loads{{b}});
  net.solve();
  EXPECT_DOUBLE_EQ(net.rate(both), 2.5);  // a: (1 + 1 + 2) x = 10
  EXPECT_DOUBLE_EQ(net.rate(a1), 2.5);
  EXPECT_DOUBLE_EQ(net.rate(a2), 2.5);
  EXPECT_DOUBLE_EQ(net.rate(b1), 7.5);  // 10 - 2.5
  EXPECT_EQ(net.bottleneck(both), a);
  EXPECT_EQ(net.bottleneck(b1), b);
  EXPECT_DOUBLE_EQ(net.load(b), 10);
}

TEST(MaxMin, solve_lists_who_changed_with_the_old_rate) {
  MaxMin net;
  const LinkIndex link = net.add_link(12), other = net.add_link(7);
  const VarIndex a = net.add(Loads{{link}}), alone = net.add(Loads{{other}});
  net.solve();
  const VarIndex b = net.add(Loads{{link}});
  std::map<std::size_t, double> old;
  for (const auto& change : net.solve()) old[change.var.index()] = change.old_rate;
  EXPECT_EQ(old, (std::map<std::size_t, double>{{a.index(), 12}, {b.index(), 0}}));
  EXPECT_DOUBLE_EQ(net.rate(alone), 7);
  EXPECT_TRUE(net.solve().empty());
}

TEST(MaxMin, a_link_that_fails_and_returns_restores_the_rates) {
  MaxMin net;
  const LinkIndex a = net.add_link(10), b = net.add_link(4);
  const VarIndex over = net.add(Loads{{a}, {b}}), on_a = net.add(Loads{{a}});
  net.solve();
  EXPECT_DOUBLE_EQ(net.rate(over), 4);
  EXPECT_DOUBLE_EQ(net.rate(on_a), 6);
  net.set_capacity(b, 0);
  net.solve();
  EXPECT_EQ(net.rate(over), 0);
  EXPECT_DOUBLE_EQ(net.rate(on_a), 10);
  EXPECT_EQ(net.bottleneck(over), b);
  net.set_capacity(b, 40);  // more than it ever had
  net.solve();
  EXPECT_DOUBLE_EQ(net.rate(over), 5);
  EXPECT_DOUBLE_EQ(net.rate(on_a), 5);
}

TEST(MaxMin, a_cap_can_be_set_and_lifted) {
  MaxMin net;
  const LinkIndex link = net.add_link(10);
  const VarIndex a = net.add(Loads{{link}}), b = net.add(Loads{{link}});
  net.set_cap(a, 1);
  net.solve();
  EXPECT_DOUBLE_EQ(net.rate(a), 1);
  EXPECT_DOUBLE_EQ(net.rate(b), 9);
  EXPECT_EQ(net.bottleneck(a), std::nullopt);
  net.set_cap(a, any);
  net.solve();
  EXPECT_DOUBLE_EQ(net.rate(a), 5);
}

TEST(MaxMin, a_variable_without_links_runs_at_its_cap_and_needs_one) {
  MaxMin net;
  const VarIndex free = net.add({}, 3);
  net.solve();
  EXPECT_EQ(net.rate(free), 3);
  EXPECT_THROW(net.add({}), CheckFailed);
}

TEST(MaxMin, the_certificate_refuses_rates_that_are_not_solved) {
  MaxMin net;
  const LinkIndex link = net.add_link(10);
  net.add(Loads{{link}});
  EXPECT_THROW(net.check_certificate(), CheckFailed);
}

// ---- Work and drift
// ---------------------------------------------------------------------------------

/// Flows that come and go over a two-level tree with hashed middle links, at a load where
/// neighbours matter: the mixture of the published measurements of such solvers ("Poisson 0.5").
class Traffic {
 public:
  explicit Traffic(std::size_t hosts) : hosts_(hosts), spines_(hosts / 8) {
    for (std::size_t i = 0; i < 2 * hosts; ++i) net.add_link(50e9);  // NICs out, in
    for (std::size_t i = 0; i < 2 * (hosts / 8) * spines_; ++i)
      net.add_link(50e9);  // leaf up, down
  }
  void arrive() {
    const std::size_t from = random_() % hosts_,
                      to = (from + 1 + random_() % (hosts_ - 1)) % hosts_;
    Loads loads{{LinkIndex(from)}, {LinkIndex(hosts_ + to)}};
    if (from / 8 != to / 8) {
      const std::size_t spine = random_() % spines_, up = 2 * hosts_,
                        down = up + hosts_ / 8 * spines_;
      loads.push_back({LinkIndex(up + from / 8 * spines_ + spine)});
      loads.push_back({LinkIndex(down + to / 8 * spines_ + spine)});
    }
    vars.push_back(net.add(loads));
  }
  void leave() {
    std::swap(vars[random_() % vars.size()], vars.back());
    net.remove(vars.back());
    vars.pop_back();
  }
  MaxMin net;
  std::vector<VarIndex> vars;

 private:
  std::mt19937_64 random_{11};
  std::size_t hosts_, spines_;
};

TEST(MaxMin, a_change_handles_hardly_more_variables_than_it_changes) {
  Traffic traffic(512);
  for (int i = 0; i < 700; ++i) traffic.arrive();
  traffic.net.solve();
  const MaxMin::Counters before = traffic.net.counters();
  for (int i = 0; i < 3000; ++i) {
    i % 2 == 0 ? traffic.arrive() : traffic.leave();
    traffic.net.solve();
  }
  const MaxMin::Counters& after = traffic.net.counters();
  const double touched = static_cast<double>(after.touched - before.touched);
  const double changed = static_cast<double>(after.changed - before.changed);
  RecordProperty("touched_per_changed", std::to_string(touched / changed));
  EXPECT_GT(changed, 3000.0);
  EXPECT_LE(touched, 1.1 * changed);
  EXPECT_LT(after.fallbacks - before.fallbacks, 30u);
  EXPECT_LT(static_cast<double>(after.steps - before.steps), 20.0 * 3000);
}

TEST(MaxMin, a_long_life_does_not_wear_the_sums) {
  Traffic traffic(64);
  for (int i = 0; i < 100; ++i) traffic.arrive();
  for (int i = 0; i < 200'000; ++i) {
    i % 2 == 0 ? traffic.arrive() : traffic.leave();
    if (i % 1000 == 7)
      traffic.net.set_capacity(LinkIndex(static_cast<std::size_t>(i) % 64),
                               i % 2000 == 7 ? 0 : 50e9);
    traffic.net.solve();
  }
  traffic.net.check_certificate(1e-12);
  std::vector<double> lived;
  for (const VarIndex v : traffic.vars) lived.push_back(traffic.net.rate(v));
  traffic.net.solve_from_scratch();
  for (std::size_t i = 0; i < lived.size(); ++i)
    EXPECT_NEAR(lived[i], traffic.net.rate(traffic.vars[i]), 1e-12 * lived[i]);
}

}  // namespace
}  // namespace trainyard::models
