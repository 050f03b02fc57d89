#include "models/scheduling/fabric_faults.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

using sim::Phase;
using topologies::Fabric;
using topologies::LinkId;
using topologies::LinkKind;
using topologies::LinkState;
using topologies::NicId;
using topologies::VertexId;

namespace {
std::vector<LinkId> both_directions(const std::vector<LinkId>& cables) {
  std::vector<LinkId> links;
  for (const LinkId up : cables) {
    links.push_back(up);
    links.push_back(Fabric::reverse(up));
  }
  return links;
}
}  // namespace

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
  const Fabric& fabric = router_.fabric();
  const bool is_leaf = spec.component == Component::leaf_switch;
  const bool is_cable = spec.component == Component::link ||
                        spec.component == Component::access_link ||
                        (spec.component == Component::nic && spec.effect == Effect::slow);
  const bool is_store = spec.component == Component::store_server;
  const bool is_mine = is_leaf || is_cable || is_store || spec.component == Component::upper_switch;
  // A leaf whose software restarts in place stops the jobs, but is not down for a time.
  if (!is_mine || (is_leaf && !spec.replace)) return pool_.strike(failure);

  ++by_class_[failure.cls->name];
  const bool takes_servers = is_leaf && fabric.servers().ports_per_nic == 1;
  UnitCounts names = pool_.counts();
  names.fabric = &fabric;
  Fault fault;
  fault.name = unit_name(names, spec.component, failure.unit, spec.store);
  fault.cls = failure.cls->id;
  fault.unit = failure.unit;
  fault.renews = !takes_servers && spec.replace && failure.cls->id.is_valid();
  fault.cause = failure.event;
  if (is_cable) {
    fault.cables = cables_of(failure);
    fault.speed = spec.effect == Effect::slow ? spec.speed : 0.0;
  } else if (is_store) {
    fault.of = Fault::Of::store_server;
    fault.store = spec.store;
  } else {
    fault.of = Fault::Of::switch_;
    fault.vertex = is_leaf ? fabric.vertex(fabric.edge_kind(), failure.unit)
                           : upper_switch(fabric, failure.unit);
  }

  if (takes_servers) pool_.strike(failure);
  // The pool has its servers back after the repair: so must the switch be.
  const Duration down = takes_servers ? failure.repair : failure.detection + failure.repair;
  const Return entry{add(engine_.now(), down), std::uint64_t(faults_++), fault};
  if (entry.when != Time::max()) {
    returns_.push_back(entry);
    std::push_heap(returns_.begin(), returns_.end(), is_later);
    timer_.arm_at(returns_.front().when);
  }
  apply(fault, true);
}

/// The cables that a failure slows or cuts. A common cause hits the same adapter of each server.
std::vector<LinkId> FabricFaults::cables_of(const Failure& failure) const {
  const Fabric& fabric = router_.fabric();
  const Component component = failure.cls->spec.component;
  if (component == Component::link) return {trunk(fabric, failure.unit)};
  if (component == Component::access_link) return {access_link(fabric, failure.unit)};
  const auto nics = std::size_t(fabric.servers().nics);
  const std::vector<HostId> servers = failure.shared_parent
                                          ? pool_.servers_of(*failure.shared_parent, failure.parent)
                                          : std::vector{HostId(failure.unit / nics)};
  std::vector<LinkId> cables;
  for (const HostId server : servers) {
    const NicId nic = fabric.nic(server, failure.unit % nics);
    for (int port = 0; port < fabric.ports_of(nic); ++port)
      cables.push_back(fabric.uplink(nic, port));
  }
  return cables;
}

std::vector<LinkId> FabricFaults::links_of(VertexId vertex) const {
  std::vector<LinkId> links;
  for (const LinkId l : router_.fabric().out_links(vertex)) {
    links.push_back(l);
    links.push_back(Fabric::reverse(l));
  }
  return links;
}

void FabricFaults::apply(const Fault& fault, bool begins) {
  switch (fault.of) {
    case Fault::Of::cables:
      return apply_to_cables(fault, begins);
    case Fault::Of::switch_:
      return apply_to_switch(fault, begins);
    case Fault::Of::store_server:
      return apply_to_store(fault, begins);
  }
}

void FabricFaults::apply_to_switch(const Fault& fault, bool begins) {
  int& faults = down_[fault.vertex];
  faults += begins ? 1 : -1;
  const bool is_up = faults == 0;
  if (is_up) down_.erase(fault.vertex);
  if (begins ? faults > 1 : !is_up) return;  // it is down for another reason as well
  router_.change([&](LinkState& s) { s.set_up(fault.vertex, is_up); });
  report(begins ? switch_down_ : switch_back_, fault, begins, links_of(fault.vertex), begins);
}

void FabricFaults::apply_to_cables(const Fault& fault, bool begins) {
  // All cables of one fault had the same speed unless they had other faults: those are told apart
  // by what they become, the worst first.
  std::map<double, std::vector<LinkId>> changed;
  for (const LinkId up : fault.cables) {
    std::multiset<double>& speeds = speeds_[up];
    const double before = speeds.empty() ? 1.0 : *speeds.begin();
    if (begins)
      speeds.insert(fault.speed);
    else
      speeds.erase(speeds.find(fault.speed));
    const double now = speeds.empty() ? 1.0 : *speeds.begin();
    if (speeds.empty()) speeds_.erase(up);
    if (now != before) changed[now].push_back(up);
  }
  for (const auto& [now, cables] : changed) {
    router_.change([&, speed = now](LinkState& s) {
      for (const LinkId up : cables) {
        s.set_cable_up(up, speed > 0);
        for (const LinkId l : {up, Fabric::reverse(up)})
          s.set_capacity_factor(l, speed > 0 ? speed : 1.0);
      }
    });
    report(now == 0  ? link_down_
           : now < 1 ? link_slow_
                     : link_back_,
           fault, begins, both_directions(cables), now == 0, now > 0 && now < 1 ? now : 0);
  }
}

void FabricFaults::apply_to_store(const Fault& fault, bool begins) {
  int& faults = store_down_[{fault.store, fault.unit}];
  faults += begins ? 1 : -1;
  const bool is_up = faults == 0;
  if (is_up) store_down_.erase({fault.store, fault.unit});
  if (begins ? faults > 1 : !is_up) return;
  recorder_.event(engine_.now(), begins ? Phase::failure : Phase::completion,
                  recorder_.kind(begins ? "store server down" : "store server back", ""),
                  recorder_.subject(fault.name), fault.cause, 0.0);
  if (on_store_server_) on_store_server_(fault.store, begins ? -1 : +1);
}

bool FabricFaults::is_down(LinkId cable) const {
  const auto found = speeds_.find(cable);
  return found != speeds_.end() && *found->second.begin() == 0;
}

/// Tells the pool of adapters that lost their last port, or have one again. A leaf that takes its
/// single-homed servers tells the pool itself.
void FabricFaults::look_at_adapters(const std::vector<LinkId>& links, sim::EventIndex cause) {
  const Fabric& fabric = router_.fabric();
  const bool is_dual_homed = fabric.servers().ports_per_nic > 1;
  std::set<NicId> touched;
  for (const LinkId l : links)
    if (Fabric::is_upward(l) && fabric.link(l).kind == LinkKind::nic_leaf)
      touched.insert(NicId(fabric.index_in_kind(fabric.link(l).from)));
  for (const NicId nic : touched) {
    bool is_lost = true;
    for (int port = 0; port < fabric.ports_of(nic); ++port)
      is_lost = is_lost && (is_down(fabric.uplink(nic, port)) ||
                            (is_dual_homed && down_.contains(fabric.edge_of(nic, port))));
    if (is_lost == lost_adapters_.contains(nic)) continue;
    if (is_lost)
      lost_adapters_.insert(nic);
    else
      lost_adapters_.erase(nic);
    pool_.change_access_faults(fabric.host_of(nic), is_lost ? +1 : -1, cause);
  }
}

void FabricFaults::do_returns() {
  while (!returns_.empty() && returns_.front().when <= engine_.now()) {
    const Fault fault = returns_.front().fault;
    std::pop_heap(returns_.begin(), returns_.end(), is_later);
    returns_.pop_back();
    apply(fault, false);
    if (clocks_ != nullptr && fault.renews) clocks_->renew(fault.cls, fault.unit);
  }
  if (!returns_.empty()) timer_.arm_at(returns_.front().when);
}

void FabricFaults::report(sim::KindId kind, const Fault& fault, bool begins,
                          std::vector<LinkId> links, bool is_lost, double speed) {
  LinksChanged change{std::move(links), is_lost, {}, kind == link_back_};
  change.event = recorder_.event(engine_.now(), begins ? Phase::failure : Phase::completion, kind,
                                 recorder_.subject(fault.name), fault.cause, speed);
  look_at_adapters(change.links, change.event);  // first: users ask the pool who has no link
  for (FabricUser* user : users_) user->on_links_changed(change);
}

}  // namespace trainyard::models
