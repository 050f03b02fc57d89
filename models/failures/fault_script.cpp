#include "models/failures/fault_script.hpp"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

void write(std::ostream& out, const DelaySpec& d) {
  out << int(d.law) << ' ' << d.value.count() << ' ' << d.sigma << ' ';
  for (const Duration value : d.values) out << value.count() << ' ';
}

}  // namespace

FailureClocks::Script::Script(FailureClocks& all,
                              const std::map<std::string, ScriptedFaultSpec>& script)
    : all_(all), timer_(all.engine_, sim::Phase::failure, [this] { act(); }) {
  const UnitNames names(all.counts_);
  faults_.reserve(script.size());
  for (const auto& [key, entry] : script) {
    const auto unit = names.find(entry.fail);
    check(unit.has_value(), "a scripted fault names a unit of the cluster", key, entry.fail);
    const FailureClass& cls = class_of(entry.name.empty() ? key : entry.name, entry, *unit);
    const auto number = static_cast<std::uint32_t>(faults_.size());
    const Time at = add(start_of_run, entry.at);
    check(at >= all.engine_.now(), "a scripted fault lies ahead", key);
    faults_.push_back({&cls, unit->unit, at, all.engine_.random("failures/script/" + key)});
    actions_.push_back({at, false, number});
    if (entry.warning > Duration::zero())
      actions_.push_back({std::max(all.engine_.now(), at - entry.warning), true, number});
  }
  const auto order = [](const Action& a) {
    return std::tuple(a.when, !a.is_announcement, a.fault);
  };
  std::sort(actions_.begin(), actions_.end(),
            [&](const Action& a, const Action& b) { return order(a) < order(b); });
  arm();
}

/// A log has many equal faults: they share one class.
const FailureClass& FailureClocks::Script::class_of(const std::string& name,
                                                    const ScriptedFaultSpec& entry,
                                                    const UnitRef& unit) {
  std::ostringstream text;
  text.precision(17);
  text << int(unit.component) << ' ' << int(entry.effect) << ' ' << entry.replace << ' '
       << entry.speed << ' ' << entry.warning.count() << ' ';
  write(text, entry.detection);
  write(text, entry.repair);
  text << unit.store << '\n' << name;
  const FailureClass*& cls = equal_[text.str()];
  if (cls == nullptr) {
    FailureClassSpec spec;
    spec.component = unit.component;
    spec.lifetime.mean = forever;  // it has no life: it happens when the script says
    spec.effect = entry.effect;
    spec.detection = entry.detection;
    spec.replace = entry.replace;
    spec.repair = entry.repair;
    spec.speed = entry.speed;
    spec.warning = entry.warning;
    spec.store = unit.store;
    cls = &all_.add_class(name, std::move(spec));
  }
  return *cls;
}

void FailureClocks::Script::arm() {
  if (next_ < actions_.size()) timer_.arm_at(actions_[next_].when);
}

void FailureClocks::Script::act() {
  const Action action = actions_[next_++];
  Fault& fault = faults_[action.fault];
  arm();
  const FailureClass& cls = *fault.cls;
  const std::int64_t per_server = all_.counts_.per_server(cls.spec.component);
  const bool is_down =
      per_server > 0 &&
      all_.pace_of(fault.unit / static_cast<std::uint32_t>(per_server)) == Pace::down;
  sim::Stream luck = fault.luck;
  if (is_down && !action.is_announcement) {
    all_.recorder_.event(all_.engine_.now(), sim::Phase::failure,
                         all_.recorder_.kind("fault had no effect", ""),
                         all_.subject(cls, fault.unit), fault.announced, 0.0);
  } else if (!is_down && action.is_announcement) {
    fault.announced = all_.announce(all_.failure_of(cls, fault.unit, luck),
                                    all_.recorder_.kind(cls.name + " announced", "s"), fault.at);
  } else if (!is_down) {
    all_.report(all_.failure_of(cls, fault.unit, luck),
                all_.recorder_.kind(cls.name + " failed", ""), fault.announced);
  }
}

}  // namespace trainyard::models
