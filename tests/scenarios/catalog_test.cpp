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

}  // namespace
}  // namespace trainyard::scenarios
