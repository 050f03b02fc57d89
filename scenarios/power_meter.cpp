#include "scenarios/power_meter.hpp"

namespace trainyard::scenarios {

PowerMeter::PowerMeter(const Scenario& scenario, World& world, Watts switches,
                       sim::Recorder& recorder)
    : scenario_(scenario),
      world_(world),
      switches_(switches),
      recorder_(recorder),
      series_(recorder.series("power", "W", "power drawn by all servers and switches")) {}

Watts PowerMeter::present() {
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
  energy_ += Joules(power_.value() * to_seconds(now - since_));
  since_ = now;
  const Watts next = present();
  if (is_first_ || next != power_) recorder_.sample(series_, now, next.value());
  is_first_ = false;
  power_ = next;
}

}  // namespace trainyard::scenarios
