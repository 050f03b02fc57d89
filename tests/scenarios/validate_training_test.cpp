#include "scenarios/validate_training.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <sstream>

#include "scenarios/mechanism_names.hpp"
#include "scenarios/validate_mlperf.hpp"
#include "scenarios/validate_statistics.hpp"

namespace trainyard::scenarios {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

PublishedTable table_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<Diagnostic> mistakes;
  PublishedTable table = read_published_table(in, "t.csv", mistakes);
  EXPECT_THAT(mistakes, IsEmpty());
  return table;
}

ValidationReport validated(const PublishedTable& table, const ValidationSetup& setup = {}) {
  std::vector<Diagnostic> mistakes;
  const TableKind* kind = kind_of(table, mistakes);
  EXPECT_NE(kind, nullptr);
  ValidationReport report;
  if (kind) report = validate(table, *kind, mistakes, setup);
  for (const Diagnostic& mistake : mistakes) ADD_FAILURE() << mistake.text();
  return report;
}

// Korthikanti et al. 2022, table 5, and a weak-scaling pair of the same shape.
const std::string runs =
    "id,source,model,layers,hidden,heads,ffn,vocab,seq,global_batch_seqs,micro_batch,tp,pp,vp,"
    "schedule,sequence_parallel,recompute,precision,gpu,gpus,gpus_per_node,nic_gbps_per_gpu,"
    "iter_time_s,iter_time_s_derived\n"
    "a,Korthikanti et al.,GPT-175B,96,12288,96,49152,51200,2048,64,1,8,8,3,1F1B interleaved,0,full,"
    "fp16,A100-80GB,64,8,200,18.13,\n"
    "b,Korthikanti et al.,GPT-175B,96,12288,96,49152,51200,2048,64,1,8,8,3,1F1B interleaved,1,"
    "selective,fp16,A100-80GB,64,8,200,13.75,\n"
    "c,Korthikanti et al.,GPT-175B,96,12288,96,49152,51200,2048,128,1,8,8,3,1F1B interleaved,1,"
    "selective,fp16,A100-80GB,128,8,200,,14\n"
    "d,Korthikanti et al.,GPT-175B,96,12288,96,49152,51200,2048,64,1,8,8,3,1F1B interleaved,1,"
    "selective,fp16,A100-80GB,64,8,200,,\n";

TEST(ValidateTraining, predicts_published_steps) {
  const ValidationReport report = validated(table_of(runs));
  EXPECT_EQ(report.kind, "training");
  ASSERT_THAT(report.predictions, SizeIs(3));
  EXPECT_LT(std::abs(report.predictions[0].error_pct), 10);
  EXPECT_LT(std::abs(report.predictions[1].error_pct), 10);
  ASSERT_THAT(report.skipped, SizeIs(1));
  EXPECT_EQ(report.skipped[0].id, "d");
  EXPECT_EQ(report.predictions[2].prediction.groups[1].second, "derived");
  EXPECT_EQ(report.predictions[0].prediction.groups[1].second, "reported");
}

TEST(ValidateTraining, turns_mechanisms_off) {
  const PublishedTable table = table_of(runs);
  const double whole = validated(table).predictions[0].prediction.predicted;
  ValidationSetup setup;
  setup.mechanisms.bubble = false;
  EXPECT_LT(validated(table, setup).predictions[0].prediction.predicted, whole);
}

TEST(ValidateTraining, knows_every_mechanism_once) {
  std::set<std::string_view> names;
  for (const MechanismName& mechanism : mechanism_names) names.insert(mechanism.name);
  EXPECT_EQ(names.size(), mechanism_names.size());
}

TEST(ValidateTraining, size_classes_include_their_bound) {
  EXPECT_EQ(size_class_of(8), "<= 8");
  EXPECT_EQ(size_class_of(9), "<= 64");
  EXPECT_EQ(size_class_of(4097), "> 4096");
}

// Twice the GPUs and the batch: efficiency is the step of b over that of c.
TEST(ValidateScaling, is_the_ratio_of_two_predictions) {
  const PublishedTable training = table_of(runs);
  const ValidationReport steps = validated(training);
  const double b = steps.predictions[1].prediction.predicted;
  const double c = steps.predictions[2].prediction.predicted;
  ValidationSetup setup;
  setup.other = {&training};
  const ValidationReport report = validated(
      table_of("mode,row_id,base_row_id,efficiency_pct\nweak,c,b,98\nweak,b,b,100\nweak,e,b,90\n"
               "weak,d,b,90\n"),
      setup);
  EXPECT_EQ(report.kind, "scaling");
  ASSERT_THAT(report.predictions, SizeIs(1));
  EXPECT_NEAR(report.predictions[0].prediction.predicted, 100 * b / c, 1e-9);
  EXPECT_NEAR(report.predictions[0].error_pct, 100 * b / c - 98, 1e-9);  // points
  ASSERT_THAT(report.skipped, SizeIs(3));
  EXPECT_THAT(report.skipped[0].reason, HasSubstr("by definition"));
  EXPECT_THAT(report.skipped[1].reason, HasSubstr("no table at hand"));
  EXPECT_THAT(report.skipped[2].reason, HasSubstr("no time"));
}

TEST(ValidateMlperf, takes_the_layout_of_the_round) {
  EXPECT_EQ(submitted_layout("GPT-3 175B", 3.1, "H100-80GB")->micro_batch, 1);
  EXPECT_EQ(submitted_layout("GPT-3 175B", 4.1, "H100-80GB")->micro_batch, 2);
  EXPECT_FALSE(submitted_layout("GPT-3 175B", 3.0, "Gaudi2"));
  const ValidationReport report = validated(table_of(
      "benchmark,version,submitter,gpu,gpus,global_batch_seqs,seq,step_median_s,step_p95_s\n"
      "GPT-3 175B,3.0,NVIDIA,H100-80GB,512,2048,2048,12.0769,12.11\n"
      "GPT-3 175B,3.0,Intel,Gaudi2,256,1536,2048,10,\n"
      "GPT-3 175B,3.0,NVIDIA,H100-80GB,511,2048,2048,12,12\n"
      "GPT-3 175B,3.0,NVIDIA,H100-80GB,,2048,2048,12,12\n"
      "GPT-3 175B,4.0,NVIDIA,H100-80GB,11616,2904,2048,,\n"));
  ASSERT_THAT(report.predictions, SizeIs(1));
  EXPECT_LT(std::abs(report.predictions[0].error_pct), 20);
  EXPECT_THAT(report.skipped, SizeIs(4));
}

// Korthikanti et al. 2022, figures 1 and 7.
TEST(ValidateMemory, matches_published_activations) {
  const ValidationReport report = validated(
      table_of("model,quantity,mode,gib_per_gpu,percent_of_none\n"
               "GPT-22B,activations,\"no recompute, no sequence parallel\",59.25,\n"
               "GPT-530B,activations relative to none,sequence parallel + selective,,20.27\n"
               "GPT-530B,activations relative to none,none,,100\n"
               "GPT-9B,activations,none,1,\n"
               "Llama-3.1-8B,peak reserved memory,\"8 GPUs FSDP, local batch 2, eager\",82.4,\n"));
  EXPECT_EQ(report.kind, "memory");
  ASSERT_THAT(report.predictions, SizeIs(3));
  EXPECT_LT(std::abs(report.predictions[0].error_pct), 2.5);
  EXPECT_LT(std::abs(report.predictions[1].error_pct), 1);  // points
  // Reserved memory is more than what is handed out.
  EXPECT_LT(report.predictions[2].error_pct, 0);
  EXPECT_THAT(report.skipped, SizeIs(2));
}

ValidatedRow judged(double published, double predicted, const std::string& inputs,
                    const std::string& question, double ideal = 1) {
  ValidatedRow row;
  row.prediction.published = published;
  row.prediction.predicted = predicted;
  row.prediction.comparable = Comparable{
      .inputs = inputs, .question = question, .baseline = "all", .ideal = ideal, .part = "dense"};
  return row;
}

// Two runs of the same inputs take 1 and 4: their mean is 2, so the best guess errs by +100 and
// -50 %.
TEST(Comparisons, the_floor_is_the_scatter_of_identical_inputs) {
  ValidationReport report;
  report.predictions = {judged(1, 1, "x", "q"), judged(4, 1, "x", "q"), judged(3, 1, "y", "q")};
  add_comparisons(report);
  ASSERT_THAT(report.references, SizeIs(2));
  EXPECT_EQ(report.references[0].error.used, 2u);
  EXPECT_NEAR(report.references[0].error.mean_abs_pct, 75, 1e-9);
  EXPECT_NEAR(report.references[0].error.mean_signed_pct, 25, 1e-9);
}

// Efficiencies 1/2 and 1/8: their mean 1/4 predicts 4 for both.
TEST(Comparisons, the_baseline_is_one_efficiency) {
  ValidationReport report;
  report.predictions = {judged(2, 1, "x", "q"), judged(8, 1, "y", "q")};
  add_comparisons(report);
  EXPECT_NEAR(report.references[1].error.mean_abs_pct, 75, 1e-9);
}

TEST(Comparisons, pairs_are_judged_inside_one_question_and_beyond_5_percent) {
  ValidationReport report;
  report.predictions = {judged(100, 10, "a", "q"),  judged(106, 9, "b", "q"),   // wrong
                        judged(104, 12, "c", "q"),                              // too near to both
                        judged(200, 20, "d", "q"),  judged(300, 20, "d", "q"),  // identical inputs
                        judged(1, 99, "e", "other")};
  add_comparisons(report);
  ASSERT_THAT(report.orders, SizeIs(1));
  EXPECT_EQ(report.orders[0].identical, 1u);
  EXPECT_EQ(report.orders[0].pairs, 7u);  // a-b and {a, b, c} x {200, 300}
  EXPECT_EQ(report.orders[0].right, 6u);
}

// One question of three layouts in reverse order; one of two layouts is left out.
TEST(Comparisons, ranks_inside_questions_need_three_layouts) {
  ValidationReport report;
  report.predictions = {judged(1, 3, "a", "q"), judged(2, 2, "b", "q"), judged(3, 1, "c", "q"),
                        judged(9, 9, "c", "q"), judged(1, 1, "d", "r"), judged(2, 2, "e", "r")};
  add_comparisons(report);
  ASSERT_THAT(report.ranks, SizeIs(2));
  EXPECT_EQ(report.ranks[1].rows, 3u);
  EXPECT_DOUBLE_EQ(report.ranks[1].value, -1);
}

TEST(Comparisons, ranks_share_ties) {
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {10, 20, 300}), 1);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2, 3}, {3, 2, 1}), -1);
  // Ranks 0, 1, 2 against 0, 1.5, 1.5: 1.5 / sqrt(2 . 1.5).
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {1, 5, 5}), 1.5 / std::sqrt(3.0), 1e-12);
  EXPECT_DOUBLE_EQ(rank_correlation({1, 2}, {4, 4}), 0);
  EXPECT_DOUBLE_EQ(rank_correlation({1}, {4}), 0);
}

}  // namespace
}  // namespace trainyard::scenarios
