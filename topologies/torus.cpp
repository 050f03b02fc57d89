#include "topologies/torus.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/check.hpp"
#include "topologies/fat_tree_counts.hpp"
#include "topologies/server_side.hpp"

namespace trainyard::topologies {

namespace {

using Count = std::int64_t;

constexpr std::size_t most_dimensions = 6;  // 720 orders of them

std::string joined(const std::vector<int>& dimensions) {
  std::string out;
  for (const int k : dimensions) out += (out.empty() ? "" : " x ") + std::to_string(k);
  return out;
}

/// The smallest three dimensions, as equal as can be, that hold so many nodes.
std::vector<int> nearest_cube(Count nodes) {
  std::vector<int> k{2, 2, 2};
  for (std::size_t i = 0; Count{k[0]} * k[1] * k[2] < nodes; i = (i + 1) % 3) ++k[i];
  return k;
}

}  // namespace

std::optional<TorusShape> plan_torus(const FabricSpec& spec, const HostShape& servers,
                                     Problems& problems) {
  const auto refuse = [&](std::string path, std::string what, std::string right) {
    problems.push_back({std::move(path), std::move(what), std::move(right)});
    return std::nullopt;
  };
  const SwitchSpec& box = spec.router_switch;
  bool is_sound = are_sound_servers(servers, problems);
  is_sound &= is_sound_switch("router_switch", box, problems);
  for (const auto& [path, n] : {std::pair{"nics_per_router", spec.nics_per_router},
                                {"links_per_direction", spec.links_per_direction}})
    if (n && *n < 1) {
      refuse(path, "is " + text(Count{*n}), "1 or more, or left out");
      is_sound = false;
    }
  if (!is_sound || !fits_servers("router_switch", box, servers, problems)) return {};

  const Count nics = Count{servers.hosts} * servers.nics;
  const Count per_router = spec.nics_per_router.value_or(servers.nics);
  const Count links = spec.links_per_direction.value_or(1);
  const Count needed = ceil_div(nics, per_router);
  if (spec.dimensions.empty())
    return refuse("dimensions", "a torus needs its dimensions",
                  "such as " + joined(nearest_cube(needed)) + " for " + text(needed) + " nodes");
  if (spec.dimensions.size() > most_dimensions)
    return refuse("dimensions", "has " + text(Count(spec.dimensions.size())) + " dimensions",
                  "at most " + text(Count(most_dimensions)));
  Count nodes = 1;
  for (const int k : spec.dimensions) {
    if (k < 2) return refuse("dimensions", "a dimension of " + text(Count{k}), "2 or more");
    nodes = std::min(nodes * k, most_links);
  }
  const Count n = Count(spec.dimensions.size());
  const Count total =
      2 * (Count{servers.hosts} * (servers.gpus + servers.nics) + servers.storage_ports) +
      (nodes >= most_links ? nodes : 2 * nodes * n * std::min(links, Count{most_ports}));
  if (total > most_links)
    return refuse("dimensions", "the fabric would have more than " + text(most_links) + " links",
                  "at most " + text(most_links) + " links");
  if (nodes * per_router < nics) {
    // Longer by as little as possible in the last dimension, or another shape.
    std::vector<int> longer = spec.dimensions;
    longer.back() = static_cast<int>(ceil_div(needed, nodes / longer.back()));
    return refuse("dimensions",
                  joined(spec.dimensions) + " = " + text(nodes) + " nodes of " + text(per_router) +
                      " NICs hold " + text(nodes * per_router) + " NICs, the servers have " +
                      text(nics),
                  joined(longer) + ", or nics_per_router at least " + text(ceil_div(nics, nodes)));
  }
  const Count for_servers = server_ports(per_router, nodes, box, servers);
  const Count ports = for_servers + 2 * n * links;
  if (ports > box.ports) {
    std::string right;
    const auto way = [&](const std::string& w) { right += (right.empty() ? "" : ", or ") + w; };
    if (const Count most = (box.ports - for_servers) / (2 * n); most >= 1)
      way("links_per_direction at most " + text(most));
    Count fewer = per_router - 1;
    while (fewer >= 1 && server_ports(fewer, nodes, box, servers) + 2 * n * links > box.ports)
      --fewer;
    if (fewer >= 1 && fewer * nodes >= nics) way("nics_per_router at most " + text(fewer));
    way("a router of at least " + text(ports) + " ports");
    return refuse(spec.nics_per_router ? "nics_per_router" : "links_per_direction",
                  "a node needs " + text(for_servers) + " ports for servers and " +
                      text(2 * n * links) + " for its neighbours, it has " + text(Count{box.ports}),
                  right);
  }
  return TorusShape{spec.dimensions, static_cast<int>(per_router), static_cast<int>(links)};
}

BuildResult build_torus(const FabricSpec& spec, const HostShape& servers_asked) {
  BuildResult result;
  HostShape servers = servers_asked;
  servers.ports_per_nic = 1;
  const auto t = plan_torus(spec, servers, result.problems);
  if (!t) {
    check(!result.problems.empty(), "a fabric that is refused is refused for a reason");
    return result;
  }
  FabricSpec built = spec;
  built.nics_per_router = t->nics_per_router;
  built.links_per_direction = t->links_per_direction;

  const SwitchSpec& box = spec.router_switch;
  const std::size_t nodes = t->count(VertexKind::router);
  const std::size_t first = first_switch_of(servers);
  const Duration delay = box.latency + spec.cable_latency;
  std::vector<Link> links;
  lay_server_cables(links, servers, box.latency, nodes,
                    [&](std::size_t nic) { return nic / std::size_t(t->nics_per_router); });
  // Every node has the cables to its next in each dimension; the even link from the lower number.
  for (std::size_t node = 0; node < nodes; ++node) {
    std::size_t stride = 1;
    for (const int k : t->dimensions) {
      const std::size_t x = node / stride % std::size_t(k);
      const std::size_t next = node - x * stride + (x + 1) % std::size_t(k) * stride;
      for (int n = 0; n < t->links_per_direction; ++n)
        lay(links, {first + std::min(node, next), first + std::max(node, next), box.port_rate,
                    delay, delay, LinkKind::torus, 2});
      stride *= std::size_t(k);
    }
  }
  result.fabric = std::make_shared<const Fabric>(*t, std::move(built), servers, std::move(links));
  return result;
}

}  // namespace trainyard::topologies
