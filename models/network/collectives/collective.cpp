#include "models/network/collectives/collective.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "models/network/collectives/all_to_all.hpp"
#include "models/network/collectives/grouping.hpp"
#include "models/network/collectives/halving_doubling.hpp"
#include "models/network/collectives/hierarchical.hpp"
#include "models/network/collectives/in_network.hpp"
#include "models/network/collectives/point_to_point.hpp"
#include "models/network/collectives/ring.hpp"
#include "models/network/collectives/tree.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

using enum CollectiveKind;
using Algorithm = CollectiveAlgorithm;

bool is_one_of(CollectiveKind kind, std::initializer_list<CollectiveKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

bool does(CollectiveKind kind, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return is_one_of(kind, {all_reduce, reduce_scatter, all_gather, broadcast});
    case Algorithm::tree:
      return is_one_of(kind, {all_reduce, broadcast});
    case Algorithm::halving_doubling:
    case Algorithm::hierarchical:
    case Algorithm::nvls:
      return is_one_of(kind, {all_reduce, reduce_scatter, all_gather});
    case Algorithm::direct:
      return true;
    case Algorithm::sharp:
    case Algorithm::nvls_tree:
      return kind == all_reduce;
  }
  return false;
}

/// Empty: nothing speaks against it.
std::string obstacle(CollectiveKind kind, Algorithm algorithm, std::span<const Member> group) {
  if (!does(kind, algorithm))
    return std::string(name_of(algorithm)) + " does not do " + std::string(name_of(kind));
  const std::size_t n = group.size();
  if (kind == point_to_point && n != 2)
    return "a point-to-point transfer has two members, found " + std::to_string(n);
  if (n < 2) return {};
  const std::vector<NodeMembers> nodes = by_node(group);
  const bool needs_even = algorithm == Algorithm::hierarchical || algorithm == Algorithm::sharp ||
                          algorithm == Algorithm::nvls_tree;
  if (needs_even && !is_even(nodes))
    return std::string(name_of(algorithm)) + " needs as many members on every node";
  if (algorithm == Algorithm::halving_doubling && kind != all_reduce && !std::has_single_bit(n))
    return "halving-doubling does " + std::string(name_of(kind)) +
           " for a power of two ranks only, found " + std::to_string(n);
  if (algorithm == Algorithm::nvls && nodes.size() > 1)
    return "nvls stays in one scale-up domain, found " + std::to_string(nodes.size()) +
           "; nvls-tree joins several";
  if ((algorithm == Algorithm::nvls_tree || algorithm == Algorithm::sharp) && nodes.size() < 2)
    return std::string(name_of(algorithm)) + " joins several nodes, found one";
  if (algorithm == Algorithm::nvls_tree && nodes.front().size() < 2)
    return "nvls-tree needs several members on every node, found one";
  return {};
}

bool answer(std::string reason, std::string* why_not) {
  const bool is_supported = reason.empty();
  if (why_not != nullptr) *why_not = std::move(reason);
  return is_supported;
}

void switch_off_latency(std::vector<CollectivePhase>& phases, const Corrections& corrections) {
  for (CollectivePhase& phase : phases) {
    LatencyTerms& t = phase.plan.latency;
    if (!corrections.latency) t.base_s = t.alpha_s = 0;
    if (!corrections.fill) t.fill_chunks = 0;
  }
}

void plan_exchange(PhasedPlan& plan, std::span<const Member> group, const PathSource& paths,
                   const CollectiveOptions& options) {
  const AllToAllOptions own{options.pxn, options.label, options.costs, options.queue_pairs,
                            options.pair_bytes};
  plan.phases = plan_direct(plan.kind, plan.bytes, group, paths, own);
  if (plan.kind != all_to_all) return;
  const int q = options.peers_in_flight;
  const double share = batches_share(q, group.size());
  if (share == 0 && !(options.has_systematic_shifts && q > 0)) return;
  const std::string peers = std::to_string(q) + (q == 1 ? " peer" : " peers") + " in flight";
  if (!options.corrections.few_peers) {
    plan.notes.push_back("outside validated range: all-to-all with " + peers +
                         " as one variable, a lower bound on hashed paths");
    return;
  }
  std::vector<CollectivePhase> batches = plan_all_to_all_batches(plan.bytes, group, paths, own, q);
  if (options.has_systematic_shifts) {
    plan.phases = std::move(batches);
    plan.notes.push_back("few-peers: " + peers + ", batch after batch");
    return;
  }
  plan.batches = std::move(batches);
  plan.batches_share = share;
  plan.notes.push_back(
      "few-peers: " + peers + ", one variable mixed with " + std::to_string(plan.batches.size()) +
      " batches; a heuristic without a theory, within 19 % of messages where tried");
}

double sequence_s(std::span<const CollectivePhase> phases, std::span<const double> capacities_Bps,
                  int buckets) {
  if (buckets == 1) return pipelined_s(phases, capacities_Bps, 1);
  std::vector<CollectivePhase> one(phases.begin(), phases.end());
  for (CollectivePhase& phase : one) phase.plan = scaled(std::move(phase.plan), 1.0 / buckets);
  return pipelined_s(one, capacities_Bps, buckets);
}

}  // namespace

bool supports(CollectiveKind kind, CollectiveAlgorithm algorithm, std::span<const Member> group,
              std::string* why_not) {
  return answer(obstacle(kind, algorithm, group), why_not);
}

bool supports(CollectiveKind kind, CollectiveAlgorithm algorithm, std::span<const Member> group,
              const PathSource& paths, std::string* why_not) {
  std::string reason = obstacle(kind, algorithm, group);
  if (reason.empty() && algorithm == Algorithm::sharp && !plan_sharp(1, group, paths, {}))
    reason = "the switches of this fabric cannot reduce over these adapters";
  return answer(std::move(reason), why_not);
}

PhasedPlan plan_collective(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                           std::span<const Member> group, const PathSource& paths,
                           const CollectiveOptions& options) {
  std::string why_not;
  check(supports(kind, algorithm, group, &why_not), "only supported collectives are planned",
        why_not);
  check(options.buckets >= 1 && bytes >= 0, "there are bytes in one bucket or more");
  PhasedPlan plan{kind, algorithm, bytes, group.size(), {}, options.buckets, {}};
  if (group.size() < 2) return plan;
  const StreamOptions streams{options.channels_per_nic, options.queue_pairs, options.pxn,
                              options.merge_channels,   options.label,       options.costs};
  const auto one = [&](CollectivePlan only) {
    plan.phases.push_back({std::string(name_of(algorithm)), std::move(only)});
  };
  switch (algorithm) {
    case Algorithm::ring:
      one(plan_ring(kind, bytes, group, paths, streams));
      break;
    case Algorithm::tree:
      one(plan_tree(kind, bytes, group, paths, streams));
      break;
    case Algorithm::halving_doubling:
      plan.phases = plan_halving_doubling(kind, bytes, group, paths, streams);
      break;
    case Algorithm::direct:
      if (kind == point_to_point)
        one(plan_point_to_point(bytes, group[0], group[1], paths,
                                {options.queue_pairs, options.label, options.costs}));
      else
        plan_exchange(plan, group, paths, options);
      break;
    case Algorithm::hierarchical:
      plan.phases = plan_hierarchical(kind, bytes, group, paths, streams);
      break;
    case Algorithm::sharp: {
      std::optional<CollectivePlan> sharp = plan_sharp(bytes, group, paths, streams);
      check(sharp.has_value(), "sharp is planned where supports() finds a reduction tree");
      one(std::move(*sharp));
      break;
    }
    case Algorithm::nvls:
      one(plan_nvls(kind, bytes, group, paths, streams));
      break;
    case Algorithm::nvls_tree:
      one(plan_nvls_tree(bytes, group, paths, streams));
      break;
  }
  switch_off_latency(plan.phases, options.corrections);
  switch_off_latency(plan.batches, options.corrections);
  const LatencyTerms& first = plan.phases.front().plan.latency;
  if (first.alpha_s > 0)
    plan.notes.push_back("latency: " + std::string(name_of(first.form)) + " form");
  if (first.fill_chunks > 0) plan.notes.push_back("fill: once a call");
  if (algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree)
    plan.notes.push_back(
        "outside validated range: weights of NVLS follow from its traffic; no "
        "message-level simulation stands beside them");
  if (algorithm == Algorithm::ring && !is_even(by_node(group)))
    plan.notes.push_back("outside validated range: ring over unequal numbers of members a node");
  return plan;
}

double time_alone_s(const PhasedPlan& plan, std::span<const double> capacities_Bps) {
  double time_s = sequence_s(plan.phases, capacities_Bps, plan.buckets);
  if (plan.batches_share > 0)
    time_s = (1 - plan.batches_share) * time_s +
             plan.batches_share * sequence_s(plan.batches, capacities_Bps, 1);
  const double least_s = bound_s(plan, capacities_Bps);
  check(time_s >= least_s * (1 - 1e-12), "no collective is faster than its bound", time_s, least_s);
  return time_s;
}

double bound_s(const PhasedPlan& plan, std::span<const double> capacities_Bps) {
  double bound = 0;
  if (plan.buckets == 1) {
    for (const CollectivePhase& phase : plan.phases) bound += bound_s(phase.plan, capacities_Bps);
    return bound;
  }
  CollectivePlan all;  // each phase as it is: streams of unequal bytes are only added up
  LoadAccumulator bytes;
  for (const CollectivePhase& phase : plan.phases)
    for (const Load& load : bytes_by_link(phase.plan)) bytes.add(load.link, load.weight);
  all.streams.push_back({bytes.take(), 1});
  return bound_s(all, capacities_Bps);
}

std::optional<LinkIndex> bottleneck(const PhasedPlan& plan,
                                    std::span<const double> capacities_Bps) {
  double slowest_s = 0;
  std::optional<LinkIndex> link;
  for (const CollectivePhase& phase : plan.phases) {
    const PlanTime time = time_alone(phase.plan, capacities_Bps);
    if (time.fluid_s <= slowest_s) continue;
    slowest_s = time.fluid_s;
    link = time.bottleneck;
  }
  return link;
}

std::vector<std::string> range_notes(const PhasedPlan& plan,
                                     std::span<const double> capacities_Bps) {
  std::vector<std::string> notes;
  for (const CollectivePhase& phase : plan.phases) {
    const LatencyTerms& t = phase.plan.latency;
    if (t.form == LatencyForm::pipelined || phase.plan.streams.empty()) continue;
    if (t.fill_chunks > 0) {
      if (phase.plan.streams.front().bytes_per_flow < 64 * t.chunk_bytes)
        notes.push_back("outside validated range: a stream of '" + phase.name +
                        "' has fewer than 64 chunks, so that the time to fill it matters");
    } else if (bound_s(phase.plan, capacities_Bps) < 10 * t.alpha_s * std::max(1.0, t.steps)) {
      notes.push_back("outside validated range: a step of '" + phase.name +
                      "' moves bytes for less than ten times its latency");
    }
  }
  return notes;
}

}  // namespace trainyard::models
