#include "scenarios/plan_search.hpp"

#include <gmock/gmock.h>

#include <set>

#include "models/training/memory.hpp"
#include "models/training/plan.hpp"
#include "scenarios/plan_layouts.hpp"
#include "scenarios/read.hpp"

namespace trainyard::scenarios {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// A job on HGX H100 servers: `extra` goes into the job.
Scenario scenario(const std::string& model, int gpus, int batch, int sequence,
                  const std::string& extra = "", const std::vector<std::string>& set = {}) {
  const std::string text =
      R"({"cluster": {"servers": )" + std::to_string((gpus + 7) / 8) +
      R"(, "server": "hgx-h100", "fabric": {"kind": "rail-optimized", "routing": "spray",
          "hosts_per_leaf": 8, "leaf_switch": "quantum-2-qm9700",
          "spine_switch": "quantum-2-qm9700"}},
          "jobs": {"llm": {"model": ")" +
      model + R"(", "gpus": )" + std::to_string(gpus) + R"(, "global_batch": )" +
      std::to_string(batch) + R"(, "sequence": )" + std::to_string(sequence) +
      R"(, "software": "megatron-core", "checkpoint": {"enabled": false})" + extra + "}}}";
  const ReadResult read = read_scenario_text(text, "plan.json", set);
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

std::set<std::string> layouts(const Scenario& s) {
  const models::JobSpec& job = s.jobs.at("llm");
  std::set<std::string> out;
  for (const models::JobSpec& one : layouts_of(job, s.cluster.server))
    EXPECT_TRUE(out.insert(layout_text(one.parallel, job.gpus)).second) << "twice";
  return out;
}

TEST(PlanLayouts, of_a_small_job_can_be_listed_by_hand) {
  // 4 GPUs, 4 sequences of 2,048 tokens (too short to cut), 32 layers.
  const std::set<std::string> all = layouts(scenario("llama3-8b", 4, 4, 2048));
  std::set<std::string> one_stage;
  for (const std::string& l : all)
    if (l.find("pp 1 ") != std::string::npos) one_stage.insert(l);
  EXPECT_EQ(
      one_stage,
      (std::set<std::string>{
          "tp 1 pp 1 dp 4 mb 1 zero-1", "tp 1 pp 1 dp 4 mb 1 fsdp", "tp 2 pp 1 dp 2 mb 1 zero-1",
          "tp 2 pp 1 dp 2 mb 1 fsdp", "tp 2 pp 1 dp 2 mb 2 zero-1", "tp 2 pp 1 dp 2 mb 2 fsdp",
          "tp 4 pp 1 dp 1 mb 1 zero-1", "tp 4 pp 1 dp 1 mb 1 fsdp", "tp 4 pp 1 dp 1 mb 2 zero-1",
          "tp 4 pp 1 dp 1 mb 2 fsdp", "tp 4 pp 1 dp 1 mb 4 zero-1", "tp 4 pp 1 dp 1 mb 4 fsdp"}));
  // Two stages of 16 layers each: 2, 4, 8 or 16 chunks; 6 do not divide 32 layers, nor 32 + 2.
  for (const int chunks : {2, 4, 8, 16})
    EXPECT_TRUE(all.contains("tp 2 pp 2x" + std::to_string(chunks) + " dp 1 mb 1 zero-1"))
        << chunks;
  EXPECT_FALSE(all.contains("tp 2 pp 2x3 dp 1 mb 1 zero-1"));
  EXPECT_FALSE(all.contains("tp 1 pp 2 dp 2 mb 4 zero-1"));  // 4 sequences are 2 a replica
}

TEST(PlanLayouts, context_parallelism_needs_long_sequences_and_takes_one_a_micro_batch) {
  const std::set<std::string> all = layouts(scenario("llama3-8b", 8, 8, 8192));
  EXPECT_TRUE(all.contains("tp 1 pp 1 cp 4 dp 2 mb 1 zero-1"));
  EXPECT_FALSE(all.contains("tp 1 pp 1 cp 8 dp 1 mb 1 zero-1"));  // pieces of 1,024
  EXPECT_FALSE(all.contains("tp 1 pp 1 cp 4 dp 2 mb 2 zero-1"));
}

TEST(PlanLayouts, recomputation_is_the_least_that_fits) {
  const Scenario s = scenario("llama3-70b", 64, 64, 8192);
  const models::GpuSpec& gpu = s.cluster.server.gpu;
  std::size_t none = 0, full = 0, too_large = 0;
  for (const models::JobSpec& job : layouts_of(s.jobs.at("llm"), s.cluster.server)) {
    const FittedLayout f = fitted(job, gpu.memory);
    const auto memory = [&](models::Recompute r) {
      models::JobSpec with = job;
      with.parallel.recompute = r;
      const models::MemoryEstimate m =
          models::memory_estimate(models::make_plan(with), with.software, gpu);
      return m.stages[std::size_t(m.fullest_stage())].total();
    };
    if (!f.fits) {
      ++too_large;
      EXPECT_GT(memory(models::Recompute::full), gpu.memory);
    } else if (f.job.parallel.recompute == models::Recompute::full) {
      ++full;
      EXPECT_GT(memory(models::Recompute::none), gpu.memory);
    } else {
      ++none;
      EXPECT_EQ(f.job.parallel.recompute, models::Recompute::none);  // attention is fused
    }
    EXPECT_DOUBLE_EQ(f.memory.value(), memory(f.job.parallel.recompute).value());
  }
  EXPECT_GT(none, 0u);
  EXPECT_GT(full, 0u);
  EXPECT_GT(too_large, 0u);
}

TEST(PlanSearch, no_step_is_below_its_bound) {
  std::size_t plans = 0;
  for (const Scenario& s :
       {scenario("llama3-8b", 64, 128, 8192), scenario("llama3-70b", 64, 64, 8192),
        scenario("gpt3-13b", 32, 96, 2048), scenario("mixtral-8x7b", 32, 32, 4096),
        scenario("llama3-8b", 48, 96, 8192, R"(, "parallel": {"precision": "fp8"})")}) {
    const PlanSearch found = search_plans(s, "llm", {.play_all = true});
    plans += found.plans.size();
    EXPECT_EQ(found.plans.size() + found.too_large, found.candidates);
    EXPECT_EQ(found.played, found.plans.size());
    for (const RankedPlan& p : found.plans) {
      const std::string name =
          s.jobs.at("llm").model.name + " " + layout_text(p.parallel, s.jobs.at("llm").gpus);
      EXPECT_LE(p.bound_s, p.step_s * (1 + 1e-9)) << name;
      EXPECT_GT(p.bound_s, 0) << name;
      EXPECT_LE(p.memory_share, 1) << name;
    }
  }
  EXPECT_GT(plans, 300u);
}

TEST(PlanSearch, what_the_bound_rules_out_is_not_among_the_first) {
  for (const double scale : {1.0, 0.7})
    for (const std::size_t top : {1u, 5u, 20u}) {
      const Scenario s = scenario("llama3-8b", 64, 128, 8192);
      const PlanSearch all =
          search_plans(s, "llm", {.top = top, .play_all = true, .compute_scale = scale});
      const PlanSearch some = search_plans(s, "llm", {.top = top, .compute_scale = scale});
      EXPECT_EQ(some.played + some.ruled_out + some.too_large, some.candidates);
      EXPECT_GT(some.ruled_out, 0u);
      ASSERT_EQ(some.plans.size(), top);
      for (std::size_t i = 0; i < top; ++i) {
        EXPECT_DOUBLE_EQ(some.plans[i].step_s, all.plans[i].step_s);
        EXPECT_EQ(layout_text(some.plans[i].parallel, 64), layout_text(all.plans[i].parallel, 64));
      }
    }
}

TEST(PlanSearch, memory_may_be_left_free) {
  const Scenario s = scenario("llama3-8b", 64, 128, 8192);
  const PlanSearch full = search_plans(s, "llm", {.play_all = true});
  const PlanSearch most = search_plans(s, "llm", {.play_all = true, .fill = 0.6});
  EXPECT_EQ(full.candidates, most.candidates);
  EXPECT_GT(most.too_large, full.too_large);
  for (const RankedPlan& p : most.plans) EXPECT_LE(p.memory_share, 0.6);
}

TEST(PlanSearch, threads_do_not_change_the_result) {
  const Scenario s = scenario("mixtral-8x7b", 32, 32, 4096);
  const PlanSearch one = search_plans(s, "llm", {.top = 10, .threads = 1});
  const PlanSearch three = search_plans(s, "llm", {.top = 10, .threads = 3});
  ASSERT_EQ(one.plans.size(), three.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    EXPECT_DOUBLE_EQ(one.plans[i].step_s, three.plans[i].step_s);
    EXPECT_EQ(layout_text(one.plans[i].parallel, 32), layout_text(three.plans[i].parallel, 32));
  }
  EXPECT_EQ(one.played, three.played);
}

TEST(PlanSearch, says_what_comes_nearest_when_nothing_fits) {
  // 16 bytes a parameter of 405 G, on 8 GPUs of 80 GB.
  const PlanSearch found = search_plans(scenario("llama3-405b", 8, 8, 8192), "llm", {});
  EXPECT_THAT(found.plans, IsEmpty());
  EXPECT_GT(found.candidates, 0u);
  EXPECT_EQ(found.too_large, found.candidates);
  EXPECT_THAT(found.least_memory, HasSubstr("GB of 80.0 GB"));
  EXPECT_THAT(found.least_memory, HasSubstr("recompute full"));
}

TEST(PlanSearch, a_batch_that_nothing_divides_has_no_layout) {
  const Scenario s = scenario("llama3-8b", 24, 7, 8192);  // 7 sequences on multiples of 3
  EXPECT_EQ(search_plans(s, "llm", {}).candidates, 0u);
  const Problems why = why_no_layout(s.jobs.at("llm"), s.cluster.server);
  ASSERT_EQ(why.size(), 1u);
  EXPECT_EQ(why[0].path, "global_batch");
}

// ---- Measured point ---------------------------------------------------------------------------

const char* own_layout =
    R"(, "parallel": {"tensor": 4, "pipeline": 2, "sharding": "zero-1", "recompute": "full"})";

TEST(MeasuredPoint, the_factor_makes_the_measured_layout_take_the_measured_time) {
  Scenario s = scenario("llama3-70b", 64, 64, 8192, own_layout);
  models::JobSpec& job = s.jobs.at("llm");
  job.measured_step = std::chrono::seconds(10000);
  EXPECT_EQ(check_measured(s, "llm").size(), 1u);  // no scaling of compute does that
  job.measured_step = std::chrono::seconds(1);
  const double predicted_s = [&] {
    job.measured_step = std::chrono::seconds(20);
    return measured_point(s, "llm").predicted_s;
  }();
  job.measured_step = seconds(predicted_s);
  EXPECT_THAT(check_measured(s, "llm"), IsEmpty());
  EXPECT_NEAR(measured_point(s, "llm").compute_scale, 1, 1e-6);

  job.measured_step = seconds(1.2 * predicted_s);
  const MeasuredPoint m = measured_point(s, "llm");
  EXPECT_NEAR(m.predicted_s, predicted_s, 1e-9);
  EXPECT_NEAR(m.measured_s, 1.2 * predicted_s, 1e-8);
  EXPECT_EQ(m.gpus, 64);
  EXPECT_THAT(m.layout, HasSubstr("tp 4 pp 2 dp 8 mb 1 zero-1 recompute full"));
  // Communication is not scaled, so compute has to be slower than by 1.2.
  EXPECT_LT(m.compute_scale, 1 / 1.2);
  EXPECT_GT(m.compute_scale, 0.7);

  // The layout comes out of the search with the measured time.
  const PlanSearch found =
      search_plans(s, "llm", {.play_all = true, .compute_scale = m.compute_scale});
  bool is_there = false;
  for (const RankedPlan& p : found.plans)
    if (layout_text(p.parallel, 64) == m.layout) {
      is_there = true;
      EXPECT_NEAR(p.step_s, m.measured_s, 1e-6 * m.measured_s);
    }
  EXPECT_TRUE(is_there);
}

// ---- Sizing -----------------------------------------------------------------------------------

TEST(Sizing, gpus_for_a_deadline_on_the_back_of_an_envelope) {
  // 7 G parameters, 100 G tokens: 6 . 7e9 . 1e11 = 4.2e21 FLOP. In 30 days of 86,400 s:
  // 1.620e15 FLOP/s. At 100 TFLOP/s achieved (a tenth of a peak of 1e15): 16.2 GPUs, so 17.
  const Sizing s = gpus_for(7e9, 1e11, 1e15, 0.1, 30 * 86400.0);
  EXPECT_DOUBLE_EQ(s.flops, 4.2e21);
  EXPECT_NEAR(s.flops_per_s(), 1.620e15, 0.001e15);
  EXPECT_NEAR(s.gpus, 16.20, 0.01);
  EXPECT_EQ(s.whole_gpus(), 17);
}

TEST(Sizing, whole_gpus_both_sides_of_a_whole_number) {
  Sizing s;
  for (const auto& [gpus, whole] :
       {std::pair{16.0, 16.0}, {16.000000000000004, 16.0}, {16.001, 17.0}, {0.2, 1.0}}) {
    s.gpus = gpus;
    EXPECT_EQ(s.whole_gpus(), whole) << gpus;
  }
}

TEST(Sizing, days_and_tokens_of_a_number_of_gpus_are_the_same_law) {
  // Llama 3 405B: 6 . 405e9 . 15.6e12 = 3.79e25 FLOP (arXiv 2407.21783: 3.8e25); 16,384 GPUs at
  // 400 TFLOP/s: 5.78e6 s = 67 days.
  const Sizing time = time_for(405e9, 15.6e12, 989e12, 400.0 / 989, 16384);
  EXPECT_NEAR(time.flops, 3.79e25, 0.01e25);
  EXPECT_NEAR(time.seconds / 86400, 66.9, 0.2);
  const Sizing gpus = gpus_for(405e9, 15.6e12, 989e12, 400.0 / 989, time.seconds);
  EXPECT_NEAR(gpus.gpus, 16384, 1e-6);
  EXPECT_EQ(gpus.whole_gpus(), 16384);
  const Sizing tokens = tokens_for(405e9, 989e12, 400.0 / 989, 16384, time.seconds);
  EXPECT_NEAR(tokens.tokens, 15.6e12, 1);
  EXPECT_NEAR(tokens.seconds, time.seconds, 1e-3);
}

}  // namespace
}  // namespace trainyard::scenarios
