#include "models/facility/rent_or_own.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double hours_per_month = hours_per_year / 12;
// Servers of eight H100: 1.8 to 2.3 kW idle, 8.4 to 9.2 kW in training (typical figures).
constexpr double idle_over_busy = 0.23;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.2g" : "%.0f", value);
  return text;
}

std::optional<double> break_even_utilisation(const Ownership& own, Dollars rent) {
  if (own.fixed() + own.use > rent) return {};
  return own.fixed() / (rent - own.use);
}

/// Level savings s a month pay back a price P at monthly interest i after
/// -ln(1 - P i / s) / ln(1 + i) months.
std::optional<double> months_to_pay(Dollars price, Dollars saved_per_month, double rate,
                                    double life_months) {
  if (saved_per_month.value() <= 0) return {};
  const double plain = price / saved_per_month;
  const double i = std::pow(1 + rate, 1.0 / 12) - 1;
  if (i > 0 && plain * i >= 1) return {};
  const double months = i > 0 ? -std::log1p(-plain * i) / std::log1p(i) : plain;
  if (months > life_months) return {};
  return months;
}

}  // namespace

Ownership ownership(const EconomicsSpec& spec, const SiteFacts& site) {
  const GpuHourInputs in = gpu_hour_inputs(spec, site);
  const GpuHourCost hour = gpu_hour(in);
  Ownership own;
  own.price = price_of(capex_of(spec, site)) / double(site.gpus);
  own.capital = hour.capital;
  own.running = hour.opex + hour.energy * idle_over_busy;
  own.use = hour.energy * (1 - idle_over_busy);
  own.life_years = spec.capex.accelerators.life_years;
  return own;
}

RentOrOwn rent_or_own(const Ownership& own, const EconomicsSpec& spec, double utilisation) {
  check(utilisation > 0 && utilisation <= 1, "utilisation is a share of the time", utilisation);
  RentOrOwn r;
  r.rented = spec.rent.per_hour();
  r.owned = own.fixed() / utilisation + own.use;
  r.break_even_utilisation = break_even_utilisation(own, r.rented);
  const Dollars saved = (r.rented - own.use) * utilisation - own.running;
  r.break_even_months =
      months_to_pay(own.price, saved * hours_per_month, spec.discount_rate, own.life_years * 12);

  r.words = "At " + percent(utilisation) + " utilisation a used GPU-hour costs " +
            money_text(r.owned) + " owned and " + money_text(r.rented) +
            " rented: " + (r.owned < r.rented ? "own" : "rent") + ". ";
  r.words += r.break_even_utilisation
                 ? "Owning pays above " + percent(*r.break_even_utilisation) + " utilisation"
                 : std::string("Renting is cheaper at any utilisation");
  r.words += r.break_even_months
                 ? "; at this one the purchase of " + money_text(own.price) +
                       " a GPU is earned back in " + number(*r.break_even_months) + " months."
                 : "; the purchase of " + money_text(own.price) +
                       " a GPU is not earned back within its life of " + number(own.life_years) +
                       " years.";
  return r;
}

Dollars hourly_cost(const Ownership& own, Dollars rent, const std::vector<DemandLevel>& demand,
                    double owned) {
  Dollars sum = own.fixed() * owned;
  for (const DemandLevel& d : demand)
    sum += (own.use * std::min(d.gpus, owned) + rent * std::max(0.0, d.gpus - owned)) * d.share;
  return sum;
}

Hybrid hybrid(const Ownership& own, const EconomicsSpec& spec, std::vector<DemandLevel> demand) {
  double share = 0;
  double used = 0;
  for (const DemandLevel& d : demand) {
    check(d.gpus >= 0 && d.share >= 0, "demand is a number of GPUs in a share of the time", d.gpus,
          d.share);
    share += d.share;
    used += d.gpus * d.share;
  }
  check(std::abs(share - 1) < 1e-9 && used > 0, "demand covers all the time, and somebody uses it",
        share, used);
  std::sort(demand.begin(), demand.end(),
            [](const DemandLevel& a, const DemandLevel& b) { return a.gpus < b.gpus; });
  const Dollars rent = spec.rent.per_hour();
  const double top = demand.back().gpus;

  Hybrid h;
  // Cost is convex and straight between levels, so it is least at one of them or at nothing.
  double above = 1;  // share of the time in which demand exceeds what is owned so far
  for (const DemandLevel& d : demand) {
    if (own.fixed() >= (rent - own.use) * above) break;
    h.owned_gpus = d.gpus;
    above -= d.share;
  }
  double rented = 0;
  for (const DemandLevel& d : demand) rented += std::max(0.0, d.gpus - h.owned_gpus) * d.share;
  h.rented_share = rented / used;
  h.utilisation = used / top;
  h.per_used_hour = hourly_cost(own, rent, demand, h.owned_gpus) / used;
  h.all_owned = hourly_cost(own, rent, demand, top) / used;
  h.all_rented = hourly_cost(own, rent, demand, 0) / used;
  const std::string beside =
      " (all owned " + money_text(h.all_owned) + ", all rented " + money_text(h.all_rented) + ").";
  if (h.owned_gpus == 0)
    h.words = "Rent everything: " + money_text(h.per_used_hour) + " a used GPU-hour" + beside;
  else if (h.owned_gpus == top)
    h.words = "Own all " + number(top) + " GPUs: " + money_text(h.per_used_hour) +
              " a used GPU-hour" + beside;
  else
    h.words = "Own " + number(h.owned_gpus) + " of " + number(top) + " GPUs and rent " +
              percent(h.rented_share) + " of the GPU-hours: " + money_text(h.per_used_hour) +
              " a used GPU-hour" + beside;
  return h;
}

}  // namespace trainyard::models
