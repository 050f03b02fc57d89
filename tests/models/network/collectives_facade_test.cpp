#include <cmath>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "models/network/collectives/collective.hpp"
#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;
using Algorithm = CollectiveAlgorithm;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const auto kinds = Names<CollectiveKind>::all;
const auto algorithms = Names<CollectiveAlgorithm>::all;
constexpr Corrections no_fill{.fill = false};

TEST(Supports, the_table_of_kinds_and_algorithms) {
  const Rails several(2, 4, 450e9), one(1, 4, 450e9);
  const auto row = [&](Algorithm algorithm, const std::vector<Member>& group) {
    std::string marks;
    for (const auto& [kind, name] : kinds) {
      const std::vector<Member> pair(group.begin(), group.begin() + 2);
      std::string why_not;
      const bool yes = supports(kind, algorithm, kind == point_to_point ? pair : group, &why_not);
      EXPECT_EQ(yes, why_not.empty()) << name;
      marks += yes ? 'x' : '.';
    }
    return marks;
  };
  // all-reduce, reduce-scatter, all-gather, broadcast, all-to-all, point-to-point
  EXPECT_EQ(row(Algorithm::ring, several.group(4)), "xxxx..");
  EXPECT_EQ(row(Algorithm::tree, several.group(4)), "x..x..");
  EXPECT_EQ(row(Algorithm::halving_doubling, several.group(4)), "xxx...");
  EXPECT_EQ(row(Algorithm::direct, several.group(4)), "xxxxxx");
  EXPECT_EQ(row(Algorithm::hierarchical, several.group(4)), "xxx...");
  EXPECT_EQ(row(Algorithm::sharp, several.group(4)), "x.....");
  EXPECT_EQ(row(Algorithm::nvls_tree, several.group(4)), "x.....");
  EXPECT_EQ(row(Algorithm::nvls, several.group(4)), "......");
  EXPECT_EQ(row(Algorithm::nvls, one.group(4)), "xxx...");
  EXPECT_EQ(row(Algorithm::sharp, one.group(4)), "......");
  EXPECT_EQ(row(Algorithm::nvls_tree, several.group(1)), "......");
}

TEST(Supports, says_what_would_be_right) {
  const Rails fabric(3, 4, 450e9);
  const std::vector<Member> group = fabric.group(4);
  const auto why_not = [&](CollectiveKind kind, Algorithm algorithm) {
    std::string text;
    EXPECT_FALSE(supports(kind, algorithm, group, &text));
    return text;
  };
  EXPECT_EQ(why_not(all_to_all, Algorithm::ring), "ring does not do all-to-all");
  EXPECT_EQ(why_not(all_gather, Algorithm::halving_doubling),
            "halving-doubling does all-gather for a power of two ranks only, found 12");
  EXPECT_EQ(why_not(all_reduce, Algorithm::nvls),
            "nvls stays in one scale-up domain, found 3; nvls-tree joins several");
  EXPECT_EQ(why_not(point_to_point, Algorithm::direct),
            "a point-to-point transfer has two members, found 12");
  EXPECT_FALSE(supports(all_to_all, Algorithm::ring, group, nullptr));
  LeafSpine no_sharp(2, 4, 2, true);
  no_sharp.can_reduce = false;
  std::string text;
  const std::vector<Member> hosts = no_sharp.hosts_in(in_order(8));
  EXPECT_TRUE(supports(all_reduce, Algorithm::sharp, hosts, &text));
  EXPECT_FALSE(supports(all_reduce, Algorithm::sharp, hosts, no_sharp, &text));
  EXPECT_EQ(text, "the switches of this fabric cannot reduce over these adapters");
}

TEST(PlanCollective, alone_reaches_the_closed_form_wherever_adapters_and_scale_up_are_the_limit) {
  std::size_t tried = 0;
  for (const std::size_t nodes : {1, 2, 3, 4, 8}) {
    for (const std::size_t g : {1, 2, 4, 8}) {
      for (const double up : {450e9, 120e9}) {
        const Rails fabric(nodes, g, up);
        const std::vector<Member> all = fabric.group(g);
        for (const auto& [kind, kind_name] : kinds) {
          for (const auto& [algorithm, name] : algorithms) {
            const std::vector<Member> group = kind == point_to_point && all.size() > 1
                                                  ? std::vector<Member>{all.front(), all.back()}
                                                  : all;
            if (group.size() < 2 || !supports(kind, algorithm, group, nullptr)) continue;
            const std::size_t n = kind == point_to_point ? (nodes > 1 ? 2 : 1) : nodes;
            for (const bool pxn : {true, false}) {
              for (const int buckets : {1, 4}) {
                if (buckets > 1 && algorithm != Algorithm::hierarchical) continue;
                const double want =
                    closed_form_bound_s(kind, algorithm, GiB, n, g, adapter_Bps, up, pxn, buckets);
                const double got = time_alone_s(
                    plan_collective(kind, algorithm, GiB, group, fabric,
                                    {.pxn = pxn, .buckets = buckets, .corrections = no_fill}),
                    fabric.capacities);
                EXPECT_NEAR(got / want, 1, 1e-12)
                    << name << ' ' << kind_name << ' ' << nodes << 'x' << g << " pxn " << pxn;
                ++tried;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 800u);
}

TEST(PlanCollective, on_any_placement_is_never_below_the_closed_form) {
  // Random hosts of a hashed fabric: only slower than adapters alone allow.
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const LeafSpine fabric(8, 8, 1 + random() % 8, false);
    std::vector<std::size_t> order = in_order(64);
    for (std::size_t i = 63; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    order.resize(2 + random() % 40);
    const std::vector<Member> group = fabric.hosts_in(order);
    for (const auto& [kind, kind_name] : kinds) {
      for (const auto& [algorithm, name] : algorithms) {
        if (!supports(kind, algorithm, group, nullptr)) continue;
        const PhasedPlan plan =
            plan_collective(kind, algorithm, GiB, group, fabric, {.label = seed});
        const double alone_s = time_alone_s(plan, fabric.capacities);
        const double least_s =
            closed_form_bound_s(kind, algorithm, GiB, group.size(), 1, adapter_Bps, 1e15);
        EXPECT_GE(alone_s, least_s * (1 - 1e-12)) << name << ' ' << kind_name;
        EXPECT_GE(alone_s, bound_s(plan, fabric.capacities) * (1 - 1e-12));
      }
    }
  }
}

TEST(PlanCollective, bytes_and_capacities_doubled_change_nothing) {
  const LeafSpine fabric(4, 4, 2, false);
  std::vector<double> doubled = fabric.capacities;
  for (double& c : doubled) c *= 2;
  const std::vector<Member> group = fabric.hosts_in({3, 9, 1, 14, 6, 0, 11, 8});
  for (const auto& [kind, kind_name] : kinds)
    for (const auto& [algorithm, name] : algorithms) {
      if (!supports(kind, algorithm, group, nullptr)) continue;
      EXPECT_DOUBLE_EQ(time_alone_s(plan_collective(kind, algorithm, GiB, group, fabric,
                                                    {.corrections = no_fill}),
                                    fabric.capacities),
                       time_alone_s(plan_collective(kind, algorithm, 2 * GiB, group, fabric,
                                                    {.corrections = no_fill}),
                                    doubled))
          << name << ' ' << kind_name;
    }
}

TEST(PlanCollective, of_fewer_than_two_ranks_is_empty) {
  const Rails fabric(1, 2, 450e9);
  const std::vector<Member> one{fabric.group(1)};
  for (const auto& [algorithm, name] : algorithms) {
    const PhasedPlan plan = plan_collective(all_reduce, algorithm, GiB, one, fabric, {});
    EXPECT_THAT(plan.phases, IsEmpty()) << name;
    EXPECT_EQ(time_alone_s(plan, fabric.capacities), 0);
    EXPECT_EQ(bottleneck(plan, fabric.capacities), std::nullopt);
  }
  EXPECT_EQ(closed_form_bound_s(all_reduce, Algorithm::ring, GiB, 1, 1, 1, 1), 0);
}

TEST(PlanCollective, what_is_not_supported_is_our_mistake) {
  const Rails fabric(2, 2, 450e9);
  EXPECT_THROW(plan_collective(all_to_all, Algorithm::ring, GiB, fabric.group(2), fabric, {}),
               CheckFailed);
}

TEST(PlanCollective, names_the_link_that_holds_the_slowest_phase) {
  LeafSpine fabric(1, 8, 1, true);
  fabric.capacities[fabric.nic_in(5).index()] /= 4;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling, Algorithm::direct})
    EXPECT_EQ(bottleneck(plan_collective(all_reduce, algorithm, GiB, fabric.hosts_in(in_order(8)),
                                         fabric, {}),
                         fabric.capacities),
              fabric.nic_in(5));
}

TEST(Notes, name_the_corrections_and_what_is_outside_the_validated_range) {
  const Rails fabric(2, 4, 450e9);
  const std::vector<Member> group = fabric.group(4);
  const auto notes = [&](CollectiveKind kind, Algorithm algorithm, CollectiveOptions options) {
    return plan_collective(kind, algorithm, GiB, group, fabric, options).notes;
  };
  const MessageCosts costs{.nic_s = 5e-6};
  EXPECT_THAT(notes(all_reduce, Algorithm::ring, {}), IsEmpty());
  EXPECT_THAT(notes(all_reduce, Algorithm::ring, {.costs = costs}),
              testing::ElementsAre("latency: pipelined form"));
  EXPECT_THAT(notes(all_reduce, Algorithm::tree, {.costs = costs}), Contains("fill: once a call"));
  EXPECT_THAT(notes(all_reduce, Algorithm::nvls_tree, {}),
              Contains(HasSubstr("outside validated range: weights of NVLS")));
  EXPECT_THAT(
      notes(all_to_all, Algorithm::direct, {.peers_in_flight = 4}),
      Contains(HasSubstr("few-peers: 4 peers in flight, one variable mixed with 2 batches")));
  EXPECT_THAT(notes(all_to_all, Algorithm::direct, {.peers_in_flight = 7}), IsEmpty());
  EXPECT_THAT(notes(all_to_all, Algorithm::direct,
                    {.peers_in_flight = 1, .corrections = {.few_peers = false}}),
              Contains(HasSubstr("outside validated range: all-to-all with 1 peer in flight")));
  std::vector<Member> uneven = group;
  uneven.pop_back();
  EXPECT_THAT(plan_collective(all_reduce, Algorithm::ring, GiB, uneven, fabric, {}).notes,
              Contains(HasSubstr("outside validated range: ring over unequal")));
}

TEST(Notes, of_small_messages_on_both_sides_of_the_range) {
  const LeafSpine fabric(1, 8, 1, true);
  const auto notes = [&](Algorithm algorithm, double bytes) {
    return range_notes(
        plan_collective(all_reduce, algorithm, bytes, fabric.hosts_in(in_order(8)), fabric,
                        {.costs = {.nic_s = 5e-6, .form = LatencyForm::additive}}),
        fabric.capacities);
  };
  // A step of the ring moves S/8: ten times 5 us at 50e9 are 2.5 MB.
  EXPECT_THAT(notes(Algorithm::ring, 8 * 2.51e6), IsEmpty());
  EXPECT_THAT(notes(Algorithm::ring, 8 * 2.49e6), Contains(HasSubstr("ten times its latency")));
  EXPECT_THAT(notes(Algorithm::tree, 128.1 * MiB), IsEmpty());
  EXPECT_THAT(notes(Algorithm::tree, 127.9 * MiB), Contains(HasSubstr("fewer than 64 chunks")));
}

TEST(PlanCollective, systematic_shifts_are_planned_as_batches_alone) {
  const LeafSpine fabric(4, 4, 2, false);
  const std::vector<Member> group = fabric.hosts_in(in_order(16));
  const PhasedPlan plan = plan_collective(all_to_all, Algorithm::direct, GiB, group, fabric,
                                          {.peers_in_flight = 4, .has_systematic_shifts = true});
  EXPECT_EQ(plan.phases.size(), 4u);
  EXPECT_EQ(plan.batches_share, 0);
  EXPECT_THAT(plan.notes, Contains("few-peers: 4 peers in flight, batch after batch"));
}

TEST(Corrections, can_be_switched_off) {
  const LeafSpine fabric(4, 4, 2, false);
  const std::vector<Member> group = fabric.hosts_in(in_order(16));
  const auto alone = [&](CollectiveKind kind, Algorithm algorithm, CollectiveOptions options) {
    options.costs = {.base_s = 1e-3, .nic_s = 1e-5};
    return time_alone_s(plan_collective(kind, algorithm, GiB, group, fabric, options),
                        fabric.capacities);
  };
  const double fluid_s = alone(all_reduce, Algorithm::tree, {.corrections = {false, false, true}});
  // fill: 2·4 chunks of 1 MiB at a quarter of 4x; depth of 16 is 4
  const double x = GiB / 2 / fluid_s;
  EXPECT_NEAR(alone(all_reduce, Algorithm::tree, {.corrections = {false, true, true}}),
              fluid_s + 8 * MiB / 4 / x, 1e-12);
  EXPECT_NEAR(alone(all_reduce, Algorithm::tree, {.corrections = {true, false, true}}),
              fluid_s + 1e-3 + 8 * 1e-5, 1e-12);

  const double one = alone(all_to_all, Algorithm::direct, {.corrections = {false, true, false}});
  const double mixed = alone(all_to_all, Algorithm::direct,
                             {.peers_in_flight = 4, .corrections = {false, true, true}});
  EXPECT_DOUBLE_EQ(one, alone(all_to_all, Algorithm::direct,
                              {.peers_in_flight = 4, .corrections = {false, true, false}}));
  EXPECT_GT(mixed, one);
}

}  // namespace
}  // namespace trainyard::models
