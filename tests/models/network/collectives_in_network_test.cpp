#include "models/network/collectives/in_network.hpp"

#include <gmock/gmock.h>

#include "sim/check.hpp"
#include "tests/models/network/collective_helpers.hpp"
#include "tests/models/network/small_fabrics.hpp"

namespace trainyard::models {
namespace {

using enum CollectiveKind;

double fluid_ms(const CollectivePlan& plan, const std::vector<double>& capacities) {
  return ms(time_alone(plan, capacities).fluid_s);
}

TEST(Sharp, loads_every_link_of_its_tree_once_in_each_direction) {
  const LeafSpine fabric(4, 4, 2, false);
  const auto plan = plan_sharp(GiB, fabric.hosts_in(in_order(16)), fabric, {.label = 7});
  ASSERT_TRUE(plan);
  const auto w = weights(*plan);
  EXPECT_EQ(w.size(), 2u * 16 + 2u * 4);  // adapters; one spine, both ways
  for (const auto& [link, weight] : w) EXPECT_EQ(weight, 1) << link;
  EXPECT_EQ(plan->streams[0].bytes_per_flow, GiB);
}

TEST(Sharp, over_rails_has_a_tree_each_and_the_node_scatters_and_gathers) {
  const Rails fabric(4, 8, 900e9);
  const auto plan = plan_sharp(GiB, fabric.group(8), fabric, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->streams.size(), 8u);
  auto w = weights(*plan);
  EXPECT_EQ(w[fabric.nic_out(9).index()], 1);
  EXPECT_EQ(w[fabric.gpu_out(9).index()], 14);  // 7 parts to their heads, its own sum to 7 others
  EXPECT_NEAR(fluid_ms(*plan, fabric.capacities), ms(GiB / 8 / adapter_Bps), given_ms);
  const Rails narrow(4, 8, 100e9);
  EXPECT_NEAR(fluid_ms(*plan_sharp(GiB, narrow.group(8), narrow, {}), narrow.capacities),
              ms(1.75 * GiB / 100e9), given_ms);
}

TEST(Sharp, needs_a_fabric_that_reduces) {
  LeafSpine fabric(4, 4, 2, false);
  fabric.can_reduce = false;
  EXPECT_FALSE(plan_sharp(GiB, fabric.hosts_in(in_order(16)), fabric, {}));
}

TEST(Sharp, fills_in_three_chunks_and_two_network_steps) {
  const LeafSpine fabric(8, 8, 8, true);
  const auto plan = plan_sharp(GiB, fabric.hosts_in(in_order(64)), fabric,
                               {.costs = {.base_s = 1e-3, .nic_s = 5e-6}});
  // GiB/C + 1 ms + 2·5 us + 3 · 1 MiB/C
  EXPECT_NEAR(ms(time_alone(*plan, fabric.capacities).time_s),
              21.47483648 + 1 + 0.010 + 3 * 0.02097152, given_ms);
}

TEST(Nvls, moves_the_bytes_and_one_share_each_way) {
  const Rails fabric(1, 8, 450e9);
  const auto time_ms = [&](CollectiveKind kind) {
    return fluid_ms(plan_nvls(kind, GiB, fabric.group(8), fabric, {}), fabric.capacities);
  };
  EXPECT_NEAR(time_ms(all_reduce), ms(9.0 / 8 * GiB / 450e9), given_ms);
  EXPECT_NEAR(time_ms(reduce_scatter), ms(GiB / 450e9), given_ms);
  EXPECT_NEAR(time_ms(all_gather), ms(GiB / 450e9), given_ms);
}

TEST(Nvls, where_the_fabric_tells_directions_apart_only_one_is_full) {
  class Switch final : public PathSource {
   public:
    void add_path(std::size_t, std::size_t, std::uint64_t, double,
                  LoadAccumulator&) const override {}
    void add_scale_up_switch(std::span<const std::size_t> gpus, double out, double in,
                             LoadAccumulator& loads) const override {
      for (const std::size_t g : gpus) {
        loads.add(LinkIndex(2 * g), out);
        loads.add(LinkIndex(2 * g + 1), in);
      }
    }
  };
  const Rails shape(1, 4, 1);
  const CollectivePlan scatter = plan_nvls(reduce_scatter, GiB, shape.group(4), Switch(), {});
  EXPECT_EQ(weights(scatter)[0], 1);
  EXPECT_EQ(weights(scatter)[1], 0.25);
  const CollectivePlan gather = plan_nvls(all_gather, GiB, shape.group(4), Switch(), {});
  EXPECT_EQ(weights(gather)[0], 0.25);
  EXPECT_EQ(weights(gather)[1], 1);
}

TEST(NvlsTree, has_the_adapters_of_a_tree_and_the_scale_up_of_nvls) {
  const Rails wide(4, 8, 450e9), narrow(4, 8, 100e9);
  EXPECT_NEAR(fluid_ms(plan_nvls_tree(GiB, wide.group(8), wide, {}), wide.capacities),
              ms(2 * GiB / 8 / adapter_Bps), given_ms);
  EXPECT_NEAR(fluid_ms(plan_nvls_tree(GiB, narrow.group(8), narrow, {.channels_per_nic = 2}),
                       narrow.capacities),
              ms(9.0 / 8 * GiB / 100e9), given_ms);
  // Between more nodes it takes a level more and not more bytes.
  const CollectivePlan four = plan_nvls_tree(GiB, wide.group(8), wide, {.costs = {.nic_s = 1}});
  const Rails more(8, 8, 450e9);
  const CollectivePlan eight = plan_nvls_tree(GiB, more.group(8), more, {.costs = {.nic_s = 1}});
  EXPECT_NEAR(
      eight.latency.steps * eight.latency.alpha_s - four.latency.steps * four.latency.alpha_s, 2,
      1e-12);
}

TEST(NvlsTree, uneven_nodes_are_refused) {
  const Rails fabric(2, 4, 450e9);
  std::vector<Member> group = fabric.group(4);
  group.pop_back();
  EXPECT_THROW(plan_nvls_tree(GiB, group, fabric, {}), CheckFailed);
  EXPECT_THROW(plan_nvls(all_reduce, GiB, group, fabric, {}), CheckFailed);
}

}  // namespace
}  // namespace trainyard::models
