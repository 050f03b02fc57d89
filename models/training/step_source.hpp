#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "models/scheduling/fabric_faults.hpp"
#include "models/training/step_profile.hpp"
#include "topologies/fabric.hpp"

/// Where the run level gets its steps from: the step level, or a fixed profile in a test.
namespace trainyard::models {

/// A GPU that runs slower than its peers; `gpu` counts within the job: rank of the server * GPUs a
/// server + place.
struct SlowGpu {
  std::int64_t gpu = 0;
  double speed = 1.0;
  friend bool operator==(const SlowGpu&, const SlowGpu&) = default;
};

/// Where a job runs: its servers in rank order, and who among its GPUs is slow (ascending, each
/// once).
struct Placement {
  std::vector<topologies::HostId> servers;
  std::vector<SlowGpu> slow;
};

/// A transfer between the servers of a job and a store whose servers are on the training fabric,
/// beside the step.
struct StoreFlow {
  std::vector<topologies::HostId> store;  // its servers; an invalid one: nothing to move there
  bool is_write = true;
  BytesPerSecond rate;    // of each server of the job
  std::string name = {};  // in tables of busy links: "save to scratch"
  /// Of another job: its servers, and whether it would take more if it could.
  std::vector<topologies::HostId> servers = {};
  bool takes_all = false;
  friend bool operator==(const StoreFlow&, const StoreFlow&) = default;
};

/// What the step of a job puts on one link: bytes of collectives and pipeline transfers in a step,
/// and flows while they are busy.
struct LinkWork {
  topologies::LinkId link;
  double bytes = 0;
  double flows = 0;
};
/// The step of another job on the links: its length and how long it waits for traffic. No links: it
/// does not train.
struct StepOnLinks {
  double step_s = 0;
  double exposed_s = 0;
  std::vector<LinkWork> links = {};  // ascending
};

class StepSource {
 public:
  virtual ~StepSource() = default;
  /// The step of the job on this placement, under the conditions of the moment. The reference stays
  /// good as long as the source lives; equal steps should be the same object, because a job tells
  /// profiles apart by address.
  virtual const StepProfile& profile(const Placement& placement) = 0;

  /// Whether a step on this placement sends anything over one of these links, as things stood
  /// before they changed.
  virtual bool uses(const Placement&, std::span<const topologies::LinkId>) { return false; }
  /// From now on these transfers run beside the step: they take their rate from links that
  /// collectives use. Profiles depend on them.
  virtual void set_store_flows(std::vector<StoreFlow>) {}
  /// What other jobs have on the same fabric from now on: transfers, which take their rate from
  /// links that this step uses, and steps, which leave less to the transfers of this job.
  virtual void set_others(std::vector<StoreFlow> /*transfers*/,
                          std::vector<StepOnLinks> /*steps*/) {}
  /// The step of this job, without any transfer, as the others see it.
  virtual StepOnLinks on_links(const Placement&) { return {}; }
  /// What each server of the job can have of the fabric for such a transfer, fairly shared with the
  /// collectives of the step, if the store itself is no limit.
  virtual BytesPerSecond store_limit(const Placement&,
                                     std::span<const topologies::HostId> /*store*/,
                                     bool /*is_write*/) {
    return BytesPerSecond(std::numeric_limits<double>::infinity());
  }
  /// These links are in another state now: what was derived from them is void.
  virtual void links_changed(std::span<const topologies::LinkId>) {}
};

}  // namespace trainyard::models
