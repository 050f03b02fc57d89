#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/training/step_source.hpp"

/// Jobs on one fabric, as far as saves, loads and batches are concerned: who moves what to or from
/// a store or to peers, and whose collectives a transfer meets.
///
/// Every job says what it transfers now; the others hear of each change, give their step less of
/// the links that both use, and give their own transfers a new limit. A job whose step starts or
/// stops says so too: its collectives take from the transfers of the others. What a transfer *may*
/// have depends on who else is there, never on the rate that another transfer happens to have, so
/// one change is answered once and nobody answers an answer.
///
///     FabricNeighbours fabric;
///     fabric.join(job_a); fabric.join(job_b);            // in the order of the jobs
///     fabric.set_transfers(job_a, {{scratch, /*is_write=*/true, 2e9_Bps, "save", servers}});
///     fabric.transfers_of_others(job_b);                 // that one
///
/// Page: docs/models/store-traffic.md. Cost of a change: one visit to every other job.
namespace trainyard::models {

class FabricNeighbours {
 public:
  class Member {
   public:
    virtual ~Member() = default;
    /// Another job transfers something else now, or its step started or stopped.
    virtual void on_neighbours_changed() = 0;
    /// The step of this job on the links; without links while it does not train.
    virtual StepOnLinks step_on_links() = 0;
  };

  void join(Member& member) { places_.push_back({&member, {}}); }
  bool has_others() const { return places_.size() > 1; }

  /// Each transfer names its servers. The same as before: nobody is told.
  void set_transfers(const Member& member, std::vector<StoreFlow> transfers);
  void step_changed(const Member& member) { tell_others(member); }

  std::vector<StoreFlow> transfers_of_others(const Member& member) const;
  /// Only of jobs that train.
  std::vector<StepOnLinks> steps_of_others(const Member& member) const;

 private:
  struct Place {
    Member* member;
    std::vector<StoreFlow> transfers;
  };
  void tell_others(const Member& member);

  std::vector<Place> places_;
};

}  // namespace trainyard::models
