#include <cmath>
#include <cstdio>

#include "models/facility/economics.hpp"

/// What a site costs to buy, where the scenario does not say; and that in words.
namespace trainyard::models {
namespace {

// If a part of the catalog has no price. H100: 30,000 USD (resellers and analysts, 2023 to 2025);
// the box around eight of them, without GPUs and adapters, 54,000 (310,000 USD for the whole,
// SemiAnalysis, August 2024); an adapter for 400 Gb/s 2,000 (street price).
constexpr Dollars typical_gpu{30'000};
constexpr Dollars typical_server{54'000};
constexpr Dollars typical_nic{2'000};
// Switches, cables and optics for a GPU at full bisection: three ports at 560 USD and four optics
// at 650 USD with two tiers of switches, five and six with three.
constexpr Dollars typical_fabric_per_gpu{4'300};
// Storage is 1 to 1.5 % of a 1 GW site of 35 billion USD (Bernstein, 2025), of 47 to 52 thousand
// USD a GPU: 1.2 %.
constexpr Dollars typical_storage_per_gpu{600};
// Mean cost of construction in 2025 (JLL, 2026 Global Data Center Outlook), for a MW of IT; for AI
// 9 to 12, some quote 20 million USD.
constexpr Dollars typical_plant_per_MW{10.7e6};
// Management servers, monitoring and their network: typical figure, below 1 % of a site.
constexpr Dollars typical_tools_per_gpu{300};

struct Priced {
  Dollars price{};
  std::string basis;
};

std::string each(std::int64_t n, const char* what, Dollars price) {
  return std::to_string(n) + ' ' + what + " at " + money_text(price);
}

Priced as_given(const GroupSpec& g, const SiteFacts& site) {
  Priced p{{}, "as given"};
  if (g.total) p.price += *g.total;
  if (g.per_gpu) p.price += *g.per_gpu * double(site.gpus);
  if (g.per_server) p.price += *g.per_server * double(site.servers);
  if (g.per_port) p.price += *g.per_port * double(site.ports);
  if (g.per_MW) p.price += *g.per_MW * (site.it_power.value() / 1e6);
  return p;
}

Priced of_parts(std::int64_t n, const char* what, Dollars known, Dollars typical) {
  const bool is_known = known.value() > 0;
  const Dollars price = is_known ? known : typical;
  return {price * double(n),
          each(n, what, price) + (is_known ? "" : " (the part has no price: that of an H100 box)")};
}

Priced typical(SpendingGroup group, const SiteFacts& site) {
  switch (group) {
    case SpendingGroup::accelerators:
      return of_parts(site.gpus, "GPUs", site.gpu_price, typical_gpu);
    case SpendingGroup::servers:
      return of_parts(site.servers, "servers", site.server_price, typical_server);
    case SpendingGroup::network: {
      Priced p = of_parts(site.nics, "adapters", site.nic_price, typical_nic);
      if (site.fabric_price.value() > 0) {
        p.price += site.fabric_price;
        p.basis += ", switches, cables and optics of the fabric " + money_text(site.fabric_price);
      } else {
        p.price += typical_fabric_per_gpu * double(site.gpus);
        p.basis += ", the fabric has no prices: " + money_text(typical_fabric_per_gpu) + " a GPU";
      }
      return p;
    }
    case SpendingGroup::storage:
      return {typical_storage_per_gpu * double(site.gpus),
              "typical: " + money_text(typical_storage_per_gpu) + " a GPU (Bernstein, 1 to 1.5 %)"};
    case SpendingGroup::power_and_cooling:
      return {typical_plant_per_MW * (site.it_power.value() / 1e6),
              "mean cost of construction in 2025, " + money_text(typical_plant_per_MW) +
                  " for each MW of IT"};
    case SpendingGroup::operations:
      return {typical_tools_per_gpu * double(site.gpus),
              "typical: " + money_text(typical_tools_per_gpu) + " a GPU"};
  }
  return {};
}

std::string number(double value, const char* format = "%.3g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

CapexTree capex_of(const EconomicsSpec& spec, const SiteFacts& site) {
  const CapexSpec& c = spec.capex;
  const GroupSpec* groups[spending_groups] = {&c.accelerators, &c.servers,           &c.network,
                                              &c.storage,      &c.power_and_cooling, &c.operations};
  CapexTree tree;
  for (std::size_t i = 0; i < spending_groups; ++i) {
    const GroupSpec& g = *groups[i];
    Priced p = g.is_given() ? as_given(g, site) : typical(static_cast<SpendingGroup>(i), site);
    tree[i].price = p.price;
    tree[i].per_year = charge_per_year(p.price, g.residual, spec.discount_rate, g.life_years);
    tree[i].life_years = g.life_years;
    tree[i].basis = std::move(p.basis);
  }
  return tree;
}

std::string money_text(Dollars amount) {
  const double usd = amount.value();
  const double size = std::abs(usd);
  if (size >= 0.9995e9) return number(usd / 1e9) + " billion USD";
  if (size >= 0.9995e6) return number(usd / 1e6) + " million USD";
  if (size >= 9999.5) return number(usd / 1e3) + " thousand USD";
  if (size >= 99.995) return number(usd, "%.0f") + " USD";
  if (size >= 0.09995 || size == 0) return number(usd, "%.2f") + " USD";
  return number(usd) + " USD";
}

std::vector<std::string> assumptions(const EconomicsSpec& spec, const SiteFacts& site) {
  std::vector<std::string> lines;
  const CapexTree tree = capex_of(spec, site);
  for (std::size_t i = 0; i < spending_groups; ++i)
    lines.push_back(std::string(trainyard::name_of(static_cast<SpendingGroup>(i))) + ": " +
                    money_text(tree[i].price) + " (" + tree[i].basis + "), used for " +
                    number(tree[i].life_years) + " years");
  lines.push_back(spec.discount_rate == 0
                      ? std::string("capital: straight line, money costs nothing")
                      : "capital: level charges at " + number(spec.discount_rate * 100) +
                            " % a year");
  lines.push_back("opex: " + money_text(opex_of(spec, site, tree)) +
                  " a year beside energy and water");
  const Tariff tariff(spec);
  std::string price = "electricity: " + number(tariff.price(0).value(), "%.4g") + " USD/kWh";
  for (std::size_t b = 1; b < tariff.blocks(); ++b)
    price += ", " + tariff.name(b) + ' ' + number(tariff.price(b).value(), "%.4g");
  if (tariff.blocks() > 1)
    price += "; mean of a year " + number(tariff.mean_price().value(), "%.4g");
  if (spec.tariff.demand_charge.value() > 0)
    price += "; " + money_text(spec.tariff.demand_charge) + " a month for each kW of its peak";
  lines.push_back(price);
  lines.push_back("carbon: " + number(tariff.mean_intensity()) + " kg CO2e for each kWh" +
                  (spec.carbon.by_hour.empty() ? "" : " (mean; by the hour)") + ", " +
                  money_text(spec.carbon.price) + " a tonne");
  lines.push_back("water: " + money_text(spec.water_price) + " a cubic metre");
  lines.push_back("PUE without a modelled plant: " + number(spec.pue));
  lines.push_back(
      "a job pays for the GPU time that it holds, all at one rate, and for what it draws "
      "with its share of switches, cooling and losses");
  lines.push_back(
      "energy of a job is split over its accounts by typical power: busy 1, polling or "
      "communicating 0.65, idle 0.25, down 0");
  lines.push_back("not included: land, taxes on profit, software of the job, people who train");
  return lines;
}

}  // namespace trainyard::models
