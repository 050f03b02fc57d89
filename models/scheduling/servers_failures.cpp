#include <algorithm>
#include <utility>

#include "models/scheduling/servers.hpp"
#include "sim/check.hpp"

/// What failures do to servers, and how they come back.
namespace trainyard::models {

using sim::Phase;

namespace {
bool is_part_of_server(Component c) {
  return c == Component::gpu || c == Component::nic || c == Component::server;
}
}  // namespace

std::vector<HostId> ServerPool::servers_of(Component component, std::uint32_t unit) const {
  std::optional<int> group;
  switch (component) {
    case Component::leaf_switch:
      return leaf_servers_.at(unit);
    case Component::rack:
      group = shape_.parents.servers_per_rack;
      break;
    case Component::pdu:
      group = shape_.parents.servers_per_pdu;
      break;
    case Component::cdu:
      group = shape_.parents.servers_per_cdu;
      break;
    default:
      check(is_part_of_server(component), "no server hangs on this component", int(component));
      return {HostId(unit / static_cast<std::size_t>(counts_.per_server(component)))};
  }
  check(group.has_value(), "a parent that fails has servers", int(component));
  const std::size_t size = std::size_t(*group), first = unit * size;
  check(first < servers_.size(), "a parent of this number exists", unit);
  std::vector<HostId> servers;
  for (std::size_t i = first; i < std::min(first + size, servers_.size()); ++i)
    servers.emplace_back(i);
  return servers;
}

void ServerPool::warn(const Failure& failure, Time strikes_at) {
  warn(failure,
       failure.shared_parent ? servers_of(*failure.shared_parent, failure.parent)
                             : servers_of(failure.cls->spec.component, failure.unit),
       strikes_at);
}

void ServerPool::warn(const Failure& failure, std::span<const HostId> threatened, Time strikes_at) {
  std::map<std::size_t, std::pair<ServerHolder*, std::vector<HostId>>> by_holder;
  for (const HostId server : threatened)
    if (ServerHolder* holder = servers_[server.index()].holder) {
      by_holder[holder->number()].first = holder;
      by_holder[holder->number()].second.push_back(server);
    }
  for (auto& [number, entry] : by_holder)
    entry.first->on_warning(failure, entry.second, strikes_at);
}

void ServerPool::strike(const Failure& failure) {
  const FailureClassSpec& spec = failure.cls->spec;
  const bool is_parent = !is_part_of_server(spec.component);
  const bool is_planned = spec.effect == Effect::maintenance;
  std::optional<Lack> lack;
  if (is_parent)
    lack = spec.component == Component::leaf_switch ? Lack::network
           : spec.component == Component::cdu       ? Lack::cooling
                                                    : Lack::feed;
  const std::vector<HostId> struck = failure.shared_parent
                                         ? servers_of(*failure.shared_parent, failure.parent)
                                         : servers_of(spec.component, failure.unit);
  if (is_parent && spec.replace) {
    // Planned work takes each server when it is let go; the next work is drawn after the time of
    // this one.
    if (is_planned) lack.reset();
    if (lack)
      for (const HostId server : struck) change_lack(server, *lack, +1);
    schedule_return({add(engine_.now(), failure.repair),
                     Return::Of::parent,
                     failure.unit,
                     spec.component,
                     lack,
                     {failure.cls->id, failure.unit}});
  }
  strike(failure, lack, struck);
}

void ServerPool::take_away(const Failure& failure, Lack lack, std::span<const HostId> servers) {
  check(!is_part_of_server(failure.cls->spec.component) && failure.cls->spec.replace,
        "what a parent takes away comes back with the parent");
  for (const HostId server : servers) change_lack(server, lack, +1);
  strike(failure, lack, servers);
}

void ServerPool::give_back(Lack lack, std::span<const HostId> servers) {
  for (const HostId server : servers) {
    change_lack(server, lack, -1);
    come_back(server);
  }
}

void ServerPool::strike(const Failure& failure, std::optional<Lack> lack,
                        std::span<const HostId> struck) {
  const FailureClassSpec& spec = failure.cls->spec;
  std::map<std::size_t, std::pair<ServerHolder*, std::vector<HostId>>> by_holder;
  for (const HostId server : struck) {
    Server& s = servers_[server.index()];
    if (spec.replace && s.state != State::down) s.cause = failure.event;
    if (s.state == State::held) {
      auto& [holder, held] = by_holder[s.holder->number()];
      check(holder == nullptr || holder == s.holder, "two holders have two numbers",
            s.holder->number());
      holder = s.holder;
      held.push_back(server);
      mark(server, failure);
      if (spec.replace) drop_promise(server);
    } else if (s.state != State::down) {
      strike_idle(server, failure);
    }
  }
  for (auto& [number, entry] : by_holder)
    entry.first->on_strike(
        Strike{failure, entry.second, lack == Lack::feed, lack == Lack::cooling});
}

// Nobody waits for an idle server, so a health check finds it at once: no detection delay.
void ServerPool::strike_idle(HostId server, const Failure& failure) {
  mark(server, failure);
  if (failure.cls->spec.replace) go_down(server);
}

/// Notes what a struck server needs once it is let go.
void ServerPool::mark(HostId server, const Failure& failure) {
  const FailureClassSpec& spec = failure.cls->spec;
  const bool is_planned = spec.effect == Effect::maintenance;
  if (!is_part_of_server(spec.component)) {
    if (is_planned && spec.replace)
      outages_[server].push_back(
          {spec.component == Component::cdu ? Lack::cooling : Lack::feed, failure.repair});
    return;
  }
  // Of a common cause the others are victims: it is not held against them.
  const bool is_own = servers_of(spec.component, failure.unit).front() == server;
  if (is_own && !is_planned) ++servers_[server.index()].failures;
  if (!spec.replace) return;
  Damage& damage = damage_[server];
  damage.repair = std::max(damage.repair, failure.repair);
  if (is_own) damage.units.push_back({failure.cls->id, failure.unit});
  if (is_planned) return;
  damage.is_planned = false;
  servers_[server.index()].is_broken = true;
  if (is_own && shape_.exclude) damage.is_offender = is_repeat(server) || damage.is_offender;
}

/// Notes one more failure of a server, and whether it is one too many.
bool ServerPool::is_repeat(HostId server) {
  std::vector<Time>& history = history_[server];
  std::erase_if(history, [&](Time t) { return engine_.now() - t > shape_.exclude->within; });
  history.push_back(engine_.now());
  return std::int64_t(history.size()) >= shape_.exclude->after;
}

void ServerPool::change_lack(HostId server, Lack lack, int change) {
  Server& s = servers_[server.index()];
  settle(s);
  std::uint16_t& causes = s.lacks[std::size_t(lack)];
  check(change > 0 || causes > 0, "what returns had gone", server.index());
  ++version_;
  causes = static_cast<std::uint16_t>(causes + change);
  if (change < 0 && lack == Lack::feed && causes == 0) feed_returned(server);
}

void ServerPool::change_access_faults(HostId server, int change, sim::EventIndex cause) {
  Server& s = servers_.at(server.index());
  change_lack(server, Lack::network, change);
  if (change < 0) return come_back(server);
  if (s.state != State::down) s.cause = cause;
  if (is_idle(s)) go_down(server);
}

/// Some servers do not come back after a loss of feed.
void ServerPool::feed_returned(HostId server) {
  if (shape_.parents.return_failures == 0) return;
  Server& s = servers_[server.index()];
  sim::Stream luck = return_luck_.child(server.index()).child(s.feed_returns++);
  const bool breaks = luck.uniform() < shape_.parents.return_failures;
  const Duration repair = draw(FailureClassSpec{}.repair, luck);
  if (!breaks || s.is_broken) return;
  s.is_broken = true;
  report(recorder_.kind("did not come back", ""), server, Phase::completion);
  Damage& damage = damage_[server];
  damage.repair = std::max(damage.repair, repair);
  damage.is_planned = false;
  if (s.state == State::down) admit(server);
}

// --- down, and back ------------------------------------------------------------------------------

bool ServerPool::must_go_down(HostId server) const {
  return !flags(server).is_up() || damage_.contains(server) || outages_.contains(server);
}

void ServerPool::go_down(HostId server) {
  Server& s = servers_[server.index()];
  if (s.state == State::reserved) decide_timer_.arm(Duration::zero());  // it is asked for again
  set_state(server, State::down);
  const auto outages = outages_.find(server);
  if (outages != outages_.end()) {
    for (const Outage& outage : outages->second) {
      change_lack(server, outage.lack, +1);
      schedule_return({add(engine_.now(), outage.lasts),
                       Return::Of::outage,
                       std::uint32_t(server.index()),
                       Component::server,
                       outage.lack,
                       {}});
    }
    outages_.erase(outages);
  }
  report(went_down_, server, Phase::decision);
  if (clocks_ != nullptr) clocks_->pause(server);
  if (damage_.contains(server)) admit(server);
}

void ServerPool::admit(HostId server) {
  Server& s = servers_[server.index()];
  s.is_broken = true;
  Damage& damage = damage_.at(server);
  if (damage.is_offender) {
    ++excluded_;
    report(recorder_.kind("server excluded", "failures"), server, Phase::decision,
           double(history_[server].size()));
    history_.erase(server);
  }
  const RepairWay way = damage.is_offender  ? RepairWay::vendor
                        : damage.is_planned ? RepairWay::planned
                                            : RepairWay::any;
  shop_.admit(server, damage.repair, s.cause, way,
              [this, server](sim::EventIndex last) { repaired(server, last); });
}

void ServerPool::repaired(HostId server, sim::EventIndex last) {
  // At one instant parents return first, whichever timer happened to be set first.
  if (!returns_.empty() && returns_.front().when <= engine_.now()) do_returns();
  Server& s = servers_[server.index()];
  settle(s);
  s.is_broken = false;
  s.cause = last;
  Damage& damage = damage_.at(server);
  damage.repair = {};
  damage.is_offender = false;
  come_back(server);
}

/// Repaired, or what it lacked is back: if nothing else is wrong, it is one of the idle servers
/// again.
void ServerPool::come_back(HostId server) {
  Server& s = servers_[server.index()];
  if (s.state != State::down || !flags(server).is_up()) return;
  become_idle(server);
  report(came_back_, server, Phase::completion);
  if (clocks_ != nullptr) clocks_->resume(server);
  const auto damage = damage_.find(server);
  if (damage != damage_.end()) {
    if (clocks_ != nullptr)
      for (const Unit& unit : damage->second.units)
        if (unit.cls.is_valid()) clocks_->renew(unit.cls, unit.unit);
    damage_.erase(damage);
  }
}

bool ServerPool::is_later(const Return& a, const Return& b) {
  if (a.when != b.when) return a.when > b.when;
  if (a.of != b.of) return a.of > b.of;
  if (a.component != b.component) return a.component > b.component;
  return a.index > b.index;
}

void ServerPool::schedule_return(const Return& entry) {
  if (entry.when == Time::max()) return;  // never
  returns_.push_back(entry);
  std::push_heap(returns_.begin(), returns_.end(), is_later);
  return_timer_.arm_at(returns_.front().when);
}

void ServerPool::do_returns() {
  while (!returns_.empty() && returns_.front().when <= engine_.now()) {
    const Return entry = returns_.front();
    std::pop_heap(returns_.begin(), returns_.end(), is_later);
    returns_.pop_back();
    do_return(entry);
  }
  if (!returns_.empty()) return_timer_.arm_at(returns_.front().when);
}

void ServerPool::do_return(const Return& entry) {
  switch (entry.of) {
    case Return::Of::parent:
      if (clocks_ != nullptr && entry.unit.cls.is_valid())
        clocks_->renew(entry.unit.cls, entry.unit.unit);
      if (!entry.lack) return;
      for (const HostId server : servers_of(entry.component, entry.index)) {
        change_lack(server, *entry.lack, -1);
        come_back(server);
      }
      return;
    case Return::Of::outage:
      change_lack(HostId(entry.index), *entry.lack, -1);
      return come_back(HostId(entry.index));
    case Return::Of::boot:
      decide_timer_.arm(Duration::zero());
      return;
  }
}

}  // namespace trainyard::models
