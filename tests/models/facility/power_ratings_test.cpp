#include "models/facility/power_ratings.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <complex>

#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const double root3 = std::sqrt(3.0);

// What a port gives: rated current times voltage times power factor.
TEST(Ports, published_figures) {
  EXPECT_NEAR(port_power(16_A, 220_V, 1, 0.9).value(), 3168, 1e-9);
  EXPECT_NEAR(port_apparent(32_A, 400_V, 3).value(), 22'170, 0.5);
  EXPECT_NEAR(port_apparent(60_A, 415_V, 3, 0.8).value(), 34'502, 0.5);
  EXPECT_NEAR(port_apparent(60_A, 208_V, 3, 0.8).value(), 17'293, 0.5);
  EXPECT_EQ(ports_needed(5_kW, 3168_W), 2);  // 1.58
  EXPECT_EQ(ports_needed(3168_W, 3168_W), 1);
  EXPECT_EQ(ports_needed(Watts(3168.01), 3168_W), 2);
  EXPECT_EQ(ports_needed(5_kW, port_power(16_A, 400_V, 3, 0.9)), 1);  // or one three-phase port
  EXPECT_NEAR(usable_power(100_kVA, 0.8).value(), 80e3, 1e-9);
}

// 1 MW / 0.8 + 50 kW + 300 kW = 1.6 MW; a quarter more is 2 MW.
TEST(PowerBudget, full_load_through_the_conversion_and_a_margin) {
  PowerBudget budget;
  budget.servers = 1_MW;
  budget.efficiency = 0.8;
  budget.network = 50_kW;
  budget.cooling = 300_kW;
  EXPECT_NEAR(budget.total().value(), 2e6, 1e-6);
  budget.margin = 0.3;
  EXPECT_NEAR(budget.total().value(), 2.08e6, 1e-6);
}

PowerNodeSpec node(PowerKind kind, std::vector<std::string> fed_by = {}, int count = 1) {
  PowerNodeSpec spec;
  spec.kind = kind;
  spec.fed_by = std::move(fed_by);
  spec.count = count;
  spec.curve = LossCurve::none;
  return spec;
}

/// utility -> UPS -> panel -> PDU -> racks.
PowerSpec chain() {
  PowerSpec spec;
  spec.nodes["utility"] = node(PowerKind::utility);
  spec.nodes["ups"] = node(PowerKind::ups, {"utility"});
  spec.nodes["ups"].apparent = 100_kVA;
  spec.nodes["panel"] = node(PowerKind::breaker, {"ups"});
  spec.nodes["panel"].breaker = BreakerSpec{.rating = 160_A};
  spec.nodes["pdu"] = node(PowerKind::pdu, {"panel"});
  spec.racks.feeds["a"].from = "pdu";
  spec.racks.feeds["a"].breaker = BreakerSpec{.rating = 16_A};
  spec.racks.supplies = 1;
  return spec;
}

std::vector<Finding> findings(const PowerSpec& spec, int racks, Watts rack, double power_factor) {
  EXPECT_THAT(check_power(spec), IsEmpty());
  const PowerLayout layout = lay_out_power(spec, racks);
  SteadyPower power(layout);
  power.set_racks(rack, power_factor);
  power.solve();
  return check_ratings(power);
}

std::size_t index(const PowerLayout& layout, const std::string& name) {
  for (std::size_t n = 0; n < layout.nodes.size(); ++n)
    if (layout.nodes[n].name == name) return n;
  ADD_FAILURE() << name;
  return 0;
}

// A breaker of 16 A at 400 V, three phases: 12.8 A are planned, 16 A are carried.
TEST(Ratings, eighty_percent_may_be_planned) {
  const auto at = [](double current_A) {
    return findings(chain(), 1, Watts(current_A * root3 * 400), 1.0);
  };
  EXPECT_THAT(at(12.8), IsEmpty());
  std::vector<Finding> found = at(12.81);
  ASSERT_THAT(found, SizeIs(3));  // each line
  EXPECT_EQ(found[0].node, "rack-0/a");
  EXPECT_EQ(found[0].rating, Rating::continuous);
  EXPECT_NEAR(found[0].limit, 12.8, 1e-12);
  EXPECT_EQ(to_text(found[0]),
            "rack-0/a: 12.8 A on line a, made for 12.8 A as a continuous load (80 % of its rated "
            "current)");
  EXPECT_EQ(at(16.0)[0].rating, Rating::continuous);
  EXPECT_EQ(at(16.01)[0].rating, Rating::current);
  EXPECT_EQ(at(16.01)[0].limit, 16.0);
  PowerSpec full = chain();
  full.racks.feeds["a"].breaker->full_rated = true;
  EXPECT_THAT(findings(full, 1, Watts(16.0 * root3 * 400), 1.0), IsEmpty());
  EXPECT_THAT(findings(full, 1, Watts(16.01 * root3 * 400), 1.0), SizeIs(3));
}

// Ten racks of 5 kW: the panel carries 72 of 160 A; one of 12 kW more does not fit its circuit.
TEST(Ratings, an_upper_breaker_may_be_ample_while_one_below_is_not) {
  const PowerLayout layout = lay_out_power(chain(), 10);
  SteadyPower power(layout);
  power.set_racks(5_kW, 1.0);
  power.set_load(layout.racks[7], 12_kW, VoltAmperes{});
  power.solve();
  const std::vector<Finding> found = check_ratings(power);
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].node, "rack-7/a");
  EXPECT_NEAR(found[0].found, 12e3 / root3 / 400, 1e-9);
  EXPECT_NEAR(power.worst_current_A(index(layout, "panel")), 57e3 / root3 / 400, 1e-9);
}

// 100 kVA carry 80 kW at a power factor of 0.8; the next watt is an overload that kW do not show.
TEST(Ratings, kva_and_kw) {
  PowerSpec spec = chain();
  spec.nodes["panel"].breaker->rating = 400_A;
  spec.racks.feeds["a"].breaker = {};
  EXPECT_THAT(findings(spec, 10, 8_kW, 0.8), IsEmpty());
  std::vector<Finding> found = findings(spec, 10, Watts(8001), 0.8);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rating, Rating::apparent);
  EXPECT_EQ(to_text(found[0]), "ups: 100 kVA, made for 100 kVA");
  EXPECT_THAT(findings(spec, 10, 9_kW, 1.0), IsEmpty());
  spec.nodes["ups"].power_factor = 0.8;  // the UPS itself is made for 80 kW
  found = findings(spec, 10, 9_kW, 1.0);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rating, Rating::active);
  EXPECT_NEAR(found[0].limit, 80e3, 1e-9);
  EXPECT_EQ(to_text(found[0]), "ups: 90 kW, made for 80 kW");
}

// Four racks of 2.3 kW at 230 V, one after the other on lines a, b, c, a: 20 A on a, 10 A on b and
// c.
TEST(Phases, circuits_to_the_neutral_in_turn) {
  PowerSpec spec = chain();
  spec.nodes["pdu"].current = Amperes(19.9);
  spec.racks.feeds["a"].phases = 1;
  const double line_V = 400 / root3;
  const PowerLayout layout = lay_out_power(spec, 4);
  SteadyPower power(layout);
  power.set_racks(Watts(10 * line_V), 1.0);
  power.solve();
  const std::size_t pdu = index(layout, "pdu");
  EXPECT_NEAR(power.line_currents_A(pdu)[0], 20, 1e-9);
  EXPECT_NEAR(power.line_currents_A(pdu)[1], 10, 1e-9);
  EXPECT_NEAR(power.line_currents_A(pdu)[2], 10, 1e-9);
  EXPECT_NEAR(power.flow(pdu).current.value(), 20, 1e-9);  // what its breaker sees
  EXPECT_NEAR(power.line_currents_A(index(layout, "rack-3/a"))[0], 10, 1e-9);
  EXPECT_EQ(power.line_currents_A(index(layout, "rack-3/a"))[1], 0);
  // The panel has the same lines; the UPS takes all three alike.
  EXPECT_NEAR(power.line_currents_A(index(layout, "panel"))[0], 20, 1e-9);
  EXPECT_NEAR(power.line_currents_A(index(layout, "ups"))[0], 20, 1e-9);
  EXPECT_NEAR(power.line_currents_A(index(layout, "utility"))[0], 40.0 / 3, 1e-9);
  const std::vector<Finding> found = check_ratings(power);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(to_text(found[0]), HasSubstr("pdu: 20 A on line a, made for 19.9 A"));
}

TEST(Phases, eco_mode_passes_the_split_on) {
  PowerSpec spec = chain();
  spec.nodes["ups"].ups = UpsSpec{};
  spec.nodes["ups"].ups->mode = UpsMode::eco;
  spec.racks.feeds["a"].phases = 1;
  const PowerLayout layout = lay_out_power(spec, 1);
  SteadyPower power(layout);
  power.set_racks(Watts(1000 / root3 * 4), 0.9);
  power.solve();
  const std::size_t utility = index(layout, "utility");
  EXPECT_NEAR(power.line_currents_A(utility)[0], 10 / 0.9, 1e-9);
  EXPECT_EQ(power.line_currents_A(utility)[1], 0);
}

// Loads of 10 A between lines. One pair: 10 A in both. Two pairs: 10 A, and in the line they share
// the difference of two phasors 120 degrees apart, sqrt(3) times 10 A. Three pairs: balanced.
TEST(Phases, circuits_between_lines) {
  PowerSpec spec = chain();
  spec.nodes["utility"].voltage = 208_V;
  spec.racks.feeds["a"].phases = 1;
  spec.racks.feeds["a"].voltage = 208_V;
  for (const double power_factor : {1.0, 0.8}) {
    const auto currents = [&](int racks) {
      const PowerLayout layout = lay_out_power(spec, racks);
      SteadyPower power(layout);
      power.set_racks(Watts(2080 * power_factor), power_factor);
      power.solve();
      return power.line_currents_A(index(layout, "pdu"));
    };
    const double I = 10, sum = 10 * root3;
    const auto expect = [&](int racks, double a, double b, double c) {
      const std::array<double, 3> found = currents(racks);
      EXPECT_NEAR(found[0], a, 1e-9) << racks;
      EXPECT_NEAR(found[1], b, 1e-9) << racks;
      EXPECT_NEAR(found[2], c, 1e-9) << racks;
    };
    expect(1, I, I, 0);
    expect(2, I, sum, I);
    expect(3, sum, sum, sum);
    expect(6, 2 * sum, 2 * sum, 2 * sum);
  }
}

/// Phasors of current of one circuit, in the voltage of line a to the neutral as reference.
void add_currents(std::array<std::complex<double>, 3>& sum, Lines lines, std::complex<double> S,
                  double voltage_V) {
  const double turn = 2 * std::acos(-1.0) / 3;
  const auto neutral = [&](int line) { return std::polar(voltage_V / root3, -turn * line); };
  const auto between = [&](std::size_t from, std::size_t to) {
    const auto current = std::conj(S / (neutral(int(from)) - neutral(int(to))));
    sum[from] += current;
    sum[to] -= current;
  };
  switch (lines) {
    case Lines::abc:
      for (int line = 0; line < 3; ++line)
        sum[std::size_t(line)] += std::conj(S / 3.0 / neutral(line));
      break;
    case Lines::a:
    case Lines::b:
    case Lines::c: {
      const int line = int(lines) - int(Lines::a);
      sum[std::size_t(line)] += std::conj(S / neutral(line));
      break;
    }
    case Lines::ab:
      return between(0, 1);
    case Lines::bc:
      return between(1, 2);
    case Lines::ca:
      return between(2, 0);
  }
}

// Random racks, each with circuits to the neutral, between lines and on all three, against phasors.
TEST(Phases, agree_with_phasors) {
  PowerSpec spec = chain();
  spec.racks.feeds.clear();
  for (const char* feed : {"neutral", "lines", "three"}) spec.racks.feeds[feed].from = "pdu";
  spec.racks.feeds["neutral"].phases = spec.racks.feeds["lines"].phases = 1;
  spec.racks.feeds["lines"].voltage = 400_V;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    sim::Stream luck(sim::Seed{seed}, "racks");
    const PowerLayout layout = lay_out_power(spec, 1 + int(luck.below(7)));
    SteadyPower power(layout);
    for (const std::size_t rack : layout.racks)
      power.set_load(rack, Watts(luck.uniform() * 20e3), VoltAmperes(luck.uniform() * 10e3));
    power.solve();
    std::array<std::complex<double>, 3> expected{};
    for (std::size_t n = 0; n < layout.nodes.size(); ++n) {
      if (layout.nodes[n].name.find('/') == std::string::npos) continue;
      const PowerPaths::Flow& flow = power.flow(n);
      add_currents(expected, layout.limits[n].lines, {flow.out_W, flow.out_var}, 400);
    }
    for (std::size_t line = 0; line < 3; ++line)
      EXPECT_NEAR(power.line_currents_A(index(layout, "pdu"))[line], std::abs(expected[line]),
                  1e-9);
  }
}

// The switch takes all of line a from its first source, and nothing from the second.
TEST(Phases, a_transfer_switch_takes_all_from_one) {
  PowerSpec spec = chain();
  spec.nodes["other"] = node(PowerKind::switchgear, {"utility"});
  spec.nodes["first"] = node(PowerKind::switchgear, {"utility"});
  spec.nodes["sts"] = node(PowerKind::transfer_switch, {"first", "other"});
  spec.racks.feeds["a"].from = "sts";
  spec.racks.feeds["a"].phases = 1;
  const PowerLayout layout = lay_out_power(spec, 1);
  SteadyPower power(layout);
  power.set_racks(Watts(4000 / root3), 1.0);
  power.solve();
  EXPECT_NEAR(power.line_currents_A(index(layout, "first"))[0], 10, 1e-9);
  EXPECT_EQ(power.line_currents_A(index(layout, "other"))[0], 0);
  power.solve({index(layout, "first")});
  EXPECT_EQ(power.line_currents_A(index(layout, "first"))[0], 0);
  EXPECT_NEAR(power.line_currents_A(index(layout, "other"))[0], 10, 1e-9);
}

// A three-phase load is balanced: each line carries what the solver says.
TEST(Phases, three_phase_loads_load_all_lines_alike) {
  const PowerLayout layout = lay_out_power(chain(), 5);
  SteadyPower power(layout);
  power.set_racks(7_kW, 0.95);
  power.solve();
  for (std::size_t n = 0; n < layout.nodes.size(); ++n) {
    if (layout.nodes[n].kind == PlantKind::rack) continue;
    for (const double current_A : power.line_currents_A(n))
      EXPECT_NEAR(current_A, power.flow(n).current.value(), 1e-9) << layout.nodes[n].name;
  }
}

// Six servers of 5 kW in a rack that is made for 8 kW.
TEST(Servers, an_ordinary_rack_does_not_take_six) {
  PowerSpec spec = chain();
  spec.racks.rating = 8_kW;
  const PowerLayout layout = lay_out_power(spec, 1);
  const std::vector<Finding> found = check_servers(spec, layout, 5_kW, 6);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(to_text(found[0]), "rack: 30 kW with 6 servers of 5 kW, made for 8 kW");
  EXPECT_THAT(check_servers(spec, layout, 5_kW, 1), IsEmpty());
  spec.racks.rating = 30_kW;
  EXPECT_THAT(check_servers(spec, layout, 5_kW, 6), IsEmpty());
  spec.racks.rating = 8_kW;
  const std::vector<Finding> at_load = findings(spec, 1, Watts(8001), 1.0);
  ASSERT_THAT(at_load, SizeIs(1));
  EXPECT_EQ(at_load[0].rating, Rating::rack);
}

// 5 kW at 220 V and 0.9 on two outlets of 16 A: 12.6 A each, 25.3 A on one.
TEST(Servers, two_outlets_carry_what_one_does_not) {
  PowerSpec spec = chain();
  spec.nodes["utility"].phases = 1;
  spec.nodes["utility"].voltage = 220_V;
  spec.racks.feeds["b"] = spec.racks.feeds["a"];
  spec.racks.supplies = 2;
  spec.racks.outlet = 16_A;
  spec.racks.power_factor = 0.9;
  const PowerLayout layout = lay_out_power(spec, 1);
  std::vector<Finding> found = check_servers(spec, layout, 5_kW, 1);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].rating, Rating::outlet_alone);
  EXPECT_NEAR(found[0].found, 5000 / 0.9 / 220, 1e-9);
  EXPECT_THAT(to_text(found[0]),
              HasSubstr("25.3 A with feed a and without another, made for 16 A"));
  spec.racks.supplies = 4;
  EXPECT_THAT(check_servers(spec, layout, 5_kW, 1), IsEmpty());
}

// Six supplies of 3.3 kW, three a feed: 9.9 kW are left of 19.8 kW when a feed is lost.
TEST(Servers, supplies_that_are_left) {
  PowerSpec spec = chain();
  spec.racks.feeds["b"] = spec.racks.feeds["a"];
  spec.racks.supplies = 6;
  spec.racks.supply_rating = 3300_W;
  const PowerLayout layout = lay_out_power(spec, 1);
  EXPECT_THAT(check_servers(spec, layout, 9.9_kW, 4), IsEmpty());
  const std::vector<Finding> found = check_servers(spec, layout, 10.2_kW, 4);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(to_text(found[0]),
            "server: 10.2 kW with one feed lost, made for 9.9 kW (power supplies of a server)");
}

}  // namespace
}  // namespace trainyard::models
