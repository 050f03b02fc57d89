#include "scenarios/validate_storage.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <sstream>

namespace trainyard::scenarios {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ValidationReport validated(std::istream& in) {
  std::vector<Diagnostic> mistakes;
  const PublishedTable table = read_published_table(in, "storage.csv", mistakes);
  const TableKind* kind = kind_of(table, mistakes);
  EXPECT_THAT(to_text(mistakes), IsEmpty());
  if (kind == nullptr) return {};
  EXPECT_EQ(kind->name, "storage");
  ValidationReport report = validate(table, *kind, mistakes);
  EXPECT_THAT(to_text(mistakes), IsEmpty());
  return report;
}

ValidationReport validated(const std::string& rows) {
  std::istringstream in(
      "system,workload,accelerator_emulated,accelerators,samples_per_s,"
      "implied_accelerator_utilisation\n" +
      rows);
  return validated(in);
}

TEST(ValidateStorage, the_name_of_a_system_is_what_its_rows_share) {
  EXPECT_EQ(system_of("Hammerspace_resnet50_5Client_A100"), "Hammerspace_5Client");
  EXPECT_EQ(system_of("Hammerspace_unet3d_5Client_H100"), "Hammerspace_5Client");
  EXPECT_EQ(system_of("Storage-7-Nodes-10-Hosts-unet3d-a100"), "Storage-7-Nodes-10-Hosts");
  EXPECT_EQ(system_of("F8000X_Nclient1"), "F8000X_Nclient1");
}

double wait_of(const char* workload, double accelerators) {
  return lock_step_wait(*storage_workload(workload, "h100"), accelerators);
}

// 1/9 of the compute time at a threshold of 90 %, 3/7 at 70 %; the slowest of e^2 - 1: 2.
TEST(ValidateStorage, lock_step_waits_grow_with_the_slowest_of_n) {
  EXPECT_NEAR(wait_of("unet3d", std::exp(2.0) - 1), 2.0 / 9, 1e-12);
  EXPECT_NEAR(wait_of("resnet50", std::exp(8.0) - 1), 4.0 / 9, 1e-12);
  EXPECT_NEAR(wait_of("cosmoflow", std::exp(2.0) - 1), 6.0 / 7, 1e-12);
}

// 10 H100 need 7 · 146,600,628 B / 0.323 s each: 31.77 GB/s.
TEST(ValidateStorage, the_loader_waits_for_what_the_store_lacks) {
  const StorageWorkload unet3d = *storage_workload("unet3d", "h100");
  const double need = 10 * 7 * unet3d.record_bytes / unet3d.compute_s;
  EXPECT_EQ(loader_utilisation(unet3d, 10, BytesPerSecond(1.001 * need)), 1);
  EXPECT_NEAR(loader_utilisation(unet3d, 10, BytesPerSecond(0.8 * need)), 0.8, 1e-6);
  EXPECT_NEAR(loader_utilisation(unet3d, 1000, BytesPerSecond(0.8 * need)), 0.008, 1e-6);
}

TEST(ValidateStorage, one_row_sets_the_limit_and_others_follow) {
  const ValidationReport report = validated(
      "a,cosmoflow,h100,1,,0.8\n"
      "a,cosmoflow,h100,20,,0.7\n"
      "a,unet3d,h100,20,,0.9\n"
      "a,unet3d,a100,40,,0.9\n"
      "b,unet3d,a100,40,,0.9\n"
      "a,dlrm,a100,40,,0.9\n"
      "c,,,,,\n");
  ASSERT_THAT(report.predictions, SizeIs(3));
  const double w = 0.25 / wait_of("cosmoflow", 1);
  EXPECT_DOUBLE_EQ(report.predictions[0].prediction.predicted,
                   100 / (1 + w * wait_of("cosmoflow", 20)));
  EXPECT_DOUBLE_EQ(report.predictions[1].prediction.predicted,
                   100 / (1 + w * wait_of("unet3d", 20)));
  // From the row of its workload, not from the first.
  EXPECT_DOUBLE_EQ(report.predictions[2].prediction.predicted,
                   100 / (1 + (1 / 0.9 - 1) * std::sqrt(std::log(41.0) / std::log(21.0))));
  // 40 A100 need 1.0157 times what 20 H100 do, who were given 0.9 of that: 88.6 %.
  EXPECT_EQ(report.predictions[2].prediction.method,
            "636 ms + 78 ms wait, limit of line 4; loader at its bandwidth 88.6, threshold 90.0");
  EXPECT_NEAR(report.predictions[0].error_pct, report.predictions[0].prediction.predicted - 70,
              1e-9);  // points
  ASSERT_THAT(report.skipped, SizeIs(4));
  EXPECT_EQ(report.skipped[0].reason, "sets the limit of its system");
  EXPECT_THAT(report.skipped[1].reason, HasSubstr("the only row of its system"));
  EXPECT_EQ(report.skipped[2].reason, "workload \"dlrm\" on \"a100\" is not known");
  EXPECT_EQ(report.skipped[3].reason, "no result of a benchmark with accelerators");
}

// 20 · 400 samples in 0.32 s are 25,000 a second: 0.224 / 0.32 = 70 %.
TEST(ValidateStorage, utilisation_follows_from_samples_where_it_is_not_stated) {
  const ValidationReport report = validated(
      "a,resnet50,h100,20,25000,\n"
      "a,resnet50,h100,20,25000,\n");
  ASSERT_THAT(report.predictions, SizeIs(1));
  EXPECT_DOUBLE_EQ(report.predictions[0].prediction.published, 70);
  EXPECT_NEAR(report.predictions[0].error_pct, 0, 1e-9);
}

class PublishedStorage : public testing::Test {
 protected:
  static std::ifstream file(const std::string& name) {
    return std::ifstream(std::string(TRAINYARD_SOURCE_DIR) + "/validation/" + name);
  }
};

// Every row that states both, and the file of workloads where it has the pair.
TEST_F(PublishedStorage, compute_times_are_those_of_the_results_and_of_the_workload_files) {
  std::vector<Diagnostic> mistakes;
  std::ifstream results = file("storage.csv"), facts = file("dlio_workloads.csv");
  const PublishedTable table = read_published_table(results, "storage.csv", mistakes);
  int rows = 0;
  for (const TableRow& row : table.rows) {
    const auto w =
        storage_workload(table.text(row, "workload"), table.text(row, "accelerator_emulated"));
    if (!w) continue;
    ++rows;
    const double utilisation = *table.number(row, "implied_accelerator_utilisation", mistakes);
    const double step_s = *table.number(row, "accelerators", mistakes) * w->batch /
                          *table.number(row, "samples_per_s", mistakes);
    EXPECT_NEAR(utilisation * step_s / w->compute_s, 1, 1e-5) << row.line;
  }
  EXPECT_EQ(rows, 87);
  const PublishedTable given = read_published_table(facts, "dlio_workloads.csv", mistakes);
  int pairs = 0;
  for (const TableRow& row : given.rows) {
    const auto w = storage_workload(given.text(row, "workload"), given.text(row, "accelerator"));
    if (!w) continue;  // V100: no result
    ++pairs;
    EXPECT_EQ(w->batch, given.number(row, "batch_per_accelerator", mistakes));
    EXPECT_EQ(w->compute_s, given.number(row, "compute_time_s_per_step", mistakes));
    EXPECT_EQ(w->record_bytes, given.number(row, "record_bytes_mean", mistakes));
    EXPECT_EQ(w->threshold, given.number(row, "au_threshold", mistakes));
  }
  EXPECT_EQ(pairs, 4);
  EXPECT_THAT(to_text(mistakes), IsEmpty());
}

// Figures of docs/models/data-path.md: 53 rows of 20 systems.
TEST_F(PublishedStorage, three_of_four_rows_are_within_three_points_of_a_limit_set_by_another_one) {
  std::ifstream in = file("storage.csv");
  const ValidationReport report = validated(in);
  EXPECT_EQ(report.error.used, 53u);
  EXPECT_NEAR(report.error.median_abs_pct, 1.85, 0.01);
  EXPECT_NEAR(report.error.mean_abs_pct, 2.66, 0.01);
  const auto rows = [&](const std::string& by, const std::string& name) {
    for (const ErrorGroup& g : report.groups)
      if (g.by == by && g.name == name) return g.error;
    return ErrorSummary{};
  };
  EXPECT_EQ(rows("within 3 points", "yes").used, 40u);
  EXPECT_EQ(rows("threshold alone within 3 points", "yes").used, 37u);
  EXPECT_EQ(rows("loader at one bandwidth within 3 points", "yes").used, 9u);
  const ErrorSummary same = rows("limit from", "the same workload");
  EXPECT_EQ(same.used, 27u);
  EXPECT_NEAR(same.median_abs_pct, 1.98, 0.01);
  EXPECT_NEAR(same.mean_abs_pct, 1.91, 0.01);
  std::size_t setters = 0;
  for (const SkippedRow& row : report.skipped)
    if (row.reason == "sets the limit of its system") ++setters;
  EXPECT_EQ(setters, 20u);
  double furthest = 0;
  std::size_t same_and_near = 0;
  for (const ValidatedRow& row : report.predictions) {
    furthest = std::max(furthest, std::abs(row.error_pct));
    if (row.prediction.groups[0].second == "the same workload" && std::abs(row.error_pct) <= 3)
      ++same_and_near;
  }
  EXPECT_NEAR(furthest, 12.06, 0.05);
  EXPECT_EQ(same_and_near, 22u);
}

}  // namespace
}  // namespace trainyard::scenarios
