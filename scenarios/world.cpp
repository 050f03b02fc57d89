#include "scenarios/world.hpp"

#include <algorithm>

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
          .leaves = std::int64_t(fabric.edge_count()),
          .upper_switches = std::int64_t(fabric.switch_count() - fabric.edge_count()),
          .links = std::int64_t((fabric.links().size() - fabric.first_trunk().index()) / 2),
          .fabric = &fabric};
}

models::PoolShape pool_shape(const Scenario& s, const topologies::Fabric& fabric) {
  models::PoolShape shape{.servers = s.cluster.servers,
                          .gpus_per_server = s.cluster.server.gpus,
                          .nics_per_server = s.cluster.server.nics,
                          .spares = s.cluster.spares};
  shape.leaf_servers.resize(fabric.edge_count());
  for (int h = 0; h < s.cluster.servers; ++h) {
    const topologies::HostId host{std::size_t(h)};
    for (int n = 0; n < s.cluster.server.nics; ++n) {
      auto& servers =
          shape
              .leaf_servers[fabric.index_in_kind(fabric.edge_of(fabric.nic(host, std::size_t(n))))];
      if (servers.empty() || servers.back() != host) servers.push_back(host);
    }
    shape.leaf.push_back(std::uint32_t(fabric.index_in_kind(fabric.edge_of(host))));
    shape.pod.push_back(std::uint32_t(std::max(0, fabric.pod_of(host))));
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
             scenario.cluster.fabric.flows_per_pair) {
  if (router.kind() != topologies::RoutingKind::ugal) return;
  std::vector<topologies::Demand> traffic;
  for (const auto& [name, job] : scenario.jobs) {
    const models::StepModel model(job, scenario.cluster.server, router);
    for (const topologies::Demand& d : model.demands(first_placement(scenario, job)))
      traffic.push_back(d);
  }
  router.adapt_to(traffic);
}

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
      pool_(engine_, recorder, pool_shape(scenario, *site_.fabric)),
      faults_(engine_, recorder, site_.router, pool_) {
  pool_.attach(clocks_);
  faults_.attach(clocks_);
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
                           .convergence = scenario.cluster.fabric.convergence_delay,
                           .every_step = scenario.fidelity == Fidelity::every_step};
    j.job = std::make_unique<models::Job>(engine_, recorder, pool_,
                                          store == stores_.end() ? nullptr : store->second.get(),
                                          *j.steps, std::move(setup));
    faults_.add_user(*j.job);
  }
}

World::~World() = default;

bool World::all_done() const {
  for (const JobWorld& j : jobs_)
    if (j.job->state() != models::JobState::done) return false;
  return true;
}

}  // namespace trainyard::scenarios
