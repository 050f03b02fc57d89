#include "scenarios/study_folder.hpp"

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "analysis/paired_statistics.hpp"
#include "analysis/text_file.hpp"
#include "models/training/ledger.hpp"
#include "scenarios/json_path.hpp"

namespace trainyard::scenarios {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

namespace {

constexpr double not_defined = std::numeric_limits<double>::quiet_NaN();

double figure_of(const Json& result, const std::string& path) {
  std::vector<std::string> known;
  const Json* found = find_figure(result, path, known);
  return found != nullptr && found->is_number() ? found->get<double>() : not_defined;
}

/// Of the time after the warm-up; `before` is null if there is none.
double figure_after(const Json& result, const Json* before, const std::string& path) {
  if (before == nullptr) return figure_of(result, path);
  if (is_additive(path)) return figure_of(result, path) - figure_of(*before, path);
  const std::string job = path.substr(0, path.rfind('.') + 1);  // of its goodput
  return (figure_of(result, job + "kept_s") - figure_of(*before, job + "kept_s")) /
         (figure_of(result, job + "elapsed_s") - figure_of(*before, job + "elapsed_s"));
}

double value_of(const MetricFormula& formula, const Json& result, const Json* before) {
  double value = 1;
  for (const MetricFormula::Factor& factor : formula.factors) {
    const double x =
        factor.path.empty() ? factor.number : figure_after(result, before, factor.path);
    value = factor.is_divisor ? value / x : value * x;
  }
  return std::isfinite(value) ? value : not_defined;
}

std::string padded(std::size_t n, std::size_t digits) {
  std::string text = std::to_string(n);
  return std::string(text.size() < digits ? digits - text.size() : 0, '0') + text;
}

}  // namespace

bool is_settled(const StudyDesign& design, const std::vector<double>& values) {
  if (values.size() >= design.most) return true;
  if (values.size() < design.least || !design.precision) return false;
  // Looked at after `least` and then each time that there are a quarter more: fewer looks stop by
  // luck less often.
  std::size_t look = design.least;
  while (look < values.size()) look += std::max<std::size_t>(1, look / 4);
  return look == values.size() && analysis::mean_interval(values, design.confidence).half_width <=
                                      design.precision->half_width;
}

StudyFolder::StudyFolder(const StudyDesign& design, std::string folder, bool resume)
    : design_(design), folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(fs::path(folder_) / "runs", error);
  if (error) throw StudyRefused("cannot make the folder '" + folder_ + "': " + error.message());
  const std::string about = folder_ + "/study.json";
  if (fs::exists(about, error)) {
    const Json known = Json::parse(analysis::read_text_file(about), nullptr, false);
    const std::string hash = known.is_object() ? known.value("hash", "") : "";
    if (hash != design_.hash)
      throw StudyRefused("the folder '" + folder_ +
                         "' holds results of another study, or of this one with other scenarios: "
                         "name another folder, or remove it");
    if (!resume)
      throw StudyRefused("the folder '" + folder_ +
                         "' holds results of this study: --resume goes on with it");
    return;
  }
  Ordered json;
  json["schema"] = "trainyard-study-1";
  json["name"] = design_.name;
  json["hash"] = design_.hash;
  analysis::write_text_file(about, json.dump(2) + '\n');
}

std::string StudyFolder::name_of(std::size_t point, std::size_t replication) const {
  return "p" + padded(point, 4) + "-r" + padded(replication, 4);
}

std::string StudyFolder::run_file(std::size_t point, std::size_t replication) const {
  return folder_ + "/runs/" + name_of(point, replication) + ".h5";
}

bool StudyFolder::has(std::size_t point, std::size_t replication) const {
  std::error_code none;
  return fs::exists(folder_ + "/runs/" + name_of(point, replication) + ".json", none);
}

analysis::StudyRun StudyFolder::read(const std::string& text, std::size_t point,
                                     std::size_t replication, const std::string& file,
                                     About* about) const {
  const Json json = Json::parse(text, nullptr, false);
  const auto refuse = [&](const std::string& why) {
    throw StudyRefused(file + ": " + why + "; remove it, and --resume runs it again");
  };
  if (!json.is_object() || !json.contains("result") || !json["result"].is_object())
    refuse("it is damaged: not the result of a run");
  if (json.value("study", "") != design_.hash) refuse("it is a run of another study");
  const Json& result = json["result"];
  analysis::StudyRun run;
  run.point = point;
  run.replication = replication;
  run.seed = design_.seed_of(point, replication);
  run.state = result.value("state", "failed");
  run.fingerprint = result.value("fingerprint", "");
  if (about != nullptr) about->build = json.value("version", "") + ' ' + json.value("commit", "");
  if (about != nullptr && result.contains("no_effect") && result["no_effect"].is_array())
    for (const Json& setting : result["no_effect"])
      if (setting.is_string()) about->no_effect.push_back(setting.get<std::string>());
  const Json* before = nullptr;
  if (design_.warm_up > Duration::zero()) {
    if (!json.contains("before")) refuse("it lacks the result at the end of the warm-up");
    before = &json["before"];
  }
  for (const MetricFormula& formula : design_.formulas)
    run.values.push_back(run.is_complete() ? value_of(formula, result, before) : not_defined);
  for (std::size_t a = 0; a < models::accounts; ++a) {
    std::vector<std::string> known;
    const Json* gpu_s = find_figure(
        result, "cluster.ledger_gpu_s." + std::string(models::name_of(models::Account(a))), known);
    run.ledger_gpu_s.push_back(gpu_s != nullptr && gpu_s->is_number() ? gpu_s->get<double>() : 0);
  }
  return run;
}

std::optional<analysis::StudyRun> StudyFolder::result(std::size_t point, std::size_t replication,
                                                      About* about) const {
  if (!has(point, replication)) return std::nullopt;
  const std::string file = folder_ + "/runs/" + name_of(point, replication) + ".json";
  return read(analysis::read_text_file(file), point, replication, file, about);
}

analysis::StudyRun StudyFolder::save(std::size_t point, std::size_t replication,
                                     const std::string& result, const std::string& before,
                                     const std::string& version, const std::string& commit) const {
  const std::string file = folder_ + "/runs/" + name_of(point, replication) + ".json";
  const std::string text =
      "{\"schema\": \"trainyard-study-run-1\", \"study\": \"" + design_.hash +
      "\", \"point\": " + std::to_string(point) +
      ", \"replication\": " + std::to_string(replication) +
      ", \"version\": " + Json(version).dump() + ", \"commit\": " + Json(commit).dump() +
      (before.empty() ? "" : ", \"before\": " + before) + ", \"result\": " + result + "}\n";
  analysis::StudyRun run = read(text, point, replication, file, nullptr);
  analysis::write_text_file(file, text);
  return run;
}

analysis::Study StudyFolder::merged() const {
  analysis::Study study;
  study.name = design_.name;
  study.description = design_.description;
  study.question = design_.question;
  study.hash = design_.hash;
  study.base = design_.base;
  study.common_random_numbers = design_.common_random_numbers;
  study.confidence = design_.confidence;
  study.axes = design_.axes;
  study.metrics = design_.metrics;
  for (std::size_t a = 0; a < models::accounts; ++a)
    study.accounts.emplace_back(models::name_of(models::Account(a)));
  std::set<std::string> builds;
  std::optional<std::set<std::string>> idle;  // in all complete runs so far
  for (std::size_t p = 0; p < design_.points.size(); ++p) {
    study.points.push_back({design_.points[p].labels, design_.points[p].numbers});
    std::vector<double> values;
    for (std::size_t r = 0; !is_settled(design_, values); ++r) {
      About about;
      auto run = result(p, r, &about);
      if (!run) {
        if (design_.precision && r >= design_.least) break;
        run.emplace();
        run->point = p;
        run->replication = r;
        run->seed = design_.seed_of(p, r);
        run->state = "missing";
        run->values.assign(design_.metrics.size(), not_defined);
      }
      if (!about.build.empty()) builds.insert(about.build);
      if (run->is_complete()) {
        const std::set<std::string> here(about.no_effect.begin(), about.no_effect.end());
        if (!idle)
          idle = here;
        else
          std::erase_if(*idle, [&](const std::string& setting) { return !here.contains(setting); });
      }
      values.push_back(design_.precision ? run->values[design_.precision->metric] : 0.0);
      study.runs.push_back(std::move(*run));
    }
  }
  for (const std::string& build : builds)
    study.builds += (study.builds.empty() ? "" : ", ") + build;
  if (idle) study.no_effect.assign(idle->begin(), idle->end());
  return study;
}

void StudyFolder::write_manifest(const analysis::Study& study) const {
  std::string out;
  std::size_t number = 0;
  for (const analysis::StudyRun& run : study.runs) {
    Ordered line;
    line["run"] = number++;
    line["point"] = run.point;
    line["replication"] = run.replication;
    line["seed"] = run.seed;
    line["state"] = run.state;
    line["file"] = run.state == "missing"
                       ? Ordered(nullptr)
                       : Ordered("runs/" + name_of(run.point, run.replication) + ".json");
    Ordered parameters = Ordered::object();
    for (std::size_t a = 0; a < study.axes.size(); ++a)
      parameters[study.axes[a].name] = study.points[run.point].labels[a];
    line["parameters"] = std::move(parameters);
    out += line.dump() + '\n';
  }
  analysis::write_text_file(folder_ + "/manifest.jsonl", out);
}

}  // namespace trainyard::scenarios
