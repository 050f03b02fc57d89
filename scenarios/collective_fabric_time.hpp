#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "models/network/collectives/collective.hpp"
#include "models/network/fabric_paths.hpp"

/// How long the bytes of a plan take on the links they meet, without latency.
namespace trainyard::scenarios {

struct FabricTime {
  double seconds = 0;
  topologies::LinkId bottleneck;
};

/// A plan alone. Streams of a phase carry equal bytes, so a phase ends with its busiest link
/// (docs/models/collectives.md), and the busiest link of each kind is all that is needed: any
/// number of sizes and efficiencies cost nothing more.
class PlanOnFabric {
 public:
  /// `plan` for one byte.
  PlanOnFabric(const topologies::Router& router, const models::PhasedPlan& plan);
  FabricTime time(double bytes, const models::LinkEfficiency& efficiency) const;

 private:
  struct Busiest {
    double s_per_byte = 0;  // at nominal rate
    topologies::LinkId link;
    topologies::LinkKind kind{};
  };
  std::vector<std::array<Busiest, 3>> phases_;  // scale-up, adapters, between switches
};

/// Several jobs that start together, max-min fair on every link.
class JobsOnFabric {
 public:
  struct Job {
    const models::PhasedPlan* plan = nullptr;  // for one byte
    std::span<const models::Member> group;
  };
  JobsOnFabric(const topologies::Router& router, std::span<const Job> jobs);

  struct Result {
    FabricTime first;     // of the first job
    double latest_s = 0;  // of it, if it cannot use more than its fair share
  };
  /// By job: bytes, and efficiency of its own adapters and scale-up links; between switches that of
  /// the first.
  Result time(std::span<const double> bytes,
              std::span<const models::LinkEfficiency> efficiency) const;

 private:
  std::vector<models::PhasedPlan> plans_;  // links numbered by links_
  std::vector<topologies::LinkId> links_;  // those that somebody uses
  std::vector<double> nominal_Bps_;
  std::vector<topologies::LinkKind> kind_;
  std::vector<std::size_t> owner_;  // job of the server at its end; 0 between switches
};

}  // namespace trainyard::scenarios
