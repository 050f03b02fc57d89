#include "analysis/export_openmetrics.hpp"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

namespace trainyard::analysis {
namespace {

/// Base units of the format by our spelling; empty: the name has none.
std::string unit_word(const std::string& units) {
  static const std::map<std::string, std::string> words{
      {"s", "seconds"},  {"W", "watts"}, {"B", "bytes"},   {"B/s", "bytes_per_second"},
      {"J", "joules"},   {"V", "volts"}, {"A", "amperes"}, {"degree_Celsius", "celsius"},
      {"USD", "dollars"}};
  const auto found = words.find(units);
  return found == words.end() ? "" : found->second;
}

std::string metric_name(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}

std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string number(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "+Inf" : "-Inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", x);
  return text;
}

/// Samples of one name are together, as the format demands: jobs/a/step_time and jobs/b/step_time
/// are one metric with two labels.
struct Family {
  std::string help, unit;
  std::string samples;
};

/// "jobs/llm/step_time": the metric job_step_time with the label job="llm". Other names have the
/// part before the last as a label.
std::pair<std::string, std::string> split(const std::string& name) {
  const std::size_t last = name.rfind('/');
  if (last == std::string::npos) return {name, ""};
  const std::size_t first = name.find('/');
  const std::string kind = name.substr(0, first);
  if (kind == "jobs" && first != last)
    return {"job_" + name.substr(last + 1),
            ",job=\"" + label_value(name.substr(first + 1, last - first - 1)) + '"'};
  return {name.substr(0, last), ",part=\"" + label_value(name.substr(last + 1)) + '"'};
}

}  // namespace

std::string openmetrics_of(const RunReader& run, double epoch_s) {
  std::map<std::string, Family> families;
  const std::string scenario = "scenario=\"" + label_value(run.text("scenario_name")) + '"';
  for (const std::string& name : run.series_names()) {
    const Series series = run.series(name);
    const auto [base, label] = split(name);
    const std::string unit = unit_word(series.units);
    const std::string full =
        "trainyard_" + metric_name(base) + (unit.empty() || base.ends_with(unit) ? "" : '_' + unit);
    Family& family = families[full];
    family.help = series.long_name;
    family.unit = unit;
    for (std::size_t i = 0; i < series.value.size(); ++i) {
      // Of several samples at one instant the last one counts.
      if (i + 1 < series.value.size() && series.time_ns[i + 1] == series.time_ns[i]) continue;
      char when[48];
      std::snprintf(when, sizeof when, "%.9f", epoch_s + double(series.time_ns[i]) / 1e9);
      family.samples +=
          full + '{' + scenario + label + "} " + number(series.value[i]) + ' ' + when + '\n';
    }
  }
  for (const Attribute& a : run.summary()) {
    const double* real = std::get_if<double>(&a.value);
    const auto* whole = std::get_if<std::int64_t>(&a.value);
    if (real == nullptr && whole == nullptr) continue;
    const std::string full = "trainyard_summary_" + metric_name(a.name);
    families[full].help = "at the end of the run: " + a.name;
    families[full].samples +=
        full + '{' + scenario + "} " + number(real != nullptr ? *real : double(*whole)) + '\n';
  }
  std::string out;
  for (const auto& [name, family] : families) {
    out += "# TYPE " + name + " gauge\n";
    if (!family.unit.empty()) out += "# UNIT " + name + ' ' + family.unit + '\n';
    out += "# HELP " + name + ' ' + label_value(family.help) + '\n' + family.samples;
  }
  return out + "# EOF\n";
}

}  // namespace trainyard::analysis
