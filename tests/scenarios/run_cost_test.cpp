#include "scenarios/run_cost.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "analysis/run_reader.hpp"
#include "scenarios/check.hpp"
#include "scenarios/run.hpp"

/// The money of whole runs: sums close, prices come from the parts, energy is that of the power
/// meter.
namespace trainyard::scenarios {
namespace {

RunResult run_with(const std::vector<std::string>& overrides) {
  const ReadResult read =
      load_scenario(std::string(TRAINYARD_LIBRARY) + "/quickstart.json", overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return run(read.scenario, {});
}

TEST(RunCost, nothing_is_said_about_money_unless_it_is_asked_for) {
  EXPECT_FALSE(run_with({"duration=1 d"}).cost.has_value());
}

TEST(RunCost, energy_is_the_power_meters_and_every_sum_closes) {
  const RunResult r = run_with({"economics={}", "economics.pue=1.25"});
  ASSERT_TRUE(r.cost.has_value());
  const models::CostReport& report = r.cost->report;
  const double site_J = 1.25 * r.cluster.energy_J;
  EXPECT_NEAR(report.cluster.sum.energy.value(), site_J, 1e-9 * site_J);
  EXPECT_NEAR(r.cost->pue, 1.25, 1e-12);
  const double total = report.total().value();
  double by_group = 0, by_job = report.pool.sum.cost.total().value(), by_account = 0;
  for (const Dollars group : report.by_group) by_group += group.value();
  for (const models::JobCost& job : report.jobs) by_job += job.sum.cost.total().value();
  for (const models::AccountCost& account : report.cluster.by_account)
    by_account += account.total().value();
  EXPECT_NEAR(by_group, total, 1e-9 * total);
  EXPECT_NEAR(by_job, total, 1e-9 * total);
  EXPECT_NEAR(by_account, total, 1e-9 * total);
  // 272 GPUs for a week, and those of them in kept steps.
  EXPECT_NEAR(report.cluster.gpu_h(), 272 * 168.0, 1e-6);
  EXPECT_NEAR(report.jobs[0].useful_gpu_h(), r.jobs[0].goodput * 256 * 168, 1.0);
  // Without interest: 272 GPUs at 30,000 USD over five years, for a week.
  const RunResult flat = run_with({"economics={}", "economics.discount_rate=0"});
  const double week_of_five_years = 168.0 / (5 * 8760);
  EXPECT_NEAR(flat.cost->report.by_group[std::size_t(models::SpendingGroup::accelerators)].value(),
              272 * 30000 * week_of_five_years, 1e-6);
}

TEST(RunCost, a_dearer_night_and_a_charge_on_the_peak_cost_what_they_say) {
  const RunResult plain = run_with({"economics={}"});
  const RunResult night =
      run_with({R"(economics={"tariff": {"price": "0.078 USD", "demand_charge": "10 USD",
          "blocks": {"night": {"price": "0.178 USD", "from": 22, "to": 6}}}})"});
  ASSERT_EQ(night.cost->blocks.size(), 2u);
  const double night_kWh = night.cost->blocks[1].energy.value() / 3.6e6;
  EXPECT_NEAR(night_kWh / night.cost->report.cluster.kWh(), 1.0 / 3, 0.01);
  const double peak_kW = night.cost->months.at(0).peak.value() / 1000;
  const double demand = peak_kW * 10 * 7 / 31;  // a week of January
  EXPECT_NEAR(night.cost->report.total().value() - plain.cost->report.total().value(),
              0.1 * night_kWh + demand, 1e-6 * plain.cost->report.total().value());
}

TEST(RunCost, is_a_table_of_the_run_file) {
  const ReadResult read =
      load_scenario(std::string(TRAINYARD_LIBRARY) + "/quickstart.json", {"economics={}"});
  ASSERT_TRUE(read.ok());
  RunOptions options;
  options.run_file = (std::filesystem::temp_directory_path() / "run_cost.h5").string();
  const RunResult r = run(read.scenario, options);
  const analysis::RunReader reader(*options.run_file);
  const analysis::Table table = reader.table("cluster/cost");
  EXPECT_GT(table.rows(), 5u);
  std::filesystem::remove(*options.run_file);
}

TEST(EconomicsGuide, its_example_passes_the_check) {
  std::ifstream file(std::string(TRAINYARD_SOURCE_DIR) + "/docs/guide/economics.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string example = text.str();
  const auto begin = example.find("```json\n") + 8;
  example = example.substr(begin, example.find("```", begin) - begin);
  const auto path = std::filesystem::path(TRAINYARD_LIBRARY) / "economics_guide_example.json";
  const auto folder = std::filesystem::temp_directory_path();
  example = std::regex_replace(example, std::regex("\"quickstart.json\""),
                               "\"" + std::string(TRAINYARD_LIBRARY) + "/quickstart.json\"");
  const auto copy = folder / path.filename();
  std::ofstream(copy) << example;
  const ReadResult read = load_scenario(copy.string(), {});
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  ASSERT_TRUE(read.scenario.economics.has_value());
  EXPECT_EQ(read.scenario.economics->pue, 1.15);
  std::filesystem::remove(copy);
}

}  // namespace
}  // namespace trainyard::scenarios
