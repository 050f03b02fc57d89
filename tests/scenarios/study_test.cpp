#include "scenarios/study.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "scenarios/check.hpp"
#include "scenarios/run.hpp"
#include "scenarios/stage.hpp"
#include "scenarios/study_axes.hpp"

namespace trainyard::scenarios {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

StudyReadResult read(const std::string& body, const StudyChanges& changes = {}) {
  return read_study_text("{\"extends\": \"quickstart.json\", " + body + "}",
                         std::string(TRAINYARD_LIBRARY) + "/study.json", changes);
}

std::string mistakes(const std::string& body) {
  return to_text(read(body).diagnostics);
}

std::vector<std::string> names(const StudyDesign& design) {
  std::vector<std::string> out;
  for (const auto& point : design.points) {
    std::string name;
    for (const std::string& label : point.labels) name += (name.empty() ? "" : "/") + label;
    out.push_back(name);
  }
  return out;
}

TEST(StudyAxes, a_grid_counts_with_the_last_axis_fastest) {
  const auto s = read(R"("axes": {
    "spares": {"path": "cluster.spares", "values": [0, 2]},
    "interval": {"path": "jobs.llama.checkpoint.interval", "values": ["10 min", "1 h"]}})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_THAT(names(s.design), ElementsAre("0/10 min", "0/1 h", "2/10 min", "2/1 h"));
  EXPECT_EQ(s.design.axes[1].units, "s");
  EXPECT_EQ(s.design.points[1].numbers[1], 3600);
  EXPECT_EQ(s.design.points[1].scenario.cluster.spares, 0);
  EXPECT_EQ(s.design.points[1].scenario.jobs.at("llama").checkpoint.interval,
            Duration(std::chrono::hours(1)));
  EXPECT_EQ(s.design.stages, 2u);  // spares move the job; intervals do not
}

TEST(StudyAxes, zipped_axes_advance_together_and_where_filters) {
  const auto s = read(R"("axes": {
    "gpus": {"path": "jobs.llama.gpus", "values": [64, 128, 256]},
    "servers": {"path": "cluster.servers", "values": [10, 18, 34]},
    "interval": {"path": "jobs.llama.checkpoint.interval", "values": ["10 min", "1 h"]}},
    "scenario": {"jobs": {"llama": {"model": "llama3-8b", "parallel": {"tensor": 4, "pipeline": 2, "chunks": 2}}}},
    "zip": [["gpus", "servers"]],
    "where": ["gpus < 256 or interval = 1 h", "gpus != 64"])");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_THAT(names(s.design), ElementsAre("128/18/10 min", "128/18/1 h", "256/34/1 h"));
}

TEST(StudyAxes, ranges_are_linear_or_logarithmic_and_whole_where_they_are_written_so) {
  const auto s = read(R"("axes": {
    "interval": {"path": "jobs.llama.checkpoint.interval", "from": "10 min", "to": "160 min", "points": 5, "spacing": "log"},
    "spares": {"path": "cluster.spares", "from": 0, "to": 5, "points": 3}},
    "scenario": {"cluster": {"servers": 40}})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  std::set<std::string> intervals, spares;
  for (const auto& p : s.design.points) {
    intervals.insert(p.labels[0]);
    spares.insert(p.labels[1]);
  }
  EXPECT_EQ(intervals, (std::set<std::string>{"10 min", "20 min", "40 min", "80 min", "160 min"}));
  EXPECT_EQ(spares, (std::set<std::string>{"0", "3", "5"}));
}

TEST(StudyAxes, values_with_names_may_change_several_settings) {
  const auto s = read(R"("axes": {
    "care": {"values": {
      "none": {},
      "much": {"cluster": {"spares": 2}, "jobs": {"llama": {"checkpoint": {"interval": "5 min"}}}}}}})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_EQ(s.design.points[1].scenario.jobs.at("llama").checkpoint.interval,
            Duration(std::chrono::minutes(5)));
  EXPECT_EQ(s.design.axes[0].units, "");
}

TEST(StudyAxes, cases_depend_on_other_axes) {
  const std::string axes = R"("axes": {
    "kind": {"path": "cluster.fabric.kind", "values": ["fat-tree", "dragonfly"]},
    "taper": {"values": {
      "1:1": {"cases": [
        {"where": "kind = dragonfly", "set": {"cluster": {"fabric": {"global_links_per_router": 16,
          "nics_per_router": 16, "routers_per_group": 8, "groups": 9, "local_links": 4, "tiers": null,
          "hosts_per_leaf": null, "leaf_oversubscription": null, "leaf_switch": null,
          "spine_switch": null, "router_switch": "quantum-2-qm9700", "routing": "ugal"}}}}]},
      "2:1": {"cases": [
        {"where": "kind = fat-tree", "set": {"cluster": {"fabric": {"leaf_oversubscription": 2}}}},
        {"where": "kind = dragonfly", "set": {"cluster": {"fabric": {"global_links_per_router": 8,
          "nics_per_router": 16, "routers_per_group": 8, "groups": 9, "local_links": 4, "tiers": null,
          "hosts_per_leaf": null, "leaf_oversubscription": null, "leaf_switch": null,
          "spine_switch": null, "router_switch": "quantum-2-qm9700", "routing": "ugal"}}}}]}}}})";
  const auto s = read(axes);
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_THAT(names(s.design),
              ElementsAre("fat-tree/1:1", "fat-tree/2:1", "dragonfly/1:1", "dragonfly/2:1"));
  EXPECT_EQ(s.design.points[1].scenario.cluster.fabric.leaf_oversubscription, 2);
  EXPECT_EQ(s.design.points[2].scenario.cluster.fabric.global_links_per_router, 16);
  EXPECT_EQ(s.design.points[3].scenario.cluster.fabric.global_links_per_router, 8);
  EXPECT_THAT(
      mistakes(R"("axes": {"a": {"values": {"x": {"cases": [{"where": "b = 1", "set": {}}]}}}})"),
      HasSubstr("no axis \"b\""));
  EXPECT_THAT(mistakes(R"("axes": {"a": {"values": {"x": {"cases": [{"set": {}}]}}}})"),
              HasSubstr("a condition and settings"));
}

TEST(StudyAxes, a_latin_hypercube_uses_each_part_of_each_axis_once) {
  const auto s = read(R"("axes": {
    "interval": {"path": "jobs.llama.checkpoint.interval", "from": "10 min", "to": "20 min", "points": 2},
    "mode": {"path": "jobs.llama.checkpoint.mode", "values": ["synchronous", "asynchronous"]}},
    "latin_hypercube": {"points": 20, "seed": 3})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  ASSERT_EQ(s.design.points.size(), 20u);
  std::set<int> parts;
  int synchronous = 0;
  for (const auto& p : s.design.points) {
    parts.insert(int((p.numbers[0] - 600) / 30));
    synchronous += p.labels[1] == "synchronous" ? 1 : 0;
  }
  EXPECT_GE(parts.size(), 19u);  // four digits of a label may move one over its border
  EXPECT_EQ(synchronous, 10);
}

TEST(StudyAxes, labels_are_numbers_where_they_can_be) {
  std::string units;
  EXPECT_EQ(number_of_label("1,024", units), 1024);
  EXPECT_EQ(units, "1");
  EXPECT_EQ(number_of_label("400 Gb/s", units), 50e9);
  EXPECT_EQ(units, "B/s");
  EXPECT_TRUE(std::isnan(number_of_label("fat-tree", units)));
  EXPECT_EQ(units, "");
}

TEST(Study, mistakes_have_their_place_and_say_what_would_be_right) {
  EXPECT_THAT(mistakes(R"("axis": {})"),
              AllOf(HasSubstr("study.json:1:"), HasSubstr("did you mean \"axes\"?")));
  EXPECT_THAT(mistakes(R"("axes": {"a": {"values": [1]}})"), HasSubstr("none is named"));
  EXPECT_THAT(mistakes(R"("axes": {"a": {"path": "cluster.spares"}})"), HasSubstr("no values"));
  EXPECT_THAT(mistakes(R"("axes": {"a": {"path": "cluster.spars", "values": [1]}})"),
              AllOf(HasSubstr("cluster.spars"), HasSubstr("did you mean \"spares\"?"),
                    HasSubstr("first at the point a 1")));
  EXPECT_THAT(mistakes(R"("axes": {"a": {"path": "cluster.spares", "values": [1, 99]}})"),
              AllOf(HasSubstr("must leave at least one server"), HasSubstr("a 99")));
  EXPECT_THAT(mistakes(R"("axes": {"a": {"path": "cluster.spares", "values": [1, 1]}})"),
              HasSubstr("twice"));
  EXPECT_THAT(
      mistakes(R"("axes": {"a": {"path": "x", "from": "1 min", "to": "1 h", "points": 3}})"),
      HasSubstr("different units"));
  EXPECT_THAT(
      mistakes(R"("where": "b = 1", "axes": {"a": {"path": "cluster.spares", "values": [1]}})"),
      AllOf(HasSubstr("no axis \"b\""), HasSubstr("axes: a")));
  EXPECT_THAT(mistakes(R"("where": "a = 3", "axes": {"a": {"values": {"x": {}, "y": {}}}})"),
              AllOf(HasSubstr("no value \"3\""), HasSubstr("x, y")));
  EXPECT_THAT(
      mistakes(R"("where": "a > 3", "axes": {"a": {"path": "cluster.spares", "values": [1, 2]}})"),
      HasSubstr("every one is filtered out"));
  EXPECT_THAT(mistakes(R"("metrics": {"g": "jobs.llama.godput"})"),
              AllOf(HasSubstr("no figure \"jobs.llama.godput\""), HasSubstr("goodput")));
  EXPECT_THAT(mistakes(R"("metrics": {"g": "jobs.llama"})"), HasSubstr("not one number"));
  EXPECT_THAT(mistakes(R"("metrics": {"seed": "jobs.llama.goodput"})"), HasSubstr("column"));
  EXPECT_THAT(mistakes(R"("replications": {"half_width": 0.1, "metric": "x"})"),
              HasSubstr("no metric \"x\""));
  EXPECT_THAT(mistakes(R"("replications": 0)"), HasSubstr("from 1 to"));
  EXPECT_THAT(mistakes(R"("run_files": "some")"), HasSubstr("none, first"));
  const auto alone = read_study_text("{\"axes\": {}}", "study.json");
  EXPECT_THAT(to_text(alone.diagnostics), HasSubstr("no scenario"));
}

TEST(Study, metrics_are_figures_and_quotients_of_them) {
  const auto s = read(R"("metrics": {
    "tokens-per-s": {"of": "jobs.llama.tokens / simulated_s", "units": "1/s", "better": "higher"},
    "half": "jobs.llama.goodput * 0.5"})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_EQ(s.design.metrics[0].better, analysis::Better::higher);
  EXPECT_EQ(s.design.formulas[0].factors.size(), 2u);
  EXPECT_TRUE(s.design.formulas[0].factors[1].is_divisor);
  EXPECT_FALSE(MetricFormula::parse("a  b"));
  EXPECT_FALSE(MetricFormula::parse("a * "));
}

TEST(Study, seeds_are_common_or_apart) {
  auto s = read(
      R"("replications": 3, "seed": 10, "axes": {"a": {"path": "cluster.spares", "values": [0, 1]}})");
  EXPECT_EQ(s.design.seed_of(1, 2), 12u);
  s = read(R"("replications": 3, "seed": 10, "common_random_numbers": false,
             "axes": {"a": {"path": "cluster.spares", "values": [0, 1]}})");
  EXPECT_EQ(s.design.seed_of(1, 2), 15u);
}

TEST(Study, the_hash_is_of_what_runs_and_not_of_how_often) {
  const std::string axes = R"("axes": {"a": {"path": "cluster.spares", "values": [0, 1]}})";
  const std::string hash = read(axes).design.hash;
  EXPECT_EQ(read(axes, {.replications = 9}).design.hash, hash);
  EXPECT_EQ(read(axes + R"(, "metrics": {"m": "jobs.llama.mfu"})").design.hash, hash);
  EXPECT_NE(read(axes, {.seed = 9}).design.hash, hash);
  EXPECT_NE(read(axes, {.set = {"duration=1 d"}}).design.hash, hash);
}

/// Runs on one stage, one after the other, what its key says may share it.
TEST(StageKey, points_of_one_key_run_on_one_stage_as_on_their_own) {
  const auto s = read(R"("scenario": {"duration": "2 d"}, "axes": {"care": {"values": {
      "as it is": {},
      "interval": {"jobs": {"llama": {"checkpoint": {"interval": "7 min"}}}},
      "synchronous": {"jobs": {"llama": {"checkpoint": {"mode": "synchronous", "size": "4 TB"}}}},
      "restart": {"jobs": {"llama": {"restart": {"replace": "20 min", "start_up": "1 min"}}}},
      "failures": {"failures": {"classes": {"gpu-or-host": {"lifetime": {"count": 90}}}}},
      "slow": {"failures": {"classes": {"slow-gpu": {"component": "gpu", "effect": "slow", "speed": 0.8,
               "lifetime": {"mean": "60 d"}, "detection": {"value": "2 h"}}}}},
      "crews": {"cluster": {"repair": {"crews": 1}, "exclude": {"after": 2, "within": "5 d"}}},
      "longer": {"duration": "3 d"},
      "money": {"economics": {}}}}})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_EQ(s.design.stages, 1u);
  Stage shared(s.design.points.front().scenario);
  std::set<std::string> fingerprints;
  for (const auto& point : s.design.points) {
    const RunResult here = run(point.scenario, shared, {}), alone = run(point.scenario, {});
    EXPECT_EQ(here.fingerprint, alone.fingerprint) << point.labels[0];
    EXPECT_EQ(here.jobs[0].goodput, alone.jobs[0].goodput) << point.labels[0];
    fingerprints.insert(here.fingerprint);
  }
  EXPECT_GE(fingerprints.size(), 7u);  // the changes are real; money moves nothing
}

TEST(StageKey, tells_apart_what_steps_depend_on) {
  const auto s = read(R"("axes": {"what": {"values": {
      "as it is": {},
      "routing": {"cluster": {"fabric": {"routing": "ecmp"}}},
      "spares": {"cluster": {"spares": 1}},
      "batch": {"jobs": {"llama": {"global_batch": 256}}},
      "store": {"storage": {"scratch": {"network": "training", "servers": 2}}}}}})");
  ASSERT_TRUE(s.ok()) << to_text(s.diagnostics);
  EXPECT_EQ(s.design.stages, s.design.points.size());
}

}  // namespace
}  // namespace trainyard::scenarios
