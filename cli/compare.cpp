#include "cli/compare.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "analysis/breakdown.hpp"
#include "analysis/run_reader.hpp"
#include "analysis/study_file.hpp"
#include "analysis/study_statistics.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "scenarios/study.hpp"

/// trainyard compare A B.
namespace trainyard::cli {
namespace {

namespace fs = std::filesystem;
using analysis::Better;
using analysis::Study;
using Json = nlohmann::json;

const Usage& usage() {
  static const Usage table{
      .command = "compare",
      .arguments = "A B [OPTIONS]",
      .what =
          "Two runs or two studies beside each other: settings that differ first, then metrics "
          "with "
          "the difference, its interval and a verdict in words, then where the GPU time went. A "
          "and "
          "B are run files, folders of studies, or one point of a study: FOLDER@POINT.",
      .examples = {{"trainyard compare one.h5 other.h5", "two runs"},
                   {"trainyard compare out@0 out@4", "two points of a study, on equal luck"},
                   {"trainyard compare before after", "two studies, point by point"}},
      .options = {{"json", "", "print the comparison as one JSON object"}},
      .least = 2,
      .most = 2};
  return table;
}

/// The unit is the suffix of a key; the rest is told by the study's own defaults.
analysis::StudyMetric metric_of_key(const std::string& key) {
  return scenarios::metric_of_figure(key);
}

CompareSide side_of_run(const std::string& file) {
  const analysis::RunReader run(file);
  if (run.state() != analysis::RunState::complete)
    throw Failure(file + ": " + run.notice().value_or("the run did not finish") +
                  "; only complete runs are compared");
  CompareSide side;
  side.name = file;
  side.scenario = run.text("scenario");
  Study& study = side.study;
  study.name = run.text("scenario_name");
  study.points.resize(1);
  analysis::StudyRun& only = study.runs.emplace_back();
  only.state = "complete";
  if (const analysis::Value* seed = run.attribute("seed"))
    if (const auto* number = std::get_if<std::uint64_t>(seed)) only.seed = *number;
  side.what = "a run of " + study.name + ", seed " + std::to_string(only.seed);
  for (const analysis::Attribute& a : run.summary()) {
    const double* real = std::get_if<double>(&a.value);
    const auto* whole = std::get_if<std::int64_t>(&a.value);
    const auto* natural = std::get_if<std::uint64_t>(&a.value);
    if (a.name == "fingerprint" && std::holds_alternative<std::string>(a.value))
      only.fingerprint = std::get<std::string>(a.value);
    if (!real && !whole && !natural) continue;
    study.metrics.push_back(metric_of_key(a.name));
    only.values.push_back(real ? *real : whole ? double(*whole) : double(*natural));
  }
  if (run.has_table("cluster/ledger"))
    for (const analysis::Share& share : analysis::breakdown(run.table("cluster/ledger")).shares) {
      study.accounts.push_back(share.account);
      only.ledger_gpu_s.push_back(share.gpu_s);
    }
  return side;
}

/// Of a study only the runs of one point.
void keep_point(CompareSide& side, std::size_t point) {
  side.point = point;
  std::erase_if(side.study.runs, [&](const auto& run) { return run.point != point; });
}

CompareSide side_of_study(const std::string& path, std::optional<std::size_t> point) {
  const std::string file = fs::is_directory(path) ? path + "/study.h5" : path;
  CompareSide side;
  side.name = path;
  side.study = analysis::read_study(file);
  side.scenario = side.study.base;
  const std::size_t points = side.study.points.size();
  if (!point && points == 1) point = 0;
  if (point && *point >= points)
    throw Failure(path + " has no point " + std::to_string(*point) + ": it has 0 to " +
                  std::to_string(points - 1));
  if (point) {
    keep_point(side, *point);
    side.what =
        std::to_string(side.study.runs.size()) + " runs of " + side.study.name_of_point(*point);
  } else {
    side.what = std::to_string(points) + " points of the study " + side.study.name + ", " +
                std::to_string(side.study.runs.size()) + " runs";
  }
  return side;
}

/// Every plain value of a JSON text under its path.
void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& out) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items())
      flatten(value, path.empty() ? key : path + '.' + key, out);
    return;
  }
  out[path] = json.is_string() ? json.get<std::string>() : json.dump();
}

std::map<std::string, std::string> flat(const std::string& text) {
  std::map<std::string, std::string> out;
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object()) flatten(json, "", out);
  for (const char* key : {"$schema", "name", "description", "seed"}) out.erase(key);
  return out;
}

std::vector<Difference> differing(const CompareSide& a, const CompareSide& b) {
  std::vector<Difference> out;
  const auto labels = [](const CompareSide& side) {
    std::map<std::string, std::string> named;
    if (side.point)
      for (std::size_t x = 0; x < side.study.axes.size(); ++x)
        named[side.study.axes[x].name] = side.study.points[*side.point].labels[x];
    return named;
  };
  const auto add = [&](const std::map<std::string, std::string>& of_a,
                       const std::map<std::string, std::string>& of_b, const char* prefix) {
    std::map<std::string, std::pair<std::string, std::string>> both;
    for (const auto& [path, value] : of_a) both[path].first = value;
    for (const auto& [path, value] : of_b) both[path].second = value;
    for (const auto& [path, values] : both)
      if (values.first != values.second)
        out.push_back({prefix + path, values.first, values.second});
  };
  add(labels(a), labels(b), "axis ");
  add(flat(a.scenario), flat(b.scenario), "");
  return out;
}

/// Pairs of points that are compared: the two that are meant, or those with equal labels.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of_points(const CompareSide& a,
                                                                 const CompareSide& b) {
  if (a.point.has_value() != b.point.has_value() &&
      (a.study.points.size() > 1 || b.study.points.size() > 1))
    if (!a.point || !b.point)
      throw Failure(
          "one side is a single point and the other a study of several: name a point of "
          "it, FOLDER@POINT");
  if (a.point && b.point) return {{*a.point, *b.point}};
  const auto labels = [](const Study& study, std::size_t p) {
    std::map<std::string, std::string> named;
    for (std::size_t x = 0; x < study.axes.size(); ++x)
      named[study.axes[x].name] = study.points[p].labels[x];
    return named;
  };
  std::vector<std::pair<std::size_t, std::size_t>> out;
  for (std::size_t p = 0; p < a.study.points.size(); ++p)
    for (std::size_t q = 0; q < b.study.points.size(); ++q)
      if (labels(a.study, p) == labels(b.study, q)) out.emplace_back(p, q);
  if (out.empty())
    throw Failure("the two studies have no point in common: name the points, FOLDER@POINT");
  return out;
}

/// Values of a metric by seed, of complete runs.
std::map<std::uint64_t, double> by_seed(const Study& study, std::size_t point, std::size_t metric) {
  std::map<std::uint64_t, double> out;
  for (const analysis::StudyRun& run : study.runs)
    if (run.point == point && run.is_complete() && !std::isnan(run.values[metric]))
      out[run.seed] = run.values[metric];
  return out;
}

std::string verdict_of(const ComparedMetric& m, double confidence) {
  const analysis::MeanInterval& d = m.difference;
  const auto direction = [&](const char* certainty) {
    const bool b_is_higher = d.mean > 0;
    if (m.metric.better == Better::neither)
      return std::string(b_is_higher ? "b is higher" : "a is higher") + certainty;
    const bool b_is_better = b_is_higher == (m.metric.better == Better::higher);
    return std::string(b_is_better ? "b is better" : "a is better") + certainty;
  };
  if (d.n == 0) return "nothing to compare";
  const double noise = 1e-12 * std::max(std::abs(m.a), std::abs(m.b));
  if (std::abs(d.mean) <= noise && (d.n < 2 || d.half_width <= noise)) return "equal";
  if (!std::isfinite(d.half_width)) return direction(", in one run");
  if (std::abs(d.mean) > d.half_width) return direction("");
  char text[64];
  std::snprintf(text, sizeof text, "cannot be told apart at %.4g %%", 100 * confidence);
  return text;
}

ComparedMetric compared(const Comparison& c, std::size_t of_a, std::size_t of_b,
                        const std::vector<std::pair<std::size_t, std::size_t>>& points) {
  ComparedMetric out;
  out.metric = c.a.study.metrics[of_a];
  // One observation a seed: the mean over the pairs of points.
  std::map<std::uint64_t, std::vector<std::pair<double, double>>> pairs;
  std::vector<double> all_a, all_b;
  for (const auto& [p, q] : points) {
    const auto a = by_seed(c.a.study, p, of_a), b = by_seed(c.b.study, q, of_b);
    for (const auto& [seed, value] : a) {
      all_a.push_back(value);
      if (const auto other = b.find(seed); other != b.end())
        pairs[seed].emplace_back(value, other->second);
    }
    for (const auto& [seed, value] : b) all_b.push_back(value);
  }
  std::vector<double> x, y;
  for (const auto& [seed, values] : pairs) {
    if (values.size() < points.size()) continue;
    double a = 0, b = 0;
    for (const auto& [one, other] : values) {
      a += one / double(values.size());
      b += other / double(values.size());
    }
    x.push_back(a);
    y.push_back(b);
  }
  out.is_paired = !x.empty();
  if (out.is_paired) {
    out.n_a = out.n_b = x.size();
    out.difference = analysis::paired_difference(y, x, c.confidence);
    out.a = analysis::mean_interval(x, c.confidence).mean;
    out.b = analysis::mean_interval(y, c.confidence).mean;
  } else if (!all_a.empty() && !all_b.empty()) {
    const auto a = analysis::mean_interval(all_a, c.confidence);
    const auto b = analysis::mean_interval(all_b, c.confidence);
    out.n_a = a.n;
    out.n_b = b.n;
    out.a = a.mean;
    out.b = b.mean;
    out.difference = analysis::unpaired_difference(all_b, all_a, c.confidence);
  }
  out.verdict = verdict_of(out, c.confidence);
  return out;
}

/// Shares of all GPU time, over the runs of these points.
std::map<std::string, double> shares_of(const Study& study,
                                        const std::vector<std::size_t>& points) {
  std::map<std::string, double> out;
  double total = 0;
  for (const analysis::StudyRun& run : study.runs) {
    if (std::find(points.begin(), points.end(), run.point) == points.end()) continue;
    for (std::size_t i = 0; i < run.ledger_gpu_s.size(); ++i) {
      out[study.accounts[i]] += run.ledger_gpu_s[i];
      total += run.ledger_gpu_s[i];
    }
  }
  if (total > 0)
    for (auto& [account, gpu_s] : out) gpu_s /= total;
  return out;
}

}  // namespace

CompareSide read_side(const std::string& argument) {
  const std::size_t at = argument.rfind('@');
  std::optional<std::size_t> point;
  std::string path = argument;
  if (at != std::string::npos && !fs::exists(argument)) {
    std::size_t number = 0;
    const char* end = argument.data() + argument.size();
    const auto [stop, error] = std::from_chars(argument.data() + at + 1, end, number);
    if (error == std::errc{} && stop == end) {
      point = number;
      path = argument.substr(0, at);
    }
  }
  if (!fs::exists(path)) throw Failure("there is no file or folder '" + path + "'");
  if (fs::is_directory(path) || analysis::is_study_file(path)) return side_of_study(path, point);
  if (point) throw Failure(path + " is the file of one run: it has no points");
  return side_of_run(path);
}

Comparison compare(CompareSide a, CompareSide b) {
  Comparison c;
  c.a = std::move(a);
  c.b = std::move(b);
  c.confidence = std::max(c.a.study.confidence, c.b.study.confidence);
  c.settings = differing(c.a, c.b);
  const auto points = pairs_of_points(c.a, c.b);
  for (std::size_t m = 0; m < c.a.study.metrics.size(); ++m) {
    const std::size_t other = c.b.study.metric(c.a.study.metrics[m].name);
    if (other == c.b.study.metrics.size()) continue;
    c.metrics.push_back(compared(c, m, other, points));
  }
  if (c.metrics.empty()) c.notes.emplace_back("the two sides have no metric of one name");
  std::vector<std::size_t> of_a, of_b;
  for (const auto& [p, q] : points) {
    of_a.push_back(p);
    of_b.push_back(q);
  }
  const auto shares_a = shares_of(c.a.study, of_a), shares_b = shares_of(c.b.study, of_b);
  std::map<std::string, std::pair<double, double>> both;
  for (const auto& [account, share] : shares_a) both[account].first = share;
  for (const auto& [account, share] : shares_b) both[account].second = share;
  for (const auto& [account, share] : both)
    if (share.first > 0 || share.second > 0)
      c.ledger.push_back({account, share.first, share.second});
  std::stable_sort(c.ledger.begin(), c.ledger.end(), [](const auto& x, const auto& y) {
    return std::max(x.a, x.b) > std::max(y.a, y.b);
  });
  const bool is_paired = std::any_of(c.metrics.begin(), c.metrics.end(),
                                     [](const ComparedMetric& m) { return m.is_paired; });
  if (!is_paired && !c.metrics.empty())
    c.notes.emplace_back(
        "no two runs have the same seed: differences are not on equal luck, and their intervals "
        "wider than they had to be");
  if (points.size() > 1)
    c.notes.push_back("means over " + std::to_string(points.size()) + " points with equal labels");
  if (c.settings.empty()) c.notes.emplace_back("no setting differs");
  return c;
}

Exit compare_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const Comparison c = compare(read_side(args.positional[0]), read_side(args.positional[1]));
  std::cout << (args.has("json") ? compare_json(c) : compare_text(c, stdout_terminal()));
  return Exit::done;
}

}  // namespace trainyard::cli
