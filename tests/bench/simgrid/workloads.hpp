#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

/// The workloads of the comparison. Routes are not here: they are asked from SimGrid, so that both
/// sides move the same flows over the same links.
namespace trainyard::bench {

struct Flow {
  std::size_t from, to;
  double bytes;
  double start_s;
};

struct Workload {
  const char* name;
  bool is_dragonfly;
  /// Fat tree: nodes below, switches above and parallel cables of each of three tiers. Dragonfly:
  /// groups and cables, chassis and cables, routers and cables, hosts a router.
  unsigned shape[9];
  enum class Kind { permutation, poisson, all_to_all, ring } kind;
  double load;              // poisson: of all host links
  bool has_actor_per_host;  // SimGrid's better mode here; else one actor starts all
};

constexpr double link_Bps = 50e9;
constexpr double ring_bytes = 1073741824.0;

inline const std::vector<Workload>& workloads() {
  using Kind = Workload::Kind;
  static const std::vector<Workload> table{
      {"poisson-0.50", false, {8, 8, 16, 1, 8, 8, 1, 1, 1}, Kind::poisson, 0.5, true},
      {"poisson-0.25", false, {8, 8, 16, 1, 8, 8, 1, 1, 1}, Kind::poisson, 0.25, true},
      {"poisson-0.10", false, {8, 8, 16, 1, 8, 8, 1, 1, 1}, Kind::poisson, 0.1, false},
      {"dragonfly-4096", true, {16, 1, 4, 1, 16, 1, 4}, Kind::permutation, 0, false},
      {"dragonfly-1024", true, {8, 1, 4, 1, 8, 1, 4}, Kind::permutation, 0, false},
      {"tree-4096-2to1", false, {16, 16, 16, 1, 8, 8, 1, 1, 1}, Kind::permutation, 0, false},
      {"tree-8192", false, {16, 16, 32, 1, 16, 16, 1, 1, 1}, Kind::permutation, 0, false},
      {"all-to-all-64512", false, {8, 8, 16, 1, 8, 8, 1, 1, 1}, Kind::all_to_all, 0, true},
      {"ring-1024", false, {8, 8, 16, 1, 8, 8, 1, 1, 1}, Kind::ring, 0, true}};
  return table;
}

inline const Workload& find_workload(const char* name) {
  for (const Workload& w : workloads())
    if (std::strcmp(w.name, name) == 0) return w;
  throw std::invalid_argument(std::string("no workload ") + name);
}

/// Ring: the flows of one step.
inline std::vector<Flow> make_flows(const Workload& w, std::size_t hosts, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  constexpr double least = 1e4, most = 1e8;  // bytes, log-uniform
  const auto size = [&] { return std::floor(least * std::pow(most / least, unit())); };
  std::vector<Flow> flows;
  if (w.kind == Workload::Kind::permutation) {
    std::vector<std::size_t> to(hosts);
    std::iota(to.begin(), to.end(), std::size_t{0});
    for (std::size_t i = hosts - 1; i > 0; --i) std::swap(to[i], to[below(i)]);  // nobody to itself
    for (std::size_t i = 0; i < hosts; ++i) flows.push_back({i, to[i], size(), 0});
  } else if (w.kind == Workload::Kind::poisson) {
    const double mean = (most - least) / std::log(most / least);
    const double per_s = w.load * link_Bps * static_cast<double>(hosts) / mean;
    double now_s = 0;
    for (int i = 0; i < 20'000; ++i) {
      now_s -= std::log1p(-unit()) / per_s;
      const std::size_t from = below(hosts);
      flows.push_back({from, (from + 1 + below(hosts - 1)) % hosts, size(), now_s});
    }
  } else if (w.kind == Workload::Kind::all_to_all) {
    constexpr std::size_t groups = 16, members = 64;  // host = group + 16 · member
    for (std::size_t g = 0; g < groups; ++g)
      for (std::size_t i = 0; i < members; ++i)
        for (std::size_t d = 1; d < members; ++d)
          flows.push_back({g + groups * i, g + groups * ((i + d) % members), 1e6, 0});
  } else {
    for (std::size_t i = 0; i < hosts; ++i)
      flows.push_back({i, (i + 1) % hosts, std::floor(ring_bytes / static_cast<double>(hosts)), 0});
  }
  return flows;
}

}  // namespace trainyard::bench
