#include "models/scheduling/fabric_faults.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

using sim::Phase;
using topologies::Fabric;
using topologies::LinkId;
using topologies::LinkState;
using topologies::VertexId;

FabricFaults::FabricFaults(sim::Engine& engine, sim::Recorder& recorder, topologies::Router& router,
                           ServerPool& pool)
    : engine_(engine),
      recorder_(recorder),
      router_(router),
      pool_(pool),
      timer_(engine, Phase::completion, [this] { do_returns(); }),
      link_down_(recorder.kind("link down", "")),
      link_slow_(recorder.kind("link degraded", "speed")),
      link_back_(recorder.kind("link back", "")),
      switch_down_(recorder.kind("switch down", "")),
      switch_back_(recorder.kind("switch back", "")) {}

void FabricFaults::attach(FailureClocks& clocks) {
  clocks_ = &clocks;
  clocks.on_failure([this](const Failure& failure) { strike(failure); });
}

std::int64_t FabricFaults::faults_of(const std::string& name) const {
  const auto found = by_class_.find(name);
  return found == by_class_.end() ? 0 : found->second;
}

bool FabricFaults::is_later(const Return& a, const Return& b) {
  return a.when != b.when ? a.when > b.when : a.number > b.number;
}

void FabricFaults::strike(const Failure& failure) {
  const FailureClassSpec& spec = failure.cls->spec;
  const bool is_leaf = spec.component == Component::leaf_switch;
  const bool is_of_fabric =
      is_leaf || spec.component == Component::upper_switch || spec.component == Component::link;
  // A leaf whose software restarts in place stops the jobs, but is not down for a time.
  if (!is_of_fabric || (is_leaf && !spec.replace)) return pool_.strike(failure);

  ++by_class_[failure.cls->name];
  const bool takes_servers = is_leaf && router_.fabric().servers().ports_per_nic == 1;
  // The pool has its servers back after the repair: so must the switch be.
  const Duration down = takes_servers ? failure.repair : failure.detection + failure.repair;
  const Return fault{add(engine_.now(), down),
                     std::uint64_t(faults_++),
                     failure.cls->id,
                     spec.component,
                     failure.unit,
                     spec.effect == Effect::slow ? spec.speed : 0.0,
                     failure.event,
                     !takes_servers};
  if (takes_servers) pool_.strike(failure);
  if (fault.when != Time::max()) {
    returns_.push_back(fault);
    std::push_heap(returns_.begin(), returns_.end(), is_later);
    timer_.arm_at(returns_.front().when);
  }
  apply(fault, true);
}

std::vector<LinkId> FabricFaults::links_of(VertexId vertex) const {
  std::vector<LinkId> links;
  for (const LinkId l : router_.fabric().out_links(vertex)) {
    links.push_back(l);
    links.push_back(Fabric::reverse(l));
  }
  return links;
}

void FabricFaults::apply(const Return& fault, bool begins) {
  const Fabric& fabric = router_.fabric();
  const Phase phase = begins ? Phase::failure : Phase::completion;
  if (fault.component != Component::link) {
    const VertexId vertex = fault.component == Component::leaf_switch
                                ? fabric.vertex(fabric.edge_kind(), fault.unit)
                                : upper_switch(fabric, fault.unit);
    int& faults = down_[vertex];
    faults += begins ? 1 : -1;
    const bool is_up = faults == 0;
    if (is_up) down_.erase(vertex);
    if (begins ? faults > 1 : !is_up) return;  // it is down for another reason as well
    router_.change([&](LinkState& s) { s.set_up(vertex, is_up); });
    return report(begins ? switch_down_ : switch_back_, fault, phase, fault.cause, links_of(vertex),
                  begins);
  }

  const LinkId up = trunk(fabric, fault.unit);
  std::multiset<double>& speeds = speeds_[fault.unit];
  const double before = speeds.empty() ? 1.0 : *speeds.begin();
  if (begins)
    speeds.insert(fault.speed);
  else
    speeds.erase(speeds.find(fault.speed));
  const double now = speeds.empty() ? 1.0 : *speeds.begin();
  if (speeds.empty()) speeds_.erase(fault.unit);
  if (now == before) return;
  router_.change([&](LinkState& s) {
    s.set_cable_up(up, now > 0);
    for (const LinkId l : {up, Fabric::reverse(up)}) s.set_capacity_factor(l, now > 0 ? now : 1.0);
  });
  report(now == 0  ? link_down_
         : now < 1 ? link_slow_
                   : link_back_,
         fault, phase, fault.cause, {up, Fabric::reverse(up)}, now == 0,
         now > 0 && now < 1 ? now : 0);
}

void FabricFaults::do_returns() {
  while (!returns_.empty() && returns_.front().when <= engine_.now()) {
    const Return fault = returns_.front();
    std::pop_heap(returns_.begin(), returns_.end(), is_later);
    returns_.pop_back();
    apply(fault, false);
    if (clocks_ != nullptr && fault.renews) clocks_->renew(fault.cls, fault.unit);
  }
  if (!returns_.empty()) timer_.arm_at(returns_.front().when);
}

void FabricFaults::report(sim::KindId kind, const Return& fault, Phase phase, sim::EventIndex cause,
                          std::vector<LinkId> links, bool is_lost, double speed) {
  UnitCounts names;
  names.fabric = &router_.fabric();
  const sim::SubjectId subject = recorder_.subject(unit_name(names, fault.component, fault.unit));
  LinksChanged change{std::move(links), is_lost, {}};
  change.event = recorder_.event(engine_.now(), phase, kind, subject, cause, speed);
  for (FabricUser* user : users_) user->on_links_changed(change);
}

}  // namespace trainyard::models
