#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/no_effect.hpp"

namespace trainyard::scenarios {

using models::Component;
using models::Effect;

bool WayToFail::is_of_server() const {
  return component == Component::gpu || component == Component::nic ||
         component == Component::server;
}

bool WayToFail::is_of_fabric() const {
  return component == Component::leaf_switch || component == Component::upper_switch ||
         component == Component::link || component == Component::access_link;
}

bool WayToFail::is_parent() const {
  return component == Component::rack || component == Component::pdu || component == Component::cdu;
}

namespace {

/// What a name may mean, from its form alone.
std::vector<Component> components_of(const std::string& name, const Scenario& scenario) {
  const std::size_t slash = name.rfind('/');
  if (name.find(" -> ") != name.npos) return {Component::link, Component::access_link};
  if (name.starts_with("node-"))
    return {slash == name.npos       ? Component::server
            : name[slash + 1] == 'g' ? Component::gpu
                                     : Component::nic};
  for (const Component parent : {Component::rack, Component::pdu, Component::cdu})
    if (name.starts_with(std::string(name_of(parent)) + "-")) return {parent};
  if (slash != name.npos && scenario.storage.contains(name.substr(0, slash)))
    return {Component::store_server};
  return {Component::leaf_switch, Component::upper_switch};
}

bool happens(const Scenario& s, const models::ScriptedFaultSpec& fault) {
  return fault.at < s.duration;
}

constexpr const char* disabled = "failures.enabled is false, so nothing fails";

void delay_of_server(NoEffectLines& out, const std::string& repair) {
  out.idle_object(repair, {"law", "value", "sigma", "values"},
                  "replace is false: the server is not taken out");
}

void warning(NoEffectLines& out, const std::string& path, Duration warning) {
  if (warning > Duration::zero() && !out.any_job([](const models::JobSpec& job) {
        return job.checkpoint.enabled && job.checkpoint.emergency;
      }))
    out.idle(path + ".warning", "no job saves when a failure is announced (checkpoint.emergency)");
}

void delays(NoEffectLines& out, const std::string& path, const models::DelaySpec& detection,
            const models::DelaySpec& repair) {
  for (const auto& [key, delay] : {std::pair{".detection", detection}, {".repair", repair}})
    if (delay.law == models::Law::empirical)
      out.idle(path + key + ".value", "the empirical law draws from values");
}

void failure_class(NoEffectLines& out, const std::string& path, const models::FailureClassSpec& c) {
  if (!c.replace) delay_of_server(out, path + ".repair");
  const bool has_server = c.component == Component::gpu || c.component == Component::nic ||
                          c.component == Component::server || c.component == Component::access_link;
  if (c.idle_factor == 1.0)
    out.idle(path + ".idle_factor", "1: it fails as often as while training");
  else if (!has_server)
    out.idle(path + ".idle_factor",
             "a " + std::string(name_of(c.component)) + " belongs to no server that could be idle");
  if (c.activation_energy > 0 && !out.scenario.failures.inlet)
    out.idle(path + ".activation_energy", "there is no failures.inlet: no temperature to follow");
  if (c.activation_energy == 0)
    out.idle(path + ".activation_energy", "0: it does not follow the temperature");
  if (c.common_cause && c.common_cause->beta == 0)
    out.idle_object(path + ".common_cause", {"beta", "parent"},
                    "beta is 0: no failure strikes the whole parent");
  warning(out, path, c.warning);
  delays(out, path, c.detection, c.repair);
  using K = topologies::FabricKind;
  const K kind = out.scenario.cluster.fabric.kind;
  if (c.component == Component::upper_switch &&
      (kind == K::dragonfly || kind == K::torus || kind == K::custom))
    out.idle(path, "every switch of a " + std::string(name_of(kind)) +
                       " fabric may have servers: its failures are of component \"leaf-switch\"");
}

void lemons(NoEffectLines& out, const std::string& path,
            const std::optional<models::LemonsSpec>& lemons) {
  if (!lemons) return;
  const auto idle = [&](const std::string& reason) {
    out.idle_object(path, {"share", "factor"}, reason);
  };
  if (lemons->share == 0) return idle("share is 0: no server is one");
  if (lemons->factor == 1) return idle("factor is 1: they fail as often as the others");
  for (const auto& [name, c] : out.scenario.failures.all_classes())
    if (c.component == Component::gpu || c.component == Component::nic ||
        c.component == Component::server || c.component == Component::access_link)
      return;
  idle("no class is of parts of servers");
}

void inlet(NoEffectLines& out) {
  const models::FailuresSpec& f = out.scenario.failures;
  if (!f.inlet) return;
  const auto idle = [&](const std::string& reason) {
    out.idle_object("failures.inlet", {"reference", "mean", "day_swing", "year_swing", "start_day"},
                    reason);
  };
  const auto classes = f.all_classes();
  if (std::none_of(classes.begin(), classes.end(),
                   [](const auto& entry) { return entry.second.activation_energy > 0; }))
    return idle("no failure class has an activation_energy");
  const models::InletSpec& i = *f.inlet;
  if (i.mean == i.reference && i.day_swing == 0 && i.year_swing == 0)
    return idle("it is always at its reference");
  if (i.year_swing == 0)
    out.idle("failures.inlet.start_day", "year_swing is 0: every day is like the others");
}

/// Faults of a log are counted: they may be thousands.
void script(NoEffectLines& out) {
  const Scenario& s = out.scenario;
  std::int64_t of_log = 0, late = 0;
  for (const auto& [key, fault] : s.failures.script) {
    const std::string path = "failures.script." + key;
    const bool is_of_log = !out.read.places.contains(path + ".at");
    of_log += is_of_log;
    if (!happens(s, fault)) {
      if (is_of_log)
        ++late;
      else
        out.idle(path, "at is when the simulated time is over");
    } else if (!is_of_log) {
      if (!fault.replace) delay_of_server(out, path + ".repair");
      warning(out, path, fault.warning);
      delays(out, path, fault.detection, fault.repair);
    }
  }
  if (late > 0)
    out.idle("failures.log", std::to_string(late) + " of " + std::to_string(of_log) +
                                 " faults are when the simulated time is over");
}

}  // namespace

std::vector<WayToFail> ways_to_fail(const Scenario& scenario) {
  std::vector<WayToFail> ways;
  const models::FailuresSpec& f = scenario.failures;
  if (scenario.facility) {  // its racks lose power or cooling as the plant has it
    ways.push_back({Component::rack, models::Effect::crash, true, true, {}});
    if (scenario.facility->racks.liquid_share > 0)
      ways.push_back({Component::cdu, models::Effect::crash, true, true, {}});
  }
  if (!f.enabled) return ways;
  for (const auto& [name, c] : f.all_classes())
    ways.push_back({c.component, c.effect, c.replace, c.warning > Duration::zero(), c.store});
  for (const auto& [key, fault] : f.script) {
    if (!happens(scenario, fault)) continue;
    for (const Component component : components_of(fault.fail, scenario))
      ways.push_back({component, fault.effect, fault.replace, fault.warning > Duration::zero(),
                      component == Component::store_server
                          ? fault.fail.substr(0, fault.fail.rfind('/'))
                          : std::string()});
  }
  return ways;
}

bool NoEffectLines::any_way(const std::function<bool(const WayToFail&)>& holds) const {
  return std::any_of(ways.begin(), ways.end(), holds);
}

bool NoEffectLines::any_job(const std::function<bool(const models::JobSpec&)>& holds) const {
  return std::any_of(scenario.jobs.begin(), scenario.jobs.end(),
                     [&](const auto& entry) { return holds(entry.second); });
}

bool NoEffectLines::can_preempt() const {
  return any_job([&](const models::JobSpec& victim) {
    return victim.preemptible &&
           any_job([&](const models::JobSpec& taker) { return taker.priority > victim.priority; });
  });
}

void failures_without_effect(NoEffectLines& out) {
  const models::FailuresSpec& f = out.scenario.failures;
  if (!f.enabled) {
    if (!f.classes.empty()) out.idle("failures.classes", disabled);
    out.idle("failures", {"profile", "lemons", "inlet", "false_alarms"}, disabled);
    if (!f.script.empty()) out.idle("failures", {"script", "log"}, disabled);
    return;
  }
  const auto classes = f.all_classes();
  if (classes.empty() && f.script.empty())
    out.idle("failures.enabled", "there are no failure classes, so nothing fails");
  for (const auto& [name, c] : f.classes) failure_class(out, "failures.classes." + name, c);
  for (const auto& [name, c] : f.profile.classes) {
    const std::string path = "failures.profile.classes." + name;
    if (f.classes.contains(name))
      out.idle(path, "failures.classes." + name + " stands in its place");
    else
      failure_class(out, path, c);
  }
  if (f.lemons && f.profile.lemons) {
    out.idle("failures.profile.lemons", "failures.lemons stands in its place");
    lemons(out, "failures.lemons", f.lemons);
  } else {
    lemons(out, "failures.lemons", f.lemons);
    lemons(out, "failures.profile.lemons", f.profile.lemons);
  }
  inlet(out);
  script(out);
}

namespace {

bool is_common_cause(const Scenario& s, Component parent) {
  const auto classes = s.failures.all_classes();
  return s.failures.enabled && std::any_of(classes.begin(), classes.end(), [&](const auto& entry) {
           const auto& common = entry.second.common_cause;
           return common && common->parent == parent && common->beta > 0;
         });
}

void parents(NoEffectLines& out) {
  for (const Component parent : {Component::rack, Component::pdu, Component::cdu}) {
    const bool keeps_copies_apart = out.any_job([&](const models::JobSpec& job) {
      const auto& levels = job.checkpoint.levels;
      return job.checkpoint.enabled &&
             std::any_of(levels.begin(), levels.end(), [&](const auto& level) {
               return level.second.kind == models::LevelKind::peer_memory &&
                      level.second.apart == parent;
             });
    });
    if (keeps_copies_apart || is_common_cause(out.scenario, parent) ||
        out.any_way([&](const WayToFail& way) { return way.component == parent; }))
      continue;
    const std::string name(name_of(parent));
    out.idle("cluster.parents.servers_per_" + name,
             "no " + name + " fails, and no level keeps copies in different ones");
  }
  const bool loses_feed = out.any_way([](const WayToFail& way) {
    return way.component == Component::rack || way.component == Component::pdu;
  });
  if (!loses_feed)
    out.idle("cluster.parents.return_failures", "no rack or PDU fails: no server loses its feed");
}

bool breaks_on_return(const NoEffectLines& out) {
  return out.scenario.cluster.parents.return_failures > 0 && out.any_way([](const WayToFail& way) {
    return way.component == Component::rack || way.component == Component::pdu;
  });
}

void repair(NoEffectLines& out) {
  const models::RepairSpec& r = out.scenario.cluster.repair;
  const std::string path = "cluster.repair";
  const bool returns_broken = breaks_on_return(out);
  if (!returns_broken && !out.any_way([](const WayToFail& w) { return w.is_repaired(); }))
    return out.idle_object(path,
                           {"crews", "night_crews", "day_start", "day_end", "travel", "reset_share",
                            "reset", "dead_on_arrival", "test", "vendor_share", "vendor"},
                           out.can_fail() ? "no failure takes a server out for repair"
                                          : "nothing fails, so nothing is repaired");
  if (r.crews == 0)
    out.idle(path, {"day_start", "day_end"},
             "crews is 0: one for every broken server, at any time");
  else if (!r.night_crews || *r.night_crews == r.crews)
    out.idle(path, {"night_crews", "day_start", "day_end"}, "as many crews by night as by day");
  const bool is_unplanned = returns_broken || out.any_way([](const WayToFail& w) {
    return w.is_repaired() && w.effect != Effect::maintenance;
  });
  if (!is_unplanned)
    return out.idle(path, {"reset_share", "reset", "vendor_share", "vendor"},
                    "all work on servers is planned: it needs neither reset nor vendor");
  if (r.reset_share == 0) out.idle(path, {"reset"}, "reset_share is 0: no reset is tried");
  if (r.vendor_share == 0 && !out.scenario.cluster.exclude)
    out.idle_object(
        path + ".vendor", {"law", "value", "sigma", "values"},
        "vendor_share is 0 and cluster.exclude is not given: the vendor gets no server");
}

}  // namespace

void care_without_effect(NoEffectLines& out) {
  const ClusterSpec& cluster = out.scenario.cluster;
  parents(out);
  repair(out);
  const bool is_replaced = out.can_preempt() || out.any_way([](const WayToFail& way) {
    return way.is_repaired() || way.is_parent() || way.is_of_fabric();
  });
  if (cluster.spares == 0)
    out.idle_object("cluster.spare", {"places", "boot"}, "cluster.spares is 0");
  else if (!is_replaced)
    out.idle("cluster.spare.boot", "no server is replaced by a spare");
  const bool is_counted = out.any_way(
      [](const WayToFail& way) { return way.is_repaired() && way.effect != Effect::maintenance; });
  if (cluster.exclude && !is_counted)
    out.idle_object("cluster.exclude", {"after", "within"},
                    out.can_fail() ? "no failure takes a server out of its job by its own fault"
                                   : "nothing fails");
}

}  // namespace trainyard::scenarios
