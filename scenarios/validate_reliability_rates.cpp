#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include <boost/math/special_functions/gamma.hpp>

#include "scenarios/reliability_run.hpp"
#include "scenarios/validate_reliability.hpp"

namespace trainyard::scenarios {
namespace {

using namespace std::chrono_literals;
using models::FailureInputs;

constexpr double day_s = 86'400;

/// A job of all these GPUs that is back at once after each failure, with servers to spare.
ReliabilityRun watched(const FailureInputs& failures, double gpus, double days) {
  ReliabilityRun run;
  run.gpus = std::int64_t(gpus);
  run.failures = failures;
  run.duration = seconds(days * day_s);
  run.step = 60s;
  run.checkpoint = saves_every(24h, 0s);
  run.restart = {.replace = 0s, .start_up = 0s, .load = false};
  return run;
}

struct Figure99 {
  MeanWithInterval value;
  std::string profile;
  bool is_input = false;  // the profile holds this very figure: the row checks that runs show it
};
using FigureOrReason = std::variant<Figure99, SkipReason>;

Figure99 scaled(const MeanWithInterval& m, double factor, std::string profile, bool is_input) {
  return {{m.mean * factor, m.half_width * factor}, std::move(profile), is_input};
}

template <class F>
MeanWithInterval mean_over(const ReliabilityEstimate& e, F&& f) {
  std::vector<double> values;
  for (const ReliabilityOutcome& one : e.runs) values.push_back(f(one));
  return mean_of(values);
}

double failed_servers(const ReliabilityOutcome& one) {
  return double(std::count_if(one.failures_of_server.begin(), one.failures_of_server.end(),
                              [](std::int64_t n) { return n > 0; }));
}

double variation_of_gaps(const ReliabilityOutcome& one) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < one.at_s.size(); ++i) gaps.push_back(one.at_s[i] - one.at_s[i - 1]);
  const MeanWithInterval m = mean_of(gaps);
  // mean_of's interval is 2.5758 standard deviations over the root of the number.
  return m.half_width / 2.5758 * std::sqrt(double(gaps.size())) / m.mean;
}

FigureOrReason rsc(std::string_view study, std::string_view metric, std::optional<double> gpus) {
  const std::string profile = study == "rsc2" ? "rsc-2" : "rsc-1";
  FailureInputs failures = *failures_of(profile);
  if (metric == "node failure rate") {
    const auto e = estimate(watched(failures, 16000, 60), 20);
    return scaled(mean_over(e, [](const auto& one) { return double(one.interruptions); }),
                  1000 / (2000.0 * 60), profile, true);
  }
  if (metric != "job MTTF" || !gpus)
    return SkipReason("a figure of the job mix, or an input of the profile");
  if (*gpus < 1000) failures.lemons.reset();  // a job of a few servers has none, or only lemons
  const double servers = *gpus / 8;
  const auto e = estimate(watched(failures, *gpus, std::max(5.0, 8e4 / servers)), 20);
  return scaled(e.between_interruptions_s, 1 / 3600.0, profile, false);
}

FigureOrReason llama3(std::string_view metric, double gpus) {
  const auto e = estimate(watched(*failures_of("llama3-pretraining"), gpus, 54), 20);
  const std::string profile = "llama3-pretraining";
  if (metric == "unexpected interruptions") return scaled(e.interruptions, 1, profile, true);
  if (metric.starts_with("mean time between"))
    return scaled(e.between_interruptions_s, 1 / 3600.0, profile, true);
  if (metric.starts_with("GPU-hours"))
    return scaled(e.between_interruptions_s, gpus / 3600.0, profile, true);
  return SkipReason("not modelled");
}

FigureOrReason ft_hsdp(double gpus) {
  const auto e = estimate(watched(*failures_of("ft-hsdp"), gpus, 20), 10);
  return scaled(e.interruptions, 1000 / (gpus / 8 * 20), "ft-hsdp", true);
}

FigureOrReason infinitehbd(std::string_view metric, double gpus) {
  const FailureInputs failures = *failures_of("infinitehbd");
  const std::string profile = "infinitehbd";
  if (metric.starts_with("time out of service")) {
    sim::Stream luck = sim::Stream(sim::Seed{1}, "time out of service");
    std::vector<double> hours;
    for (int i = 0; i < 100'000; ++i)
      hours.push_back(to_seconds(models::draw(failures.classes.at("hardware").repair, luck)) /
                      3600);
    if (metric.ends_with("mean")) return Figure99{mean_of(hours), profile, true};
    std::nth_element(hours.begin(), hours.begin() + 90'000, hours.end());
    return Figure99{{hours[90'000], 0}, profile, false};
  }
  ReliabilityRun run = watched(failures, gpus, 348);
  run.spares = 0;  // all servers are in the job: whatever fails is seen
  const auto e = estimate(run, 20);
  if (metric.starts_with("hardware faults"))
    return scaled(mean_over(e,
                            [](const auto& one) {
                              const auto found = one.by_class.find("hardware");
                              return found == one.by_class.end() ? 0.0 : double(found->second);
                            }),
                  1000 / (gpus / 8 * 348), profile, true);
  if (metric.starts_with("servers with"))
    return Figure99{mean_over(e, failed_servers), profile, true};
  if (metric.starts_with("coefficient of variation"))
    return Figure99{mean_over(e, variation_of_gaps), profile, false};
  return SkipReason("not modelled");
}

FigureOrReason delta(std::string_view metric) {
  ReliabilityRun run = watched(*failures_of("delta-h100"), 1056, 365);
  run.gpus_per_server = 4;
  const auto e = estimate(run, 20);
  if (metric.starts_with("uncorrectable"))
    return scaled(e.between_interruptions_s, 1056 / 3600.0, "delta-h100", true);
  return Figure99{mean_over(e,
                            [](const auto& one) {
                              return 100 *
                                     (1 - one.down_server_s / (double(one.servers) * one.wall_s));
                            }),
                  "delta-h100", true};
}

/// Clusters of which the size is known and the failures are not.
FigureOrReason planned(double gpus, double days, const std::vector<std::string>& classes) {
  FailureInputs of_planning = *failures_of("planning-defaults"), failures;
  for (const std::string& name : classes) failures.classes[name] = of_planning.classes.at(name);
  const auto e = estimate(watched(failures, gpus, days), 200);
  return scaled(e.interruptions, 1, "planning-defaults", false);
}

FigureOrReason figure_of(std::string_view study, std::string_view metric,
                         std::optional<double> gpus) {
  if (study.starts_with("rsc")) return rsc(study, metric, gpus);
  if (study == "llama3" && gpus) return llama3(metric, *gpus);
  if (study == "ft-hsdp" && gpus) return ft_hsdp(*gpus);
  if (study == "infinitehbd" && gpus) return infinitehbd(metric, *gpus);
  if (study == "delta") return delta(metric);
  if (study == "bloom" && gpus && metric == "GPU hardware failures")
    return planned(*gpus, 7, {"gpu"});
  if (study == "lablup" && gpus) return planned(*gpus, 55, {"gpu", "server"});
  if (study == "opt") return SkipReason("restarts by hand and for loss divergence are among them");
  return SkipReason("no run of known size stands behind it");
}

RowResult predict_rate(const PublishedTable& table, const TableRow& row,
                       std::vector<Diagnostic>& mistakes) {
  const std::string_view study = table.text(row, "study"), metric = table.text(row, "metric");
  const auto gpus = table.number(row, "gpus", mistakes);
  const auto published = first_number(table.text(row, "value"));
  if (!published) return SkipReason("no number");
  auto found = figure_of(study, metric, gpus);
  if (auto* reason = std::get_if<SkipReason>(&found)) return std::move(*reason);
  const Figure99& figure = std::get<Figure99>(found);
  RowPrediction out;
  out.published = *published;
  out.predicted = figure.value.mean;
  const int decimals = figure.value.mean < 10 ? 3 : figure.value.mean < 1000 ? 1 : 0;
  out.method = "profile " + figure.profile + ": " +
               with_interval(figure.value.mean, figure.value.half_width, decimals);
  out.uncertainty = figure.is_input ? Uncertainty::calibrated : Uncertainty::extrapolated;
  out.groups = {{"row", figure.is_input ? "what the profile was made from" : "predicted"},
                {"study", std::string(study)}};
  return out;
}

// --- categories ----------------------------------------------------------------------------------

struct StudyProfile {
  std::string_view study, profile;
};
constexpr std::array study_profiles{StudyProfile{"llama3-405b", "llama3-pretraining"},
                                    StudyProfile{"acme", "acme"},
                                    StudyProfile{"ft-hsdp-32k", "ft-hsdp"}};

struct CategoryName {
  std::string_view published, cls;
};
constexpr std::array category_names{CategoryName{"Unplanned host maintenance", "host-maintenance"},
                                    CategoryName{"GPU SRAM memory", "gpu-sram"},
                                    CategoryName{"GPU system processor", "gpu-processor"},
                                    CategoryName{"NCCL watchdog timeout", "nccl-watchdog"},
                                    CategoryName{"Silent data corruption", "silent-corruption"},
                                    CategoryName{"Server chassis", "chassis"},
                                    CategoryName{"HBM3 memory", "hbm3"}};

std::string class_of(std::string_view category) {
  for (const CategoryName& known : category_names)
    if (known.published == category) return std::string(known.cls);
  std::string out;
  for (const char c : category)
    out += c == ' ' ? '-' : char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Simulated runs of a study, and the counts that its profile holds.
struct Study {
  std::string profile;
  std::map<std::string, double> counts;  // by class, unplanned
  double all = 0;
  ReliabilityEstimate runs;
  std::vector<double> p;  // of each run
};

Study study_of(const std::string& profile, double gpus, double days) {
  Study out;
  out.profile = profile;
  const FailureInputs failures = *failures_of(profile);
  std::vector<double> expected;
  for (const auto& [name, cls] : failures.classes) {
    if (cls.effect == models::Effect::maintenance) continue;
    out.counts[name] = *cls.lifetime.count;
    expected.push_back(*cls.lifetime.count);
    out.all += *cls.lifetime.count;
  }
  out.runs = estimate(watched(failures, gpus, days), 20);
  for (const ReliabilityOutcome& one : out.runs.runs) {
    std::vector<double> counts;
    for (const auto& [name, count] : out.counts) {
      const auto found = one.by_class.find(name);
      counts.push_back(found == one.by_class.end() ? 0.0 : double(found->second));
    }
    out.p.push_back(chi_square_p(counts, expected));
  }
  return out;
}

class Categories {
 public:
  RowResult predict(const PublishedTable& table, const TableRow& row,
                    std::vector<Diagnostic>& mistakes) {
    const std::string_view name = table.text(row, "study"), count = table.text(row, "count");
    const auto known = std::find_if(study_profiles.begin(), study_profiles.end(),
                                    [&](const StudyProfile& s) { return s.study == name; });
    if (known == study_profiles.end())
      return SkipReason("shares or counts of something else than a run or cluster of known size");
    const auto gpus = table.number(row, "gpus", mistakes);
    const auto days = table.number(row, "duration_days", mistakes);
    if (count.empty() || !gpus) return SkipReason("no count, or no size");
    auto [found, is_new] = studies_.try_emplace(std::string(name));
    if (is_new) {
      found->second = study_of(std::string(known->profile), *gpus, days.value_or(72));
    }
    const Study& study = found->second;
    const std::string cls = class_of(table.text(row, "category"));
    if (!study.counts.contains(cls))
      return SkipReason("profile " + study.profile + " has no class " + in_quotes(cls));
    const MeanWithInterval share = mean_over(study.runs, [&](const ReliabilityOutcome& one) {
      const auto struck = one.by_class.find(cls);
      return struck == one.by_class.end()
                 ? 0.0
                 : 100 * double(struck->second) / double(one.interruptions);
    });
    RowPrediction out;
    out.published = 100 * first_number(count).value_or(0) / study.all;
    out.predicted = share.mean;
    const auto rare =
        std::count_if(study.p.begin(), study.p.end(), [](double p) { return p < 0.05; });
    out.method = "profile " + study.profile + ": " +
                 with_interval(share.mean, share.half_width, 2) +
                 " %; chi-square of seed 1: p = " + std::to_string(study.p.front()).substr(0, 4) +
                 ", below 0.05 for " + std::to_string(rare) + " of 20 seeds";
    out.uncertainty = Uncertainty::calibrated;
    out.groups = {{"study", std::string(name)},
                  {"component", std::string(table.text(row, "component_class"))}};
    return out;
  }

 private:
  std::map<std::string, Study, std::less<>> studies_;
};

RowPredictor start_categories(const ValidationSetup&) {
  return [categories = std::make_shared<Categories>()](
             const PublishedTable& table, const TableRow& row, std::vector<Diagnostic>& mistakes) {
    return categories->predict(table, row, mistakes);
  };
}

}  // namespace

double chi_square_p(const std::vector<double>& counts, const std::vector<double>& expected) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return expected[a] < expected[b]; });
  const double drawn = std::accumulate(counts.begin(), counts.end(), 0.0);
  const double scale = drawn / std::accumulate(expected.begin(), expected.end(), 0.0);
  double chi_square = 0, few = 0, few_expected = 0;
  int classes = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    few += counts[order[i]];
    few_expected += expected[order[i]] * scale;
    if (few_expected < 5 && i + 1 < order.size()) continue;
    chi_square += (few - few_expected) * (few - few_expected) / few_expected;
    ++classes;
    few = few_expected = 0;
  }
  return classes < 2 ? 1.0 : boost::math::gamma_q((classes - 1) / 2.0, chi_square / 2);
}

TableKind failure_rates_table() {
  return {.name = "failure-rates",
          .required = {"study", "gpus", "metric", "value", "unit"},
          .one_of = {},
          .predict = predict_rate,
          .start = nullptr,
          .quantity = {.name = "figure", .column = "value", .unit = "", .per_unit = 1},
          .refers_to = {}};
}

TableKind failure_categories_table() {
  return {.name = "failure-categories",
          .required = {"study", "gpus", "category", "component_class", "count", "duration_days"},
          .one_of = {},
          .predict = nullptr,
          .start = start_categories,
          .quantity = {.name = "share of failures",
                       .column = "share_pct",
                       .unit = "%",
                       .per_unit = 1,
                       .in_points = true},
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
