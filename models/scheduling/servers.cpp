#include "models/scheduling/servers.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

using sim::Phase;

ServerPool::ServerPool(sim::Engine& engine, sim::Recorder& recorder, PoolShape shape)
    : engine_(engine),
      recorder_(recorder),
      shape_(std::move(shape)),
      return_timer_(engine, Phase::completion, [this] { do_returns(); }),
      decide_timer_(engine, Phase::decision, [this] { decide(); }),
      went_down_(recorder.kind("server down", "")),
      came_back_(recorder.kind("server back", "")) {
  const auto n = static_cast<std::size_t>(shape_.servers);
  if (shape_.leaf.empty()) shape_.leaf.assign(n, 0);
  if (shape_.pod.empty()) shape_.pod.assign(n, 0);
  check(shape_.leaf.size() == n && shape_.pod.size() == n, "each server has a leaf and a pod");
  check(shape_.spares >= 0 && shape_.spares <= shape_.servers, "spares are servers of the cluster",
        shape_.spares);

  servers_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t leaf = shape_.leaf[i];
    if (leaf >= leaf_servers_.size()) leaf_servers_.resize(leaf + 1);
    leaf_servers_[leaf].push_back(HostId(i));
    const bool is_spare = i + static_cast<std::size_t>(shape_.spares) >= n;
    servers_[i].since = engine_.now();
    servers_[i].state = is_spare ? State::spare : State::unallocated;
    (is_spare ? spare_ : unallocated_).insert(HostId(i));
  }
  if (!shape_.leaf_servers.empty()) leaf_servers_ = shape_.leaf_servers;
  counts_ = {shape_.servers,
             shape_.gpus_per_server,
             shape_.nics_per_server,
             std::int64_t(leaf_servers_.size()),
             0,
             0,
             nullptr};
}

void ServerPool::attach(FailureClocks& clocks) {
  clocks_ = &clocks;
  clocks.on_failure([this](const Failure& failure) { strike(failure); });
}

std::int64_t ServerPool::leaves_of(std::span<const HostId> servers) const {
  std::vector<bool> is_asked(servers_.size(), false);
  for (const HostId server : servers) is_asked[server.index()] = true;
  return std::count_if(leaf_servers_.begin(), leaf_servers_.end(), [&](const auto& on_leaf) {
    return std::any_of(on_leaf.begin(), on_leaf.end(),
                       [&](HostId server) { return is_asked[server.index()]; });
  });
}

// --- failures ------------------------------------------------------------------------------------

std::vector<HostId> ServerPool::servers_of(Component component, std::uint32_t unit) const {
  if (component == Component::leaf_switch) return leaf_servers_.at(unit);
  return {HostId(unit / static_cast<std::size_t>(counts_.per_server(component)))};
}

void ServerPool::strike(const Failure& failure) {
  const FailureClassSpec& spec = failure.cls->spec;
  const bool is_leaf = spec.component == Component::leaf_switch;
  const std::vector<HostId> struck = servers_of(spec.component, failure.unit);
  if (is_leaf && spec.replace) {
    for (const HostId server : struck) change_leaf_faults(server, +1);
    schedule_return(
        {add(engine_.now(), failure.repair), failure.unit, true, {failure.cls->id, failure.unit}});
  }

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
      if (spec.replace && !is_leaf) {
        s.is_broken = true;
        Damage& damage = damage_[server];
        damage.repair = std::max(damage.repair, failure.repair);
        damage.units.push_back({failure.cls->id, failure.unit});
      }
    } else if (s.state != State::down) {
      strike_idle(server, failure);
    }
  }
  for (auto& [number, entry] : by_holder) entry.first->on_strike(Strike{failure, entry.second});
}

// Nobody waits for an idle server, so a health check finds it at once: no detection delay.
void ServerPool::strike_idle(HostId server, const Failure& failure) {
  const FailureClassSpec& spec = failure.cls->spec;
  if (!spec.replace) return;
  if (spec.component != Component::leaf_switch) {
    servers_[server.index()].is_broken = true;
    damage_[server] = {failure.repair, {{failure.cls->id, failure.unit}}};
  }
  go_down(server);
}

// --- states and their time -----------------------------------------------------------------------

Account ServerPool::account_of(const Server& s) const {
  switch (s.state) {
    case State::spare:
      return Account::spare_idle;
    case State::unallocated:
      return Account::unallocated;
    default:
      return s.is_broken ? Account::down_repair : Account::down_connected;
  }
}

void ServerPool::settle(Server& s) {
  const Duration d = engine_.now() - s.since;
  s.since = engine_.now();
  if (s.state != State::held) ledger_.add(account_of(s), shape_.gpus_per_server, d);
}

void ServerPool::settle() {
  for (Server& s : servers_) settle(s);
}

void ServerPool::set_state(HostId server, State state) {
  Server& s = servers_[server.index()];
  settle(s);
  switch (s.state) {
    case State::spare:
      spare_.erase(server);
      break;
    case State::unallocated:
      unallocated_.erase(server);
      break;
    case State::down:
      --down_;
      break;
    case State::held:
      --held_;
      s.holder = nullptr;
      break;
  }
  s.state = state;
  switch (state) {
    case State::spare:
      spare_.insert(server);
      break;
    case State::unallocated:
      unallocated_.insert(server);
      break;
    case State::down:
      ++down_;
      break;
    case State::held:
      ++held_;
      break;
  }
}

void ServerPool::change_leaf_faults(HostId server, int change) {
  Server& s = servers_[server.index()];
  settle(s);
  s.leaf_faults = static_cast<std::uint16_t>(s.leaf_faults + change);
}

void ServerPool::report(sim::KindId kind, HostId server, Phase phase) {
  const std::string name = unit_name(counts_, Component::server, std::uint32_t(server.index()));
  sim::EventIndex& cause = servers_[server.index()].cause;
  cause = recorder_.event(engine_.now(), phase, kind, recorder_.subject(name), cause, 0.0);
}

void ServerPool::go_down(HostId server) {
  set_state(server, State::down);
  report(went_down_, server, Phase::decision);
  if (clocks_ != nullptr) clocks_->pause(server);
  const auto damage = damage_.find(server);
  if (damage != damage_.end())
    schedule_return(
        {add(engine_.now(), damage->second.repair), std::uint32_t(server.index()), false, {}});
}

/// Repaired, or its leaf is back: if nothing else is wrong, it is one of the idle servers again.
void ServerPool::come_back(HostId server) {
  Server& s = servers_[server.index()];
  if (s.state != State::down || s.is_broken || s.leaf_faults > 0) return;
  set_state(server, spare_servers() < shape_.spares ? State::spare : State::unallocated);
  report(came_back_, server, Phase::completion);
  if (clocks_ != nullptr) clocks_->resume(server);
  const auto damage = damage_.find(server);
  if (damage != damage_.end()) {
    if (clocks_ != nullptr)
      for (const Unit& unit : damage->second.units) clocks_->renew(unit.cls, unit.unit);
    damage_.erase(damage);
  }
  available_.notify_all();
  decide_timer_.arm(Duration::zero());
}

bool ServerPool::is_later(const Return& a, const Return& b) {
  if (a.when != b.when) return a.when > b.when;
  if (a.is_leaf != b.is_leaf) return b.is_leaf;
  return a.index > b.index;
}

void ServerPool::schedule_return(const Return& entry) {
  if (entry.when == Time::max()) return;  // never repaired
  returns_.push_back(entry);
  std::push_heap(returns_.begin(), returns_.end(), is_later);
  return_timer_.arm_at(returns_.front().when);
}

void ServerPool::do_returns() {
  while (!returns_.empty() && returns_.front().when <= engine_.now()) {
    const Return entry = returns_.front();
    std::pop_heap(returns_.begin(), returns_.end(), is_later);
    returns_.pop_back();
    if (entry.is_leaf) {
      if (clocks_ != nullptr) clocks_->renew(entry.leaf_unit.cls, entry.leaf_unit.unit);
      for (const HostId server : leaf_servers_[entry.index]) {
        change_leaf_faults(server, -1);
        come_back(server);
      }
    } else {
      Server& s = servers_[entry.index];
      settle(s);
      s.is_broken = false;
      come_back(HostId(entry.index));
    }
  }
  if (!returns_.empty()) return_timer_.arm_at(returns_.front().when);
}

// --- requests ------------------------------------------------------------------------------------

void ServerPool::ask_gang(ServerHolder& holder, std::int64_t servers) {
  gangs_.push_back({&holder, engine_.now(), servers, HostId()});
  decide_timer_.arm(Duration::zero());
}

void ServerPool::ask_instead_of(ServerHolder& holder, HostId leaving) {
  replacements_.push_back({&holder, engine_.now(), 1, leaving});
  decide_timer_.arm(Duration::zero());
}

void ServerPool::withdraw(ServerHolder& holder) {
  const auto is_his = [&](const Request& r) { return r.holder == &holder; };
  std::erase_if(replacements_, is_his);
  std::erase_if(gangs_, is_his);
}

void ServerPool::release(ServerHolder& holder, HostId server) {
  Server& s = servers_[server.index()];
  check(s.state == State::held && s.holder == &holder, "who lets go of a server holds it",
        server.index());
  if (s.is_broken || s.leaf_faults > 0) {
    go_down(server);
    return;
  }
  set_state(server, spare_servers() < shape_.spares ? State::spare : State::unallocated);
  available_.notify_all();
  decide_timer_.arm(Duration::zero());
}

void ServerPool::decide() {
  const auto is_before = [](const Request& a, const Request& b) {
    return a.when != b.when ? a.when < b.when : a.holder->number() < b.holder->number();
  };
  std::stable_sort(replacements_.begin(), replacements_.end(), is_before);
  std::stable_sort(gangs_.begin(), gangs_.end(), is_before);
  while (!replacements_.empty() && grant(replacements_.front())) {
  }
  while (!gangs_.empty() && grant(gangs_.front())) {
  }
}

/// Gives what is asked for and forgets the request, or leaves everything as it is.
bool ServerPool::grant(const Request& asked) {
  const Request request = asked;
  if (request.instead_of.is_valid()) {
    const HostId found = nearest_to(request.instead_of);
    if (!found.is_valid()) return false;
    replacements_.pop_front();
    hand_over(*request.holder, found, request.instead_of);
    return true;
  }
  if (unallocated_servers() < request.servers) return false;
  gangs_.pop_front();
  for (std::int64_t i = 0; i < request.servers; ++i)
    hand_over(*request.holder, *unallocated_.begin(), HostId());
  return true;
}

void ServerPool::hand_over(ServerHolder& holder, HostId server, HostId instead_of) {
  set_state(server, State::held);
  servers_[server.index()].holder = &holder;
  holder.on_granted(server, instead_of);
}

HostId ServerPool::nearest_to(HostId leaving) const {
  const std::set<HostId>& from = spare_.empty() ? unallocated_ : spare_;
  HostId best;
  int best_distance = 3;
  for (const HostId server : from) {
    const int distance = shape_.leaf[server.index()] == shape_.leaf[leaving.index()] ? 0
                         : shape_.pod[server.index()] == shape_.pod[leaving.index()] ? 1
                                                                                     : 2;
    if (distance < best_distance) {
      best = server;
      best_distance = distance;
      if (distance == 0) break;
    }
  }
  return best;
}

}  // namespace trainyard::models
