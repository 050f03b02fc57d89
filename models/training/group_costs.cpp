#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "models/network/collectives/alone.hpp"
#include "models/training/group_traffic.hpp"
#include "sim/check.hpp"

/// GroupTraffic's seconds: the tuner's closed forms, and rates that the fabric gives.
namespace trainyard::models {
namespace {

/// What an all-reduce of this algorithm and protocol sends through one adapter, for each byte of
/// the tensor: `members` of `ranks` on each of `servers`. A tree over two servers only exchanges;
/// over three one of them is inner in half of it. LL sends a flag with every 4 bytes, LL128 8 flag
/// bytes in 128.
double adapter_bytes(const CollectiveCost& cost, double ranks, double members, double servers) {
  const double flags = cost.protocol == Protocol::ll      ? 2.0
                       : cost.protocol == Protocol::ll128 ? 128.0 / 120
                                                          : 1.0;
  const double tree = servers <= 2 ? 1.0 : (servers <= 3 ? 1.5 : 2.0);
  const bool is_ring = cost.algorithm == CollectiveAlgorithm::ring;
  return flags * (is_ring ? 2 * (ranks - 1) / ranks : tree) / members;
}

}  // namespace

/// The tuner's choice for one kind of collective and one shape of group. Costs of a step are asked
/// for again and again with the same few sizes, above all in a calibration.
class GroupTraffic::Memo {
 public:
  struct Known {
    double fixed_s = 0;        // latency and fill
    double hops = 0;           // steps between servers
    double bandwidth_s = 0;    // bytes over bandwidth
    double adapter_bytes = 0;  // of an all-reduce, through each adapter
    double time_s() const { return fixed_s + bandwidth_s; }
  };

  Memo(CollectiveKind kind, CollectiveGroup group, const LinkConstants& constants)
      : kind_(kind), group_(group), constants_(constants) {}

  bool is_for(CollectiveKind kind, const CollectiveGroup& group) const {
    return kind_ == kind && group_.ranks == group.ranks && group_.per_domain == group.per_domain;
  }

  const Known& operator()(double bytes) {
    if (const auto found = known_.find(bytes); found != known_.end()) return found->second;
    constexpr std::size_t most = 4096;  // a step has some tens
    if (known_.size() >= most) known_.clear();
    const std::optional<CollectiveCost> cost = best(kind_, bytes, group_, constants_);
    check(cost.has_value(), "every collective inside a layer has an algorithm");
    const double ranks = double(group_.ranks), members = double(group_.per_domain);
    const double servers = std::ceil(ranks / members);
    const bool is_ring = cost->algorithm == CollectiveAlgorithm::ring;
    const double hops = 2 * (is_ring ? servers - 1 : std::ceil(std::log2(servers)));
    return known_
        .emplace(bytes, Known{cost->latency_s + cost->fill_s, hops, cost->bandwidth_s,
                              bytes * adapter_bytes(*cost, ranks, members, servers)})
        .first->second;
  }

 private:
  CollectiveKind kind_;
  CollectiveGroup group_;
  LinkConstants constants_;
  std::map<double, Known> known_;
};

std::shared_ptr<GroupTraffic::Memo> GroupTraffic::memo(CollectiveKind kind, CollectiveGroup group) {
  for (const std::shared_ptr<Memo>& known : memos_)
    if (known->is_for(kind, group)) return known;
  return memos_.emplace_back(std::make_shared<Memo>(kind, group, constants_));
}

double GroupTraffic::alone_Bps(GroupPattern pattern, int servers) const {
  const double adapter_Bps = constants_.nic_efficiency * constants_.nic_Bps;
  if (pattern == GroupPattern::expert_exchange || pattern == GroupPattern::context_step)
    return adapter_Bps;
  const int members = size(pattern) / servers;  // of a server; uneven: at least
  if (members < 2) return adapter_Bps;
  return std::min(members * adapter_Bps, constants_.ring_efficiency * constants_.scale_up_Bps);
}

GroupCosts GroupTraffic::ring_costs(GroupPattern pattern, int stage) {
  const int n = size(pattern);
  if (n < 2) return GroupCosts::free();
  const Traffic& traffic = of(pattern);
  const Stage* placed = traffic.stages.empty() ? nullptr : &traffic.stages[std::size_t(stage)];
  if (!placed || placed->groups.empty()) {
    const auto inside = [&](CollectiveKind kind) {
      return [known = memo(kind, {std::size_t(n), std::size_t(n)})](double bytes) {
        return bytes > 0 ? (*known)(bytes).time_s() : 0.0;
      };
    };
    return {inside(CollectiveKind::all_gather), inside(CollectiveKind::reduce_scatter),
            inside(CollectiveKind::all_reduce)};
  }
  const int servers = placed->servers;
  const AloneConstants alone;
  const double path_s = placed->path_latency_s;
  const double alone_rate_Bps = alone_Bps(pattern, servers);
  const double bus_Bps = traffic.is_solved ? placed->rate_Bps : alone_rate_Bps;
  const double latency_s = alone.base_s + (n - servers) * alone.step_s +
                           (servers - 1) * (to_seconds(server_.nic.latency) + path_s);
  const auto once = [=, share = (n - 1.0) / n](double bytes) {
    return bytes > 0 ? latency_s + share * bytes / bus_Bps : 0.0;
  };
  // The tuner's time, unless the fabric holds its bytes up: then what a ring gets of an adapter.
  const std::size_t per_server = std::size_t((n + servers - 1) / servers);
  const bool is_held_up = bus_Bps < alone_rate_Bps * (1 - 1e-9);
  const double adapter_Bps =
      is_held_up ? bus_Bps / double(n / servers) : std::numeric_limits<double>::infinity();
  const auto reduce = [known = memo(CollectiveKind::all_reduce, {std::size_t(n), per_server}),
                       path_s, adapter_Bps](double bytes) {
    if (bytes <= 0) return 0.0;
    const Memo::Known& cost = (*known)(bytes);
    return cost.fixed_s + cost.hops * path_s +
           std::max(cost.bandwidth_s, cost.adapter_bytes / adapter_Bps);
  };
  return {once, once, reduce};
}

std::function<double(double)> GroupTraffic::step_costs_of(int stage) {
  const int n = plan_.context;
  if (n < 2) return [](double) { return 0.0; };
  const auto inside = [known = memo(CollectiveKind::point_to_point, {2, 2})](double bytes) {
    return bytes > 0 ? (*known)(bytes).time_s() : 0.0;
  };
  const Traffic& traffic = of(GroupPattern::context_step);
  if (traffic.stages.empty()) return inside;
  const Stage& placed = traffic.stages[std::size_t(stage)];
  if (placed.groups.empty()) return inside;
  const AloneConstants alone;
  const double latency_s = alone.base_s + to_seconds(server_.nic.latency) + placed.path_latency_s;
  const double rate_Bps =
      traffic.is_solved ? placed.rate_Bps : alone_Bps(GroupPattern::context_step, placed.servers);
  return [=](double bytes) {
    return bytes > 0 ? std::max(inside(bytes), latency_s + bytes / rate_Bps) : 0.0;
  };
}

namespace {

/// What one rank sends to members of its group elsewhere, `servers` of them in all. A token visits
/// a server unless none of its experts is there; a router with a limit visits at most so many.
double outside_bytes(const ExpertExchange& e, int servers) {
  if (servers < 2) return 0;
  const double others = servers - 1.0, share = others / servers;
  if (!e.deduplicate) return e.tokens * e.token_bytes * e.per_token * share;
  double visits = others * (1 - std::pow(share, e.per_token));
  if (e.server_limit) visits = std::min(visits, *e.server_limit * share);
  return e.tokens * e.token_bytes * visits;
}

/// What one rank sends to, or passes on to, other members in its server, `members` of them in all.
double inside_bytes(const ExpertExchange& e, int members, int ranks) {
  if (!e.deduplicate) return e.tokens * e.token_bytes * e.per_token * (members - 1.0) / ranks;
  // A token goes once to each rank that holds any of its experts; from elsewhere too, it is handed
  // on by the member that it came to.
  const double visits = ranks * (1 - std::pow(1 - 1.0 / ranks, e.per_token));
  return e.tokens * e.token_bytes * visits * (members - 1.0) / members;
}

}  // namespace

double GroupTraffic::exchange_bytes(int stage, const ExpertExchange& exchange) const {
  const Traffic& traffic = of(GroupPattern::expert_exchange);
  return traffic.stages.empty()
             ? 0.0
             : outside_bytes(exchange, traffic.stages[std::size_t(stage)].servers);
}

std::function<double(const ExpertExchange&)> GroupTraffic::exchange_costs(int stage) {
  const int n = plan_.expert;
  if (n < 2) return [](const ExpertExchange&) { return 0.0; };
  const Traffic& traffic = of(GroupPattern::expert_exchange);
  const Stage* placed = traffic.stages.empty() ? nullptr : &traffic.stages[std::size_t(stage)];
  const int servers = placed ? placed->servers : 1;
  const int members = (n + servers - 1) / servers;
  const AloneConstants alone;
  const double latency_s =
      alone.base_s + n * alone.pair_step_s + (placed ? placed->path_latency_s : 0.0);
  const double pair_Bps = constants_.pair_efficiency * constants_.scale_up_Bps;
  // Many small flows at once reach less of an adapter than a ring.
  const double worse = std::min(1.0, alone.all_to_all_nic_efficiency / constants_.nic_efficiency);
  const double alone_rate_Bps = alone_Bps(GroupPattern::expert_exchange, servers);
  const double outside_Bps =
      worse *
      (placed && traffic.is_solved && !placed->groups.empty() ? placed->rate_Bps : alone_rate_Bps);
  return [=](const ExpertExchange& e) {
    if (e.tokens <= 0) return 0.0;
    return latency_s + std::max(inside_bytes(e, members, n) / pair_Bps,
                                outside_bytes(e, servers) / outside_Bps);
  };
}

void GroupTraffic::make_costs() {
  // Stages that the fabric treats alike up to rounding are one.
  const auto alike = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(a); };
  bool is_one = true;
  for (const Traffic& traffic : traffic_)
    for (const Stage& stage : traffic.stages) {
      const Stage& first = traffic.stages.front();
      is_one &= stage.servers == first.servers && alike(stage.rate_Bps, first.rate_Bps) &&
                alike(stage.path_latency_s, first.path_latency_s);
    }
  const int stages = is_one ? 1 : plan_.pipeline;
  costs_.clear();
  for (int s = 0; s < stages; ++s)
    costs_.push_back({ring_costs(GroupPattern::tensor_ring, s),
                      ring_costs(GroupPattern::context_ring, s), step_costs_of(s),
                      exchange_costs(s)});
}

}  // namespace trainyard::models
