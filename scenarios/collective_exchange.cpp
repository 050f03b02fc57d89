#include "scenarios/collective_exchange.hpp"

#include <algorithm>

namespace trainyard::scenarios {

using models::CollectiveAlgorithm;
using models::CollectiveKind;
using models::Member;
using topologies::Fabric;
using topologies::LinkId;
using topologies::NicId;

namespace {

/// Takes down who wants a path, and gives none.
class AskedPaths final : public models::PathSource {
 public:
  void add_path(std::size_t from, std::size_t to, std::uint64_t, double flows,
                models::LoadAccumulator&) const override {
    if (from != to) demands_.push_back({NicId(from), NicId(to), flows});
  }
  std::vector<topologies::Demand> demands() && { return std::move(demands_); }

 private:
  mutable std::vector<topologies::Demand> demands_;
};

}  // namespace

std::string SweepTraffic::name() const {
  return is_permutation ? "permutation" : std::string(name_of(kind));
}

std::vector<std::string> traffic_names() {
  std::vector<std::string> out;
  for (const auto& [kind, name] : Names<CollectiveKind>::all) out.emplace_back(name);
  out.emplace_back("permutation");
  return out;
}

std::optional<SweepTraffic> traffic_of(const std::string& name) {
  if (name == "permutation") return SweepTraffic{CollectiveKind::point_to_point, true};
  for (const auto& [kind, known] : Names<CollectiveKind>::all)
    if (known == name) return SweepTraffic{kind, false};
  return std::nullopt;
}

RankGroup rank_group(std::vector<Member> members) {
  RankGroup g{std::move(members), 0, 1};
  std::vector<std::size_t> nics;
  while (g.per_node < g.members.size() && g.members[g.per_node].node == g.members[0].node)
    nics.push_back(g.members[g.per_node++].nic);
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  g.nic_share = double(nics.size()) / double(g.per_node);
  return g;
}

Exchange exchange_of(const SweepTraffic& traffic, const RankGroup& group,
                     const models::LinkConstants& constants) {
  Exchange e{traffic, group, {group.members.size(), group.per_node}, constants};
  if (traffic.kind == CollectiveKind::point_to_point) {
    if (!traffic.is_permutation)
      e.group = {
          {group.members.front(), group.members.back()}, group.nodes() > 1 ? std::size_t{1} : 2, 1};
    e.shape = {2, group.nodes() > 1 ? std::size_t{1} : 2};
  }
  e.constants.nic_Bps *= e.group.nic_share;
  return e;
}

bool reduces_in_scale_up_switch(const Exchange& e, CollectiveAlgorithm algorithm) {
  return algorithm == CollectiveAlgorithm::sharp && e.group.per_node > 1 &&
         e.constants.nvls_bus_Bps > 0;
}

void reduce_in_scale_up_switch(models::PhasedPlan& plan, const Exchange& e, const Fabric& fabric) {
  const double part = 1 / double(e.group.per_node);
  for (models::Stream& stream : plan.phases.front().plan.streams) {
    std::erase_if(stream.loads, [&](const models::Load& load) {
      return fabric.link(LinkId(load.link.index())).kind == topologies::LinkKind::nvlink;
    });
    models::LoadAccumulator loads;
    for (const models::Load& load : stream.loads) loads.add(load.link, load.weight);
    for (const Member& m : e.group.members) {
      const LinkId up = fabric.scale_up_uplink(topologies::GpuId(m.gpu));
      loads.add(models::LinkIndex(up.index()), 1 + part);
      loads.add(models::LinkIndex(Fabric::reverse(up).index()), 1 + part);
    }
    stream.loads = loads.take();
  }
}

std::vector<topologies::Demand> demands_of(const Exchange& e, CollectiveAlgorithm algorithm,
                                           const models::CollectiveOptions& options) {
  AskedPaths paths;
  const std::vector<Member>& members = e.group.members;
  models::LoadAccumulator none;
  if (e.traffic.is_permutation)
    for (std::size_t i = 0; i < members.size(); ++i)
      paths.add_path(members[i].nic, members[(i + members.size() / 2) % members.size()].nic, 0, 1,
                     none);
  else
    models::plan_collective(e.traffic.kind, algorithm, 1, members, paths, options);
  return std::move(paths).demands();
}

double closed_bound_s(const Exchange& e, CollectiveAlgorithm algorithm, double bytes) {
  if (reduces_in_scale_up_switch(e, algorithm)) {
    const double g = double(e.group.per_node);
    return bytes * std::max(1 / (g * e.constants.nic_Bps), (1 + 1 / g) / e.constants.scale_up_Bps);
  }
  const std::size_t nodes = (e.shape.ranks + e.shape.per_domain - 1) / e.shape.per_domain;
  return models::closed_form_bound_s(e.traffic.kind, algorithm, bytes, nodes, e.shape.per_domain,
                                     e.constants.nic_Bps, e.constants.scale_up_Bps);
}

}  // namespace trainyard::scenarios
