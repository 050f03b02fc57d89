#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/facility/economics.hpp"
#include "models/facility/tariff.hpp"
#include "scenarios/power_meter.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/world.hpp"

/// What a run costs, if its scenario asks for it with `economics`: prices of the parts in the
/// scenario, energy as the power meter sees it, shared among jobs, on the accounts of the ledger.
namespace trainyard::scenarios {

/// The result of the money side of a run.
struct RunCost {
  models::CostReport report;
  double pue = 1;
  std::vector<models::MonthPeak> months;
  struct Block {
    std::string name;
    Joules energy{};
    Dollars price{};  // of one kWh
  };
  std::vector<Block> blocks;         // of the tariff
  std::string rent_or_own;           // in words, at the share of GPU-hours that jobs held
  double utilisation = 0;            // that share
  std::vector<std::string> assumed;  // one line each
};

/// What there is to be paid for.
models::SiteFacts site_facts(const Scenario& scenario, const topologies::Fabric& fabric);

/// Follows the power meter through a run.
class CostMeter {
 public:
  CostMeter(const Scenario& scenario, World& world);

  /// After PowerMeter::observe(now).
  void observe(Time now, const PowerMeter& power);
  /// At the end, when all ledgers are complete.
  RunCost cost() const;

 private:
  const Scenario& scenario_;
  World& world_;
  const models::EconomicsSpec& spec_;
  models::EnergyMeter meter_;
};

}  // namespace trainyard::scenarios
