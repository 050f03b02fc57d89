#include "models/network/collectives/tuner.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Algorithm = CollectiveAlgorithm;
constexpr double us = 1e-6, MiB = 1048576.0;

/// By protocol: simple, LL, LL128.
using ByProtocol = std::array<double, 3>;
double of(const ByProtocol& table, Protocol p) {
  return table[std::size_t(p)];
}

// NCCL src/graph/tuning.cc, baseLatencies and hwLatencies.
constexpr ByProtocol ring_base_us{8.4, 6.6, 14}, tree_base_us{8.4, 6.8, 14};
constexpr ByProtocol ring_inside_us{3.4, 0.6, 1.9}, tree_inside_us{4, 0.6, 1.25};
constexpr ByProtocol ring_network_us{14, 2.7, 4}, tree_network_us{14, 5, 8.5};
constexpr double nvls_us = 25, nvls_network_us = 18, nvls_tree_network_us = 20.9;
constexpr double direct_inside_us = 3.7, direct_network_us = 31, direct_rank_us = 0.4;
// Posting to an adapter: once a step, three times with Simple; a ring step cannot take less.
constexpr ByProtocol post_us{3, 1, 1};
constexpr double peer_post_us = 1;
// "Plateau effect of ring": latency of an all-reduce with Simple between servers.
constexpr double ring_plateau = 1.4;

// Payload over what goes through the link. A tree besides reaches 0.92 of a ring.
constexpr ByProtocol ring_payload{1, 0.5, 0.92}, tree_payload{1, 1 / 3.8, 120.0 / 128};
constexpr double tree_of_ring = 0.92, tree_ll128_inside = 7.0 / 9;
// Most of LL between servers (host polling), two servers and more.
constexpr double ll_pair_bus_Bps = 39e9, ll_network_bus_Bps = 20.4e9;

// "Trees are not perfectly sticking to the model for medium sizes": bandwidth factor at powers of
// two from 64 B; 1 from 512 MiB on.
constexpr std::array<std::array<double, 24>, 3> tree_correction{
    {{.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
      .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, 1},
     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1}}};

double corrected(Protocol p, double bytes) {
  const auto& table = tree_correction[std::size_t(p)];
  const double at = std::clamp(std::log2(std::max(bytes, 64.0) / 64), 0.0, 23.0);
  const std::size_t i = std::min(std::size_t(at), table.size() - 2);
  return table[i] + (table[i + 1] - table[i]) * (at - double(i));
}

// src/transport/nvls.cc; src/init.cc (buffers of LL and LL128, over 8 steps, payload of it).
constexpr double nvls_chunk_bytes = MiB / 8;
constexpr double ll_chunk_bytes = 32768, ll128_chunk_bytes = 576000;
// A head of the NVLS tree has 16 channels of 64 KiB on its adapter (from 4 servers on).
constexpr double nvls_wave_bytes = MiB;
constexpr double tree_channels_a_nic = 2;

// Window in flight, in loops over all channels. Fitted on single servers (docs/models/).
constexpr double ring_window = 0.38, nvls_window = 1.5;

struct Shape {
  CollectiveKind kind;
  double bytes;  // S
  double n, g, k;
  double twice;         // all-reduce goes round twice
  double factor;        // f: bytes of the busiest link of a ring, over S
  double adapters_Bps;  // of a domain, at NCCL's efficiency
  bool is_all_reduce() const { return kind == CollectiveKind::all_reduce; }
};

/// Bytes in flight that a message of this size fills: all of a small one, the window of a long one.
double in_flight(double window, double bytes) {
  return bytes > 0 ? window * bytes / (window + bytes) : 0;
}

/// Adapter bytes of the busiest member of a double binary tree over k domains, over the bytes of
/// its domain's share: two domains only exchange, with three one of them is inner in both trees'
/// halves.
double tree_load(double k) {
  return k <= 2 ? 1 : (k <= 3 ? 1.5 : 2);
}

/// src/enqueue.cc: LL128 takes smaller chunks where the pipeline is long; stairs made a slope.
double tree_chunk(Protocol p, double bytes_a_channel, const Shape& s, const LinkConstants& c) {
  double chunk = p == Protocol::ll ? ll_chunk_bytes : c.chunk_bytes;
  if (p == Protocol::ll128) {
    const double steps = 1 + std::log2(s.k) + 0.1 * s.g;
    chunk = std::min(ll128_chunk_bytes, std::max(131072.0, bytes_a_channel / (steps * 64 / s.g)));
    chunk = std::min(chunk, std::max(32768.0, bytes_a_channel / (steps * 16 / s.g)));
  }
  return std::min(chunk, bytes_a_channel);
}

/// One step between domains. NCCL adds the latency of the adapter, with Simple twice (the flush).
double network_us(const ByProtocol& table, Protocol p, const LinkConstants& c) {
  return of(table, p) + (p == Protocol::simple ? 2 : 1) * c.network_latency_s / us;
}

/// Most of a ring inside a domain, as bus bandwidth.
double inside_bus_Bps(Protocol p, const LinkConstants& c) {
  const double ring_Bps = c.ring_efficiency * c.scale_up_Bps * of(ring_payload, p);
  if (p == Protocol::ll) return std::min(ring_Bps, c.ll_bus_Bps);
  if (p == Protocol::ll128) return std::min(ring_Bps, c.ll128_bus_Bps);
  return ring_Bps;
}

CollectiveCost cost(Algorithm algorithm, Protocol protocol, double latency_us, double fill_s,
                    double bandwidth_s, double inside_efficiency, double network_efficiency,
                    const LinkConstants& c) {
  CollectiveCost out{algorithm,   protocol, latency_us * us,   fill_s,
                     bandwidth_s, 0,        inside_efficiency, network_efficiency};
  out.time_s = std::hypot(out.latency_s + fill_s + bandwidth_s, c.launch_floor_s);
  return out;
}

CollectiveCost ring(Protocol p, const Shape& s, const LinkConstants& c) {
  const double inside_Bps = inside_bus_Bps(p, c);
  const bool is_broadcast = s.kind == CollectiveKind::broadcast;
  double latency_us = of(ring_base_us, p), fill_s = 0, bus_Bps = inside_Bps;
  if (s.k == 1) {
    latency_us += s.twice * (s.n - 1) * of(ring_inside_us, p);
    if (p == Protocol::simple && !is_broadcast)
      fill_s =
          in_flight(ring_window * s.n * c.channels * c.chunk_bytes, s.bytes) * s.factor / bus_Bps;
  } else {
    const double hop_us = network_us(s.g > 1 ? ring_network_us : tree_network_us, p, c);
    double steps_us = s.twice * ((s.n - s.k) * std::max(of(ring_inside_us, p), of(post_us, p)) +
                                 (s.k - 1) * hop_us);
    if (p == Protocol::simple && s.is_all_reduce()) steps_us *= ring_plateau;
    latency_us += steps_us;
    double network_Bps = s.adapters_Bps * of(ring_payload, p);
    if (p == Protocol::ll)
      network_Bps = std::min(network_Bps, s.k == 2 ? ll_pair_bus_Bps : ll_network_bus_Bps);
    bus_Bps = s.g > 1 ? std::min(inside_Bps, network_Bps) : network_Bps;
  }
  // A broadcast is a chain: the last rank waits until a chunk of every channel has passed all
  // others.
  if (is_broadcast) fill_s = (s.n - 2) * std::min(s.bytes, c.channels * c.chunk_bytes) / bus_Bps;
  const double inside = inside_Bps / c.scale_up_Bps;
  const double network = s.k == 1 ? 1 : std::min(bus_Bps, s.adapters_Bps) / (s.g * c.nic_Bps);
  return cost(Algorithm::ring, p, latency_us, fill_s, s.factor * s.bytes / bus_Bps, inside, network,
              c);
}

/// Chain inside a domain, double binary tree between domains.
CollectiveCost tree(Protocol p, const Shape& s, const LinkConstants& c) {
  const double latency_us = of(tree_base_us, p) + 2 * (s.g - 1) * of(tree_inside_us, p);
  const double right = corrected(p, s.bytes);
  if (s.k == 1) {
    double bus_Bps = c.ring_efficiency * c.scale_up_Bps * tree_of_ring;
    if (p == Protocol::ll) bus_Bps = std::min(bus_Bps * of(tree_payload, p), c.ll_bus_Bps);
    if (p == Protocol::ll128) bus_Bps = std::min(bus_Bps * tree_ll128_inside, c.ll128_bus_Bps);
    const double chunk = tree_chunk(p, s.bytes / c.channels, s, c);
    return cost(Algorithm::tree, p, latency_us, 2 * (s.n - 1) * c.channels * chunk / bus_Bps,
                2 * s.bytes / (bus_Bps * right), bus_Bps * right / c.scale_up_Bps, 1, c);
  }
  const double levels = std::ceil(std::log2(s.k));
  double network_Bps = s.adapters_Bps * tree_of_ring * of(tree_payload, p);
  if (p == Protocol::ll)
    network_Bps = std::min(network_Bps, 2 * (s.k == 2 ? ll_pair_bus_Bps : ll_network_bus_Bps));
  const double channels = tree_channels_a_nic * s.g;
  const double chunk = tree_chunk(p, s.bytes / channels, s, c);
  const double inside_Bps = inside_bus_Bps(p, c);
  const double fill_s =
      2 * levels * channels * chunk / network_Bps + 2 * (s.g - 1) * channels * chunk / inside_Bps;
  const double network_s = tree_load(s.k) * s.bytes / (network_Bps * right);
  const double inside_s = s.g > 1 ? s.factor * s.bytes / (inside_Bps * right) : 0;
  return cost(Algorithm::tree, p, latency_us + 2 * levels * network_us(tree_network_us, p, c),
              fill_s, std::max(network_s, inside_s), inside_Bps * right / c.scale_up_Bps,
              network_Bps * right / (s.g * c.nic_Bps), c);
}

/// Algorithm bandwidth of a reduction in the scale-up switch over m ranks. Each sends S and S/m and
/// receives as much, so (1 + 1/m)·S limits small domains; beyond 8 the bus bandwidth stays what it
/// is at 8, as NCCL's tuner assumes.
double nvls_Bps(double m, const LinkConstants& c) {
  constexpr double measured_at = 8;
  const double bus_s = 2 * (m - 1) / m / c.nvls_bus_Bps;
  const double links_s =
      (1 + 1 / m) / c.nvls_bus_Bps * (2 * (measured_at - 1) / measured_at) / (1 + 1 / measured_at);
  return 1 / std::max(bus_s, links_s);
}

double nvls_efficiency(double m, const LinkConstants& c) {
  return nvls_Bps(m, c) * (1 + 1 / m) / c.scale_up_Bps;
}

CollectiveCost nvls(const Shape& s, const LinkConstants& c) {
  const double Bps = nvls_Bps(s.n, c);
  const double window = nvls_window * c.nvls_channels * s.n * nvls_chunk_bytes;
  return cost(Algorithm::nvls, Protocol::simple, nvls_us, in_flight(window, s.bytes) / Bps,
              s.bytes / Bps, nvls_efficiency(s.n, c), 1, c);
}

CollectiveCost nvls_tree(const Shape& s, const LinkConstants& c) {
  const double levels = std::ceil(std::log2(s.k));
  const double head_Bps =
      std::min(s.adapters_Bps / s.g, s.k == 2 ? c.nvls_tree_pair_Bps : c.nvls_tree_Bps);
  const double wave = std::min(s.bytes / s.g, nvls_wave_bytes);
  const double network_s = tree_load(s.k) * s.bytes / (s.g * head_Bps);
  const double hop_us = nvls_tree_network_us + 2 * c.network_latency_s / us;
  return cost(Algorithm::nvls_tree, Protocol::simple, nvls_us + 2 * levels * hop_us,
              2 * levels * wave / (s.adapters_Bps / s.g),
              std::max(network_s, s.bytes / nvls_Bps(s.g, c)), nvls_efficiency(s.g, c),
              head_Bps / c.nic_Bps, c);
}

/// In-network reduction: every adapter sends its share once and receives it once.
CollectiveCost sharp(const Shape& s, const LinkConstants& c) {
  const bool has_nvls = s.g > 1 && c.nvls_bus_Bps > 0;
  const double latency_us =
      has_nvls ? nvls_us + nvls_network_us + 2 * c.network_latency_s / us
               : 2 * (std::min(1.0, s.g - 1) * direct_inside_us + (s.g - 1) * direct_rank_us) +
                     direct_network_us + 2 * c.network_latency_s / us;
  const double pair_Bps = c.pair_efficiency * c.scale_up_Bps;
  const double inside_s =
      has_nvls ? s.bytes / nvls_Bps(s.g, c) : 2 * (s.g - 1) / s.g * s.bytes / pair_Bps;
  const double wave = std::min(s.bytes / s.g, nvls_wave_bytes);
  return cost(Algorithm::sharp, Protocol::simple, latency_us, 2 * wave * s.g / s.adapters_Bps,
              std::max(s.bytes / s.adapters_Bps, inside_s),
              has_nvls ? nvls_efficiency(s.g, c) : c.pair_efficiency, c.nic_efficiency, c);
}

/// In the domain first, then one ring a rail: phases, one after the other.
CollectiveCost hierarchical(const Shape& s, const LinkConstants& c) {
  const Protocol p = Protocol::simple;
  const double latency_us =
      of(ring_base_us, p) +
      s.twice * ((s.g - 1) * of(ring_inside_us, p) + (s.k - 1) * network_us(tree_network_us, p, c));
  const double bandwidth_s = s.twice * ((s.g - 1) / s.g * s.bytes / inside_bus_Bps(p, c) +
                                        (s.k - 1) / s.k * s.bytes / s.adapters_Bps);
  return cost(Algorithm::hierarchical, p, latency_us, 0, bandwidth_s, c.ring_efficiency,
              c.nic_efficiency, c);
}

/// Halves of what is left, near ranks first: log2 steps.
CollectiveCost halving_doubling(const Shape& s, const LinkConstants& c) {
  const Protocol p = Protocol::simple;
  const double latency_us =
      of(ring_base_us, p) +
      s.twice * (std::ceil(std::log2(s.g)) * of(ring_inside_us, p) +
                 std::ceil(std::log2(s.k)) * network_us(tree_network_us, p, c));
  const double bandwidth_s =
      s.twice * ((s.g - 1) / s.g * s.bytes / (c.pair_efficiency * c.scale_up_Bps) +
                 (s.k - 1) / s.k * s.bytes / s.adapters_Bps);
  return cost(Algorithm::halving_doubling, p, latency_us, 0, bandwidth_s, c.pair_efficiency,
              c.nic_efficiency, c);
}

/// Every rank to every other, or one to one.
CollectiveCost direct(const Shape& s, const LinkConstants& c) {
  const Protocol p = Protocol::simple;
  const double hop_us = s.k > 1 ? network_us(ring_network_us, p, c) : of(ring_inside_us, p);
  double latency_us = of(ring_base_us, p) + hop_us, inside = s.bytes, outside = 0;
  if (s.kind == CollectiveKind::point_to_point) {
    if (s.k > 1) std::swap(inside, outside);
  } else {
    latency_us += (s.g - 1) * direct_rank_us + (s.n - s.g) * peer_post_us;
    inside = s.bytes * (s.g - 1) / s.n;
    outside = s.bytes * (s.n - s.g) / s.n;
  }
  const double bandwidth_s = std::max(inside / (c.pair_efficiency * c.scale_up_Bps),
                                      outside / (c.nic_efficiency * c.nic_Bps));
  return cost(Algorithm::direct, p, latency_us, 0, bandwidth_s, c.pair_efficiency, c.nic_efficiency,
              c);
}

Shape shape_of(CollectiveKind kind, double bytes, const CollectiveGroup& group,
               const LinkConstants& c) {
  check(group.per_domain >= 1 && bytes >= 0,
        "a domain holds at least one rank and bytes are not negative");
  const double n = double(group.ranks);
  const double g = std::min(n, double(group.per_domain));
  return {.kind = kind,
          .bytes = bytes,
          .n = n,
          .g = g,
          .k = std::ceil(n / g),
          .twice = kind == CollectiveKind::all_reduce ? 2.0 : 1.0,
          .factor = bus_factor(kind, group.ranks),
          .adapters_Bps = g * c.nic_Bps * c.nic_efficiency};
}

bool is_left_to_nccl(Algorithm a) {
  return a != Algorithm::hierarchical && a != Algorithm::halving_doubling;
}

}  // namespace

std::vector<CollectiveCost> costs(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                                  const LinkConstants& c) {
  if (group.ranks < 2) return {};
  const Shape s = shape_of(kind, bytes, group, c);
  if (kind == CollectiveKind::all_to_all || kind == CollectiveKind::point_to_point)
    return {direct(s, c)};
  std::vector<CollectiveCost> out;
  for (const Protocol p : {Protocol::simple, Protocol::ll, Protocol::ll128}) {
    if (s.k > 1 && p != Protocol::simple && !c.network_ll) continue;
    if (s.k > 1 && p == Protocol::ll128 && s.is_all_reduce() && !c.network_ll128) continue;
    out.push_back(ring(p, s, c));
    if (s.is_all_reduce()) out.push_back(tree(p, s, c));
  }
  if (kind == CollectiveKind::broadcast) return out;
  if (s.is_all_reduce()) {
    const bool has_nvls = c.nvls_bus_Bps > 0;
    if (has_nvls && s.k == 1 && s.n > 2) out.push_back(nvls(s, c));
    if (has_nvls && s.k > 1 && s.g > 1) out.push_back(nvls_tree(s, c));
    if (c.network_reduction && s.k > 1) out.push_back(sharp(s, c));
  }
  out.push_back(hierarchical(s, c));
  out.push_back(halving_doubling(s, c));
  return out;
}

std::optional<CollectiveCost> best(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                                   const LinkConstants& constants, const TunerChoice& choice) {
  if (group.ranks < 2) return CollectiveCost{};
  std::optional<CollectiveCost> least, ring;
  const auto fits = [&](const CollectiveCost& way) {
    return (choice.algorithm ? way.algorithm == *choice.algorithm
                             : is_left_to_nccl(way.algorithm)) &&
           (!choice.protocol || way.protocol == *choice.protocol);
  };
  for (const CollectiveCost& way : costs(kind, bytes, group, constants)) {
    if (!fits(way)) continue;
    const bool is_ring = way.algorithm == Algorithm::ring && kind != CollectiveKind::broadcast;
    // NCCL's tuner knows nothing of the fill, so it leaves LL128 for Simple too early.
    const auto believed_s = [](const CollectiveCost& c) { return c.latency_s + c.bandwidth_s; };
    if (is_ring && (!ring || believed_s(way) < believed_s(*ring))) ring = way;
    if (!is_ring && (!least || way.time_s < least->time_s)) least = way;
  }
  if (ring && (!least || ring->time_s < least->time_s)) least = ring;
  return least;
}

double least_time_s(CollectiveKind kind, double bytes, const CollectiveGroup& group,
                    const LinkConstants& c) {
  if (group.ranks < 2) return 0;
  const Shape s = shape_of(kind, bytes, group, c);
  const double nics_Bps = s.g * c.nic_Bps;
  switch (kind) {
    case CollectiveKind::point_to_point:
      return bytes / (s.k > 1 ? c.nic_Bps : c.scale_up_Bps);
    case CollectiveKind::all_to_all:
      return std::max(bytes * (s.g - 1) / s.n / c.scale_up_Bps,
                      bytes * (s.n - s.g) / s.n / c.nic_Bps);
    case CollectiveKind::broadcast:
      return s.k > 1 ? std::max(bytes / nics_Bps, (s.g - 1) / s.g * bytes / c.scale_up_Bps)
                     : bytes / c.scale_up_Bps;
    default:
      break;
  }
  // A rank of a reducing switch sends and receives everything once; else it needs 2(m-1)/m.
  const bool switch_reduces = s.is_all_reduce() && c.nvls_bus_Bps > 0;
  const bool network_reduces = s.is_all_reduce() && c.network_reduction;
  const double inside_load = switch_reduces ? 1 : s.twice * (s.g - 1) / s.g;
  const double network_load = network_reduces ? 1 : s.twice * (s.k - 1) / s.k;
  return std::max(s.g > 1 ? inside_load * bytes / c.scale_up_Bps : 0,
                  s.k > 1 ? network_load * bytes / nics_Bps : 0);
}

}  // namespace trainyard::models
