#pragma once

#include <cstddef>

#include "models/network/collectives/plan.hpp"

/// Closed-form time of a collective that has the network to itself: what the step model uses where
/// nothing else is on the links, and what calibration fits.
///
/// S bytes of the full tensor, n ranks, g of them in one scale-up domain, k = n/g domains; f =
/// (n-1)/n, twice that for all-reduce; a = one step inside a domain.
///
///     inside a domain      base + (n-1)·a/2 [all-reduce: twice] + sq·sqrt(S) + f·S/B
///     across, all-reduce   base + min(ring latency, level + log2(k)·(level + fill·S/(S + 2.5 MB)))
///                               + max(2 (k-1)/k · S/g / (eff·NIC), f·S/B)
///     across, others       base + (n-k)·a + (k-1)·nic_step + max((k-1)/k · S/g / (eff·NIC), f·S/B)
///     all-to-all           base + n·pair_step + max(inside/B, outside/(eff_a2a·NIC))
///
/// ring latency = 2·((n-k)·a + (k-1)·nic_step). The square root is chunk pipelining, the fill term
/// a tree that is longer to fill for larger chunks: what a plain alpha-beta model misses. Broadcast
/// takes f = 1 in the form of the others; that form was derived, not measured.
///
/// Constants: fitted to public nccl-tests results (median error 2–7 % above 1 MiB; below it 6–19 %,
/// and four nodes come out 20 % too slow by the tree term): docs/models/collectives.md.
namespace trainyard::models {

struct AloneConstants {
  double base_s = 10e-6;      // launch of one call
  double step_s = 2e-6;       // a: Hopper and later 2 us, A100 and V100 3 us
  double nic_step_s = 10e-6;  // one ring step between nodes
  double tree_level_s = 10e-6;
  double tree_fill_s = 100e-6;        // of one level, for large messages
  double tree_fill_bytes = 2.5e6;     // message at half of it
  double sqrt_s_per_sqrt_B = 1.0e-8;  // V100, A100: 2.4e-8
  double ring_Bps = 365e9;            // B: 122e9 V100, 234e9 A100, 365e9 Hopper, 680e9 Blackwell
  double nic_Bps = 50e9;              // of one adapter; one adapter a rank
  double nic_efficiency = 0.87;
  double pair_step_s = 0.5e-6;  // all-to-all, one peer
  double all_to_all_nic_efficiency = 0.63;
};

/// `per_domain` ranks share a scale-up domain: 8 with whole H100 servers, 1 for a data-parallel
/// group with one rank a server. Fewer than two ranks take no time. `bytes` of an all-to-all: what
/// one rank sends in all, its own part included.
double alone_s(CollectiveKind kind, double bytes, std::size_t ranks, std::size_t per_domain,
               const AloneConstants& constants);

/// One transfer between two ranks: NIC or scale-up link at its efficiency, plus one step and the
/// base.
double alone_point_to_point_s(double bytes, bool is_inside_domain, const AloneConstants& constants);

}  // namespace trainyard::models
