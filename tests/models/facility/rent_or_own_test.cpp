#include "models/facility/rent_or_own.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "sim/check.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using testing::HasSubstr;

/// 1 USD an hour whether used or not, 0.2 more in use; 36,500 USD at the start.
Ownership simple() {
  return {.price = Dollars(36'500),
          .capital = Dollars(0.9),
          .running = Dollars(0.1),
          .use = Dollars(0.2),
          .life_years = 5};
}

EconomicsSpec renting_at(double usd, double rate = 0) {
  EconomicsSpec s;
  s.discount_rate = rate;
  s.rent = {.on_demand = Dollars(usd), .extras = 0};
  return s;
}

TEST(Rent, mixes_reserved_and_on_demand_and_adds_extras) {
  const RentSpec r{
      .on_demand = Dollars(3), .reserved = Dollars(2), .reserved_share = 0.75, .extras = 0.4};
  EXPECT_NEAR(r.per_hour().value(), (0.75 * 2 + 0.25 * 3) * 1.4, 1e-12);
}

// 1 / u + 0.2 = 2.2 at u = 0.5.
TEST(RentOrOwn, breaks_even_where_an_hour_costs_the_same) {
  const EconomicsSpec s = renting_at(2.2);
  EXPECT_DOUBLE_EQ(*rent_or_own(simple(), s, 0.5).break_even_utilisation, 0.5);
  EXPECT_NEAR(rent_or_own(simple(), s, 0.5).owned.value(), 2.2, 1e-12);
  EXPECT_THAT(rent_or_own(simple(), s, 0.501).words, HasSubstr("2.20 USD rented: own"));
  EXPECT_THAT(rent_or_own(simple(), s, 0.499).words, HasSubstr("2.20 USD rented: rent"));
}

TEST(RentOrOwn, renting_may_be_cheaper_always) {
  EXPECT_TRUE(rent_or_own(simple(), renting_at(1.2), 1).break_even_utilisation);
  const RentOrOwn r = rent_or_own(simple(), renting_at(1.1999), 1);
  EXPECT_FALSE(r.break_even_utilisation);
  EXPECT_THAT(r.words, HasSubstr("cheaper at any utilisation"));
}

// At full use each hour saves 2.2 - 0.2 - 0.1 = 1.9 USD, 1387 a month: 36,500 / 1387 = 26.3158.
TEST(RentOrOwn, months_without_interest_are_price_over_saving) {
  EXPECT_NEAR(*rent_or_own(simple(), renting_at(2.2), 1).break_even_months, 36'500 / 1387.0, 1e-9);
}

// With interest: the savings, each discounted by its month, add up to the price.
TEST(RentOrOwn, months_with_interest_discount_the_savings) {
  const double months = *rent_or_own(simple(), renting_at(2.2, 0.07), 1).break_even_months;
  const double v = std::pow(1.07, -1.0 / 12);
  double present = 0;
  double discount = 1;
  int m = 0;
  while (present + 1387 * discount * v < 36'500) {
    discount *= v;
    present += 1387 * discount;
    ++m;
  }
  EXPECT_GT(months, m);
  EXPECT_LT(months, m + 1);
  EXPECT_GT(months, 36'500 / 1387.0);
}

TEST(RentOrOwn, what_is_not_earned_back_in_its_life_is_not_earned_back) {
  Ownership own = simple();
  own.price = Dollars(1387 * 60.0 - 0.01);
  EXPECT_TRUE(rent_or_own(own, renting_at(2.2), 1).break_even_months);
  own.price = Dollars(1387 * 60.0 + 0.01);
  EXPECT_FALSE(rent_or_own(own, renting_at(2.2), 1).break_even_months);
  EXPECT_FALSE(rent_or_own(simple(), renting_at(0.2), 1).break_even_months);
}

TEST(RentOrOwn, says_so_in_words) {
  EXPECT_EQ(rent_or_own(simple(), renting_at(2.2), 0.8).words,
            "At 80 % utilisation a used GPU-hour costs 1.45 USD owned and 2.20 USD rented: own. "
            "Owning pays above 50 % utilisation; at this one the purchase of 36.5 thousand USD a "
            "GPU is earned back in 33 months.");
}

// 800 GPUs always, 2000 for 30 % of the time. Break-even at 0.5: own 800.
TEST(Hybrid, owns_the_base_and_rents_the_peaks) {
  const Hybrid h = hybrid(simple(), renting_at(2.2), {{2000, 0.3}, {800, 0.7}});
  EXPECT_DOUBLE_EQ(h.owned_gpus, 800);
  EXPECT_NEAR(h.rented_share, 360 / 1160.0, 1e-12);
  EXPECT_NEAR(h.utilisation, 0.58, 1e-12);
  EXPECT_NEAR(h.per_used_hour.value(), (800 * 1.2 + 360 * 2.2) / 1160, 1e-12);
  EXPECT_NEAR(h.all_owned.value(), (2000 + 0.2 * 1160) / 1160, 1e-12);
  EXPECT_NEAR(h.all_rented.value(), 2.2, 1e-12);
  EXPECT_EQ(h.words,
            "Own 800 of 2000 GPUs and rent 31 % of the GPU-hours: 1.51 USD a used GPU-hour (all "
            "owned 1.92 USD, all rented 2.20 USD).");
}

TEST(Hybrid, owns_more_when_peaks_last_longer_than_the_break_even) {
  EXPECT_DOUBLE_EQ(hybrid(simple(), renting_at(2.2), {{800, 0.499}, {2000, 0.501}}).owned_gpus,
                   2000);
  EXPECT_DOUBLE_EQ(hybrid(simple(), renting_at(2.2), {{800, 0.501}, {2000, 0.499}}).owned_gpus,
                   800);
  EXPECT_DOUBLE_EQ(hybrid(simple(), renting_at(1.1), {{800, 0.5}, {2000, 0.5}}).owned_gpus, 0);
}

TEST(Hybrid, refuses_shares_that_are_not_all_the_time) {
  EXPECT_THROW(hybrid(simple(), renting_at(2), {{800, 0.5}, {2000, 0.4}}), CheckFailed);
  EXPECT_THROW(hybrid(simple(), renting_at(2), {{0, 1.0}}), CheckFailed);
}

// Every whole number of owned GPUs is tried.
TEST(Hybrid, no_other_number_of_owned_gpus_costs_less) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Stream luck(sim::Seed{seed}, "hybrid");
    std::vector<DemandLevel> demand(1 + luck.below(6));
    double sum = 0;
    for (DemandLevel& d : demand) {
      d = {double(1 + luck.below(60)), 0.01 + luck.uniform()};
      sum += d.share;
    }
    for (DemandLevel& d : demand) d.share /= sum;
    const Dollars rent(0.5 + 5 * luck.uniform());
    const Hybrid h = hybrid(simple(), renting_at(rent.value()), demand);
    double least = 1e300;
    double used = 0;
    for (const DemandLevel& d : demand) used += d.gpus * d.share;
    for (int k = 0; k <= 60; ++k)
      least = std::min(least, hourly_cost(simple(), rent, demand, k).value() / used);
    EXPECT_NEAR(h.per_used_hour.value(), least, 1e-12);
  }
}

// A site by default prices: fixed and used parts add up to what a GPU-hour costs.
TEST(Ownership, adds_up_to_the_cost_of_a_gpu_hour) {
  SiteFacts site{.gpus = 1024, .servers = 128, .nics = 1024, .ports = 3072};
  site.it_power = Watts(1024 * 1275.0);
  const EconomicsSpec spec;
  const Ownership own = ownership(spec, site);
  const GpuHourCost hour = gpu_hour(gpu_hour_inputs(spec, site));
  EXPECT_NEAR((own.fixed() + own.use).value(), hour.per_hour().value(), 1e-12);
  EXPECT_NEAR(own.price.value() * 1024, price_of(capex_of(spec, site)).value(), 1e-3);
}

}  // namespace
}  // namespace trainyard::models
