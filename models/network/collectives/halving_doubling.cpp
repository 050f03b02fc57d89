#include "models/network/collectives/halving_doubling.hpp"

#include <bit>

#include "sim/check.hpp"

namespace trainyard::models {

std::vector<ExchangeStep> halving_doubling_steps(CollectiveKind kind, std::size_t n) {
  check(kind == CollectiveKind::all_reduce ||
            (std::has_single_bit(n) &&
             (kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather)),
        "halving and doubling does all-reduce, or its halves for a power of two", n);
  std::vector<ExchangeStep> steps;
  if (n < 2) return steps;
  const std::size_t p = std::bit_floor(n), folded = n - p;
  const auto rank = [&](std::size_t i) { return i < folded ? 2 * i + 1 : i + folded; };
  const auto fold = [&](const char* name, bool back) {
    if (folded == 0) return;
    ExchangeStep& step = steps.emplace_back(ExchangeStep{name, 1, {}});
    for (std::size_t i = 0; i < folded; ++i)
      step.sends.push_back(back ? std::pair(2 * i + 1, 2 * i) : std::pair(2 * i, 2 * i + 1));
  };
  const auto exchange = [&](const char* name, std::size_t distance) {
    ExchangeStep& step = steps.emplace_back(
        ExchangeStep{name + std::to_string(distance), 0.5 / static_cast<double>(distance), {}});
    for (std::size_t i = 0; i < p; ++i) step.sends.emplace_back(rank(i), rank(i ^ distance));
  };
  if (kind != CollectiveKind::all_gather) {
    fold("fold", false);
    for (std::size_t d = 1; d < p; d *= 2) exchange("halve over ", d);
  }
  if (kind != CollectiveKind::reduce_scatter) {
    for (std::size_t d = p / 2; d > 0; d /= 2) exchange("double over ", d);
    fold("unfold", true);
  }
  return steps;
}

std::vector<CollectivePhase> plan_halving_doubling(CollectiveKind kind, double bytes,
                                                   std::span<const Member> group,
                                                   const PathSource& paths,
                                                   const StreamOptions& options) {
  std::vector<CollectivePhase> phases;
  for (const ExchangeStep& step : halving_doubling_steps(kind, group.size())) {
    CollectivePlan plan{kind, bytes, group.size(), {}, {}};
    LoadAccumulator loads;
    bool leaves_a_node = false;
    for (const auto& [i, j] : step.sends) {
      const Member &from = group[i], &to = group[j];
      if (from.node == to.node) {
        paths.add_scale_up(from.gpu, to.gpu, options.queue_pairs, loads);
        continue;
      }
      leaves_a_node = true;
      for (int q = 0; q < options.queue_pairs; ++q)
        paths.add_path(from.nic, to.nic,
                       connection_label(options.label, i, j, static_cast<std::uint64_t>(q)), 1,
                       loads);
    }
    plan.streams.push_back({loads.take(), bytes * step.fraction / options.queue_pairs});
    plan.latency.base_s = phases.empty() ? options.costs.base_s : 0.0;
    plan.latency.steps = 1;
    plan.latency.alpha_s = leaves_a_node ? options.costs.nic_s : options.costs.scale_up_s;
    plan.latency.form = LatencyForm::additive;
    phases.push_back({step.name, std::move(plan)});
  }
  return phases;
}

}  // namespace trainyard::models
