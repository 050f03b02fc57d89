#include "models/facility/steady_power.hpp"

#include <algorithm>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Complex = std::complex<double>;

/// The part of a circuit's power that each line gives.
std::array<Complex, 3> weights(Lines lines) {
  const double half = 0.5, side = std::sqrt(3.0) / 6;  // e^(±j30°) / sqrt(3)
  const Complex lags(half, -side), leads(half, side);
  switch (lines) {
    case Lines::abc:
      break;
    case Lines::a:
      return {1.0, 0.0, 0.0};
    case Lines::b:
      return {0.0, 1.0, 0.0};
    case Lines::c:
      return {0.0, 0.0, 1.0};
    case Lines::ab:
      return {lags, leads, 0.0};
    case Lines::bc:
      return {0.0, lags, leads};
    case Lines::ca:
      return {leads, 0.0, lags};
  }
  return {1.0 / 3, 1.0 / 3, 1.0 / 3};
}

}  // namespace

SteadyPower::SteadyPower(const PowerLayout& layout)
    : layout_(layout),
      paths_(layout.nodes),
      sources_(layout.nodes.size()),
      lines_(layout.nodes.size()) {
  check(layout.limits.size() == layout.nodes.size(), "each node has its limits");
}

void SteadyPower::set_load(std::size_t rack, Watts active, VoltAmperes reactive) {
  paths_.set_load(rack, active, reactive);
}

void SteadyPower::set_racks(Watts active, double power_factor) {
  const VoltAmperes reactive(active.value() * std::sqrt(1 / (power_factor * power_factor) - 1));
  for (const std::size_t rack : layout_.racks) paths_.set_load(rack, active, reactive);
}

void SteadyPower::choose_sources(const std::vector<std::size_t>& lost) {
  for (std::size_t n = 0; n < paths_.size(); ++n) paths_.set_gate(n, true);
  for (const std::size_t n : lost) paths_.set_gate(n, false);
  std::vector<bool> is_live(paths_.size(), true);
  for (const std::size_t n : lost) is_live[n] = false;
  for (const std::size_t n : paths_.order()) {
    const std::vector<std::size_t>& feeds = paths_.feeds(n);
    if (feeds.empty()) continue;
    const auto live = std::find_if(feeds.begin(), feeds.end(), [&](auto f) { return is_live[f]; });
    if (live == feeds.end()) is_live[n] = false;
    if (paths_.node(n).kind != PlantKind::transfer) continue;
    sources_[n] =
        live == feeds.end() ? std::nullopt : std::optional(std::size_t(live - feeds.begin()));
    paths_.set_source(n, sources_[n]);
  }
}

void SteadyPower::solve(const std::vector<std::size_t>& lost) {
  choose_sources(lost);
  paths_.solve();
  split_into_lines();
}

void SteadyPower::split_into_lines() {
  std::fill(lines_.begin(), lines_.end(), Lines3{});
  for (auto at = paths_.order().rbegin(); at != paths_.order().rend(); ++at) {
    const std::size_t n = *at;
    const PowerPaths::Flow& flow = paths_.flow(n);
    if (!flow.is_live) continue;
    const Complex out(flow.out_W, flow.out_var), in(flow.in_W, flow.in_var);
    const PlantNode& node = paths_.node(n);
    const bool balances =
        node.kind == PlantKind::rack ||
        (node.kind == PlantKind::ups && node.ups.mode == UpsMode::double_conversion);
    Lines3 taken = weights(layout_.limits[n].lines);
    for (std::size_t i = 0; i < 3; ++i) {
      const bool has_split = node.phases == 3 && !balances && std::abs(out) > 0;
      taken[i] = has_split ? lines_[n][i] * (in / out) : taken[i] * in;
    }
    const std::vector<std::size_t>& feeds = paths_.feeds(n);
    double count = 0;
    for (const std::size_t feed : feeds) count += paths_.flow(feed).is_live ? 1.0 : 0.0;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      if (!paths_.flow(feeds[i]).is_live) continue;
      const bool is_switch = node.kind == PlantKind::transfer;
      if (is_switch && sources_[n] != i) continue;
      for (std::size_t line = 0; line < 3; ++line)
        lines_[feeds[i]][line] += taken[line] / (is_switch ? 1.0 : count);
    }
  }
}

std::array<double, 3> SteadyPower::line_currents_A(std::size_t n) const {
  const PlantNode& node = paths_.node(n);
  const PowerPaths::Flow& flow = paths_.flow(n);
  std::array<double, 3> currents{};
  if (!flow.is_live) return currents;
  const std::array<Complex, 3> has = weights(layout_.limits[n].lines);
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.phases == 3)
      currents[i] = std::abs(lines_[n][i]) * std::sqrt(3.0) / node.voltage.value();
    else if (std::abs(has[i]) > 0)
      currents[i] = flow.current.value();
  }
  return currents;
}

double SteadyPower::worst_current_A(std::size_t n) const {
  const std::array<double, 3> currents = line_currents_A(n);
  return *std::max_element(currents.begin(), currents.end());
}

}  // namespace trainyard::models
