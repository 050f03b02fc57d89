#include "models/network/collectives/all_to_all.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// The pairs of one step, as loads of one variable.
class Pairs {
 public:
  Pairs(double bytes, std::span<const Member> group, const PathSource& paths,
        const AllToAllOptions& options)
      : equal_bytes_(bytes / static_cast<double>(group.size())),
        group_(group),
        paths_(paths),
        options_(options),
        rail_(group.size()) {
    check(options.pair_bytes.empty() || options.pair_bytes.size() == group.size() * group.size(),
          "bytes are given for every pair", options.pair_bytes.size());
    check(options.queue_pairs > 0, "a connection has a queue pair");
    for (std::size_t i = 0; i < group.size(); ++i) {
      std::vector<std::size_t>& node = nodes_[group[i].node];
      rail_[i] = node.size();  // position within its node stands for the rail
      node.push_back(i);
    }
  }

  double bytes_of(std::size_t i, std::size_t j) const {
    return options_.pair_bytes.empty() ? equal_bytes_ : options_.pair_bytes[i * group_.size() + j];
  }

  void add(std::size_t i, std::size_t j, double weight) {
    const Member &from = group_[i], &to = group_[j];
    const double all = weight * options_.queue_pairs;
    if (from.node == to.node) {
      paths_.add_scale_up(from.gpu, to.gpu, all, loads_);
      return;
    }
    const std::vector<std::size_t>& node = nodes_[from.node];
    const std::size_t exit = options_.pxn && rail_[j] < node.size() ? node[rail_[j]] : i;
    if (exit != i) paths_.add_scale_up(from.gpu, group_[exit].gpu, all, loads_);
    for (int q = 0; q < options_.queue_pairs; ++q)
      paths_.add_path(group_[exit].nic, to.nic,
                      connection_label(options_.label, i, j, static_cast<std::uint64_t>(q)), weight,
                      loads_);
  }

  /// All pairs (i, i + shift) with first <= shift <= last.
  CollectivePlan shifts(CollectiveKind kind, double bytes, std::size_t first, std::size_t last) {
    const std::size_t n = group_.size();
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t s = first; s <= last; ++s)
        largest = std::max(largest, bytes_of(i, (i + s) % n));
    for (std::size_t i = 0; i < n && largest > 0; ++i)
      for (std::size_t s = first; s <= last; ++s) {
        const std::size_t j = (i + s) % n;
        if (bytes_of(i, j) > 0) add(i, j, bytes_of(i, j) / largest);
      }
    return taken(kind, bytes, largest);
  }

  /// One flow of these bytes for each unit of weight added.
  CollectivePlan taken(CollectiveKind kind, double bytes, double flow_bytes) {
    CollectivePlan plan{kind, bytes, group_.size(), {}, {}};
    plan.streams.push_back({loads_.take(), flow_bytes / options_.queue_pairs});
    plan.latency.base_s = options_.costs.base_s;
    plan.latency.steps = 1;
    plan.latency.alpha_s = nodes_.size() > 1 ? options_.costs.nic_s : options_.costs.scale_up_s;
    plan.latency.form = LatencyForm::additive;
    return plan;
  }

 private:
  double equal_bytes_;
  std::span<const Member> group_;
  const PathSource& paths_;
  const AllToAllOptions& options_;
  std::map<std::size_t, std::vector<std::size_t>> nodes_;
  std::vector<std::size_t> rail_;
  LoadAccumulator loads_;
};

}  // namespace

CollectivePlan plan_all_to_all(double bytes, std::span<const Member> group, const PathSource& paths,
                               const AllToAllOptions& options) {
  if (group.size() < 2) return {CollectiveKind::all_to_all, bytes, group.size(), {}, {}};
  return Pairs(bytes, group, paths, options)
      .shifts(CollectiveKind::all_to_all, bytes, 1, group.size() - 1);
}

std::vector<CollectivePhase> plan_all_to_all_batches(double bytes, std::span<const Member> group,
                                                     const PathSource& paths,
                                                     const AllToAllOptions& options, int peers) {
  check(peers >= 1, "a rank has a peer in flight", peers);
  std::vector<CollectivePhase> phases;
  const auto q = static_cast<std::size_t>(peers);
  for (std::size_t first = 1; first < group.size(); first += q) {
    const std::size_t last = std::min(first + q, group.size()) - 1;
    CollectivePlan plan =
        Pairs(bytes, group, paths, options).shifts(CollectiveKind::all_to_all, bytes, first, last);
    if (!phases.empty()) plan.latency.base_s = 0;
    phases.push_back(
        {"shifts " + std::to_string(first) + " to " + std::to_string(last), std::move(plan)});
  }
  return phases;
}

double batches_share(int peers, std::size_t ranks) {
  if (peers <= 0 || peers >= 16 || static_cast<std::size_t>(peers) + 1 >= ranks) return 0;
  if (peers >= 4) return 0.5;
  return 2.0 / 3 - std::log2(peers) / 12;  // two thirds at one peer, one half at four
}

std::vector<CollectivePhase> plan_direct(CollectiveKind kind, double bytes,
                                         std::span<const Member> group, const PathSource& paths,
                                         const AllToAllOptions& options) {
  check(kind != CollectiveKind::point_to_point, "a transfer is not a direct collective");
  std::vector<CollectivePhase> phases;
  if (group.size() < 2) return phases;
  Pairs pairs(bytes, group, paths, options);
  if (kind == CollectiveKind::broadcast) {
    for (std::size_t j = 1; j < group.size(); ++j) pairs.add(0, j, 1);
    phases.push_back({"direct", pairs.taken(kind, bytes, bytes)});
    return phases;
  }
  phases.push_back({"direct", pairs.shifts(kind, bytes, 1, group.size() - 1)});
  if (kind == CollectiveKind::all_reduce) {
    phases.push_back({"gather", phases.front().plan});
    phases.front().name = "scatter and reduce";
    phases.back().plan.latency.base_s = 0;
  }
  return phases;
}

}  // namespace trainyard::models
