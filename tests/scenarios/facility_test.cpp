#include "scenarios/facility.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "models/facility/gpu_power.hpp"
#include "models/facility/step_power.hpp"
#include "scenarios/check.hpp"
#include "scenarios/power_meter.hpp"
#include "scenarios/run.hpp"
#include "scenarios/world.hpp"

/// Power and cooling joined to servers and jobs: what is told in which direction, chains of causes,
/// balances.
namespace trainyard::scenarios {
namespace {

ReadResult read_plant(std::vector<std::string> overrides) {
  ReadResult read =
      load_scenario(std::string(TRAINYARD_SOURCE_DIR) + "/tests/scenarios/plant.json", overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read;
}

/// A run that keeps its log.
struct Log {
  explicit Log(const Scenario& scenario, const std::function<void(World&)>& begin = {})
      : stage(scenario), world(scenario, recorder, stage) {
    if (begin) begin(world);
    PowerMeter meter(scenario, world, Watts(0), recorder);
    const Time end = add(start_of_run, scenario.duration);
    for (;;) {
      world.facility()->observe();
      meter.observe(world.engine().now());
      const auto next = world.engine().next_event();
      if (!next || *next > end) break;
      world.engine().step();
    }
    world.engine().run_until(end);
    meter.observe(world.engine().now());
    energy = meter.energy();
    result = world.facility()->result(energy, Joules(0));
    for (auto& j : world.jobs()) j.job->close();
    world.pool().settle();
  }

  std::string kind(std::size_t e) const {
    return recorder.kinds()[recorder.events()[e].kind.index()].name;
  }
  std::optional<std::size_t> first(const std::string& name, std::size_t from = 0) const {
    for (std::size_t e = from; e < recorder.events().size(); ++e)
      if (kind(e) == name) return e;
    return std::nullopt;
  }
  /// From an event back to what began it: "job struck <- rack too hot <- …".
  std::string chain(std::size_t e) const {
    std::string text = kind(e);
    while (recorder.events()[e].cause.is_valid()) {
      e = recorder.events()[e].cause.index();
      text += " <- " + kind(e);
    }
    return text;
  }
  double at_s(std::size_t e) const { return to_seconds(recorder.events()[e].when - start_of_run); }
  models::Job& job() { return *world.jobs()[0].job; }

  sim::MemoryRecorder recorder;
  Stage stage;
  World world;
  Joules energy{};
  FacilityResult result;
};

std::string script(const std::string& entries) {
  return "facility.script={" + entries + "}";
}

/// What the power plant gives to racks, at an instant.
std::function<void(World&)> look_at(Duration when, const std::vector<std::string>& racks,
                                    std::vector<double>& seen_W) {
  return [&seen_W, when, racks](World& world) {
    world.engine().at(add(start_of_run, when), sim::Phase::observation, [&seen_W, racks, &world] {
      models::PowerPlant& power = *world.facility()->power();
      for (const std::string& rack : racks) seen_W.push_back(power.flow(power.node(rack)).out_W);
    });
  };
}

TEST(Facility, loads_of_racks_are_those_of_warm_gpus) {
  const ReadResult read = read_plant({"duration=10 min"});
  Log log(read.scenario);
  // By hand: 8 racks of 32 GPUs train at the activity of the step, one rack of 2 spares idles.
  const models::GpuPower gpu(models::gpu_power_of(read.scenario.cluster.server.gpu));
  const auto& phases = log.job().current_profile()->power;
  const double overhead = read.scenario.cluster.server.power_overhead.value();
  const models::GpuLoad load = models::load_of(
      models::activities_of(phases, gpu, {.gpus = 256, .servers = Watts(32 * overhead)}),
      {.inlet = log.world.facility()->cooling()->condition(0).coolant_C,
       .resistance = gpu.spec().cold_plate.resistance});
  const double training = gpu.operating_point(load).power.value();
  const auto& powers = log.world.facility()->powers();
  ASSERT_EQ(powers.size(), 2u);
  EXPECT_NEAR(powers[1].value(), 256 * training + 32 * overhead, 0.01 * powers[1].value());
  models::GpuLoad idle = load;
  idle.activity = 0;
  idle.weight = 1;
  EXPECT_NEAR(powers[0].value(), 16 * gpu.operating_point(idle).power.value() + 2 * overhead,
              0.02 * powers[0].value());
}

TEST(Facility, power_and_heat_balance_over_a_month_with_failures) {
  const ReadResult read = read_plant(
      {"duration=30 d",
       R"(failures={"classes": {"host": {"component": "server", "lifetime": {"mean": "100 d"},
           "detection": {"value": "10 s"}}}})",
       R"(facility.faults={"pump": {"parts": ["cdu-*/pump"], "lifetime": {"mean": "10 d"}},
           "ups": {"parts": ["ups-a", "ups-b"], "lifetime": {"mean": "20 d"}},
           "chiller": {"parts": ["north/chiller"], "lifetime": {"mean": "15 d"}}})"});
  const RunResult run = scenarios::run(read.scenario, {});
  const FacilityResult& f = *run.facility;
  EXPECT_GT(f.faults, 5);
  EXPECT_LT(f.power_imbalance, 1e-9);
  EXPECT_LT(f.heat_imbalance, 1e-9);
  EXPECT_NEAR(f.site.value(), (f.it + f.cooling + f.losses).value(), 1e-9 * f.site.value());
  Joules by_kind{};
  for (const auto& [kind, lost] : f.losses_by_kind) by_kind += lost;
  EXPECT_NEAR(by_kind.value(), f.losses.value(), 1e-9 * f.losses.value());
  EXPECT_NEAR(f.it.value(), run.cluster.energy_J, 1e-9 * run.cluster.energy_J);
  EXPECT_NEAR(f.pue, f.site / f.it, 1e-12);
  EXPECT_GT(f.pue, 1.05);
  EXPECT_LT(f.pue, 1.5);
}

TEST(Facility, energy_does_not_depend_on_how_often_somebody_looks) {
  const ReadResult plain = read_plant({"duration=1 d"});
  const ReadResult often = read_plant({"duration=1 d", "fidelity=every-step"});
  const RunResult a = run(plain.scenario, {}), b = run(often.scenario, {});
  EXPECT_GT(b.events, 10 * a.events);
  EXPECT_NEAR(a.facility->it.value(), b.facility->it.value(), 1e-6 * a.facility->it.value());
  EXPECT_NEAR(a.facility->losses.value(), b.facility->losses.value(),
              1e-6 * a.facility->losses.value());
  EXPECT_NEAR(a.facility->cooling.value(), b.facility->cooling.value(),
              1e-3 * a.facility->cooling.value());
}

TEST(Facility, constant_loads_are_energy_of_the_site) {
  const ReadResult read = read_plant(
      {"duration=2 h",
       R"(facility.power.loads={"offices": {"fed_by": ["pdu-a"], "constant": "30 kW"}})",
       script(R"("a": {"at": "1 h", "part": "pdu-a", "action": "fail", "duration": "30 min"})")});
  const FacilityResult f = *run(read.scenario, {}).facility;
  EXPECT_NEAR(f.others.value(), 30e3 * 1.5 * 3600, 1);  // half an hour without feed
  EXPECT_NEAR(f.site.value(), (f.it + f.cooling + f.losses + f.others).value(),
              1e-9 * f.site.value());
}

/// Racks and GPUs computed anew at each change are the twin of scenes that came before.
TEST(Facility, what_is_remembered_is_what_would_be_computed) {
  const std::vector<std::string> set{
      "duration=3 d",
      R"(failures={"classes": {"host": {"component": "server", "lifetime": {"mean": "30 d"},
           "detection": {"value": "10 s"}}}})",
      R"(facility.power.loads={"cooling": {"fed_by": ["pdu-a", "pdu-b"], "units": ["north", "hall"]}})",
      R"(facility.faults={"pump": {"parts": ["cdu-*/pump"], "lifetime": {"mean": "2 d"}}})",
      script(R"("hot": {"at": "30 h", "part": "cdu-1/pump-1", "action": "fail", "duration": "4 h"},
                "hotter": {"at": "32 h", "part": "cdu-1/pump-2", "action": "fail", "duration": "1 h"})")};
  const ReadResult read = read_plant(set);
  Log fast(read.scenario);
  Log slow(read.scenario, [](World& world) { world.facility()->remember_nothing(); });
  EXPECT_GT(fast.world.facility()->scenes_reused(), 100u);
  EXPECT_EQ(slow.world.facility()->scenes_reused(), 0u);
  EXPECT_GT(fast.result.racks_uncooled, 0);
  EXPECT_EQ(to_text(fast.world.engine().fingerprint()), to_text(slow.world.engine().fingerprint()));
  ASSERT_EQ(fast.recorder.events().size(), slow.recorder.events().size());
  for (std::size_t e = 0; e < fast.recorder.events().size(); ++e) {
    EXPECT_EQ(fast.recorder.events()[e].when, slow.recorder.events()[e].when);
    EXPECT_EQ(fast.recorder.events()[e].value, slow.recorder.events()[e].value);
    EXPECT_EQ(fast.chain(e), slow.chain(e));
  }
  EXPECT_EQ(fast.energy.value(), slow.energy.value());
  EXPECT_EQ(fast.result.site.value(), slow.result.site.value());
}

TEST(Facility, coolant_that_stops_takes_racks_down_and_every_event_names_its_cause) {
  const ReadResult read = read_plant({script(
      R"("first": {"at": "1 h", "part": "cdu-1/pump-1", "action": "fail", "duration": "2 h"},
         "second": {"at": "1 h", "part": "cdu-1/pump-2", "action": "fail", "duration": "1 h"})")});
  std::vector<double> seen_W;
  Log log(read.scenario,
          look_at(std::chrono::seconds(3635), {"rack-0", "rack-3", "rack-4"}, seen_W));
  EXPECT_EQ(seen_W[0], 0);  // off, though nobody has diagnosed anything yet
  EXPECT_EQ(seen_W[1], 0);
  EXPECT_GT(seen_W[2], 4 * 5e3);  // on the next CDU
  const auto struck = log.first("job struck");
  ASSERT_TRUE(struck.has_value());
  EXPECT_EQ(log.chain(*struck), "job struck <- rack too hot <- cooling unit failed <- plant fault");
  EXPECT_GT(log.at_s(*struck), 3605);  // dies and plates take some seconds
  EXPECT_LT(log.at_s(*struck), 3630);
  EXPECT_EQ(log.result.racks_uncooled, 4);
  // One failure of 16 servers, not four.
  EXPECT_EQ(log.job().interruptions().size(), 1u);
  EXPECT_EQ(log.job().interruptions()[0].servers, 16);
  EXPECT_EQ(log.job().interruptions()[0].why, "no cooling");
  EXPECT_GT(log.world.pool().ledger().gpu_s(models::Account::down_cooled), 3000.0 * 128);
  EXPECT_EQ(log.job().state(), models::JobState::training);  // it came back
}

TEST(Facility, a_feed_that_is_lost_is_carried_by_the_other_and_both_are_not) {
  const std::string a =
      R"("a": {"at": "1 h", "part": "pdu-a", "action": "fail", "duration": "1 h"})";
  Log one(read_plant({script(a)}).scenario);
  EXPECT_EQ(one.job().interruptions().size(), 0u);
  EXPECT_EQ(one.result.racks_unfed, 0);

  Log both(read_plant({script(a + R"(, "b": {"at": "90 min", "part": "pdu-b", "action": "fail",
      "duration": "20 min"})")})
               .scenario);
  const auto struck = both.first("job struck");
  ASSERT_TRUE(struck.has_value());
  EXPECT_EQ(both.chain(*struck), "job struck <- rack unfed <- power node failed <- plant fault");
  EXPECT_NEAR(both.at_s(*struck), 5400.012, 1e-6);  // supplies hold up for 12 ms
  EXPECT_EQ(both.result.racks_unfed, 9);
  EXPECT_EQ(both.job().interruptions().size(), 1u);
  EXPECT_NEAR(both.world.pool().ledger().gpu_s(models::Account::down_fed), 272 * 1200.0,
              0.2 * 272 * 1200);
}

TEST(Facility, a_cap_slows_the_step_and_the_ledger_says_so) {
  // 40 A a circuit: with one feed a rack draws too much, unless its GPUs are capped.
  const std::vector<std::string> tight{
      "duration=2 h", "facility.power.racks.feeds.a.breaker.rating=40 A",
      "facility.power.racks.feeds.b.breaker.rating=40 A",
      script(R"("a": {"at": "1 h", "part": "pdu-a", "action": "fail"})")};
  Log capped(read_plant(tight).scenario);
  EXPECT_EQ(capped.job().interruptions().size(), 0u);
  EXPECT_GT(capped.result.limits, 0);
  const auto step = capped.first("step time");
  ASSERT_TRUE(step.has_value());
  EXPECT_THAT(capped.chain(*step), testing::StartsWith("step time <- GPU speed <- rack "));
  EXPECT_THAT(capped.chain(*step), testing::HasSubstr("plant fault"));
  const auto account = capped.first("GPU time to account slow");
  ASSERT_TRUE(account.has_value());
  EXPECT_GT(capped.recorder.events()[*account].value, 0.05);

  std::vector<std::string> without = tight;
  for (const char* means : {"cap", "brake", "suspend", "cut"})
    without.push_back("facility.policy." + std::string(means) + "=false");
  Log tripped(read_plant(without).scenario);
  EXPECT_EQ(tripped.job().interruptions().size(), 1u);
  EXPECT_THAT(tripped.chain(*tripped.first("job struck")), testing::HasSubstr("breaker"));
}

TEST(Facility, coolant_pumps_stop_with_the_feed_that_they_hang_on) {
  const std::vector<std::string> set{
      R"(facility.power.loads={"pumps": {"fed_by": ["pdu-a"], "units": ["cdu-1/pump"]}})",
      script(R"("a": {"at": "1 h", "part": "pdu-a", "action": "fail", "duration": "1 h"})")};
  Log log(read_plant(set).scenario);
  EXPECT_EQ(log.result.racks_unfed, 0);  // they have a second feed
  EXPECT_EQ(log.result.racks_uncooled, 4);
  const auto struck = log.first("job struck");
  ASSERT_TRUE(struck.has_value());
  EXPECT_THAT(log.chain(*struck), testing::StartsWith("job struck <- rack too hot <- "));
  EXPECT_THAT(log.chain(*struck), testing::EndsWith("power node failed <- plant fault"));
}

TEST(Facility, operators_may_power_racks_down_and_up_again) {
  using namespace std::chrono_literals;
  std::vector<double> seen_W;
  Log log(read_plant({script(R"("less": {"at": "1 h", "action": "shed", "share": 0.25},
                                "all": {"at": "2 h", "action": "shed", "share": 0})")})
              .scenario,
          look_at(1h + 1ms, {"rack-6", "rack-7", "rack-8"}, seen_W));
  // Long before the job knows.
  ASSERT_EQ(seen_W.size(), 3u);
  EXPECT_GT(seen_W[0], 4 * 5e3);
  EXPECT_EQ(seen_W[1], 0);
  EXPECT_EQ(seen_W[2], 0);
  EXPECT_EQ(log.result.racks_shed, 2);  // of 9: rounded
  EXPECT_EQ(log.job().interruptions().size(), 1u);
  EXPECT_EQ(log.job().state(), models::JobState::training);
}

TEST(Facility, the_same_run_twice_is_the_same_to_the_byte) {
  const std::vector<std::string> set{
      "duration=3 d",
      R"(facility.faults={"pump": {"parts": ["cdu-*/pump"], "lifetime": {"mean": "2 d"}}})"};
  const RunResult a = run(read_plant(set).scenario, {});
  const RunResult b = run(read_plant(set).scenario, {});
  EXPECT_EQ(a.fingerprint, b.fingerprint);
  EXPECT_EQ(a.facility->site.value(), b.facility->site.value());
}

TEST(Facility, what_does_not_fit_the_cluster_is_said_with_its_place) {
  const auto wrong = [](std::vector<std::string> set) {
    return to_text(
        load_scenario(std::string(TRAINYARD_SOURCE_DIR) + "/tests/scenarios/plant.json", set)
            .diagnostics);
  };
  EXPECT_THAT(wrong({"facility.cooling.cdus.cdu-3=null"}),
              testing::HasSubstr("there are 2, but 34 servers with 16 a CDU need 3"));
  EXPECT_THAT(wrong({"cluster.parents.servers_per_rack=null"}),
              testing::HasSubstr("there are none"));
  EXPECT_THAT(wrong({script(R"("x": {"at": "1 h", "part": "cdu-1/pumb-1", "action": "fail"})")}),
              testing::HasSubstr("cdu-1/pump-1"));
  EXPECT_THAT(wrong({script(R"("x": {"at": "1 h", "part": "ups-a", "action": "trip"})")}),
              testing::HasSubstr("no unit of the cooling plant"));
  EXPECT_THAT(wrong({"facility.power.nodes.pdu-a.fed_by=[\"ups-c\"]"}),
              testing::HasSubstr("there is no \"ups-c\""));
}

}  // namespace
}  // namespace trainyard::scenarios
