#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/study_statistics.hpp"
#include "cli/study_report.hpp"

/// What a sweep found, for programs.
namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity, and nothing that is no number: null.
Json finite(double x) {
  return std::isfinite(x) ? Json(x) : Json(nullptr);
}

Json interval_json(const analysis::MeanInterval& m) {
  return {{"mean", finite(m.mean)}, {"half_width", finite(m.half_width)}, {"n", m.n}};
}

Json metric_of_point(const analysis::Study& study, std::size_t point, std::size_t metric) {
  const auto values = analysis::finite(analysis::values_of(study, point, metric));
  Json out = interval_json(analysis::mean_interval(values, study.confidence));
  if (values.empty()) out["mean"] = nullptr;
  if (values.size() >= 2) {
    const auto boot = analysis::bootstrap_mean(values, study.confidence);
    out["bootstrap"] = {{"low", boot.low}, {"high", boot.high}};
  }
  if (!values.empty())
    for (const auto& [name, p] : {std::pair("p10", 0.1), {"median", 0.5}, {"p90", 0.9}}) {
      const auto q = analysis::quantile(values, p, study.confidence);
      out[name] = {{"value", q.value}, {"low", finite(q.low)}, {"high", finite(q.high)}};
    }
  return out;
}

}  // namespace

std::string sweep_json(const analysis::Study& study, const SweepFacts& facts) {
  Json out;
  out["schema"] = "trainyard-sweep-1";
  out["study"] = study.name;
  out["hash"] = study.hash;
  out["points"] = study.points.size();
  out["replications"] = study.points.empty() ? 0 : study.runs.size() / study.points.size();
  out["runs"] = study.runs.size();
  std::size_t done = 0, failed = 0;
  for (const analysis::StudyRun& run : study.runs) {
    done += run.is_complete() ? 1 : 0;
    failed += run.state == "failed" ? 1 : 0;
  }
  out["done"] = done;
  out["failed"] = failed;
  out["missing"] = facts.missing;
  out["ran_now"] = facts.outcome.done;
  out["wall_s"] = facts.wall_s;
  out["events"] = facts.outcome.events;
  out["profiles_computed"] = facts.outcome.profiles_computed;
  out["profiles_reused"] = facts.outcome.profiles_reused;
  out["table"] = facts.table;
  out["csv"] = facts.csv;
  out["confidence"] = study.confidence;
  out["failures"] = facts.outcome.failures;

  Json metrics = Json::object();
  for (std::size_t m = 0; m < study.metrics.size(); ++m) {
    Json& metric = metrics[study.metrics[m].name];
    metric["of"] = study.metrics[m].of;
    metric["units"] = study.metrics[m].units;
    metric["better"] = std::string(name_of(study.metrics[m].better));
    Json rankings = Json::array();
    for (const analysis::PointRanking& ranking : analysis::rank_points(study, m)) {
      Json one;
      const std::size_t best = ranking.points[ranking.ranking.best];
      one["given"] = study.name_of_part(best, true);
      one["best_point"] = best;
      one["replications"] = ranking.replications;
      one["pairing_gain"] = ranking.pairing_gain;
      Json tied = Json::array();
      for (std::size_t i = 0; i < ranking.points.size(); ++i)
        if (ranking.ranking.systems[i].is_tied) tied.push_back(ranking.points[i]);
      one["not_told_from_best"] = std::move(tied);
      rankings.push_back(std::move(one));
    }
    metric["rankings"] = std::move(rankings);
    Json effects = Json::array();
    for (const analysis::AxisEffect& e : analysis::axis_effects(study, m)) {
      Json effect = {{"axis", study.axes[e.axis].name}, {"value", e.label}, {"against", e.against}};
      effect.update(interval_json(e.difference));
      effect["pairs_of_points"] = e.points;
      effect["pairing_gain"] = e.pairing_gain;
      effects.push_back(std::move(effect));
    }
    metric["effects"] = std::move(effects);
    Json optima = Json::array();
    for (const analysis::StudyOptimum& o : analysis::optima(study, m)) {
      Json one = {{"axis", study.axes[o.axis].name},
                  {"points", o.points},
                  {"log", o.is_log},
                  {"at_end", o.is_at_end}};
      if (o.top) {
        one["at"] = o.top->at;
        one["low"] = finite(o.top->low);
        one["high"] = finite(o.top->high);
        one["value"] = o.top->value;
      }
      optima.push_back(std::move(one));
    }
    metric["optima"] = std::move(optima);
  }
  out["metrics"] = std::move(metrics);

  Json points = Json::array();
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    Json point;
    Json parameters = Json::object();
    for (std::size_t a = 0; a < study.axes.size(); ++a)
      parameters[study.axes[a].name] = study.points[p].labels[a];
    point["parameters"] = std::move(parameters);
    for (std::size_t m = 0; m < study.metrics.size(); ++m)
      point["metrics"][study.metrics[m].name] = metric_of_point(study, p, m);
    points.push_back(std::move(point));
  }
  out["table_of_points"] = std::move(points);
  Json none = Json::array();
  for (const analysis::NoEffectAxis& axis : analysis::axes_without_effect(study))
    none.push_back({{"axis", study.axes[axis.axis].name}, {"same_events", axis.is_same_run}});
  out["axes_without_effect"] = std::move(none);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace trainyard::cli
