#include "topologies/custom_graph.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "topologies/import_builder.hpp"

namespace trainyard::topologies {

namespace {

using What = CustomEnd::What;

/// "leaf-12" after "leaf-" is 12: digits alone, without zeros in front.
std::optional<std::size_t> number(std::string_view digits) {
  std::size_t value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || stop != digits.data() + digits.size() || digits.front() == '+')
    return {};
  if (digits.size() > 1 && digits.front() == '0') return {};
  return value;
}

std::string up_to(const char* prefix, int n) {
  return n == 0 ? std::string("none")
                : std::string(prefix) + "0 to " + prefix + std::to_string(n - 1);
}

std::optional<CustomEnd> end_of(const GraphVertex& v, const HostShape& servers,
                                Complaints& complaints) {
  const std::string_view name = v.name;
  const auto refuse = [&](const std::string& what, const std::string& right) {
    complaints.add(v.line, in_quotes(name) + what, right);
    return std::optional<CustomEnd>{};
  };
  if (v.kind == "gpu" || v.kind == "scale-up") return CustomEnd{What::inside_server, 0};
  if (name.starts_with("storage-")) {
    const auto port = number(name.substr(8));
    if (!port) return refuse(" is no storage port", "storage-0, storage-1, … or another name");
    if (*port >= std::size_t(servers.storage_ports))
      return refuse(" is not in the scenario", up_to("storage-", servers.storage_ports));
    return CustomEnd{What::storage, std::uint32_t(*port)};
  }
  if (!name.starts_with("node-")) return CustomEnd{};
  const std::size_t slash = name.find('/');
  const auto server = number(name.substr(5, slash == name.npos ? slash : slash - 5));
  if (!server) return refuse(" is no server", "node-7 or node-7/nic-2, without zeros in front");
  if (*server >= std::size_t(servers.hosts))
    return refuse(" is not one of the scenario's " + std::to_string(servers.hosts) + " servers",
                  up_to("node-", servers.hosts));
  if (slash == name.npos) return CustomEnd{What::server, std::uint32_t(*server)};
  const std::string_view part = name.substr(slash + 1);
  if (part == "scale-up" || part.starts_with("gpu-")) return CustomEnd{What::inside_server, 0};
  const auto nic = part.starts_with("nic-") ? number(part.substr(4)) : std::nullopt;
  if (!nic || *nic >= std::size_t(servers.nics))
    return refuse(" is no NIC of a server with " + std::to_string(servers.nics),
                  up_to("node-7/nic-", servers.nics));
  return CustomEnd{What::nic, std::uint32_t(*server * std::size_t(servers.nics) + *nic)};
}

}  // namespace

void Complaints::add(int line, const std::string& what, const std::string& right) {
  constexpr std::size_t most_listed = 20;
  if (++count_ > most_listed) return;
  const std::string at = line > 0 ? ':' + std::to_string(line) : std::string{};
  problems_.push_back({"graph", file_ + at + ": " + what, right});
}

Complaints::~Complaints() {
  if (count_ > 20)
    problems_.push_back({"graph", file_ + ": " + std::to_string(count_ - 20) + " more mistakes",
                         "a graph without them"});
}

std::vector<CustomEnd> ends_of(const GraphFile& g, const HostShape& servers,
                               Complaints& complaints) {
  std::vector<CustomEnd> ends;
  ends.reserve(g.vertices.size());
  std::uint32_t switches = 0;
  for (const GraphVertex& v : g.vertices) {
    auto end = end_of(v, servers, complaints);
    if (end && end->what == What::switch_box) end->index = switches++;
    ends.push_back(end.value_or(CustomEnd{What::inside_server, 0}));
  }
  return ends;
}

std::vector<CustomCable> cables_of(const GraphFile& g, const std::vector<CustomEnd>& ends,
                                   Complaints& complaints) {
  constexpr std::size_t most_cables = 50'000'000;
  std::vector<CustomCable> cables;
  const auto name = [&](std::uint32_t v) { return in_quotes(g.vertices[v].name); };

  // Cables whose way back was not met yet, by the pair of vertices, first come first served.
  struct Waiting {
    std::vector<std::size_t> cables;
    std::size_t next = 0;
  };
  std::unordered_map<std::uint64_t, Waiting> waiting;
  std::vector<std::size_t> edge_of;  // of each cable
  std::vector<char> is_whole;
  const auto key = [](std::uint32_t from, std::uint32_t to) {
    return std::uint64_t{from} << 32 | to;
  };

  for (std::size_t i = 0; i < g.edges.size(); ++i) {
    const GraphEdge& e = g.edges[i];
    const CustomEnd a = ends[e.from], b = ends[e.to];
    if (a.what == What::inside_server || b.what == What::inside_server) continue;
    if (e.from == e.to) {
      complaints.add(e.line, name(e.from) + " is joined to itself", "two different ends");
      continue;
    }
    if (a.what != What::switch_box && b.what != What::switch_box) {
      complaints.add(e.line, name(e.from) + " and " + name(e.to) + " are joined without a switch",
                     "a switch between them");
      continue;
    }
    if (cables.size() + std::size_t(e.count) > most_cables) {
      complaints.add(e.line, "more than 50 million cables", "fewer");
      break;
    }
    const CustomDirection direction{e.capacity, e.latency};
    for (int n = 0; n < e.count; ++n) {
      if (e.is_directed) {
        const auto opposite = waiting.find(key(e.to, e.from));
        if (opposite != waiting.end() && opposite->second.next < opposite->second.cables.size()) {
          const std::size_t c = opposite->second.cables[opposite->second.next++];
          cables[c].back = direction;
          is_whole[c] = 1;
          continue;
        }
        waiting[key(e.from, e.to)].cables.push_back(cables.size());
      }
      CustomCable cable{a, b, direction, direction, e.line};
      // A server adds no delay to what it sends: the one given is the switch's.
      if (!e.is_directed && a.what != What::switch_box) cable.there.latency.reset();
      if (!e.is_directed && b.what != What::switch_box) cable.back.latency.reset();
      cables.push_back(cable);
      edge_of.push_back(i);
      is_whole.push_back(e.is_directed ? 0 : 1);
    }
  }
  for (std::size_t c = 0; c < cables.size(); ++c) {
    if (is_whole[c]) continue;
    const GraphEdge& e = g.edges[edge_of[c]];
    complaints.add(e.line, "nothing leads back from " + name(e.to) + " to " + name(e.from),
                   "a directed edge each way, or an undirected graph");
  }
  return cables;
}

}  // namespace trainyard::topologies
