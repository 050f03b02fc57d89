#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// What a site costs to buy, to run, to feed, and what renting instead would cost. Everything has
/// a default, so that `"economics": {}` gives an answer; assumptions() of models/facility/
/// economics.hpp says in words what was taken. Defaults are of the United States in 2024 to 2026.
namespace trainyard::models {

/// Where the money goes, in this order in every report.
enum class SpendingGroup {
  accelerators,
  servers,  // without accelerators and adapters
  network,  // adapters, switches, cables, optics
  storage,
  power_and_cooling,  // the building with its electrical and mechanical plant
  operations          // management servers, monitoring, licences
};
inline constexpr std::size_t spending_groups = 6;

/// One group: the sum of what is given. Nothing given: prices of the parts and of the fabric, or a
/// typical figure (docs/models/economics.md).
struct GroupSpec {
  std::optional<Dollars> total = {};
  std::optional<Dollars> per_gpu = {};
  std::optional<Dollars> per_server = {};
  std::optional<Dollars> per_port = {};  // of a switch
  std::optional<Dollars> per_MW = {};    // of IT power at its maximum
  double life_years = 5;  // IT equipment: Epoch AI, data insight on a 1 GW data centre, May 2026
  double residual = 0;    // share of the price that is left at the end of its life

  bool is_given() const { return total || per_gpu || per_server || per_port || per_MW; }
};

template <class Visitor>
void describe(Visitor& v, GroupSpec& s) {
  v.optional("total", s.total, "price of the whole group; amounts that are given add up",
             at_least(0));
  v.optional("per_gpu", s.per_gpu, "price for each GPU", at_least(0));
  v.optional("per_server", s.per_server, "price for each server", at_least(0));
  v.optional("per_port", s.per_port, "price for each port of a switch", at_least(0));
  v.optional("per_MW", s.per_MW, "price for each MW of IT power at its maximum", at_least(0));
  v.optional("life_years", s.life_years, "years until it is replaced", between(0.25, 60));
  v.optional("residual", s.residual, "share of the price that it still fetches then",
             between(0, 0.95));
}

struct CapexSpec {
  GroupSpec accelerators{};
  GroupSpec servers{};
  GroupSpec network{};
  GroupSpec storage{};
  GroupSpec power_and_cooling{.life_years = 14};  // Epoch AI, as above
  GroupSpec operations{};
};

template <class Visitor>
void describe(Visitor& v, CapexSpec& s) {
  v.optional("accelerators", s.accelerators, "default: the price of the GPU part");
  v.optional("servers", s.servers, "default: the price of the server part");
  v.optional("network", s.network, "default: prices of adapters and of the fabric");
  v.optional("storage", s.storage, "default: a typical figure for each GPU");
  v.optional("power_and_cooling", s.power_and_cooling, "default: a typical figure for each MW");
  v.optional("operations", s.operations,
             "operations tools; default: a typical figure for each GPU");
}

/// What a year costs beside energy and water.
struct OpexSpec {
  Dollars per_year{};
  Dollars per_gpu{};
  /// Epoch AI, May 2026: a 1 GW site has 0.9 billion USD a year of running cost, 0.6 of them
  /// energy. The rest is staff, maintenance, insurance, taxes.
  Dollars per_MW{300'000};
  double maintenance = 0;  // share of the price of IT equipment, a year
  double staff = 0;
  Dollars staff_cost{180'000};  // one person with overhead: typical figure
};

template <class Visitor>
void describe(Visitor& v, OpexSpec& s) {
  v.optional("per_year", s.per_year, "fixed sum a year", at_least(0));
  v.optional("per_gpu", s.per_gpu, "for each GPU and year: support, licences", at_least(0));
  v.optional("per_MW", s.per_MW,
             "for each MW of IT power at its maximum and year: staff, maintenance, insurance",
             at_least(0));
  v.optional("maintenance", s.maintenance,
             "a year, as a share of the price of everything but power and cooling", between(0, 1));
  v.optional("staff", s.staff, "people, beside those in per_MW", at_least(0));
  v.optional("staff_cost", s.staff_cost, "one of them a year", at_least(0));
}

enum class Days { all, weekdays, weekend };

/// Hours that have a price of their own. `from` 22, `to` 6 is a night; months 11 to 2 a winter.
struct TariffBlockSpec {
  Dollars price{};
  int from = 0;
  int to = 24;
  int first_month = 1;
  int last_month = 12;
  Days days = Days::all;
};

template <class Visitor>
void describe(Visitor& v, TariffBlockSpec& s) {
  v.required("price", s.price, "price of one kWh in these hours");
  v.optional("from", s.from, "hour of the day at which it begins", between(0, 23));
  v.optional("to", s.to, "hour of the day at which it ends; before from: on the next day",
             between(1, 24));
  v.optional("first_month", s.first_month, "first month of its season, 1 to 12", between(1, 12));
  v.optional("last_month", s.last_month, "last month; before first_month: of the next year",
             between(1, 12));
  v.optional("days", s.days, "days of the week");
  v.check(s.from != s.to, "to", "must differ from from; a whole day is from 0 to 24");
}

/// Two blocks have an hour in common.
bool overlap(const std::map<std::string, TariffBlockSpec>& blocks);

struct TariffSpec {
  /// SemiAnalysis, "100,000 H100 clusters", June 2024: 0.078 USD, all charges included. Industrial
  /// mean of the United States in 2024: 0.08 (EIA).
  Dollars price{0.078};
  std::map<std::string, TariffBlockSpec> blocks = {};
  Dollars demand_charge{};  // one kW of the month's peak
  /// Utilities bill the highest mean over a quarter of an hour.
  Duration demand_window = std::chrono::minutes(15);
};

template <class Visitor>
void describe(Visitor& v, TariffSpec& s) {
  v.optional("price", s.price, "price of one kWh outside of all blocks");
  v.optional("blocks", s.blocks, "hours, days and seasons with prices of their own, by name");
  v.optional("demand_charge", s.demand_charge,
             "for each kW of a month's peak; months that a run has in part are charged in part",
             at_least(0));
  v.optional("demand_window", s.demand_window,
             "the peak is the highest mean over windows of this length; 0: the highest power",
             at_least(0));
  v.check(s.demand_window == Duration::zero() ||
              (s.demand_window > Duration::zero() &&
               Duration(std::chrono::hours(1)) % s.demand_window == Duration::zero()),
          "demand_window", "must divide an hour, such as \"15 min\"");
  v.check(!overlap(s.blocks), "blocks", "no hour may be in two blocks");
  v.check(s.blocks.count("base") == 0, "blocks",
          "\"base\" is the name of the hours outside of all blocks");
}

struct CarbonSpec {
  /// kg of CO2 equivalent for one kWh: United States 0.37 (eGRID 2022); world 0.45, China 0.55,
  /// Europe 0.22, France and Sweden below 0.05.
  double intensity = 0.37;
  std::vector<double> by_hour = {};
  Dollars price{};  // one tonne
};

template <class Visitor>
void describe(Visitor& v, CarbonSpec& s) {
  v.optional("intensity", s.intensity, "kg of CO2 equivalent for one kWh", between(0, 3));
  v.optional("by_hour", s.by_hour,
             "kg for one kWh by hour instead: 24 of a day, or 8760 of a year");
  v.optional("price", s.price, "price of one tonne", at_least(0));
  v.check(s.by_hour.empty() || s.by_hour.size() == 24 || s.by_hour.size() == 8760, "by_hour",
          "must have 24 or 8760 values");
  bool is_possible = true;
  for (const double kg : s.by_hour) is_possible = is_possible && kg >= 0 && kg <= 3;
  v.check(is_possible, "by_hour", "each value must be between 0 and 3 kg for one kWh");
}

/// Prices of one GPU-hour. Defaults: H100, spring and summer of 2026; on demand 1.99 to 5.00 USD,
/// 2.35 reserved for a year (published price lists).
struct RentSpec {
  Dollars on_demand{3.00};
  Dollars reserved{2.35};
  double reserved_share = 0;  // of the GPU-hours that are rented
  /// Storage and egress: bills come out 30 to 50 % above the price list (published bills).
  double extras = 0.4;

  Dollars per_hour() const {
    return (reserved * reserved_share + on_demand * (1 - reserved_share)) * (1 + extras);
  }
};

template <class Visitor>
void describe(Visitor& v, RentSpec& s) {
  v.optional("on_demand", s.on_demand, "one GPU-hour, on demand", above(0));
  v.optional("reserved", s.reserved, "one GPU-hour that is reserved for a year or so", above(0));
  v.optional("reserved_share", s.reserved_share,
             "share of the rented GPU-hours that is reserved; what is reserved is taken as used",
             between(0, 1));
  v.optional("extras", s.extras, "storage, egress and the like, over the price of the GPU-hours",
             between(0, 5));
}

struct EconomicsSpec {
  CapexSpec capex{};
  /// Cost of capital a year; 0 is a straight line. With 0.07 the 38 billion USD and the 8.5 billion
  /// a year of Epoch's 1 GW site agree (tests/models/facility/economics_test.cpp).
  double discount_rate = 0.07;
  OpexSpec opex{};
  TariffSpec tariff{};
  CarbonSpec carbon{};
  Dollars water_price{1.5};  // one cubic metre: typical figure of municipal supply
  RentSpec rent{};
  /// Only if no plant is modelled. Between the mean of a survey, 1.56 (Uptime Institute 2024), and
  /// the fleet of Google, 1.10.
  double pue = 1.2;
  int start_day = 1;      // of the year, at the start of the run
  int start_weekday = 1;  // 1 is Monday
};

template <class Visitor>
void describe(Visitor& v, EconomicsSpec& s) {
  v.optional("capex", s.capex, "what is bought, in six groups");
  v.optional("discount_rate", s.discount_rate, "cost of capital a year; 0: straight line",
             between(0, 0.5));
  v.optional("opex", s.opex, "what a year costs beside energy and water");
  v.optional("tariff", s.tariff, "electricity");
  v.optional("carbon", s.carbon, "carbon of electricity");
  v.optional("water_price", s.water_price, "price of one cubic metre of water", at_least(0));
  v.optional("rent", s.rent, "renting instead of owning");
  v.optional("pue", s.pue, "energy of the site over that of IT, when no plant is modelled",
             between(1, 4));
  v.optional("start_day", s.start_day, "day of the year at the start of the run", between(1, 365));
  v.optional("start_weekday", s.start_weekday, "day of the week then, 1 is Monday", between(1, 7));
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Days> {
  static constexpr auto all = names<models::Days>({{models::Days::all, "all"},
                                                   {models::Days::weekdays, "weekdays"},
                                                   {models::Days::weekend, "weekend"}});
};
template <>
struct Names<models::SpendingGroup> {
  static constexpr auto all =
      names<models::SpendingGroup>({{models::SpendingGroup::accelerators, "accelerators"},
                                    {models::SpendingGroup::servers, "servers"},
                                    {models::SpendingGroup::network, "network"},
                                    {models::SpendingGroup::storage, "storage"},
                                    {models::SpendingGroup::power_and_cooling, "power_and_cooling"},
                                    {models::SpendingGroup::operations, "operations"}});
};
}  // namespace trainyard
