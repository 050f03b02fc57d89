#include "scenarios/validate_reliability.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "models/training/checkpoints.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/reliability_run.hpp"

namespace trainyard::scenarios {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(ValidateReliability, reads_the_number_of_a_cell_that_has_words_around_it) {
  EXPECT_EQ(first_number("about 90"), 90);
  EXPECT_EQ(first_number("99.4 / 99.3"), 99.4);
  EXPECT_EQ(first_number("17 in 55 days"), 17);
  EXPECT_EQ(first_number("0.9"), 0.9);
  EXPECT_EQ(first_number("not published"), std::nullopt);
  EXPECT_EQ(with_interval(71.438, 0.26, 1), "71.4 ± 0.3");
}

TEST(ValidateReliability, mean_and_interval_by_hand) {
  const MeanWithInterval m = mean_of({1, 2, 3});
  EXPECT_DOUBLE_EQ(m.mean, 2);
  EXPECT_NEAR(m.half_width, 2.5758 / std::sqrt(3.0), 1e-9);  // standard deviation 1
}

TEST(ChiSquare, by_hand) {
  // (60 - 50)^2 / 50 twice: 4, one degree of freedom.
  EXPECT_NEAR(chi_square_p({60, 40}, {1, 1}), 0.0455, 5e-5);
  EXPECT_NEAR(chi_square_p({50, 50}, {7, 7}), 1.0, 1e-12);
  // 2 and 3 are expected of the last two: they count as one class of 5, found 15 times.
  // 100 / 5 + 36 / 45 + 16 / 50: 21.12, two degrees of freedom: e^-10.56.
  EXPECT_NEAR(chi_square_p({39, 46, 1, 14}, {45, 50, 2, 3}), std::exp(-10.56), 1e-9);
}

/// What fails in the published time on the published number of servers, by class: lives alone.
std::vector<double> sampled(const models::FailureInputs& failures,
                            const std::vector<std::string>& classes, std::uint64_t seed) {
  sim::Engine engine{sim::Seed{seed}};
  sim::NullRecorder recorder;
  models::FailureClocks clocks(engine, recorder, failures,
                               {.servers = 2048, .gpus_per_server = 8, .nics_per_server = 8});
  std::map<std::string, double> counts;
  clocks.on_failure([&](const models::Failure& f) { ++counts[f.cls->name]; });
  engine.run_until(start_of_run + 54 * 24h);
  std::vector<double> out;
  for (const std::string& name : classes) out.push_back(counts[name]);
  return out;
}

// If runs follow the profile, p is uniform: Kolmogorov's distance of 200 values is below
// 1.63 / sqrt(200) = 0.115 with 99 %.
TEST(ChiSquare, categories_of_a_54_day_run_follow_the_table_over_200_seeds) {
  const auto failures = failures_of("llama3-pretraining");
  ASSERT_TRUE(failures);
  std::vector<std::string> classes;
  std::vector<double> published, wrong;
  for (const auto& [name, cls] : failures->classes) {
    if (cls.effect == models::Effect::maintenance) continue;
    classes.push_back(name);
    published.push_back(*cls.lifetime.count);
    wrong.push_back(name == "hbm3" ? 144 : *cls.lifetime.count);
  }
  std::vector<double> p;
  int rejected = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const std::vector<double> counts = sampled(*failures, classes, seed);
    p.push_back(chi_square_p(counts, published));
    rejected += chi_square_p(counts, wrong) < 0.05;
  }
  std::sort(p.begin(), p.end());
  double distance = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    distance = std::max(
        {distance, std::abs(p[i] - double(i) / 200), std::abs(p[i] - double(i + 1) / 200)});
  EXPECT_LT(distance, 0.115) << "seeds 1 to 200";
  EXPECT_GT(rejected, 180) << "twice the HBM3 failures would have been seen";
}

TEST(FailureProfiles, hold_the_published_counts) {
  const auto per_1000_server_days = [](const char* profile, bool planned) {
    double per_s = 0;
    const auto failures = failures_of(profile);  // lives as long as the loop
    for (const auto& [name, cls] : failures->classes) {
      const bool is_per_gpu =
          cls.component == models::Component::gpu || cls.component == models::Component::nic;
      if (planned || cls.effect != models::Effect::maintenance)
        per_s += (is_per_gpu ? 8 : 1) / cls.lifetime.mean_s();
    }
    return per_s * 86'400 * 1000;
  };
  EXPECT_NEAR(per_1000_server_days("llama3-pretraining", false), 419 / 54.0 / 2.048, 1e-6);
  EXPECT_NEAR(per_1000_server_days("llama3-pretraining", true), 466 / 54.0 / 2.048, 1e-6);
  EXPECT_NEAR(per_1000_server_days("rsc-1", true), 6.5, 1e-9);
  EXPECT_NEAR(per_1000_server_days("rsc-2", true), 2.34, 1e-9);
  EXPECT_NEAR(per_1000_server_days("ft-hsdp", true), 2.3, 0.002);
  EXPECT_NEAR(per_1000_server_days("infinitehbd", true), 584 / 400.0 / 348 * 1000, 1e-6);
  EXPECT_NEAR(per_1000_server_days("acme", true), 1159 / 588.0 / 180 * 1000, 1e-6);
  EXPECT_FALSE(failures_of("no-such-profile"));
}

TEST(ReliabilityRun, the_hypothetical_job_of_rsc_1_is_where_renewal_theory_puts_it) {
  ReliabilityRun run;
  run.gpus = 16384;
  run.failures = server_failures(6.5);
  run.restart = {.replace = 0s, .start_up = 5min, .load = false};
  for (const double interval_min : {60.0, 5.0}) {
    run.checkpoint = saves_every(seconds(60 * interval_min), 0s);
    const ReliabilityEstimate e = estimate(run, 8);
    const double exact =
        models::expected_efficiency(60 * interval_min, 0, 300, 86'400 / 2.048 / 6.5);
    SCOPED_TRACE(testing::Message()
                 << "seeds 1 to 8, " << interval_min << " min: " << e.effective.mean << " ± "
                 << e.effective.half_width << ", exact " << exact);
    // The first start and the work under way at the end are not part of a cycle: at most an hour of
    // 720.
    EXPECT_NEAR(e.effective.mean, exact, e.effective.half_width + 0.0015);
    EXPECT_LT(e.effective.half_width, 0.02);
  }
}

TEST(ReliabilityRun, servers_wait_for_nobody_unless_spares_are_set) {
  ReliabilityRun run;
  run.gpus = 1024;
  run.failures = server_failures(50);
  run.checkpoint = saves_every(10min, 0s);
  run.restart = {.replace = 0s, .start_up = 1min, .load = false};
  const double with = run_once(run, 1).effective;
  run.spares = 0;
  EXPECT_LT(run_once(run, 1).effective, with - 0.3);  // every repair is waited for
}

struct Validated {
  ValidationReport report;
  std::vector<Diagnostic> mistakes;
};

Validated validated(const std::string& text) {
  Validated out;
  std::istringstream in(text);
  const PublishedTable table = read_published_table(in, "t.csv", out.mistakes);
  if (const TableKind* kind = kind_of(table, out.mistakes))
    out.report = validate(table, *kind, out.mistakes);
  EXPECT_TRUE(out.mistakes.empty()) << to_text(out.mistakes);
  return out;
}

TEST(ValidateReliability, effective_time_as_a_bound_as_a_figure_and_not_at_all) {
  const auto v = validated(
      "case,gpus,metric,value,kind,node_fail_per_1000_node_days,ckpt_interval_min,restart_min,ckpt_"
      "stall_s\n"
      "small,1024,E[ETTR],0.95,model,6.5,30,5,0\n"
      "12k-GPU run target,12000,E[ETTR],0.9,model,,,,\n"
      "PaLM-era runs,,goodput,0.85,measured,,,,\n");
  EXPECT_EQ(v.report.kind, "effective-time");
  ASSERT_EQ(v.report.predictions.size(), 2u);
  const RowPrediction& small = v.report.predictions[0].prediction;
  EXPECT_NEAR(small.predicted,
              100 * models::expected_efficiency(1800, 0, 300, 86'400 / 0.128 / 6.5), 0.4);
  EXPECT_EQ(small.groups[1].second, "by the printed figure");
  EXPECT_EQ(v.report.predictions[1].prediction.groups[1].second, "a bound, met");
  ASSERT_EQ(v.report.skipped.size(), 1u);
}

TEST(ValidateReliability, start_up_grows_with_the_job) {
  const auto v = validated(
      "stage,gpus,value,unit,conditions\n"
      "\"job start to first measured step (program init)\",8192,291.628,s,\"GPT-3 175B, "
      "eos-dfw_n1024, 3.1\"\n"
      "detect + diagnose,12288,10,min,less than\n");
  ASSERT_EQ(v.report.predictions.size(), 1u);
  EXPECT_NEAR(v.report.predictions[0].prediction.predicted, 240 + 18 * 8.192, 1e-9);
  EXPECT_EQ(v.report.predictions[0].prediction.uncertainty, Uncertainty::calibrated);
  EXPECT_EQ(v.report.skipped.size(), 1u);
}

TEST(ValidateReliability, a_checkpoint_is_14_bytes_a_parameter) {
  const auto v = validated(
      "model,params_b,checkpoint_gb,gpus,quantity,value,unit,method\n"
      "Llama-3.1-8B,8.03,105,,checkpoint size,105,GB,NeMo\n"
      "Llama-3-8B,8,,512,DCP synchronous -> asynchronous stall,50 -> <0.5,s,\n"
      "nobody,1,1,,checkpoint size,1,GB,\n");
  ASSERT_EQ(v.report.predictions.size(), 2u);
  EXPECT_NEAR(v.report.predictions[0].prediction.predicted, 14 * 8.03, 0.05);
  EXPECT_THAT(v.report.predictions[0].prediction.method, HasSubstr("2^30"));
  EXPECT_NEAR(v.report.predictions[1].prediction.predicted, 14 * 8.03 / 5120, 1e-4);
  EXPECT_EQ(v.report.skipped.size(), 1u);
}

TEST(Catalog, a_figure_of_several_fields_is_printed_in_one_cell) {
  const Catalog& catalog = Catalog::standard();
  const std::string table = catalog.table(*catalog.find("failures", "llama3-pretraining"));
  EXPECT_THAT(table, HasSubstr("count 148, units 16384, duration 54 d"));
  EXPECT_THAT(table, HasSubstr("law log-normal, value 12 h, sigma 1"));
}

}  // namespace
}  // namespace trainyard::scenarios
