#include "topologies/fat_tree_counts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

namespace trainyard::topologies {

namespace {

constexpr double rate_slack = 1e-9;  // 4 x 100 Gb/s is one port of 400 Gb/s, whatever the rounding

}  // namespace

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) out.push_back(d);
  return out;
}

int links_per_port(BytesPerSecond port_rate, BytesPerSecond link_rate) {
  const double links = std::floor(port_rate / link_rate * (1 + rate_slack));
  return static_cast<int>(std::min<double>(most_splits, links));
}

std::int64_t ports_for(std::int64_t links, BytesPerSecond port_rate, BytesPerSecond link_rate) {
  return ceil_div(links, std::max(1, links_per_port(port_rate, link_rate)));
}

Nearest nearest(double ideal, const std::function<bool(std::int64_t)>& acceptable) {
  ideal = std::min(ideal, double(most_ports) * most_splits);
  Nearest n;
  const auto start = static_cast<std::int64_t>(std::floor(ideal * (1 + rate_slack)));
  for (std::int64_t k = start; k >= 1 && n.below == 0; --k)
    if (acceptable(k)) n.below = k;
  // A multiple of anything sensible turns up within a few times the ideal.
  for (std::int64_t k = start + 1; k <= 4 * start + 4096 && n.above == 0; ++k)
    if (acceptable(k)) n.above = k;
  const auto deviation = [&](std::int64_t k) {
    return k == 0 ? HUGE_VAL : std::abs(ideal / double(k) - 1);
  };
  n.best = deviation(n.below) < deviation(n.above) ? n.below : n.above;
  n.is_close = deviation(n.best) <= ratio_tolerance + rate_slack;
  return n;
}

std::string text(std::int64_t n) {
  return std::to_string(n);
}
std::string text(double ratio) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", ratio);
  return buffer;
}
std::string text(BytesPerSecond rate) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g Gb/s", rate.value() * 8e-9);
  return buffer;
}

bool is_sound_fat_tree_input(const FabricSpec& spec, const HostShape& servers, Problems& problems) {
  const std::size_t before = problems.size();
  const auto refuse = [&](std::string path, std::string what, std::string right) {
    problems.push_back({std::move(path), std::move(what), std::move(right)});
  };
  const auto need = [&](bool holds, const char* path, const char* what, const char* right) {
    if (!holds) refuse(path, what, right);
  };
  need(spec.tiers == 2 || spec.tiers == 3, "tiers", "a fat tree has 2 or 3 tiers here", "2 or 3");
  need(spec.hosts_per_leaf >= 1, "hosts_per_leaf", "a leaf serves at least one server",
       "1 or more");
  need(servers.hosts >= 1, "server.hosts", "a fabric needs servers", "1 or more");
  need(servers.gpus >= 1, "server.gpus", "a server needs a GPU", "1 or more");
  need(servers.nics >= 1, "server.nics", "a server needs a NIC to be on the fabric", "1 or more");
  need(servers.storage_ports >= 0, "server.storage_ports", "is negative", "0 or more");
  need(servers.nic_rate.value() > 0, "server.nic_rate", "is not positive",
       "a rate such as 400 Gb/s");
  need(servers.scale_up_rate.value() > 0, "server.scale_up_rate", "is not positive",
       "a rate such as 450 GB/s");
  need(servers.storage_ports == 0 || servers.storage_rate.value() > 0, "server.storage_rate",
       "is not positive", "a rate such as 400 Gb/s");
  const std::pair<const char*, const SwitchSpec*> boxes[] = {{"leaf_switch", &spec.leaf_switch},
                                                             {"spine_switch", &spec.spine_switch},
                                                             {"core_switch", &spec.core_switch}};
  for (const auto& [path, box] : boxes)
    if (box->ports < 2 || box->ports > most_ports || !(box->port_rate.value() > 0))
      refuse(path, "a switch needs two ports with a rate",
             "ports from 2 to " + text(std::int64_t{most_ports}) + ", port_rate above zero");
  const std::pair<const char*, std::optional<int>> counts[] = {
      {"leaves_per_pod", spec.leaves_per_pod},
      {"uplinks_per_leaf", spec.uplinks_per_leaf},
      {"spines", spec.spines},
      {"uplinks_per_spine", spec.uplinks_per_spine},
      {"cores", spec.cores}};
  for (const auto& [path, n] : counts)
    if (n && *n < 1)
      refuse(path, "is " + text(std::int64_t{*n}), "1 or more, or left out to be derived");
  const std::pair<const char*, std::optional<double>> ratios[] = {
      {"leaf_oversubscription", spec.leaf_oversubscription},
      {"spine_oversubscription", spec.spine_oversubscription}};
  for (const auto& [path, r] : ratios)
    if (r && !(*r > 0 && std::isfinite(*r)))
      refuse(path, "is " + text(*r), "a ratio above zero, such as 2");
  need(!(spec.leaf_oversubscription && spec.uplinks_per_leaf), "leaf_oversubscription",
       "the uplinks of a leaf are given twice", "either the ratio or uplinks_per_leaf");
  need(!(spec.spine_oversubscription && spec.uplinks_per_spine), "spine_oversubscription",
       "the uplinks of a spine are given twice", "either the ratio or uplinks_per_spine");
  if (spec.tiers == 2)
    for (const auto& [path, given] :
         {std::pair{"leaves_per_pod", spec.leaves_per_pod.has_value()},
          {"spine_oversubscription", spec.spine_oversubscription.has_value()},
          {"uplinks_per_spine", spec.uplinks_per_spine.has_value()},
          {"cores", spec.cores.has_value()}})
      need(!given, path, "belongs to a fat tree of 3 tiers", "tiers 3, or leave it out");
  if (problems.size() != before) return false;

  const auto need_port_for = [&](const char* path, BytesPerSecond rate) {
    if (links_per_port(spec.leaf_switch.port_rate, rate) == 0)
      refuse(path, text(rate) + " does not fit a leaf port of " + text(spec.leaf_switch.port_rate),
             "leaf_switch.port_rate of at least " + text(rate));
  };
  need_port_for("server.nic_rate", servers.nic_rate);
  if (servers.storage_ports > 0) need_port_for("server.storage_rate", servers.storage_rate);
  return problems.size() == before;
}

}  // namespace trainyard::topologies
