#include "models/facility/tariff.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "sim/check.hpp"
#include "sim/random.hpp"
#include "tests/models/facility/spec_mistakes.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;
using testing::ElementsAre;

constexpr double kWh = joules_per_kWh;

EconomicsSpec day_and_night() {
  EconomicsSpec s;
  s.tariff.price = Dollars(0.10);
  s.tariff.blocks["night"] = {.price = Dollars(0.05), .from = 22, .to = 6};
  s.pue = 1;
  return s;
}

TEST(Tariff, night_wraps_round_midnight) {
  const Tariff t(day_and_night());
  EXPECT_EQ(t.block_at(0), 1u);
  EXPECT_EQ(t.block_at(5), 1u);
  EXPECT_EQ(t.block_at(6), 0u);
  EXPECT_EQ(t.block_at(21), 0u);
  EXPECT_EQ(t.block_at(22), 1u);
  EXPECT_EQ(t.block_at(24 + 22), 1u);
  EXPECT_NEAR(t.mean_price().value(), (8 * 0.05 + 16 * 0.10) / 24, 1e-15);
}

// A run from Friday, the 31st of December: hour 24 is Saturday in January.
TEST(Tariff, seasons_and_days_follow_the_calendar) {
  EconomicsSpec s;
  s.start_day = 365;
  s.start_weekday = 5;
  s.tariff.blocks["summer"] = {.price = Dollars(0.2), .first_month = 6, .last_month = 8};
  s.tariff.blocks["winter"] = {
      .price = Dollars(0.3), .first_month = 12, .last_month = 2, .days = Days::weekdays};
  const Tariff t(s);
  EXPECT_EQ(t.name(1), "summer");
  EXPECT_EQ(t.block_at(0), 2u);
  EXPECT_EQ(t.block_at(23), 2u);
  EXPECT_EQ(t.block_at(24), 0u);      // Saturday
  EXPECT_EQ(t.block_at(2 * 24), 0u);  // Sunday
  EXPECT_EQ(t.block_at(3 * 24), 2u);  // Monday
  // February ends on day 59; the run began on day 365.
  EXPECT_EQ(month_at(365, 0), 11);
  EXPECT_EQ(month_at(365, 24), 12);
  EXPECT_EQ(month_at(365, 59 * 24 + 23), 13);
  EXPECT_EQ(month_at(365, 60 * 24), 14);
  EXPECT_EQ(month_at(1, 365 * 24), 12);
  EXPECT_EQ(t.block_at((1 + 151) * 24 - 1), 0u);  // 31st of May, last hour
  EXPECT_EQ(t.block_at((1 + 151) * 24), 1u);      // 1st of June
}

TEST(Tariff, blocks_must_not_overlap) {
  TariffSpec t;
  t.blocks["night"] = {.price = Dollars(1), .from = 22, .to = 6};
  t.blocks["day"] = {.price = Dollars(1), .from = 6, .to = 22};
  EXPECT_THAT(mistakes_of(t), ElementsAre());
  t.blocks["day"].to = 23;
  EXPECT_THAT(mistakes_of(t), ElementsAre("blocks"));
  t.blocks["day"].days = Days::weekend;
  EXPECT_THAT(mistakes_of(t), ElementsAre("blocks"));
  t.blocks["night"].days = Days::weekdays;
  EXPECT_THAT(mistakes_of(t), ElementsAre());
}

TEST(Tariff, other_mistakes_are_named) {
  EXPECT_THAT(mistakes_of(TariffBlockSpec{.from = 6, .to = 6}), ElementsAre("to"));
  EXPECT_THAT(mistakes_of(TariffSpec{.demand_window = 7min}), ElementsAre("demand_window"));
  EXPECT_THAT(mistakes_of(TariffSpec{.demand_window = 2h}), ElementsAre("demand_window"));
  EXPECT_THAT(mistakes_of(TariffSpec{.demand_window = 0s}), ElementsAre());
  EXPECT_THAT(mistakes_of(TariffSpec{.demand_window = 1h}), ElementsAre());
  TariffSpec t;
  t.blocks["base"] = {.price = Dollars(1)};
  EXPECT_THAT(mistakes_of(t), ElementsAre("blocks"));
  CarbonSpec c;
  c.by_hour.assign(23, 0.4);
  EXPECT_THAT(mistakes_of(c), ElementsAre("by_hour"));
  c.by_hour.assign(24, 0.4);
  EXPECT_THAT(mistakes_of(c), ElementsAre());
  c.by_hour[7] = -0.1;
  EXPECT_THAT(mistakes_of(c), ElementsAre("by_hour"));
}

// 1 MW from midnight to 8:00: 6 MWh at 0.05 and 2 MWh at 0.10 USD.
TEST(EnergyMeter, cuts_at_the_end_of_a_block) {
  EnergyMeter m(day_and_night(), {"pool"});
  m.set_power(0, 1_MW);
  m.advance(Time(8h));
  const EnergyUse u = m.use(0);
  EXPECT_DOUBLE_EQ(u.by_block[1].value(), 6000 * kWh);
  EXPECT_DOUBLE_EQ(u.by_block[0].value(), 2000 * kWh);
  EXPECT_NEAR(u.cost.value(), 300 + 200, 1e-9);
  EXPECT_NEAR(u.co2e_kg, 8000 * 0.37, 1e-9);
}

// IT of 10 kW of which 2 are switches, a site of 12 kW: jobs of 6 and 2 kW have 9 and 3 of it.
TEST(EnergyMeter, shares_switches_and_losses_by_power) {
  EnergyMeter m(day_and_night(), {"pool", "a", "b"});
  m.set_power(1, 6_kW);
  m.set_power(2, 2_kW);
  m.set_site(10_kW, 12_kW);
  m.advance(Time(1h));
  EXPECT_NEAR(m.use(0).site.value(), 0, 0);
  EXPECT_NEAR(m.use(1).site.value() / kWh, 9, 1e-12);
  EXPECT_NEAR(m.use(2).site.value() / kWh, 3, 1e-12);
  EXPECT_NEAR(m.use(1).own.value() / kWh, 6, 1e-12);
  EXPECT_NEAR(m.pue(), 1.2, 1e-12);
  // Everything is off but the plant.
  m.set_power(1, 0_W);
  m.set_power(2, 0_W);
  m.set_site(1_kW, 2_kW);
  m.advance(Time(2h));
  EXPECT_NEAR(m.use(0).site.value() / kWh, 2, 1e-12);
  EXPECT_NEAR(m.use(1).site.value() / kWh, 9, 1e-12);
  EXPECT_NEAR(m.total().site.value(), m.site().value(), 1e-6);
}

TEST(EnergyMeter, without_a_plant_the_pue_of_the_input_holds) {
  EconomicsSpec s;
  s.pue = 1.3;
  EnergyMeter m(s, {"pool"});
  m.set_power(0, 1_MW);
  m.advance(Time(10h));
  EXPECT_NEAR(m.site().value() / kWh, 13'000, 1e-8);
  EXPECT_NEAR(m.pue(), 1.3, 1e-12);
}

// Carbon of 24 hours: 0.1 before noon, 0.5 after. From 11:30 to 12:30 at 2 kW: 0.1 + 0.5.
TEST(EnergyMeter, carbon_follows_the_hours) {
  EconomicsSpec s = day_and_night();
  s.carbon.by_hour.assign(24, 0.1);
  std::fill(s.carbon.by_hour.begin() + 12, s.carbon.by_hour.end(), 0.5);
  EnergyMeter m(s, {"pool"});
  m.advance(Time(11h + 30min));
  m.set_power(0, 2_kW);
  m.advance(Time(12h + 30min));
  EXPECT_NEAR(m.use(0).co2e_kg, 0.6, 1e-12);
  EXPECT_NEAR(m.tariff().mean_intensity(), 0.3, 1e-12);
}

struct PeakCase {
  std::string name;
  Duration window;
  Duration from;    // 4 MW from here,
  Duration length;  // so long; else 1 MW
  double peak_MW;
};

class MonthlyPeak : public testing::TestWithParam<PeakCase> {};

TEST_P(MonthlyPeak, is_the_highest_mean_over_a_window) {
  const PeakCase& c = GetParam();
  EconomicsSpec s = day_and_night();
  s.tariff.demand_charge = Dollars(10);
  s.tariff.demand_window = c.window;
  EnergyMeter m(s, {"pool"});
  m.set_power(0, 1_MW);
  m.advance(Time(c.from));
  m.set_power(0, 4_MW);
  m.advance(Time(c.from + c.length));
  m.set_power(0, 1_MW);
  m.advance(Time(31 * 24h));
  ASSERT_EQ(m.months().size(), 1u);
  EXPECT_NEAR(m.months()[0].peak.value() / 1e6, c.peak_MW, 1e-12);
  EXPECT_NEAR(m.months()[0].covered, 1, 1e-12);
  EXPECT_NEAR(m.demand_cost().value(), c.peak_MW * 1000 * 10, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Windows, MonthlyPeak,
    testing::Values(PeakCase{"a_whole_window", 15min, 3h, 15min, 4},
                    PeakCase{"a_second_less", 15min, 3h, 15min - 1s, 4 - 3.0 / 900},
                    PeakCase{"five_minutes", 15min, 3h + 5min, 5min, 2},
                    // Ten minutes in each of two windows: (10 * 4 + 5 * 1) / 15.
                    PeakCase{"across_two_windows", 15min, 3h + 5min, 20min, 3},
                    PeakCase{"across_hours", 1h, 3h + 30min, 1h, 2.5},
                    PeakCase{"of_an_instant", 0s, 3h, 1ns, 4}),
    [](const testing::TestParamInfo<PeakCase>& p) { return p.param.name; });

// The run ends 10 minutes into a window: 1 MW before, 4 MW in them, counted over the whole window.
TEST(EnergyMeter, a_window_that_the_end_cuts_counts_in_full) {
  EnergyMeter m(day_and_night(), {"pool"});
  m.set_power(0, 1_MW);
  m.advance(Time(3h));
  m.set_power(0, 4_MW);
  m.advance(Time(3h + 10min));
  EXPECT_NEAR(m.months()[0].peak.value() / 1e6, 4 * 10.0 / 15, 1e-12);
  m.set_power(0, 1_MW);
  m.advance(Time(3h + 15min));
  EXPECT_NEAR(m.months()[0].peak.value() / 1e6, 3, 1e-12);
}

// 20 days of January and 7 of February at 10 USD for a kW: 1000 kW * 10 * 20/31 + 2000 * 10 * 7/28.
TEST(EnergyMeter, months_in_part_are_charged_in_part) {
  EconomicsSpec s = day_and_night();
  s.start_day = 12;
  s.tariff.demand_charge = Dollars(10);
  EnergyMeter m(s, {"pool"});
  m.set_power(0, 1_MW);
  m.advance(Time(20 * 24h));
  m.set_power(0, 2_MW);
  m.advance(Time(27 * 24h));
  ASSERT_EQ(m.months().size(), 2u);
  EXPECT_NEAR(m.demand_cost().value(), 10'000 * 20.0 / 31 + 20'000 * 0.25, 1e-6);
}

TEST(EnergyMeter, does_not_run_backwards) {
  EnergyMeter m(day_and_night(), {"pool"});
  m.advance(Time(1h));
  EXPECT_THROW(m.advance(Time(1h - 1ns)), CheckFailed);
  EXPECT_THROW(m.set_power(0, Watts(-1)), CheckFailed);
}

/// Everything by the second, in the most obvious way.
struct SlowMeter {
  std::map<std::pair<std::size_t, std::size_t>, double> block_J;  // (consumer, block)
  std::vector<double> co2e_kg, window_W;
  std::map<std::int64_t, double> peak_W;
};

struct Change {
  std::int64_t at_s;
  std::size_t consumer;
  double W, it_W, site_W;
};

EconomicsSpec rich_tariff(sim::Stream& luck) {
  EconomicsSpec s = day_and_night();
  s.start_day = 1 + int(luck.below(365));
  s.start_weekday = 1 + int(luck.below(7));
  s.tariff.blocks["peak"] = {.price = Dollars(0.3), .from = 16, .to = 20, .days = Days::weekdays};
  s.tariff.demand_charge = Dollars(12);
  for (int h = 0; h < 24; ++h) s.carbon.by_hour.push_back(luck.uniform());
  return s;
}

std::vector<Change> random_changes(sim::Stream& luck, std::int64_t end_s) {
  std::vector<Change> changes;
  for (std::int64_t t = 0; t < end_s; t += 1 + std::int64_t(luck.below(9000))) {
    const double it = 1e6 * (1 + luck.uniform());
    changes.push_back({t, luck.below(3), luck.uniform() < 0.3 ? 0.0 : 4e5 * luck.uniform(), it,
                       it * (1.05 + 0.4 * luck.uniform())});
  }
  return changes;
}

void play(EnergyMeter& m, const std::vector<Change>& changes, std::int64_t end_s,
          sim::Stream* splits) {
  const auto to = [&](std::int64_t from_s, std::int64_t to_s) {
    while (splits && splits->uniform() < 0.7 && from_s < to_s) {
      from_s += std::int64_t(splits->below(std::uint64_t(to_s - from_s) + 1));
      m.advance(Time(std::chrono::seconds(from_s)));
    }
    m.advance(Time(std::chrono::seconds(to_s)));
  };
  std::int64_t now = 0;
  for (const Change& c : changes) {
    to(now, c.at_s);
    now = c.at_s;
    m.set_power(c.consumer, Watts(c.W));
    m.set_site(Watts(c.it_W), Watts(c.site_W));
  }
  to(now, end_s);
}

TEST(EnergyMeter, agrees_with_one_that_looks_every_second) {
  constexpr std::int64_t end_s = 5 * 86'400 + 1234;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Stream luck(sim::Seed{seed}, "tariff-twin");
    const EconomicsSpec spec = rich_tariff(luck);
    const std::vector<Change> changes = random_changes(luck, end_s);
    EnergyMeter meter(spec, {"pool", "a", "b"});
    play(meter, changes, end_s, nullptr);

    const Tariff tariff(spec);
    SlowMeter slow;
    slow.co2e_kg.resize(3);
    double W[3] = {};
    double site_W = 0;
    double window_J = 0;
    std::size_t next = 0;
    for (std::int64_t t = 0; t < end_s; ++t) {
      while (next < changes.size() && changes[next].at_s == t) {
        W[changes[next].consumer] = changes[next].W;
        site_W = changes[next++].site_W;
      }
      const double own = W[0] + W[1] + W[2];
      for (std::size_t c = 0; c < 3; ++c) {
        const double J = own > 0 ? site_W * W[c] / own : c == 0 ? site_W : 0;
        slow.block_J[{c, tariff.block_at(t / 3600)}] += J;
        slow.co2e_kg[c] += J / kWh * tariff.intensity_at(t / 3600);
      }
      window_J += site_W;
      if (t % 900 == 899 || t == end_s - 1) {
        double& peak = slow.peak_W[month_at(spec.start_day, t / 3600)];
        peak = std::max(peak, window_J / 900);
        window_J = 0;
      }
    }
    for (std::size_t c = 0; c < 3; ++c) {
      const EnergyUse u = meter.use(c);
      for (std::size_t b = 0; b < tariff.blocks(); ++b)
        EXPECT_NEAR(u.by_block[b].value(), (slow.block_J[{c, b}]), 1e-9 * u.site.value());
      EXPECT_NEAR(u.co2e_kg, slow.co2e_kg[c], 1e-9 * u.co2e_kg);
    }
    ASSERT_EQ(meter.months().size(), slow.peak_W.size());
    for (const MonthPeak& p : meter.months())
      EXPECT_NEAR(p.peak.value(), slow.peak_W[p.month], 1e-9 * p.peak.value());
  }
}

TEST(EnergyMeter, splitting_an_interval_changes_nothing) {
  constexpr std::int64_t end_s = 70 * 86'400;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Stream luck(sim::Seed{seed}, "tariff-splits");
    const EconomicsSpec spec = rich_tariff(luck);
    const std::vector<Change> changes = random_changes(luck, end_s);
    EnergyMeter whole(spec, {"pool", "a", "b"});
    EnergyMeter split(spec, {"pool", "a", "b"});
    play(whole, changes, end_s, nullptr);
    play(split, changes, end_s, &luck);
    Joules sum{};
    for (std::size_t c = 0; c < 3; ++c) {
      const EnergyUse a = whole.use(c), b = split.use(c);
      sum += a.site;
      EXPECT_NEAR(a.site.value(), b.site.value(), 1e-11 * a.site.value());
      EXPECT_NEAR(a.cost.value(), b.cost.value(), 1e-11 * a.cost.value());
      EXPECT_NEAR(a.co2e_kg, b.co2e_kg, 1e-11 * a.co2e_kg);
    }
    EXPECT_NEAR(sum.value(), whole.site().value(), 1e-9 * sum.value());
    EXPECT_NEAR(whole.demand_cost().value(), split.demand_cost().value(),
                1e-11 * whole.demand_cost().value());
  }
}

}  // namespace
}  // namespace trainyard::models
