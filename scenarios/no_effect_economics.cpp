#include <algorithm>

#include "scenarios/no_effect.hpp"

/// Money: what is only looked at together with something else.
namespace trainyard::scenarios {

void economics_without_effect(NoEffectLines& out) {
  if (!out.scenario.economics) return;
  const models::EconomicsSpec& e = *out.scenario.economics;
  const auto& blocks = e.tariff.blocks;
  const bool has_weekdays = std::any_of(blocks.begin(), blocks.end(), [](const auto& block) {
    return block.second.days != models::Days::all;
  });
  const bool has_seasons = std::any_of(blocks.begin(), blocks.end(), [](const auto& block) {
    return block.second.first_month != 1 || block.second.last_month != 12;
  });
  const bool has_demand = e.tariff.demand_charge > Dollars(0);
  if (!out.scenario.facility || !out.scenario.facility->cooling)
    out.idle("economics.water_price", "no plant is modelled, so no water is counted");
  if (out.scenario.facility) out.idle("economics.pue", "the facility says what the site draws");
  if (!has_demand) out.idle("economics.tariff.demand_window", "there is no demand_charge");
  if (!has_weekdays)
    out.idle("economics.start_weekday", "no block of the tariff is of some days of the week");
  if (!has_seasons && !has_weekdays && !has_demand && e.carbon.by_hour.size() != 8760)
    out.idle("economics.start_day", "neither prices nor carbon depend on the day of the year");
  if (e.opex.staff == 0) out.idle("economics.opex.staff_cost", "opex.staff is 0");
  if (e.rent.reserved_share == 0) out.idle("economics.rent.reserved", "reserved_share is 0");
  if (!e.carbon.by_hour.empty())
    out.idle("economics.carbon.intensity", "by_hour stands in its place");
}

}  // namespace trainyard::scenarios
