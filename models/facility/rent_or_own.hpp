#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/facility/economics.hpp"

/// Rent, own, or own the base and rent the peaks.
///
/// An owned GPU costs F an hour whether used or not, and V more for each hour of use; a rented one
/// costs R for each hour of use. With utilisation u,
///
///     owned    F / u + V           rented    R           a used hour
///     equal at u* = F / (R - V)
///
/// One GPU more is worth owning while it is used more than u* of the time, so of a demand that
/// varies the base that is in use for more than u* is owned and the rest is rented: the quantile of
/// a newsvendor, exact for a demand in steps.
///
///     const Ownership own = ownership(spec, site);
///     rent_or_own(own, spec, 0.8).words;
///     hybrid(own, spec, {{.gpus = 800, .share = 0.7}, {.gpus = 2000, .share = 0.3}}).owned_gpus;
///
/// Source: K. J. Arrow, T. Harris, J. Marschak, "Optimal Inventory Policy", Econometrica 19 (1951);
/// for clouds J. Weinman, "Cloudonomics" (2012).
namespace trainyard::models {

/// One owned GPU with its share of the site.
struct Ownership {
  Dollars price{};        // what is paid at the start
  Dollars capital{};      // an hour: the price over the lives, with interest
  Dollars running{};      // an hour: opex, and energy while idle
  Dollars use{};          // more in an hour of use: energy over idle
  double life_years = 5;  // of the accelerator
  Dollars fixed() const { return capital + running; }
};

Ownership ownership(const EconomicsSpec& spec, const SiteFacts& site);

struct RentOrOwn {
  Dollars owned{};  // a used GPU-hour, at the utilisation in question
  Dollars rented{};
  std::optional<double> break_even_utilisation;  // nothing: renting is cheaper even at 1
  std::optional<double> break_even_months;       // nothing: not within the life
  std::string words;
};

/// Months until the rent that was not paid has paid for the purchase, with interest.
RentOrOwn rent_or_own(const Ownership& own, const EconomicsSpec& spec, double utilisation);

/// A demand for `gpus` in a share of the time. Shares add up to 1.
struct DemandLevel {
  double gpus = 0;
  double share = 0;
};

struct Hybrid {
  double owned_gpus = 0;
  double rented_share = 0;  // of the used GPU-hours
  Dollars per_used_hour{};
  Dollars all_owned{};     // the same when the highest level is owned
  Dollars all_rented{};    // and when nothing is
  double utilisation = 0;  // of the highest level
  std::string words;
};

/// Mean cost of an hour with `owned` GPUs.
Dollars hourly_cost(const Ownership& own, Dollars rent, const std::vector<DemandLevel>& demand,
                    double owned);
Hybrid hybrid(const Ownership& own, const EconomicsSpec& spec, std::vector<DemandLevel> demand);

}  // namespace trainyard::models
