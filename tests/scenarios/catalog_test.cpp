#include "scenarios/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/read.hpp"
#include "tests/scenarios/test_catalog.hpp"

namespace trainyard::scenarios {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(Catalog, what_ships_is_complete_and_has_a_source_for_each_figure) {
  std::vector<Diagnostic> mistakes;
  const Catalog catalog = Catalog::from_texts(embedded_parts(), mistakes);
  EXPECT_TRUE(mistakes.empty()) << to_text(mistakes);
  int figures = 0;
  for (const std::string& kind : catalog.kinds())
    for (const std::string& name : catalog.names(kind)) {
      const Part& part = *catalog.find(kind, name);
      const auto of_part = check_part(catalog, part);
      EXPECT_TRUE(of_part.empty()) << kind << "/" << name << ":\n" << to_text(of_part);
      figures += static_cast<int>(part.figures.size());
    }
  EXPECT_GT(figures, 50);
}

TEST(Catalog, ships_the_parts_of_the_guide) {
  const Catalog& catalog = Catalog::standard();
  EXPECT_THAT(catalog.names("nic"), Contains("cx7-400g"));
  EXPECT_THAT(catalog.names("switch"), Contains("quantum-2-qm9700"));
  const auto h100 = make_part<models::ServerSpec>(catalog, "hgx-h100");
  ASSERT_TRUE(h100);
  EXPECT_EQ(h100->gpus, 8);
  EXPECT_EQ(h100->nic.rate, BytesPerSecond(50e9));  // 400 Gb/s
  EXPECT_EQ(h100->gpu.peak_16bit.value() > 9e14 && h100->gpu.peak_16bit.value() < 1e15,
            true);  // dense, not 2:4 sparse
}

std::string mistake_of(const std::string& text) {
  std::vector<Diagnostic> mistakes;
  Catalog::from_texts({{"nic/n.json", text}}, mistakes);
  return mistakes.empty() ? "" : mistakes.front().path + ": " + mistakes.front().what;
}

TEST(Catalog, refuses_a_figure_without_a_source) {
  EXPECT_EQ(
      mistake_of(
          R"({"part": "n", "kind": "nic", "title": "t", "retrieved": "2026-11-30", "figures": {"rate": {"value": "1 Gb/s", "source": "s", "sure": "read"}}})"),
      "");
  EXPECT_EQ(
      mistake_of(
          R"({"part": "n", "kind": "nic", "title": "t", "retrieved": "2026-11-30", "figures": {"rate": {"value": "1 Gb/s", "sure": "read"}}})"),
      "rate: a figure without a source is a guess");
  EXPECT_THAT(
      mistake_of(
          R"({"part": "n", "kind": "nic", "title": "t", "retrieved": "2026-11-30", "figures": {"rate": {"value": "1 Gb/s", "source": "s", "sure": "maybe"}}})"),
      HasSubstr("\"sure\" must be one of"));
  EXPECT_THAT(
      mistake_of(
          R"({"part": "n", "kind": "nic", "title": "t", "retrieved": "last year", "figures": {}})"),
      HasSubstr("expected the day"));
  EXPECT_THAT(
      mistake_of(
          R"({"part": "n", "kind": "nic", "title": "t", "retrieved": "2026-11-30", "figures": {"rate": "1 Gb/s"}})"),
      HasSubstr("expected {\"value\""));
  EXPECT_THAT(
      mistake_of(
          R"({"part": "m", "kind": "nic", "title": "t", "retrieved": "2026-11-30", "figures": {}})"),
      HasSubstr("the file is named"));
}

TEST(Catalog, prints_a_table) {
  std::vector<Diagnostic> mistakes;
  const Catalog catalog = Catalog::from_texts(
      {{"nic/n.json", R"({"part": "n", "kind": "nic", "title": "a card", "retrieved": "2026-11-30",
      "figures": {"rate": {"value": "1 Gb/s", "low": "0.5 Gb/s", "high": "2 Gb/s", "source": "the box", "sure": "read"}, "calibration": {"x": {"value": 0.5, "source": "a fit", "sure": "fit"}}}})"}},
      mistakes);
  ASSERT_TRUE(mistakes.empty()) << to_text(mistakes);
  EXPECT_THAT(catalog.table(*catalog.find("n")),
              HasSubstr("figure         value   range              sure  source\n"
                        "rate           1 Gb/s  0.5 Gb/s – 2 Gb/s  read  the box\n"
                        "calibration.x  0.5                        fit   a fit\n"));
}

TEST(Catalog, prints_how_a_fitted_figure_was_found) {
  std::vector<Diagnostic> mistakes;
  const Catalog catalog = Catalog::from_texts(
      {{"calibration/c.json",
        R"({"part": "c", "kind": "calibration", "title": "a type", "note": "few rows", "retrieved": "2026-11-30",
      "figures": {"gemm_16bit": {"value": 0.75, "prior": 0.7, "standard_error": 0.01, "rows": "table.csv: 53 rows", "source": "a fit", "sure": "fit"},
                  "kernel_floor": {"value": "4 us", "standard_error": "1 us", "rows": 7, "source": "a fit", "sure": "fit"}}})"}},
      mistakes);
  ASSERT_TRUE(mistakes.empty()) << to_text(mistakes);
  EXPECT_EQ(
      catalog.table(*catalog.find("c")).substr(0, 400).find("c (calibration): a type\nfew rows\n"),
      0u);
  EXPECT_THAT(
      catalog.table(*catalog.find("c")),
      HasSubstr("figure        value        range  sure  source\n"
                "gemm_16bit    0.75 ± 0.01         fit   a fit [table.csv: 53 rows] (prior 0.7)\n"
                "kernel_floor  4 us ± 1 us         fit   a fit [7]\n"));
}

TEST(Catalog, refuses_a_standard_error_of_what_was_not_fitted) {
  for (const char* key : {"prior", "standard_error", "rows"}) {
    const auto part = [&](const std::string& sure) {
      return mistake_of(
          R"({"part": "n", "kind": "nic", "title": "t", "retrieved": "2026-11-30", "figures": {"efficiency": {"value": 0.9, ")" +
          std::string(key) + R"(": 0.1, "source": "s", "sure": ")" + sure + R"("}}})");
    };
    EXPECT_EQ(part("fit"), "");
    EXPECT_THAT(part("read"), HasSubstr("only a fitted figure")) << key;
  }
}

TEST(Catalog, names_the_rows_of_each_fitted_constant) {
  const Catalog& catalog = Catalog::standard();
  for (const char* kind : {"calibration", "software"})
    for (const std::string& name : catalog.names(kind))
      for (const Figure& f : catalog.find(kind, name)->figures)
        EXPECT_TRUE(f.sure != "fit" || !f.rows.empty()) << kind << "/" << name << ": " << f.key;
}

TEST(Catalog, each_gpu_type_names_its_calibration) {
  const Catalog& catalog = Catalog::standard();
  for (const std::string& name : catalog.names("gpu")) {
    const Node* calibration = catalog.find("gpu", name)->fields.find("calibration");
    ASSERT_TRUE(calibration) << name;
    ASSERT_EQ(calibration->kind, Node::Kind::text) << name;
    const auto gpu = make_part<models::GpuSpec>(catalog, name);
    const auto constants = make_part<models::GpuCalibration>(catalog, calibration->text);
    ASSERT_TRUE(gpu && constants) << name;
    EXPECT_EQ(gpu->calibration.gemm_16bit, constants->gemm_16bit) << name;
    EXPECT_EQ(gpu->calibration.name, constants->name) << name;
    EXPECT_GT(gpu->calibration.gemm_16bit, 0.5) << name;
    // Peaks grow twofold with each halving of the operands, where the units exist.
    if (gpu->peak_fp8.value() > 0) {
      EXPECT_NEAR(gpu->peak_fp8 / gpu->peak_16bit, 2, 0.001) << name;
    }
    if (gpu->peak_fp4.value() > 0) {
      EXPECT_GE(gpu->peak_fp4 / gpu->peak_fp8, 2) << name;
    }
  }
}

TEST(Catalog, types_of_one_family_share_a_calibration_and_limits_part_them) {
  const Catalog& catalog = Catalog::standard();
  const auto of = [&](const char* gpu) {
    return make_part<models::GpuSpec>(catalog, gpu)->calibration;
  };
  EXPECT_EQ(of("a100-40gb-sxm").gemm_16bit, of("a100-80gb-sxm").gemm_16bit);
  EXPECT_EQ(of("h200-sxm").attention, of("h100-sxm").attention);
  EXPECT_EQ(of("gb200").gemm_nvfp4, of("b200-sxm").gemm_nvfp4);
  EXPECT_EQ(of("gb300").gemm_fp8, of("b300-sxm").gemm_fp8);
  EXPECT_LT(of("h100-96gb-500w").gemm_16bit, 0.9 * of("h100-sxm").gemm_16bit);
}

TEST(Catalog, servers_hold_gpus_and_adapters_that_exist) {
  const Catalog& catalog = Catalog::standard();
  for (const std::string& name : catalog.names("server")) {
    const Node& fields = catalog.find("server", name)->fields;
    EXPECT_TRUE(catalog.find("gpu", fields.find("gpu")->text)) << name;
    EXPECT_TRUE(catalog.find("nic", fields.find("nic")->text)) << name;
  }
  const auto rack = make_part<models::ServerSpec>(catalog, "gb300-nvl72");
  ASSERT_TRUE(rack);
  EXPECT_EQ(rack->gpus, 72);
  EXPECT_EQ(rack->nic.rate, BytesPerSecond(100e9));  // 800 Gb/s
  const auto dgx2 = make_part<models::ServerSpec>(catalog, "dgx-2");
  ASSERT_TRUE(dgx2);
  EXPECT_EQ(dgx2->gpus / dgx2->nics, 2);
}

TEST(Catalog, software_profiles_are_what_they_document) {
  const Catalog& catalog = Catalog::standard();
  const auto of = [&](const char* name) { return *make_part<models::SoftwareSpec>(catalog, name); };
  EXPECT_FALSE(of("megatron-2021").overlap_data);
  EXPECT_FALSE(of("megatron-2022").flash_attention);
  EXPECT_EQ(of("nemo").gradient_bytes, 2);
  EXPECT_EQ(of("megatron-core").gradient_bytes, 4);
  EXPECT_EQ(of("deepspeed-zero3").gathers_per_layer, 12);
  EXPECT_EQ(of("deepspeed-pipeline").accumulation_bytes, 14);
  EXPECT_TRUE(of("megatron-bridge").expert_deduplication);
  EXPECT_GT(of("torchtitan-async-tp").tensor_overlap_forward,
            of("torchtitan").tensor_overlap_forward);
  EXPECT_LT(of("llm-foundry").attention_rate, of("llm-foundry-a100").attention_rate);
  EXPECT_GT(of("torchtitan-eager").elementwise, of("torchtitan").elementwise);
}

std::string scenario_with(const std::string& server) {
  return R"({"cluster": {"servers": 2, "server": )" + server +
         R"(, "fabric": {"tiers": 1, "hosts_per_leaf": 2, "leaf_switch": "quantum-2-qm9700"}},
    "jobs": {"j": {"model": "llama3-8b", "gpus": 16, "global_batch": 16, "sequence": 8192,
                   "checkpoint": {"enabled": false}}}})";
}

std::string server_of(const std::string& gpu) {
  return R"({"nic": "cx7-400g", "gpu": )" + gpu + "}";
}

models::GpuCalibration calibration_of(const ReadResult& read) {
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario.cluster.server.gpu.calibration;
}

TEST(Catalog, a_calibration_is_named_changed_or_written_in_full) {
  const auto shipped = *make_part<models::GpuCalibration>(Catalog::standard(), "h100");
  const auto read = [](const std::string& gpu, const std::vector<std::string>& set = {}) {
    return calibration_of(read_scenario_text(scenario_with(server_of(gpu)), "test.json", set));
  };
  EXPECT_EQ(read(R"("h100-sxm")").gemm_16bit, shipped.gemm_16bit);
  EXPECT_EQ(read(R"({"part": "h100-sxm", "calibration": "a100"})").attention,
            make_part<models::GpuCalibration>(Catalog::standard(), "a100")->attention);

  const auto set = read(R"("h100-sxm")", {"cluster.server.gpu.calibration.gemm_16bit=0.7"});
  EXPECT_EQ(set.gemm_16bit, 0.7);
  EXPECT_EQ(set.attention, shipped.attention);
  const auto through_server = calibration_of(read_scenario_text(
      scenario_with(R"("hgx-h100")"), "test.json", {"cluster.server.gpu.calibration.hbm=0.8"}));
  EXPECT_EQ(through_server.hbm, 0.8);
  EXPECT_EQ(through_server.attention, shipped.attention);
  const auto over = read(R"({"part": "h100-sxm", "calibration": {"hbm": 0.9}})");
  EXPECT_EQ(over.hbm, 0.9);
  EXPECT_EQ(over.gemm_fp8, shipped.gemm_fp8);

  const std::string full =
      R"({"peak_16bit": "1 PFLOP/s", "sms": 100, "memory": "80 GB", "memory_rate": "3 TB/s",
          "scale_up_rate": "400 GB/s", "power_max": "700 W", "power_idle": "70 W")";
  EXPECT_EQ(read(full + "}").attention, models::GpuCalibration{}.attention);
  EXPECT_EQ(read(full + R"(, "calibration": {"attention": 0.3}})").attention, 0.3);
  EXPECT_EQ(read(full + R"(, "calibration": "v100"})").gemm_16bit,
            make_part<models::GpuCalibration>(Catalog::standard(), "v100")->gemm_16bit);
}

TEST(Catalog, a_wrong_calibration_is_one_mistake_with_a_suggestion) {
  const auto read = read_scenario_text(
      scenario_with(server_of(R"({"part": "h100-sxm", "calibration": "h10"})")), "test.json");
  ASSERT_EQ(read.diagnostics.size(), 1u) << to_text(read.diagnostics);
  EXPECT_EQ(read.diagnostics[0].path, "cluster.server.gpu.calibration");
  EXPECT_THAT(read.diagnostics[0].right, HasSubstr("h100"));
}

}  // namespace
}  // namespace trainyard::scenarios
