#include "models/training/store_traffic.hpp"

#include <algorithm>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {

LinkShare share_of(const SharedLink& link, double step_s, double exposed_s) {
  LinkShare share;
  share.idle_Bps = link.capacity_Bps / link.store_flows;
  if (link.bytes <= 0) return share;
  share.busy_Bps = link.capacity_Bps / (link.store_flows + link.collective_flows);
  const double alone_s = link.bytes / link.capacity_Bps;
  const double beside_s = link.bytes / (link.capacity_Bps - link.store_flows * share.busy_Bps);
  const double waited_for = std::min(1.0, exposed_s / alone_s);
  const double longer_step_s = step_s + waited_for * (beside_s - alone_s);
  share.busy = std::min(1.0, beside_s / longer_step_s);
  return share;
}

double mean_flow_Bps(std::span<const LinkShare> links, std::vector<LinkShare>& busy) {
  double idle_Bps = std::numeric_limits<double>::infinity();
  for (const LinkShare& link : links) idle_Bps = std::min(idle_Bps, link.idle_Bps);
  busy.clear();
  for (const LinkShare& link : links)
    if (link.busy_Bps < idle_Bps) busy.push_back(link);  // the others are never in the way
  std::sort(busy.begin(), busy.end(), [](const LinkShare& a, const LinkShare& b) {
    return a.busy != b.busy ? a.busy > b.busy : a.busy_Bps < b.busy_Bps;
  });
  // Busy shares lie inside each other: the longest busy link first.
  double mean_Bps = 0, now_Bps = idle_Bps, until = 1;
  for (const LinkShare& b : busy) {
    mean_Bps += now_Bps * (until - b.busy);
    now_Bps = std::min(now_Bps, b.busy_Bps);
    until = b.busy;
  }
  return mean_Bps + now_Bps * until;
}

double mean_flow_Bps(std::span<const SharedLink> links, double step_s, double exposed_s) {
  check(!links.empty() && step_s > 0, "a flow has links, a step takes time", step_s);
  std::vector<LinkShare> shares, busy;
  for (const SharedLink& link : links) shares.push_back(share_of(link, step_s, exposed_s));
  return mean_flow_Bps(shares, busy);
}

double mean_flow_at_least_Bps(std::span<const LinkShare> links) {
  double idle_Bps = std::numeric_limits<double>::infinity();
  double busy_Bps = idle_Bps, busy = 0;
  for (const LinkShare& link : links) {
    idle_Bps = std::min(idle_Bps, link.idle_Bps);
    busy_Bps = std::min(busy_Bps, link.busy_Bps);
    busy = std::max(busy, link.busy);
  }
  if (busy_Bps >= idle_Bps) return idle_Bps;
  constexpr double rounding = 1 - 1e-9;
  return (idle_Bps * (1 - busy) + busy_Bps * busy) * rounding;
}

StoreTraffic::Path StoreTraffic::make_path(topologies::HostId from, topologies::HostId to) {
  const topologies::Fabric& fabric = router_.fabric();
  Path made;
  made.is_detour = router_.state().is_changed();
  const auto adapters = std::size_t(server_.nics);
  std::size_t connected = 0;
  made.loads = links_.collect([&](auto&& add) {
    for (std::size_t r = 0; r < adapters; ++r)
      for (std::size_t other = 0; other < adapters; ++other)
        if (router_.for_each_load(fabric.nic(from, r), fabric.nic(to, (r + other) % adapters), 0,
                                  1.0, add)) {
          ++connected;
          break;
        }
  });
  for (auto& [link, flows] : made.loads) flows *= double(adapters) / double(connected);
  return made;
}

const LinkLoads& StoreTraffic::path(topologies::HostId server, topologies::HostId store,
                                    bool is_write) {
  std::pair ends(std::uint32_t(server.index()), std::uint32_t(store.index()));
  if (!is_write) std::swap(ends.first, ends.second);
  auto found = paths_.find(ends);
  if (found == paths_.end())
    found =
        paths_.emplace(ends, is_write ? make_path(server, store) : make_path(store, server)).first;
  return found->second.loads;
}

const StoreTraffic::Sum& StoreTraffic::sum(std::span<const topologies::HostId> servers,
                                           std::span<const topologies::HostId> store,
                                           bool is_write) {
  for (const Sum& sum : recent_)
    if (sum.is_write == is_write && std::ranges::equal(sum.servers, servers) &&
        std::ranges::equal(sum.store, store))
      return sum;
  // On the fabric as built each path would be found again as it was.
  if (paths_.size() > paths_kept && !router_.state().is_changed()) clear();
  if (recent_.size() == sums_kept) recent_.erase(recent_.begin());
  Sum& sum = recent_.emplace_back();
  sum.servers.assign(servers.begin(), servers.end());
  sum.store.assign(store.begin(), store.end());
  sum.is_write = is_write;
  sum.paths.reserve(servers.size());
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const topologies::HostId other = partner(i, store);
    sum.paths.push_back(other.is_valid() ? &path(servers[i], other, is_write) : nullptr);
  }
  sum.loads = links_.collect([&](auto&& add) {
    for (const LinkLoads* one : sum.paths)
      for (std::size_t l = 0; one && l < one->size(); ++l) add((*one)[l].first, (*one)[l].second);
  });
  return sum;
}

const LinkLoads& StoreTraffic::loads(std::span<const topologies::HostId> servers,
                                     std::span<const topologies::HostId> store, bool is_write) {
  return sum(servers, store, is_write).loads;
}

const std::vector<const LinkLoads*>& StoreTraffic::paths(
    std::span<const topologies::HostId> servers, std::span<const topologies::HostId> store,
    bool is_write) {
  return sum(servers, store, is_write).paths;
}

void StoreTraffic::forget(const std::vector<bool>& links) {
  recent_.clear();
  std::erase_if(paths_, [&](const auto& entry) {
    const Path& path = entry.second;
    return path.is_detour || path.loads.empty() ||
           std::any_of(path.loads.begin(), path.loads.end(),
                       [&](const auto& load) { return links[load.first.index()]; });
  });
}

}  // namespace trainyard::models
