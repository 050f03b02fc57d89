#include "topologies/fabric.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::topologies {

namespace {

constexpr std::size_t kind_count = 7;

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

Fabric::Fabric(FatTreeShape shape, FabricSpec as_built, HostShape servers, std::vector<Link> links)
    : shape_(shape), spec_(std::move(as_built)), servers_(servers), links_(std::move(links)) {
  const std::size_t counts[kind_count] = {size(shape_.hosts) * size(shape_.gpus_per_host),
                                          size(shape_.hosts),
                                          size(shape_.hosts) * size(shape_.nics_per_host),
                                          size(shape_.storage_ports),
                                          size(shape_.leaves),
                                          size(shape_.spines()),
                                          size(shape_.cores())};
  first_.push_back(0);
  for (const std::size_t n : counts) first_.push_back(first_.back() + n);

  first_nic_link_ = 2 * gpu_count();
  first_leaf_link_ = first_nic_link_ + 2 * (nic_count() + size(shape_.storage_ports));
  first_spine_link_ = first_leaf_link_ + 2 * size(shape_.leaves) * size(shape_.uplinks_per_leaf);
  check(links_.size() ==
            first_spine_link_ + 2 * size(shape_.spines()) * size(shape_.uplinks_per_spine),
        "a fat tree has as many links as its counts say");

  // Links by tail, as one array with an offset for each vertex.
  out_first_.assign(vertex_count() + 1, 0);
  for (const Link& l : links_) ++out_first_[l.from.index() + 1];
  for (std::size_t v = 0; v < vertex_count(); ++v) out_first_[v + 1] += out_first_[v];
  out_links_.resize(links_.size());
  std::vector<std::uint32_t> next(out_first_.begin(), out_first_.end() - 1);
  for (std::size_t l = 0; l < links_.size(); ++l)
    out_links_[next[links_[l].from.index()]++] = LinkId(l);
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
  return GpuId(h.index() * size(shape_.gpus_per_host) + local);
}
NicId Fabric::nic(HostId h, std::size_t local) const {
  return NicId(h.index() * size(shape_.nics_per_host) + local);
}
NicId Fabric::storage_port(std::size_t index) const {
  return NicId(nic_count() + index);
}

HostId Fabric::host_of(GpuId g) const {
  return HostId(g.index() / size(shape_.gpus_per_host));
}
HostId Fabric::host_of(NicId n) const {
  check(n.index() < nic_count(), "only the NICs of servers belong to a server");
  return HostId(n.index() / size(shape_.nics_per_host));
}
NicId Fabric::nic_of(GpuId g) const {
  const std::size_t local = g.index() % size(shape_.gpus_per_host);
  return nic(host_of(g), local * size(shape_.nics_per_host) / size(shape_.gpus_per_host));
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
VertexId Fabric::leaf_of(HostId h) const {
  return vertex(VertexKind::leaf, h.index() / size(shape_.hosts_per_leaf));
}
VertexId Fabric::leaf_of(NicId n) const {
  return link(uplink(n)).to;
}
int Fabric::pod_of(HostId h) const {
  return shape_.pod_of_leaf(shape_.leaf_of_host(static_cast<int>(h.index())));
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
  const auto of = [](std::size_t value, std::size_t per, std::string_view outer,
                     std::string_view inner) {
    return std::string(outer) + '-' + std::to_string(value / per) + '/' + std::string(inner) + '-' +
           std::to_string(value % per);
  };
  const bool has_pods = shape_.tiers == 3;
  switch (kind(v)) {
    case VertexKind::gpu:
      return of(i, size(shape_.gpus_per_host), "node", "gpu");
    case VertexKind::scale_up_switch:
      return name(HostId(i)) + "/scale-up";
    case VertexKind::nic:
      return of(i, size(shape_.nics_per_host), "node", "nic");
    case VertexKind::storage:
      return "storage-" + std::to_string(i);
    case VertexKind::leaf:
      return has_pods ? of(i, size(shape_.leaves_per_pod), "pod", "leaf")
                      : "leaf-" + std::to_string(i);
    case VertexKind::spine:
      return has_pods ? of(i, size(shape_.spines_per_pod), "pod", "spine")
                      : "spine-" + std::to_string(i);
    case VertexKind::core:
      return "core-" + std::to_string(i);
  }
  check(false, "every kind of vertex has a name");
  return {};
}

int Fabric::parallel_of(LinkId l) const {
  const bool to_core = l.index() >= first_spine_link_;
  if (l.index() < first_leaf_link_) return -1;
  const int bundle = to_core ? shape_.core_bundle : shape_.leaf_bundle;
  const std::size_t cable = (l.index() - (to_core ? first_spine_link_ : first_leaf_link_)) / 2;
  return bundle == 1 ? -1 : static_cast<int>(cable % size(bundle));  // bundles are stored whole
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

  const auto candidate = [&]() -> std::optional<std::pair<VertexKind, std::size_t>> {
    const auto within = [&](std::string_view key, VertexKind kind, std::size_t group,
                            int per) -> std::optional<std::pair<VertexKind, std::size_t>> {
      const auto local = number_after(inner, key);
      if (!local || *local >= size(per)) return {};
      return std::pair(kind, group * size(per) + *local);
    };
    if (const auto node = number_after(outer, "node"); node && *node < host_count()) {
      if (inner == "scale-up") return std::pair(VertexKind::scale_up_switch, *node);
      if (auto gpu = within("gpu", VertexKind::gpu, *node, shape_.gpus_per_host)) return gpu;
      return within("nic", VertexKind::nic, *node, shape_.nics_per_host);
    }
    if (const auto pod = number_after(outer, "pod"); pod && *pod < size(shape_.pods)) {
      if (auto leaf = within("leaf", VertexKind::leaf, *pod, shape_.leaves_per_pod)) return leaf;
      return within("spine", VertexKind::spine, *pod, shape_.spines_per_pod);
    }
    for (const VertexKind kind :
         {VertexKind::storage, VertexKind::leaf, VertexKind::spine, VertexKind::core})
      if (const auto i = number_after(outer, name_of(kind))) return std::pair(kind, *i);
    return {};
  }();

  if (!candidate || candidate->second >= count(candidate->first)) return {};
  const VertexId found = vertex(candidate->first, candidate->second);
  if (name(found) != text)
    return {};  // only the one spelling: not "leaf-07", not "leaf-7" of a pod
  return found;
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
  factor_[l.index()] = factor;
}

BytesPerSecond LinkState::capacity(LinkId l) const {
  if (!is_up(l)) return BytesPerSecond(0.0);
  return fabric_->link(l).capacity * (factor_.empty() ? 1.0 : factor_[l.index()]);
}

}  // namespace trainyard::topologies
