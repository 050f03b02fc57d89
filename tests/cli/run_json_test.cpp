#include "scenarios/run_json.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cli/golden.hpp"
#include "tests/cli/made_up_run.hpp"

namespace trainyard::cli {
namespace {

TEST(RunJson, of_a_made_up_run) {
  expect_golden("run.json", run_json(made_up_run()));
}

TEST(RunJson, exact_accounts_add_up_to_gpus_times_time_beyond_64_bits) {
  scenarios::RunResult r;
  // 16,384 GPUs for 54 days: 16384 * 54 * 86400e9 ns = 76,441,190,400,000,000,000 > 2^64.
  r.cluster.ledger.add(models::Account::useful, 16384, seconds(54.0 * 86400) - Duration(1));
  r.cluster.ledger.add(models::Account::restart, 16384, Duration(1));
  const auto json = nlohmann::json::parse(run_json(r));
  EXPECT_EQ(json["cluster"]["ledger_gpu_ns"]["total"], "76441190400000000000");
  EXPECT_EQ(json["cluster"]["ledger_gpu_ns"]["useful"], "76441190399999983616");
  EXPECT_EQ(json["cluster"]["ledger_gpu_ns"]["restart"], "16384");
  EXPECT_EQ(json["cluster"]["ledger_gpu_ns"]["bubble"], "0");
}

TEST(RunJson, what_is_not_defined_is_null) {
  scenarios::RunResult r = made_up_run();
  r.jobs[0].interruptions = 0;
  r.run_file.clear();
  const auto json = nlohmann::json::parse(run_json(r));
  EXPECT_TRUE(json["jobs"]["llm"]["mtbi_s"].is_null());
  EXPECT_TRUE(json["run_file"].is_null());
}

TEST(RunJson, text_that_is_not_utf8_does_not_break_the_object) {
  scenarios::RunResult r = made_up_run();
  r.scenario = "bad\xff";
  EXPECT_NO_THROW(nlohmann::json::parse(run_json(r)));
}

TEST(RunJson, stable_keys_are_there) {
  const auto json = nlohmann::json::parse(run_json(made_up_run()));
  for (const char* key :
       {"schema", "scenario", "seed", "fingerprint", "simulated_s", "wall_s", "events",
        "peak_rss_bytes", "run_file", "warnings", "no_effect", "cluster", "jobs"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"nodes", "gpus", "ledger_gpu_s", "energy_J", "availability"})
    EXPECT_TRUE(json["cluster"].contains(key)) << key;
  for (const char* key :
       {"gpus", "state", "step_s", "steps_kept", "tokens", "mfu", "hfu", "goodput", "ettr",
        "interruptions", "mtbi_s", "checkpoints", "ledger_gpu_s"})
    EXPECT_TRUE(json["jobs"]["llm"].contains(key)) << key;
  EXPECT_EQ(json["jobs"]["llm"]["ledger_gpu_s"].size(), models::accounts);
}

}  // namespace
}  // namespace trainyard::cli
