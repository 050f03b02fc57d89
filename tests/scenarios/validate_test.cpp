#include "scenarios/validate.hpp"

#include <gmock/gmock.h>

#include <sstream>

#include "models/network/collectives/tuner.hpp"
#include "scenarios/validate_collectives.hpp"

namespace trainyard::scenarios {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct Read {
  PublishedTable table;
  std::vector<Diagnostic> mistakes;
  std::string errors() const {
    std::string out;
    for (const Diagnostic& mistake : mistakes) out += mistake.text() + '\n';
    return out;
  }
};

Read read(const std::string& text) {
  Read out;
  std::istringstream in(text);
  out.table = read_published_table(in, "t.csv", out.mistakes);
  return out;
}

struct Validated {
  ValidationReport report;
  std::string errors;
};

Validated validated(const std::string& text) {
  Read r = read(text);
  Validated out;
  if (const TableKind* kind = kind_of(r.table, r.mistakes))
    out.report = validate(r.table, *kind, r.mistakes);
  out.errors = r.errors();
  return out;
}

// ---- The table as text

TEST(PublishedTable, reads_quoted_fields_with_commas_quotes_and_line_breaks) {
  const Read r = read("a,\"b \"\"c\"\"\",d\n1,\"x, y\nz\",3\n4,,6\n");
  EXPECT_THAT(r.errors(), IsEmpty());
  EXPECT_THAT(r.table.columns, ElementsAre("a", "b \"c\"", "d"));
  ASSERT_THAT(r.table.rows, SizeIs(2));
  EXPECT_EQ(r.table.text(r.table.rows[0], "b \"c\""), "x, y\nz");
  EXPECT_EQ(r.table.rows[0].line, 2);
  EXPECT_EQ(r.table.rows[0].cells[2].line, 3);  // the third field starts after the break
  EXPECT_EQ(r.table.rows[0].cells[2].column, 4);
  EXPECT_EQ(r.table.rows[1].line, 4);
  EXPECT_EQ(r.table.text(r.table.rows[1], "d"), "6");
  EXPECT_EQ(r.table.text(r.table.rows[1], "nowhere"), "");
}

TEST(PublishedTable, accepts_files_of_other_systems) {
  const Read r = read("\xEF\xBB\xBFid,x\r\n1,\"2\"\r\n\r\n3,4");
  EXPECT_THAT(r.errors(), IsEmpty());
  ASSERT_THAT(r.table.rows, SizeIs(2));
  EXPECT_EQ(r.table.text(r.table.rows[0], "x"), "2");
  EXPECT_EQ(r.table.rows[1].line, 4);
}

TEST(PublishedTable, an_empty_last_field_is_a_field) {
  const Read r = read("a,b\n1,");
  EXPECT_THAT(r.errors(), IsEmpty());
  ASSERT_THAT(r.table.rows, SizeIs(1));
  EXPECT_EQ(r.table.text(r.table.rows[0], "b"), "");
}

TEST(PublishedTable, says_where_every_mistake_is) {
  EXPECT_THAT(read("").errors(), HasSubstr("t.csv:1:1: error: the file is empty"));
  EXPECT_THAT(read("a,b\n1\n").errors(), HasSubstr("t.csv:2:1: error: found 1 fields"));
  EXPECT_THAT(read("a,b\n1,2,3\n").errors(), HasSubstr("t.csv:2:1: error: found 3 fields"));
  EXPECT_THAT(read("a,b,a\n").errors(),
              HasSubstr("t.csv:1:5: error: column \"a\" stands in the header twice"));
  EXPECT_THAT(read("a,b\n1,\"2\n3\n").errors(),
              HasSubstr("t.csv:2:3: error: the quote of this field is not closed"));
  EXPECT_THAT(read("a,b\n1,\"2\"x\n").errors(), HasSubstr("t.csv:2:6: error: text after"));
  EXPECT_THAT(read("a,b\n1,2\"x\n").errors(), HasSubstr("t.csv:2:4: error: a quote inside"));
}

TEST(PublishedTable, numbers_are_above_zero_or_not_known) {
  Read r = read("x\n1.5e3\n0\n-1\n1 GB\ninf\nnan\nNA\n");
  std::vector<std::optional<double>> numbers;
  for (const TableRow& row : r.table.rows) numbers.push_back(r.table.number(row, "x", r.mistakes));
  const auto none = std::nullopt;
  EXPECT_THAT(numbers, ElementsAre(1500.0, none, none, none, none, none, none));
  EXPECT_THAT(r.mistakes, SizeIs(4));
  EXPECT_THAT(r.errors(), HasSubstr("t.csv:5:1: error: x: found \"1 GB\""));
}

// ---- Errors summed up

TEST(ErrorSummary, by_hand) {
  const ErrorSummary e = summary_of({-10, 2, 4, 6, 20});
  EXPECT_EQ(e.used, 5u);
  EXPECT_DOUBLE_EQ(e.mean_signed_pct, 4.4);
  EXPECT_DOUBLE_EQ(e.median_signed_pct, 4);
  EXPECT_DOUBLE_EQ(e.mean_abs_pct, 8.4);
  EXPECT_DOUBLE_EQ(e.median_abs_pct, 6);  // 2 4 6 10 20
  EXPECT_DOUBLE_EQ(e.p90_abs_pct, 16);    // at 3.6: 10 + 0.6·10
  EXPECT_EQ(summary_of({}).used, 0u);
  EXPECT_DOUBLE_EQ(summary_of({-3}).p90_abs_pct, 3);
}

// ---- Collectives

constexpr const char* header =
    "gpu,gpus,bytes,collective,system,nodes,gpus_per_node,nic_gbps_per_gpu,algorithm,time_us,"
    "algbw_gbs,busbw_gbs\n";

TEST(ValidateCollectives, predicts_with_the_cost_model_and_counts_by_group) {
  const Validated v = validated(
      std::string(header) +
      "H100-80GB,8,17179869184,all_reduce,DGX H100,1,8,,NCCL default,62648,,\n"
      "H100-80GB,32,1073741824,all_reduce,DGX H100 + NDR InfiniBand,4,8,400,NVLSTree,5926.99,,\n"
      "H200,2,1073741824,p2p,NVLink pair,1,2,,send/recv,,,396\n"
      "A100-80GB,16,65536,reduce_scatter,somewhere else,2,8,200,,,1.5,\n");
  EXPECT_THAT(v.errors, IsEmpty());
  EXPECT_THAT(v.report.skipped, IsEmpty());
  ASSERT_THAT(v.report.predictions, SizeIs(4));
  const auto& p = v.report.predictions;
  EXPECT_EQ(p[0].id, "2");
  EXPECT_DOUBLE_EQ(p[0].prediction.published, 62648e-6);
  EXPECT_EQ(p[0].prediction.method, "nvls simple");
  EXPECT_EQ(p[0].prediction.uncertainty, Uncertainty::calibrated);
  EXPECT_NEAR(p[0].error_pct, 0, 1);
  EXPECT_EQ(p[1].prediction.method, "nvls-tree simple");
  EXPECT_EQ(p[1].prediction.uncertainty, Uncertainty::extrapolated);
  EXPECT_NEAR(p[1].prediction.predicted, 6095.7e-6, 0.1e-6);  // 108.6 + 87.4 + 5,899.7 us
  EXPECT_DOUBLE_EQ(p[2].prediction.published, 1073741824 / 396e9);
  EXPECT_EQ(p[3].prediction.uncertainty, Uncertainty::new_system);
  EXPECT_DOUBLE_EQ(p[3].prediction.published, 65536 / 1.5e9);
  const auto sizes = [&](const std::string& by) {
    std::vector<std::string> out;
    for (const ErrorGroup& g : v.report.groups)
      if (g.by == by) out.push_back(g.name + " " + std::to_string(g.error.used));
    return out;
  };
  EXPECT_THAT(sizes("size"), ElementsAre("1 MiB to 16 GiB 3", "below 1 MiB 1"));
  EXPECT_THAT(sizes("nodes"), ElementsAre("1 2", "4 1", "2 1"));
  EXPECT_THAT(sizes("algorithm"),
              ElementsAre("NCCL default 1", "NVLSTree 1", "send/recv 1", "not stated 1"));
}

TEST(ValidateCollectives, says_why_a_row_is_not_used) {
  const Validated v = validated(std::string("id,") + header +
                                "a,unstated,32,1024,all_reduce,,4,8,400,,10,,\n"
                                "b,H100-80GB,32,1024,all_reduce,,4,8,,,10,,\n"
                                "c,H100-80GB,32,1024,gossip,,4,8,400,,10,,\n"
                                "d,H100-80GB,32,1024,all_reduce,,4,8,400,,,,\n"
                                "e,H100-80GB,24,1024,all_reduce,,,,400,,10,,\n"
                                "f,A100-80GB,8,1024,all_reduce,,1,8,,NVLS,10,,\n"
                                "g,H100-80GB,1,1024,all_reduce,,1,8,,,10,,\n"
                                ",H100-80GB,,1024,all_reduce,,1,8,,,10,,\n");
  EXPECT_THAT(v.errors, IsEmpty());
  std::vector<std::string> why;
  for (const SkippedRow& row : v.report.skipped) why.push_back(row.id + ": " + row.reason);
  EXPECT_THAT(why,
              ElementsAre("a: no constants for GPU \"unstated\"", "b: nic_gbps_per_gpu not stated",
                          "c: collective \"gossip\" is not modelled",
                          "d: neither time nor bandwidth stated", "e: gpus_per_node not stated",
                          "f: algorithm \"NVLS\" is not there for this group",
                          "g: gpus is not a whole number of at least 2", "9: gpus not stated"));
  EXPECT_EQ(v.report.rows, 8u);
  EXPECT_EQ(v.report.error.used, 0u);
}

TEST(ValidateCollectives, racks_are_one_domain_and_named_algorithms_are_forced) {
  const Validated v = validated(std::string(header) +
                                "GB200,72,17179869184,all_reduce,GB200 NVL72,18,4,,ring,,,680\n"
                                "GB200,72,17179869184,all_reduce,GB200 NVL72,18,4,,SHARP,,,850\n"
                                "H200,8,8589934592,all_reduce,8x H200 node,1,8,,ring (NVLS off),"
                                "40000,,\n"
                                "H200,24,8589934592,all_reduce,new,3,,400,NCCL default,80000,,\n");
  EXPECT_THAT(v.errors, IsEmpty());
  ASSERT_THAT(v.report.predictions, SizeIs(4));
  EXPECT_EQ(v.report.predictions[0].prediction.method, "ring simple");
  EXPECT_EQ(v.report.predictions[1].prediction.method, "nvls simple");
  EXPECT_EQ(v.report.predictions[2].prediction.method, "ring simple");
  EXPECT_EQ(v.report.predictions[3].prediction.method, "nvls-tree simple");  // 24 GPUs in 3 servers
}

TEST(ValidateCollectives, networks_are_known_by_name) {
  const Validated v =
      validated(std::string(header) +
                "B200,32,1048576,all_reduce,\"AWS P6-B200, 8x 400 Gb/s EFA v4\",4,8,400,,378.33,,\n"
                "B200,32,1048576,all_reduce,AWS P6-B200,4,8,400,,378.33,,\n"
                "H100-80GB,16,4194304,all_reduce,GCP,2,8,200,NCCL FasTrak TCPXO,364.6,,\n");
  ASSERT_THAT(v.report.predictions, SizeIs(3));
  const auto& p = v.report.predictions;
  // Four hops of twice 35 us more than on InfiniBand (there it takes LL).
  EXPECT_GT(p[0].prediction.predicted, 388.6e-6);
  EXPECT_EQ(p[0].prediction.method, "nvls-tree simple");
  EXPECT_LT(p[1].prediction.predicted, 150e-6);
  EXPECT_THAT(p[2].prediction.method, testing::AnyOf("ring simple", "tree simple"));
}

TEST(ValidateCollectives, text_where_a_number_belongs_is_a_mistake_with_its_place) {
  const Validated v = validated(
      "gpu,gpus,bytes,collective,busbw_gbs\n"
      "H100-80GB,8,1 MiB,all_reduce,100\nH100-80GB,8,1024,all_reduce,x\n");
  EXPECT_THAT(v.errors, HasSubstr("t.csv:2:13: error: bytes: found \"1 MiB\""));
  EXPECT_THAT(v.errors, HasSubstr("t.csv:3:29: error: busbw_gbs: found \"x\""));
}

TEST(TableKinds, an_unknown_header_says_what_is_missing) {
  const Validated v = validated("gpu,gpus,bytes,size\n");
  EXPECT_THAT(v.errors, HasSubstr("nearest is \"collectives\", which also needs: collective, one "
                                  "of time_us, algbw_gbs, busbw_gbs"));
}

TEST(ValidateCollectives, every_calibrated_system_has_a_source) {
  for (const CalibratedSystem& system : calibrated_systems()) {
    EXPECT_FALSE(system.source.empty()) << system.name;
    EXPECT_GT(system.launch_floor_s, 1e-6) << system.name;
    EXPECT_LT(system.launch_floor_s, 100e-6) << system.name;
  }
}

// Any bytes: mistakes or a report, never a crash, and every row is accounted for.
TEST(ValidateCollectives, survives_any_text) {
  const std::string alphabet = "\",\n\r a1.8eH-\xEF\xC3";
  for (std::uint32_t seed = 1; seed <= 20000; ++seed) {
    std::uint32_t state = seed * 2654435761u;
    std::string text = seed % 2 ? std::string(header) : "";
    for (int i = 0; i < 60; ++i) {
      state = state * 1664525u + 1013904223u;
      text += alphabet[(state >> 16) % alphabet.size()];
    }
    const Validated v = validated(text);
    if (!v.errors.empty()) continue;
    ASSERT_EQ(v.report.predictions.size() + v.report.skipped.size(), v.report.rows) << seed;
  }
}

}  // namespace
}  // namespace trainyard::scenarios
