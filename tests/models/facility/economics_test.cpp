#include "models/facility/economics.hpp"

#include <gmock/gmock.h>

#include <cmath>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace trainyard::literals;
using testing::Contains;
using testing::HasSubstr;

constexpr std::size_t at(SpendingGroup g) {
  return static_cast<std::size_t>(g);
}
/// Servers of eight H100, as the catalog has them; the fabric of `tiers` tiers of 64-port switches.
/// Without blocking a GPU needs 2 tiers - 1 switch ports at 36,000 / 64 USD and 2 tiers optics at
/// 650 USD.
SiteFacts h100_site(std::int64_t gpus, int tiers = 2) {
  SiteFacts s{.gpus = gpus,
              .servers = gpus / 8,
              .nics = gpus,
              .ports = gpus * (2 * tiers - 1),
              .it_power = Watts(1275.0 * double(gpus))};
  s.gpu_price = Dollars(30'000);
  s.server_price = Dollars(54'000);
  s.nic_price = Dollars(2'000);
  s.fabric_price = Dollars(double(gpus) * ((2 * tiers - 1) * 36'000 / 64.0 + 2 * tiers * 650.0));
  return s;
}

TEST(Annuity, is_a_straight_line_without_interest) {
  EXPECT_DOUBLE_EQ(annuity(0, 5), 0.2);
  EXPECT_NEAR(annuity(1e-9, 5), 0.2, 1e-9);
  // r / (1 - (1 + r)^-n) = 0.07 / (1 - 1.07^-5)
  EXPECT_NEAR(annuity(0.07, 5), 0.2438906944, 1e-10);
  EXPECT_NEAR(annuity(0.08, 14), 0.1212968528, 1e-10);
}

// What is charged each year, discounted, is the price less what is left, discounted.
TEST(Annuity, pays_exactly_what_was_used_up) {
  const double charge = charge_per_year(Dollars(1000), 0.1, 0.07, 5).value();
  double present = 100 * std::pow(1.07, -5);
  for (int year = 1; year <= 5; ++year) present += charge * std::pow(1.07, -year);
  EXPECT_NEAR(present, 1000, 1e-9);
  EXPECT_DOUBLE_EQ(charge_per_year(Dollars(1000), 0.1, 0, 5).value(), 180);
}

TEST(Capex, amounts_that_are_given_add_up) {
  EconomicsSpec s;
  s.capex.network = {.total = Dollars(1e6),
                     .per_gpu = Dollars(100),
                     .per_server = Dollars(1000),
                     .per_port = Dollars(10),
                     .per_MW = Dollars(1e5)};
  SiteFacts site{.gpus = 80, .servers = 10, .nics = 80, .ports = 240, .it_power = 2_MW};
  site.fabric_price = Dollars(7e6);
  EXPECT_DOUBLE_EQ(capex_of(s, site)[at(SpendingGroup::network)].price.value(),
                   1e6 + 8000 + 10'000 + 2400 + 2e5);
  s.capex.network = {};
  site.nic_price = Dollars(2000);
  EXPECT_DOUBLE_EQ(capex_of(s, site)[at(SpendingGroup::network)].price.value(), 7e6 + 160'000);
}

TEST(Capex, what_a_group_still_fetches_is_not_charged) {
  EconomicsSpec s;
  s.discount_rate = 0;
  s.capex.servers = {.total = Dollars(1000), .life_years = 4, .residual = 0.2};
  const SiteFacts site{.gpus = 8, .servers = 1};
  EXPECT_DOUBLE_EQ(capex_of(s, site)[at(SpendingGroup::servers)].per_year.value(), 200);
  EXPECT_DOUBLE_EQ(capex_of(s, site)[at(SpendingGroup::servers)].price.value(), 1000);
}

TEST(Capex, opex_has_its_terms) {
  EconomicsSpec s;
  s.capex = {.accelerators = {.total = Dollars(1e6)}, .servers = {.total = Dollars(0)}};
  s.capex.network = s.capex.storage = s.capex.operations = {.total = Dollars(0)};
  s.capex.power_and_cooling.total = Dollars(5e6);
  s.opex = {.per_year = Dollars(1),
            .per_gpu = Dollars(10),
            .per_MW = Dollars(100),
            .maintenance = 0.01,
            .staff = 2,
            .staff_cost = Dollars(1000)};
  const SiteFacts site{.gpus = 8, .servers = 1, .it_power = 2_MW};
  // Maintenance is not on the plant.
  EXPECT_DOUBLE_EQ(opex_of(s, site, capex_of(s, site)).value(), 1 + 80 + 200 + 10'000 + 2000);
}

// 50,000 USD in 5 years, 1.275 kW, PUE 1.2, load 0.9, 0.08 USD/kWh.
TEST(GpuHour, capital_and_energy_to_four_digits) {
  const GpuHourInputs in{.capital_per_year = charge_per_year(Dollars(50'000), 0, 0, 5),
                         .power = Watts(1275),
                         .load = 0.9,
                         .pue = 1.2,
                         .price = Dollars(0.08),
                         .utilisation = 0.9,
                         .goodput = 0.95};
  const GpuHourCost c = gpu_hour(in);
  EXPECT_NEAR(c.capital.value(), 1.1416, 5e-5);
  EXPECT_NEAR(c.energy.value(), 0.1102, 5e-5);
  EXPECT_NEAR(c.per_useful_hour.value(), (1.141553 + 0.11016) / 0.855, 1e-6);
  // "Energy is about 9 % of the cost of a GPU-hour."
  EXPECT_NEAR(c.energy_share(), 0.088, 5e-4);
  // "A PUE that is 0.1 higher costs less than 1 % more; goodput counts in full."
  GpuHourInputs warmer = in;
  warmer.pue += 0.1;
  const double more = gpu_hour(warmer).per_useful_hour / c.per_useful_hour - 1;
  EXPECT_GT(more, 0.005);
  EXPECT_LT(more, 0.01);
  GpuHourInputs worse = in;
  worse.goodput *= 0.9;
  EXPECT_NEAR(c.per_useful_hour / gpu_hour(worse).per_useful_hour, 0.9, 1e-12);
}

// With default prices of everything the share of energy is lower: interest and opex are in.
TEST(GpuHour, energy_is_a_small_part_by_default_too) {
  const GpuHourCost c = gpu_hour(gpu_hour_inputs({}, h100_site(1024)));
  EXPECT_GT(c.energy_share(), 0.05);
  EXPECT_LT(c.energy_share(), 0.09);
}

// Epoch AI, data insight of 14 May 2026: 1 GW of IT, 0.6 billion USD of energy a year.
TEST(Published, epoch_energy_is_at_full_nameplate) {
  const double kWh_a_year = 1e6 * hours_per_year;
  EXPECT_NEAR(0.6e9 / kWh_a_year, 0.0685, 5e-5);
  EconomicsSpec s;
  s.tariff.price = Dollars(0.6e9 / kWh_a_year);
  s.pue = 1;
  EnergyMeter m(s, {"site"});
  m.set_power(0, 1000_MW);
  m.advance(Time(365 * 24h));
  EXPECT_NEAR(m.total().cost.value(), 0.6e9, 1);
}

/// Epoch's 38 billion USD, split as Bernstein splits its 35 billion for 1 GW: mechanical and
/// electrical plant a third, network 13 %, storage 1 to 1.5 %, the rest servers with their GPUs.
EconomicsSpec gigawatt(double it_life_years) {
  EconomicsSpec s;
  s.capex.accelerators.total = Dollars(38e9 * 0.39);
  s.capex.servers.total = Dollars(38e9 * (1 - 1 / 3.0 - 0.13 - 0.0125 - 0.39));
  s.capex.network.total = Dollars(38e9 * 0.13);
  s.capex.storage.total = Dollars(38e9 * 0.0125);
  s.capex.power_and_cooling.total = Dollars(38e9 / 3);
  s.capex.operations.total = Dollars(0);
  for (GroupSpec* g : {&s.capex.accelerators, &s.capex.servers, &s.capex.network, &s.capex.storage})
    g->life_years = it_life_years;
  return s;
}

double tco_billion(double it_life_years, double rate) {
  EconomicsSpec s = gigawatt(it_life_years);
  s.discount_rate = rate;
  const SiteFacts site{.gpus = 500'000, .servers = 7000, .it_power = 1000_MW};
  const CapexTree tree = capex_of(s, site);
  return (charge_of(tree) + opex_of(s, site, tree)).value() / 1e9 + 0.6;
}

// Published: 8.5 billion USD a year with IT that lives 5 years, 12 with 3, 7 with 7. Opex without
// energy, 0.3 billion, is the default.
TEST(Published, epoch_total_cost_follows_from_bernstein_shares_at_seven_percent) {
  EXPECT_NEAR(tco_billion(5, 0.07), 8.5, 0.1);
  EXPECT_NEAR(tco_billion(3, 0.07), 12, 0.5);
  EXPECT_NEAR(tco_billion(7, 0.07), 7, 0.5);
  // A straight line does not give it.
  EXPECT_LT(tco_billion(5, 0), 7);
}

TEST(Published, servers_are_three_fifths_of_epochs_total_cost) {
  const SiteFacts site{.gpus = 500'000, .servers = 7000, .it_power = 1000_MW};
  const CapexTree tree = capex_of(gigawatt(5), site);
  const double servers =
      (tree[at(SpendingGroup::accelerators)].per_year + tree[at(SpendingGroup::servers)].per_year)
          .value() /
      1e9;
  EXPECT_NEAR(servers, 5, 0.25);
  EXPECT_NEAR(servers / tco_billion(5, 0.07), 0.60, 0.04);
}

// Bernstein: a rack with 72 GPUs is 3.4 million USD of computing and 2.5 of infrastructure around
// it. The catalog's GB200 (40,000 USD a GPU, 376,000 for the rest of the rack, 2,000 an adapter) is
// made from the 3.4; default prices of fabric, storage, plant and tools come out at 1.8 instead
// of 2.5, the whole 12 % below: plants for such racks cost more than the mean of all plants.
TEST(Published, bernstein_rack_by_default_prices) {
  SiteFacts site{.gpus = 72'000, .servers = 1000, .nics = 72'000};
  site.it_power = Watts(132'000.0 * 1000);
  site.gpu_price = Dollars(40'000);
  site.server_price = Dollars(376'000);
  site.nic_price = Dollars(2'000);
  const CapexTree tree = capex_of({}, site);
  EXPECT_NEAR(price_of(tree).value() / 1000 / 1e6, 5.9, 0.15 * 5.9);
  const auto share = [&](SpendingGroup g) { return tree[at(g)].price / price_of(tree); };
  EXPECT_NEAR(share(SpendingGroup::network), 0.13, 0.05);
  EXPECT_NEAR(share(SpendingGroup::storage), 0.0125, 0.005);
  EXPECT_NEAR(share(SpendingGroup::power_and_cooling), 1 / 3.0, 0.07);
}

// SemiAnalysis, "100,000 H100 clusters", June 2024: 1.59 TWh and 123.9 million USD a year at 0.078
// USD/kWh, more than 150 MW. That is 1.59e9 / 8760 = 181.5 MW from the grid.
TEST(Published, energy_of_a_hundred_thousand_h100) {
  const EconomicsSpec s;
  EXPECT_DOUBLE_EQ(s.tariff.price.value(), 0.078);
  EnergyMeter m(s, {"site"});
  m.set_power(0, 150_MW);
  m.set_site(150_MW, Watts(181.5e6));
  m.advance(Time(365 * 24h));
  EXPECT_NEAR(m.total().site.value() / joules_per_kWh / 1e9, 1.59, 0.005);
  EXPECT_NEAR(m.total().cost.value() / 1e6, 123.9, 0.15);
  // By our own power of a server and PUE: 127.5 MW * 1.2 = 153 MW without switches and stores.
  EXPECT_NEAR(1275e-6 * 100'000 * s.pue, 153, 1e-9);
}

struct AllIn {
  std::int64_t gpus;
  int tiers;
  double published;
};

// "H100 Freakonomics" (substack.tech-talk-cto.com, August 2024) and its table: 46,883 USD a GPU up
// to 64 servers (one tier of switches), 49,248 up to 2048 (two), 51,613 beyond. It takes 50,000 USD
// a server for the site over its life, nothing for storage and tools.
TEST(Published, price_of_an_h100_with_network_and_site_steps_with_the_tiers) {
  EconomicsSpec s;
  s.capex.power_and_cooling.per_server = Dollars(50'000);
  s.capex.storage.total = s.capex.operations.total = Dollars(0);
  for (const AllIn& c : {AllIn{512, 1, 46'883}, AllIn{1024, 2, 49'248}, AllIn{32'768, 3, 51'613}}) {
    const double price = price_of(capex_of(s, h100_site(c.gpus, c.tiers))).value() / double(c.gpus);
    EXPECT_NEAR(price, c.published, 0.005 * c.published) << c.tiers << " tiers";
  }
  // A plant built new at the mean price of 2025 costs more than twice those 6,250 USD a GPU.
  EXPECT_NEAR(price_of(capex_of({}, h100_site(1024))).value() / 1024, 57'580, 100);
}

TEST(Assumptions, name_every_group_and_what_is_only_typical) {
  SiteFacts site = h100_site(1024);
  std::vector<std::string> lines = assumptions({}, site);
  EXPECT_THAT(lines, Contains("accelerators: 30.7 million USD (1024 GPUs at 30 thousand USD), used "
                              "for 5 years"));
  EXPECT_THAT(lines, Contains(HasSubstr("power_and_cooling: 14 million USD (mean cost of "
                                        "construction in 2025, 10.7 million USD for each MW")));
  EXPECT_THAT(lines, Contains("electricity: 0.078 USD/kWh"));
  EXPECT_THAT(lines, Contains("capital: level charges at 7 % a year"));
  site.gpu_price = site.fabric_price = Dollars(0);
  lines = assumptions({}, site);
  EXPECT_THAT(lines, Contains(HasSubstr("the part has no price")));
  EXPECT_THAT(lines, Contains(HasSubstr("the fabric has no prices")));
}

TEST(MoneyText, has_three_digits_and_a_word) {
  EXPECT_EQ(money_text(Dollars(0)), "0.00 USD");
  EXPECT_EQ(money_text(Dollars(0.00123)), "0.00123 USD");
  EXPECT_EQ(money_text(Dollars(1.1416)), "1.14 USD");
  EXPECT_EQ(money_text(Dollars(1234.4)), "1234 USD");
  EXPECT_EQ(money_text(Dollars(47'500)), "47.5 thousand USD");
  EXPECT_EQ(money_text(Dollars(999'900)), "1 million USD");
  EXPECT_EQ(money_text(Dollars(-8.5e9)), "-8.5 billion USD");
}

}  // namespace
}  // namespace trainyard::models
