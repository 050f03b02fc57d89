#include "scenarios/facility_gpus.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/facility/step_power.hpp"

namespace trainyard::scenarios {
namespace {

// Speeds are told to jobs in steps of half a per cent, so that a die that warms up does not make a
// hundred different steps.
constexpr double speeds_told = 200;

double rounded_speed(double speed) {
  return std::clamp(std::round(speed * speeds_told) / speeds_told, 1 / speeds_told, 1.0);
}

bool is_quiet(const models::OperatingPoint& p) {
  return p.limit == models::GpuLimit::none || p.limit == models::GpuLimit::board;
}

}  // namespace

FacilityGpus::FacilityGpus(sim::Engine& engine, sim::Recorder& recorder,
                           const FacilityLayout& layout, const models::ServerSpec& server,
                           std::size_t jobs, std::function<void()> on_change)
    : engine_(engine),
      recorder_(recorder),
      layout_(layout),
      power_(layout.gpu),
      members_(server.gpus),
      on_change_(std::move(on_change)),
      zones_(std::max<std::size_t>(1, layout.zones.size())),
      steps_(jobs + 1),
      step_(jobs + 1),
      wake_(engine, sim::Phase::observation, [this] { step(); }) {
  for (std::size_t z = 0; z < zones_.size(); ++z) {
    zones_[z].inlet_C = layout.idle_C;
    zones_[z].subject = recorder.subject(
        "GPUs of " + (layout.zones.empty() ? std::string("all racks") : layout.zones[z].name));
  }
  const models::OperatingPoint design = power_.operating_point(
      models::GpuLoad{.inlet = layout.idle_C, .resistance = resistance_at(layout.cooler, 1.0)});
  design_speed_ = std::max(0.01, group_speed(design, layout.gpu.compute_bound, members_));
}

models::GpuLoad FacilityGpus::load_of(const Key& key) const {
  const Zone& zone = zones_[key.zone];
  models::GpuLoad load{.activity = steps_[key.job].activity,
                       .weight = steps_[key.job].weight,
                       .inlet = std::max(0.0, zone.inlet_C),
                       .resistance = resistance_at(layout_.cooler, zone.flow)};
  if (key.cap_W > 0) load.cap = Watts(key.cap_W);
  load.ceiling = key.ceiling;
  return load;
}

models::GpuLoad FacilityGpus::present_load(const Key& key) const {
  models::GpuLoad load = load_of(key);
  if (key.job == 0 || steps_[key.job].mode == Mode::idle) {
    load.activity = 0;
    load.weight = 1;
  } else if (steps_[key.job].mode == Mode::waiting) {
    load.activity = layout_.gpu.communicating;
    load.weight = 1;
  }
  return load;
}

void FacilityGpus::set_mode(std::size_t job, Mode mode) {
  if (std::exchange(steps_[job].mode, mode) == mode || lumps_ == 0) return;
  for (auto& [key, group] : groups_) {
    if (key.job != job || !group.lump) continue;
    group.lump->advance(engine_.now());
    group.lump->set(present_load(key));
    tell(key, group, group.lump->point());
  }
  arm();
}

void FacilityGpus::set_condition(std::size_t zone, double inlet_C, double flow,
                                 sim::EventIndex cause) {
  Zone& z = zones_[zone];
  if (z.inlet_C == inlet_C && z.flow == flow) return;
  z.inlet_C = inlet_C;
  z.flow = flow;
  z.cause = cause;
  ++epoch_;
  bool is_off = false;
  for (auto& [key, group] : groups_) {
    if (key.zone != zone) continue;
    refresh(key, group, false);
    if (group.lump && group.lump->is_off() && flow > 0) {
      group.lump->restart();
      tell(key, group, group.lump->point());
    }
    is_off = is_off || group.point.limit == models::GpuLimit::shutdown;
  }
  z.is_off = is_off;
  arm();
  on_change_();
}

void FacilityGpus::set_step(std::size_t job, const models::StepProfile* profile, double gpus,
                            Watts servers) {
  Activity& a = steps_[job];
  if (a.profile == profile || profile == nullptr) return;
  a.profile = profile;
  const models::GpuLoad load = models::load_of(
      models::activities_of(profile->power, power_, {.gpus = gpus, .servers = servers}));
  a.activity = load.activity;
  a.weight = load.weight;
  ++step_[job];
  // Groups at rest are looked at when somebody asks.
  if (lumps_ == 0) return;
  for (auto& [key, group] : groups_)
    if (key.job == job) catch_up(key, group);
  arm();
}

void FacilityGpus::catch_up(const Key& key, Group& group) {
  if (group.seen == step_[key.job]) return;
  refresh(key, group, false);
}

const FacilityGpus::Group& FacilityGpus::group(const Key& key) {
  const auto [at, is_new] = groups_.try_emplace(key);
  if (is_new) {
    refresh(key, at->second, true);
    arm();
  } else if (at->second.seen != step_[key.job]) {
    catch_up(key, at->second);
    arm();
  }
  at->second.is_used = true;
  return at->second;
}

void FacilityGpus::forget_unused() {
  for (auto at = groups_.begin(); at != groups_.end();)
    if (std::exchange(at->second.is_used, false)) {
      ++at;
    } else {
      if (at->second.lump) --lumps_;
      at = groups_.erase(at);
    }
  arm();
}

double FacilityGpus::hottest() {
  double hottest_C = 0;
  for (auto& [key, group] : groups_) {
    if (key.job == 0) continue;
    catch_up(key, group);
    hottest_C = std::max(hottest_C, group.point.temperature);
  }
  arm();
  return hottest_C;
}

models::OperatingPoint FacilityGpus::point_of(const models::GpuLoad& load) {
  constexpr std::size_t most_points = 64;
  for (const auto& [known, point] : known_points_)
    if (known == load) return point;
  if (known_points_.size() == most_points) known_points_.clear();
  return known_points_.emplace_back(load, power_.operating_point(load)).second;
}

void FacilityGpus::refresh(const Key& key, Group& group, bool is_new) {
  const models::GpuLoad load = load_of(key);
  const Time now = engine_.now();
  const models::GpuLoad before = group.load;
  group.seen = step_[key.job];
  if (!is_new && load == before) return;
  group.load = load;
  models::GpuLoad other = load;
  other.weight = 1;
  other.activity = layout_.gpu.communicating;
  const bool flows = std::isfinite(load.resistance);
  // Without flow nothing comes to rest: what idles is as warm as it was.
  if (flows || is_new) {
    if (!flows) other.resistance = resistance_at(layout_.cooler, 1.0);
    group.waiting = point_of(other).power;
    other.activity = 0;
    group.idle = point_of(other).power;
  }
  if (group.lump) {
    group.lump->advance(now);
    group.lump->set(present_load(key));
    tell(key, group, group.lump->point());
    return;
  }
  const models::OperatingPoint rest = point_of(load);
  if (is_quiet(rest) && (is_new || is_quiet(group.point))) {
    tell(key, group, rest);
    return;
  }
  // From the state that these GPUs were in: another group of the same job and zone if this one is
  // new.
  models::GpuLoad from = is_new ? load : before;
  if (is_new) {
    from.cap.reset();
    from.ceiling = 1;
  }
  if (!std::isfinite(from.resistance)) from.resistance = resistance_at(layout_.cooler, 1.0);
  group.lump.emplace(layout_.gpu, layout_.cooler.capacity, 1.0, from, now);
  ++lumps_;
  ++epoch_;
  if (is_new)
    for (const auto& [k, sibling] : groups_)
      if (k.zone == key.zone && k.job == key.job && &sibling != &group && sibling.lump) {
        models::GpuCooling copy = *sibling.lump;
        copy.advance(now);
        group.lump->set_temperature(copy.temperature());
        break;
      }
  group.lump->set(present_load(key));
  tell(key, group, group.lump->point());
}

void FacilityGpus::tell(const Key& key, Group& group, const models::OperatingPoint& point) {
  // In a pause the clock is free; what steps run at is not told anew for that.
  if (group.lump && key.job > 0 && steps_[key.job].mode != Mode::training &&
      point.limit != models::GpuLimit::shutdown)
    return;
  group.point = point;
  group.training = point.power;
  // A slower step is another load, and another load another speed: what is told stays until it is
  // clearly wrong, and changes once an instant.
  const double exact =
      std::min(1.0, group_speed(point, layout_.gpu.compute_bound, members_) / design_speed_);
  const double speed = rounded_speed(exact);
  const bool is_close = std::abs(exact - group.speed) * speeds_told < 0.75;
  if (speed == group.speed || is_close || group.told_at == engine_.now()) return;
  group.speed = speed;
  group.told_at = engine_.now();
  if (key.job == 0) return;
  const bool is_ordered = key.cap_W > 0 || key.ceiling < 1;
  group.event = recorder_.event(
      engine_.now(), sim::Phase::observation, recorder_.kind("GPU speed", "of full speed"),
      zones_[key.zone].subject, is_ordered ? cause_ : zones_[key.zone].cause, speed);
}

void FacilityGpus::step() {
  const Time now = engine_.now();
  ++epoch_;
  for (auto& [key, group] : groups_) {
    if (!group.lump) continue;
    group.lump->advance(now);
    const bool is_at_rest = now >= group.lump->settled_at();
    const bool trains = key.job == 0 || steps_[key.job].mode == Mode::training;
    if (is_at_rest && trains) {
      group.lump.reset();
      --lumps_;
      tell(key, group, point_of(group.load));
    } else {
      tell(key, group, group.lump->point());
    }
    if (group.point.limit == models::GpuLimit::shutdown) zones_[key.zone].is_off = true;
  }
  arm();
  on_change_();
}

void FacilityGpus::arm() {
  if (lumps_ == 0) return wake_.cancel();
  std::optional<Time> next;
  for (const auto& [key, group] : groups_) {
    if (!group.lump) continue;
    Time at = group.lump->settled_at();
    if (at <= engine_.now()) at = Time::max();  // it idles, and stays ready to train
    if (const auto event = group.lump->next_event()) at = std::min(at, *event);
    if (!next || at < *next) next = at;
  }
  if (next)
    wake_.arm_at(std::max(*next, engine_.now()));
  else
    wake_.cancel();
}

}  // namespace trainyard::scenarios
