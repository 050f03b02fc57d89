#include "models/training/boundary_traffic.hpp"

#include <gtest/gtest.h>

#include "tests/models/training/traffic_rig.hpp"

namespace trainyard::models {
namespace {

constexpr double message_s = 20e-6;
const Layout sixteen{.tensor = 2, .context = 2, .data = 2, .pipeline = 2};

double sum_of_uplinks(const TrafficRig& rig, const std::vector<double>& bytes) {
  double sum = 0;
  for (std::size_t nic = 0; nic < rig.fabric->nic_count(); ++nic)
    sum += rig.out_of(NicId(nic), bytes);
  return sum;
}

TEST(BoundaryTraffic, every_data_and_context_coordinate_is_a_replica) {
  TrafficRig rig(sixteen, 2);  // stage 0 in the first server, stage 1 in the second, one leaf
  BoundaryTraffic traffic = rig.boundaries();
  const BoundaryTimes& times = traffic.times(rig.packed(), 0, 1);
  ASSERT_EQ(times.seconds.size(), 4u);
  for (std::uint32_t replica = 0; replica < 4; ++replica) {  // data * 2 + context
    EXPECT_EQ(times.pairs[replica].first, 2 * replica);
    EXPECT_EQ(times.pairs[replica].second, 8 + 2 * replica);
    EXPECT_NEAR(times.seconds[replica], message_s + hop_s + traffic.bytes_per_rank() / nic_Bps,
                1e-12);
  }
  std::vector<double> bytes = rig.no_bytes();
  traffic.add_bytes(rig.packed(), 0, 1, 3, bytes);
  for (std::size_t gpu = 0; gpu < 8; ++gpu)
    EXPECT_NEAR(rig.out_of(NicId(gpu), bytes), 3 * traffic.bytes_per_rank(), 1);
}

TEST(BoundaryTraffic, stages_that_are_neighbours_stay_inside_the_servers) {
  Layout layout = sixteen;
  layout.order = "tp-pp-dp-cp";  // servers: one context coordinate each, both stages
  TrafficRig rig(layout, 2);
  BoundaryTraffic traffic = rig.boundaries();
  const BoundaryTimes times = traffic.times(rig.packed(), 0, 1);
  // replica 1 = data 0, context 1: ranks 8 and 9 to 10 and 11
  EXPECT_EQ(times.pairs[1], std::pair(8u, 10u));
  EXPECT_EQ(times.pairs[2], std::pair(4u, 6u));
  for (const double seconds : times.seconds)
    EXPECT_NEAR(seconds, message_s + traffic.bytes_per_rank() / 365e9, 1e-12);
  rig.server.gpu.calibration.scale_up_efficiency /= 2;  // another calibration
  for (const double seconds : traffic.times(rig.packed(), 0, 1).seconds)
    EXPECT_NEAR(seconds, message_s + 2 * traffic.bytes_per_rank() / 365e9, 1e-12);
  std::vector<double> bytes = rig.no_bytes();
  traffic.add_bytes(rig.packed(), 0, 1, 1, bytes);
  EXPECT_EQ(sum_of_uplinks(rig, bytes), 0);
}

TEST(BoundaryTraffic, all_ranks_send_their_slice_in_every_order) {
  for (const char* order : {"tp-cp-dp-pp", "tp-cp-pp-dp", "cp-dp-tp-pp", "dp-tp-pp-cp"}) {
    Layout layout{.tensor = 2, .context = 2, .data = 4, .pipeline = 2, .order = order};
    TrafficRig rig(layout, 4, RoutingKind::ecmp);
    BoundaryTraffic traffic = rig.boundaries();
    std::vector<double> bytes = rig.no_bytes();
    traffic.add_bytes(rig.packed(), 0, 1, 1, bytes);
    double expected = 0;  // of ranks whose next stage is in another server
    for (int rank = 0; rank < rig.plan.gpus; ++rank) {
      RankPlace place = rig.plan.place_of(rank);
      if (place.pipeline > 0) continue;
      place.pipeline = 1;
      if (rig.plan.rank_of(place) / 8 != rank / 8) expected += traffic.bytes_per_rank();
    }
    EXPECT_NEAR(sum_of_uplinks(rig, bytes), expected, 1) << order;
  }
}

TEST(BoundaryTraffic, slices_of_one_adapter_share_it) {
  TrafficRig rig(sixteen, {.hosts = 2, .nics = 2}, RoutingKind::spray);
  BoundaryTraffic traffic = rig.boundaries();
  const BoundaryTimes& times = traffic.times(rig.packed(), 0, 1);
  for (const double seconds : times.seconds)  // two replicas of two ranks each
    EXPECT_NEAR(seconds, message_s + hop_s + 4 * traffic.bytes_per_rank() / nic_Bps, 1e-12);
}

TEST(BoundaryTraffic, a_replaced_server_gives_what_fresh_traffic_gives) {
  const Layout layouts[] = {
      {.tensor = 2, .context = 2, .data = 4, .pipeline = 2, .order = "tp-cp-pp-dp"},
      {.tensor = 2, .context = 2, .data = 4, .pipeline = 2, .order = "cp-dp-pp-tp"},
      {.tensor = 16, .pipeline = 2}};  // the last two have tensor-parallel groups across servers
  for (const Layout& layout : layouts) {
    TrafficRig rig(layout, 8, RoutingKind::ecmp);
    BoundaryTraffic traffic = rig.boundaries();
    std::vector<HostId> servers = rig.packed();
    traffic.times(servers, 0, 1);
    for (const std::size_t slot : {1u, 3u, 0u, 2u}) {
      servers[slot] = HostId(4 + slot);
      BoundaryTraffic fresh = rig.boundaries();
      for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
        EXPECT_EQ(traffic.times(servers, from, to).seconds, fresh.times(servers, from, to).seconds);
        std::vector<double> bytes = rig.no_bytes(), again = rig.no_bytes();
        traffic.add_bytes(servers, from, to, 1, bytes);
        fresh.add_bytes(servers, from, to, 1, again);
        EXPECT_EQ(bytes, again);
      }
    }
  }
}

TEST(BoundaryTraffic, names_the_slice_that_is_cut) {
  TrafficRig rig(sixteen, 2);
  BoundaryTraffic traffic = rig.boundaries();
  const LinkId link = rig.fabric->uplink(NicId(5));  // data 1, context 0, tensor 1
  std::vector<bool> changed(rig.fabric->links().size(), false);
  changed[link.index()] = true;
  EXPECT_TRUE(traffic.times(rig.packed(), 0, 1).no_path.empty());
  EXPECT_TRUE(traffic.uses(rig.packed(), 0, 1, changed));
  EXPECT_FALSE(traffic.uses(rig.packed(), 1, 0, changed));
  rig.router->set_up(link, false);
  traffic.forget(changed);
  const BoundaryTimes& times = traffic.times(rig.packed(), 0, 1);
  EXPECT_EQ(times.no_path, std::vector<int>{2});
  ASSERT_EQ(times.cut.size(), 1u);
  EXPECT_EQ(times.cut[0], std::pair(GpuId(5), GpuId(13)));
}

}  // namespace
}  // namespace trainyard::models
