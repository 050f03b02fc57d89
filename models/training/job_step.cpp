#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "models/training/job.hpp"

/// A job and its step: which profile it runs under, what it waits for, when it cannot run.
namespace trainyard::models {

using sim::Process;
using topologies::HostId;

namespace {

/// As a step while nothing at all comes from the store: next to no progress.
constexpr Duration nothing_comes = std::chrono::hours(24);

}  // namespace

/// False: the step cannot run.
bool Job::use_profile() {
  is_profile_stale_ = false;
  if (is_suspended_) {
    cut_off_by_ = "its racks are suspended to save power";
    is_cut_for_good_ = false;
    enter(JobState::cut_off);
    return false;
  }
  if (is_blocked_) {
    stand_cut_off();
    return false;
  }
  const StepProfile& bare = steps_.profile(placement());
  if (!bare.cut_off.empty()) {
    cut_off_by_ = bare.cut_off;
    is_cut_for_good_ = bare.is_cut_for_good;
    stand_cut_off();
    return false;
  }
  cut_off_by_.clear();
  const StepProfile& now = with_data_wait(bare);
  note_throttle(now);
  if (!profiles_.empty() && profiles_[profile_] == &now) {
    progress_.set_profile(now);
    return true;
  }
  if (state_ == JobState::training) close_segment();
  const auto known = std::find(profiles_.begin(), profiles_.end(), &now);
  profile_ = static_cast<std::uint32_t>(known - profiles_.begin());
  if (known == profiles_.end()) profiles_.push_back(&now);
  progress_.set_profile(now);
  if (state_ == JobState::training) open_segment();
  return true;
}

void Job::set_speeds(std::map<HostId, double> speeds, sim::EventIndex cause) {
  if (speeds == speeds_) return;
  settle();
  speeds_ = std::move(speeds);
  if (cause.is_valid()) throttled_by_ = cause;
  step_is_another();
  refresh_profile();
}

void Job::suspend(bool is_suspended, sim::EventIndex cause) {
  if (is_suspended == is_suspended_) return;
  settle();
  is_suspended_ = is_suspended;
  recorder_.event(engine_.now(), sim::Phase::decision,
                  recorder_.kind(is_suspended ? "job suspended" : "job no longer suspended", ""),
                  subject_, cause, 0);
  refresh_profile();
}

/// Of the chain that began with whatever slowed the clocks: what it does to the step, and which
/// part of it goes to the account `slow`.
void Job::note_throttle(const StepProfile& profile) {
  if (!throttled_by_) return;
  const Duration slow = profile.parts[std::size_t(StepPart::slow)];
  const sim::EventIndex step =
      recorder_.event(engine_.now(), sim::Phase::decision, recorder_.kind("step time", "s"),
                      subject_, *throttled_by_, to_seconds(profile.step));
  recorder_.event(engine_.now(), sim::Phase::decision,
                  recorder_.kind("GPU time to account slow", "share"), subject_, step,
                  to_seconds(slow) / to_seconds(profile.step));
  throttled_by_.reset();
}

/// The step with what it waits for its batch.
const StepProfile& Job::with_data_wait(const StepProfile& bare) {
  if (!feed_) return bare;
  feed_->train(bare.step);
  if (!data_store_.on_fabric.empty() && seconds_per_step_without_store_ == 0) {
    seconds_per_step_without_store_ = to_seconds(bare.step);
    StoreFlow flow;
    flow.store = data_store_.on_fabric;
    flow.is_write = false;
    flow.name = "batches from " + setup_.spec.data->store;
    flow.rate = BytesPerSecond(setup_.spec.data->sample.value() * double(setup_.spec.global_batch) /
                               (seconds_per_step_without_store_ * double(active_)));
    saves_.set_data_flow(std::move(flow));
  }
  const Duration wait = std::max(std::min(feed_->step(), nothing_comes), bare.step) - bare.step;
  const StepProfile* now = &bare;
  if (wait > Duration::zero()) {
    auto& kept = waiting_profiles_[{&bare, wait}];
    if (!kept) {
      kept = std::make_unique<StepProfile>(bare);
      kept->step += wait;
      kept->parts[std::size_t(StepPart::data_stall)] += wait;
      Watts least = bare.power.empty() ? Watts(0) : bare.power.front().power;
      for (const PowerPhase& phase : bare.power) least = std::min(least, phase.power);
      if (!bare.power.empty()) kept->power.push_back({wait, least});
      for (LinkUse& use : kept->busiest_links)
        use.utilisation *= to_seconds(bare.step) / to_seconds(kept->step);
    }
    now = kept.get();
  }
  note_data_wait(wait > Duration::zero() ? to_seconds(wait) / to_seconds(now->step) : 0.0);
  return *now;
}

/// Opens, goes on with or closes a row of data waits.
void Job::note_data_wait(double share) {
  const std::string limit = share > 0 ? feed_->limit() : std::string();
  if (is_waiting_for_data_ && share > 0 && data_waits_.back().share == share &&
      data_waits_.back().limit == limit)
    return;
  if (is_waiting_for_data_) {
    data_waits_.back().end = engine_.now();
    if (data_waits_.back().end == data_waits_.back().start) data_waits_.pop_back();
  }
  is_waiting_for_data_ = share > 0;
  if (!is_waiting_for_data_) return;
  data_waits_.push_back({engine_.now(), engine_.now(), share, limit});
  note(data_wait_, share);
}

/// The queue ran empty or filled up, or the supply changed.
Process Job::watch_feed() {
  for (;;) {
    co_await feed_->changed().wait();
    if (state_ != JobState::training) continue;
    settle();
    refresh_profile();
  }
}

void Job::stand_cut_off() {
  if (is_blocked_) {
    const auto server = std::find_if(training_on_.begin(), training_on_.end(),
                                     [&](HostId s) { return !pool_.flags(s).connected; });
    cut_off_by_ = server == training_on_.end()
                      ? std::string("an adapter has no link")
                      : "an adapter of " + topologies::Fabric::name(*server) + " has no link";
    is_cut_for_good_ = false;
  }
  counted_.last_cut = cut_off_by_;
  if (state_ == JobState::cut_off) return;
  enter(JobState::cut_off);
  ++counted_.cuts;
  if (!is_blocked_) note(cut_, 0);
}

// --- other jobs on the fabric
// ---------------------------------------------------------------------

void Job::share_fabric(FabricNeighbours& neighbours) {
  neighbours_ = &neighbours;
  neighbours.join(*this);
}

void Job::on_transfers_changed(std::vector<StoreFlow> transfers) {
  neighbours_->set_transfers(*this, std::move(transfers));
}

void Job::on_neighbours_changed() {
  std::vector<StoreFlow> transfers = neighbours_->transfers_of_others(*this);
  const bool is_new = transfers != neighbours_transfers_;
  neighbours_transfers_ = std::move(transfers);
  is_look_due_ = true;
  if (is_new) steps_.set_others(neighbours_transfers_, {});
  saves_.update_limits();
  if (!is_new || !is_on_fabric()) return;
  settle();
  refresh_profile();
}

/// The steps of the others matter to a transfer only, and are worked out when one needs them.
void Job::look_at_neighbours() const {
  if (!std::exchange(is_look_due_, false)) return;
  steps_.set_others(neighbours_transfers_, neighbours_->steps_of_others(*this));
}

/// The step started or stopped, or its collectives take other links.
void Job::step_is_another() {
  on_links_.reset();
  if (has_neighbours()) step_changed_timer_.arm(Duration::zero());
}

StepOnLinks Job::step_on_links() {
  if (!is_in_training_ || is_blocked_) return {};
  if (!on_links_) on_links_ = steps_.on_links(placement());
  return *on_links_;
}

Placement Job::placement() const {
  Placement p;
  p.servers = training_on_;
  for (const Fault& fault : faults_) {
    if (fault.effect != Effect::slow) continue;
    const auto rank = std::find(p.servers.begin(), p.servers.end(), fault.servers.front());
    const std::int64_t first = (rank - p.servers.begin()) * gpus_per_server_;
    const bool is_gpu = fault.component == Component::gpu;
    const std::int64_t place = is_gpu ? fault.unit % gpus_per_server_ : 0;
    for (std::int64_t i = 0; i < (is_gpu ? 1 : gpus_per_server_); ++i)
      if (first + place + i < active_gpus_) p.slow.push_back({first + place + i, fault.speed});
  }
  for (std::size_t rank = 0; !speeds_.empty() && rank < p.servers.size(); ++rank) {
    const auto throttled = speeds_.find(p.servers[rank]);
    if (throttled == speeds_.end()) continue;
    for (std::int64_t i = 0; i < gpus_per_server_; ++i)
      if (const std::int64_t gpu = std::int64_t(rank) * gpus_per_server_ + i; gpu < active_gpus_)
        p.slow.push_back({gpu, throttled->second});
  }
  // A GPU that is slow for two reasons counts once, with the worse.
  std::sort(p.slow.begin(), p.slow.end(), [](const SlowGpu& a, const SlowGpu& b) {
    return a.gpu != b.gpu ? a.gpu < b.gpu : a.speed < b.speed;
  });
  const auto same = [](const SlowGpu& a, const SlowGpu& b) { return a.gpu == b.gpu; };
  p.slow.erase(std::unique(p.slow.begin(), p.slow.end(), same), p.slow.end());
  return p;
}

std::int64_t Job::steps_to_go() const {
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();
  if (setup_.spec.steps) steps = *setup_.spec.steps - progress_.steps();
  steps = std::min(steps, saves_.steps_to_due());
  if (must_leave() || warned_until_ || wants_to_regrow())
    steps = std::min<std::int64_t>(steps, progress_.is_between_steps() ? 0 : 1);
  return steps;
}

bool Job::is_done() const {
  return setup_.spec.steps && progress_.steps() >= *setup_.spec.steps;
}

}  // namespace trainyard::models
