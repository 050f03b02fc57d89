#include "scenarios/run_cost.hpp"

#include "models/facility/rent_or_own.hpp"
#include "topologies/fabric_cost.hpp"

namespace trainyard::scenarios {
namespace {

std::vector<std::string> consumers(World& world) {
  std::vector<std::string> names{"pool"};
  for (const World::JobWorld& j : world.jobs()) names.push_back(j.name);
  return names;
}

}  // namespace

models::SiteFacts site_facts(const Scenario& scenario, const topologies::Fabric& fabric) {
  const models::ServerSpec& server = scenario.cluster.server;
  models::SiteFacts site;
  site.servers = scenario.cluster.servers;
  site.gpus = site.servers * server.gpus;
  site.nics = site.servers * server.nics;
  site.gpu_price = server.gpu.price;
  site.server_price = server.price;
  site.nic_price = server.nic.price;
  site.it_power =
      (server.gpu.power_max * server.gpus + server.power_overhead) * double(site.servers);
  using topologies::VertexKind;
  for (const VertexKind kind :
       {VertexKind::leaf, VertexKind::spine, VertexKind::core, VertexKind::router})
    site.ports += std::int64_t(fabric.count(kind)) * topologies::box_of(fabric, kind).ports;
  for (const topologies::CostItem& item :
       topologies::bill_of(fabric, topologies::count_cables(fabric))) {
    site.fabric_price += item.price;
    site.it_power += item.power;
  }
  return site;
}

CostMeter::CostMeter(const Scenario& scenario, World& world)
    : scenario_(scenario),
      world_(world),
      spec_(*scenario.economics),
      meter_(spec_, consumers(world)) {}

void CostMeter::observe(Time now, const PowerMeter& power) {
  meter_.advance(now);
  for (std::size_t c = 0; c < power.powers().size(); ++c) meter_.set_power(c, power.powers()[c]);
  meter_.set_site(power.power(), world_.facility() ? power.site() : power.power() * spec_.pue);
}

RunCost CostMeter::cost() const {
  const models::SiteFacts site = site_facts(scenario_, *world_.site().fabric);
  models::RunFacts facts;
  facts.simulated = world_.engine().now() - start_of_run;
  facts.pool = {"pool", world_.pool().ledger(), meter_.use(0), {}, 0};
  double held_gpu_s = 0;
  for (std::size_t j = 0; j < world_.jobs().size(); ++j) {
    const models::Job& job = *world_.jobs()[j].job;
    const models::JobStats stats = job.stats();
    facts.jobs.push_back({world_.jobs()[j].name, job.ledger(), meter_.use(1 + j),
                          Flops(stats.model_flops), stats.tokens});
    held_gpu_s += double(job.ledger().total()) * 1e-9;
  }
  facts.demand = meter_.demand_cost();

  RunCost out;
  out.report = models::cost_of(spec_, site, facts);
  out.pue = meter_.pue();
  out.months = meter_.months();
  const models::EnergyUse all = meter_.total();
  for (std::size_t b = 0; b < meter_.tariff().blocks(); ++b)
    out.blocks.push_back({meter_.tariff().name(b), all.by_block[b], meter_.tariff().price(b)});
  const double gpu_s = double(site.gpus) * to_seconds(facts.simulated);
  out.utilisation = gpu_s > 0 ? held_gpu_s / gpu_s : 0;
  if (out.utilisation > 0)
    out.rent_or_own =
        models::rent_or_own(models::ownership(spec_, site), spec_, out.utilisation).words;
  out.assumed = models::assumptions(spec_, site);
  return out;
}

}  // namespace trainyard::scenarios
