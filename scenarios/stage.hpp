#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/training/elastic_steps.hpp"
#include "models/training/step_model.hpp"
#include "scenarios/scenario.hpp"
#include "topologies/catalog.hpp"
#include "topologies/routing.hpp"

/// What of a scenario depends neither on the seed nor on what only the run level knows (intervals,
/// spares, crews, failures): the fabric with its routes, and the step of every job. Many runs may
/// use one stage, one after the other and on one thread; the profiles that they share are computed
/// once.
///
///     Stage stage(scenario);
///     for (scenario.seed = 1; scenario.seed <= 100; ++scenario.seed)
///       results.push_back(run(scenario, stage, {}));
///
/// A run on a used stage is the run on a fresh one, to the last bit: at its begin the fabric is as
/// built, and no step depends on which steps were asked for before.
namespace trainyard::scenarios {

/// The servers of a scenario as the fabric's builder wants them; after them, those of the stores
/// that are on the training network.
topologies::HostShape host_shape(const Scenario& scenario);
/// Without stores.
topologies::HostShape host_shape(const ClusterSpec& cluster);

/// Where the servers of a store on the training network are; empty for another one.
std::vector<topologies::HostId> hosts_of_store(const Scenario& scenario, const std::string& store);

/// The step of one job where it would start on an empty cluster: the first servers, in order.
models::Placement first_placement(const Scenario& scenario, const models::JobSpec& job);

/// The fabric and the routes on it.
struct Site {
  explicit Site(const Scenario& scenario);
  std::shared_ptr<const topologies::Fabric> fabric;
  topologies::Router router;
};

class Stage {
 public:
  explicit Stage(const Scenario& scenario);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const Site& site() const { return site_; }
  topologies::Router& router() { return site_.router; }
  models::StepSource& steps(const std::string& job);
  /// Of a store on the training network; empty for another one.
  const std::vector<topologies::HostId>& hosts_of_store(const std::string& store) const {
    return store_hosts_.at(store);
  }

  /// Before each run, of this scenario or one that differs from it in nothing a step depends on:
  /// makes the fabric as built again.
  void begin_run(const Scenario& scenario);

  std::uint64_t profiles_computed() const;
  std::uint64_t profiles_reused() const;

 private:
  void repair_fabric();

  int servers_, gpus_per_server_;
  Site site_;
  /// One of the two: elastic jobs have a model of every size.
  struct Steps {
    std::unique_ptr<models::StepModel> model;
    std::unique_ptr<models::ElasticSteps> elastic;
    models::StepModel& full() { return elastic ? elastic->full() : *model; }
    const models::StepModel& full() const { return elastic ? elastic->full() : *model; }
    models::StepSource& source() {
      return elastic ? static_cast<models::StepSource&>(*elastic) : *model;
    }
  };
  std::map<std::string, Steps> steps_;
  std::map<std::string, std::vector<topologies::HostId>> store_hosts_;
  std::map<std::string, models::Placement> first_;  // on an empty cluster, job after job
};

}  // namespace trainyard::scenarios
