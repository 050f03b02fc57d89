#include <nlohmann/json.hpp>

#include "cli/facility_report.hpp"

namespace trainyard::cli {

using scenarios::FacilityReport;
using scenarios::RollUp;
using Json = nlohmann::ordered_json;

namespace {

Json json_of(const RollUp& r) {
  Json losses = Json::array();
  for (const scenarios::GroupLoss& loss : r.losses)
    losses.push_back({{"group", loss.group},
                      {"kind", loss.kind},
                      {"units", loss.units},
                      {"power_W", loss.lost.value()}});
  Json out;
  out["gpu_W"] = r.gpu.value();  // of one
  out["gpus_W"] = r.gpus.value();
  out["servers_W"] = r.servers.value();  // without their GPUs
  out["switches_W"] = r.switches.value();
  out["losses"] = std::move(losses);
  out["losses_W"] = r.lost().value();
  out["fans_W"] = r.fans.value();
  out["pumps_W"] = r.pumps.value();
  out["chillers_W"] = r.chillers.value();
  out["coolers_W"] = r.coolers.value();
  out["others_W"] = r.others.value();
  out["site_W"] = r.site().value();
  out["pue"] = r.pue();
  out["is_cooled"] = r.is_cooled;
  out["short_loops"] = r.short_loops;
  out["warmest_air_C"] = r.warmest_air_C;
  out["coolant_C"] = r.coolant_C;
  out["nearest_limit"] = {{"part", r.limit.part}, {"utilisation", r.limit.utilisation}};
  return out;
}

std::string suffixed(const char* key, const std::string& unit) {
  return std::string(key) + "_" + unit;
}

Json json_of(const models::PowerSwing& s) {
  return {{"mean_W", s.mean.value()},
          {"peak_W", s.peak.value()},
          {"low_W", s.low.value()},
          {"range_W", s.range.value()},
          {"rise_W", s.rise.value()},
          {"ramp_W_per_s", s.ramp_W_per_s},
          {"amplitude_W", s.amplitude.value()},
          {"frequency_Hz", s.frequency}};
}

}  // namespace

std::string facility_json(const FacilityReport& r) {
  Json ratings = Json::array(), violations = Json::array(), losses = Json::array(),
       shared = Json::array(), jobs = Json::array(), swing = Json::array();
  for (const scenarios::NodeLoad& n : r.ratings)
    ratings.push_back({{"node", n.node},
                       {"group", n.group},
                       {"kind", n.kind},
                       {suffixed("load", n.unit), n.load},
                       {suffixed("allowed", n.unit), n.allowed},
                       {"where", n.where},
                       {"share", n.share()}});
  for (const models::Finding& f : r.violations)
    violations.push_back({{"node", f.node},
                          {suffixed("found", f.unit), f.found},
                          {suffixed("limit", f.unit), f.limit},
                          {"where", f.where},
                          {"text", to_text(f)}});
  for (const scenarios::NodeLoss& loss : r.losses) {
    Json out = {{"node", loss.node},
                {"group", loss.group},
                {"alike", loss.alike},
                {"dark_racks", loss.dark_racks},
                {"dark_load_W", loss.dark_load.value()},
                {"dark_loads", loss.dark_loads},
                {"overloaded_nodes", loss.overloaded},
                {"dark_racks_after_trips", loss.dark_after_trips},
                {"worst", nullptr}};
    if (loss.worst)
      out["worst"] = {
          {"node", loss.worst->node},
          {"ratio", loss.worst->ratio},
          {"ratio_before", loss.worst->before},
          {"trips_after_s", loss.worst->trips ? Json(to_seconds(*loss.worst->trips)) : Json()}};
    losses.push_back(std::move(out));
  }
  for (const models::SharedPoint& s : r.shared)
    shared.push_back({{"node", s.name}, {"racks", s.racks.size()}, {"feeds", s.feeds}});
  for (const scenarios::JobStepPower& job : r.steps.jobs) {
    Json out = {{"job", job.job}, {"step_s", to_seconds(job.step)}};
    out.update(json_of(job.swing));
    jobs.push_back(std::move(out));
  }
  for (const models::SwingViolation& v : r.steps.violations)
    swing.push_back({{"limit_name", v.what},
                     {"found", v.value},
                     {"limit", v.limit},
                     {"unit", v.unit},
                     {"text", scenarios::to_text(v)}});

  Json out;
  out["schema"] = "trainyard-facility-1";
  out["scenario"] = r.scenario;
  out["racks"] = r.racks;
  out["servers"] = r.servers;
  out["gpus"] = r.gpus;
  out["outdoors"] =
      r.outdoors ? Json{{"dry_C", r.outdoors->dry}, {"wet_C", r.outdoors->wet}} : Json();
  out["idle"] = json_of(r.idle);
  out["peak"] = json_of(r.peak);
  out["ratings"] = std::move(ratings);
  out["violations"] = std::move(violations);
  out["single_losses"] = std::move(losses);
  out["shared_points"] = std::move(shared);
  out["step_power"] = {{"jobs", std::move(jobs)},
                       {"together", json_of(r.steps.together)},
                       {"violations", std::move(swing)}};
  return out.dump(2) + '\n';
}

}  // namespace trainyard::cli
