#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/describe.hpp"
#include "sim/time.hpp"

/// Failure classes: how long parts live, what a failure does, how it is found, how long repair
/// takes.
namespace trainyard::models {

/// What fails: one lifetime per unit of this kind.
/// A leaf switch is any switch to which servers are attached; an upper switch any other; a link is
/// a cable between two switches, an access link one between an adapter and its leaf. Rack, PDU and
/// CDU are parents of servers (ParentsSpec); a store server is one of StoreSpec::servers.
enum class Component {
  gpu,
  nic,
  server,
  leaf_switch,
  upper_switch,
  link,
  access_link,
  rack,
  pdu,
  cdu,
  store_server
};
/// What it does to the job that holds the unit.
enum class Effect {
  crash,    // the job stops at once
  hang,     // the job makes no progress until the watchdog finds it
  slow,     // the unit runs on, slower, until it is found and replaced; a link at part of its rate
  corrupt,  // training goes on, but its results are wrong: when it is found, all work since then
            // and all saves taken since then are void
  maintenance  // planned: the job ends its step, saves, and lets the server go
};
enum class Law { exponential, weibull, log_normal, fixed, empirical };

/// The lifetime of one unit: either a mean, or what was observed: `count` failures among `units` in
/// `duration`, mean = units * duration / count. `shape` is Weibull's k.
struct LifetimeSpec {
  Law law = Law::exponential;
  std::optional<Duration> mean;
  std::optional<double> count;
  std::optional<double> units;
  std::optional<Duration> duration;
  double shape = 1.0;
  Duration age{};  // of every unit at the start of the run, burn-in included
  /// Mean life of one unit in seconds.
  double mean_s() const {
    return mean ? to_seconds(*mean) : *units * to_seconds(*duration) / *count;
  }
};

template <class Visitor>
void describe(Visitor& v, LifetimeSpec& s) {
  v.optional("law", s.law, "exponential or weibull");
  v.optional("mean", s.mean, "mean life of one unit", above(0));
  v.optional("count", s.count, "observed failures", above(0));
  v.optional("units", s.units, "units that were observed", above(0));
  v.optional("duration", s.duration, "how long they were observed", above(0));
  v.optional("shape", s.shape, "Weibull shape k: below 1 early failures, 1 exponential",
             between(0.2, 10));
  v.optional("age", s.age, "age of the units at the start, burn-in included (weibull)",
             at_least(0));
  v.check(s.mean.has_value() != (s.count && s.units && s.duration), "mean",
          "give either mean, or all of count, units and duration");
  v.check(s.law == Law::exponential || s.law == Law::weibull, "law",
          "a lifetime is \"exponential\" or \"weibull\"");
  v.check(s.law == Law::weibull || s.shape == 1.0, "shape", "only the weibull law has a shape");
  v.check(s.law == Law::weibull || s.age == Duration::zero(), "age",
          "an exponential life has no age; use the weibull law");
}

/// A delay: detection, replacement, repair.
struct DelaySpec {
  Law law = Law::fixed;
  Duration value{};                   // fixed value, exponential mean, log-normal median
  double sigma = 1.0;                 // log-normal
  std::vector<Duration> values = {};  // empirical: observed delays, each as likely as the others
};

template <class Visitor>
void describe(Visitor& v, DelaySpec& s) {
  v.optional("law", s.law, "fixed, exponential, log-normal or empirical");
  v.optional("value", s.value, "the fixed value, the exponential mean, or the log-normal median",
             at_least(0));
  v.optional("sigma", s.sigma, "standard deviation of the logarithm (log-normal)", between(0, 5));
  v.optional("values", s.values, "observed delays, each as likely as the others (empirical)",
             at_least(0));
  v.check(s.law != Law::weibull, "law",
          "a delay is \"fixed\", \"exponential\", \"log-normal\" or \"empirical\"");
  v.check(s.law == Law::log_normal || s.sigma == 1.0, "sigma",
          "only the log-normal law has a sigma");
  v.check((s.law == Law::empirical) == !s.values.empty(), "values",
          "the empirical law needs values, and only it has them");
}

/// A share of the failures of a class that strikes all servers of one parent at once (beta factor):
/// for what explicit parents do not explain.
struct CommonCauseSpec {
  double beta = 0.05;
  Component parent = Component::rack;
};

template <class Visitor>
void describe(Visitor& v, CommonCauseSpec& s) {
  v.required("beta", s.beta, "share of the failures that strike the whole parent", between(0, 1));
  v.optional("parent", s.parent, "rack, pdu, cdu or leaf-switch");
  v.check(s.parent == Component::rack || s.parent == Component::pdu || s.parent == Component::cdu ||
              s.parent == Component::leaf_switch,
          "parent", "\"rack\", \"pdu\", \"cdu\" or \"leaf-switch\"");
}

struct FailureClassSpec {
  Component component = Component::gpu;
  LifetimeSpec lifetime;
  Effect effect = Effect::crash;
  DelaySpec detection;  // from the failure to the moment that the job is known to be broken
  bool replace =
      true;  // the server leaves the job and is repaired; false: restart in place (software)
  DelaySpec repair{Law::log_normal, std::chrono::hours(12), 1.0};
  double speed = 1.0;  // effect "slow": relative speed of the unit
  std::string source;
  Duration warning{};        // the failure is announced this long before
  double idle_factor = 1.0;  // hazard while the server is not training, relative to training
  double activation_energy =
      0;  // eV; above 0: the hazard follows the inlet temperature (Arrhenius)
  std::optional<CommonCauseSpec> common_cause = {};
  std::string store = {};  // component store-server: which store
};

template <class Visitor>
void describe(Visitor& v, FailureClassSpec& s) {
  v.required("component", s.component, "what fails");
  v.required("lifetime", s.lifetime, "life of one unit");
  v.optional("effect", s.effect, "what the failure does to the job");
  v.required("detection", s.detection, "delay until the failure is known");
  v.optional("replace", s.replace,
             "the server is taken out and repaired; false: the job restarts on the same servers");
  v.optional("repair", s.repair, "time in repair, if replaced");
  v.optional("speed", s.speed, "relative speed of a slow unit", between(0.05, 1));
  v.optional("source", s.source, "where the figures come from");
  v.optional("warning", s.warning, "how long before it happens it is announced", at_least(0));
  v.optional("idle_factor", s.idle_factor,
             "hazard while the server is not training, relative to training", between(0, 100));
  v.optional("activation_energy", s.activation_energy,
             "eV; the hazard follows failures.inlet by exp(E/k (1/T_reference - 1/T)); 0: it does "
             "not",
             between(0, 2));
  v.optional("common_cause", s.common_cause, "a share of the failures strikes a whole parent");
  v.optional("store", s.store, "of a store-server: the store, by its name under storage");
  v.check(s.effect != Effect::slow || s.speed < 1.0, "speed", "a slow unit needs a speed below 1");
  v.check(s.effect == Effect::slow || s.speed == 1.0, "speed", "only effect \"slow\" has a speed");
  const bool is_of_server = s.component == Component::gpu || s.component == Component::nic ||
                            s.component == Component::server;
  const bool is_cable = s.component == Component::link || s.component == Component::access_link;
  const bool is_parent = s.component == Component::rack || s.component == Component::pdu ||
                         s.component == Component::cdu;
  v.check(s.effect != Effect::slow || is_of_server || is_cable, "component",
          "effect \"slow\" is defined for gpu, nic, server, link and access-link");
  v.check(s.effect != Effect::corrupt || s.component == Component::gpu ||
              s.component == Component::server,
          "component", "effect \"corrupt\" is defined for gpu and server");
  v.check(s.effect != Effect::maintenance || s.component == Component::server || is_parent,
          "component", "effect \"maintenance\" is defined for server, rack, pdu and cdu");
  v.check(
      is_of_server || s.component == Component::leaf_switch || s.effect != Effect::hang, "effect",
      "a switch, cable, parent or store server does not hang: \"crash\" (down), or \"slow\" for "
      "a cable at part of its rate");
  v.check(is_of_server || s.component == Component::leaf_switch || s.replace, "replace",
          "it is down for detection and repair; a flap is a short repair");
  v.check(!s.common_cause || is_of_server, "common_cause",
          "parts of servers have common causes: gpu, nic or server");
  v.check((s.component == Component::store_server) == !s.store.empty(), "store",
          "a store-server names its store, nothing else does");
  v.check(is_of_server || s.warning == Duration::zero() || is_parent, "warning",
          "parts and parents of servers announce failures");
  v.check(
      (s.effect != Effect::slow && s.effect != Effect::corrupt) || s.warning == Duration::zero(),
      "warning", "a slow or corrupting unit is not announced: nobody knows of it");
}

/// Servers that fail more often than their peers. Rates of classes stay means over all servers:
/// with a share p at `factor`, the others have the rate x (1 - p·factor/(1 - p + p·factor))/(1 -
/// p).
struct LemonsSpec {
  double share = 0;
  double factor = 10;
};

template <class Visitor>
void describe(Visitor& v, LemonsSpec& s) {
  v.required("share", s.share, "share of the servers that fail more often", between(0, 0.5));
  v.optional("factor", s.factor, "how much more often than the others", between(1, 1000));
}

/// Air or water at the servers' inlet: a daily and a yearly sinusoid, warmest at 15:00 and in the
/// middle of the year; a run starts at midnight of day `start_day` of the year.
struct InletSpec {
  double reference = 25;  // degrees Celsius at which the rates of classes hold
  double mean = 25;
  double day_swing = 0;  // half of the difference between the warmest and the coldest hour
  double year_swing = 0;
  int start_day = 1;
};

template <class Visitor>
void describe(Visitor& v, InletSpec& s) {
  v.optional("reference", s.reference, "inlet temperature at which the rates hold, degrees Celsius",
             between(-20, 90));
  v.optional("mean", s.mean, "mean of the year, degrees Celsius", between(-20, 90));
  v.optional("day_swing", s.day_swing, "half of the daily range, K", between(0, 40));
  v.optional("year_swing", s.year_swing, "half of the yearly range, K", between(0, 40));
  v.optional("start_day", s.start_day, "day of the year at the start of the run", between(1, 366));
}

/// A fault at a given time. `fail` is a unit by name: "node-17/gpu-3", "node-17/nic-0", "node-17",
/// "rack-2", "pdu-0", "cdu-1", the name of a switch or cable as `trainyard topology` prints it, or
/// "scratch/server-3" of a store.
struct ScriptedFaultSpec {
  Duration at{};
  std::string fail;
  std::string name = {};  // what it is called in reports; default: its key
  Effect effect = Effect::crash;
  DelaySpec detection{Law::fixed, std::chrono::seconds(10)};
  bool replace = true;
  DelaySpec repair{Law::log_normal, std::chrono::hours(12), 1.0};
  double speed = 1.0;
  Duration warning{};
};

template <class Visitor>
void describe(Visitor& v, ScriptedFaultSpec& s) {
  v.required("at", s.at, "when it happens, from the start of the run", at_least(0));
  v.required("fail", s.fail,
             "what fails, by name: node-17/gpu-3, node-17, rack-2, a switch, a cable");
  v.optional("name", s.name, "what reports call it; default: its key");
  v.optional("effect", s.effect, "what the failure does to the job");
  v.optional("detection", s.detection, "delay until the failure is known");
  v.optional("replace", s.replace,
             "the server is taken out and repaired; false: the job restarts on the same servers");
  v.optional("repair", s.repair, "time in repair");
  v.optional("speed", s.speed, "relative speed of a slow unit", between(0.05, 1));
  v.optional("warning", s.warning, "how long before it happens it is announced", at_least(0));
  v.check((s.effect == Effect::slow) == (s.speed < 1.0), "speed",
          "effect \"slow\" needs a speed below 1, and only it has one");
}

/// A published set of failure classes: catalog parts of kind "failures".
struct FailureProfileSpec {
  std::string name;
  std::map<std::string, FailureClassSpec> classes;
  std::optional<LemonsSpec> lemons = {};
};

template <class Visitor>
void describe(Visitor& v, FailureProfileSpec& s) {
  v.optional("name", s.name, "what it is called");
  v.optional("classes", s.classes, "failure classes by name");
  v.optional("lemons", s.lemons, "servers that fail more often than their peers");
}

/// A health check that finds fault with servers that have none: the job stops at once, the server is
/// taken out and tested, and comes back. The class "false alarm" of all_classes().
struct FalseAlarmsSpec {
  Duration mean{};  // of one server, between two false alarms
  DelaySpec test{Law::fixed, std::chrono::minutes(30)};
};

template <class Visitor>
void describe(Visitor& v, FalseAlarmsSpec& s) {
  v.required("mean", s.mean, "mean time between false alarms of one server", above(0));
  v.optional("test", s.test, "how long a server is tested before it comes back");
}

inline constexpr const char* false_alarm_name = "false alarm";

struct FailuresSpec {
  bool enabled = true;
  FailureProfileSpec profile;
  std::map<std::string, FailureClassSpec>
      classes;  // beside the profile's; equal names replace them
  std::optional<LemonsSpec> lemons = {};
  std::optional<InletSpec> inlet = {};
  std::map<std::string, ScriptedFaultSpec> script = {};
  std::string log = {};  // CSV file with faults to replay
  std::optional<FalseAlarmsSpec> false_alarms = {};
  /// The profile's with those of the scenario over them, and the false alarms of health checks.
  std::map<std::string, FailureClassSpec> all_classes() const {
    std::map<std::string, FailureClassSpec> all = classes;
    all.insert(profile.classes.begin(), profile.classes.end());
    if (false_alarms) {
      FailureClassSpec& alarm = all[false_alarm_name];
      alarm = {};
      alarm.component = Component::server;
      alarm.lifetime.mean = false_alarms->mean;
      alarm.repair = false_alarms->test;
      alarm.idle_factor = 0;  // the checks run beside training
    }
    return all;
  }
  const std::optional<LemonsSpec>& all_lemons() const { return lemons ? lemons : profile.lemons; }
};

template <class Visitor>
void describe(Visitor& v, FailuresSpec& s) {
  v.optional("enabled", s.enabled, "false: nothing fails");
  v.optional_part("profile", s.profile, "failures", "published failure classes");
  v.optional("classes", s.classes, "failure classes by name, beside those of the profile");
  v.optional("lemons", s.lemons, "servers that fail more often than their peers");
  v.optional("inlet", s.inlet, "inlet temperature over the day and the year");
  v.optional("script", s.script, "faults at given times, by name");
  v.optional("log", s.log, "CSV file with faults to replay, relative to the scenario file");
  v.optional("false_alarms", s.false_alarms,
             "health checks that stop the job and take out a server that has no fault");
  v.check(!s.false_alarms || (!s.classes.contains(false_alarm_name) &&
                              !s.profile.classes.contains(false_alarm_name)),
          "false_alarms", "a class is called \"false alarm\" already: give one of the two");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Component> {
  static constexpr auto all =
      names<models::Component>({{models::Component::gpu, "gpu"},
                                {models::Component::nic, "nic"},
                                {models::Component::server, "server"},
                                {models::Component::leaf_switch, "leaf-switch"},
                                {models::Component::upper_switch, "upper-switch"},
                                {models::Component::link, "link"},
                                {models::Component::access_link, "access-link"},
                                {models::Component::rack, "rack"},
                                {models::Component::pdu, "pdu"},
                                {models::Component::cdu, "cdu"},
                                {models::Component::store_server, "store-server"}});
};
template <>
struct Names<models::Effect> {
  static constexpr auto all = names<models::Effect>({{models::Effect::crash, "crash"},
                                                     {models::Effect::hang, "hang"},
                                                     {models::Effect::slow, "slow"},
                                                     {models::Effect::corrupt, "corrupt"},
                                                     {models::Effect::maintenance, "maintenance"}});
};
template <>
struct Names<models::Law> {
  static constexpr auto all = names<models::Law>({{models::Law::exponential, "exponential"},
                                                  {models::Law::weibull, "weibull"},
                                                  {models::Law::log_normal, "log-normal"},
                                                  {models::Law::fixed, "fixed"},
                                                  {models::Law::empirical, "empirical"}});
};
}  // namespace trainyard
