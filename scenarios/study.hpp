#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/study.hpp"
#include "scenarios/json_tree.hpp"
#include "scenarios/read.hpp"

/// A study file: a scenario, what of it is varied, how often each point is run, and what is
/// measured.
///
///     StudyReadResult read = read_study_file("oversubscription.json");
///     if (!read.ok()) std::cerr << to_text(read.diagnostics);
///     for (const StudyDesign::Point& p : read.design.points) … p.scenario …
///
/// All points are read and checked before anything runs. The form of the file:
/// docs/guide/studies.md.
namespace trainyard::scenarios {

/// A figure of a run's result, or a product and quotient of some: "jobs.llm.tokens / simulated_s".
struct MetricFormula {
  struct Factor {
    bool is_divisor = false;
    std::string path;     // empty: a plain number
    double number = 1.0;  // of a plain number
  };
  std::vector<Factor> factors;

  static std::optional<MetricFormula> parse(const std::string& text);
};

/// Runs of a point are added until the interval of one metric is narrow enough.
struct StudyPrecision {
  std::size_t metric = 0;
  double half_width = 0;  // of the interval of its mean, in its unit
};

struct StudyDesign {
  struct Point {
    std::vector<std::string> labels;  // by axis
    std::vector<double> numbers;      // by axis; not a number: none
    Scenario scenario;
    std::string resolved;                // as JSON, every default filled in
    std::vector<std::string> no_effect;  // settings that the reader knows to do nothing
    std::size_t stage = 0;               // points of one stage share fabric and steps
  };
  enum class RunFiles { none, first, all };  // of which replications run files are kept

  std::string name, description, question;
  std::string hash;  // of all that decides what a run gives
  std::string base;  // the scenario without any axis, resolved; empty: it cannot stand alone
  bool common_random_numbers = true;
  std::uint64_t seed = 1;
  double confidence = 0.95;
  Duration warm_up{};               // metrics are of the time after it; zero: of all
  std::size_t least = 1, most = 1;  // replications of a point; equal: that many
  std::optional<StudyPrecision> precision;
  RunFiles run_files = RunFiles::none;
  std::vector<analysis::StudyAxis> axes;
  std::vector<analysis::StudyMetric> metrics;
  std::vector<MetricFormula> formulas;  // of the metrics
  std::vector<Point> points;
  std::size_t stages = 0;

  /// Of a run. With common random numbers equal replications of all points have one seed.
  std::uint64_t seed_of(std::size_t point, std::size_t replication) const {
    return seed + replication + (common_random_numbers ? 0 : point * most);
  }
  std::size_t most_runs() const { return points.size() * most; }
};

struct StudyReadResult {
  StudyDesign design;  // usable only if ok()
  std::vector<Diagnostic> diagnostics;
  bool ok() const { return diagnostics.empty(); }
};

/// What a command line changes of a study.
struct StudyChanges {
  std::vector<std::string>
      set{};  // as --set: of the scenario, for all points; an axis has the last word
  std::optional<std::uint64_t> seed{};
  std::optional<std::size_t> replications{};  // of each point, no more and no less
};

/// At most `max_points` points.
StudyReadResult read_study_file(const std::string& file, const StudyChanges& changes = {});
StudyReadResult read_study_text(const std::string& text, const std::string& name,
                                const StudyChanges& changes = {});

inline constexpr std::size_t max_points = 10000;
inline constexpr std::size_t max_runs = 1000000;

/// A metric of one figure: its unit from the suffix of its key, its direction from what it is.
analysis::StudyMetric metric_of_figure(const std::string& path);

/// A figure that adds up over time: that of a run less that of its first days is that of the rest.
bool is_additive(const std::string& path);

/// What of a scenario the fabric and the steps of its jobs depend on, as one text: two scenarios
/// with equal keys may use one Stage, one after the other.
std::string stage_key(const Scenario& scenario);

}  // namespace trainyard::scenarios
