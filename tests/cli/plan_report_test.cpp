#include "cli/plan_report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.hpp"
#include "tests/cli/golden.hpp"

namespace trainyard::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

scenarios::RankedPlan ranked(models::ParallelSpec parallel, double step_s, double memory_share) {
  return {.parallel = std::move(parallel),
          .step_s = step_s,
          .tokens_per_s = 8388608 / step_s,
          .mfu = 4.0 / step_s,
          .memory = Bytes(80e9 * memory_share),
          .memory_share = memory_share,
          .bound_s = 0.9 * step_s};
}

/// Everything that a report can hold.
PlanReport report() {
  PlanReport r;
  r.model = "a mixture of experts";
  r.parameters = 46.7e9;
  r.active_parameters = 12.9e9;
  r.gpu = "H100 SXM";
  r.peak_flops = 989e12;
  r.precision = "bf16";
  r.note = "64 of the 72 GPUs of a server are used";
  r.gpus = 1024;
  r.global_batch = 1024;
  r.sequence = 8192;
  r.measured = scenarios::MeasuredPoint{.layout = "tp 2 pp 1 ep 8 dp 32 mb 1 zero-1",
                                        .gpus = 64,
                                        .measured_s = 12.4,
                                        .predicted_s = 11.78,
                                        .compute_scale = 0.9412};
  models::ParallelSpec first;
  first.tensor = 2;
  first.pipeline = 4;
  first.schedule = models::Schedule::interleaved;
  first.chunks = 8;
  first.expert = 8;
  first.expert_tensor = 1;
  models::ParallelSpec second;
  second.context = 2;
  second.sharding = models::Sharding::fsdp;
  second.recompute = models::Recompute::full;
  second.micro_batch = 4;
  scenarios::PlanSearch search;
  search.plans = {ranked(first, 8.128, 0.931), ranked(second, 12.5, 0.618)};
  search.candidates = 1863;
  search.too_large = 243;
  search.played = 272;
  search.ruled_out = 1348;
  r.search = search;
  r.sizing = scenarios::time_for(12.9e9, 2e12, 989e12, search.plans[0].mfu, 1024);
  r.mfu_is_predicted = true;
  r.servers = 16;
  r.gpus_per_server = 64;
  r.power_W = 1.306e6;
  r.price_usd = 39.7e6;
  return r;
}

TEST(PlanReport, text) {
  const std::string text = plan_text(report(), Terminal{});
  expect_golden("plan.txt", text);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(columns_of(line), 100u) << line;  // of a table with all columns; the rest has 80
}

TEST(PlanReport, a_dense_model_without_extras_needs_no_columns_for_them) {
  PlanReport r = report();
  models::ParallelSpec plain;
  plain.tensor = 8;
  r.search->plans = {ranked(plain, 8, 0.5)};
  r.measured.reset();
  r.sizing.reset();
  const std::string text = plan_text(r, Terminal{});
  for (const char* absent : {"CP  ", "  EP", "   v", "recompute", "sharding", "90 %", "Sizing"})
    EXPECT_THAT(text, Not(HasSubstr(absent)));
  EXPECT_THAT(text, HasSubstr("zero-1"));
}

TEST(PlanReport, says_why_there_is_no_plan) {
  PlanReport r = report();
  r.search->plans.clear();
  r.search->least_memory = "tp 8 pp 1 dp 1 mb 1 fsdp recompute full: 812.0 GB of 80.0 GB";
  EXPECT_THAT(plan_text(r, Terminal{}), HasSubstr("no layout fits in memory; nearest: tp 8 pp 1"));
  r.search->candidates = 0;
  r.no_layout = {{"global_batch", "7 is not a multiple of 24", "24"}};
  EXPECT_THAT(plan_text(r, Terminal{}), HasSubstr("global_batch: 7 is not a multiple of 24; 24"));
}

TEST(PlanReport, json_has_the_stable_keys) {
  const auto json = nlohmann::json::parse(plan_json(report()));
  for (const char* key : {"schema", "model", "parameters", "active_parameters", "gpu", "peak_flops",
                          "precision", "measured", "sizing", "envelope", "gpus", "global_batch",
                          "sequence", "candidates", "too_large", "played", "ruled_out", "plans"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["plans"][0]["parallel"]["expert_tensor"], 1);
  EXPECT_EQ(json["plans"][0]["layout"], "tp 2 pp 4x8 ep 8 dp 128 mb 1 zero-1");
  EXPECT_DOUBLE_EQ(json["measured"]["compute_scale"], 0.9412);
  // 6 . 12.9e9 . 2e12 FLOP
  EXPECT_DOUBLE_EQ(json["sizing"]["flops"], 1.548e23);
}

// ---- The command ------------------------------------------------------------------------------

std::string refusal(const Arguments& arguments) {
  try {
    plan_command(arguments);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(PlanCommand, refuses_what_makes_no_sense) {
  EXPECT_THAT(refusal({"llama3-8b"}), HasSubstr("give --gpus"));
  EXPECT_THAT(refusal({"llama3-8b", "--gpus", "0"}), HasSubstr("above 0"));
  EXPECT_THAT(refusal({"llama3-8b", "--gpus", "8.5"}), HasSubstr("whole number"));
  EXPECT_THAT(refusal({"llama3-8b", "--gpus", "8x"}), HasSubstr("above 0, found '8x'"));
  EXPECT_THAT(refusal({"llama3-8b", "--gpus", "8", "--measured", "1 s"}),
              HasSubstr("needs a scenario"));
  EXPECT_THAT(refusal({"llama3-8b", "--tokens", "1e12", "--days", "30", "--mfu", "1.5"}),
              HasSubstr("at most 1"));
  EXPECT_THAT(refusal({"a.json", "--server", "hgx-h100"}), HasSubstr("use --set"));
}

}  // namespace
}  // namespace trainyard::cli
