#include "cli/validate_report.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/golden.hpp"

namespace trainyard::cli {
namespace {

/// Rows of public nccl-tests results (Azure AI-benchmarking-guide, NCCL scaling plot for H100, DGX
/// Cloud recipes), and two that cannot be used.
constexpr const char* table =
    "id,system,gpu,nodes,gpus_per_node,gpus,nic_gbps_per_gpu,collective,algorithm,bytes,time_us\n"
    "a1,Azure ND A100 v4,A100-80GB,1,8,8,,all_reduce,NCCL default,8192,43.44\n"
    "a2,Azure ND A100 v4,A100-80GB,1,8,8,,all_reduce,NCCL default,1073741824,8237.83\n"
    "h1,DGX H100,H100-80GB,1,8,8,,all_reduce,NCCL default (NVLS for large),16777216,123.8\n"
    "t1,\"DGX H100 + NDR \"\"InfiniBand\"\"\",H100-80GB,128,8,1024,400,all_reduce,NVLSTree,"
    "268435456,2103.32\n"
    "t2,\"DGX H100 + NDR \"\"InfiniBand\"\"\",H100-80GB,128,8,1024,400,all_reduce,NVLSTree,"
    "4194304,465.58\n"
    "x1,a cluster,unstated,4,8,32,,all_reduce,NCCL default,32768,69.01\n"
    "x2,a cluster,H100-80GB,4,8,32,,all_reduce,NCCL default,32768,69.01\n";

scenarios::ValidationReport report() {
  std::istringstream in(table);
  std::vector<scenarios::Diagnostic> mistakes;
  const auto read = scenarios::read_published_table(in, "published.csv", mistakes);
  const auto* kind = scenarios::kind_of(read, mistakes);
  auto out = scenarios::validate(read, *kind, mistakes);
  EXPECT_THAT(mistakes, testing::IsEmpty());
  return out;
}

TEST(ValidateReport, text) {
  expect_golden("validate.txt", validation_text(report(), Terminal{}));
}

TEST(ValidateReport, json_has_the_stable_keys) {
  const auto json = nlohmann::json::parse(validation_json(report()));
  for (const char* key :
       {"schema", "table", "rows", "used", "skipped", "error", "groups", "predictions"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["rows"], 7);
  EXPECT_EQ(json["used"], 5);
  EXPECT_EQ(json["skipped"][0]["id"], "x1");
  EXPECT_EQ(json["skipped"][1]["reason"], "nic_gbps_per_gpu not stated");
  for (const char* key : {"mean_abs_pct", "median_abs_pct", "p90_abs_pct", "mean_signed_pct"})
    EXPECT_TRUE(json["error"][key].is_number()) << key;
  for (const char* key :
       {"by", "name", "used", "mean_abs_pct", "median_abs_pct", "mean_signed_pct"})
    EXPECT_TRUE(json["groups"][0].contains(key)) << key;
  const auto& first = json["predictions"][0];
  EXPECT_EQ(first["id"], "a1");
  EXPECT_DOUBLE_EQ(first["published"], 43.44e-6);
  EXPECT_NEAR(double(first["error_pct"]),
              100 * (double(first["predicted"]) / double(first["published"]) - 1), 1e-9);
}

TEST(ValidateReport, of_no_rows_has_no_error) {
  scenarios::ValidationReport empty;
  const auto json = nlohmann::json::parse(validation_json(empty));
  EXPECT_TRUE(json["error"]["median_abs_pct"].is_null());
  EXPECT_TRUE(json["groups"].is_array());
  EXPECT_THAT(validation_text(empty, Terminal{}), testing::HasSubstr("0 predicted"));
}

TEST(ValidateReport, names_of_the_file_cannot_steer_the_terminal) {
  scenarios::ValidationReport one;
  one.groups.push_back({"system", std::string("\x1b[2J") + "\n", {}});
  one.groups.push_back({"system", std::string(39, 'x') + "\u00e9\u00e9\u00e9\u00e9", {}});
  const std::string text = validation_text(one, Terminal{});
  EXPECT_THAT(text, testing::HasSubstr("?[2J?"));
  EXPECT_THAT(text, testing::HasSubstr(std::string(39, 'x') + "... "));  // 43 columns do not fit 42
}

TEST(ValidateReport, csv_quotes_what_needs_it) {
  const std::string csv = validation_csv(report());
  EXPECT_THAT(csv, testing::StartsWith("id,line,published_s,predicted_s,error_pct,method,"
                                       "uncertainty,system,gpu,collective,algorithm,size,nodes\n"
                                       "a1,2,4.344e-05,"));
  EXPECT_THAT(csv, testing::HasSubstr("\"DGX H100 + NDR \"\"InfiniBand\"\"\""));
}

}  // namespace
}  // namespace trainyard::cli
