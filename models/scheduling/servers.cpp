#include "models/scheduling/servers.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

using sim::Phase;

std::vector<HostId> spare_places(std::int64_t servers, std::int64_t spares, SparePlaces places) {
  std::vector<HostId> found;
  for (std::int64_t i = 0; i < spares; ++i)
    found.emplace_back(std::size_t(
        places == SparePlaces::last ? servers - spares + i : (2 * i + 1) * servers / (2 * spares)));
  return found;
}

ServerPool::ServerPool(sim::Engine& engine, sim::Recorder& recorder, PoolShape shape)
    : engine_(engine),
      recorder_(recorder),
      shape_(std::move(shape)),
      shop_(engine, recorder, shape_.repair),
      return_luck_(engine.random("return")),
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
  for (const HostId spare : spare_places(shape_.servers, shape_.spares, shape_.spare.places))
    servers_[spare.index()].state = State::spare;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t leaf = shape_.leaf[i];
    if (leaf >= leaf_servers_.size()) leaf_servers_.resize(leaf + 1);
    leaf_servers_[leaf].push_back(HostId(i));
    servers_[i].since = engine_.now();
    (servers_[i].state == State::spare ? spare_ : unallocated_).insert(HostId(i));
  }
  if (!shape_.leaf_servers.empty()) leaf_servers_ = shape_.leaf_servers;
  counts_.servers = shape_.servers;
  counts_.gpus_per_server = shape_.gpus_per_server;
  counts_.nics_per_server = shape_.nics_per_server;
  counts_.leaves = std::int64_t(leaf_servers_.size());
  counts_.servers_per_rack = shape_.parents.servers_per_rack.value_or(0);
  counts_.servers_per_pdu = shape_.parents.servers_per_pdu.value_or(0);
  counts_.servers_per_cdu = shape_.parents.servers_per_cdu.value_or(0);
}

void ServerPool::attach(FailureClocks& clocks) {
  clocks_ = &clocks;
  clocks.on_failure([this](const Failure& failure) { strike(failure); });
  clocks.on_warning([this](const Failure& failure, Time at) { warn(failure, at); });
}

void ServerPool::set_training(std::span<const HostId> servers, bool is_training) {
  if (clocks_ != nullptr) clocks_->set_training(servers, is_training);
}

std::int64_t ServerPool::leaves_of(std::span<const HostId> servers) const {
  std::vector<bool> is_asked(servers_.size(), false);
  for (const HostId server : servers) is_asked[server.index()] = true;
  return std::count_if(leaf_servers_.begin(), leaf_servers_.end(), [&](const auto& on_leaf) {
    return std::any_of(on_leaf.begin(), on_leaf.end(),
                       [&](HostId server) { return is_asked[server.index()]; });
  });
}

ServerFlags ServerPool::flags(HostId server) const {
  const Server& s = servers_.at(server.index());
  const auto has = [&](Lack lack) { return s.lacks[std::size_t(lack)] == 0; };
  return {!s.is_broken, has(Lack::feed), has(Lack::cooling), has(Lack::network)};
}

// --- states and their time -----------------------------------------------------------------------

bool ServerPool::is_idle(const Server& s) const {
  return s.state == State::spare || s.state == State::unallocated || s.state == State::reserved;
}

/// Of several reasons to be down the first counts: broken, no feed, no cooling, no network.
Account ServerPool::account_of(const Server& s) const {
  switch (s.state) {
    case State::spare:
      return Account::spare_idle;
    case State::unallocated:
      return Account::unallocated;
    case State::reserved:
      return s.was_spare ? Account::spare_idle : Account::unallocated;
    default:
      break;
  }
  if (s.is_broken) return Account::down_repair;
  if (s.lacks[std::size_t(Lack::feed)] > 0) return Account::down_fed;
  if (s.lacks[std::size_t(Lack::cooling)] > 0) return Account::down_cooled;
  return Account::down_connected;
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
  ++version_;
  switch (s.state) {
    case State::spare:
      spare_.erase(server);
      break;
    case State::unallocated:
      unallocated_.erase(server);
      break;
    case State::reserved:
      --reserved_;
      if (Request* request = request_of(s)) std::erase(request->reserved, server);
      s.request = 0;
      break;
    case State::down:
      --down_;
      break;
    case State::held: {
      --held_;
      const auto holder = holders_.find(s.holder->number());
      if (--holder->second.second == 0) holders_.erase(holder);
      s.holder = nullptr;
      break;
    }
  }
  s.was_spare = s.state == State::spare;
  s.state = state;
  switch (state) {
    case State::spare:
      spare_.insert(server);
      break;
    case State::unallocated:
      unallocated_.insert(server);
      break;
    case State::reserved:
      ++reserved_;
      break;
    case State::down:
      ++down_;
      break;
    case State::held:
      ++held_;
      break;
  }
}

/// Whether it is a spare is decided at the end of the instant, when all who return in it are here.
void ServerPool::become_idle(HostId server) {
  set_state(server, State::unallocated);
  returned_.insert(server);
  available_.notify_all();
  decide_timer_.arm(Duration::zero());
}

sim::EventIndex ServerPool::report(sim::KindId kind, HostId server, Phase phase, double value) {
  const std::string name = unit_name(counts_, Component::server, std::uint32_t(server.index()));
  sim::EventIndex& cause = servers_[server.index()].cause;
  cause = recorder_.event(engine_.now(), phase, kind, recorder_.subject(name), cause, value);
  return cause;
}

}  // namespace trainyard::models
