#include <algorithm>
#include <bit>
#include <tuple>

#include "models/training/step_model.hpp"
#include "sim/check.hpp"

/// StepModel and stores on the training fabric: what they take of links, and what they can have.
namespace trainyard::models {

void add_to_key(std::vector<std::uint32_t>& key, const StoreFlow& flow) {
  const auto rate = std::bit_cast<std::uint64_t>(flow.rate.value());
  key.insert(key.end(), {0xffffffffu, flow.is_write ? 1u : 0u, std::uint32_t(rate >> 32),
                         std::uint32_t(rate), std::uint32_t(flow.store.size())});
  for (const topologies::HostId host : flow.store) key.push_back(std::uint32_t(host.index()));
  if (!flow.servers.empty()) key.push_back(std::uint32_t(flow.servers.size()));
  for (const topologies::HostId host : flow.servers) key.push_back(std::uint32_t(host.index()));
  for (const char c : flow.name) key.push_back(std::uint32_t(static_cast<unsigned char>(c)));
}

namespace {

/// The same transfers in another order are the same.
std::vector<StoreFlow> in_one_order(std::vector<StoreFlow> flows) {
  for (const StoreFlow& flow : flows)
    check(flow.rate.value() >= 0 && flow.rate.value() < 1e18, "a transfer has a rate",
          flow.rate.value());
  std::erase_if(flows, [](const StoreFlow& flow) {
    return flow.rate == BytesPerSecond(0) || flow.store.empty();
  });
  std::sort(flows.begin(), flows.end(), [](const StoreFlow& a, const StoreFlow& b) {
    const auto order = [](const StoreFlow& f) {
      return std::tie(f.store, f.servers, f.is_write, f.rate, f.name);
    };
    return order(a) < order(b);
  });
  return flows;
}

}  // namespace

void StepModel::set_store_flows(std::vector<StoreFlow> flows) {
  store_flows_ = in_one_order(std::move(flows));
}

void StepModel::set_others(std::vector<StoreFlow> transfers, std::vector<StepOnLinks> steps) {
  for (const StoreFlow& flow : transfers)
    check(!flow.servers.empty(), "a transfer of another job names its servers");
  others_transfers_ = in_one_order(std::move(transfers));
  others_steps_ = std::move(steps);
  std::erase_if(others_steps_, [](const StepOnLinks& step) { return step.links.empty(); });
}

/// Without the store.
const StepProfile& StepModel::profile_alone(const Placement& placement) {
  std::vector<StoreFlow> running;
  running.swap(store_flows_);
  std::vector<StoreFlow> of_others;
  of_others.swap(others_transfers_);
  const StepProfile& alone = profile(placement);
  running.swap(store_flows_);
  of_others.swap(others_transfers_);
  return alone;
}

const LinkLoads& StepModel::loads_of(const StoreFlow& flow, const Placement& placement) {
  return store_.loads(flow.servers.empty() ? placement.servers : flow.servers, flow.store,
                      flow.is_write);
}

/// Those of other jobs that share a link with this step: the others cost no profile.
void StepModel::add_transfers_met(const Placement& placement) {
  stand_on(placement);
  std::vector<bool> links;
  for (const StoreFlow& flow : others_transfers_) {
    links.assign(router_.fabric().links().size(), false);
    for (const auto& load : loads_of(flow, placement)) links[load.first.index()] = true;
    if (crosses(placement, links)) beside_.push_back(&flow);
  }
}

/// Puts the store's transfers on the links that collectives and transfers will find.
void StepModel::place_store_flows(const Placement& placement) {
  store_loads_.clear();
  std::vector<Background> background;
  for (const StoreFlow* flow : beside_) {
    StoreLoad& load = store_loads_.emplace_back();
    load.what = !flow->name.empty() ? flow->name
                : flow->is_write    ? "write to a store"
                                    : "read from a store";
    load.flow_Bps = flow->rate.value() / store_.flows_of_server();
    load.flows = loads_of(*flow, placement);
    Background& seen = background.emplace_back();
    seen.flow_Bps = load.flow_Bps;
    seen.flows.assign(router_.fabric().links().size(), 0.0);
    for (const auto& [link, flows] : load.flows) seen.flows[link.index()] = flows;
  }
  links_.set_background(std::move(background));
}

/// Needs the groups and rings placed. What runs at the same time in all stages counts as at once:
/// one kind of collective, or the transfers of all boundaries; kinds follow each other.
const StepModel::LinkDemand& StepModel::link_demand(const Placement& placement) {
  if (demand_of_ != placement.servers) {
    demand_ = make_link_demand(placement);
    demand_of_ = placement.servers;
  }
  return demand_;
}

StepModel::LinkDemand StepModel::make_link_demand(const Placement& placement) {
  const std::size_t links = router_.fabric().links().size();
  LinkDemand demand{std::vector<double>(links, 0.0), std::vector<double>(links, 0.0)};
  std::vector<double> bytes(links, 0.0), flows(links, 0.0);
  std::vector<std::size_t> used;  // by the kind at hand; maybe twice
  const auto add = [&](topologies::LinkId link, double n, double of_flow) {
    if (flows[link.index()] == 0) used.push_back(link.index());
    bytes[link.index()] += n * of_flow;
    flows[link.index()] += n;
  };
  const auto close_kind = [&] {
    for (const std::size_t l : used) {
      if (flows[l] == 0) continue;
      demand.bytes[l] += bytes[l];
      demand.flow_bytes[l] += bytes[l] / flows[l];
      bytes[l] = flows[l] = 0;
    }
    used.clear();
  };
  for (const RingKind kind : {RingKind::shards, RingKind::replicas, RingKind::experts}) {
    for_each_ring([&](int stage, RingKind ring, double volume) {
      if (ring != kind) return;
      const double of_flow = data_.bytes_of_flow(volume, stage, ring);
      data_.for_each_load(
          stage, volume,
          [&](topologies::LinkId link, double moved) { add(link, moved / of_flow, of_flow); },
          ring);
    });
    close_kind();
  }
  for (const GroupPattern kind : group_patterns) {
    for_each_group([&](int stage, GroupPattern pattern, double volume) {
      if (pattern != kind) return;
      const double of_flow = groups_.bytes_of_flow(pattern, volume);
      groups_.for_each_load(pattern, stage, volume, [&](topologies::LinkId link, double moved) {
        add(link, moved / of_flow, of_flow);
      });
    });
    close_kind();
  }
  for_each_transfer([&](int from, int to, double transfers) {
    const double of_flow = boundaries_.bytes_of_flow() * transfers;
    boundaries_.for_each_load(placement.servers, from, to,
                              [&](topologies::LinkId link, double n) { add(link, n, of_flow); });
  });
  close_kind();
  return demand;
}

/// The longest that a link needs for the bytes of collectives and transfers beside the store.
double StepModel::link_s_beside_store(const Placement& placement) {
  const LinkDemand& demand = link_demand(placement);
  double most_s = 0;
  for (const StoreLoad& store : store_loads_)
    for (const auto& load : store.flows) {
      const std::size_t l = load.first.index();
      if (demand.bytes[l] == 0) continue;
      const double left = links_.left_Bps(load.first, router_.state().capacity(load.first).value(),
                                          demand.flows(l));
      most_s = std::max(most_s, demand.bytes[l] / left);
    }
  return most_s;
}

/// How long the step waits for traffic that leaves servers.
double StepModel::exposed_on_fabric_s(const StepProfile& profile) const {
  Duration exposed = profile.part(StepPart::exposed_dp) + profile.part(StepPart::exposed_pp);
  if (groups_.uses_fabric(GroupPattern::tensor_ring)) exposed += profile.part(StepPart::exposed_tp);
  if (groups_.uses_fabric(GroupPattern::context_ring) ||
      groups_.uses_fabric(GroupPattern::context_step))
    exposed += profile.part(StepPart::exposed_cp);
  if (groups_.uses_fabric(GroupPattern::expert_exchange))
    exposed += profile.part(StepPart::exposed_ep);
  return to_seconds(exposed);
}

StepOnLinks StepModel::on_links(const Placement& placement) {
  const StepProfile& alone = profile_alone(placement);
  StepOnLinks step;
  if (!alone.cut_off.empty()) return step;
  stand_on(placement);
  step.step_s = to_seconds(alone.step);
  step.exposed_s = exposed_on_fabric_s(alone);
  const LinkDemand& demand = link_demand(placement);
  for (std::size_t l = 0; l < demand.bytes.size(); ++l)
    if (demand.bytes[l] > 0)
      step.links.push_back({topologies::LinkId(l), demand.bytes[l], demand.flows(l)});
  return step;
}

/// What other jobs leave of every link that transfers of this one use. Their transfers: max-min,
/// those that want all they can get without a cap. Their steps: what a transfer would have beside
/// each of them in the mean, one job after the other, for their steps keep no time with each other.
std::vector<double> StepModel::left_by_others(std::span<const double> store_flows) {
  const std::size_t links = store_flows.size();
  std::vector<double> left(links, 0.0);
  std::vector<Background> background;
  for (const StoreFlow& flow : others_transfers_) {
    Background& seen = background.emplace_back();
    seen.flow_Bps =
        flow.takes_all ? MaxMin::unlimited : flow.rate.value() / store_.flows_of_server();
    seen.flows.assign(links, 0.0);
    for (const auto& [link, flows] : loads_of(flow, {})) seen.flows[link.index()] = flows;
  }
  links_.set_background(std::move(background));
  for (std::size_t l = 0; l < links; ++l)
    if (store_flows[l] > 0) {
      const topologies::LinkId link(l);
      left[l] = links_.left_Bps(link, capacity_Bps(link), store_flows[l]);
    }
  links_.set_background({});
  for (const StepOnLinks& step : others_steps_)
    for (const LinkWork& work : step.links) {
      const std::size_t l = work.link.index();
      if (store_flows[l] == 0 || left[l] == 0) continue;
      const SharedLink shared{left[l], store_flows[l], work.bytes, work.flows};
      left[l] = mean_flow_Bps({&shared, 1}, step.step_s, step.exposed_s) * store_flows[l];
    }
  return left;
}

double StepModel::capacity_Bps(topologies::LinkId link) const {
  return router_.state().capacity(link).value() * server_.nic.efficiency;
}

BytesPerSecond StepModel::store_limit(const Placement& placement,
                                      std::span<const topologies::HostId> store, bool is_write) {
  check(!store.empty(), "a store on the fabric has servers");
  const bool has_others = !others_transfers_.empty() || !others_steps_.empty();
  std::vector<std::uint32_t> k = key(placement);
  add_to_key(k, {{store.begin(), store.end()}, is_write, BytesPerSecond(0)});
  const Digest name = digest(k);
  if (!has_others)
    if (const auto found = store_limits_.find(name); found != store_limits_.end())
      return found->second;

  const StepProfile& alone = profile_alone(placement);
  const bool is_stopped = !alone.cut_off.empty();  // the store has the fabric to itself
  const LinkDemand* demand = nullptr;
  if (!is_stopped) {
    groups_.place(placement.servers);
    data_.place(placement.servers);
    demand = &link_demand(placement);
  }
  std::vector<double> store_flows(router_.fabric().links().size(), 0.0);
  const LinkLoads& loads = store_.loads(placement.servers, store, is_write);
  for (const auto& [link, flows] : loads) store_flows[link.index()] = flows;
  std::vector<double> left;
  if (has_others) left = left_by_others(store_flows);
  const double step_s = is_stopped ? 1.0 : to_seconds(alone.step);
  const double exposed_s = is_stopped ? 0.0 : exposed_on_fabric_s(alone);
  std::vector<LinkShare> shares(store_flows.size());
  for (const auto& load : store_.loads(placement.servers, store, is_write)) {
    const std::size_t l = load.first.index();
    const bool is_shared = demand && demand->bytes[l] > 0;
    shares[l] = share_of({has_others ? left[l] : capacity_Bps(load.first), store_flows[l],
                          is_shared ? demand->bytes[l] : 0.0, is_shared ? demand->flows(l) : 0.0},
                         step_s, exposed_s);
  }
  double least_Bps = MaxMin::unlimited;
  std::vector<LinkShare> links, busy;
  for (const LinkLoads* path : store_.paths(placement.servers, store, is_write)) {
    if (!path) continue;
    links.clear();
    for (const auto& load : *path) links.push_back(shares[load.first.index()]);
    if (links.empty())
      least_Bps = 0;
    else if (mean_flow_at_least_Bps(links) < least_Bps)
      least_Bps = std::min(least_Bps, mean_flow_Bps(links, busy));
  }
  const BytesPerSecond limit(least_Bps * store_.flows_of_server());
  if (!has_others) store_limits_.emplace(name, limit);
  return limit;
}

}  // namespace trainyard::models
