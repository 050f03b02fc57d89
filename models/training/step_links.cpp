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

std::string_view name_of(GroupPattern pattern) {
  switch (pattern) {
    case GroupPattern::tensor_ring:
      return "tp";
    case GroupPattern::context_ring:
    case GroupPattern::context_step:
      return "cp";
    case GroupPattern::expert_exchange:
      return "ep";
  }
  return "";
}

constexpr std::size_t links_reported = 16;
constexpr std::size_t pairs_reported = 8;  // of one link
constexpr std::size_t cuts_named = 6;      // links

}  // namespace

bool StepModel::uses(const Placement& placement, std::span<const topologies::LinkId> links) {
  std::vector<bool> asked(router_.fabric().links().size(), false);
  for (const topologies::LinkId l : links) asked[l.index()] = true;
  if (crosses(placement, asked)) return true;
  for (const StoreFlow& flow : store_flows_)
    for (const auto& load : loads_of(flow, placement))
      if (asked[load.first.index()]) return true;
  return false;
}

/// Whether collectives or transfers between stages run over one of these links.
bool StepModel::crosses(const Placement& placement, const std::vector<bool>& asked) {
  if (data_.uses(asked) || groups_.uses(asked)) return true;
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
  standing_on_.clear();
  demand_of_.clear();
  if (router_.kind() == topologies::RoutingKind::ugal) {  // all traffic finds a new balance
    boundaries_.clear();
    data_.clear();
    groups_.clear();
    store_.clear();
    return;
  }
  std::vector<bool> changed(router_.fabric().links().size(), false);
  for (const topologies::LinkId l : links) changed[l.index()] = true;
  boundaries_.forget(changed);
  data_.forget(changed);
  groups_.forget(changed);
  store_.forget(changed);
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
  if (!groups_.place(placement.servers)) {
    const auto pair = groups_.cut_pair();
    check(pair.has_value(), "a group without a path has an edge without one");
    return text(pair->first, pair->second);
  }
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
      const auto& pair = times.cut.front();
      return text(topologies::GpuId(pair.first), topologies::GpuId(pair.second));
    }
  }
  return {};
}

/// What one stage moves in a step by one pattern: the costs of its layers with a network whose
/// collectives take a second a byte, and nothing hidden.
void StepModel::count_group_bytes(GroupPattern pattern) {
  SoftwareSpec software = job_.software;
  software.tensor_overlap_forward = software.tensor_overlap_backward = 0;
  software.expert_overlap = software.pipeline_overhead = 0;
  const auto counted = [](double bytes) { return bytes; };
  const auto twice = [](double bytes) { return 2 * bytes; };
  std::vector<CommCosts> comm(std::size_t(plan_.pipeline), CommCosts::free());
  for (int s = 0; s < plan_.pipeline; ++s) {
    CommCosts& c = comm[std::size_t(s)];
    switch (pattern) {
      case GroupPattern::tensor_ring:
        c.tensor = {counted, counted, twice};
        break;
      case GroupPattern::context_ring:
        c.context = {counted, counted, twice};
        break;
      case GroupPattern::context_step:
        c.context_step_s = counted;
        break;
      case GroupPattern::expert_exchange:
        c.expert_exchange_s = [this, s](const ExpertExchange& e) {
          return groups_.exchange_bytes(s, e);
        };
        break;
    }
  }
  const StepCosts costs = step_costs(server_.gpu, plan_, software, comm);
  std::vector<double>& bytes = group_bytes_[std::size_t(pattern)];
  bytes.assign(std::size_t(plan_.pipeline), 0.0);
  for (std::size_t at = 0; at < costs.chunks.size(); ++at) {
    const PassPair& pass = costs.chunks[at];
    bytes[at / std::size_t(plan_.chunks)] +=
        plan_.micro_batches * (pass.forward.exposed_s() + pass.backward.exposed_s());
  }
}

/// What a step moves over every link.
std::vector<double> StepModel::link_bytes(const Placement& placement) {
  std::vector<double> total(router_.fabric().links().size(), 0.0);
  for_each_ring(
      [&](int stage, RingKind ring, double bytes) { data_.add_bytes(stage, bytes, total, ring); });
  for_each_group([&](int stage, GroupPattern pattern, double bytes) {
    groups_.add_bytes(pattern, stage, bytes, total);
  });
  for_each_transfer([&](int from, int to, double transfers) {
    boundaries_.add_bytes(placement.servers, from, to, transfers, total);
  });
  return total;
}

double StepModel::busiest_link_s(const std::vector<double>& bytes) const {
  double most_s = 0;
  for (std::size_t l = 0; l < bytes.size(); ++l)
    if (bytes[l] > 0)
      most_s = std::max(most_s, bytes[l] / router_.state().capacity(topologies::LinkId(l)).value());
  return most_s;
}

void StepModel::find_busiest_links(const Placement& placement, std::vector<double> total,
                                   StepProfile& profile) {
  const std::size_t links = total.size();
  const double step_s = to_seconds(profile.step);
  for (const StoreLoad& store : store_loads_)
    for (const auto& [link, flows] : store.flows)
      total[link.index()] += flows * store.flow_Bps * step_s;
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
  for_each_ring([&](int stage, RingKind ring, double volume) {
    const std::string what = std::string(ring == RingKind::experts ? "expert dp" : "dp") +
                             " stage " + std::to_string(stage);
    data_.for_each_load(
        stage, volume,
        [&](topologies::LinkId link, double) {
          if (is_asked[link.index()]) note(link, what);
        },
        ring);
    data_.for_each_user(
        stage, volume, is_asked,
        [&](topologies::LinkId link, topologies::GpuId from, topologies::GpuId to, double bytes) {
          use_of(link).pairs.push_back({what, from, to, bytes});
        },
        ring);
  });
  for_each_group([&](int stage, GroupPattern pattern, double volume) {
    const std::string what = std::string(name_of(pattern)) + " stage " + std::to_string(stage);
    groups_.for_each_load(pattern, stage, volume, [&](topologies::LinkId link, double) {
      if (is_asked[link.index()]) note(link, what);
    });
    groups_.for_each_user(
        pattern, stage, volume, is_asked,
        [&](topologies::LinkId link, topologies::GpuId from, topologies::GpuId to, double bytes) {
          use_of(link).pairs.push_back({what, from, to, bytes});
        });
  });
  for_each_transfer([&](int from, int to, double transfers) {
    const std::string what = "pp stage " + std::to_string(from) + " -> " + std::to_string(to);
    boundaries_.for_each_user(
        placement.servers, from, to, transfers, is_asked,
        [&](topologies::LinkId link, topologies::GpuId one, topologies::GpuId other, double bytes) {
          note(link, what).pairs.push_back({what, one, other, bytes});
        });
  });
  for (const StoreLoad& store : store_loads_)
    for (const auto& load : store.flows)
      if (is_asked[load.first.index()]) note(load.first, store.what);
  for (LinkUse& use : uses) {
    std::stable_sort(use.pairs.begin(), use.pairs.end(),
                     [](const LinkUser& a, const LinkUser& b) { return a.bytes > b.bytes; });
    if (use.pairs.size() > pairs_reported) use.pairs.resize(pairs_reported);
  }
}

std::vector<topologies::Demand> StepModel::demands(const Placement& placement) const {
  const topologies::Fabric& fabric = router_.fabric();
  const auto gpu_of = [&](RankPlace place) {
    const int rank = plan_.rank_of(place);
    return fabric.gpu(placement.servers[std::size_t(rank / server_.gpus)],
                      std::size_t(rank % server_.gpus));
  };
  std::vector<topologies::Demand> out;
  const auto add = [&](topologies::GpuId from, topologies::GpuId to, double bytes) {
    if (fabric.host_of(from) != fabric.host_of(to))
      out.push_back({fabric.nic_of(from), fabric.nic_of(to), bytes});
  };
  for_each_ring([&](int stage, RingKind ring, double bytes) {
    data_.for_each_connection(placement.servers, stage, bytes, add, ring);
  });
  for_each_transfer([&](int from, int to, double transfers) {
    for (int data = 0; data < plan_.data; ++data)
      for (int context = 0; context < plan_.context; ++context)
        for (int tensor = 0; tensor < plan_.tensor; ++tensor)
          add(gpu_of({tensor, context, data, from}), gpu_of({tensor, context, data, to}),
              transfers * boundaries_.bytes_per_rank());
  });
  return out;
}

/// Of one replica over the boundary behind `stage`, in one direction and step.
double StepModel::transfers_after(int stage) const {
  const bool is_last = stage + 1 == plan_.pipeline;
  return double(plan_.micro_batches) * (is_last ? plan_.chunks - 1 : plan_.chunks);
}

}  // namespace trainyard::models
