#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/sha256.hpp"
#include "scenarios/check.hpp"
#include "scenarios/json_path.hpp"
#include "scenarios/overrides.hpp"
#include "scenarios/run_json.hpp"
#include "scenarios/study.hpp"
#include "scenarios/study_axes.hpp"
#include "scenarios/study_fields.hpp"
#include "scenarios/study_metrics.hpp"
#include "scenarios/units_text.hpp"
#include "scenarios/write.hpp"

namespace trainyard::scenarios {
namespace {

namespace fs = std::filesystem;

using analysis::Better;
using analysis::StudyMetric;

constexpr std::int64_t most_replications = 100000;

const std::vector<std::string> study_keys{"$schema",
                                          "name",
                                          "description",
                                          "question",
                                          "extends",
                                          "scenario",
                                          "seed",
                                          "replications",
                                          "common_random_numbers",
                                          "confidence",
                                          "axes",
                                          "zip",
                                          "where",
                                          "latin_hypercube",
                                          "metrics",
                                          "warm_up",
                                          "run_files"};

const std::set<std::string> taken_names{"point", "replication", "seed", "state", "fingerprint"};

/// Reads a study's text into a design.
class StudyReader {
 public:
  StudyReader(const Node& root, std::string file, const StudyChanges& changes,
              StudyReadResult& result)
      : root_(root),
        file_(std::move(file)),
        changes_(changes),
        result_(result),
        fields_(root, "", study_keys, result.diagnostics) {}

  void read() {
    StudyDesign& d = result_.design;
    d.name = fields_.text("name").value_or(fs::path(file_).stem().string());
    d.description = fields_.text("description").value_or("");
    d.question = fields_.text("question").value_or("");
    d.common_random_numbers = fields_.flag("common_random_numbers").value_or(true);
    d.confidence = fields_.number("confidence", 0, 1).value_or(0.95);
    read_run_files();
    read_warm_up();
    const AxisPlan plan = read_axes(root_, result_.diagnostics);
    read_metrics();
    read_replications();
    if (changes_.replications) {
      d.least = d.most = *changes_.replications;
      d.precision.reset();
    }
    if (!result_.ok()) return;
    for (const Axis& axis : plan.axes)
      d.axes.push_back({axis.name, axis.path, axis.units, axis.is_given});
    make_points(plan);
    if (!result_.ok()) return;
    d.seed = seed();
    if (d.metrics.empty()) add_default_metrics(d.points.front().scenario, d);
    if (metric_nodes_.empty() && d.warm_up > Duration::zero())
      std::erase_if(d.metrics, [](const StudyMetric& m) {
        return !is_additive(m.of) && last_key(m.of) != "goodput";
      });
    make_formulas();
    check_warm_up();
    check_size();
    find_stages();
    hash();
  }

 private:
  void read_run_files() {
    const std::string text = fields_.text("run_files").value_or("none");
    using RunFiles = StudyDesign::RunFiles;
    if (text == "none")
      result_.design.run_files = RunFiles::none;
    else if (text == "first")
      result_.design.run_files = RunFiles::first;
    else if (text == "all")
      result_.design.run_files = RunFiles::all;
    else
      fields_.wrong("run_files", "unknown value " + in_quotes(text),
                    "none, first (of each point's replications) or all");
  }

  void read_warm_up() {
    const auto text = fields_.text("warm_up");
    if (!text) return;
    UnitError error;
    const auto value = parse_duration(*text, error);
    if (!value)
      fields_.wrong("warm_up", error.what, error.right);
    else
      result_.design.warm_up = *value;
  }

  /// Enough time is left, and what is measured can be taken apart there.
  void check_warm_up() {
    const StudyDesign& d = result_.design;
    if (d.warm_up == Duration::zero()) return;
    for (const StudyDesign::Point& point : d.points)
      if (point.scenario.duration <= d.warm_up)
        return fields_.wrong("warm_up", "a run is over before it is warm: it lasts " +
                                            to_text(point.scenario.duration));
    for (std::size_t m = 0; m < metric_nodes_.size(); ++m)
      for (const auto& factor : d.formulas[m].factors)
        if (!factor.path.empty() && !is_additive(factor.path) && last_key(factor.path) != "goodput")
          fields_.wrong(*metric_nodes_[m], "metrics." + d.metrics[m].name,
                        in_quotes(factor.path) +
                            " does not add up over time, so a warm-up cannot "
                            "be taken off",
                        "goodput, or quotients of what adds up: tokens, kept_s, elapsed_s, "
                        "ledger_gpu_s.…, interruptions, energy_J, simulated_s");
  }

  void read_metrics() {
    const Node* metrics = fields_.find("metrics");
    if (metrics == nullptr) return;
    if (metrics->kind != Node::Kind::object || metrics->members.empty())
      return fields_.wrong("metrics", "expected an object of metrics, found " + metrics->as_found(),
                           "\"metrics\": {\"goodput\": \"jobs.llm.goodput\"}");
    for (const Member& member : metrics->members) {
      StudyMetric metric;
      metric.name = member.key;
      const std::string path = "metrics." + member.key;
      if (!is_plain_name(member.key))
        fields_.wrong(member.value, path,
                      "the name of a metric has letters, digits, '_' and '-' only");
      std::optional<std::string> better, units;
      if (member.value.kind == Node::Kind::text) {
        metric.of = member.value.text;
      } else {
        const Fields of_metric(member.value, path, {"of", "better", "units"}, result_.diagnostics);
        if (member.value.kind != Node::Kind::object) continue;
        metric.of = of_metric.text("of").value_or("");
        if (!of_metric.has("of"))
          of_metric.wrong("of", "it does not say what it is",
                          "\"of\": \"jobs.llm.goodput\", a figure of trainyard run --json");
        better = of_metric.text("better");
        units = of_metric.text("units");
        if (better && !analysis::better_named(*better))
          of_metric.wrong("better", "unknown direction " + in_quotes(*better),
                          "higher, lower or neither");
      }
      const auto formula = MetricFormula::parse(metric.of);
      if (!formula && !metric.of.empty())
        fields_.wrong(member.value, path, "cannot read " + in_quotes(metric.of),
                      "figures and numbers with ' * ' and ' / ' between them: \"jobs.llm.tokens / "
                      "simulated_s\"");
      const bool is_one = formula && formula->factors.size() == 1;
      metric.units = units ? *units : is_one ? units_of(last_key(metric.of)) : "";
      metric.better = better   ? analysis::better_named(*better).value_or(Better::neither)
                      : is_one ? better_of(last_key(metric.of))
                               : Better::neither;
      metric_nodes_.push_back(&member.value);
      result_.design.metrics.push_back(std::move(metric));
    }
  }

  void read_replications() {
    StudyDesign& d = result_.design;
    const Node* node = fields_.find("replications");
    if (node == nullptr) return;
    if (node->kind != Node::Kind::object) {
      d.least = d.most =
          std::size_t(fields_.whole("replications", 1, most_replications).value_or(1));
      return;
    }
    const Fields of(*node, "replications", {"least", "most", "metric", "half_width"},
                    result_.diagnostics);
    d.least = std::size_t(of.whole("least", 2, most_replications).value_or(5));
    d.most = std::size_t(of.whole("most", 2, most_replications).value_or(100));
    if (d.least > d.most) of.wrong("most", "most is below least");
    StudyPrecision precision;
    const std::string metric =
        of.text("metric").value_or(d.metrics.empty() ? "goodput" : d.metrics.front().name);
    for (precision.metric = 0; precision.metric < d.metrics.size(); ++precision.metric)
      if (d.metrics[precision.metric].name == metric) break;
    if (precision.metric == d.metrics.size()) {
      std::string all;
      for (const StudyMetric& m : d.metrics) all += (all.empty() ? "" : ", ") + m.name;
      of.wrong("metric", "there is no metric " + in_quotes(metric) + " in metrics",
               all.empty() ? "name what is measured in \"metrics\"" : "metrics: " + all);
    }
    const auto width = of.number("half_width", 0, std::numeric_limits<double>::infinity());
    if (!of.has("half_width"))
      of.wrong("half_width", "it does not say when there are enough",
               "\"half_width\": 0.002, of the metric's interval, in its unit");
    precision.half_width = width.value_or(1);
    d.precision = precision;
  }

  /// The scenario that all points share.
  Node base() {
    Node base = Node::of_object(root_.place);
    if (const auto name = fields_.text("extends")) {
      const fs::path path = fs::path(file_).parent_path() / *name;
      std::vector<Diagnostic> mistakes;
      const auto source = load_source(path.string(), mistakes);
      if (!source)
        fields_.wrong("extends", "cannot extend " + in_quotes(*name) + ": " + mistakes.front().what,
                      "the name is relative to this file: " + path.string());
      else
        base = load_layers(path.string(), result_.diagnostics);
    } else if (!fields_.has("scenario")) {
      fields_.wrong("extends", "the study has no scenario",
                    "\"extends\": \"base.json\", relative to this file");
    }
    if (const Node* patch = fields_.find("scenario")) {
      if (patch->kind != Node::Kind::object)
        fields_.wrong("scenario", "expected an object of settings, found " + patch->as_found());
      else
        merge(base, *patch);
    }
    apply_overrides(base, changes_.set, result_.diagnostics);
    return base;
  }

  void make_points(const AxisPlan& plan) {
    const Node shared = base();
    if (!result_.ok()) return;
    bool too_many = false;
    const auto all = points_of(plan, max_points, too_many);
    if (too_many)
      return fields_.wrong("axes", "there are more than " + std::to_string(max_points) + " points",
                           "fewer values, \"where\", or a \"latin_hypercube\"");
    if (all.empty()) return fields_.wrong("where", "no point is left: every one is filtered out");
    const ReadResult alone = read_scenario_tree(shared, file_);
    if (alone.ok()) result_.design.base = alone.resolved;
    // A mistake in a value would be told for each of its points.
    std::set<std::string> told;
    for (const std::vector<AxisValue>& values : all) {
      StudyDesign::Point& point = result_.design.points.emplace_back();
      Node tree = shared;
      std::string name;
      for (std::size_t a = 0; a < plan.axes.size(); ++a) {
        const Axis& axis = plan.axes[a];
        point.labels.push_back(values[a].label);
        point.numbers.push_back(axis.units.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                   : values[a].number);
        name += (name.empty() ? "" : ", ") + axis.name + ' ' + values[a].label;
        if (axis.path.empty()) {
          merge(tree, values[a].node);
        } else if (const auto problem = set_path(tree, axis.path, values[a].node, axis.place)) {
          if (told.insert(problem->what).second)
            fields_.wrong("axes." + axis.name, problem->what, problem->right);
        }
      }
      std::vector<const AxisValue*> chosen;
      for (const AxisValue& value : values) chosen.push_back(&value);
      for (const AxisValue& value : values)
        for (const AxisValue::Case& one : value.cases)
          if (one.where.holds(chosen)) merge(tree, one.set);
      ReadResult read = read_scenario_tree(std::move(tree), file_);
      if (read.ok()) read.diagnostics = check_scenario(read);
      for (Diagnostic& mistake : read.diagnostics) {
        if (!told.insert(mistake.text()).second) continue;
        if (!name.empty()) mistake.what += " (first at the point " + name + ")";
        if (result_.diagnostics.size() < max_diagnostics)
          result_.diagnostics.push_back(std::move(mistake));
      }
      if (!read.diagnostics.empty()) continue;
      point.no_effect = settings_without_effect(read);
      point.resolved = std::move(read.resolved);
      point.scenario = std::move(read.scenario);
    }
  }

  std::uint64_t seed() const {
    if (changes_.seed) return *changes_.seed;
    if (const auto seed = fields_.whole("seed", 0, INT64_MAX)) return std::uint64_t(*seed);
    return result_.design.points.front().scenario.seed;
  }

  /// A figure must be in the result of some point: others may lack the job.
  void make_formulas() {
    StudyDesign& d = result_.design;
    for (const StudyMetric& metric : d.metrics)
      d.formulas.push_back(*MetricFormula::parse(metric.of));
    std::map<std::string, std::string> missing;  // path: what is known in its place
    for (const MetricFormula& formula : d.formulas)
      for (const auto& factor : formula.factors)
        if (!factor.path.empty()) missing.emplace(factor.path, "");
    for (const StudyDesign::Point& point : d.points) {
      if (missing.empty()) break;
      const auto shape = nlohmann::json::parse(shape_of_run_json(point.scenario));
      const auto is_known = [&](const std::string& path, std::string& hint) {
        std::vector<std::string> known;
        const nlohmann::json* found = find_figure(shape, path, known);
        if (found != nullptr && (found->is_number() || found->is_null())) return true;
        const std::string near = nearest(last_key(path), known);
        std::string all;
        for (const std::string& key : known) all += (all.empty() ? "" : ", ") + key;
        hint = found != nullptr ? "it is not one number; name a member of it"
               : near.empty()   ? "there is: " + all
                                : "did you mean \"" + near + "\"?";
        return false;
      };
      for (auto entry = missing.begin(); entry != missing.end();)
        entry = is_known(entry->first, entry->second) ? missing.erase(entry) : std::next(entry);
    }
    for (std::size_t m = 0; m < metric_nodes_.size(); ++m)
      for (const auto& factor : d.formulas[m].factors)
        if (const auto found = missing.find(factor.path); found != missing.end())
          fields_.wrong(*metric_nodes_[m], "metrics." + d.metrics[m].name,
                        "the result of a run has no figure " + in_quotes(factor.path),
                        found->second);
  }

  void check_size() {
    const StudyDesign& d = result_.design;
    if (d.most_runs() > max_runs)
      fields_.wrong("replications", std::to_string(d.points.size()) + " points with " +
                                        std::to_string(d.most) + " replications are more than " +
                                        std::to_string(max_runs) + " runs");
    for (const StudyMetric& m : d.metrics)
      if (taken_names.contains(m.name))
        fields_.wrong("metrics", "a metric cannot have the name " + in_quotes(m.name),
                      "tables have a column of that name");
    for (const analysis::StudyAxis& axis : d.axes)
      for (const analysis::StudyAxis& other : d.axes)
        if (other.name == axis.name + "_value" || axis.name == "point")
          fields_.wrong("axes", "an axis cannot have the name " + in_quotes(other.name),
                        "tables have a column of that name");
  }

  void find_stages() {
    std::map<std::string, std::size_t> stages;
    for (StudyDesign::Point& point : result_.design.points)
      point.stage =
          stages.emplace(analysis::sha256(stage_key(point.scenario)), stages.size()).first->second;
    result_.design.stages = stages.size();
  }

  void hash() {
    StudyDesign& d = result_.design;
    std::string all = "trainyard-study-1\n" + std::to_string(d.seed) +
                      (d.common_random_numbers ? "" : " apart " + std::to_string(d.most)) + '\n';
    if (d.warm_up > Duration::zero()) all += "warm-up " + to_text(d.warm_up) + '\n';
    for (const StudyDesign::Point& point : d.points) {
      for (std::size_t a = 0; a < d.axes.size(); ++a)
        all += d.axes[a].name + '=' + point.labels[a] + '\n';
      all += point.resolved + '\n';
    }
    d.hash = analysis::sha256(all);
  }

  const Node& root_;
  std::string file_;
  const StudyChanges& changes_;
  StudyReadResult& result_;
  Fields fields_;
  std::vector<const Node*> metric_nodes_;
};

StudyReadResult read_study(const std::shared_ptr<const Source>& source, const std::string& file,
                           const StudyChanges& changes, StudyReadResult result) {
  if (source == nullptr) return result;
  const Node root = parse_json(source, result.diagnostics);
  if (!result.ok()) return result;
  if (root.kind != Node::Kind::object) {
    result.diagnostics.push_back(
        diagnose(root.place, At::value, "", "expected an object, found " + root.as_found(),
                 "a study is {\"extends\": \"base.json\", \"axes\": {…}}", "bad-type"));
    return result;
  }
  StudyReader(root, file, changes, result).read();
  return result;
}

}  // namespace

std::string stage_key(const Scenario& scenario) {
  Scenario rest = scenario;
  const Scenario plain;
  rest.schema = rest.name = rest.description = "";
  rest.seed = plain.seed;
  rest.duration = plain.duration;
  rest.failures = plain.failures;
  rest.facility.reset();
  rest.economics.reset();
  rest.cluster.repair = plain.cluster.repair;
  rest.cluster.exclude.reset();
  for (auto& [name, job] : rest.jobs) {
    const models::JobSpec nothing;
    job.checkpoint = nothing.checkpoint;
    job.restart = nothing.restart;
  }
  return write_scenario(rest);
}

StudyReadResult read_study_file(const std::string& file, const StudyChanges& changes) {
  StudyReadResult result;
  const auto source = load_source(file, result.diagnostics);
  return read_study(source, file, changes, std::move(result));
}

StudyReadResult read_study_text(const std::string& text, const std::string& name,
                                const StudyChanges& changes) {
  StudyReadResult result;
  const auto source = make_source(name, text, result.diagnostics);
  return read_study(source, name, changes, std::move(result));
}

}  // namespace trainyard::scenarios
