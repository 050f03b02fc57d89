#include "models/facility/rack_cohorts.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;
using testing::ElementsAre;
using testing::SizeIs;

/// Racks round a room with a slab, cooled through the room's air.
struct Hall {
  ThermalNetwork net;
  RackCohorts racks{net};
  ThermalNode room, slab;
  ThermalBoundary supply;
  ThermalLink cooling;
  explicit Hall(double racks_in_all) {
    const RoomThermalSpec spec;
    room = net.add_node("room", spec.air_capacity, 22.0);
    slab = net.add_node("slab", spec.structure_capacity, 22.0);
    supply = net.add_boundary("supply", 18.0);
    net.connect(room, slab, spec.air_to_structure);
    cooling = net.connect(room, supply, 4e3 * racks_in_all);
  }
};

TEST(RackCohorts, ACohortHasTheTemperatureOfEachOfItsRacks) {
  Hall one(8), each(8);
  const RackCohort row = one.racks.add("row", {}, 8, 22.0);
  one.racks.connect(row, RackPart::air, one.room, 3333.3);
  one.racks.set_heat(row, RackPart::chips, 22.4_kW);
  one.racks.set_heat(row, RackPart::air, 17.6_kW);
  for (int i = 0; i < 8; ++i) {
    const RackCohort rack = each.racks.add("rack", {}, 1, 22.0);
    each.racks.connect(rack, RackPart::air, each.room, 3333.3);
    each.racks.set_heat(rack, RackPart::chips, 22.4_kW);
    each.racks.set_heat(rack, RackPart::air, 17.6_kW);
  }
  for (int minute = 1; minute <= 20; ++minute) {
    if (minute == 10) {
      one.net.set_conductance(one.cooling, 0.0);
      each.net.set_conductance(each.cooling, 0.0);
    }
    one.net.advance(start_of_run + minute * 60s);
    each.net.advance(start_of_run + minute * 60s);
    for (std::size_t i = 0; i < 8; ++i)
      for (RackPart part : {RackPart::chips, RackPart::air, RackPart::mass})
        EXPECT_NEAR(each.racks.temperature(each.racks.cohort_of(Rack(i)), part),
                    one.racks.temperature(row, part), 1e-10);
  }
  EXPECT_EQ(one.net.node_count(), 5u);
  EXPECT_EQ(each.net.node_count(), 26u);
}

TEST(RackCohorts, ABrokenRackLeavesAndComesBack) {
  Hall hall(4);
  const RackCohort row = hall.racks.add("row", {}, 4, 22.0);
  const RackLink flow = hall.racks.connect(row, RackPart::air, hall.room, 3000.0);
  hall.racks.set_heat(row, RackPart::air, 40_kW);
  hall.net.advance(start_of_run + 600s);
  EXPECT_THAT(hall.racks.merge(), SizeIs(0));
  const RackCohort broken = hall.racks.split(row, std::vector{Rack(2)});
  EXPECT_NE(broken, row);
  EXPECT_THAT(hall.racks.racks(row), ElementsAre(Rack(0), Rack(1), Rack(3)));
  EXPECT_THAT(hall.racks.racks(broken), ElementsAre(Rack(2)));
  EXPECT_EQ(hall.racks.cohort_of(Rack(2)), broken);
  // Nothing has changed yet, to the last bit: they may be joined again.
  EXPECT_EQ(hall.racks.temperature(row, RackPart::air),
            hall.racks.temperature(broken, RackPart::air));
  hall.racks.set_conductance(broken, flow, 0.0);
  EXPECT_EQ(hall.net.conductance(hall.racks.link(row, flow)), 9000.0);
  hall.net.advance(start_of_run + 660s);
  EXPECT_GT(hall.racks.temperature(broken, RackPart::air),
            hall.racks.temperature(row, RackPart::air) + 10.0);
  hall.racks.set_conductance(broken, flow, 3000.0);
  EXPECT_THAT(hall.racks.merge(), SizeIs(0));  // still hot
  hall.net.advance(start_of_run + 2 * 24h);
  const auto merged = hall.racks.merge();
  ASSERT_THAT(merged, SizeIs(1));
  EXPECT_EQ(merged[0].into, row);
  EXPECT_EQ(merged[0].from, broken);
  EXPECT_THAT(hall.racks.racks(row), ElementsAre(Rack(0), Rack(1), Rack(2), Rack(3)));
  EXPECT_EQ(hall.racks.cohort_of(Rack(2)), row);
  EXPECT_THAT(hall.racks.cohorts(), ElementsAre(row));
  EXPECT_THROW(hall.racks.temperature(broken, RackPart::air), CheckFailed);
  const HeatBalance balance = hall.net.balance();
  EXPECT_NEAR(balance.residual.value(), 0.0, 1e-9 * balance.given.value());
  EXPECT_NEAR(balance.given.value(), 4 * 40e3 * 2 * 86400.0, 1.0);
}

TEST(RackCohorts, MergesWhatIsEqualWithinTheToleranceOnly) {
  ThermalNetwork net;
  RackCohorts racks(net);
  const RackCohort a = racks.add("a", {}, 3, 22.0), b = racks.add("b", {}, 1, 22.0 + 4e-4);
  EXPECT_THAT(racks.merge(), SizeIs(0));
  EXPECT_THAT(racks.merge(3.9e-4), SizeIs(0));
  racks.set_heat(b, RackPart::air, 1_W);
  EXPECT_THAT(racks.merge(1e-3), SizeIs(0));  // another load
  racks.set_heat(b, RackPart::air, 0_W);
  EXPECT_THAT(racks.merge(1e-3), SizeIs(1));
  EXPECT_NEAR(racks.temperature(a, RackPart::mass), 22.0 + 1e-4, 1e-12);
  // Another kind never merges.
  RackThermalSpec heavy;
  heavy.mass_capacity *= 1.5;
  racks.add("heavy", heavy, 1, racks.temperature(a, RackPart::air));
  EXPECT_THAT(racks.merge(1.0), SizeIs(0));
}

TEST(RackCohorts, RacksOfTwoRoomsStayApart) {
  ThermalNetwork net;
  RackCohorts racks(net);
  const ThermalNode north = net.add_node("north", 1e6, 22.0),
                    south = net.add_node("south", 1e6, 22.0);
  const RackCohort a = racks.add("a", {}, 2, 22.0), b = racks.add("b", {}, 2, 22.0);
  const RackCohort c = racks.add("c", {}, 1, 22.0);
  racks.connect(a, RackPart::air, north, 100.0);
  racks.connect(b, RackPart::air, south, 100.0);
  racks.connect(c, RackPart::air, north, 100.0);
  const auto merged = racks.merge();
  ASSERT_THAT(merged, SizeIs(1));
  EXPECT_EQ(merged[0].into, a);
  EXPECT_EQ(merged[0].from, c);
}

TEST(RackCohorts, RefusesStrangers) {
  ThermalNetwork net;
  RackCohorts racks(net);
  const RackCohort a = racks.add("a", {}, 2, 22.0), b = racks.add("b", {}, 2, 22.0);
  EXPECT_THROW(racks.split(a, std::vector{Rack(2)}), CheckFailed);
  EXPECT_THROW(racks.split(a, std::vector{Rack(0), Rack(0)}), CheckFailed);
  EXPECT_THROW(racks.split(a, std::vector<Rack>{}), CheckFailed);
  EXPECT_EQ(racks.split(b, std::vector{Rack(3), Rack(2)}), b);
}

class RandomHall : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomHall, testing::Range(1, 9));

// Faults, repairs and loads strike single racks of three rows; the twin holds every rack by itself.
TEST_P(RandomHall, AgreesWithEveryRackByItself) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  constexpr std::size_t rows = 3, in_row = 6, all = rows * in_row;
  Hall joined(all), apart(all);
  RackLink flow;
  for (std::size_t row = 0; row < rows; ++row) {
    RackThermalSpec kind;
    kind.mass_capacity *= 1.0 + double(row % 2);
    const RackCohort cohort = joined.racks.add("row", kind, in_row, 22.0);
    flow = joined.racks.connect(cohort, RackPart::air, joined.room, 3333.3);
    for (std::size_t i = 0; i < in_row; ++i) {
      const RackCohort rack = apart.racks.add("rack", kind, 1, 22.0);
      apart.racks.connect(rack, RackPart::air, apart.room, 3333.3);
    }
  }
  Time now = start_of_run;
  std::size_t splits = 0, merges = 0;
  for (int event = 0; event < 120; ++event) {
    const Rack rack(random() % all);
    const double heat = random() % 3 ? 20e3 : 0.0;
    const double air = random() % 4 ? 3333.3 : 1000.0;
    RackCohort cohort = joined.racks.cohort_of(rack);
    if (joined.racks.racks(cohort).size() > 1) ++splits;
    cohort = joined.racks.split(cohort, std::vector{rack});
    const RackCohort alone = apart.racks.cohort_of(rack);
    const auto apply = [&](RackCohorts& racks, RackCohort to) {
      racks.set_heat(to, RackPart::chips, Watts(heat));
      racks.set_heat_slope(to, RackPart::chips, heat > 0.0 ? 20.0 : 0.0, 60.0);
      racks.set_conductance(to, flow, air);
    };
    apply(joined.racks, cohort);
    apply(apart.racks, alone);
    now = now + std::chrono::seconds(1 + random() % 5000) +
          std::chrono::hours(event % 10 == 0 ? 40 : 0);
    joined.net.advance(now);
    apart.net.advance(now);
    merges += joined.racks.merge(1e-7).size();
    for (std::size_t i = 0; i < all; ++i)
      for (RackPart part : {RackPart::chips, RackPart::air, RackPart::mass})
        ASSERT_NEAR(joined.racks.temperature(joined.racks.cohort_of(Rack(i)), part),
                    apart.racks.temperature(RackCohort(i), part), 1e-6)
            << "event " << event;
    std::size_t sum = 0;
    for (RackCohort c : joined.racks.cohorts()) sum += joined.racks.racks(c).size();
    ASSERT_EQ(sum, all);
  }
  EXPECT_GT(splits, 0u);
  EXPECT_GT(merges, 0u);
  for (const ThermalNetwork* net : {&joined.net, &apart.net}) {
    const HeatBalance b = net->balance();
    EXPECT_LT(std::abs(b.residual.value()), 1e-9 * (b.given.value() + b.removed.value()));
  }
  EXPECT_NEAR(joined.net.balance().removed / apart.net.balance().removed, 1.0, 1e-9);
}

}  // namespace
}  // namespace trainyard::models
