#include "models/training/store_traffic.hpp"

#include <algorithm>
#include <limits>

#include "sim/check.hpp"

namespace trainyard::models {

double mean_flow_Bps(std::span<const SharedLink> links, double step_s, double exposed_s) {
  check(!links.empty() && step_s > 0, "a flow has links, a step takes time", step_s);
  double idle_Bps = std::numeric_limits<double>::infinity();
  for (const SharedLink& link : links)
    idle_Bps = std::min(idle_Bps, link.capacity_Bps / link.store_flows);
  struct Busy {
    double share;
    double flow_Bps;
  };
  std::vector<Busy> busy;
  for (const SharedLink& link : links) {
    if (link.bytes <= 0) continue;
    const double flow_Bps = link.capacity_Bps / (link.store_flows + link.collective_flows);
    if (flow_Bps >= idle_Bps) continue;  // never in the way
    const double alone_s = link.bytes / link.capacity_Bps;
    const double beside_s = link.bytes / (link.capacity_Bps - link.store_flows * flow_Bps);
    const double waited_for = std::min(1.0, exposed_s / alone_s);
    const double longer_step_s = step_s + waited_for * (beside_s - alone_s);
    busy.push_back({std::min(1.0, beside_s / longer_step_s), flow_Bps});
  }
  std::sort(busy.begin(), busy.end(), [](const Busy& a, const Busy& b) {
    return a.share != b.share ? a.share > b.share : a.flow_Bps < b.flow_Bps;
  });
  // Busy shares lie inside each other: the longest busy link first.
  double mean_Bps = 0, now_Bps = idle_Bps, until = 1;
  for (const Busy& b : busy) {
    mean_Bps += now_Bps * (until - b.share);
    now_Bps = std::min(now_Bps, b.flow_Bps);
    until = b.share;
  }
  return mean_Bps + now_Bps * until;
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

LinkLoads StoreTraffic::loads(std::span<const topologies::HostId> servers,
                              std::span<const topologies::HostId> store, bool is_write) {
  std::vector<const LinkLoads*> paths;
  for (std::size_t i = 0; i < servers.size(); ++i)
    if (const topologies::HostId other = partner(i, store); other.is_valid())
      paths.push_back(&path(servers[i], other, is_write));
  return links_.collect([&](auto&& add) {
    for (const LinkLoads* one : paths)
      for (const auto& [link, flows] : *one) add(link, flows);
  });
}

void StoreTraffic::forget(const std::vector<bool>& links) {
  std::erase_if(paths_, [&](const auto& entry) {
    const Path& path = entry.second;
    return path.is_detour || path.loads.empty() ||
           std::any_of(path.loads.begin(), path.loads.end(),
                       [&](const auto& load) { return links[load.first.index()]; });
  });
}

}  // namespace trainyard::models
