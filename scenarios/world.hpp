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
#include "models/training/job.hpp"
#include "models/training/step_model.hpp"
#include "scenarios/scenario.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "topologies/catalog.hpp"
#include "topologies/routing.hpp"

/// Scenario → live objects. Plain data goes in, nothing global is touched; everything lives as long
/// as the World.
namespace trainyard::scenarios {

/// The servers of a scenario as the fabric's builder wants them.
topologies::HostShape host_shape(const ClusterSpec& cluster);

/// What of a scenario does not depend on the seed: the fabric and the routes on it.
struct Site {
  explicit Site(const Scenario& scenario);
  std::shared_ptr<const topologies::Fabric> fabric;
  topologies::Router router;
};

/// The step of one job where it would start on an empty cluster: the first servers, in order.
models::Placement first_placement(const Scenario& scenario, const models::JobSpec& job);

class World {
 public:
  World(const Scenario& scenario, sim::Recorder& recorder,
        sim::TieOrder ties = sim::TieOrder::as_scheduled);
  ~World();

  struct JobWorld {
    std::string name;
    std::unique_ptr<models::StepModel> steps;
    std::unique_ptr<models::Job> job;
  };

  sim::Engine& engine() { return engine_; }
  const Site& site() const { return site_; }
  models::ServerPool& pool() { return pool_; }
  const models::FabricFaults& fabric_faults() const { return faults_; }
  const models::FailureClocks& clocks() const { return clocks_; }
  std::vector<JobWorld>& jobs() { return jobs_; }
  bool all_done() const;

 private:
  sim::Engine engine_;
  Site site_;
  models::FluidNetwork storage_network_;
  std::map<std::string, std::unique_ptr<models::SharedStore>> stores_;
  models::FailureClocks clocks_;
  models::ServerPool pool_;
  models::FabricFaults faults_;
  std::vector<JobWorld> jobs_;
};

}  // namespace trainyard::scenarios
