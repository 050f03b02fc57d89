#include "scenarios/world.hpp"

#include "models/training/checkpoints.hpp"
#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

// Who collides with whom on a hashed fabric is part of the design, not of a run's luck: two runs
// that differ only in their seed have the same paths, so one set of step profiles serves all
// replications.
constexpr std::uint64_t routing_seed = 1;

models::UnitCounts unit_counts(const Scenario& s, const topologies::Fabric& fabric) {
  return {.servers = s.cluster.servers,
          .gpus_per_server = s.cluster.server.gpus,
          .nics_per_server = s.cluster.server.nics,
          .leaves = fabric.shape().leaves};
}

models::PoolShape pool_shape(const Scenario& s, const topologies::Fabric& fabric) {
  models::PoolShape shape{.servers = s.cluster.servers,
                          .gpus_per_server = s.cluster.server.gpus,
                          .nics_per_server = s.cluster.server.nics,
                          .spares = s.cluster.spares};
  for (int h = 0; h < s.cluster.servers; ++h) {
    const int leaf = fabric.shape().leaf_of_host(h);
    shape.leaf.push_back(std::uint32_t(leaf));
    shape.pod.push_back(std::uint32_t(fabric.shape().pod_of_leaf(leaf)));
  }
  return shape;
}

std::map<std::string, models::FailureClassSpec> failing(const Scenario& s) {
  return s.failures.enabled ? s.failures.classes
                            : std::map<std::string, models::FailureClassSpec>{};
}

std::shared_ptr<const topologies::Fabric> build(const Scenario& s) {
  topologies::BuildResult built = topologies::build_fabric(s.cluster.fabric, host_shape(s.cluster));
  check(built.fabric != nullptr, "the fabric of a checked scenario can be built");
  return built.fabric;
}

}  // namespace

topologies::HostShape host_shape(const ClusterSpec& cluster) {
  return {.hosts = cluster.servers,
          .gpus = cluster.server.gpus,
          .nics = cluster.server.nics,
          .nic_rate = cluster.server.nic.rate,
          .scale_up_rate = cluster.server.gpu.scale_up_rate};
}

Site::Site(const Scenario& scenario)
    : fabric(build(scenario)),
      router(*fabric, scenario.cluster.fabric.routing, routing_seed,
             scenario.cluster.fabric.flows_per_pair) {}

models::Placement first_placement(const Scenario& scenario, const models::JobSpec& job) {
  models::Placement placement;
  const int servers = (job.gpus + scenario.cluster.server.gpus - 1) / scenario.cluster.server.gpus;
  for (int s = 0; s < servers; ++s) placement.servers.emplace_back(std::size_t(s));
  return placement;
}

World::World(const Scenario& scenario, sim::Recorder& recorder, sim::TieOrder ties)
    : engine_(sim::Seed{scenario.seed}, ties),
      site_(scenario),
      storage_network_(engine_, "storage"),
      clocks_(engine_, recorder, failing(scenario), unit_counts(scenario, *site_.fabric)),
      pool_(engine_, recorder, pool_shape(scenario, *site_.fabric)) {
  pool_.attach(clocks_);
  for (const auto& [name, spec] : scenario.storage)
    stores_.emplace(name,
                    std::make_unique<models::SharedStore>(engine_, storage_network_, name, spec));
  for (const auto& [name, spec] : scenario.jobs) {
    JobWorld& j = jobs_.emplace_back();
    j.name = name;
    j.steps = std::make_unique<models::StepModel>(spec, scenario.cluster.server, site_.router);
    const auto store = stores_.find(spec.checkpoint.store);
    models::JobSetup setup{.name = name,
                           .number = jobs_.size() - 1,
                           .spec = spec,
                           .checkpoint_size = models::checkpoint_size(
                               spec.checkpoint, models::parameters(spec.model, spec.sequence)),
                           .every_step = scenario.fidelity == Fidelity::every_step};
    j.job = std::make_unique<models::Job>(engine_, recorder, pool_,
                                          store == stores_.end() ? nullptr : store->second.get(),
                                          *j.steps, std::move(setup));
  }
}

World::~World() = default;

bool World::all_done() const {
  for (const JobWorld& j : jobs_)
    if (j.job->state() != models::JobState::done) return false;
  return true;
}

}  // namespace trainyard::scenarios
