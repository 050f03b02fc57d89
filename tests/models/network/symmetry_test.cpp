#include "models/network/symmetry.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

#include "models/network/collectives/ring.hpp"
#include "tests/models/network/small_fabrics.hpp"
#include "tests/support/water_filling.hpp"

namespace trainyard::models {
namespace {

std::vector<double> full_rates(const std::vector<double>& capacities,
                               const std::vector<ColouredVariable>& variables) {
  tests::FillingProblem problem{capacities, {}};
  for (const ColouredVariable& v : variables) {
    tests::FillingProblem::Variable& one = problem.variables.emplace_back();
    one.cap = v.cap;
    for (const Load& load : v.loads) one.loads.push_back({load.link.index(), load.weight});
  }
  return tests::water_filling(problem);
}

/// Ring j takes host j of every leaf: the strided groups of data parallelism.
std::vector<ColouredVariable> strided_rings(const LeafSpine& fabric, std::size_t leaves,
                                            std::size_t hosts) {
  std::vector<ColouredVariable> variables;
  for (std::size_t j = 0; j < hosts; ++j) {
    std::vector<std::size_t> members;
    for (std::size_t a = 0; a < leaves; ++a) members.push_back(a * hosts + j);
    const CollectivePlan plan =
        plan_ring(CollectiveKind::all_reduce, 1e9, fabric.hosts_in(members), fabric, {.label = j});
    variables.push_back(
        {plan.streams[0].loads, MaxMin::unlimited, plan.streams[0].bytes_per_flow, 0});
  }
  return variables;
}

TEST(Symmetry, sprayed_strided_rings_are_one_class) {
  const LeafSpine fabric(8, 8, 4, true);
  const std::vector<ColouredVariable> rings = strided_rings(fabric, 8, 8);
  const SymmetryClasses classes = find_symmetry(fabric.capacities, rings);
  EXPECT_EQ(classes.variables, 1u);
  EXPECT_EQ(classes.links, 2u);  // adapters; cables between leaf and spine
  EXPECT_THAT(solve_quotient(fabric.capacities, rings, classes),
              testing::Each(testing::DoubleEq(25e9)));  // 2:1
}

TEST(Symmetry, one_lone_flow_splits_what_it_touches) {
  const LeafSpine fabric(8, 8, 4, true);
  std::vector<ColouredVariable> variables = strided_rings(fabric, 8, 8);
  LoadAccumulator loads;
  fabric.add_path(0, 9, 0, 1, loads);  // a host of ring 0 to one of ring 1
  variables.push_back({loads.take(), MaxMin::unlimited, 1e9, 0});
  const SymmetryClasses classes = find_symmetry(fabric.capacities, variables);
  // The two rings that meet it at one adapter each (out or in is no colour), the other six, the
  // flow.
  EXPECT_EQ(classes.variables, 3u);
  const std::vector<double> want = full_rates(fabric.capacities, variables),
                            got = solve_quotient(fabric.capacities, variables, classes);
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k] / want[k], 1, 1e-12) << k;
}

TEST(Symmetry, other_bytes_or_another_capacity_are_another_class) {
  LeafSpine fabric(8, 8, 4, true);
  std::vector<ColouredVariable> rings = strided_rings(fabric, 8, 8);
  rings[3].bytes *= 2;
  EXPECT_EQ(find_symmetry(fabric.capacities, rings).variables, 2u);
  fabric.capacities[fabric.nic_out(5).index()] /= 2;  // host 5 is in ring 5
  EXPECT_EQ(find_symmetry(fabric.capacities, rings).variables, 3u);
}

TEST(Symmetry, hashed_paths_have_none) {
  const LeafSpine fabric(8, 8, 4, false);
  const std::vector<ColouredVariable> rings = strided_rings(fabric, 8, 8);
  EXPECT_EQ(find_symmetry(fabric.capacities, rings).variables, 8u);
}

TEST(Symmetry, the_quotient_has_the_rates_of_the_whole) {
  // Small random patterns, each copied several times under its own links, plus some shared links: a
  // lot of symmetry, none of it stated.
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::size_t links = 1 + random() % 5, patterns = 1 + random() % 4,
                      copies = 1 + random() % 5, shared = random() % 3;
    std::vector<double> capacities;
    for (std::size_t l = 0; l < links; ++l) capacities.push_back(static_cast<double>(random() % 4));
    for (std::size_t c = 1; c < copies; ++c)
      for (std::size_t l = 0; l < links; ++l) capacities.push_back(capacities[l]);
    for (std::size_t s = 0; s < shared; ++s) capacities.push_back(3);
    std::vector<ColouredVariable> pattern(patterns);
    for (ColouredVariable& v : pattern) {
      for (std::size_t l = 0; l < links; ++l)
        if (random() % 2 == 0)
          v.loads.push_back({LinkIndex(l), 1.0 + static_cast<double>(random() % 2)});
      if (v.loads.empty()) v.loads.push_back({LinkIndex(0), 1});
      if (random() % 4 == 0) v.cap = 0.5;
    }
    std::vector<ColouredVariable> variables;
    for (std::size_t c = 0; c < copies; ++c) {
      for (ColouredVariable v : pattern) {
        for (Load& load : v.loads) load.link = LinkIndex(load.link.index() + c * links);
        for (std::size_t s = 0; s < shared; ++s)
          v.loads.push_back({LinkIndex(copies * links + s), 0.5});
        variables.push_back(v);
      }
    }
    const SymmetryClasses classes = find_symmetry(capacities, variables);
    ASSERT_LE(classes.variables, patterns);
    const std::vector<double> want = full_rates(capacities, variables),
                              got = solve_quotient(capacities, variables, classes);
    for (std::size_t k = 0; k < want.size(); ++k) ASSERT_NEAR(got[k], want[k], 1e-12 * want[k]);
  }
}

}  // namespace
}  // namespace trainyard::models
