#pragma once

#include <functional>
#include <vector>

#include "sim/problem.hpp"
#include "topologies/fabric.hpp"

/// What the builders of switches with servers beside them (dragonfly, torus) share: checks of the
/// servers, and their cables.
namespace trainyard::topologies {

inline constexpr std::int64_t most_links =
    100'000'000;  // 3 GB of graph; a slip of the keyboard, not a cluster

/// False if problems were added, as below.
bool are_sound_servers(const HostShape&, Problems&);
bool is_sound_switch(const char* path, const SwitchSpec&, Problems&);
/// Whether the switches to which servers are plugged have ports fast enough for them.
bool fits_servers(const char* path, const SwitchSpec& edge, const HostShape&, Problems&);

/// Ports of one edge switch that servers occupy: `nics` NICs, and its share of the storage ports.
std::int64_t server_ports(std::int64_t nics, std::int64_t edge_switches, const SwitchSpec& edge,
                          const HostShape&);

/// Storage ports are spread evenly over the edge switches.
inline std::size_t edge_of_storage_port(std::size_t port, std::size_t edge_switches, int ports) {
  return port * edge_switches / static_cast<std::size_t>(ports);
}

/// A cable: the even link from `from` to `to`, the odd one back. A switch's own delay is on the
/// links that leave it, so a path adds up each switch once.
struct CableEnds {
  std::size_t from, to;
  BytesPerSecond rate;
  Duration from_delay, to_delay;
  LinkKind kind;
  std::uint8_t tier;
};
void lay(std::vector<Link>&, const CableEnds&);

/// The first vertex that is a switch.
std::size_t first_switch_of(const HostShape&);

/// Scale-up, NICs, storage ports, in the order of the numbering (fabric.hpp). `edge_of_nic` gives
/// the edge switch, from 0; edge switches are the first switches.
void lay_server_cables(std::vector<Link>&, const HostShape&, Duration edge_delay,
                       std::size_t edge_switches,
                       const std::function<std::size_t(std::size_t)>& edge_of_nic);

}  // namespace trainyard::topologies
