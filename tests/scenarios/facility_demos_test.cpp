#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "analysis/explain_rows.hpp"
#include "analysis/run_reader.hpp"
#include "scenarios/check.hpp"
#include "scenarios/run.hpp"
#include "scenarios/stage.hpp"

/// The demonstrations of power and cooling in the library, as whole runs: when, why, and what a cap
/// changes.
namespace trainyard::scenarios {
namespace {

using models::Account;

/// A run of the library with its event log.
struct Demo {
  Demo(const std::string& name, const std::vector<std::string>& overrides) {
    const ReadResult read =
        load_scenario(std::string(TRAINYARD_LIBRARY) + "/" + name + ".json", overrides);
    EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
    scenario = read.scenario;
    RunOptions options;
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    options.run_file = (std::filesystem::temp_directory_path() / (test + ".h5")).string();
    result = run(scenario, options);
    EXPECT_EQ(result.state, RunState::complete) << result.failure;
    const analysis::RunReader reader(*options.run_file);
    events = reader.events();
    for (const analysis::Kind& kind : reader.kinds()) kinds.push_back(kind.name);
    subjects = reader.subjects();
    for (const auto& row : analysis::read_job(reader, result.jobs.front().name).profiles)
      steps_s.push_back(row.step_s);
    std::filesystem::remove(*options.run_file);
  }

  std::vector<std::size_t> all(const std::string& kind) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < events.size(); ++i)
      if (kinds[std::size_t(events[i].kind)] == kind) found.push_back(i);
    return found;
  }
  std::size_t first(const std::string& kind) const {
    const auto found = all(kind);
    EXPECT_FALSE(found.empty()) << kind;
    return found.empty() ? 0 : found.front();
  }
  double at_s(std::size_t event) const { return double(events[event].time_ns) * 1e-9; }
  double value(std::size_t event) const { return events[event].value; }
  /// "effect <- cause <- its cause".
  std::string chain(std::size_t event) const {
    std::string text = kinds[std::size_t(events[event].kind)];
    for (auto e = std::int64_t(events[event].cause); e >= 0;
         e = std::int64_t(events[std::size_t(e)].cause))
      text += " <- " + kinds[std::size_t(events[std::size_t(e)].kind)];
    return text;
  }

  Scenario scenario;
  RunResult result;
  std::vector<analysis::EventRow> events;
  std::vector<std::string> kinds, subjects;
  std::vector<double> steps_s;
};

/// From i0 for ever to i1, in units of the rating: the thermal image reaches its trip level.
double trip_s(double i0, double i1) {
  constexpr double tau_s = 103.222607, level = 1.64;
  return tau_s * std::log((i1 * i1 - i0 * i0) / (i1 * i1 - level));
}

// Two ports of 16 A at 220 V and 0.9 carry 3168 W each. With 5 kW on one of them its breaker opens
// after 81.17 s. A step takes 175 s, so the emergency save never begins.
TEST(FacilityDemos, a_server_of_5_kW_on_two_ports_dies_81_s_after_one_of_them) {
  const Demo demo("plant-5kw-server", {});
  const std::size_t lost = demo.first("ups off"), trip = demo.first("breaker tripped");
  EXPECT_NEAR(demo.at_s(trip) - demo.at_s(lost), 81.17, 0.05);
  EXPECT_NEAR(trip_s(5000.0 / 3168 / 2, 5000.0 / 3168), 81.17, 0.005);
  EXPECT_NEAR(demo.value(demo.first("power loss predicted")), demo.at_s(trip) - demo.at_s(lost),
              1e-6);
  EXPECT_THAT(demo.chain(demo.first("job struck")),
              testing::StartsWith("job struck <- rack unfed <- breaker tripped <- ups off <- "
                                  "power node failed <- plant fault"));
  EXPECT_EQ(demo.all("job warned").size(), 1u);
  EXPECT_EQ(demo.all("save began").size(), 1u);  // the one of the interval
  const JobResult& job = demo.result.jobs.front();
  EXPECT_EQ(job.interruptions_by_class.at("no power"), 1);
  EXPECT_GT(job.ledger.gpu_s(Account::lost_work), 0);
  EXPECT_EQ(demo.result.facility->racks_unfed, 1);
}

TEST(FacilityDemos, a_server_of_5_kW_lives_on_one_port_with_a_cap) {
  const Demo demo("plant-5kw-server", {"facility.policy.cap=true"});
  const std::size_t cap = demo.first("rack capped");
  EXPECT_NEAR(demo.at_s(cap) - demo.at_s(demo.first("ups off")), 3, 1e-9);
  EXPECT_NEAR(demo.value(cap), 0.95 * 3168, 0.01);  // 95 % of the port
  EXPECT_TRUE(demo.all("breaker tripped").empty());
  const JobResult& job = demo.result.jobs.front();
  EXPECT_EQ(job.interruptions, 0);
  EXPECT_EQ(job.ledger.gpu_s(Account::lost_work), 0);
  EXPECT_EQ(demo.result.facility->racks_unfed, 0);
  EXPECT_THAT(demo.chain(demo.first("GPU time to account slow")),
              testing::StartsWith("GPU time to account slow <- step time <- GPU speed <- rack "
                                  "capped <- ups off <- power node failed <- plant fault"));
}

// 132 kW on two feeds of 125 A (84.9 kW at 0.98).
TEST(FacilityDemos, a_rack_of_132_kW_goes_dark_after_one_of_two_feeds_and_not_with_a_cap) {
  const Demo dark("rack-132kw-feed-loss", {});
  EXPECT_EQ(dark.all("breaker tripped").size(), 2u);  // one of each rack
  EXPECT_EQ(dark.result.facility->racks_unfed, 2);
  EXPECT_EQ(dark.result.jobs.front().interruptions, 1);
  EXPECT_GT(dark.result.cluster.ledger.gpu_s(Account::down_fed), 0);

  const Demo capped("rack-132kw-feed-loss-capped", {});
  EXPECT_TRUE(capped.all("breaker tripped").empty());
  EXPECT_EQ(capped.result.facility->racks_unfed, 0);
  EXPECT_EQ(capped.result.jobs.front().interruptions, 0);
  const double port_W = 125 * std::sqrt(3.0) * 400 * 0.98;
  EXPECT_NEAR(capped.value(capped.first("rack capped")), 0.95 * port_W, 1e-3 * port_W);
  EXPECT_GT(capped.result.jobs.front().goodput, 2 * dark.result.jobs.front().goodput - 0.6);
}

// Two main breakers share the load; one is lost. Each carried 0.6 to 0.8 of its rating.
TEST(FacilityDemos, the_survivor_of_two_feeds_trips_by_what_it_carried) {
  const auto with = [](double rating_A, const char* cap) {
    const std::string rating = std::to_string(rating_A) + " A";
    return Demo("feed-loss-preload", {"facility.power.nodes.main-a.breaker.rating=" + rating,
                                      "facility.power.nodes.main-b.breaker.rating=" + rating,
                                      std::string("facility.policy.cap=") + cap});
  };
  // What one carries, from the time that a known rating takes.
  const double tried_A = 280;
  const Demo tried = with(tried_A, "false");
  const double tried_s =
      tried.at_s(tried.first("breaker tripped")) - tried.at_s(tried.first("ups off"));
  double low = 0.641, high = 1;  // trip_s falls with the share
  for (int i = 0; i < 60; ++i) {
    const double mid = (low + high) / 2;
    (trip_s(mid, 2 * mid) > tried_s ? low : high) = mid;
  }
  const double carried_A = low * tried_A;
  struct Row {
    double share, trip_s;
  };
  for (const Row row : {Row{0.7, 157.38}, Row{0.75, 105.03}, Row{0.8, 75.94}}) {
    SCOPED_TRACE(row.share);
    const Demo dies = with(carried_A / row.share, "false");
    const std::size_t trip = dies.first("breaker tripped");
    EXPECT_EQ(dies.subjects[std::size_t(dies.events[trip].subject)], "main-b");
    EXPECT_NEAR(dies.at_s(trip) - dies.at_s(dies.first("ups off")), row.trip_s, 0.01);
    EXPECT_EQ(dies.result.facility->racks_unfed, 8);  // all
    EXPECT_EQ(dies.result.jobs.front().interruptions, 1);

    const Demo lives = with(carried_A / row.share, "true");
    EXPECT_TRUE(lives.all("breaker tripped").empty());
    EXPECT_EQ(lives.result.facility->racks_unfed, 0);
    EXPECT_EQ(lives.result.jobs.front().interruptions, 0);
    EXPECT_EQ(lives.result.cluster.ledger.gpu_s(Account::down_fed), 0);
    EXPECT_GT(lives.result.jobs.front().ledger.gpu_s(Account::slow),
              dies.result.jobs.front().ledger.gpu_s(Account::slow));
  }
  EXPECT_TRUE(with(carried_A / 0.6, "false").all("breaker tripped").empty());
}

// One of two pumps of one CDU: 0.66 of the flow, warmer plates, a lower clock, and three other
// racks wait. What the step takes is what the step model says for GPUs of that speed.
TEST(FacilityDemos, a_pump_of_a_CDU_makes_a_straggler) {
  const Demo demo("cdu-straggler", {});
  const auto speeds = demo.all("GPU speed"), steps = demo.all("step time");
  ASSERT_GE(speeds.size(), 2u);
  ASSERT_EQ(steps.size(), speeds.size());
  EXPECT_EQ(demo.chain(demo.first("GPU time to account slow")),
            "GPU time to account slow <- step time <- GPU speed <- cooling unit failed <- plant "
            "fault");
  Stage stage(demo.scenario);
  stage.begin_run(demo.scenario);
  models::Placement placement = first_placement(demo.scenario, demo.scenario.jobs.begin()->second);
  const double healthy_s = to_seconds(stage.steps("llama").profile(placement).step);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double speed = demo.value(speeds[i]);
    placement.slow.clear();
    if (speed < 1)
      for (std::int64_t gpu = 2 * 72; gpu < 3 * 72; ++gpu) placement.slow.push_back({gpu, speed});
    EXPECT_NEAR(demo.value(steps[i]), to_seconds(stage.steps("llama").profile(placement).step),
                1e-9);
  }
  EXPECT_LT(demo.value(speeds.front()), 0.9);
  EXPECT_GT(demo.value(steps.front()), 1.1 * healthy_s);
  EXPECT_NEAR(demo.value(steps.back()), healthy_s, 1e-9);

  // Without the fault nothing is slow; the steps that are missing are those that took longer.
  const Demo sound("cdu-straggler", {"facility.script=null"});
  EXPECT_TRUE(sound.all("GPU speed").empty());
  EXPECT_LT(demo.result.jobs.front().steps_kept, sound.result.jobs.front().steps_kept);
  double lost_steps = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double until_s = i + 1 < steps.size() ? demo.at_s(steps[i + 1]) : demo.at_s(steps[i]);
    const double training_s = until_s - demo.at_s(steps[i]);
    lost_steps += training_s * (1 / healthy_s - 1 / demo.value(steps[i]));
  }
  const double found =
      double(sound.result.jobs.front().steps_kept - demo.result.jobs.front().steps_kept);
  EXPECT_NEAR(found, lost_steps, 0.005 * lost_steps + 2);
}

// A heat wave on dry coolers alone: the hottest hour says what is short.
TEST(FacilityDemos, a_summer_week_names_what_limits) {
  const Demo demo("summer-week", {});
  const FacilityResult& f = *demo.result.facility;
  EXPECT_GT(f.pue, 1.02);
  EXPECT_LT(f.pue, 1.2);
  EXPECT_NEAR(f.site.value(), f.it.value() + f.cooling.value() + f.losses.value(),
              1e-9 * f.site.value());
  EXPECT_LT(f.heat_imbalance, 1e-9);
  ASSERT_TRUE(f.hottest_hour.has_value());
  EXPECT_NEAR(f.hottest_hour->dry_C, 36.9, 0.1);
  EXPECT_EQ(f.hottest_hour->part, "cdu-1");  // the coolers are as warm as its set-point
  const auto speeds = demo.all("GPU speed");
  ASSERT_FALSE(speeds.empty());
  // On days of the wave only, and afterwards at full speed again.
  EXPECT_GT(demo.at_s(speeds.front()), 86400);
  EXPECT_EQ(demo.value(speeds.back()), 1);
  EXPECT_EQ(demo.result.jobs.front().interruptions, 0);
}

// 6.48 TB at 2 TB/s are 3.24 s; ten jobs that save at once need 32.4 s each.
TEST(FacilityDemos, ten_emergency_saves_share_the_store) {
  const auto first_save_s = [](const Demo& demo) {
    const double lost_s = demo.at_s(demo.first("ups on battery"));
    double began_s = 0, ended_s = 0;
    for (const std::size_t e : demo.all("save began"))
      if (demo.at_s(e) >= lost_s && began_s == 0) began_s = demo.at_s(e);
    for (const std::size_t e : demo.all("save complete"))
      if (demo.at_s(e) >= lost_s && ended_s == 0) ended_s = demo.at_s(e);
    const auto dark = demo.all("rack unfed");
    const bool is_late = !dark.empty() && ended_s > demo.at_s(dark.front());
    return ended_s == 0 || is_late ? 0 : ended_s - began_s;
  };
  const Demo ten("ten-emergency-saves", {});
  EXPECT_NEAR(first_save_s(ten), 32.4, 1e-6);
  EXPECT_LT(32.4 + 1.5, ten.value(ten.first("power loss predicted")));
  std::vector<std::string> alone;
  for (int i = 1; i < 10; ++i) alone.push_back("jobs.job-" + std::to_string(i) + "=null");
  EXPECT_NEAR(first_save_s(Demo("ten-emergency-saves", alone)), 3.24, 1e-6);
  // A battery of 10 s is not enough for ten, but for one.
  const std::string battery = "facility.power.nodes.ups.ups.battery.autonomy=10 s";
  EXPECT_EQ(first_save_s(Demo("ten-emergency-saves", {battery})), 0);
  alone.push_back(battery);
  EXPECT_NEAR(first_save_s(Demo("ten-emergency-saves", alone)), 3.24, 1e-6);
}

}  // namespace
}  // namespace trainyard::scenarios
