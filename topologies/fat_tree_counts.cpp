#include "topologies/fat_tree_counts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

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
  return nearest(ideal, acceptable, [](std::int64_t n) { return double(n); });
}

Nearest nearest(double ideal, const std::function<bool(std::int64_t)>& acceptable,
                const std::function<double(std::int64_t)>& amount) {
  constexpr std::int64_t most = std::int64_t{most_ports} * most_splits;
  ideal = std::min(ideal, amount(most));
  Nearest n;
  std::int64_t start = 0;  // the most that do not exceed the ideal
  for (std::int64_t step = std::int64_t{1} << 40; step > 0; step /= 2)
    if (start + step <= most && amount(start + step) <= ideal * (1 + rate_slack)) start += step;
  for (std::int64_t k = start; k >= 1 && n.below == 0; --k)
    if (acceptable(k)) n.below = k;
  // A multiple of anything sensible turns up within a few times the ideal.
  for (std::int64_t k = start + 1; k <= 4 * start + 4096 && n.above == 0; ++k)
    if (acceptable(k)) n.above = k;
  const auto deviation = [&](std::int64_t k) {
    return k == 0 ? HUGE_VAL : std::abs(ideal / amount(k) - 1);
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

}  // namespace trainyard::topologies
