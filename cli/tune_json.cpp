#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/tune_report.hpp"

/// What trainyard tune found, for programs.
namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;
using scenarios::Losses;

/// JSON has no infinity: null.
Json finite(double x) {
  return std::isfinite(x) ? Json(x) : Json(nullptr);
}

Json ranked_json(const analysis::Ranked& r, bool is_best) {
  return {{"goodput", r.value.mean}, {"goodput_half_width", finite(r.value.half_width)},
          {"behind", r.behind.mean}, {"behind_half_width", finite(r.behind.half_width)},
          {"best", is_best},         {"tied", r.is_tied}};
}

Json losses_json(const Losses& l) {
  return {{"save", l.save},       {"lost", l.lost},       {"detection", l.detection},
          {"restart", l.restart}, {"waiting", l.waiting}, {"other", l.other}};
}

std::string row(const std::vector<double>& values) {
  std::string out;
  for (const double v : values) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    out += ',' + std::string(text);
  }
  return out + '\n';
}

constexpr const char* common_columns =
    "goodput,goodput_half_width,behind,behind_half_width,tied,save,lost,detection,restart,waiting,"
    "other";

std::vector<double> common(const analysis::Ranked& r, const Losses& l) {
  return {r.value.mean,
          r.value.half_width,
          r.behind.mean,
          r.behind.half_width,
          double(r.is_tied),
          l.save,
          l.lost,
          l.detection,
          l.restart,
          l.waiting,
          l.other};
}

}  // namespace

std::string tune_json(const scenarios::CheckpointTune& t) {
  Json out{{"schema", "trainyard-tune-checkpoint-1"},
           {"job", t.job},
           {"level", t.level},
           {"gpus", t.gpus},
           {"simulated_s", t.simulated_s},
           {"seed", t.seed},
           {"replications", t.replications},
           {"runs", t.runs},
           {"confidence", t.confidence},
           {"precise", t.is_precise},
           {"best_interval_s", t.points[t.best].interval_s}};
  if (t.now) out["now_interval_s"] = t.points[*t.now].interval_s;
  if (t.optimum)
    out["optimum"] = {{"interval_s", t.optimum->at},
                      {"low_s", t.optimum->low},
                      {"high_s", t.optimum->high},
                      {"goodput", t.optimum->value}};
  out["measured"] = {{"save_s", t.save_s},
                     {"mtbi_s", t.mtbi_s},
                     {"recovery_s", t.recovery_s},
                     {"step_s", t.step_s}};
  out["formulas"] = {{"exact", {{"interval_s", t.exact_s}, {"goodput", t.exact_goodput}}},
                     {"daly", {{"interval_s", t.daly_s}, {"goodput", t.daly_goodput}}},
                     {"young", {{"interval_s", t.young_s}, {"goodput", t.young_goodput}}}};
  out["points"] = Json::array();
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const scenarios::IntervalPoint& p = t.points[i];
    Json point{{"interval_s", p.interval_s}, {"now", p.is_now}};
    point.update(ranked_json(p.ranked, i == t.best));
    point["losses"] = losses_json(p.losses);
    point["theory"] = p.theory;
    point["saves"] = p.saves;
    point["saves_lost"] = p.saves_lost;
    point["interruptions"] = p.interruptions;
    out["points"].push_back(std::move(point));
  }
  out["notes"] = t.notes;
  return out.dump(2) + '\n';
}

std::string tune_csv(const scenarios::CheckpointTune& t) {
  std::string out =
      "interval_s," + std::string(common_columns) + ",theory,saves,saves_lost,interruptions\n";
  for (const scenarios::IntervalPoint& p : t.points) {
    std::vector<double> values{p.interval_s};
    for (const double v : common(p.ranked, p.losses)) values.push_back(v);
    for (const double v : {p.theory, p.saves, p.saves_lost, p.interruptions}) values.push_back(v);
    out += row(values).substr(1);
  }
  return out;
}

std::string tune_json(const scenarios::SparesTune& t) {
  Json out{{"schema", "trainyard-tune-spares-1"},
           {"job", t.job},
           {"gpus", t.gpus},
           {"working_servers", t.working_servers},
           {"simulated_s", t.simulated_s},
           {"seed", t.seed},
           {"replications", t.replications},
           {"runs", t.runs},
           {"confidence", t.confidence},
           {"precise", t.is_precise},
           {"verdicts", Json::array()},
           {"points", Json::array()}};
  for (const scenarios::SparesVerdict& v : t.verdicts)
    out["verdicts"].push_back({{"crews", v.crews},
                               {"suffice", v.suffice},
                               {"most_kept_of_all_gpus", v.best_of_all_gpus},
                               {"down_servers", v.down_servers},
                               {"binomial_p99", v.p99}});
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    const scenarios::SparesPoint& p = t.points[i];
    Json point{{"spares", p.spares}, {"crews", p.crews}, {"now", p.is_now}};
    point.update(ranked_json(p.ranked, i == t.best));
    point["losses"] = losses_json(p.losses);
    point["kept_of_all_gpus"] = p.of_all_gpus;
    point["down_servers"] = p.down_servers;
    point["interruptions"] = p.interruptions;
    out["points"].push_back(std::move(point));
  }
  out["notes"] = t.notes;
  return out.dump(2) + '\n';
}

std::string tune_csv(const scenarios::SparesTune& t) {
  std::string out = "spares,crews," + std::string(common_columns) +
                    ",kept_of_all_gpus,down_servers,interruptions\n";
  for (const scenarios::SparesPoint& p : t.points) {
    std::vector<double> values{double(p.spares), double(p.crews)};
    for (const double v : common(p.ranked, p.losses)) values.push_back(v);
    for (const double v : {p.of_all_gpus, p.down_servers, p.interruptions}) values.push_back(v);
    out += row(values).substr(1);
  }
  return out;
}

}  // namespace trainyard::cli
