#include "models/network/collectives/hierarchical.hpp"

#include <gmock/gmock.h>

#include "models/network/collectives/collective.hpp"
#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;

double alone_ms(CollectiveKind kind, const Rails& fabric, std::span<const Member> group,
                const CollectiveOptions& options) {
  return ms(time_alone_s(
      plan_collective(kind, CollectiveAlgorithm::hierarchical, GiB, group, fabric, options),
      fabric.capacities));
}

TEST(Hierarchical, gather_and_scatter_are_its_halves) {
  const Rails fabric(8, 8, 450e9);
  const std::vector<Member> all = fabric.group(8);
  EXPECT_NEAR(alone_ms(reduce_scatter, fabric, all, {}) + alone_ms(all_gather, fabric, all, {}),
              8.873283, 2 * given_ms);
  EXPECT_EQ(plan_hierarchical(all_gather, GiB, all, fabric, {}).front().name, "rails");
  EXPECT_EQ(plan_hierarchical(reduce_scatter, GiB, all, fabric, {}).front().name, "reduce in node");
}

TEST(Hierarchical, without_a_node_or_without_rails_one_phase_is_left) {
  const Rails fabric(4, 4, 450e9);
  EXPECT_EQ(plan_hierarchical(all_reduce, GiB, fabric.group(1), fabric, {}).size(), 1u);
  const std::vector<Member> all = fabric.group(4), one_node(all.begin(), all.begin() + 4);
  EXPECT_EQ(plan_hierarchical(all_reduce, GiB, one_node, fabric, {}).size(), 2u);
  EXPECT_TRUE(plan_hierarchical(all_reduce, GiB, std::span(all).first(1), fabric, {}).empty());
}

TEST(Hierarchical, buckets_hide_the_shorter_part_by_the_closed_form) {
  // Node links shared by both node phases: R = 2·(7/8)·GiB/UP; rails: A = 2·(7/8)·(GiB/8)/50e9.
  for (const double up : {450e9, 200e9, 2000e9}) {
    const Rails fabric(8, 8, up);
    const double r = ms(1.75 * GiB / up), a = ms(1.75 * GiB / 8 / adapter_Bps);
    for (const int k : {1, 2, 4, 16, 1000})
      EXPECT_NEAR(alone_ms(all_reduce, fabric, fabric.group(8), {.buckets = k}),
                  (r + a + (k - 1) * std::max(r, a)) / k, 1e-9);
  }
}

TEST(Hierarchical, each_bucket_pays_its_own_latency) {
  const Rails fabric(2, 2, 450e9);
  const MessageCosts costs{.base_s = 1e-3};
  const double one = alone_ms(all_reduce, fabric, fabric.group(2), {.costs = costs});
  const double two = alone_ms(all_reduce, fabric, fabric.group(2), {.buckets = 2, .costs = costs});
  // Without base: R = GiB/UP, A = GiB/2/NIC; each of three phases has a base of 1 ms.
  const double r = ms(GiB / 450e9), a = ms(GiB / 2 / adapter_Bps);
  EXPECT_NEAR(one, r + a + 3, 1e-9);
  // Half of it, three bases, and one more bucket behind the rails (a/2 + 1 ms > r/2 + 2 ms).
  EXPECT_NEAR(two, (r + a) / 2 + 3 + std::max(a / 2 + 1, r / 2 + 2), 1e-9);
}

TEST(Hierarchical, uneven_nodes_are_refused) {
  const Rails fabric(2, 4, 450e9);
  std::vector<Member> group = fabric.group(4);
  group.pop_back();
  EXPECT_THROW(plan_hierarchical(all_reduce, GiB, group, fabric, {}), CheckFailed);
  std::string why_not;
  EXPECT_FALSE(supports(all_reduce, CollectiveAlgorithm::hierarchical, group, &why_not));
  EXPECT_EQ(why_not, "hierarchical needs as many members on every node");
}

}  // namespace
}  // namespace trainyard::models
