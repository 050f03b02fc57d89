#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/collective_exchange.hpp"
#include "scenarios/collective_faults.hpp"
#include "scenarios/collective_group.hpp"
#include "scenarios/scenario.hpp"

/// A sweep as nccl-tests does it, on the fabric of a scenario: collectives of many sizes on chosen
/// GPUs, alone or beside other jobs, with links down if asked.
///
///     SweepRequest request{.traffic = {{CollectiveKind::all_reduce}}, .bytes = {1 << 20, 1 <<
///     30}}; const SweepResult result = sweep_collectives(scenario, request);      // throws
///     SweepRefused result.rows[1].busbw_Bps
///
/// Two models meet in one row. The tuner knows what a call costs with no switch in its way; the
/// fabric knows which links the traffic meets:
///
///     time = latency + fill + max(bandwidth term of the tuner, fluid time on the fabric) · loss
///
/// The fluid time has every scale-up link at the inside efficiency and every adapter at the network
/// efficiency of the tuner, and links between switches at what is left of the wire: NCCL's 0.96 and
/// the flags of the protocol. Where no switch is the limit it is the bandwidth term again, and the
/// row is what `trainyard validate` predicts: a test holds the two together.
///
/// Without an algorithm the one with the least of these times is taken, among those that NCCL has
/// (between protocols of a ring without the fill, which NCCL does not know). No row is faster than
/// its closed-form bound: a check.
///
/// Guide: docs/guide/collectives.md. Equations: docs/models/collective-costs.md, collectives.md.
namespace trainyard::scenarios {

/// Another job on servers that the group leaves free; it starts at the same time.
struct Competitor {
  SweepTraffic traffic;
  double bytes = 0;
  GroupRequest group;
};

struct SweepRequest {
  std::vector<SweepTraffic> traffic{{}};
  std::vector<double> bytes{};
  GroupRequest group{};
  ServerOrder order = ServerOrder::packed;
  std::vector<std::size_t> servers{};  // exactly these, in this order
  std::optional<models::CollectiveAlgorithm> algorithm{};
  std::optional<models::Protocol> protocol{};
  int channels_per_nic = 1;
  int queue_pairs = 0;      // a connection; 0: as the scenario says
  std::size_t compete = 0;  // jobs that do the same on as many ranks each
  std::vector<Competitor> competitors{};
  std::vector<SweepFault> faults{};
  double loss_rate = 0;            // of a packet; lossy Ethernet
  bool network_reduction = false;  // the switches reduce: SHARP may be chosen
  double launch_floor_s = 0;       // calls that the host launches one by one; LinkConstants
  std::uint64_t seed = 1;          // of hashed paths and of random placement
};

struct SweepRow {
  std::string kind;
  models::CollectiveAlgorithm algorithm = models::CollectiveAlgorithm::ring;
  models::Protocol protocol = models::Protocol::simple;
  std::size_t ranks = 0;
  double bytes = 0;
  double time_s = 0;
  double latency_s = 0;    // of the call and its steps
  double fill_s = 0;       // until the pipeline runs
  double bandwidth_s = 0;  // moving the bytes, had no switch been in the way
  double fabric_s = 0;     // moving the bytes, as it is
  double algbw_Bps = 0;
  double busbw_Bps = 0;
  double bound_s = 0;
  std::string bottleneck;  // a link by name
  std::vector<std::string> notes;
  /// How much longer the bytes take than with no switch in the way.
  double slowdown() const { return bandwidth_s > 0 ? fabric_s / bandwidth_s : 1; }
};

struct SweepResult {
  std::size_t nodes = 0;
  std::size_t per_node = 0;
  std::string placement;   // "packed: node-0 to node-31"
  double adapter_Bps = 0;  // of one rank, nominal
  std::vector<SweepRow> rows;
};

/// Throws SweepRefused: unknown names, too few servers, an algorithm that this cannot be done with,
/// no path between two of the group.
SweepResult sweep_collectives(const Scenario& scenario, const SweepRequest& request);

}  // namespace trainyard::scenarios
