#include "scenarios/facility.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/check.hpp"

/// The plant of a run: what it is told, and what it tells. How it is built: facility_build.cpp.
namespace trainyard::scenarios {

using models::JobState;
using topologies::HostId;

namespace {

// Jobs are warned of one kind of loss once in so long.
constexpr Duration warn_again = std::chrono::minutes(10);

bool trains(JobState state) {
  return state == JobState::training;
}
bool communicates(JobState state) {
  return state == JobState::saving || state == JobState::loading || state == JobState::detecting;
}

}  // namespace

bool Facility::observe() {
  if (look_at_jobs()) is_dirty_ = true;
  look_at_weather();
  const bool has_changed = std::exchange(is_dirty_, false);
  if (has_changed) reload();
  sum_overhead();
  return has_changed;
}

/// True: somebody does something else, or elsewhere.
bool Facility::look_at_jobs() {
  bool has_changed = false;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const models::Job& job = *jobs_[j];
    const Seen now{job.state(), job.current_profile(), job.servers_training()};
    if (now.training != seen_[j].training) is_placed_ = false;
    if (now.profile != seen_[j].profile) {
      const models::JobSetup& setup = job.setup();
      const models::ServerSpec& server = scenario_.cluster.server;
      gpus_->set_step(1 + j, now.profile, double(setup.spec.gpus),
                      server.power_overhead * (double(setup.spec.gpus) / server.gpus));
    }
    gpus_->set_mode(1 + j, trains(now.state)         ? FacilityGpus::Mode::training
                           : communicates(now.state) ? FacilityGpus::Mode::waiting
                                                     : FacilityGpus::Mode::idle);
    has_changed = has_changed || now.state != seen_[j].state || now.profile != seen_[j].profile ||
                  now.training != seen_[j].training;
    seen_[j] = now;
  }
  if (pool_.version() != seen_pool_) {
    seen_pool_ = pool_.version();
    is_placed_ = false;
  }
  return has_changed || !is_placed_;
}

/// Which servers do what, rack by rack.
void Facility::place_servers() {
  std::vector<std::size_t> consumer(std::size_t(pool_.shape().servers), 0);
  std::vector<bool> is_active(consumer.size(), false);
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    for (const HostId server : jobs_[j]->servers())
      if (server.is_valid()) consumer[server.index()] = 1 + j;
    for (const HostId server : jobs_[j]->placement().servers) is_active[server.index()] = true;
  }
  for (std::size_t r = 0; r < racks_.size(); ++r) {
    std::vector<Share>& shares = racks_[r].shares;
    shares.clear();
    const std::size_t first = r * std::size_t(layout_.servers_per_rack);
    const std::size_t last =
        std::min(first + std::size_t(layout_.servers_per_rack), consumer.size());
    for (std::size_t s = first; s < last; ++s) {
      if (pool_.is_down(HostId(s))) continue;
      const auto same = std::find_if(shares.begin(), shares.end(), [&](const Share& share) {
        return share.consumer == consumer[s] && share.is_active == is_active[s];
      });
      if (same != shares.end())
        ++same->servers;
      else
        shares.push_back({consumer[s], is_active[s], 1});
    }
  }
  is_placed_ = true;
}

Watts Facility::load_of(std::size_t r, const Share& share) {
  const models::ServerSpec& server = scenario_.cluster.server;
  const Rack& rack = racks_[r];
  const std::size_t zone = layout_.zones.empty() ? 0 : layout_.zone_of[r];
  const FacilityGpus::Group& group = gpus_->group({zone, share.consumer, rack.cap_W, rack.ceiling});
  Watts gpu = group.idle;
  if (share.consumer > 0) {
    const JobState state = seen_[share.consumer - 1].state;
    if (trains(state) && share.is_active && seen_[share.consumer - 1].profile)
      gpu = group.training;
    else if (communicates(state))
      gpu = group.waiting;
    if (group.speed != 1) has_new_speeds_ = true;
  }
  if (rack.cap_W > 0) gpu = std::min(gpu, std::max(group.idle, Watts(rack.cap_W)));
  return (gpu * server.gpus + server.power_overhead) * double(share.servers);
}

void Facility::remember_nothing() {
  is_forgetful_ = true;
  if (power_) power_->tell_all_devices();
}

/// What racks draw now. Remembered only while all GPUs are at rest and at full speed: then it
/// follows from what jobs do, and nobody needs to be told of a speed.
Facility::ScenePtr Facility::scene() {
  constexpr std::size_t most_scenes = 32;
  const bool may_keep = gpus_->is_at_rest() && !has_slow_jobs_ && !is_forgetful_;
  if (!may_keep || scenes_epoch_ != gpus_->epoch() || scenes_.size() == most_scenes)
    scenes_.clear();
  for (const ScenePtr& known : scenes_)
    if (known->activities == gpus_->activities()) {
      ++scenes_reused_;
      return known;
    }
  Scene fresh = make_scene();
  gpus_->forget_unused();
  if (scenes_epoch_ != gpus_->epoch()) scenes_.clear();
  scenes_epoch_ = gpus_->epoch();
  const bool is_kept = may_keep && gpus_->is_at_rest() && !has_new_speeds_;
  if (is_kept) fresh.name = ++scenes_named_;
  ScenePtr made = std::make_shared<const Scene>(std::move(fresh));
  if (is_kept) scenes_.push_back(made);
  return made;
}

Facility::Scene Facility::make_scene() {
  Scene s{.activities = gpus_->activities(),
          .powers = std::vector<Watts>(1 + jobs_.size()),
          .heat = std::vector<Watts>(layout_.zones.size())};
  const double reactive =
      power_ ? models::reactive_share(scenario_.facility->power->racks.power_factor) : 0;
  for (std::size_t r = 0; r < racks_.size(); ++r) {
    const Rack& rack = racks_[r];
    Watts sum{};
    for (const Share& share : rack.shares) {
      const Watts load = load_of(r, share);  // asks its group, whether it draws or not
      if (!rack.is_on()) continue;
      sum += load;
      if (rack.is_fed) s.powers[share.consumer] += load;
    }
    if (power_) s.loads.push_back({rack.node, sum, VoltAmperes(sum.value() * reactive)});
    if (cooling_ && rack.is_fed) s.heat[layout_.zone_of[r]] += sum;
  }
  return s;
}

/// All loads anew, to everybody who wants to know.
void Facility::reload() {
  const bool is_new_place = !is_placed_;
  if (is_new_place) {
    place_servers();
    scenes_.clear();
  }
  const ScenePtr now = scene();  // what is told below may make another one
  powers_ = now->powers;
  if (power_ && !loads_.empty()) {
    told_loads_ = now->loads;
    for (const PlantLoad& load : loads_) {
      Watts watts = load.constant;
      for (const std::string& unit : load.units) watts += cooling_->power(unit);
      told_loads_.push_back({load.node, watts, VoltAmperes(watts.value() * load.reactive_share)});
    }
  }
  if (power_ && is_new_place) tell_limits();
  if (cooling_) tell_heat(now->heat);
  tell_speeds();
  if (!power_) return;
  if (loads_.empty())
    power_->set_rack_loads(now->loads, now->name);
  else
    power_->set_rack_loads(told_loads_);
}

void Facility::tell_limits() {
  const models::ServerSpec& server = scenario_.cluster.server;
  for (std::size_t r = 0; r < racks_.size(); ++r) {
    const std::size_t zone = layout_.zones.empty() ? 0 : layout_.zone_of[r];
    Watts least{}, idle{};
    int priority = 0;
    for (const Share& share : racks_[r].shares) {
      const FacilityGpus::Group& group = gpus_->group({zone, share.consumer, 0, 1});
      const double gpus = double(server.gpus) * double(share.servers);
      const Watts others = server.power_overhead * double(share.servers);
      const double slowest = std::pow(layout_.gpu.lowest_clock, layout_.gpu.exponent);
      idle += group.idle * gpus + others;
      least +=
          (share.consumer > 0 ? group.idle + (group.training - group.idle) * slowest : group.idle) *
              gpus +
          others;
      if (share.consumer > 0)
        priority = std::max(priority, jobs_[share.consumer - 1]->setup().spec.priority);
    }
    power_->set_rack_limits(racks_[r].node, least, idle, priority);
  }
}

void Facility::tell_heat(std::span<const Watts> drawn) {
  heat_->set(engine_.now(), drawn);
  flush_heat();
}

void Facility::flush_heat() {
  if (heat_->advance(engine_.now())) {
    std::vector<Watts> of_one;
    for (std::size_t z = 0; z < layout_.zones.size(); ++z)
      of_one.push_back(
          std::max(Watts(0), heat_->told()[z] / double(layout_.zones[z].racks.size())));
    cooling_->set_rack_heats(of_one);
  }
  if (const auto next = heat_->next_event())
    heat_timer_.arm_at(std::max(*next, engine_.now()));
  else
    heat_timer_.cancel();
}

/// Which servers of which job are slower than they were built to be.
void Facility::tell_speeds() {
  if (!std::exchange(has_new_speeds_, false) && !has_slow_jobs_) return;
  has_slow_jobs_ = false;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    std::map<HostId, double> speeds;
    sim::EventIndex cause;
    for (const HostId server : jobs_[j]->servers()) {
      if (!server.is_valid()) continue;
      const std::size_t r = layout_.rack_of(server.index());
      const std::size_t zone = layout_.zones.empty() ? 0 : layout_.zone_of[r];
      const FacilityGpus::Group& group =
          gpus_->group({zone, 1 + j, racks_[r].cap_W, racks_[r].ceiling});
      if (group.event.is_valid()) cause = group.event;
      if (group.speed < 1) speeds.emplace(server, group.speed);
    }
    has_slow_jobs_ = has_slow_jobs_ || !speeds.empty();
    jobs_[j]->set_speeds(std::move(speeds), cause);
  }
}

// --- what the plants tell ------------------------------------------------------------------------

/// Racks, or GPUs, are not what they were.
void Facility::touch() {
  is_dirty_ = true;
  scenes_.clear();
  flush_.arm(Duration::zero());
}

void Facility::on_fed(std::size_t r, bool is_fed, sim::EventIndex cause) {
  Rack& rack = racks_[r];
  if (rack.is_fed == is_fed) return;
  rack.is_fed = is_fed;
  if (!is_fed) {
    ++counted_.racks_unfed;
    if (lost_.empty()) lost_cause_ = cause;
    lost_.push_back(r);
  } else {
    back_.push_back(r);
  }
  touch();
}

/// GPUs that were too hot for the plant's own limits turn themselves off.
void Facility::look_at_gpus() {
  for (std::size_t z = 0; z < zone_states_.size(); ++z) {
    if (zone_states_[z].is_off == gpus_->is_off(z)) continue;
    zone_states_[z].is_off = gpus_->is_off(z);
    cool_again(z, gpus_->cause(z));
  }
  touch();
}

/// Cooling units live on what feeds them.
void Facility::on_load_fed(models::PowerPlant::Node node, bool is_fed, sim::EventIndex cause) {
  for (PlantLoad& load : loads_)
    if (load.node == node) {
      load.is_fed = is_fed;
      for (const std::string& unit : load.units) cooling_->set_fed(unit, is_fed, cause);
    }
  set_others();
  is_dirty_ = true;
  flush_.arm(Duration::zero());
}

void Facility::on_cooled(std::size_t zone, bool is_cooled, sim::EventIndex cause) {
  zone_states_[zone].is_cooled = is_cooled;
  cool_again(zone, cause);
}

void Facility::cool_again(std::size_t zone, sim::EventIndex cause) {
  const bool is_cooled = zone_states_[zone].is_cooled && !zone_states_[zone].is_off;
  for (const std::size_t r : layout_.zones[zone].racks) {
    Rack& rack = racks_[r];
    if (rack.is_cooled == is_cooled) continue;
    rack.is_cooled = is_cooled;
    if (!is_cooled) {
      ++counted_.racks_uncooled;
      if (hot_.empty()) hot_cause_ = cause;
      hot_.push_back(r);
    } else {
      cool_.push_back(r);
    }
  }
  touch();
}

void Facility::on_order(std::size_t r, models::RackOrder order, Watts watts,
                        sim::EventIndex cause) {
  using models::RackOrder;
  const models::ServerSpec& server = scenario_.cluster.server;
  Rack& rack = racks_[r];
  rack.cap_W = 0;
  rack.ceiling = 1;
  rack.is_suspended = order == RackOrder::suspend;
  if (order == RackOrder::brake) rack.ceiling = scenario_.facility->policy.brake_ratio;
  if (order == RackOrder::cap) {
    std::int64_t servers = 0;
    for (const Share& share : rack.shares) servers += share.servers;
    const double gpus = double(servers) * server.gpus;
    const double left = watts.value() - server.power_overhead.value() * double(servers);
    if (gpus > 0) rack.cap_W = std::max(1.0, left / gpus);
  }
  if (order != RackOrder::none) ++counted_.limits;
  speed_cause_ = suspend_cause_ = cause;
  gpus_->set_cause(cause);
  touch();
}

void Facility::on_warning(std::vector<std::size_t> racks, Duration window,
                          models::FailureClass& cls, sim::EventIndex cause) {
  if (racks.empty() || window == forever) return;
  // A save makes the load fall and the danger end, and training brings it back: whoever saved at
  // each of these would do nothing else.
  const auto [last, is_first] = warned_.try_emplace(&cls, engine_.now());
  if (!is_first && engine_.now() < add(last->second, warn_again)) return;
  last->second = engine_.now();
  const std::vector<HostId> servers = servers_of(racks);
  pool_.warn({.cls = &cls, .unit = std::uint32_t(racks.front()), .event = cause}, servers,
             add(engine_.now(), window));
}

std::vector<HostId> Facility::servers_of(std::span<const std::size_t> racks) const {
  std::vector<HostId> servers;
  for (const std::size_t r : racks) {
    const std::size_t first = r * std::size_t(layout_.servers_per_rack);
    const std::size_t last =
        std::min(first + std::size_t(layout_.servers_per_rack), std::size_t(pool_.shape().servers));
    for (std::size_t s = first; s < last; ++s) servers.emplace_back(s);
  }
  return servers;
}

bool Facility::is_up(std::size_t r, models::Lack lack) const {
  const Rack& rack = racks_[r];
  return lack == models::Lack::feed ? rack.is_fed && !rack.is_shed : rack.is_cooled;
}

/// Operators power down the racks of the highest numbers, to save what cooling is left.
void Facility::shed(double share, sim::EventIndex cause) {
  const auto down = std::size_t(std::lround(share * double(racks_.size())));
  for (std::size_t r = 0; r < racks_.size(); ++r) {
    const bool is_shed = r >= racks_.size() - down;
    if (racks_[r].is_shed == is_shed) continue;
    racks_[r].is_shed = is_shed;
    if (is_shed) ++counted_.racks_shed;
    (is_shed ? lost_ : back_).push_back(r);
  }
  lost_cause_ = cause;
  touch();
}

/// What faults and the script do to a part.
sim::EventIndex Facility::act(const std::string& part, models::PlantAction action,
                              const std::string& why, std::optional<double> value) {
  using models::PlantAction;
  const auto note = [&](const char* kind, const char* unit) {
    return recorder_.event(engine_.now(), sim::Phase::failure, recorder_.kind(kind, unit),
                           recorder_.subject(why), {}, value.value_or(0));
  };
  if (action == PlantAction::people) {
    const sim::EventIndex event = note("people at the cooling plant", "people");
    cooling_->set_people(int(*value));
    return event;
  }
  if (action == PlantAction::shed) {
    const sim::EventIndex event = note("operators power racks down", "share of racks");
    shed(*value, event);
    return event;
  }
  const sim::EventIndex cause = note(
      action == PlantAction::fail || action == PlantAction::trip ? "plant fault" : "plant action",
      "");
  if (action == PlantAction::fail) ++counted_.faults;
  if (is_cooling_unit(part)) {
    if (action == PlantAction::fail) return cooling_->fail(part, cause);
    if (action == PlantAction::trip) return cooling_->trip(part, cause);
    return cooling_->restore(part, cause);
  }
  const models::PowerPlant::Node node = power_->node(part);
  if (action == PlantAction::fail) return power_->fail(node, cause);
  if (action == PlantAction::return_by_hand) return power_->return_by_hand(node, cause);
  return power_->restore(node, cause);
}

/// Racks that went at one instant are one failure, however many.
void Facility::take_racks(std::vector<std::size_t>& racks, models::Lack lack,
                          sim::EventIndex cause) {
  const bool is_feed = lack == models::Lack::feed;
  std::sort(racks.begin(), racks.end());
  std::erase_if(racks, [&](std::size_t r) {
    bool& known = is_feed ? racks_[r].is_lost : racks_[r].is_hot;
    if (known || is_up(r, lack)) return true;
    known = true;
    return false;
  });
  if (racks.empty()) return;
  const models::FailureClass& cls = is_feed ? no_feed_ : no_cooling_;
  pool_.take_away({.cls = &cls,
                   .unit = std::uint32_t(racks.front()),
                   .detection = scenario_.facility->detection,
                   .repair = forever,
                   .event = cause},
                  lack, servers_of(racks));
}

void Facility::flush() {
  const auto give_back = [&](std::vector<std::size_t>& racks, models::Lack lack) {
    const bool is_feed = lack == models::Lack::feed;
    std::sort(racks.begin(), racks.end());
    std::erase_if(racks, [&](std::size_t r) {
      bool& known = is_feed ? racks_[r].is_lost : racks_[r].is_hot;
      if (!known || !is_up(r, lack)) return true;
      known = false;
      return false;
    });
    pool_.give_back(lack, servers_of(racks));
  };
  for (const auto lack : {models::Lack::feed, models::Lack::cooling}) {
    const bool is_feed = lack == models::Lack::feed;
    std::vector<std::size_t> lost = std::exchange(is_feed ? lost_ : hot_, {});
    std::vector<std::size_t> back = std::exchange(is_feed ? back_ : cool_, {});
    take_racks(lost, lack, is_feed ? lost_cause_ : hot_cause_);
    give_back(back, lack);
  }
  const bool is_any_suspended =
      std::any_of(racks_.begin(), racks_.end(), [](const Rack& rack) { return rack.is_suspended; });
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const auto& servers = jobs_[j]->servers();
    const bool is_suspended =
        is_any_suspended && std::any_of(servers.begin(), servers.end(), [&](HostId server) {
          return server.is_valid() && racks_[layout_.rack_of(server.index())].is_suspended;
        });
    jobs_[j]->suspend(is_suspended, suspend_cause_);
  }
}

}  // namespace trainyard::scenarios
