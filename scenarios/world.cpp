#include "scenarios/world.hpp"

#include <algorithm>

#include "models/training/checkpoints.hpp"
#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

models::PoolShape pool_shape(const Scenario& s, const topologies::Fabric& fabric) {
  models::PoolShape shape{.servers = s.cluster.servers,
                          .gpus_per_server = s.cluster.server.gpus,
                          .nics_per_server = s.cluster.server.nics,
                          .spares = s.cluster.spares,
                          .parents = s.cluster.parents,
                          .repair = s.cluster.repair,
                          .spare = s.cluster.spare,
                          .exclude = s.cluster.exclude};
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

models::FailureInputs failing(const Scenario& s) {
  if (!s.failures.enabled) return {};
  return {.classes = s.failures.all_classes(),
          .lemons = s.failures.all_lemons(),
          .inlet = s.failures.inlet,
          .script = s.failures.script};
}

}  // namespace

models::UnitCounts unit_counts(const Scenario& s, const topologies::Fabric& fabric) {
  models::UnitCounts counts{
      .servers = s.cluster.servers,
      .gpus_per_server = s.cluster.server.gpus,
      .nics_per_server = s.cluster.server.nics,
      .leaves = std::int64_t(fabric.edge_count()),
      .upper_switches = std::int64_t(fabric.switch_count() - fabric.edge_count()),
      .links = std::int64_t((fabric.links().size() - fabric.first_trunk().index()) / 2),
      .fabric = &fabric};
  counts.access_links = counts.servers * counts.nics_per_server * fabric.servers().ports_per_nic;
  counts.servers_per_rack = s.cluster.parents.servers_per_rack.value_or(0);
  counts.servers_per_pdu = s.cluster.parents.servers_per_pdu.value_or(0);
  counts.servers_per_cdu = s.cluster.parents.servers_per_cdu.value_or(0);
  for (const auto& [name, store] : s.storage) counts.store_servers[name] = store.servers;
  return counts;
}

World::World(const Scenario& scenario, sim::Recorder& recorder, Stage& stage, sim::TieOrder ties)
    : engine_(sim::Seed{scenario.seed}, ties),
      stage_(stage),
      storage_network_(engine_, "storage"),
      clocks_(engine_, recorder, failing(scenario), unit_counts(scenario, *stage.site().fabric)),
      pool_(engine_, recorder, pool_shape(scenario, *stage.site().fabric)),
      faults_(engine_, recorder, stage.router(), pool_) {
  stage.begin_run(scenario);
  pool_.attach(clocks_);
  faults_.attach(clocks_);
  models::StoreShelf shelf;
  for (const auto& [name, spec] : scenario.storage) {
    auto& store = stores_[name];
    store = std::make_unique<models::SharedStore>(engine_, storage_network_, name, spec, &recorder);
    shelf[name] = {store.get(), stage.hosts_of_store(name)};
  }
  faults_.on_store_server([this](const std::string& name, int change) {
    const auto store = stores_.find(name);
    if (store == stores_.end()) return;
    if (change < 0)
      store->second->server_failed();
    else
      store->second->server_back();
  });
  for (const auto& [name, spec] : scenario.jobs) {
    JobWorld& j = jobs_.emplace_back();
    j.name = name;
    models::JobSetup setup{.name = name,
                           .number = jobs_.size() - 1,
                           .spec = spec,
                           .checkpoint_size = models::checkpoint_size(
                               spec.checkpoint, models::parameters(spec.model, spec.sequence)),
                           .convergence = scenario.cluster.fabric.convergence_delay,
                           .every_step = scenario.fidelity == Fidelity::every_step};
    std::unique_ptr<models::DataFeed> feed;
    models::StoreAccess data_store;
    if (spec.data) {
      data_store = shelf.at(spec.data->store);
      const std::int64_t servers =
          (spec.gpus + scenario.cluster.server.gpus - 1) / scenario.cluster.server.gpus;
      feed = std::make_unique<models::DataFeed>(engine_, *data_store.store, *spec.data, name,
                                                servers, scenario.cluster.server.gpus,
                                                double(spec.global_batch));
    }
    j.job = std::make_unique<models::Job>(engine_, recorder, pool_, shelf, stage.steps(name),
                                          std::move(setup), std::move(feed), std::move(data_store));
    faults_.add_user(*j.job);
    j.job->share_fabric(neighbours_);
  }
  if (scenario.facility) {
    std::vector<models::Job*> jobs;
    for (const JobWorld& j : jobs_) jobs.push_back(j.job.get());
    facility_ = std::make_unique<Facility>(scenario, engine_, recorder, pool_, std::move(jobs));
  }
}

World::~World() = default;

bool World::all_done() const {
  for (const JobWorld& j : jobs_)
    if (j.job->state() != models::JobState::done) return false;
  return true;
}

}  // namespace trainyard::scenarios
