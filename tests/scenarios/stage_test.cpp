#include "scenarios/stage.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/check.hpp"
#include "scenarios/run.hpp"

namespace trainyard::scenarios {
namespace {

Scenario library(const std::string& name, const std::vector<std::string>& overrides) {
  const ReadResult read = load_scenario(std::string(TRAINYARD_LIBRARY) + '/' + name, overrides);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

/// 128 GPUs on rails whose links fail, flap and lose speed, with servers that fail as well.
Scenario troubled(const std::string& routing) {
  return library(
      "rails-1024.json",
      {"duration=3 d", "cluster.servers=20", "cluster.spares=4", "cluster.fabric.hosts_per_leaf=5",
       "cluster.fabric.leaf_oversubscription=1", "cluster.fabric.routing=" + routing,
       "jobs.llama.gpus=128", "jobs.llama.global_batch=256", "jobs.llama.model=llama3-8b",
       "jobs.llama.parallel.tensor=4", "jobs.llama.parallel.pipeline=2",
       "jobs.llama.parallel.chunks=2", "failures.classes.link-flap.lifetime.count=200",
       "failures.classes.link-hard.lifetime.count=2000",
       "failures.classes.spine.lifetime.count=2000",
       R"(failures.classes.half={"component":"link","effect":"slow","speed":0.5,)"
       R"("lifetime":{"count":20,"units":1,"duration":"365 d"},"detection":{"value":"1 h"}})",
       R"(failures.classes.server={"component":"server",)"
       R"("lifetime":{"count":60,"units":16,"duration":"7 d"},"detection":{"value":"1 min"}})"});
}

void expect_same(const RunResult& a, const RunResult& b, const std::string& where) {
  EXPECT_EQ(a.fingerprint, b.fingerprint) << where;
  EXPECT_EQ(a.events, b.events) << where;
  EXPECT_EQ(a.cluster.energy_J, b.cluster.energy_J) << where;
  ASSERT_EQ(a.jobs.size(), b.jobs.size());
  for (std::size_t j = 0; j < a.jobs.size(); ++j) {
    EXPECT_EQ(a.jobs[j].goodput, b.jobs[j].goodput) << where;
    EXPECT_EQ(a.jobs[j].steps_kept, b.jobs[j].steps_kept) << where;
    EXPECT_EQ(a.jobs[j].reroutes, b.jobs[j].reroutes) << where;
    for (std::size_t k = 0; k < models::accounts; ++k) {
      const auto account = static_cast<models::Account>(k);
      EXPECT_TRUE(a.jobs[j].ledger[account] == b.jobs[j].ledger[account])
          << where << ' ' << models::name_of(account);
    }
  }
}

TEST(Stage, a_run_on_a_used_stage_is_the_run_on_a_fresh_one) {
  for (const std::string routing : {"ecmp", "spray"}) {
    Scenario s = troubled(routing);
    Stage used(s);
    std::int64_t reroutes = 0;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      s.seed = seed;
      const RunResult fresh = run(s, {});
      expect_same(fresh, run(s, used, {}), routing + ", seed " + std::to_string(seed));
      reroutes += fresh.jobs[0].reroutes;
    }
    EXPECT_GT(reroutes, 8) << routing << ": links that fail hit the job";
    // And in another order, all profiles known.
    for (const std::uint64_t seed : {7u, 2u, 5u}) {
      s.seed = seed;
      const RunResult again = run(s, used, {});
      EXPECT_EQ(again.profiles_computed, 0u) << routing << ", seed " << seed;
      expect_same(run(s, {}), again, routing + ", again, seed " + std::to_string(seed));
    }
  }
}

TEST(Stage, serves_scenarios_that_differ_at_the_run_level_alone) {
  Scenario s = troubled("ecmp");
  Stage used(s);
  run(s, used, {});
  s.jobs.at("llama").checkpoint.interval = std::chrono::minutes(7);
  s.failures.classes.at("server").detection.value = std::chrono::minutes(9);
  expect_same(run(s, {}), run(s, used, {}), "another interval");
  s.cluster.servers = 18;  // two spares of the four are not there
  s.cluster.spares = 2;
  const RunResult fewer = run(s, used, {});
  EXPECT_EQ(fewer.state, RunState::complete);
  EXPECT_EQ(fewer.cluster.nodes, 18);
}

}  // namespace
}  // namespace trainyard::scenarios
