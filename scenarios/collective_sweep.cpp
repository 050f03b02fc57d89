#include "scenarios/collective_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "models/network/fabric_paths.hpp"
#include "models/network/lossy_ethernet.hpp"
#include "scenarios/collective_fabric_time.hpp"
#include "scenarios/world.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {

using models::CollectiveAlgorithm;
using models::CollectiveCost;
using models::CollectiveKind;
using models::LinkEfficiency;
using models::Protocol;
using topologies::Fabric;
using topologies::LinkId;
using topologies::NicId;

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

/// What of the wire is left for payload: NCCL's share of an adapter's rate, and the flags that LL
/// and LL128 send along.
double wire_efficiency(const models::LinkConstants& c, Protocol p) {
  const double payload = p == Protocol::simple ? 1 : p == Protocol::ll ? 0.5 : 120.0 / 128;
  return c.nic_efficiency * payload;
}

topologies::Router router_for(const Fabric& fabric, const Scenario& scenario,
                              const SweepRequest& request) {
  const topologies::FabricSpec& spec = scenario.cluster.fabric;
  return {fabric, spec.routing, request.seed,
          request.queue_pairs > 0 ? request.queue_pairs : spec.flows_per_pair};
}

class Sweep {
 public:
  Sweep(const Scenario& scenario, const SweepRequest& request)
      : scenario_(scenario),
        request_(request),
        fabric_(Site(scenario).fabric),
        router_(router_for(*fabric_, scenario, request)) {
    for (const SweepFault& fault : request.faults) apply(fault, router_);
    const models::ServerSpec& server = scenario.cluster.server;
    constants_ = models::link_constants(server.gpu.scale_up_rate, server.gpu.peak_fp8.value() > 0,
                                        server.nic.rate);
    constants_.network_reduction =
        request.network_reduction || request.algorithm == CollectiveAlgorithm::sharp;
    constants_.launch_floor_s = request.launch_floor_s;
    take_groups();
  }

  SweepResult run() {
    SweepResult out{group_.nodes(),
                    group_.per_node,
                    placement_text(),
                    constants_.nic_Bps * group_.nic_share,
                    {}};
    for (const SweepTraffic& traffic : request_.traffic) {
      const Exchange exchange = exchange_of(traffic, group_, constants_);
      prepared_.clear();
      for (const double bytes : request_.bytes) out.rows.push_back(row(exchange, bytes));
    }
    return out;
  }

 private:
  /// Of one algorithm: its plan for one byte, alone and beside the others.
  struct Prepared {
    std::string obstacle;
    models::PhasedPlan plan;
    std::unique_ptr<PlanOnFabric> alone;
    std::unique_ptr<JobsOnFabric> together;
    std::vector<Exchange> rivals;
    std::vector<CollectiveAlgorithm> rival_algorithms;
  };
  struct Timed {
    CollectiveCost way;
    double time_s = 0, bandwidth_s = 0, fabric_s = 0;
    LinkId bottleneck;
    std::vector<std::string> notes;
  };

  void take_groups() {
    const std::size_t servers = std::size_t(scenario_.cluster.servers - scenario_.cluster.spares);
    std::vector<std::size_t> free =
        servers_in_order(*fabric_, servers, request_.order, request_.seed, request_.servers);
    GroupRequest own = request_.group;
    std::vector<std::size_t> rest;
    if (!request_.servers.empty()) {
      rest.assign(free.begin() + std::ptrdiff_t(request_.servers.size()), free.end());
      free.resize(request_.servers.size());
    }
    // Jobs that do the same on as many ranks share all servers evenly, if no number is given.
    if (own.ranks == 0 && request_.compete > 0 && request_.servers.empty()) {
      const std::size_t gpus = std::size_t(fabric_->servers().gpus);
      own.ranks = servers / (request_.compete + 1) * (own.per_node == 0 ? gpus : own.per_node);
    }
    group_ = rank_group(take_group(*fabric_, free, own));
    first_server_ = group_.members.front().node;
    last_server_ = group_.members.back().node;
    free.insert(free.end(), rest.begin(), rest.end());
    own.ranks = group_.members.size();
    for (std::size_t i = 0; i < request_.compete; ++i)
      equals_.push_back(rank_group(take_group(*fabric_, free, own)));
    for (const Competitor& c : request_.competitors)
      others_.push_back(rank_group(take_group(*fabric_, free, c.group)));
  }

  std::string placement_text() const {
    const std::string order =
        request_.servers.empty() ? std::string(name_of(request_.order)) : std::string("listed");
    return order + ", node-" + std::to_string(first_server_) + " first, node-" +
           std::to_string(last_server_) + " last";
  }

  models::PhasedPlan plan_for_one_byte(const Exchange& e, CollectiveAlgorithm algorithm,
                                       std::uint64_t label) {
    // Latency and fill are the tuner's.
    const models::CollectiveOptions options{.channels_per_nic = request_.channels_per_nic,
                                            .label = label,
                                            .corrections = {.latency = false, .fill = false}};
    if (router_.kind() == topologies::RoutingKind::ugal)
      router_.adapt_to(demands_of(e, algorithm, options));  // to this job; others do not count
    const models::FabricPaths paths(router_);
    models::PhasedPlan plan =
        e.traffic.is_permutation
            ? paths.plan_permutation(1, e.group.members, options)
            : paths.plan(e.traffic.kind, algorithm, 1, e.group.members, options);
    if (paths.no_path()) throw SweepRefused(no_path_text(router_, *paths.no_path()));
    if (reduces_in_scale_up_switch(e, algorithm)) reduce_in_scale_up_switch(plan, e, *fabric_);
    return plan;
  }

  const Prepared& prepared(const Exchange& e, CollectiveAlgorithm algorithm) {
    const auto [at, is_new] = prepared_.try_emplace(algorithm);
    Prepared& p = at->second;
    if (!is_new) return p;
    if (!e.traffic.is_permutation) {
      const models::FabricPaths paths(router_);
      if (!models::supports(e.traffic.kind, algorithm, e.group.members, paths, &p.obstacle))
        return p;
    }
    p.plan = plan_for_one_byte(e, algorithm, 0);
    p.alone = std::make_unique<PlanOnFabric>(router_, p.plan);
    if (equals_.empty() && others_.empty()) return p;

    for (const RankGroup& g : equals_) {
      p.rivals.push_back(exchange_of(e.traffic, g, constants_));
      p.rival_algorithms.push_back(algorithm);
    }
    for (std::size_t i = 0; i < others_.size(); ++i) {
      p.rivals.push_back(exchange_of(request_.competitors[i].traffic, others_[i], constants_));
      p.rival_algorithms.push_back(rival_way(p.rivals.back(), i).algorithm);
    }
    std::vector<models::PhasedPlan> plans;
    for (std::size_t i = 0; i < p.rivals.size(); ++i)
      plans.push_back(plan_for_one_byte(p.rivals[i], p.rival_algorithms[i], i + 1));
    std::vector<JobsOnFabric::Job> jobs{{&p.plan, e.group.members}};
    for (std::size_t i = 0; i < plans.size(); ++i)
      jobs.push_back({&plans[i], p.rivals[i].group.members});
    p.together = std::make_unique<JobsOnFabric>(router_, jobs);
    return p;
  }

  /// What NCCL takes for the competitor, which knows nothing of the fabric.
  CollectiveCost rival_way(const Exchange& rival, std::size_t i) const {
    const auto way = models::best(rival.traffic.kind, request_.competitors[i].bytes, rival.shape,
                                  rival.constants);
    check(way.has_value(), "every kind of collective can be done");
    return *way;
  }

  LinkEfficiency efficiency(const CollectiveCost& way) const {
    return {way.inside_efficiency, way.network_efficiency,
            wire_efficiency(constants_, way.protocol)};
  }

  /// Empty: the algorithm cannot be done here.
  std::optional<Timed> timed(const Exchange& e, const CollectiveCost& way, double bytes) {
    const Prepared& p = prepared(e, way.algorithm);
    if (!p.alone) return std::nullopt;
    Timed out;
    out.way = way;
    out.notes = p.plan.notes;
    FabricTime fabric = p.alone->time(bytes, efficiency(way));
    if (p.together) {
      std::vector<double> all_bytes{bytes};
      std::vector<LinkEfficiency> all_efficiencies{efficiency(way)};
      for (std::size_t i = 0; i < p.rivals.size(); ++i) {
        const bool is_equal = i < equals_.size();
        all_bytes.push_back(is_equal ? bytes : request_.competitors[i - equals_.size()].bytes);
        all_efficiencies.push_back(
            efficiency(is_equal ? way : rival_way(p.rivals[i], i - equals_.size())));
      }
      const JobsOnFabric::Result together = p.together->time(all_bytes, all_efficiencies);
      check(together.first.seconds >= fabric.seconds * (1 - 1e-9), "company makes nobody faster",
            together.first.seconds, fabric.seconds);
      fabric = together.first;
      if (together.latest_s > fabric.seconds * (1 + 1e-6))
        out.notes.push_back(
            "surplus-range: where others leave capacity in bursts the bytes may take up to " +
            trainyard::to_text(seconds(together.latest_s)));
    }
    out.bottleneck = fabric.bottleneck;
    // The tuner knows even groups; where servers bring unequal numbers, adapters carry more.
    LinkEfficiency no_switches = efficiency(way);
    no_switches.fabric = std::numeric_limits<double>::infinity();
    // Which port of a dual-homed adapter a flow takes is up to the fabric.
    if (fabric_->servers().ports_per_nic > 1) no_switches.adapters = no_switches.fabric;
    out.bandwidth_s = std::max(way.bandwidth_s, p.alone->time(bytes, no_switches).seconds);
    out.fabric_s = std::max(out.bandwidth_s, fabric.seconds);
    stretch_by_loss(e, way, bytes, out);
    out.time_s = std::hypot(way.latency_s + way.fill_s + out.fabric_s, constants_.launch_floor_s);
    return out;
  }

  /// A message is a chunk of a step; a step waits for the slowest of its adapters.
  void stretch_by_loss(const Exchange& e, const CollectiveCost& way, double bytes,
                       Timed& out) const {
    if (request_.loss_rate == 0 || e.group.nodes() < 2 || bytes == 0) return;
    constexpr double mtu_bytes = 4096;
    const double message = std::clamp(bytes / double(e.shape.ranks), 1.0, constants_.chunk_bytes);
    const double adapters = double(e.group.members.size()) * e.group.nic_share;
    std::vector<LinkId> path;
    router_.path(NicId(e.group.members.front().nic), NicId(e.group.members.back().nic), 0, path);
    const double rtt_s =
        2 * to_seconds(router_.latency(path)) + to_seconds(scenario_.cluster.server.nic.latency);
    const models::LossyStretch loss = models::lossy_stretch(
        {.loss_rate = request_.loss_rate}, constants_.nic_Bps * way.network_efficiency, rtt_s,
        message, mtu_bytes, e.traffic.is_permutation ? 1 : std::size_t(std::max(1.0, adapters)));
    out.fabric_s *= loss.stretch;
    out.notes.insert(out.notes.end(), loss.notes.begin(), loss.notes.end());
    out.notes.push_back(
        "lossy Ethernet: mean time; a step waits for the slowest adapter, and timeouts are added "
        "one "
        "after the other, too long where they overlap (docs/models/lossy-ethernet.md)");
  }

  std::vector<CollectiveCost> ways(const Exchange& e, double bytes) const {
    std::vector<CollectiveCost> all = models::costs(e.traffic.kind, bytes, e.shape, e.constants);
    std::vector<std::string> there;
    std::vector<CollectiveCost> out;
    for (const CollectiveCost& way : all) {
      const std::string name(name_of(way.algorithm));
      if (std::find(there.begin(), there.end(), name) == there.end()) there.push_back(name);
      const bool is_left_to_nccl = way.algorithm != CollectiveAlgorithm::hierarchical &&
                                   way.algorithm != CollectiveAlgorithm::halving_doubling;
      if (request_.algorithm ? way.algorithm != *request_.algorithm : !is_left_to_nccl) continue;
      if (request_.protocol && way.protocol != *request_.protocol) continue;
      out.push_back(way);
    }
    if (out.empty())
      throw SweepRefused(
          "there is no " + std::string(request_.algorithm ? name_of(*request_.algorithm) : "way") +
          (request_.protocol ? " with " + std::string(name_of(*request_.protocol)) : "") + " for " +
          e.traffic.name() + " on " + std::to_string(e.shape.ranks) +
          " ranks; there is: " + joined(there));
    return out;
  }

  SweepRow row(const Exchange& e, double bytes) {
    std::optional<Timed> least, ring;
    std::string obstacle;
    for (const CollectiveCost& way : ways(e, bytes)) {
      std::optional<Timed> t = timed(e, way, bytes);
      if (!t) {
        obstacle = prepared(e, way.algorithm).obstacle;
        continue;
      }
      // NCCL's tuner knows nothing of the fill when it chooses the protocol of a ring (tuner.hpp).
      const bool is_ring =
          way.algorithm == CollectiveAlgorithm::ring && e.traffic.kind != CollectiveKind::broadcast;
      const auto believed_s = [](const Timed& x) { return x.way.latency_s + x.fabric_s; };
      if (is_ring && (!ring || believed_s(*t) < believed_s(*ring))) ring = t;
      if (!is_ring && (!least || t->time_s < least->time_s)) least = t;
    }
    if (ring && (!least || ring->time_s < least->time_s)) least = ring;
    if (!least) throw SweepRefused(obstacle);
    return row_of(e, bytes, *least);
  }

  SweepRow row_of(const Exchange& e, double bytes, const Timed& t) {
    const Prepared& p = prepared(e, t.way.algorithm);
    SweepRow row;
    row.kind = e.traffic.name();
    row.algorithm = t.way.algorithm;
    row.protocol = t.way.protocol;
    row.ranks = e.group.members.size();
    row.bytes = bytes;
    row.time_s = t.time_s;
    row.latency_s = t.way.latency_s;
    row.fill_s = t.way.fill_s;
    row.bandwidth_s = t.bandwidth_s;
    row.fabric_s = t.fabric_s;
    row.algbw_Bps = models::algbw_Bps(bytes, t.time_s);
    row.busbw_Bps = models::busbw_Bps(e.traffic.kind, e.shape.ranks, bytes, t.time_s);
    row.notes = t.notes;
    row.bound_s = e.group.is_even() ? closed_bound_s(e, t.way.algorithm, bytes)
                                    : p.alone->time(bytes, {}).seconds;
    check(row.time_s >= row.bound_s * (1 - 1e-9), "no collective is faster than its bound",
          row.time_s, row.bound_s);
    if (!t.bottleneck.is_valid()) return row;
    row.bottleneck = fabric_->name(t.bottleneck);
    const bool is_between_switches = t.bottleneck.index() >= fabric_->first_trunk().index();
    if (is_between_switches && router_.kind() == topologies::RoutingKind::ecmp &&
        row.slowdown() > 1)
      row.notes.push_back(
          "flows that a hash puts on one link: with priority flow control the link may lose up to "
          "another 11 % (docs/models/collectives.md); not counted here");
    return row;
  }

  const Scenario& scenario_;
  const SweepRequest& request_;
  std::shared_ptr<const Fabric> fabric_;
  topologies::Router router_;
  models::LinkConstants constants_;
  RankGroup group_;
  std::size_t first_server_ = 0, last_server_ = 0;
  std::vector<RankGroup> equals_, others_;            // competitors
  std::map<CollectiveAlgorithm, Prepared> prepared_;  // of the present kind
};

}  // namespace

SweepResult sweep_collectives(const Scenario& scenario, const SweepRequest& request) {
  return Sweep(scenario, request).run();
}

}  // namespace trainyard::scenarios
