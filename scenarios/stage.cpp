#include "scenarios/stage.hpp"

#include <algorithm>
#include <vector>

#include "models/scheduling/servers.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

// Who collides with whom on a hashed fabric is part of the design, not of a run's luck: two runs
// that differ only in their seed have the same paths, so one set of step profiles serves all
// replications.
constexpr std::uint64_t routing_seed = 1;

std::shared_ptr<const topologies::Fabric> build(const Scenario& s) {
  topologies::BuildResult built = topologies::build_fabric(s.cluster.fabric, host_shape(s));
  check(built.fabric != nullptr, "the fabric of a checked scenario can be built");
  return built.fabric;
}

}  // namespace

topologies::HostShape host_shape(const Scenario& scenario) {
  topologies::HostShape shape = host_shape(scenario.cluster);
  for (const auto& [name, store] : scenario.storage)
    if (store.network == models::StoreNetwork::training) shape.hosts += store.servers;
  return shape;
}

topologies::HostShape host_shape(const ClusterSpec& cluster) {
  return {.hosts = cluster.servers,
          .gpus = cluster.server.gpus,
          .nics = cluster.server.nics,
          .nic_rate = cluster.server.nic.rate,
          .scale_up_rate = cluster.server.gpu.scale_up_rate};
}

std::vector<topologies::HostId> hosts_of_store(const Scenario& scenario, const std::string& store) {
  std::vector<topologies::HostId> hosts;
  std::size_t next = std::size_t(scenario.cluster.servers);
  for (const auto& [name, spec] : scenario.storage) {
    if (spec.network != models::StoreNetwork::training) continue;
    for (int s = 0; s < spec.servers; ++s, ++next)
      if (name == store) hosts.emplace_back(next);
  }
  return hosts;
}

models::Placement first_placement(const Scenario& scenario, const models::JobSpec& job) {
  models::Placement placement;
  const int servers = (job.gpus + scenario.cluster.server.gpus - 1) / scenario.cluster.server.gpus;
  const std::vector<topologies::HostId> spares = models::spare_places(
      scenario.cluster.servers, scenario.cluster.spares, scenario.cluster.spare.places);
  for (std::size_t s = 0; placement.servers.size() < std::size_t(servers); ++s)
    if (const topologies::HostId server(s);
        s >= std::size_t(scenario.cluster.servers) ||
        !std::binary_search(spares.begin(), spares.end(), server))
      placement.servers.push_back(server);
  return placement;
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

Stage::Stage(const Scenario& scenario)
    : servers_(scenario.cluster.servers),
      gpus_per_server_(scenario.cluster.server.gpus),
      site_(scenario) {
  for (const auto& [name, store] : scenario.storage)
    store_hosts_[name] = scenarios::hosts_of_store(scenario, name);
  std::size_t next = 0;
  for (const auto& [name, job] : scenario.jobs) {
    Steps& steps = steps_[name];
    if (job.elastic.enabled)
      steps.elastic =
          std::make_unique<models::ElasticSteps>(job, scenario.cluster.server, site_.router);
    else
      steps.model = std::make_unique<models::StepModel>(job, scenario.cluster.server, site_.router);
    models::Placement first = first_placement(scenario, job);
    const std::size_t servers = first.servers.size();
    if (next + servers > std::size_t(servers_)) next = 0;  // it will have to wait for others
    if (scenario.cluster.spare.places == models::SparePlaces::last)
      for (topologies::HostId& server : first.servers) server = topologies::HostId(next++);
    first_.emplace(name, std::move(first));
  }
}

models::StepSource& Stage::steps(const std::string& job) {
  const auto found = steps_.find(job);
  check(found != steps_.end(), "a stage has the step of every job", job);
  return found->second.source();
}

void Stage::begin_run(const Scenario& scenario) {
  check(scenario.cluster.servers <= servers_ && scenario.cluster.server.gpus == gpus_per_server_ &&
            scenario.jobs.size() == steps_.size(),
        "a stage serves scenarios of its cluster, or of its first servers", scenario.name);
  repair_fabric();
  for (const auto& [name, job] : scenario.jobs) {
    const models::Placement& first = first_.at(name);
    if (first.servers.size() > std::size_t(servers_)) continue;
    Steps& steps = steps_.at(name);
    if (steps.elastic)
      steps.elastic->begin_run(first);
    else
      steps.model->begin_run(first);
  }
}

void Stage::repair_fabric() {
  const topologies::Fabric& fabric = *site_.fabric;
  const topologies::LinkState& state = site_.router.state();
  if (!state.is_changed()) return;
  std::vector<topologies::LinkId> changed;
  for (std::size_t l = 0; l < fabric.links().size(); ++l)
    if (const topologies::LinkId link(l); state.capacity(link) != fabric.link(link).capacity)
      changed.push_back(link);
  site_.router.change([&](topologies::LinkState& s) {
    for (std::size_t v = 0; v < fabric.vertex_count(); ++v) s.set_up(topologies::VertexId(v), true);
    for (const topologies::LinkId link : changed) {
      s.set_up(link, true);
      s.set_capacity_factor(link, 1.0);
    }
  });
  check(!state.is_changed(), "the fabric is as built again");
  for (auto& [name, steps] : steps_) steps.source().links_changed(changed);
}

std::uint64_t Stage::profiles_computed() const {
  std::uint64_t sum = 0;
  for (const auto& [name, steps] : steps_) sum += steps.full().computed();
  return sum;
}

std::uint64_t Stage::profiles_reused() const {
  std::uint64_t sum = 0;
  for (const auto& [name, steps] : steps_) sum += steps.full().reused();
  return sum;
}

}  // namespace trainyard::scenarios
