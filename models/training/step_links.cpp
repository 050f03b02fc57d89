#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/training/step_model.hpp"
#include "sim/check.hpp"

/// StepModel and the links: which of them a step uses, which are busiest and by whom, who is cut
/// off.
namespace trainyard::models {
namespace {

constexpr std::size_t links_reported = 16;
constexpr std::size_t pairs_reported = 8;  // of one link
constexpr std::size_t cuts_named = 6;      // links

}  // namespace

bool StepModel::uses(const Placement& placement, std::span<const topologies::LinkId> links) {
  std::vector<bool> asked(router_.fabric().links().size(), false);
  for (const topologies::LinkId l : links) asked[l.index()] = true;
  if (plan_.data > 1 && data_.uses(asked)) return true;
  for (int s = 0; plan_.pipeline > 1 && s < plan_.pipeline; ++s) {
    const int next = (s + 1) % plan_.pipeline;
    if (next == 0 && plan_.chunks == 1) continue;
    if (boundaries_.uses(placement.servers, s, next, asked) ||
        boundaries_.uses(placement.servers, next, s, asked))
      return true;
  }
  return false;
}

void StepModel::links_changed(std::span<const topologies::LinkId> links) {
  if (router_.kind() == topologies::RoutingKind::ugal) {  // all traffic finds a new balance
    boundaries_.clear();
    data_.clear();
    return;
  }
  std::vector<bool> changed(router_.fabric().links().size(), false);
  for (const topologies::LinkId l : links) changed[l.index()] = true;
  boundaries_.forget(changed);
  data_.forget(changed);
}

/// Who has no path, and why; empty if all have one. Leaves the rings placed.
std::string StepModel::cut_off(const Placement& placement, bool& is_for_good) {
  const topologies::Fabric& fabric = router_.fabric();
  // A pair stands for its neighbours on other rails as well: find the one that is cut.
  const auto text = [&](topologies::GpuId first_from, topologies::GpuId first_to) {
    topologies::GpuId from = first_from, to = first_to;
    for (std::size_t i = 0; i < std::size_t(server_.gpus); ++i) {
      const topologies::GpuId a(first_from.index() + i), b(first_to.index() + i);
      if (std::max(a.index(), b.index()) >= fabric.gpu_count() ||
          fabric.host_of(a) != fabric.host_of(first_from) ||
          fabric.host_of(b) != fabric.host_of(first_to))
        break;
      from = relay_of(router_, a, b);
      to = b;
      if (!router_.has_path(fabric.nic_of(from), fabric.nic_of(to))) break;
      from = first_from;
      to = first_to;
    }
    const std::vector<topologies::LinkId> cut = router_.cut(fabric.nic_of(from), fabric.nic_of(to));
    std::string links;
    for (std::size_t l = 0; l < std::min(cut.size(), cuts_named); ++l)
      links += (l > 0 ? ", " : "") + fabric.name(cut[l]);
    if (cut.size() > cuts_named)
      links += " and " + std::to_string(cut.size() - cuts_named) + " more";
    is_for_good = links.empty();
    return "no path from " + fabric.name(fabric.vertex(from)) + " to " +
           fabric.name(fabric.vertex(to)) +
           (links.empty() ? std::string(": the fabric has none") : "; cut by " + links);
  };
  if (!data_.place(placement.servers)) {
    const auto pair = data_.cut_pair();
    check(pair.has_value(), "a ring without a path has an edge without one");
    return text(pair->first, pair->second);
  }
  for (int s = 0; plan_.pipeline > 1 && s < plan_.pipeline; ++s) {
    const int next = (s + 1) % plan_.pipeline;
    if (next == 0 && plan_.chunks == 1) continue;
    for (const auto& [from, to] : {std::pair(s, next), std::pair(next, s)}) {
      const BoundaryTimes& times = boundaries_.times(placement.servers, from, to);
      if (times.no_path.empty()) continue;
      const auto& pair = times.pairs[std::size_t(times.no_path.front())];
      return text(topologies::GpuId(pair.first), topologies::GpuId(pair.second));
    }
  }
  return {};
}

void StepModel::find_busiest_links(const Placement& placement, StepProfile& profile) {
  const std::size_t links = router_.fabric().links().size();
  std::vector<double> total(links, 0.0);
  for (int s = 0; plan_.data > 1 && s < plan_.pipeline; ++s)
    data_.add_bytes(s, data_volume(s), total);
  for_each_transfer([&](int from, int to, double transfers) {
    boundaries_.add_bytes(placement.servers, from, to, transfers, total);
  });

  const double step_s = to_seconds(profile.step);
  std::vector<std::size_t> order;
  for (std::size_t l = 0; l < links; ++l)
    if (total[l] > 0) order.push_back(l);
  const auto seconds_of = [&](std::size_t l) {
    return total[l] / router_.state().capacity(topologies::LinkId(l)).value();
  };
  const std::size_t kept = std::min(links_reported, order.size());
  std::partial_sort(order.begin(), order.begin() + std::ptrdiff_t(kept), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double x = seconds_of(a), y = seconds_of(b);
                      return x != y ? x > y : a < b;
                    });
  order.resize(kept);
  for (const std::size_t l : order)
    profile.busiest_links.push_back({topologies::LinkId(l),
                                     seconds_of(l) / step_s,
                                     total[l],
                                     router_.state().capacity(topologies::LinkId(l)),
                                     {},
                                     {}});
  if (kept > 0) profile.bounds.busiest_link_s = seconds_of(order.front());
  name_users(placement, profile.busiest_links);
}

/// Which collectives, transfers and pairs of ranks are behind these links.
void StepModel::name_users(const Placement& placement, std::vector<LinkUse>& uses) {
  std::vector<bool> is_asked(router_.fabric().links().size(), false);
  for (const LinkUse& use : uses) is_asked[use.link.index()] = true;
  const auto use_of = [&](topologies::LinkId link) -> LinkUse& {
    return *std::find_if(uses.begin(), uses.end(),
                         [&](const LinkUse& u) { return u.link == link; });
  };
  const auto note = [&](topologies::LinkId link, const std::string& what) -> LinkUse& {
    LinkUse& use = use_of(link);
    if (use.users.empty() || use.users.back() != what) use.users.push_back(what);
    return use;
  };
  for (int s = 0; plan_.data > 1 && s < plan_.pipeline; ++s) {
    const std::string what = "dp stage " + std::to_string(s);
    data_.for_each_load(s, data_volume(s), [&](topologies::LinkId link, double) {
      if (is_asked[link.index()]) note(link, what);
    });
    data_.for_each_user(
        s, data_volume(s), is_asked,
        [&](topologies::LinkId link, topologies::GpuId from, topologies::GpuId to, double bytes) {
          use_of(link).pairs.push_back({what, from, to, bytes});
        });
  }
  for_each_transfer([&](int from, int to, double transfers) {
    const std::string what = "pp stage " + std::to_string(from) + " -> " + std::to_string(to);
    boundaries_.for_each_user(
        placement.servers, from, to, transfers, is_asked,
        [&](topologies::LinkId link, topologies::GpuId one, topologies::GpuId other, double bytes) {
          note(link, what).pairs.push_back({what, one, other, bytes});
        });
  });
  for (LinkUse& use : uses) {
    std::stable_sort(use.pairs.begin(), use.pairs.end(),
                     [](const LinkUser& a, const LinkUser& b) { return a.bytes > b.bytes; });
    if (use.pairs.size() > pairs_reported) use.pairs.resize(pairs_reported);
  }
}

std::vector<topologies::Demand> StepModel::demands(const Placement& placement) const {
  const topologies::Fabric& fabric = router_.fabric();
  const auto gpu_of = [&](int tensor, int data, int stage) {
    const int rank = plan_.rank_of({.tensor = tensor, .data = data, .pipeline = stage});
    return fabric.gpu(placement.servers[std::size_t(rank / server_.gpus)],
                      std::size_t(rank % server_.gpus));
  };
  std::vector<topologies::Demand> out;
  const auto add = [&](topologies::GpuId from, topologies::GpuId to, double bytes) {
    if (fabric.host_of(from) != fabric.host_of(to))
      out.push_back({fabric.nic_of(from), fabric.nic_of(to), bytes});
  };
  const int members = plan_.data / data_.servers_of_group();
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int data = 0; data < plan_.data; ++data)
      for (int tensor = 0; tensor < plan_.tensor; ++tensor) {
        const auto from = gpu_of(tensor, data, s);
        if (plan_.data > 1)
          add(from, gpu_of(tensor, (data + members) % plan_.data, s),
              data_volume(s) * (plan_.data - 1) / plan_.data / members);
        if (plan_.pipeline == 1 || transfers_after(s) == 0) continue;
        const auto next = gpu_of(tensor, data, (s + 1) % plan_.pipeline);
        const double bytes = transfers_after(s) * boundaries_.bytes_per_rank();
        add(from, next, bytes);
        add(next, from, bytes);
      }
  return out;
}

/// Bytes that the data-parallel collectives of one tensor-parallel rank of a stage reduce and
/// gather in one step.
double StepModel::data_volume(int stage) const {
  const double parameters = plan_.stage_parameters(stage);
  const double gradients = job_.software.gradient_bytes * parameters;
  switch (plan_.sharding) {
    case Sharding::none:
      return 2 * gradients;
    case Sharding::zero1:
      return gradients + parameter_bytes * parameters;
    case Sharding::fsdp:
      return plan_.micro_batches * (2 * parameter_bytes * parameters + gradients);
  }
  return 0;
}

/// Of one replica over the boundary behind `stage`, in one direction and step.
double StepModel::transfers_after(int stage) const {
  const bool is_last = stage + 1 == plan_.pipeline;
  return double(plan_.micro_batches) * (is_last ? plan_.chunks - 1 : plan_.chunks);
}

}  // namespace trainyard::models
