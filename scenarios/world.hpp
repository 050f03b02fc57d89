#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/network/fluid_network.hpp"
#include "models/scheduling/fabric_faults.hpp"
#include "models/scheduling/servers.hpp"
#include "models/storage/store.hpp"
#include "models/training/fabric_neighbours.hpp"
#include "models/training/job.hpp"
#include "scenarios/facility.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/stage.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"

/// Scenario → live objects. Plain data goes in, nothing global is touched; everything lives as long
/// as the World, or as the Stage that it shares with the runs before and after.
namespace trainyard::scenarios {

/// What the failure clocks of a scenario count.
models::UnitCounts unit_counts(const Scenario& scenario, const topologies::Fabric& fabric);

class World {
 public:
  /// The stage must outlive the world, and serve no other meanwhile.
  World(const Scenario& scenario, sim::Recorder& recorder, Stage& stage,
        sim::TieOrder ties = sim::TieOrder::as_scheduled);
  ~World();

  struct JobWorld {
    std::string name;
    std::unique_ptr<models::Job> job;
  };

  sim::Engine& engine() { return engine_; }
  const Site& site() const { return stage_.site(); }
  models::ServerPool& pool() { return pool_; }
  const models::FabricFaults& fabric_faults() const { return faults_; }
  const models::FailureClocks& clocks() const { return clocks_; }
  const std::map<std::string, std::unique_ptr<models::SharedStore>>& stores() const {
    return stores_;
  }
  std::vector<JobWorld>& jobs() { return jobs_; }
  /// Null: the scenario has none.
  Facility* facility() { return facility_.get(); }
  bool all_done() const;

 private:
  sim::Engine engine_;
  Stage& stage_;
  models::FluidNetwork storage_network_;
  std::map<std::string, std::unique_ptr<models::SharedStore>> stores_;
  models::FailureClocks clocks_;
  models::ServerPool pool_;
  models::FabricFaults faults_;
  models::FabricNeighbours neighbours_;
  std::vector<JobWorld> jobs_;
  std::unique_ptr<Facility> facility_;
};

}  // namespace trainyard::scenarios
