#include "models/network/fabric_paths.hpp"

#include <algorithm>
#include <utility>

#include "models/network/collectives/point_to_point.hpp"

namespace trainyard::models {

using topologies::Fabric;
using topologies::GpuId;
using topologies::HostId;
using topologies::LinkId;
using topologies::LinkKind;
using topologies::NicId;

namespace {

LinkIndex index_of(LinkId link) {
  return LinkIndex(link.index());
}

}  // namespace

FabricPaths::FabricPaths(const topologies::Router& router)
    : router_(router),
      fabric_(router.fabric()),
      counts_by_edge_(router.treats_neighbours_alike() && !router.state().is_changed() &&
                      router.fabric().servers().ports_per_nic == 1) {
  if (!counts_by_edge_) return;
  first_nic_of_edge_.resize(fabric_.edge_count());
  for (std::size_t n = fabric_.nic_count(); n-- > 0;)
    first_nic_of_edge_[fabric_.index_in_kind(fabric_.edge_of(NicId(n)))] = NicId(n);
}

PhasedPlan FabricPaths::plan(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                             std::span<const Member> group,
                             const CollectiveOptions& options) const {
  PhasedPlan plan = plan_collective(kind, algorithm, bytes, group, *this, options);
  write_out(plan.phases);
  write_out(plan.batches);
  return plan;
}

PhasedPlan FabricPaths::plan_permutation(double bytes, std::span<const Member> group,
                                         const CollectiveOptions& options) const {
  PhasedPlan plan{
      CollectiveKind::point_to_point, CollectiveAlgorithm::direct, bytes, group.size(), {}, 1, {}};
  if (group.size() < 2) return plan;
  CollectivePlan all{CollectiveKind::point_to_point, bytes, group.size(), {}, {}};
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Member& to = group[(i + group.size() / 2) % group.size()];
    CollectivePlan one = plan_point_to_point(
        bytes, group[i], to, *this,
        {options.queue_pairs, connection_label(options.label, i, 0, 0), options.costs});
    std::move(one.streams.begin(), one.streams.end(), std::back_inserter(all.streams));
    all.latency = one.latency;
  }
  plan.phases.push_back({"permutation", std::move(all)});
  write_out(plan.phases);
  return plan;
}

double FabricPaths::of_kind(const LinkEfficiency& efficiency, LinkKind kind) {
  if (kind == LinkKind::nvlink) return efficiency.scale_up;
  return kind == LinkKind::nic_leaf ? efficiency.adapters : efficiency.fabric;
}

std::vector<double> FabricPaths::capacities(const LinkEfficiency& efficiency) const {
  std::vector<double> out(fabric_.links().size());
  for (std::size_t l = 0; l < out.size(); ++l)
    out[l] = router_.state().capacity(LinkId(l)).value() *
             of_kind(efficiency, fabric_.link(LinkId(l)).kind);
  return out;
}

GpuId FabricPaths::gpu_of(NicId nic) const {
  const HostId host = fabric_.host_of(nic);
  const auto gpus = std::size_t(fabric_.servers().gpus);
  for (std::size_t g = 0; g < gpus; ++g)
    if (fabric_.nic_of(fabric_.gpu(host, g)) == nic) return fabric_.gpu(host, g);
  return fabric_.gpu(host, 0);
}

bool FabricPaths::add_wired(NicId from, NicId to, std::uint64_t label, double flows,
                            LoadAccumulator& loads) const {
  if (!counts_by_edge_)
    return router_.for_each_load(
        from, to, label, flows / router_.flows_of_pair(),
        [&](LinkId link, double weight) { loads.add(index_of(link), weight); });
  if (!router_.is_wired(from, to)) return false;
  loads.add(index_of(fabric_.uplink(from)), flows);
  loads.add(index_of(fabric_.downlink(to)), flows);
  const std::size_t a = fabric_.index_in_kind(fabric_.edge_of(from));
  const std::size_t b = fabric_.index_in_kind(fabric_.edge_of(to));
  if (a != b) loads.add(LinkIndex(fabric_.links().size() + a * fabric_.edge_count() + b), flows);
  return true;
}

void FabricPaths::write_out(std::vector<CollectivePhase>& phases) const {
  if (!counts_by_edge_) return;
  const std::size_t links = fabric_.links().size(), edges = fabric_.edge_count();
  for (CollectivePhase& phase : phases)
    for (Stream& stream : phase.plan.streams) {
      LoadAccumulator loads;
      for (const auto& [link, weight] : stream.loads) {
        if (link.index() < links) {
          loads.add(link, weight);
          continue;
        }
        const std::size_t pair = link.index() - links;
        router_.for_each_load(first_nic_of_edge_[pair / edges], first_nic_of_edge_[pair % edges], 0,
                              weight / router_.flows_of_pair(), [&](LinkId l, double w) {
                                if (fabric_.link(l).kind != LinkKind::nic_leaf)
                                  loads.add(index_of(l), w);
                              });
      }
      stream.loads = loads.take();
    }
}

void FabricPaths::add_path(std::size_t from_nic, std::size_t to_nic, std::uint64_t label,
                           double flows, LoadAccumulator& loads) const {
  const NicId from(from_nic), to(to_nic);
  if (from == to || add_wired(from, to, label, flows, loads) ||
      add_over_other_rail(from, to, label, flows, loads) || no_path_)
    return;
  no_path_ = NoPath{from, to};
}

bool FabricPaths::add_over_other_rail(NicId from, NicId to, std::uint64_t label, double flows,
                                      LoadAccumulator& loads) const {
  if (router_.is_wired(from, to)) return false;
  const HostId host = fabric_.host_of(from);
  for (std::size_t n = 0; n < std::size_t(fabric_.servers().nics); ++n) {
    const NicId exit = fabric_.nic(host, n);
    if (exit == from || !router_.has_path(exit, to)) continue;
    add_scale_up(gpu_of(from).index(), gpu_of(exit).index(), flows, loads);
    return add_wired(exit, to, label, flows, loads);
  }
  return false;
}

void FabricPaths::add_scale_up(std::size_t from_gpu, std::size_t to_gpu, double flows,
                               LoadAccumulator& loads) const {
  if (from_gpu == to_gpu) return;
  loads.add(index_of(fabric_.scale_up_uplink(GpuId(from_gpu))), flows);
  loads.add(index_of(Fabric::reverse(fabric_.scale_up_uplink(GpuId(to_gpu)))), flows);
}

void FabricPaths::add_scale_up_switch(std::span<const std::size_t> gpus, double out, double in,
                                      LoadAccumulator& loads) const {
  for (const std::size_t gpu : gpus) {
    const LinkId up = fabric_.scale_up_uplink(GpuId(gpu));
    loads.add(index_of(up), out);
    loads.add(index_of(Fabric::reverse(up)), in);
  }
}

}  // namespace trainyard::models
