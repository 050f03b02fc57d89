#include "models/network/collectives/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

void LoadAccumulator::sum_up() {
  // Stable: equal links are summed in the order in which they were added.
  std::stable_sort(loads_.begin(), loads_.end(),
                   [](const Load& a, const Load& b) { return a.link < b.link; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < loads_.size(); ++i) {
    if (loads_[i].link == loads_[last].link)
      loads_[last].weight += loads_[i].weight;
    else
      loads_[++last] = loads_[i];
  }
  if (!loads_.empty()) loads_.resize(last + 1);
  room_ = std::max<std::size_t>(4096, 2 * loads_.size());
}

std::vector<Load> LoadAccumulator::take() {
  sum_up();
  return std::exchange(loads_, {});
}

void PathSource::add_scale_up_switch(std::span<const std::size_t> gpus, double out, double in,
                                     LoadAccumulator& loads) const {
  for (std::size_t i = 0; i < gpus.size(); ++i)
    add_scale_up(gpus[i], gpus[(i + 1) % gpus.size()], std::max(out, in), loads);
}

double exposed_latency_s(const LatencyTerms& t, double bytes_per_flow, double rate_Bps) {
  if (t.steps == 0 || bytes_per_flow == 0) return t.base_s + t.steps * t.alpha_s;
  if (t.form == LatencyForm::additive) {
    const double fill_s = t.fill_chunks == 0
                              ? 0.0
                              : t.fill_chunks * std::min(t.chunk_bytes, bytes_per_flow) / rate_Bps;
    return t.base_s + t.steps * t.alpha_s + fill_s;
  }
  const double slice_s = bytes_per_flow / (t.steps * t.loops * t.slices) / rate_Bps;
  const double shown_s = std::max(0.0, t.alpha_s - (t.slices - 1) * slice_s);
  return t.base_s + t.steps * t.loops * shown_s + std::min(t.alpha_s, slice_s);
}

double stream_time_s(const LatencyTerms& terms, double bytes_per_flow, double rate_Bps) {
  const double fluid_s = bytes_per_flow == 0 ? 0.0 : bytes_per_flow / rate_Bps;
  return fluid_s + exposed_latency_s(terms, bytes_per_flow, rate_Bps);
}

CollectivePlan scaled(CollectivePlan plan, double fraction) {
  plan.bytes *= fraction;
  for (Stream& s : plan.streams) s.bytes_per_flow *= fraction;
  plan.latency.loops = std::max(1.0, std::ceil(plan.latency.loops * fraction));
  return plan;
}

std::vector<Load> bytes_by_link(const CollectivePlan& plan) {
  LoadAccumulator bytes;
  for (const Stream& s : plan.streams)
    for (const Load& load : s.loads) bytes.add(load.link, load.weight * s.bytes_per_flow);
  return bytes.take();
}

PlanTime time_alone(const CollectivePlan& plan, std::span<const double> capacities_Bps) {
  for (const Stream& s : plan.streams)
    check(s.bytes_per_flow == plan.streams.front().bytes_per_flow,
          "streams of a plan carry equal bytes");
  PlanTime result;
  for (const auto& [link, b] : bytes_by_link(plan)) {  // of equal ones the first is named
    const double c = capacities_Bps[link.index()];
    const double time_s = b == 0 ? 0.0 : c > 0 ? b / c : std::numeric_limits<double>::infinity();
    if (time_s <= result.fluid_s) continue;
    result.fluid_s = time_s;
    result.bottleneck = link;
  }
  result.time_s = result.fluid_s + plan.latency.base_s;
  if (plan.streams.empty()) return result;
  const double b = plan.streams.front().bytes_per_flow;
  const double rate_Bps =
      result.fluid_s > 0 ? b / result.fluid_s : std::numeric_limits<double>::infinity();
  result.time_s = result.fluid_s + exposed_latency_s(plan.latency, b, rate_Bps);
  return result;
}

double bound_s(const CollectivePlan& plan, std::span<const double> capacities_Bps) {
  return time_alone(plan, capacities_Bps).fluid_s;
}

double bus_factor(CollectiveKind kind, std::size_t ranks) {
  if (ranks < 2)
    return kind == CollectiveKind::broadcast || kind == CollectiveKind::point_to_point ? 1.0 : 0.0;
  const auto n = static_cast<double>(ranks);
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::point_to_point:
      return 1;
  }
  return 1;
}

double algbw_Bps(double bytes, double time_s) {
  return time_s > 0 ? bytes / time_s : 0.0;
}

double busbw_Bps(CollectiveKind kind, std::size_t ranks, double bytes, double time_s) {
  return algbw_Bps(bytes, time_s) * bus_factor(kind, ranks);
}

Stream merged(std::span<const Stream> streams) {
  LoadAccumulator loads;
  Stream all;
  for (const Stream& s : streams) {
    check(s.bytes_per_flow == streams.front().bytes_per_flow, "merged streams carry equal bytes");
    for (const Load& load : s.loads) loads.add(load.link, load.weight);
    all.bytes_per_flow = s.bytes_per_flow;
  }
  all.loads = loads.take();
  return all;
}

std::uint64_t connection_label(std::uint64_t label, std::uint64_t a, std::uint64_t b,
                               std::uint64_t c) {
  // The finaliser of splitmix64 (S. Vigna, public domain) over the four numbers in turn.
  const auto mix = [](std::uint64_t z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  };
  return mix(mix(mix(mix(label) ^ a) ^ b) ^ c);
}

}  // namespace trainyard::models
