#include "models/failures/failure_clocks.hpp"

#include <algorithm>

#include "models/failures/class_clock.hpp"
#include "models/failures/fault_script.hpp"
#include "models/failures/inlet.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

using sim::Phase;
using topologies::HostId;

Duration draw(const DelaySpec& law, sim::Stream& stream) {
  const double value_s = to_seconds(law.value);
  switch (law.law) {
    case Law::exponential:
      return seconds(stream.exponential(value_s));
    case Law::log_normal:
      return seconds(stream.log_normal(value_s, law.sigma));
    case Law::empirical:
      return law.values.at(stream.below(law.values.size()));
    default:
      stream.bits();
      return law.value;  // every law takes one value, so that they can be exchanged
  }
}

FailureClocks::FailureClocks(sim::Engine& engine, sim::Recorder& recorder,
                             const FailureInputs& inputs, UnitCounts counts)
    : engine_(engine),
      recorder_(recorder),
      counts_(std::move(counts)),
      lemons_(inputs.lemons),
      inlet_(inputs.inlet),
      down_since_(static_cast<std::size_t>(counts_.servers), Time::max()),
      training_(static_cast<std::size_t>(counts_.servers), false),
      hour_timer_(engine, Phase::failure, [this] { begin_hour(); }) {
  if (lemons_) {
    const sim::Stream luck = engine.random("failures/lemons");
    for (std::size_t s = 0; s < training_.size(); ++s)
      lemon_.push_back(luck.child(s).uniform() < lemons_->share);
  }
  bool follows_temperature = false;
  for (const auto& [name, spec] : inputs.classes) {
    const FailureClass& cls = add_class(name, spec);
    const bool follows_load = spec.idle_factor != 1.0 && counts_.per_server(spec.component) > 0;
    if (follows_load || (spec.activation_energy > 0 && inlet_)) {
      auto clock = std::make_unique<PacedClock>(*this, cls);
      follows_temperature |= clock->follows_temperature();
      paced_.push_back(clock.get());
      clocks_.push_back(std::move(clock));
    } else {
      clocks_.push_back(std::make_unique<SteadyClock>(*this, cls));
    }
  }
  if (!inputs.script.empty()) script_ = std::make_unique<Script>(*this, inputs.script);
  if (follows_temperature && (inlet_->day_swing > 0 || inlet_->year_swing > 0)) {
    constexpr Duration hour = std::chrono::hours(1);
    hour_timer_.arm(hour - engine.now().time_since_epoch() % hour);
  }
}

FailureClocks::FailureClocks(sim::Engine& engine, sim::Recorder& recorder,
                             const std::map<std::string, FailureClassSpec>& classes,
                             UnitCounts counts)
    : FailureClocks(engine, recorder, FailureInputs{classes, {}, {}, {}}, std::move(counts)) {}

FailureClocks::~FailureClocks() = default;

const FailureClass& FailureClocks::add_class(std::string name, FailureClassSpec spec) {
  classes_.push_back(std::make_unique<FailureClass>(
      FailureClass{FailureClassId(classes_.size()), std::move(name), std::move(spec)}));
  return *classes_.back();
}

// --- states of servers ---------------------------------------------------------------------------

FailureClocks::Pace FailureClocks::pace_of(std::uint32_t server) const {
  if (down_since_[server] != Time::max()) return Pace::down;
  return training_[server] ? Pace::training : Pace::idle;
}

void FailureClocks::pause(HostId server) {
  Time& since = down_since_.at(server.index());
  check(since == Time::max(), "a server goes down once", server.index());
  since = engine_.now();
  for (auto& clock : clocks_) clock->pause(static_cast<std::uint32_t>(server.index()));
}

void FailureClocks::resume(HostId server) {
  Time& since = down_since_.at(server.index());
  check(since != Time::max(), "only a server that is down comes back", server.index());
  const Duration was_down = engine_.now() - since;
  since = Time::max();
  for (auto& clock : clocks_) clock->resume(static_cast<std::uint32_t>(server.index()), was_down);
}

void FailureClocks::set_training(std::span<const HostId> servers, bool training) {
  if (paced_.empty()) return;
  std::vector<std::uint32_t> changed;  // and up
  for (const HostId server : servers) {
    check(server.index() < training_.size(), "a server that trains exists", server.index());
    if (training_[server.index()] == training) continue;
    training_[server.index()] = training;
    if (down_since_[server.index()] == Time::max())
      changed.push_back(static_cast<std::uint32_t>(server.index()));
  }
  if (changed.empty()) return;
  for (PacedClock* clock : paced_) clock->set_training(changed, training);
}

void FailureClocks::begin_hour() {
  constexpr Duration hour = std::chrono::hours(1);
  const double celsius = inlet_temperature(*inlet_, engine_.now().time_since_epoch() / hour);
  hour_timer_.arm(hour);
  for (PacedClock* clock : paced_)
    if (clock->follows_temperature()) clock->set_temperature(celsius);
}

// --- failures ------------------------------------------------------------------------------------

void FailureClocks::renew(FailureClassId cls, std::uint32_t unit) {
  check(cls.index() < classes_.size(), "a unit belongs to a class", cls.index());
  if (!is_scripted(cls)) clocks_[cls.index()]->renew(unit);
}

std::optional<std::uint32_t> FailureClocks::parent_of(Component parent, Component component,
                                                      std::uint32_t unit) const {
  const auto per_server = static_cast<std::uint32_t>(counts_.per_server(component));
  if (per_server == 0) return {};
  const std::size_t server = unit / per_server;
  if (const std::int64_t per = counts_.servers_per(parent); per > 0)
    return static_cast<std::uint32_t>(server / static_cast<std::size_t>(per));
  const topologies::Fabric* f = counts_.fabric;
  if (parent != Component::leaf_switch || f == nullptr) return {};
  // With rails every adapter has its own leaf.
  const topologies::NicId nic = component == Component::gpu   ? f->nic_of(topologies::GpuId(unit))
                                : component == Component::nic ? topologies::NicId(unit)
                                                              : f->nic(HostId(server), 0);
  return static_cast<std::uint32_t>(f->index_in_kind(f->edge_of(nic)));
}

Failure FailureClocks::failure_of(const FailureClass& cls, std::uint32_t unit,
                                  sim::Stream& luck) const {
  Failure failure{&cls, unit, {}, {}, {}};
  failure.detection = draw(cls.spec.detection, luck);
  failure.repair = draw(cls.spec.repair, luck);
  if (!cls.spec.common_cause) return failure;
  const auto& [beta, parent] = *cls.spec.common_cause;
  const bool strikes_parent = luck.uniform() < beta;
  const auto number = parent_of(parent, cls.spec.component, unit);
  if (strikes_parent && number) {
    failure.shared_parent = parent;
    failure.parent = *number;
  }
  return failure;
}

sim::SubjectId FailureClocks::subject(const FailureClass& cls, std::uint32_t unit) const {
  return recorder_.subject(unit_name(counts_, cls.spec.component, unit, cls.spec.store));
}

void FailureClocks::report(Failure failure, sim::KindId kind, sim::EventIndex cause) {
  ++failures_;
  failure.event = recorder_.event(engine_.now(), Phase::failure, kind,
                                  subject(*failure.cls, failure.unit), cause, 0.0);
  if (on_failure_) on_failure_(failure);
}

sim::EventIndex FailureClocks::announce(Failure failure, sim::KindId kind, Time strikes_at) {
  failure.event =
      recorder_.event(engine_.now(), Phase::failure, kind, subject(*failure.cls, failure.unit), {},
                      to_seconds(strikes_at - engine_.now()));
  if (on_warning_) on_warning_(failure, strikes_at);
  return failure.event;
}

const FailureClass& FailureClocks::failure_class(FailureClassId id) const {
  return *classes_.at(id.index());
}

double FailureClocks::relative_rate(HostId server) const {
  if (lemon_.empty()) return 1.0;
  const double mean = 1.0 - lemons_->share + lemons_->share * lemons_->factor;
  return (lemon_.at(server.index()) ? lemons_->factor : 1.0) / mean;
}

double FailureClocks::rate_per_s(std::int64_t servers, std::int64_t leaves) const {
  double rate = 0;
  for (const auto& clock : clocks_) {
    const Component component = clock->cls().spec.component;
    const std::int64_t units =
        component == Component::leaf_switch ? leaves : servers * counts_.per_server(component);
    rate += static_cast<double>(units) / clock->mean_s();
  }
  return rate;
}

}  // namespace trainyard::models
