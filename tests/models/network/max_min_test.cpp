#include "models/network/max_min.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "sim/check.hpp"
#include "tests/support/water_filling.hpp"

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

// ---- Against textbook filling
// -----------------------------------------------------------------------

/// Random networks that live: arrivals, departures, failures to zero and back, caps, in batches.
class Fuzz {
 public:
  Fuzz(std::uint64_t seed, MaxMin::Tuning tuning) : random_(seed), net_(tuning) {
    kind_ = pick(4);
    weights_ = pick(4);
    has_caps_ = pick(2) == 0;
    const std::size_t links = 1 + pick(pick(8) == 0 ? 40 : 12);
    for (std::size_t l = 0; l < links; ++l) {
      const double c = capacity();
      net_.add_link(c);
      problem_.capacities.push_back(c);
    }
  }

  void change_something() {
    const std::size_t what = pick(10);
    if (what < 4 || vars_.empty()) return arrive();
    const std::size_t i = pick(vars_.size());
    if (what < 7 && vars_.size() > 3) {
      net_.remove(vars_[i]);
      vars_.erase(vars_.begin() + static_cast<std::ptrdiff_t>(i));
      problem_.variables.erase(problem_.variables.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (what < 9) {
      const std::size_t l = pick(problem_.capacities.size());
      const double c = pick(3) == 0 ? 0.0 : capacity();
      net_.set_capacity(LinkIndex(l), c);
      problem_.capacities[l] = c;
    } else {
      const double u = problem_.variables[i].loads.empty() || pick(2) == 0 ? cap() : any;
      net_.set_cap(vars_[i], u);
      problem_.variables[i].cap = u;
    }
  }

  double worst_difference() {
    net_.solve();
    net_.check_certificate();
    const std::vector<double> want = tests::water_filling(problem_);
    double worst = 0;
    for (std::size_t i = 0; i < vars_.size(); ++i) {
      const double got = net_.rate(vars_[i]);
      if (got != want[i]) worst = std::max(worst, std::abs(got - want[i]) / std::max(got, want[i]));
    }
    rates_compared += vars_.size();
    return worst;
  }

  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  const MaxMin& net() const { return net_; }
  std::size_t rates_compared = 0;

 private:
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double capacity() {
    switch (kind_) {
      case 0:
        return 10;  // many ties
      case 1:
        return static_cast<double>(pick(5));  // small integers, zero among them
      case 2:
        return std::exp(8 * uniform() - 4) * 1e9;
      default:
        return 50e9;
    }
  }
  double weight() {
    switch (weights_) {
      case 0:
        return 1;
      case 1:
        return static_cast<double>(1 + pick(4));
      case 2:
        return 1.0 / static_cast<double>(1 + pick(3));
      default:
        return std::exp(8 * uniform() - 4);
    }
  }
  double cap() { return pick(6) == 0 ? 0.0 : capacity() * uniform(); }
  void arrive() {
    FillingProblem::Variable v;
    std::vector<Load> loads;
    const std::size_t links = problem_.capacities.size();
    const std::size_t count = std::min(links, pick(20) == 0 ? std::size_t{0} : 1 + pick(8));
    std::vector<std::size_t> order(links);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(order[i], order[i + pick(links - i)]);
      const double w = weight();
      v.loads.push_back({order[i], w});
      loads.push_back({LinkIndex(order[i]), w});
    }
    if (count == 0 || (has_caps_ && pick(3) == 0)) v.cap = cap();
    vars_.push_back(net_.add(loads, v.cap));
    problem_.variables.push_back(v);
  }

  using FillingProblem = tests::FillingProblem;
  std::mt19937_64 random_;
  MaxMin net_;
  FillingProblem problem_;
  std::vector<VarIndex> vars_;
  std::size_t kind_, weights_;
  bool has_caps_;
};

struct Road {
  const char* name;
  MaxMin::Tuning tuning;
  bool falls_back, repairs;  // the road it is meant to take
};
class AgainstTextbook : public testing::TestWithParam<Road> {};

TEST_P(AgainstTextbook, rates_are_equal_after_every_batch) {
  std::size_t compared = 0;
  std::uint64_t fallbacks = 0, steps = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Fuzz fuzz(seed, GetParam().tuning);
    for (int event = 0; event < 40; ++event) {
      for (std::size_t i = 1 + fuzz.pick(6); i > 0; --i) fuzz.change_something();
      ASSERT_LE(fuzz.worst_difference(), 1e-9) << "event " << event;
    }
    compared += fuzz.rates_compared;
    fallbacks += fuzz.net().counters().fallbacks;
    steps += fuzz.net().counters().steps;
  }
  EXPECT_GT(compared, 300'000u);
  EXPECT_EQ(fallbacks > 0, GetParam().falls_back);
  EXPECT_EQ(steps > 0, GetParam().repairs);
}

INSTANTIATE_TEST_SUITE_P(
    MaxMin, AgainstTextbook,
    testing::Values(Road{"as_shipped", {}, true, true},
                    Road{"repair_whatever_it_costs",
                         {.guard_factor = 1e9, .guard_base = 1e9, .batch_fraction = 1e9},
                         false,
                         true},
                    Road{"guard_fires_at_once",
                         {.guard_factor = 0, .guard_base = 0, .batch_fraction = 1e9},
                         true,
                         false},
                    Road{"guard_fires_midway",
                         {.guard_factor = 0.1, .guard_base = 20, .batch_fraction = 1e9},
                         true,
                         true},
                    Road{
                        "always_in_full",
                        {.guard_factor = 0, .guard_base = 0, .batch_fraction = 0, .batch_least = 0},
                        false,
                        false}),
    name_of<Road>);

TEST(MaxMin, the_order_within_a_batch_does_not_matter) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::size_t links = 3 + random() % 20, flows = 10 + random() % 60;
    std::vector<Loads> loads(flows);
    for (Loads& list : loads)
      for (std::size_t i = 1 + random() % 5; i > 0; --i)
        list.push_back({LinkIndex(random() % links), 1.0 + static_cast<double>(random() % 3)});
    std::vector<std::size_t> order(flows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::vector<double>> rates(2, std::vector<double>(flows));
    for (std::vector<double>& result : rates) {
      MaxMin net({.guard_factor = 1e9, .guard_base = 1e9, .batch_fraction = 1e9});
      for (std::size_t l = 0; l < links; ++l) net.add_link(1.0 + static_cast<double>(l % 4));
      std::vector<VarIndex> vars(flows);
      for (const std::size_t i : order) vars[i] = net.add(loads[i]);
      net.solve();
      for (std::size_t i = 0; i < flows; ++i) result[i] = net.rate(vars[i]);
      std::shuffle(order.begin(), order.end(), random);
    }
    for (std::size_t i = 0; i < flows; ++i)
      ASSERT_NEAR(rates[0][i], rates[1][i], 1e-12 * rates[0][i]);
  }
}

TEST(MaxMin, same_input_gives_the_same_bits) {
  std::vector<double> results[2];
  for (std::vector<double>& rates : results) {
    Fuzz fuzz(7, {});
    for (int i = 0; i < 300; ++i) {
      fuzz.change_something();
      rates.push_back(fuzz.worst_difference());
      rates.push_back(fuzz.net().load(LinkIndex(0)));
    }
  }
  EXPECT_EQ(results[0], results[1]);
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
  EXPECT_LE(touched, 1.2 * changed);
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
