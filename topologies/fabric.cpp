#include "topologies/fabric.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::topologies {

namespace {

std::size_t size(int n) {
  return static_cast<std::size_t>(n);
}

/// "leaf-12" with key "leaf" is 12.
std::optional<std::size_t> number_after(std::string_view text, std::string_view key) {
  if (!text.starts_with(key) || text.size() < key.size() + 2 || text[key.size()] != '-') return {};
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + key.size() + 1, end, value);
  if (error != std::errc{} || stop != end) return {};
  return value;
}

}  // namespace

Fabric::Fabric(Shape shape, FabricSpec as_built, HostShape servers, std::vector<Link> links)
    : shape_(std::move(shape)),
      spec_(std::move(as_built)),
      servers_(servers),
      links_(std::move(links)) {
  std::visit([&](const auto& s) { edge_kind_ = s.edge; }, shape_);
  first_.push_back(0);
  for (std::size_t k = 0; k < vertex_kinds; ++k) {
    const auto kind = static_cast<VertexKind>(k);
    const std::size_t n = [&]() -> std::size_t {
      switch (kind) {
        case VertexKind::gpu:
          return size(servers_.hosts) * size(servers_.gpus);
        case VertexKind::scale_up_switch:
          return size(servers_.hosts);
        case VertexKind::nic:
          return size(servers_.hosts) * size(servers_.nics);
        case VertexKind::storage:
          return size(servers_.storage_ports);
        default:
          return std::visit([&](const auto& s) { return s.count(kind); }, shape_);
      }
    }();
    first_.push_back(first_.back() + n);
  }
  first_nic_link_ = 2 * gpu_count();
  first_trunk_ = first_nic_link_ +
                 2 * (nic_count() * size(servers_.ports_per_nic) + size(servers_.storage_ports));
  check(links_.size() >= first_trunk_ && links_.size() % 2 == 0,
        "a fabric has the links of its servers, and two for every cable");
  if (const auto* tree = std::get_if<FatTreeShape>(&shape_)) {
    uplinks_per_leaf_ = size(tree->uplinks_per_leaf);
    uplinks_per_spine_ = size(tree->uplinks_per_spine);
    first_spine_link_ = first_trunk_ + 2 * size(tree->leaves) * uplinks_per_leaf_;
    check(links_.size() == first_spine_link_ + 2 * size(tree->spines()) * uplinks_per_spine_,
          "a fat tree has as many links as its counts say");
  }

  // Links by tail, as one array with an offset for each vertex.
  out_first_.assign(vertex_count() + 1, 0);
  for (const Link& l : links_) ++out_first_[l.from.index() + 1];
  for (std::size_t v = 0; v < vertex_count(); ++v) out_first_[v + 1] += out_first_[v];
  out_links_.resize(links_.size());
  std::vector<std::uint32_t> next(out_first_.begin(), out_first_.end() - 1);
  for (std::size_t l = 0; l < links_.size(); ++l)
    out_links_[next[links_[l].from.index()]++] = LinkId(l);
}

void Fabric::wrong_shape() {
  check(false, "a fabric is asked for the shape of its own kind");
  std::abort();
}

int Fabric::pod_of(VertexId v) const {
  check(is_switch(v), "only switches belong to a pod");
  return std::visit([&](const auto& s) { return s.pod_of(kind(v), index_in_kind(v)); }, shape_);
}

std::size_t Fabric::count(VertexKind kind) const {
  const auto k = static_cast<std::size_t>(kind);
  return first_[k + 1] - first_[k];
}

VertexId Fabric::vertex(VertexKind kind, std::size_t index) const {
  check(index < count(kind), "a vertex is asked for by an index within its kind");
  return VertexId(first_[static_cast<std::size_t>(kind)] + index);
}

VertexKind Fabric::kind(VertexId v) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), v.index());
  return static_cast<VertexKind>(after - first_.begin() - 1);
}

std::size_t Fabric::index_in_kind(VertexId v) const {
  return v.index() - first_[static_cast<std::size_t>(kind(v))];
}

std::span<const LinkId> Fabric::out_links(VertexId v) const {
  return std::span(out_links_)
      .subspan(out_first_[v.index()], out_first_[v.index() + 1] - out_first_[v.index()]);
}

GpuId Fabric::gpu(HostId h, std::size_t local) const {
  return GpuId(h.index() * size(servers_.gpus) + local);
}
NicId Fabric::nic(HostId h, std::size_t local) const {
  return NicId(h.index() * size(servers_.nics) + local);
}
NicId Fabric::storage_port(std::size_t index) const {
  return NicId(nic_count() + index);
}

HostId Fabric::host_of(GpuId g) const {
  return HostId(g.index() / size(servers_.gpus));
}
HostId Fabric::host_of(NicId n) const {
  check(n.index() < nic_count(), "only the NICs of servers belong to a server");
  return HostId(n.index() / size(servers_.nics));
}
NicId Fabric::nic_of(GpuId g) const {
  const std::size_t local = g.index() % size(servers_.gpus);
  return nic(host_of(g), local * size(servers_.nics) / size(servers_.gpus));
}

VertexId Fabric::vertex(GpuId g) const {
  return VertexId(g.index());
}
VertexId Fabric::vertex(NicId n) const {  // storage ports follow the NICs in both numberings
  return VertexId(first_[static_cast<std::size_t>(VertexKind::nic)] + n.index());
}
VertexId Fabric::scale_up_switch(HostId h) const {
  return vertex(VertexKind::scale_up_switch, h.index());
}
VertexId Fabric::edge_of(HostId h) const {
  return edge_of(nic(h, 0));
}
VertexId Fabric::edge_of(NicId n, int port) const {
  return link(uplink(n, port)).to;
}

void Fabric::scale_up_path(GpuId from, GpuId to, std::vector<LinkId>& out) const {
  check(host_of(from) == host_of(to), "a scale-up path stays within one server");
  out.clear();
  if (from == to) return;
  out.push_back(scale_up_uplink(from));
  out.push_back(reverse(scale_up_uplink(to)));
}

std::string Fabric::name(VertexId v) const {
  const std::size_t i = index_in_kind(v);
  const auto of = [](std::size_t value, std::size_t per, std::string_view inner) {
    return "node-" + std::to_string(value / per) + '/' + std::string(inner) + '-' +
           std::to_string(value % per);
  };
  switch (kind(v)) {
    case VertexKind::gpu:
      return of(i, size(servers_.gpus), "gpu");
    case VertexKind::scale_up_switch:
      return name(HostId(i)) + "/scale-up";
    case VertexKind::nic:
      return of(i, size(servers_.nics), "nic");
    case VertexKind::storage:
      return "storage-" + std::to_string(i);
    default:
      return std::visit([&](const auto& s) { return s.name(kind(v), i); }, shape_);
  }
}

int Fabric::parallel_of(LinkId l) const {
  int number = -1;
  int twins = 0;
  for (const LinkId other : out_links(link(l).from)) {
    if (link(other).to != link(l).to) continue;
    if (other == l) number = twins;
    ++twins;
  }
  return twins > 1 ? number : -1;
}

std::string Fabric::name(LinkId l) const {
  std::string text = name(link(l).from) + " -> " + name(link(l).to);
  if (const int n = parallel_of(l); n >= 0) text += " #" + std::to_string(n);
  return text;
}

std::optional<VertexId> Fabric::find_vertex(std::string_view text) const {
  const std::size_t slash = text.find('/');
  const std::string_view outer = text.substr(0, slash);
  const std::string_view inner = slash == text.npos ? "" : text.substr(slash + 1);

  const auto candidate = [&]() -> std::optional<VertexId> {
    if (const auto node = number_after(outer, "node"); node && *node < host_count()) {
      if (inner == "scale-up") return scale_up_switch(HostId(*node));
      const auto g = number_after(inner, "gpu");
      if (g && *g < size(servers_.gpus)) return vertex(gpu(HostId(*node), *g));
      const auto n = number_after(inner, "nic");
      if (n && *n < size(servers_.nics)) return vertex(nic(HostId(*node), *n));
    }
    const auto port = number_after(text, "storage");
    if (port && *port < count(VertexKind::storage)) return vertex(storage_port(*port));
    for (std::size_t v = first_switch().index(); v < vertex_count(); ++v)
      if (name(VertexId(v)) == text) return VertexId(v);
    return {};
  }();
  if (!candidate || name(*candidate) != text) return {};  // only the one spelling: not "node-07"
  return candidate;
}

std::optional<LinkId> Fabric::find_link(std::string_view text) const {
  constexpr std::string_view arrow = " -> ";
  const std::size_t at = text.find(arrow);
  if (at == text.npos) return {};
  const auto from = find_vertex(text.substr(0, at));
  if (!from) return {};
  for (const LinkId l : out_links(*from))
    if (name(l) == text) return l;
  return {};
}

void LinkState::set(std::vector<bool>& bits, std::size_t n, std::size_t i, bool down) {
  if (bits.empty()) {
    if (!down) return;
    bits.assign(n, false);
  }
  if (bits[i] == down) return;
  bits[i] = down;
  if (down)
    ++down_;
  else
    --down_;
}

void LinkState::set_up(LinkId l, bool up) {
  check(l.index() < fabric_->links().size(), "a link that fails or is repaired exists");
  set(links_down_, fabric_->links().size(), l.index(), !up);
}

void LinkState::set_cable_up(LinkId l, bool up) {
  set_up(l, up);
  set_up(Fabric::reverse(l), up);
}

void LinkState::set_up(VertexId v, bool up) {
  check(v.index() < fabric_->vertex_count(), "a vertex that fails or is repaired exists");
  set(vertices_down_, fabric_->vertex_count(), v.index(), !up);
}

void LinkState::set_capacity_factor(LinkId l, double factor) {
  check(factor > 0.0 && l.index() < fabric_->links().size(),
        "a degraded link exists and keeps some capacity");
  if (factor_.empty()) factor_.assign(fabric_->links().size(), 1.0);
  degraded_ += (factor != 1.0 ? 1u : 0u);
  degraded_ -= (factor_[l.index()] != 1.0 ? 1u : 0u);
  factor_[l.index()] = factor;
}

std::vector<std::uint32_t> LinkState::changes() const {
  std::vector<std::uint32_t> list;
  if (!is_changed()) return list;
  const auto add_set = [&](const std::vector<bool>& bits) {
    list.push_back(0xffffffffu);  // separates the lists
    for (std::size_t i = 0; i < bits.size(); ++i)
      if (bits[i]) list.push_back(static_cast<std::uint32_t>(i));
  };
  add_set(links_down_);
  add_set(vertices_down_);
  for (std::size_t i = 0; degraded_ > 0 && i < factor_.size(); ++i)
    if (factor_[i] != 1.0) {
      list.push_back(static_cast<std::uint32_t>(i));
      list.push_back(static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(factor_[i]) >> 32));
      list.push_back(static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(factor_[i])));
    }
  return list;
}

BytesPerSecond LinkState::capacity(LinkId l) const {
  if (!is_up(l)) return BytesPerSecond(0.0);
  return fabric_->link(l).capacity * capacity_factor(l);
}

}  // namespace trainyard::topologies
