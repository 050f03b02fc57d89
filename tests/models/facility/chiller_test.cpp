#include "models/facility/chiller.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace literals;

TEST(ChillerCop, six_values_of_the_second_law) {
  // efficiency 0.40, evaporation at 2 and 13 degrees, condensation 12 K above the air
  struct Row {
    double ambient, at_2, at_13;
  };
  for (const Row row : {Row{20, 3.669, 6.024}, {30, 2.752, 3.947}, {40, 2.201, 2.935}}) {
    const Outdoors air{.dry = row.ambient};
    EXPECT_NEAR(chiller_cop({}, 7, air), row.at_2, 5e-4);
    EXPECT_NEAR(chiller_cop({}, 18, air), row.at_13, 5e-4);
  }
}

TEST(ChillerCop, a_tower_follows_the_wet_bulb) {
  ChillersSpec spec{.rejection = Rejection::tower};
  // 0.60 · 286.15 / (22 + 8 - 13) = 10.099
  EXPECT_NEAR(chiller_cop(spec, 18, {.dry = 35, .wet = 22}), 10.0994, 1e-4);
}

TEST(ChillerShare, falls_above_the_design_temperature_and_ends_at_the_trip) {
  const ChillersSpec spec;  // design 35, margin 9
  EXPECT_EQ(chiller_share(spec, {.dry = 35}), 1);
  EXPECT_NEAR(chiller_share(spec, {.dry = 40}), 0.925, 1e-12);
  EXPECT_NEAR(chiller_share(spec, {.dry = 43.999}), 0.865, 1e-4);
  EXPECT_EQ(chiller_share(spec, {.dry = 44}), 0);
  EXPECT_FALSE(is_too_hot(spec, {.dry = 43.999}));
  EXPECT_TRUE(is_too_hot(spec, {.dry = 44}));
}

TEST(Removal, chillers_alone_follow_the_band_and_then_give_all) {
  const auto pieces = removal({.set_point = 18, .gain = 1e6, .mechanical = 6e5});
  EXPECT_EQ(piece_at(pieces, 17.9).heat(17.9), 0);
  EXPECT_NEAR(piece_at(pieces, 18.4).heat(18.4), 4e5, 1e-3);
  EXPECT_FALSE(piece_at(pieces, 18.59).is_short);
  EXPECT_TRUE(piece_at(pieces, 18.61).is_short);
  EXPECT_NEAR(piece_at(pieces, 30).heat(30), 6e5, 1e-3);
}

TEST(Removal, the_economizer_replaces_chillers_up_to_ambient_plus_approach) {
  // 1 MW at 5 K. At 13 outside it does all up to 18: chillers have nothing left to do.
  RemovalInputs in{.set_point = 18,
                   .gain = 1e6,
                   .mechanical = 1e6,
                   .free_slope = 2e5,
                   .outdoors = 12.5,
                   .free_most = 1e6};
  EXPECT_EQ(piece_at(removal(in), 18.9).chilled(18.9), 0);
  // At 16 outside it gives 2.8 K · 200 kW/K = 560 kW at 18.8; asked are 800.
  in.outdoors = 16;
  const auto partial = removal(in);
  EXPECT_NEAR(piece_at(partial, 18.8).heat(18.8), 8e5, 1e-3);
  EXPECT_NEAR(piece_at(partial, 18.8).chilled(18.8), 2.4e5, 1e-3);
  // 2 + 0.2 x 1e6 ... at 18.5 free cooling gives all: asked 500 kW, free 500 kW.
  EXPECT_NEAR(piece_at(partial, 18.4).chilled(18.4), 0, 1e-6);
  // Warmer outside than the loop: nothing.
  in.outdoors = 25;
  EXPECT_NEAR(piece_at(removal(in), 18.8).chilled(18.8), 8e5, 1e-3);
}

TEST(Removal, towers_share_their_capacity_between_free_cooling_and_chillers) {
  // 300 kW of towers, 60 kW/K above 17 degrees; COP 5: 1.2 W to the tower for each W chilled.
  const RemovalInputs in{.set_point = 18,
                         .gain = 1e6,
                         .mechanical = 1e6,
                         .free_slope = 6e4,
                         .outdoors = 17,
                         .free_most = 3e5,
                         .towers = 3e5,
                         .work = 0.2};
  const auto pieces = removal(in);
  // At 19.5: 150 kW free, (300 - 150) / 1.2 = 125 kW chilled.
  EXPECT_NEAR(piece_at(pieces, 19.5).heat(19.5), 275e3, 1e-3);
  EXPECT_NEAR(piece_at(pieces, 19.5).chilled(19.5), 125e3, 1e-3);
  EXPECT_TRUE(piece_at(pieces, 19.5).is_short);
  // At 22 and above all of it is free.
  EXPECT_NEAR(piece_at(pieces, 23).heat(23), 300e3, 1e-3);
  EXPECT_NEAR(piece_at(pieces, 23).chilled(23), 0, 1e-3);
}

TEST(Removal, pieces_are_the_law_itself_and_hang_together) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    sim::Stream luck(sim::Seed{seed}, "removal");
    const auto some = [&](double most) { return luck.uniform() < 0.2 ? 0 : luck.uniform() * most; };
    RemovalInputs in{.set_point = 10 + luck.uniform() * 20, .gain = 1e5 + luck.uniform() * 2e6};
    in.mechanical = some(2e6);
    in.free_slope = some(4e5);
    in.free_most = some(2e6);
    in.outdoors = -10 + luck.uniform() * 55;
    if (luck.uniform() < 0.5) {
      in.towers = in.free_most;
      in.work = 0.05 + luck.uniform() * 0.4;
    }
    const auto pieces = removal(in);
    for (double T = -30; T < 90; T += 0.0937) {
      const double free = std::clamp(in.free_slope * (T - in.outdoors), 0.0, in.free_most);
      const double asked = std::max(0.0, in.gain * (T - in.set_point));
      const double chilled =
          std::min(in.mechanical, std::max(0.0, in.towers - free) / (1.0 + in.work));
      const double all = std::min(asked, free + chilled);
      ASSERT_NEAR(piece_at(pieces, T).heat(T), all, 1e-2 + 1e-6 * all)
          << "seed " << seed << " at " << T;
      ASSERT_NEAR(piece_at(pieces, T).chilled(T), std::max(0.0, all - free), 1e-2 + 1e-6 * all)
          << "seed " << seed << " at " << T;
    }
    for (std::size_t i = 1; i < pieces.size(); ++i)
      EXPECT_NEAR(pieces[i - 1].heat(pieces[i].begin), pieces[i].heat_at_begin, 1e-2)
          << "seed " << seed;
  }
}

}  // namespace
}  // namespace trainyard::models
