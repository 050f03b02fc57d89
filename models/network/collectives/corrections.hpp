#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "models/network/collectives/plan.hpp"
#include "sim/describe.hpp"

/// Where a collective as one variable differs from its messages, and what is done about it. Each
/// correction has a name, is named in the notes of the result, and can be switched off.
///
///     latency        exposed part of a step's latency, pipelined or additive (plan.hpp)
///     fill           time until a tree is full, once a call
///     few-peers      all-to-all with few peers in flight: mixed with batches (all_to_all.hpp)
///     surplus-range  a collective faster than its fair share cannot use all of the surplus, which
///                    comes in bursts: its end is given as a range (play.hpp)
///     last-ready     it starts when its last member is ready (play.hpp)
///     contention     lossless Ethernet holds links, not flows: 0.93 of a fabric link that carries
///                    two or more hashed flows
///     wire           headers: payload over bytes on the wire
///
/// Hash collisions are not a correction: paths are drawn and their weights used. For planning
/// before a fabric exists there is `expected_collision_slowdown`. Measured errors and valid ranges:
/// docs/models/collectives.md.
namespace trainyard::models {

enum class Correction { latency, fill, few_peers, surplus_range, last_ready, contention, wire };

/// Those that act on plans. Contention and wire act on capacities (below), surplus-range and
/// last-ready while playing (play.hpp).
struct Corrections {
  bool latency = true;
  bool fill = true;
  bool few_peers = true;
};

/// How much slower the slowest of a set of collectives gets by hashing: L leaves, s uplinks each, h
/// flows that leave a leaf, each divided over Q queue pairs or channels. With lambda = h/s
///
///     max(1, lambda + sqrt(2 · lambda · (1 - 1/s) · ln(2·L·s) / Q))
///
/// the tail of the largest of 2·L·s nearly normal counts of balls in bins. Within -18 to +11 % of
/// Monte Carlo for 8 to 64 leaves (worst at Q = 1), 15 % on other shapes. A ring in leaf order has
/// one flow a leaf. Sprayed: max(1, lambda).
double expected_collision_slowdown(std::size_t leaves, std::size_t uplinks, double crossing,
                                   int queue_pairs);

/// Capacities under priority flow control: multiplied by `factor` on each link that is part of the
/// fabric, hashed (`is_hashed_fabric` by link: neither an adapter nor sprayed or adaptive 1:1), and
/// carries two or more flows of these streams. 0.93: mean of six packet-level runs, 0.89 to 1.00
/// seen, one queue setting, no congestion control. Weak until it is measured on hardware.
inline constexpr double lossless_contention = 0.93;
std::vector<double> contended_capacities(std::span<const double> capacities_Bps,
                                         const std::vector<bool>& is_hashed_fabric,
                                         std::span<const Stream> streams,
                                         double factor = lossless_contention);

enum class WireFormat { rocev2, infiniband };
/// Payload over bytes on the wire for full packets of `mtu_bytes`, from header sizes. RoCEv2: 8
/// preamble, 14 Ethernet, 20 IPv4, 8 UDP, 12 BTH, 4 ICRC, 4 FCS, 12 gap = 82 B. InfiniBand: 8 LRH,
/// 12 BTH, 4 ICRC, 2 VCRC = 26 B. Quiet real fabrics reach 0.93 to 0.96 end to end: the rest is one
/// calibrated constant an adapter type.
double payload_efficiency(double mtu_bytes, WireFormat format);

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::Correction> {
  using C = models::Correction;
  static constexpr auto all = names<C>({{C::latency, "latency"},
                                        {C::fill, "fill"},
                                        {C::few_peers, "few-peers"},
                                        {C::surplus_range, "surplus-range"},
                                        {C::last_ready, "last-ready"},
                                        {C::contention, "contention"},
                                        {C::wire, "wire"}});
};
template <>
struct Names<models::WireFormat> {
  static constexpr auto all = names<models::WireFormat>(
      {{models::WireFormat::rocev2, "rocev2"}, {models::WireFormat::infiniband, "infiniband"}});
};
}  // namespace trainyard
