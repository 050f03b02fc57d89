#include "topologies/server_side.hpp"

#include <string>
#include <utility>

#include "topologies/fat_tree_counts.hpp"

namespace trainyard::topologies {

bool are_sound_servers(const HostShape& servers, Problems& problems) {
  const std::size_t before = problems.size();
  const auto need = [&](bool holds, const char* path, const char* what, const char* right) {
    if (!holds) problems.push_back({path, what, right});
  };
  need(servers.hosts >= 1, "server.hosts", "a fabric needs servers", "1 or more");
  need(servers.gpus >= 1, "server.gpus", "a server needs a GPU", "1 or more");
  need(servers.nics >= 1, "server.nics", "a server needs a NIC to be on the fabric", "1 or more");
  need(servers.storage_ports >= 0, "server.storage_ports", "is negative", "0 or more");
  need(servers.nic_rate.value() > 0, "server.nic_rate", "is not positive",
       "a rate such as 400 Gb/s");
  need(servers.scale_up_rate.value() > 0, "server.scale_up_rate", "is not positive",
       "a rate such as 450 GB/s");
  need(servers.storage_ports == 0 || servers.storage_rate.value() > 0, "server.storage_rate",
       "is not positive", "a rate such as 400 Gb/s");
  return problems.size() == before;
}

bool is_sound_switch(const char* path, const SwitchSpec& box, Problems& problems) {
  if (box.ports >= 2 && box.ports <= most_ports && box.port_rate.value() > 0) return true;
  problems.push_back(
      {path, "a switch needs two ports with a rate",
       "ports from 2 to " + text(std::int64_t{most_ports}) + ", port_rate above zero"});
  return false;
}

bool fits_servers(const char* path, const SwitchSpec& edge, const HostShape& servers,
                  Problems& problems) {
  const std::size_t before = problems.size();
  const auto need_port_for = [&](const char* what, BytesPerSecond rate) {
    if (links_per_port(edge.port_rate, rate) == 0)
      problems.push_back({what, text(rate) + " does not fit a port of " + text(edge.port_rate),
                          std::string(path) + ".port_rate of at least " + text(rate)});
  };
  need_port_for("server.nic_rate", servers.nic_rate);
  if (servers.storage_ports > 0) need_port_for("server.storage_rate", servers.storage_rate);
  return problems.size() == before;
}

std::int64_t server_ports(std::int64_t nics, std::int64_t edge_switches, const SwitchSpec& edge,
                          const HostShape& servers) {
  std::int64_t ports = ports_for(nics, edge.port_rate, servers.nic_rate);
  if (servers.storage_ports > 0)
    ports += ports_for(ceil_div(servers.storage_ports, edge_switches), edge.port_rate,
                       servers.storage_rate);
  return ports;
}

void lay(std::vector<Link>& links, const CableEnds& c) {
  links.push_back({VertexId(c.from), VertexId(c.to), c.rate, c.from_delay, c.kind, c.tier});
  links.push_back({VertexId(c.to), VertexId(c.from), c.rate, c.to_delay, c.kind, c.tier});
}

std::size_t first_switch_of(const HostShape& s) {
  return std::size_t(s.hosts) * std::size_t(s.gpus + 1 + s.nics) + std::size_t(s.storage_ports);
}

void lay_server_cables(std::vector<Link>& links, const HostShape& servers, Duration edge_delay,
                       std::size_t edge_switches,
                       const std::function<std::size_t(std::size_t)>& edge_of_nic) {
  const std::size_t gpus = std::size_t(servers.hosts) * std::size_t(servers.gpus);
  const std::size_t nics = std::size_t(servers.hosts) * std::size_t(servers.nics);
  const std::size_t first_nic = gpus + std::size_t(servers.hosts);
  const std::size_t first_storage = first_nic + nics;
  const std::size_t first_edge = first_storage + std::size_t(servers.storage_ports);
  for (std::size_t g = 0; g < gpus; ++g)
    lay(links, {g, gpus + g / std::size_t(servers.gpus), servers.scale_up_rate, Duration{},
                servers.scale_up_latency, LinkKind::nvlink, 0});
  for (std::size_t n = 0; n < nics; ++n)
    lay(links, {first_nic + n, first_edge + edge_of_nic(n), servers.nic_rate, Duration{},
                edge_delay, LinkKind::nic_leaf, 1});
  for (std::size_t s = 0; s < std::size_t(servers.storage_ports); ++s)
    lay(links, {first_storage + s,
                first_edge + edge_of_storage_port(s, edge_switches, servers.storage_ports),
                servers.storage_rate, Duration{}, edge_delay, LinkKind::storage, 1});
}

}  // namespace trainyard::topologies
