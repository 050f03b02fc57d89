#include "scenarios/collective_fabric_time.hpp"

#include <algorithm>

#include "models/network/collectives/play.hpp"

namespace trainyard::scenarios {

using models::LinkEfficiency;
using models::LinkIndex;
using topologies::Fabric;
using topologies::LinkId;
using topologies::LinkKind;

namespace {

std::size_t class_of(LinkKind kind) {
  return kind == LinkKind::nvlink ? 0 : kind == LinkKind::nic_leaf ? 1 : 2;
}

std::optional<topologies::HostId> server_of(const Fabric& fabric, LinkId link) {
  const LinkId up = Fabric::is_upward(link) ? link : Fabric::reverse(link);
  const topologies::VertexId from = fabric.link(up).from;
  if (fabric.kind(from) == topologies::VertexKind::gpu)
    return fabric.host_of(topologies::GpuId(fabric.index_in_kind(from)));
  if (fabric.kind(from) == topologies::VertexKind::nic)
    return fabric.host_of(topologies::NicId(fabric.index_in_kind(from)));
  return std::nullopt;
}

}  // namespace

PlanOnFabric::PlanOnFabric(const topologies::Router& router, const models::PhasedPlan& plan) {
  std::vector<double> bytes(router.fabric().links().size(), 0.0);
  std::vector<std::size_t> met;
  for (const models::CollectivePhase& phase : plan.phases) {
    for (const models::Stream& stream : phase.plan.streams)
      for (const models::Load& load : stream.loads) {
        if (bytes[load.link.index()] == 0) met.push_back(load.link.index());
        bytes[load.link.index()] += load.weight * stream.bytes_per_flow;
      }
    std::sort(met.begin(), met.end());  // of equal links the first is named
    auto& busiest = phases_.emplace_back();
    for (const std::size_t l : met) {
      const LinkKind kind = router.fabric().link(LinkId(l)).kind;
      const double s = bytes[l] / router.state().capacity(LinkId(l)).value();
      Busiest& most = busiest[class_of(kind)];
      // Sums in another order differ in the last bits; that shall not choose the name.
      if (s > most.s_per_byte * (1 + 1e-12)) most = {s, LinkId(l), kind};
      bytes[l] = 0;
    }
    met.clear();
  }
}

FabricTime PlanOnFabric::time(double bytes, const LinkEfficiency& efficiency) const {
  FabricTime all;
  double slowest_s = 0;
  for (const auto& busiest : phases_) {
    double phase_s = 0;
    LinkId link;
    for (const Busiest& b : busiest) {
      const double s = b.s_per_byte * bytes / models::FabricPaths::of_kind(efficiency, b.kind);
      if (s <= phase_s * (1 + 1e-12)) continue;
      phase_s = s;
      link = b.link;
    }
    all.seconds += phase_s;
    if (phase_s <= slowest_s) continue;
    slowest_s = phase_s;
    all.bottleneck = link;
  }
  return all;
}

JobsOnFabric::JobsOnFabric(const topologies::Router& router, std::span<const Job> jobs) {
  const Fabric& fabric = router.fabric();
  std::vector<std::size_t> job_of_server(fabric.host_count(), 0);
  for (std::size_t j = 0; j < jobs.size(); ++j)
    for (const models::Member& m : jobs[j].group) job_of_server[m.node] = j;
  std::vector<LinkIndex> number(fabric.links().size());
  const auto renumber = [&](std::vector<models::CollectivePhase>& phases) {
    for (models::CollectivePhase& phase : phases)
      for (models::Stream& stream : phase.plan.streams)
        for (models::Load& load : stream.loads) {
          LinkIndex& n = number[load.link.index()];
          if (!n.is_valid()) {
            n = LinkIndex(links_.size());
            links_.push_back(LinkId(load.link.index()));
          }
          load.link = n;
        }
  };
  for (const Job& job : jobs) {
    plans_.push_back(*job.plan);
    renumber(plans_.back().phases);
    renumber(plans_.back().batches);
  }
  for (const LinkId l : links_) {
    nominal_Bps_.push_back(router.state().capacity(l).value());
    kind_.push_back(fabric.link(l).kind);
    const auto server = server_of(fabric, l);
    owner_.push_back(server ? job_of_server[server->index()] : 0);
  }
}

JobsOnFabric::Result JobsOnFabric::time(std::span<const double> bytes,
                                        std::span<const LinkEfficiency> efficiency) const {
  models::FlowTimeline line;
  std::vector<double> capacity(links_.size());
  for (std::size_t l = 0; l < links_.size(); ++l) {
    capacity[l] = nominal_Bps_[l] * models::FabricPaths::of_kind(efficiency[owner_[l]], kind_[l]);
    line.add_link(capacity[l]);
  }
  std::vector<models::PhasedPlan> plans = plans_;
  std::vector<models::TimedCollective> timed;
  for (std::size_t j = 0; j < plans.size(); ++j) {
    for (models::CollectivePhase& phase : plans[j].phases)
      phase.plan = models::scaled(std::move(phase.plan), bytes[j]);
    timed.push_back({&plans[j], {}});
  }
  const std::vector<models::PlayedCollective> played = models::play_collectives(line, timed);

  // The bottleneck: of the links of the first job the one with the most to move, of all jobs.
  std::vector<double> all(links_.size(), 0.0), own(links_.size(), 0.0);
  for (std::size_t j = 0; j < plans.size(); ++j)
    for (const models::CollectivePhase& phase : plans[j].phases)
      for (const models::Stream& stream : phase.plan.streams)
        for (const models::Load& load : stream.loads)
          (j == 0 ? own : all)[load.link.index()] += load.weight * stream.bytes_per_flow;
  Result out{{played[0].finish_s, {}}, played[0].latest_finish_s};
  double most_s = 0;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const double s = own[l] > 0 ? (own[l] + all[l]) / capacity[l] : 0;
    if (s <= most_s * (1 + 1e-12)) continue;
    most_s = s;
    out.first.bottleneck = links_[l];
  }
  return out;
}

}  // namespace trainyard::scenarios
