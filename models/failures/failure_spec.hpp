#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/describe.hpp"
#include "sim/time.hpp"

/// Failure classes: how long parts live, what a failure does, how it is found, how long repair
/// takes.
namespace trainyard::models {

/// What fails: one lifetime per unit of this kind.
/// A leaf switch is any switch to which servers are attached; an upper switch any other; a link is
/// a cable between two switches.
enum class Component { gpu, nic, server, leaf_switch, upper_switch, link };
/// What it does to the job that holds the unit.
enum class Effect {
  crash,  // the job stops at once
  hang,   // the job makes no progress until the watchdog finds it
  slow    // the unit runs on, slower, until it is found and replaced; a link at part of its rate
};
enum class Law { exponential, weibull, log_normal, fixed };

/// The lifetime of one unit: either a mean, or what was observed: `count` failures among `units` in
/// `duration`, mean = units * duration / count. `shape` is Weibull's k.
struct LifetimeSpec {
  Law law = Law::exponential;
  std::optional<Duration> mean;
  std::optional<double> count;
  std::optional<double> units;
  std::optional<Duration> duration;
  double shape = 1.0;
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
  v.check(s.mean.has_value() != (s.count && s.units && s.duration), "mean",
          "give either mean, or all of count, units and duration");
  v.check(s.law == Law::exponential || s.law == Law::weibull, "law",
          "a lifetime is \"exponential\" or \"weibull\"");
  v.check(s.law == Law::weibull || s.shape == 1.0, "shape", "only the weibull law has a shape");
}

/// A delay: detection, replacement, repair.
struct DelaySpec {
  Law law = Law::fixed;
  Duration value{};    // fixed value, exponential mean, log-normal median
  double sigma = 1.0;  // log-normal
};

template <class Visitor>
void describe(Visitor& v, DelaySpec& s) {
  v.optional("law", s.law, "fixed, exponential or log-normal");
  v.required("value", s.value, "the fixed value, the exponential mean, or the log-normal median",
             at_least(0));
  v.optional("sigma", s.sigma, "standard deviation of the logarithm (log-normal)", between(0, 5));
  v.check(s.law != Law::weibull, "law", "a delay is \"fixed\", \"exponential\" or \"log-normal\"");
  v.check(s.law == Law::log_normal || s.sigma == 1.0, "sigma",
          "only the log-normal law has a sigma");
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
  v.check(s.effect != Effect::slow || s.speed < 1.0, "speed", "a slow unit needs a speed below 1");
  v.check(s.effect == Effect::slow || s.speed == 1.0, "speed", "only effect \"slow\" has a speed");
  const bool is_fabric = s.component == Component::upper_switch || s.component == Component::link;
  v.check(s.effect != Effect::slow || s.component == Component::gpu ||
              s.component == Component::server || s.component == Component::link,
          "component", "effect \"slow\" is defined for gpu, server and link");
  v.check(!is_fabric || s.effect != Effect::hang, "effect",
          "a switch or link does not hang: \"crash\" (down), or \"slow\" for a link at part of its "
          "rate");
  v.check(!is_fabric || s.replace, "replace",
          "a switch or link is down for detection and repair; a flap is a short repair");
}

struct FailuresSpec {
  bool enabled = true;
  std::map<std::string, FailureClassSpec> classes;
};

template <class Visitor>
void describe(Visitor& v, FailuresSpec& s) {
  v.optional("enabled", s.enabled, "false: nothing fails");
  v.optional("classes", s.classes, "failure classes by name");
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
                                {models::Component::link, "link"}});
};
template <>
struct Names<models::Effect> {
  static constexpr auto all = names<models::Effect>({{models::Effect::crash, "crash"},
                                                     {models::Effect::hang, "hang"},
                                                     {models::Effect::slow, "slow"}});
};
template <>
struct Names<models::Law> {
  static constexpr auto all = names<models::Law>({{models::Law::exponential, "exponential"},
                                                  {models::Law::weibull, "weibull"},
                                                  {models::Law::log_normal, "log-normal"},
                                                  {models::Law::fixed, "fixed"}});
};
}  // namespace trainyard
