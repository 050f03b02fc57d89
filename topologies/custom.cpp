#include "topologies/custom.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "sim/check.hpp"
#include "topologies/custom_graph.hpp"
#include "topologies/fat_tree_counts.hpp"
#include "topologies/import_builder.hpp"
#include "topologies/server_side.hpp"

namespace trainyard::topologies {

namespace {

using What = CustomEnd::What;

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

/// A cable seen from the server or storage port that it ends at.
struct Port {
  std::uint32_t switch_index;
  CustomDirection up, down;
  int line;
};

Port port_of(const CustomCable& c) {
  return c.a.what == What::switch_box ? Port{c.a.index, c.back, c.there, c.line}
                                      : Port{c.b.index, c.there, c.back, c.line};
}
const CustomEnd& server_end(const CustomCable& c) {
  return c.a.what == What::switch_box ? c.b : c.a;
}

/// What is plugged in where.
struct Plugs {
  std::vector<std::vector<Port>> of_server;  // named as a whole
  std::vector<std::vector<Port>> of_nic;
  std::vector<std::vector<Port>> of_storage;
  int ports_per_nic = 1;
};

class Builder {
 public:
  Builder(const FabricSpec& spec, const HostShape& servers, const GraphFile& graph,
          Problems& problems)
      : spec_(spec), servers_(servers), graph_(graph), complaints_(graph.file, problems) {}

  std::shared_ptr<const Fabric> build() {
    const std::vector<CustomEnd> ends = ends_of(graph_, servers_, complaints_);
    cables_ = cables_of(graph_, ends, complaints_);
    for (std::size_t v = 0; v < ends.size(); ++v)
      if (ends[v].what == What::switch_box) {
        shape_.switches.push_back(graph_.vertices[v].name);
        lines_.push_back(graph_.vertices[v].line);
      }
    if (shape_.switches.empty())
      complaints_.add(0, "there is no switch in the graph", "switches, and cables to the servers");
    if (complaints_.any()) return nullptr;
    plug_in();
    if (complaints_.any()) return nullptr;
    check_rates();
    check_switches();
    check_connected();
    if (complaints_.any()) return nullptr;
    servers_.ports_per_nic = plugs_.ports_per_nic;
    return std::make_shared<const Fabric>(std::move(shape_), spec_, servers_, links());
  }

 private:
  static std::string nic_name(std::size_t nic, int nics) {
    return "node-" + std::to_string(nic / size(nics)) + "/nic-" + std::to_string(nic % size(nics));
  }
  static std::string cables_text(std::size_t n) {
    return n == 0 ? "no cable" : n == 1 ? "1 cable" : std::to_string(n) + " cables";
  }

  void plug_in() {
    plugs_.of_server.resize(size(servers_.hosts));
    plugs_.of_nic.resize(size(servers_.hosts) * size(servers_.nics));
    plugs_.of_storage.resize(size(servers_.storage_ports));
    for (const CustomCable& c : cables_) {
      const CustomEnd& end = server_end(c);
      if (end.what == What::server) plugs_.of_server[end.index].push_back(port_of(c));
      if (end.what == What::nic) plugs_.of_nic[end.index].push_back(port_of(c));
      if (end.what == What::storage) plugs_.of_storage[end.index].push_back(port_of(c));
    }
    for (int h = 0; h < servers_.hosts; ++h) plug_in_server(h);
    if (complaints_.any()) return;

    plugs_.ports_per_nic = int(plugs_.of_nic[0].size());
    for (std::size_t n = 0; n < plugs_.of_nic.size(); ++n)
      if (const std::size_t ports = plugs_.of_nic[n].size(); ports != plugs_.of_nic[0].size())
        complaints_.add(ports > 0 ? plugs_.of_nic[n][0].line : 0,
                        nic_name(n, servers_.nics) + " has " + cables_text(ports),
                        cables_text(plugs_.of_nic[0].size()) + " as node-0/nic-0 has");
    for (std::size_t s = 0; s < plugs_.of_storage.size(); ++s)
      if (plugs_.of_storage[s].size() != 1)
        complaints_.add(
            0, "storage-" + std::to_string(s) + " has " + cables_text(plugs_.of_storage[s].size()),
            "one cable to a switch");
  }

  void plug_in_server(int h) {
    constexpr std::size_t most_ports = 8;  // of a NIC
    const auto nics = size(servers_.nics);
    const std::string name = "node-" + std::to_string(h);
    auto& whole = plugs_.of_server[size(h)];
    std::size_t least = most_ports + 1, most = 0;
    for (std::size_t k = 0; k < nics; ++k) {
      const std::size_t ports = plugs_.of_nic[size(h) * nics + k].size();
      least = std::min(least, ports);
      most = std::max(most, ports);
    }
    if (whole.empty()) {
      if (most == 0)
        complaints_.add(0, name + " has no cable",
                        "its " + std::to_string(nics) + " NICs cabled to switches");
      else if (least == 0 || most > most_ports)
        complaints_.add(0, "of " + name + " a NIC has " + cables_text(least == 0 ? 0 : most),
                        "1 to 8 cables at each of its " + std::to_string(nics) + " NICs");
      return;
    }
    if (most > 0) {
      complaints_.add(whole[0].line, name + " is cabled as a whole and by its NICs",
                      "one or the other");
      return;
    }
    if (whole.size() % nics != 0 || whole.size() / nics > most_ports) {
      complaints_.add(whole[0].line,
                      name + " has " + cables_text(whole.size()) +
                          ", but the scenario's servers have " + std::to_string(nics) + " NICs",
                      std::to_string(nics) +
                          " cables, or twice as many if its NICs have two ports" +
                          " (count = " + std::to_string(nics) + " on one edge)");
      return;
    }
    for (std::size_t i = 0; i < whole.size(); ++i)
      plugs_.of_nic[size(h) * nics + i % nics].push_back(whole[i]);
  }

  void check_rates() {
    const auto expect = [&](const Port& p, const std::string& name, BytesPerSecond rate,
                            const std::string& right) {
      for (const auto& given : {p.up.capacity, p.down.capacity})
        if (given && std::abs(*given / rate - 1.0) > 1e-6) {
          complaints_.add(p.line, name + " is cabled at " + text(*given), right);
          return;
        }
    };
    const BytesPerSecond per_port = servers_.nic_rate / plugs_.ports_per_nic;
    const std::string right =
        text(per_port) +
        (plugs_.ports_per_nic > 1
             ? " on each of the " + std::to_string(plugs_.ports_per_nic) + " ports"
             : std::string{}) +
        ", so that the NIC has the " + text(servers_.nic_rate) + " of the scenario";
    for (std::size_t n = 0; n < plugs_.of_nic.size(); ++n)
      for (const Port& p : plugs_.of_nic[n]) expect(p, nic_name(n, servers_.nics), per_port, right);
    for (std::size_t s = 0; s < plugs_.of_storage.size(); ++s)
      for (const Port& p : plugs_.of_storage[s])
        expect(p, "storage-" + std::to_string(s), servers_.storage_rate,
               text(servers_.storage_rate) + " as in the scenario");
  }

  BytesPerSecond rate_of(const CustomCable& c) const {
    const auto of = [&](const CustomDirection& d) {
      return d.capacity.value_or(spec_.router_switch.port_rate);
    };
    return std::max(of(c.there), of(c.back));
  }
  static bool is_trunk(const CustomCable& c) {
    return c.a.what == What::switch_box && c.b.what == What::switch_box;
  }

  /// Every switch has cables, and no more than it has ports; every trunk has a rate.
  void check_switches() {
    const SwitchSpec& box = spec_.router_switch;
    const bool counts = is_given(box);
    std::vector<std::map<double, std::int64_t>> cables(shape_.switches.size());
    for (const CustomCable& c : cables_) {
      if (is_trunk(c) && !counts && (!c.there.capacity || !c.back.capacity)) {
        complaints_.add(c.line, "a cable between switches has no capacity",
                        "its capacity, or a router_switch whose port rate it has");
        return;
      }
      const BytesPerSecond rate = is_trunk(c) ? rate_of(c)
                                  : server_end(c).what == What::storage
                                      ? servers_.storage_rate
                                      : servers_.nic_rate / plugs_.ports_per_nic;
      if (counts && links_per_port(box.port_rate, rate) == 0) {
        complaints_.add(c.line,
                        "a cable of " + text(rate) + " is faster than a port of router_switch",
                        "at most " + text(box.port_rate));
        return;
      }
      for (const CustomEnd* end : {&c.a, &c.b})
        if (end->what == What::switch_box) ++cables[end->index][rate.value()];
    }
    for (std::size_t s = 0; s < cables.size(); ++s) {
      std::int64_t ports = 0;
      for (const auto& [rate, n] : cables[s])
        ports += counts ? ports_for(n, box.port_rate, BytesPerSecond(rate)) : n;
      if (ports == 0)
        complaints_.add(lines_[s], "switch " + in_quotes(shape_.switches[s]) + " has no cable",
                        "cables, or a graph without it");
      if (counts && ports > box.ports)
        complaints_.add(lines_[s],
                        "switch " + in_quotes(shape_.switches[s]) + " takes " +
                            std::to_string(ports) + " ports",
                        "at most the " + std::to_string(box.ports) + " ports of router_switch");
    }
  }

  /// Switches may fall into several parts (rails), but any two servers must share one.
  void check_connected() {
    std::vector<std::uint32_t> part(shape_.switches.size());  // a forest, roots are parts
    for (std::size_t s = 0; s < part.size(); ++s) part[s] = std::uint32_t(s);
    const auto root = [&](std::uint32_t s) {
      while (part[s] != s) s = part[s] = part[part[s]];
      return s;
    };
    for (const CustomCable& c : cables_)
      if (is_trunk(c))
        part[std::max(root(c.a.index), root(c.b.index))] =
            std::min(root(c.a.index), root(c.b.index));
    std::map<std::set<std::uint32_t>, std::size_t> kinds;  // parts of a server, and one such server
    for (std::size_t h = 0; h < size(servers_.hosts); ++h) {
      std::set<std::uint32_t> mine;
      for (std::size_t k = 0; k < size(servers_.nics); ++k)
        for (const Port& p : plugs_.of_nic[h * size(servers_.nics) + k])
          mine.insert(root(p.switch_index));
      kinds.try_emplace(std::move(mine), h);
    }
    for (const auto& [some, one] : kinds)
      for (const auto& [others, another] : kinds) {
        const auto is_shared = [&some = some](std::uint32_t p) { return some.contains(p); };
        if (std::any_of(others.begin(), others.end(), is_shared)) continue;
        complaints_.add(0,
                        "the graph is in parts: nothing leads from node-" + std::to_string(one) +
                            " at " + in_quotes(shape_.switches[*some.begin()]) + " to node-" +
                            std::to_string(another) + " at " +
                            in_quotes(shape_.switches[*others.begin()]),
                        "cables between the two");
        return;
      }
  }

  std::vector<Link> links() const {
    const std::size_t gpus = size(servers_.hosts) * size(servers_.gpus);
    const std::size_t first_nic = gpus + size(servers_.hosts);
    const std::size_t first_switch = first_switch_of(servers_);
    std::vector<Link> all;
    all.reserve(2 * (gpus + cables_.size()));
    for (std::size_t g = 0; g < gpus; ++g)
      lay(all, {g, gpus + g / size(servers_.gpus), servers_.scale_up_rate, Duration{},
                servers_.scale_up_latency, LinkKind::nvlink, 0});
    const SwitchSpec& box = spec_.router_switch;
    const auto attach = [&](std::size_t nic, const Port& p, BytesPerSecond rate, LinkKind kind) {
      lay(all, {first_nic + nic, first_switch + p.switch_index, rate,
                p.up.latency.value_or(Duration{}), p.down.latency.value_or(box.latency), kind, 1});
    };
    for (std::size_t n = 0; n < plugs_.of_nic.size(); ++n)
      for (const Port& p : plugs_.of_nic[n])
        attach(n, p, servers_.nic_rate / plugs_.ports_per_nic, LinkKind::nic_leaf);
    for (std::size_t s = 0; s < plugs_.of_storage.size(); ++s)
      attach(plugs_.of_nic.size() + s, plugs_.of_storage[s][0], servers_.storage_rate,
             LinkKind::storage);
    for (const CustomCable& c : cables_) {
      if (!is_trunk(c)) continue;
      const bool is_turned = c.b.index < c.a.index;
      const auto lay_trunk = [&](const CustomEnd& from, const CustomEnd& to,
                                 const CustomDirection& d) {
        all.push_back({VertexId(first_switch + from.index), VertexId(first_switch + to.index),
                       d.capacity.value_or(box.port_rate),
                       d.latency.value_or(box.latency + spec_.cable_latency), LinkKind::trunk, 2});
      };
      is_turned ? lay_trunk(c.b, c.a, c.back) : lay_trunk(c.a, c.b, c.there);
      is_turned ? lay_trunk(c.a, c.b, c.there) : lay_trunk(c.b, c.a, c.back);
    }
    return all;
  }

  const FabricSpec& spec_;
  HostShape servers_;
  const GraphFile& graph_;
  Complaints complaints_;
  std::vector<CustomCable> cables_;
  CustomShape shape_;
  std::vector<int> lines_;  // of each switch
  Plugs plugs_;
};

}  // namespace

bool is_given(const SwitchSpec& s) {
  const SwitchSpec none{};
  return !s.name.empty() || s.ports != none.ports || s.port_rate != none.port_rate ||
         s.latency != none.latency || s.power != none.power || s.price != none.price;
}

BuildResult build_custom(const FabricSpec& spec, const HostShape& servers) {
  BuildResult result;
  if (!spec.graph || spec.graph->empty()) {
    result.problems.push_back(
        {"graph", "a custom fabric has no file", "the path of a GraphML, DOT or edge list file"});
    return result;
  }
  const GraphFile graph = read_graph(*spec.graph, result.problems);
  if (!result.problems.empty()) return result;
  return build_custom(spec, servers, graph);
}

BuildResult build_custom(const FabricSpec& spec, const HostShape& servers, const GraphFile& graph) {
  BuildResult result;
  if (!are_sound_servers(servers, result.problems)) return result;
  result.fabric = Builder(spec, servers, graph, result.problems).build();
  check(result.fabric || !result.problems.empty(),
        "a graph that is refused is refused for a reason");
  return result;
}

}  // namespace trainyard::topologies
