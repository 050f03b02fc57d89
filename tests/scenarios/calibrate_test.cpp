#include "scenarios/calibrate.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "scenarios/calibrate_files.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/read.hpp"

/// The fit on rows whose answer is known, the table of constants, and the files that it writes.
namespace trainyard::scenarios {
namespace {

using models::GpuCalibration;
using models::SoftwareSpec;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ConstantTable two_types() {
  ConstantTable t;
  t.constants = {
      {"a100 gemm_16bit", 0.7, 10, 0.1, 1, {{"calibration", "a100", "gemm_16bit"}}, "of one type"},
      {"h100 gemm_16bit", 0.7, 10, 0.1, 1, {{"calibration", "h100", "gemm_16bit"}}, "of another"},
      {"k_half", 100, 10, 1, 1000, {{"calibration", "*", "k_half"}}, "shared by all types"},
      {"kernel_floor", 5e-6, 10, 1e-6, 1e-4, {{"calibration", "*", "kernel_floor"}}, "a time"},
      {"overlap",
       0.5,
       10,
       0.01,
       0.99,
       {{"software", "nemo", "tensor_overlap_forward"},
        {"software", "nemo", "tensor_overlap_backward"}},
       "of a stack: two figures"}};
  t.tied = {{{"calibration", "a100", "gemm_fp8"},
             {"a100 gemm_16bit", "h100 gemm_16bit"},
             {"overlap"},
             "a product, to be found by hand"}};
  return t;
}

/// A made-up step: products, a launch and exposed traffic.
CalibrationRow made_up(const std::string& gpu, const std::string& stack, double work,
                       double kernels, double traffic, double k) {
  CalibrationRow row;
  row.id = gpu + stack + std::to_string(work);
  row.table = "made_up.csv";
  row.stack = stack;
  row.gpu = gpu;
  row.precision = "bf16";
  row.calibration = gpu;
  row.software = stack;
  row.predict_s = [=](const GpuCalibration& g, const SoftwareSpec& s) {
    return work / g.gemm_16bit * (1 + g.k_half / k) + kernels * to_seconds(g.kernel_floor) +
           traffic * (2 - s.tensor_overlap_forward - s.tensor_overlap_backward);
  };
  return row;
}

TEST(Calibrate, finds_the_constants_that_made_the_rows) {
  std::vector<CalibrationRow> rows;
  for (const std::string gpu : {"a100", "h100"})
    for (const std::string stack : {"nemo", "megatron-core"})
      for (int i = 1; i <= 6; ++i)
        rows.push_back(made_up(gpu, stack, 1.0 * i, 2e4 * (7 - i), 0.3 * (i % 3), 300.0 * i));
  GpuCalibration a100, h100;
  a100.gemm_16bit = 0.83;
  h100.gemm_16bit = 0.61;
  a100.k_half = h100.k_half = 140;
  a100.kernel_floor = h100.kernel_floor = seconds(8e-6);
  SoftwareSpec nemo, other;
  nemo.tensor_overlap_forward = nemo.tensor_overlap_backward = 0.7;
  for (CalibrationRow& row : rows)
    row.published_s =
        row.predict_s(row.gpu == "a100" ? a100 : h100, row.stack == "nemo" ? nemo : other);

  const Calibration fitted = calibrate(rows, two_types(), {});
  EXPECT_TRUE(fitted.is_converged);
  std::vector<double> values;
  for (const FittedConstant& c : fitted.constants) values.push_back(c.value);
  EXPECT_NEAR(values[0], 0.83, 0.83e-3);
  EXPECT_NEAR(values[1], 0.61, 0.61e-3);
  EXPECT_NEAR(values[2], 140, 0.3);
  EXPECT_NEAR(values[3], 8e-6, 8e-9);
  EXPECT_NEAR(values[4], 0.7, 1e-3);
  for (const double e : fitted.errors) EXPECT_NEAR(e, 0, 1e-3);
  EXPECT_GT(*std::max_element(fitted.errors_before.begin(), fitted.errors_before.end()), 0.05);
  EXPECT_EQ(fitted.constants[0].rows, 12u) << "a100 alone";
  EXPECT_EQ(fitted.constants[2].rows, 24u) << "shared";
  EXPECT_EQ(fitted.constants[4].rows, 8u) << "nemo, where there is traffic: 4 of 6 a type";
  ASSERT_EQ(fitted.constants[2].rows_by_stack.size(), 2u);
  EXPECT_EQ(fitted.constants[2].rows_by_stack[0].rows, 12u);
  // The same values predict rows that were not fitted, and the tied figure is their product.
  EXPECT_NEAR(errors_of(rows, two_types(), values)[7], fitted.errors[7], 1e-12);
  EXPECT_NEAR(*figure_value({"calibration", "a100", "gemm_fp8"}, two_types(), values),
              values[0] * values[1] / values[4], 1e-12);
}

TEST(Calibrate, a_crowded_group_does_not_decide_everything) {
  // Eight rows of one stack say ln c = ln 0.6, one of another says ln 0.66; without priors the
  // answer is the mean with weights 8 . 8^-0.3 = 8^0.7 and 1.
  ConstantTable t;
  t.constants = {{"e", 0.6, 1e6, 0.1, 1, {{"calibration", "*", "gemm_16bit"}}, "one constant"}};
  std::vector<CalibrationRow> rows;
  for (int i = 0; i < 9; ++i) {
    CalibrationRow& row = rows.emplace_back();
    row.stack = i < 8 ? "much" : "little";
    row.calibration = "h100";
    row.published_s = 1 / (i < 8 ? 0.6 : 0.66);
    row.predict_s = [](const GpuCalibration& g, const SoftwareSpec&) { return 1 / g.gemm_16bit; };
  }
  const double crowd = std::pow(8.0, 0.7);
  const Calibration fitted = calibrate(rows, t, {.outlier = 100, .present = {}});
  EXPECT_NEAR(std::log(fitted.constants[0].value),
              (crowd * std::log(0.6) + std::log(0.66)) / (crowd + 1), 1e-5);
  const Calibration even = calibrate(rows, t, {.outlier = 100, .crowding = 0, .present = {}});
  EXPECT_NEAR(std::log(even.constants[0].value), (8 * std::log(0.6) + std::log(0.66)) / 9, 1e-5);
}

TEST(Calibrate, starts_from_the_present_values_and_reports_the_move) {
  std::vector<CalibrationRow> rows{made_up("a100", "x", 1, 0, 0, 1e9),
                                   made_up("a100", "x", 2, 0, 0, 1e9)};
  for (CalibrationRow& row : rows) row.published_s = (row.id == rows[0].id ? 1 : 2) / 0.8;
  ConstantTable t;
  t.constants = {two_types().constants[0]};
  const Calibration fitted = calibrate(rows, t, {.present = {0.5}});
  EXPECT_EQ(fitted.constants[0].before, 0.5);
  EXPECT_NEAR(fitted.constants[0].moved(), 0.6, 1e-3);
  EXPECT_NEAR(fitted.errors_before[0], 0.6, 1e-6);  // 1/0.5 against 1/0.8
}

TEST(Calibrate, small_rows_are_those_up_to_a_number_of_gpus_or_the_smallest_there_are) {
  std::vector<CalibrationRow> rows(6);
  const auto set = [&](int i, const char* gpu, const char* precision, int gpus) {
    rows[std::size_t(i)].gpu = gpu;
    rows[std::size_t(i)].precision = precision;
    rows[std::size_t(i)].gpus = gpus;
  };
  set(0, "H100", "bf16", 8);
  set(1, "H100", "bf16", 9);     // one too many
  set(2, "GB200", "bf16", 128);  // the fewest of its kind
  set(3, "GB200", "bf16", 128);
  set(4, "GB200", "bf16", 256);
  set(5, "GB200", "fp8", 256);  // another precision has its own
  EXPECT_THAT(rows_up_to(rows, 8), ElementsAre(0, 2, 3, 5));
}

TEST(ConstantTable, has_at_most_40_constants_each_with_a_reason_and_room) {
  const ConstantTable& table = calibrated_constants();
  EXPECT_LE(table.constants.size(), 40u);
  std::set<std::string> names;
  for (const Constant& c : table.constants) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_FALSE(c.why.empty() || c.sets.empty()) << c.name;
    EXPECT_LT(c.low, c.prior) << c.name;
    EXPECT_GT(c.high, c.prior) << c.name;
    EXPECT_TRUE(c.sigma >= 0.15 && c.sigma <= 0.4) << c.name << " " << c.sigma;
  }
}

TEST(ConstantTable, sets_numbers_that_exist_each_by_one_constant_within_their_range) {
  const Catalog& catalog = Catalog::standard();
  const ConstantTable& table = calibrated_constants();
  std::vector<double> lows, highs;
  for (const Constant& c : table.constants) {
    lows.push_back(c.low);
    highs.push_back(c.high);
  }
  for (const std::string kind : {"calibration", "software"})
    for (const std::string& name : catalog.names(kind)) {
      GpuCalibration gpu;
      SoftwareSpec software;
      for (const Figure& figure : catalog.find(kind, name)->figures) {
        const FigurePlace place{kind, name, figure.key};
        int owners = 0;
        for (const Constant& c : table.constants)
          for (const FigurePlace& set : c.sets) owners += set.covers(place);
        for (const TiedFigure& tied : table.tied) owners += tied.place.covers(place);
        EXPECT_LE(owners, 1) << kind << " " << name << " " << figure.key;
        if (owners == 0) continue;
        EXPECT_TRUE(kind == "calibration" ? find_knob(gpu, figure.key)
                                          : find_knob(software, figure.key))
            << figure.key;
      }
    }
  for (const Constant& c : table.constants)
    for (const FigurePlace& set : c.sets) {
      EXPECT_TRUE(set.part.ends_with('*') || catalog.find(set.kind, set.part))
          << c.name << ": there is no part " << set.kind << " " << set.part;
      bool stands = false;
      for (const std::string& name : catalog.names(set.kind))
        for (const Figure& figure : catalog.find(set.kind, name)->figures)
          stands = stands || set.covers({set.kind, name, figure.key});
      EXPECT_TRUE(stands) << c.name << ": no file has " << set.part << " " << set.key;
    }
}

std::vector<PartText> one_part(const std::string& text) {
  return {{"calibration/a100.json", text}};
}

const std::string a100 =
    "{\n"
    "  \"part\": \"a100\",\n"
    "  \"kind\": \"calibration\",\n"
    "  \"title\": \"NVIDIA A100 – 40 and 80 GB\",\n"
    "  \"retrieved\": \"2026-11-30\",\n"
    "  \"figures\": {\n"
    "    \"gemm_16bit\": {\"value\": 0.8, \"low\": 0.7, \"high\": 0.9, \"source\": \"old\", "
    "\"sure\": \"fit\"},\n"
    "    \"gemm_fp8\": {\"value\": 0.1, \"source\": \"old\", \"sure\": \"calc\"},\n"
    "    \"hbm\": {\"value\": 0.850, \"source\": \"a page\", \"sure\": \"read\"},\n"
    "    \"kernel_floor\": {\"value\": \"4.1 us\", \"source\": \"old\", \"sure\": \"fit\"}\n"
    "  }\n"
    "}\n";

Calibration with_values(std::initializer_list<double> values) {
  Calibration out;
  for (const double v : values) {
    FittedConstant& c = out.constants.emplace_back();
    c.value = v;
    c.error = 0.01;
    c.rows = 3;
    c.rows_by_stack = {{"t.csv", "nemo", 2}, {"t.csv", "other", 1}};
  }
  return out;
}

TEST(CalibratedFiles, hold_value_prior_error_and_rows_and_keep_the_rest) {
  const Calibration fitted = with_values({0.81234567, 0.5, 100, 4.4e-6, 0.6});
  const std::vector<PartFile> files =
      calibrated_files(one_part(a100), two_types(), fitted, {{"t.csv", "0123456789abcdef", 3}});
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].file, "calibration/a100.json");
  const std::string& text = files[0].text;
  EXPECT_THAT(text, HasSubstr("\"gemm_16bit\": {\"value\": 0.8123, \"prior\": 0.7, "
                              "\"standard_error\": 0.0081, \"rows\": \"t.csv: 3 rows (nemo 2, "
                              "other 1)\", \"source\": \"Least squares"));
  EXPECT_THAT(text, HasSubstr("\"kernel_floor\": {\"value\": \"4.4 us\", \"prior\": \"5 us\", "
                              "\"standard_error\": \"44 ns\""));
  EXPECT_THAT(text, HasSubstr("\"gemm_fp8\": {\"value\": 0.677, \"source\": \"a product, to be "
                              "found by hand (a100 gemm_16bit x h100 gemm_16bit / overlap)\", "
                              "\"sure\": \"calc\"}"));
  EXPECT_THAT(text, HasSubstr("\"value\": \"t.csv (3 rows, sha256 0123456789ab)\""));
  EXPECT_THAT(text, HasSubstr("\"source\": \"a page\", \"sure\": \"read\""));
  EXPECT_THAT(text, HasSubstr("A100 – 40"));
  EXPECT_THAT(text, Not(HasSubstr("old")));

  // It reads back as a part with these values.
  std::vector<Diagnostic> mistakes;
  const Catalog catalog = Catalog::from_texts({{files[0].file, text}}, mistakes);
  EXPECT_TRUE(mistakes.empty()) << to_text(mistakes);
  const auto read = make_part<GpuCalibration>(catalog, "a100");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->gemm_16bit, 0.8123);
  EXPECT_EQ(read->kernel_floor, seconds(4.4e-6));
  EXPECT_THAT(present_values({{files[0].file, text}}, two_types()),
              ElementsAre(0.8123, 0.7, 100, 4.4e-6, 0.5));
}

TEST(CalibratedFiles, the_form_is_the_one_of_the_catalog) {
  for (const PartText& part : embedded_parts())
    EXPECT_EQ(part_text(part.text), part.text) << part.file;
}

TEST(CalibratedFiles, a_file_without_fitted_figures_is_left_alone) {
  ConstantTable t;
  t.constants = {two_types().constants[1]};
  EXPECT_TRUE(calibrated_files(one_part(a100), t, with_values({0.5}), {}).empty());
}

TEST(MovedConstants, are_those_beyond_three_percent_that_no_note_explains) {
  const auto moved = [](const std::string& text, double gemm) {
    ConstantTable t;
    t.constants = {two_types().constants[0]};
    return moved_without_note(one_part(text), t, with_values({gemm})).size();
  };
  EXPECT_EQ(moved(a100, 0.8 * 1.029), 0u);
  EXPECT_EQ(moved(a100, 0.8 * 1.031), 1u);
  EXPECT_EQ(moved(a100, 0.8 * 0.969), 1u);
  const auto noted = [](const std::string& note) {
    std::string text = a100;
    const std::string old = "\"low\": 0.7, \"high\": 0.9";
    return text.replace(text.find(old), old.size(), "\"note\": \"" + note + "\"");
  };
  EXPECT_EQ(moved(noted("refit 0.9: benchmarks at other clocks"), 0.91), 0u);
  EXPECT_EQ(moved(noted("refit 0.9: benchmarks at other clocks"), 0.95), 1u) << "another move";
  EXPECT_EQ(moved(noted("just a note"), 0.91), 1u);
}

TEST(CanMove, spares_derivatives_that_are_zero) {
  models::JobSpec job;
  job.model.heads = 32;
  job.model.hidden = 4096;
  job.gpus = 8;
  EXPECT_TRUE(can_move("gemm_16bit", job));
  EXPECT_FALSE(can_move("gemm_fp8", job));
  EXPECT_FALSE(can_move("tensor_overlap_forward", job));
  EXPECT_FALSE(can_move("small_head", job));  // heads of 128
  EXPECT_FALSE(can_move("jitter_per_doubling", job));
  EXPECT_TRUE(can_move("attention_backward", job));
  EXPECT_FALSE(can_move("unfused_products", job));
  EXPECT_FALSE(can_move("expert_overlap", job));
  job.parallel.precision = models::Precision::fp8;
  job.parallel.tensor = 2;
  job.model.heads = 64;
  job.gpus = 16;
  job.software.flash_attention = false;
  EXPECT_TRUE(can_move("gemm_fp8", job));
  EXPECT_TRUE(can_move("cast_bytes", job));
  EXPECT_TRUE(can_move("tensor_overlap_forward", job));
  EXPECT_TRUE(can_move("jitter_per_doubling", job));
  EXPECT_TRUE(can_move("unfused_products", job));
  EXPECT_FALSE(can_move("attention_backward", job));
  job.software.flash_attention = true;
  EXPECT_TRUE(can_move("small_head", job));  // heads of 64
}

}  // namespace
}  // namespace trainyard::scenarios
