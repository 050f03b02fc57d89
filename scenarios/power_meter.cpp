#include "scenarios/power_meter.hpp"

namespace trainyard::scenarios {

Watts power_of_switches(const topologies::Fabric& fabric) {
  using topologies::VertexKind;
  const topologies::FabricSpec& spec = fabric.spec();
  return spec.leaf_switch.power * double(fabric.count(VertexKind::leaf)) +
         spec.spine_switch.power * double(fabric.count(VertexKind::spine)) +
         spec.core_switch.power * double(fabric.count(VertexKind::core)) +
         spec.router_switch.power * double(fabric.count(VertexKind::router));
}

PowerMeter::PowerMeter(const Scenario& scenario, World& world, Watts switches,
                       sim::Recorder& recorder)
    : scenario_(scenario),
      world_(world),
      switches_(switches),
      recorder_(recorder),
      series_(recorder.series("power", "W", "power drawn by all servers and switches")) {
  if (world.facility())
    site_series_ =
        recorder.series("site_power", "W", "power drawn by servers, switches, cooling, and losses");
}

Watts PowerMeter::present() {
  if (!world_.facility()) return of_states();
  powers_ = world_.facility()->powers();
  Watts power = switches_;
  for (const Watts p : powers_) power += p;
  return power;
}

Watts PowerMeter::of_states() {
  using models::JobState;
  const models::ServerSpec& server = scenario_.cluster.server;
  const models::PoolShape& shape = world_.pool().shape();
  const auto of_servers = [&](std::int64_t servers, Watts gpu) {
    return (gpu * server.gpus + server.power_overhead) * double(servers);
  };
  powers_.assign(1 + world_.jobs().size(), Watts(0));
  powers_[0] =
      of_servers(shape.servers - world_.pool().down_servers() - world_.pool().held_servers(),
                 server.gpu.power_idle);
  Watts power = switches_ + powers_[0];
  std::size_t consumer = 0;
  const auto add = [&](Watts drawn) {
    power += drawn;
    powers_[consumer] += drawn;
  };
  for (const World::JobWorld& j : world_.jobs()) {
    const models::Job& job = *j.job;
    ++consumer;
    switch (job.state()) {
      case JobState::training:
        if (job.current_profile()) add(models::mean_power(*job.current_profile()));
        add(of_servers(job.servers_held() - job.servers_training(), server.gpu.power_idle));
        break;
      case JobState::saving:
      case JobState::loading:
      case JobState::detecting:
        add(of_servers(job.servers_held(), models::communicating_power(server.gpu)));
        break;
      case JobState::queued:
      case JobState::starting:
      case JobState::diagnosing:
      case JobState::replacing:
      case JobState::waiting:
      case JobState::rerouting:
      case JobState::cut_off:
      case JobState::done:
        add(of_servers(job.servers_held(), server.gpu.power_idle));
        break;
    }
  }
  return power;
}

void PowerMeter::observe(Time now) {
  const double dt_s = to_seconds(now - since_);
  energy_ += Joules(power_.value() * dt_s);
  switch_energy_ += Joules(switches_.value() * dt_s);
  since_ = now;
  const Watts next = present();
  if (is_first_ || next != power_) recorder_.sample(series_, now, next.value());
  const Watts site = world_.facility() ? next + world_.facility()->overhead() : next;
  if (site_series_ && (is_first_ || site != site_))
    recorder_.sample(*site_series_, now, site.value());
  site_ = site;
  if (site_ > site_peak_) {
    site_peak_ = site_;
    site_peak_at_ = now;
  }
  is_first_ = false;
  power_ = next;
}

}  // namespace trainyard::scenarios
