#include <nlohmann/json.hpp>

#include "cli/explain_report.hpp"

namespace trainyard::cli {

using analysis::Explanation;
using analysis::JobRows;
using Json = nlohmann::ordered_json;

namespace {

double to_s(std::int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

/// Null for an instant that never came.
Json instant(std::int64_t ns) {
  return ns < 0 ? Json() : Json(to_s(ns));
}

Json chain_of(const analysis::CauseLog& log, const JobRows::Interruption& i) {
  const analysis::Chain chain = log.chain(i.event, i.resumed_ns);
  Json events = Json::array();
  for (const analysis::ChainEvent& e : chain.events)
    events.push_back({{"event", e.event},
                      {"cause", e.parent},
                      {"depth", e.depth},
                      {"time_s", to_s(e.time_ns)},
                      {"since_failure_s",
                       static_cast<double>(static_cast<__int128>(e.time_ns) - i.time_ns) / 1e9},
                      {"subject", e.subject},
                      {"kind", e.kind},
                      {"value", e.value},
                      {"unit", e.unit_of_value}});
  return {{"events", std::move(events)},
          {"struck", chain.struck},
          {"later_events", chain.later},
          {"is_cut", chain.is_cut}};
}

Json interruption_of(const ExplainReport& report, const Explanation& x, std::size_t number) {
  const JobRows::Interruption& i = x.rows.interruptions[number - 1];
  return {{"number", number},
          {"time_s", to_s(i.time_ns)},
          {"class", i.cls},
          {"effect", i.effect},
          {"unit", i.unit},
          {"server", i.server},
          {"servers", i.servers},
          {"found_s", instant(i.found_ns)},
          {"resumed_s", instant(i.resumed_ns)},
          {"detection_s", i.phases.detection_s},
          {"diagnosis_s", i.phases.diagnosis_s},
          {"replace_s", i.phases.replace_s},
          {"waiting_s", i.phases.waiting_s},
          {"start_up_s", i.phases.start_up_s},
          {"load_s", i.phases.load_s},
          {"disconnected_s", i.phases.disconnected_s},
          {"lost_s", i.lost_s},
          {"slow_s", i.slow_s},
          {"cost_s", i.cost_s()},
          {"cost_gpu_h", x.gpu_hours(i.cost_s())},
          {"lost_steps", i.lost_steps},
          {"restored_level", i.restored_level},
          {"restored_step", i.restored_step < 0 ? Json() : Json(i.restored_step)},
          {"chain", chain_of(*report.log, i)}};
}

Json costs_of(const Explanation& x) {
  Json out;
  out["ledger_gpu_h"] = Json::object();
  if (x.rows.ledger)
    for (const analysis::Share& s : x.rows.ledger->shares)
      out["ledger_gpu_h"][s.account] = s.gpu_s / 3600;
  out["outside"] = Json::array();
  for (const analysis::TimeShare& t : x.outside)
    out["outside"].push_back(
        {{"name", t.name}, {"s", t.s}, {"gpu_h", x.gpu_hours(t.s)}, {"share", t.share}});
  out["classes"] = Json::array();
  for (const analysis::ClassCost& c : x.classes)
    out["classes"].push_back({{"class", c.cls},
                              {"effect", c.effect},
                              {"count", c.count},
                              {"detection_gpu_h", x.gpu_hours(c.detection_s)},
                              {"lost_gpu_h", x.gpu_hours(c.lost_s)},
                              {"restart_gpu_h", x.gpu_hours(c.restart_s)},
                              {"waiting_gpu_h", x.gpu_hours(c.waiting_s)},
                              {"slow_gpu_h", x.gpu_hours(c.slow_s)},
                              {"total_gpu_h", x.gpu_hours(c.total_s())},
                              {"share", x.share(c.total_s())}});
  out["repeat_offenders"] = Json::array();
  for (const analysis::ServerCost& s : x.offenders)
    out["repeat_offenders"].push_back({{"server", s.server},
                                       {"count", s.count},
                                       {"s", s.s},
                                       {"gpu_h", x.gpu_hours(s.s)},
                                       {"share", x.share(s.s)}});
  out["slow_steps"] = Json::array();
  for (const analysis::SlowSteps& s : x.slow_steps)
    out["slow_steps"].push_back({{"profile", s.profile},
                                 {"steps", s.steps},
                                 {"first_s", to_s(s.first_ns)},
                                 {"excess_step_s", s.excess_s},
                                 {"part", s.part},
                                 {"part_s", s.part_s},
                                 {"s", s.s},
                                 {"gpu_h", x.gpu_hours(s.s)},
                                 {"share", x.share(s.s)},
                                 {"cause", s.cause}});
  out["data_wait_s"] = x.data_wait_s;
  out["data_wait_share_of_training"] = x.training_s > 0 ? x.data_wait_s / x.training_s : 0.0;
  out["data_waits"] = Json::array();
  for (const analysis::DataWaitCost& w : x.data_waits)
    out["data_waits"].push_back({{"limit", w.limit},
                                 {"first_s", to_s(w.first_ns)},
                                 {"training_s", w.training_s},
                                 {"s", w.s},
                                 {"gpu_h", x.gpu_hours(w.s)},
                                 {"share", x.share(w.s)}});
  out["saves"] = Json::array();
  for (const analysis::SaveCost& s : x.saves) {
    Json why = Json::object();
    for (const auto& [reason, count] : s.why_lost) why[reason] = count;
    out["saves"].push_back(
        {{"level", s.level},
         {"kind", s.kind},
         {"count", s.count},
         {"complete", s.complete},
         {"emergency", s.emergency},
         {"late", s.late},
         {"lost", s.lost},
         {"why_lost", std::move(why)},
         {"stall_s", s.stall_s},
         {"stall_gpu_h", x.gpu_hours(s.stall_s)},
         {"save_s", s.save_s},
         {"interval_s", s.interval_s},
         {"best_interval_s", s.best_interval_s > 0 ? Json(s.best_interval_s) : Json()}});
  }
  out["stores"] = Json::array();
  for (const analysis::StoreCost& s : x.stores)
    out["stores"].push_back({{"store", s.store},
                             {"user", s.user},
                             {"write", s.is_write},
                             {"neighbour", s.is_neighbour},
                             {"uses", s.uses},
                             {"s", s.s},
                             {"bytes", s.bytes}});
  out["repairs"] = {
      {"count", x.repairs.count}, {"down_s", x.repairs.down_s}, {"waited_s", x.repairs.waited_s}};
  return out;
}

Json job_of(const ExplainReport& report, const Explanation& x, std::size_t only) {
  Json out;
  out["gpus"] = x.rows.gpus;
  out["goodput"] = x.goodput;
  out["queued_s"] = x.queued_s;
  out["wall_s"] = x.wall_s;
  out["training_s"] = x.training_s;
  out["kept_s"] = x.kept_s;
  if (only == 0) {
    out["costs"] = costs_of(x);
    out["levers"] = Json::array();
    for (const analysis::Lever& l : x.levers)
      out["levers"].push_back({{"what", l.what},
                               {"assumption", l.assumption},
                               {"saved_s", l.saved_s},
                               {"gpu_h", l.gpu_s / 3600},
                               {"points", l.points},
                               {"points_of", l.in_steps ? "time" : "goodput"}});
  }
  out["interruptions"] = Json::array();
  for (std::size_t n = 1; n <= x.rows.interruptions.size(); ++n)
    if (only == 0 || n == only) out["interruptions"].push_back(interruption_of(report, x, n));
  out["notes"] = x.notes;
  return out;
}

}  // namespace

std::string explain_json(const ExplainReport& report, std::size_t only_interruption) {
  Json out;
  out["schema"] = "trainyard-explain-1";
  out["run_file"] = report.run_file;
  out["scenario"] = report.scenario;
  out["run_state"] = report.run_state;
  out["notice"] = report.notice.empty() ? Json() : Json(report.notice);
  out["jobs"] = Json::object();
  for (const Explanation& x : report.jobs)
    out["jobs"][x.rows.name] = job_of(report, x, only_interruption);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace trainyard::cli
