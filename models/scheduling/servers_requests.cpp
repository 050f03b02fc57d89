#include <algorithm>
#include <tuple>
#include <utility>

#include "models/scheduling/servers.hpp"
#include "sim/check.hpp"

/// Who gets which server.
namespace trainyard::models {

using sim::Phase;

void ServerPool::ask_gang(ServerHolder& holder, std::int64_t servers) {
  gangs_.push_back({++requests_, &holder, engine_.now(), servers, HostId(), {}, {}});
  decide_timer_.arm(Duration::zero());
}

void ServerPool::ask_instead_of(ServerHolder& holder, HostId leaving) {
  replacements_.push_back({++requests_, &holder, engine_.now(), 1, leaving, {}, {}});
  decide_timer_.arm(Duration::zero());
}

void ServerPool::withdraw(ServerHolder& holder) {
  std::vector<HostId> freed;
  for (std::deque<Request>* requests : {&replacements_, &gangs_}) {
    for (Request& r : *requests) {
      if (r.holder != &holder) continue;
      forget_promises(r);
      freed.insert(freed.end(), r.reserved.begin(), r.reserved.end());
    }
    std::erase_if(*requests, [&](const Request& r) { return r.holder == &holder; });
  }
  for (const HostId server : freed) become_idle(server);
}

void ServerPool::release(ServerHolder& holder, HostId server) {
  Server& s = servers_[server.index()];
  check(s.state == State::held && s.holder == &holder, "who lets go of a server holds it",
        server.index());
  if (must_go_down(server)) {
    drop_promise(server);
    return go_down(server);
  }
  if (Request* request = request_of(s)) {
    std::erase(request->promised, server);
    reserve(*request, server, Duration::zero());
    decide_timer_.arm(Duration::zero());
  } else {
    become_idle(server);
  }
}

void ServerPool::decide() {
  for (const HostId server : returned_)
    if (servers_[server.index()].state == State::unallocated && spare_servers() < shape_.spares)
      set_state(server, State::spare);
  returned_.clear();
  const auto is_before = [](const Request& a, const Request& b) {
    return std::tuple(a.when, a.holder->number(), a.instead_of) <
           std::tuple(b.when, b.holder->number(), b.instead_of);
  };
  std::stable_sort(replacements_.begin(), replacements_.end(), is_before);
  std::stable_sort(gangs_.begin(), gangs_.end(), is_before);
  Decisions decisions;
  for (auto request = replacements_.begin(); request != replacements_.end();)
    request = serve_replacement(*request, decisions) ? replacements_.erase(request) : request + 1;
  while (!gangs_.empty() && serve_gang(gangs_.front(), decisions)) gangs_.pop_front();

  // Only now: those who are told may ask, withdraw and release.
  for (const auto& [holder, server, instead_of] : decisions.grants)
    holder->on_granted(server, instead_of);
  for (const auto& [holder, server] : decisions.preempted)
    if (servers_[server.index()].holder == holder) holder->on_preempted(server);
}

/// Gives what is asked for and says so, or does what leads there.
bool ServerPool::serve_replacement(Request& request, Decisions& decisions) {
  HostId found;
  if (!request.reserved.empty()) {
    found = request.reserved.front();
    if (servers_[found.index()].ready > engine_.now()) return false;  // it boots
  } else {
    found = nearest_to(request.instead_of);
    if (!found.is_valid()) {
      if (request.promised.empty()) preempt_for(request, 1, decisions);
      return false;
    }
    const bool is_cold = servers_[found.index()].state == State::spare;
    if (is_cold && shape_.spare.boot > Duration::zero()) {
      forget_promises(request);
      reserve(request, found, shape_.spare.boot);
      return false;
    }
  }
  forget_promises(request);
  give(request, found, decisions);
  return true;
}

bool ServerPool::serve_gang(Request& request, Decisions& decisions) {
  const std::int64_t missing =
      request.servers - unallocated_servers() - std::int64_t(request.reserved.size());
  if (missing > 0) {
    const std::int64_t more = missing - std::int64_t(request.promised.size());
    if (more > 0) preempt_for(request, more, decisions);
    return false;
  }
  forget_promises(request);
  std::vector<HostId> servers = request.reserved;
  for (auto next = unallocated_.begin(); std::int64_t(servers.size()) < request.servers; ++next)
    servers.push_back(*next);
  std::sort(servers.begin(), servers.end());
  for (const HostId server : servers) give(request, server, decisions);
  return true;
}

void ServerPool::give(Request& request, HostId server, Decisions& decisions) {
  set_state(server, State::held);
  servers_[server.index()].holder = request.holder;
  auto& [holder, servers] = holders_[request.holder->number()];
  check(holder == nullptr || holder == request.holder, "two holders have two numbers",
        request.holder->number());
  holder = request.holder;
  ++servers;
  decisions.grants.push_back({request.holder, server, request.instead_of});
}

void ServerPool::reserve(Request& request, HostId server, Duration ready_in) {
  set_state(server, State::reserved);
  Server& s = servers_[server.index()];
  s.request = request.id;
  s.ready = add(engine_.now(), ready_in);
  request.reserved.push_back(server);
  if (ready_in > Duration::zero())
    schedule_return({s.ready,
                     Return::Of::boot,
                     std::uint32_t(server.index()),
                     Component::server,
                     std::nullopt,
                     {}});
}

/// Picks `missing` healthy servers of preemptible holders below the asker, if there are so many: of
/// the lowest priority first, then of the youngest holder, then the nearest.
void ServerPool::preempt_for(Request& request, std::int64_t missing, Decisions& decisions) {
  const auto may_lose = [&](const ServerHolder& h) {
    return h.is_preemptible() && h.priority() < request.holder->priority();
  };
  const bool is_any = std::any_of(holders_.begin(), holders_.end(),
                                  [&](const auto& h) { return may_lose(*h.second.first); });
  if (!is_any) return;
  using Rank = std::tuple<int, std::int64_t, int, HostId>;
  std::vector<Rank> found;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const Server& s = servers_[i];
    const HostId server(i);
    if (s.state != State::held || s.request != 0 || !may_lose(*s.holder) || must_go_down(server))
      continue;
    const HostId to = request.instead_of;
    found.emplace_back(s.holder->priority(), -std::int64_t(s.holder->number()),
                       to.is_valid() ? distance(server, to) : 0, server);
  }
  if (std::int64_t(found.size()) < missing) return;
  std::sort(found.begin(), found.end());
  found.resize(std::size_t(missing));
  for (const Rank& rank : found) {
    const HostId server = std::get<HostId>(rank);
    Server& s = servers_[server.index()];
    s.request = request.id;
    request.promised.push_back(server);
    s.cause = {};
    report(recorder_.kind("server preempted", ""), server, Phase::decision);
    decisions.preempted.emplace_back(s.holder, server);
  }
}

void ServerPool::forget_promises(Request& request) {
  for (const HostId server : request.promised) servers_[server.index()].request = 0;
  request.promised.clear();
}

/// A held server that was promised cannot be given any more: the request looks for another.
void ServerPool::drop_promise(HostId server) {
  Server& s = servers_[server.index()];
  if (Request* request = request_of(s)) {
    std::erase(request->promised, server);
    decide_timer_.arm(Duration::zero());
  }
  s.request = 0;
}

ServerPool::Request* ServerPool::request_of(const Server& s) {
  if (s.request == 0) return nullptr;
  for (std::deque<Request>* requests : {&replacements_, &gangs_})
    for (Request& r : *requests)
      if (r.id == s.request) return &r;
  return nullptr;
}

int ServerPool::distance(HostId a, HostId b) const {
  return shape_.leaf[a.index()] == shape_.leaf[b.index()] ? 0
         : shape_.pod[a.index()] == shape_.pod[b.index()] ? 1
                                                          : 2;
}

HostId ServerPool::nearest_to(HostId leaving) const {
  const std::set<HostId>& from = spare_.empty() ? unallocated_ : spare_;
  HostId best;
  int best_distance = 3;
  for (const HostId server : from) {
    const int d = distance(server, leaving);
    if (d < best_distance) {
      best = server;
      best_distance = d;
      if (d == 0) break;
    }
  }
  return best;
}

}  // namespace trainyard::models
