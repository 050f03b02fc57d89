#include "models/failures/failure_clocks.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"
#include "sim/timer.hpp"

namespace trainyard::models {

using sim::Phase;
using topologies::HostId;

std::int64_t UnitCounts::per_server(Component c) const {
  switch (c) {
    case Component::gpu:
      return gpus_per_server;
    case Component::nic:
      return nics_per_server;
    case Component::server:
      return 1;
    case Component::leaf_switch:
    case Component::upper_switch:
    case Component::link:
      return 0;
  }
  return 0;
}

std::int64_t UnitCounts::of(Component c) const {
  switch (c) {
    case Component::leaf_switch:
      return leaves;
    case Component::upper_switch:
      return upper_switches;
    case Component::link:
      return links;
    default:
      return servers * per_server(c);
  }
}

std::string unit_name(const UnitCounts& counts, Component component, std::uint32_t unit) {
  const topologies::Fabric* f = counts.fabric;
  switch (component) {
    case Component::leaf_switch:
      return f ? f->name(f->vertex(f->edge_kind(), unit)) : "leaf-" + std::to_string(unit);
    case Component::upper_switch:
      return f ? f->name(upper_switch(*f, unit)) : "switch-" + std::to_string(unit);
    case Component::link:
      return f ? f->name(trunk(*f, unit)) : "link-" + std::to_string(unit);
    default:
      break;
  }
  const auto per_server = static_cast<std::uint32_t>(counts.per_server(component));
  std::string name = "node-" + std::to_string(unit / per_server);
  if (component == Component::gpu) name += "/gpu-" + std::to_string(unit % per_server);
  if (component == Component::nic) name += "/nic-" + std::to_string(unit % per_server);
  return name;
}

topologies::VertexId upper_switch(const topologies::Fabric& fabric, std::uint32_t unit) {
  // Switches are numbered kind by kind, and one of the kinds is the edge.
  const std::size_t first = fabric.first_switch().index();
  const std::size_t edge = fabric.vertex(fabric.edge_kind(), 0).index();
  return topologies::VertexId(first + unit < edge ? first + unit
                                                  : first + unit + fabric.edge_count());
}

topologies::LinkId trunk(const topologies::Fabric& fabric, std::uint32_t unit) {
  return topologies::LinkId(fabric.first_trunk().index() + 2 * std::size_t{unit});
}

Duration draw(const DelaySpec& law, sim::Stream& stream) {
  const double value_s = to_seconds(law.value);
  switch (law.law) {
    case Law::exponential:
      return seconds(stream.exponential(value_s));
    case Law::log_normal:
      return seconds(stream.log_normal(value_s, law.sigma));
    default:
      stream.bits();
      return law.value;  // every law takes one value, so that they can be exchanged
  }
}

/// The units of one class. A heap entry may be too early: lives of units of a server that was down
/// moved on by the time it was down, and the heap learns of it when the entry comes up. Never too
/// late, so the top, once it is right, is the next failure.
class FailureClocks::Clock {
 public:
  Clock(FailureClocks& all, FailureClass cls)
      : all_(all),
        class_(std::move(cls)),
        luck_(all.engine_.random("failures/" + class_.name)),
        kind_(all.recorder_.kind(class_.name + " failed", "")),
        per_server_(static_cast<std::uint32_t>(all.counts_.per_server(class_.spec.component))),
        timer_(all.engine_, Phase::failure, [this] { fail_due(); }) {
    const LifetimeSpec& life = class_.spec.lifetime;
    mean_s_ = life.mean_s();
    scale_s_ = mean_s_ / std::tgamma(1.0 + 1.0 / life.shape);
    units_.resize(static_cast<std::size_t>(all.counts_.of(class_.spec.component)));
    heap_.reserve(units_.size());
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      units_[u].due = add(all_.engine_.now(), life_of(u));
      units_[u].place = Place::heap;
      heap_.push_back({units_[u].due, u});
    }
    std::make_heap(heap_.begin(), heap_.end(), is_later);
    arm();
  }

  const FailureClass& cls() const { return class_; }
  double mean_s() const { return mean_s_; }

  void renew(std::uint32_t u) {
    check(units_[u].place == Place::failed, "a new life begins after a failure", class_.name, u);
    ++units_[u].life;
    units_[u].due = add(all_.engine_.now(), life_of(u));
    push(u);
    arm();
  }

  void pause(std::uint32_t server) {
    if (per_server_ != 0 && !heap_.empty() && heap_.front().unit / per_server_ == server) arm();
  }

  void resume(std::uint32_t server, Duration was_down) {
    if (per_server_ == 0) return;
    for (std::uint32_t u = server * per_server_; u < (server + 1) * per_server_; ++u) {
      if (units_[u].place == Place::failed) continue;
      units_[u].due = add(units_[u].due, was_down);
      if (units_[u].place == Place::parked) push(u);
    }
    arm();
  }

 private:
  enum class Place : std::uint8_t { heap, parked, failed };
  struct Unit {
    Time due{};
    std::uint32_t life = 0;  // which one: 0, 1, 2, ...
    Place place = Place::failed;
  };
  struct Entry {
    Time due;
    std::uint32_t unit;
  };
  static bool is_later(const Entry& a, const Entry& b) {
    return a.due != b.due ? a.due > b.due : a.unit > b.unit;
  }

  Duration life_of(std::uint32_t u) const {
    sim::Stream luck = luck_of(u);
    const LifetimeSpec& life = class_.spec.lifetime;
    return seconds(life.law == Law::weibull ? luck.weibull(life.shape, scale_s_)
                                            : luck.exponential(mean_s_));
  }
  sim::Stream luck_of(std::uint32_t u) const { return luck_.child(u).child(units_[u].life); }

  bool is_down(std::uint32_t u) const {
    return per_server_ != 0 && all_.down_since_[u / per_server_] != Time::max();
  }

  void push(std::uint32_t u) {
    units_[u].place = Place::heap;
    heap_.push_back({units_[u].due, u});
    std::push_heap(heap_.begin(), heap_.end(), is_later);
  }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), is_later);
    heap_.pop_back();
  }

  /// Makes the top a failure that will really happen, and sets the timer for it.
  void arm() {
    while (!heap_.empty()) {
      const Entry top = heap_.front();
      if (is_down(top.unit)) {
        pop();
        units_[top.unit].place = Place::parked;
      } else if (units_[top.unit].due != top.due) {
        pop();
        push(top.unit);
      } else {
        break;
      }
    }
    if (heap_.empty() || heap_.front().due == Time::max()) {
      timer_.cancel();
    } else if (timer_.expiry() != heap_.front().due) {
      timer_.arm_at(heap_.front().due);
    }
  }

  void fail_due() {
    const std::uint32_t u = heap_.front().unit;
    pop();
    units_[u].place = Place::failed;
    sim::Stream luck = luck_of(u);
    luck.bits();  // the life itself
    if (!class_.spec.replace) renew(u);
    all_.report(class_, u, luck, kind_);
    arm();
  }

  FailureClocks& all_;
  FailureClass class_;
  sim::Stream luck_;
  sim::KindId kind_;
  std::uint32_t per_server_;
  double mean_s_ = 0;
  double scale_s_ = 0;
  std::vector<Unit> units_;
  std::vector<Entry> heap_;
  sim::Timer timer_;
};

FailureClocks::FailureClocks(sim::Engine& engine, sim::Recorder& recorder,
                             const std::map<std::string, FailureClassSpec>& classes,
                             UnitCounts counts)
    : engine_(engine),
      recorder_(recorder),
      counts_(counts),
      down_since_(static_cast<std::size_t>(counts.servers), Time::max()) {
  for (const auto& [name, spec] : classes)
    clocks_.push_back(
        std::make_unique<Clock>(*this, FailureClass{FailureClassId(clocks_.size()), name, spec}));
}

FailureClocks::~FailureClocks() = default;

void FailureClocks::report(const FailureClass& cls, std::uint32_t unit, sim::Stream& luck,
                           sim::KindId kind) {
  ++failures_;
  Failure failure{&cls, unit, {}, {}, {}};
  failure.detection = draw(cls.spec.detection, luck);
  failure.repair = draw(cls.spec.repair, luck);
  const sim::SubjectId subject = recorder_.subject(unit_name(counts_, cls.spec.component, unit));
  failure.event = recorder_.event(engine_.now(), Phase::failure, kind, subject, {}, 0.0);
  if (on_failure_) on_failure_(failure);
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

void FailureClocks::renew(FailureClassId cls, std::uint32_t unit) {
  clocks_.at(cls.index())->renew(unit);
}

const FailureClass& FailureClocks::failure_class(FailureClassId id) const {
  return clocks_.at(id.index())->cls();
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
