#include "models/failures/unit_names.hpp"

#include <algorithm>
#include <charconv>

#include "sim/check.hpp"

namespace trainyard::models {

using topologies::Fabric;
using topologies::HostId;
using topologies::LinkId;
using topologies::NicId;
using topologies::VertexId;

namespace {

constexpr std::string_view arrow = " -> ";

/// "rack-2" with key "rack" is 2, if below `count`. Only the one spelling: not "rack-02".
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view key,
                                          std::int64_t count) {
  if (!text.starts_with(key) || text.size() < key.size() + 2 || text[key.size()] != '-') return {};
  const std::string_view digits = text.substr(key.size() + 1);
  if (digits.size() > 1 && digits[0] == '0') return {};
  std::uint32_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end || value >= count) return {};
  return value;
}

std::size_t ports(const Fabric& fabric) {
  return std::size_t(fabric.servers().ports_per_nic);
}

std::string by_number(std::string_view key, std::uint32_t unit) {
  return std::string(key) + '-' + std::to_string(unit);
}

/// "node-17/gpu-3" and its like; an unknown part is none.
std::optional<UnitRef> find_in_server(const UnitCounts& counts, std::string_view name) {
  const std::size_t slash = name.find('/');
  const auto server = number_after(name.substr(0, slash), "node", counts.servers);
  if (!server) return {};
  if (slash == name.npos) return UnitRef{Component::server, *server};
  for (const auto& [key, component] :
       {std::pair{"gpu", Component::gpu}, std::pair{"nic", Component::nic}}) {
    const std::int64_t n = counts.per_server(component);
    if (const auto local = number_after(name.substr(slash + 1), key, n))
      return UnitRef{component, *server * static_cast<std::uint32_t>(n) + *local};
  }
  return {};
}

}  // namespace

std::int64_t UnitCounts::per_server(Component c) const {
  switch (c) {
    case Component::gpu:
      return gpus_per_server;
    case Component::nic:
      return nics_per_server;
    case Component::server:
      return 1;
    case Component::access_link:
      return servers > 0 ? access_links / servers : 0;
    default:
      return 0;
  }
}

std::int64_t UnitCounts::servers_per(Component c) const {
  switch (c) {
    case Component::rack:
      return servers_per_rack;
    case Component::pdu:
      return servers_per_pdu;
    case Component::cdu:
      return servers_per_cdu;
    default:
      return 0;
  }
}

std::int64_t UnitCounts::of(Component c) const {
  switch (c) {
    case Component::leaf_switch:
      return leaves;
    case Component::upper_switch:
      return upper_switches;
    case Component::link:
      return links;
    case Component::rack:
    case Component::pdu:
    case Component::cdu: {
      const std::int64_t per = servers_per(c);
      return per > 0 ? (servers + per - 1) / per : 0;  // the last may have fewer
    }
    case Component::store_server: {
      std::int64_t all = 0;
      for (const auto& [store, n] : store_servers) all += n;
      return all;
    }
    default:
      return servers * per_server(c);
  }
}

std::int64_t UnitCounts::of(const FailureClassSpec& spec) const {
  if (spec.component != Component::store_server) return of(spec.component);
  const auto found = store_servers.find(spec.store);
  return found == store_servers.end() ? 0 : found->second;
}

std::string unit_name(const UnitCounts& counts, Component component, std::uint32_t unit,
                      std::string_view store) {
  const Fabric* f = counts.fabric;
  switch (component) {
    case Component::leaf_switch:
      return f ? f->name(f->vertex(f->edge_kind(), unit)) : by_number("leaf", unit);
    case Component::upper_switch:
      return f ? f->name(upper_switch(*f, unit)) : by_number("switch", unit);
    case Component::link:
      return f ? f->name(trunk(*f, unit)) : by_number("link", unit);
    case Component::access_link:
      return f ? f->name(access_link(*f, unit)) : by_number("access-link", unit);
    case Component::rack:
    case Component::pdu:
    case Component::cdu:
      return by_number(name_of(component), unit);
    case Component::store_server:
      return std::string(store) + by_number("/server", unit);
    default:
      break;
  }
  const auto per_server = static_cast<std::uint32_t>(counts.per_server(component));
  std::string name = by_number("node", unit / per_server);
  if (component == Component::gpu) name += by_number("/gpu", unit % per_server);
  if (component == Component::nic) name += by_number("/nic", unit % per_server);
  return name;
}

UnitNames::UnitNames(UnitCounts counts) : counts_(std::move(counts)) {
  const Fabric* f = counts_.fabric;
  if (f == nullptr) return;
  for (std::size_t v = f->first_switch().index(); v < f->vertex_count(); ++v)
    switches_.emplace_back(f->name(VertexId(v)), VertexId(v));
  std::sort(switches_.begin(), switches_.end());
}

std::optional<UnitRef> UnitNames::find(std::string_view name) const {
  if (const auto found = find_switch(name)) return found;
  if (const auto found = find_cable(name)) return found;
  if (const auto found = find_in_server(counts_, name)) return found;
  for (const Component c : {Component::rack, Component::pdu, Component::cdu})
    if (const auto unit = number_after(name, name_of(c), counts_.of(c))) return UnitRef{c, *unit};
  const std::size_t slash = name.rfind('/');
  if (slash == name.npos) return {};
  const auto store = counts_.store_servers.find(std::string(name.substr(0, slash)));
  if (store == counts_.store_servers.end()) return {};
  const auto unit = number_after(name.substr(slash + 1), "server", store->second);
  if (!unit) return {};
  return UnitRef{Component::store_server, *unit, store->first};
}

std::optional<UnitRef> UnitNames::find_switch(std::string_view name) const {
  const Fabric* f = counts_.fabric;
  if (f == nullptr) {
    if (const auto leaf = number_after(name, "leaf", counts_.leaves))
      return UnitRef{Component::leaf_switch, *leaf};
    if (const auto upper = number_after(name, "switch", counts_.upper_switches))
      return UnitRef{Component::upper_switch, *upper};
    return {};
  }
  const auto vertex = find_vertex(name);
  if (!vertex || !f->is_switch(*vertex)) return {};
  if (f->kind(*vertex) == f->edge_kind())
    return UnitRef{Component::leaf_switch, std::uint32_t(f->index_in_kind(*vertex))};
  // The inverse of upper_switch().
  std::size_t unit = vertex->index() - f->first_switch().index();
  if (f->edge_count() > 0 && *vertex > f->vertex(f->edge_kind(), 0)) unit -= f->edge_count();
  return UnitRef{Component::upper_switch, std::uint32_t(unit)};
}

std::optional<VertexId> UnitNames::find_vertex(std::string_view name) const {
  const Fabric& f = *counts_.fabric;
  const auto at = std::lower_bound(switches_.begin(), switches_.end(), name,
                                   [](const auto& entry, auto text) { return entry.first < text; });
  if (at != switches_.end() && at->first == name) return at->second;
  const auto part = find_in_server(counts_, name);
  if (part && part->component == Component::nic) return f.vertex(NicId(part->unit));
  return {};
}

std::optional<UnitRef> UnitNames::find_cable(std::string_view name) const {
  const Fabric* f = counts_.fabric;
  if (f == nullptr) {
    if (const auto link = number_after(name, "link", counts_.links))
      return UnitRef{Component::link, *link};
    if (const auto link = number_after(name, "access-link", counts_.access_links))
      return UnitRef{Component::access_link, *link};
    return {};
  }
  const std::size_t at = name.find(arrow);
  if (at == name.npos) return {};
  const auto from = find_vertex(name.substr(0, at));
  if (!from) return {};
  std::string_view rest = name.substr(at + arrow.size());
  // " #2" is the third of parallel cables; one that has no twin carries no number.
  std::optional<std::size_t> number;
  auto to = find_vertex(rest);
  if (const std::size_t hash = rest.rfind(" #"); !to && hash != rest.npos) {
    const auto n = number_after("n-" + std::string(rest.substr(hash + 2)), "n", 1'000'000);
    if (!n) return {};
    number = *n;
    to = find_vertex(rest.substr(0, hash));
  }
  if (!to) return {};
  std::vector<LinkId> parallel;
  for (const LinkId l : f->out_links(*from))
    if (f->link(l).to == *to) parallel.push_back(l);
  if (parallel.empty() || number.has_value() != (parallel.size() > 1) ||
      number.value_or(0) >= parallel.size())
    return {};
  const std::size_t link = parallel[number.value_or(0)].index();
  if (link >= f->first_trunk().index())
    return UnitRef{Component::link, std::uint32_t((link - f->first_trunk().index()) / 2)};
  return UnitRef{Component::access_link, std::uint32_t((link - f->uplink(NicId(0)).index()) / 2)};
}

std::optional<UnitRef> find_unit(const UnitCounts& counts, std::string_view name) {
  return UnitNames(counts).find(name);
}

VertexId upper_switch(const Fabric& fabric, std::uint32_t unit) {
  // Switches are numbered kind by kind, and one of the kinds is the edge.
  const std::size_t first = fabric.first_switch().index();
  const std::size_t edge = fabric.vertex(fabric.edge_kind(), 0).index();
  return VertexId(first + unit < edge ? first + unit : first + unit + fabric.edge_count());
}

LinkId trunk(const Fabric& fabric, std::uint32_t unit) {
  return LinkId(fabric.first_trunk().index() + 2 * std::size_t{unit});
}

LinkId access_link(const Fabric& fabric, std::uint32_t unit) {
  check(unit < fabric.nic_count() * ports(fabric), "an access link is a port of a server", unit);
  return fabric.uplink(NicId(unit / ports(fabric)), int(unit % ports(fabric)));
}

HostId server_of_access_link(const Fabric& fabric, std::uint32_t unit) {
  return fabric.host_of(NicId(unit / ports(fabric)));
}

std::vector<std::uint32_t> access_links_of_nic(const Fabric& fabric, NicId nic) {
  check(nic.index() < fabric.nic_count(), "an access link is a port of a server", nic.index());
  std::vector<std::uint32_t> links;
  for (std::size_t p = 0; p < ports(fabric); ++p)
    links.push_back(std::uint32_t(nic.index() * ports(fabric) + p));
  return links;
}

}  // namespace trainyard::models
