#include "models/training/job.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

using sim::any_of;
using sim::Phase;
using sim::Process;
using topologies::HostId;

std::string_view name_of(JobState state) {
  constexpr std::string_view names[] = {"queued",    "starting",  "loading",   "training",
                                        "saving",    "detecting", "replacing", "waiting",
                                        "rerouting", "cut off",   "done"};
  return names[static_cast<std::size_t>(state)];
}

// --- the story -----------------------------------------------------------------------------------

Process Job::life() {
  co_await engine_.until(start_of_run + setup_.spec.start, Phase::arrival);
  if (!can_start()) co_return;
  co_await gang();
  for (;;) {
    run_ = engine_.spawn(setup_.name + " run", run());
    while (!run_.done() && !must_stop()) co_await any_of(engine_, run_, stopped_);
    if (run_.done()) break;
    run_.stop();  // destroys it: a save or a load under way is withdrawn
    drain_.stop();
    enter(JobState::detecting);
    lose_work();
    co_await detection();
    co_await replacement();
  }
  finish();
}

/// From start-up to the last step, if nothing happens.
Process Job::run() {
  enter(JobState::starting);
  report(starting_, Phase::completion);
  co_await engine_.delay(setup_.spec.restart.start_up);
  if (setup_.spec.restart.load && store_ != nullptr && progress_.steps() > 0) {
    enter(JobState::loading);
    co_await store_->load(servers_needed_, setup_.checkpoint_size);
  }
  is_profile_stale_ = true;
  note_resumed();
  co_await train_until_due();
  while (!is_done()) {
    co_await save();
    co_await train_until_due();
  }
}

Process Job::train_until_due() {
  for (;;) {
    if (engine_.now() < converged_at_) {
      enter(JobState::rerouting);
      co_await any_of(engine_, engine_.until(converged_at_), pace_);
      continue;
    }
    if ((is_profile_stale_ || setup_.every_step) && !use_profile()) {
      co_await pace_.wait();
      continue;
    }
    enter(JobState::training);
    const std::int64_t steps =
        setup_.every_step ? std::min<std::int64_t>(steps_to_go(), 1) : steps_to_go();
    if (steps == 0) co_return;
    co_await any_of(engine_, engine_.delay(progress_.time_to(steps)), pace_);
    settle();
  }
}

/// Training stands still until the state is safe (synchronous), or copied to host memory
/// (asynchronous).
Process Job::save() {
  const bool was_late = progress_.is_overdue(setup_.spec.checkpoint.interval);
  enter(JobState::saving);
  progress_.snapshot();
  checkpoints_.push_back(
      {engine_.now(), progress_.steps(), setup_.checkpoint_size, {}, {}, false, was_late});
  note(save_began_, double(progress_.steps()));
  if (setup_.spec.checkpoint.mode == SaveMode::synchronous) {
    co_await store_->save(servers_needed_, setup_.checkpoint_size);
    checkpoints_.back().stall_end = engine_.now();
    complete_save();
  } else {
    co_await engine_.delay(stall_);
    checkpoints_.back().stall_end = engine_.now();
    is_draining_ = true;
    drain_ = engine_.spawn(setup_.name + " drain", drain());
  }
}

/// The part of an asynchronous save behind training; the next save waits for it.
Process Job::drain() {
  co_await store_->save(servers_needed_, setup_.checkpoint_size);
  is_draining_ = false;
  settle();
  complete_save();
  pace_.notify_all();
}

Process Job::detection() {
  while (engine_.now() < earliest_found()) {
    const Time found = earliest_found();
    co_await any_of(engine_, engine_.until(found), stopped_);
  }
  for (const Fault& fault : faults_)
    if (fault.found_at <= engine_.now()) interruptions_[fault.row].found = engine_.now();
  report(found_, Phase::completion);
}

/// From here to the next start the job is stopped and examined: what breaks now is found at once.
Process Job::replacement() {
  if (somebody_leaves()) {
    enter(JobState::replacing);
    co_await engine_.delay(setup_.spec.restart.replace);
  }
  let_go_of_struck();
  while (held_ < servers_needed_) {
    enter(JobState::waiting);
    co_await any_of(engine_, complete_, stopped_);
    let_go_of_struck();
  }
}

Process Job::gang() {
  enter(JobState::queued);
  pool_.ask_gang(*this, servers_needed_);
  co_await complete_.wait();
  first_start_ = engine_.now();
  report(placed_, Phase::decision, double(servers_needed_));
}

void Job::finish() {
  enter(JobState::done);
  ended_ = engine_.now();
  drain_.stop();
  for (const HostId server : placement_.servers) pool_.release(*this, server);
  placement_.servers.clear();
  held_ = 0;
  report(done_, Phase::completion, double(progress_.steps()));
}

// --- what happens to it --------------------------------------------------------------------------

void Job::on_strike(const Strike& strike) {
  settle();
  const Failure& failure = strike.failure;
  cause_ = failure.event;
  report(interrupted_, Phase::failure);

  InterruptionRow row;
  row.when = engine_.now();
  row.cls = failure.cls;
  row.server = strike.servers.front();
  row.servers = std::int64_t(strike.servers.size());
  row.event = cause_;
  Fault fault{interruptions_.size(),
              failure.unit,
              add(engine_.now(), failure.detection),
              {},
              &failure.cls->spec};
  fault.servers.assign(strike.servers.begin(), strike.servers.end());
  interruptions_.push_back(row);
  faults_.push_back(std::move(fault));

  if (failure.cls->spec.effect == Effect::slow) {
    found_timer_.arm_at(
        std::max(engine_.now(), earliest_found()));  // others may be found, but not yet gone
    refresh_profile();
  } else {
    stopped_.notify_all();
  }
}

void Job::on_granted(HostId server, HostId instead_of) {
  settle();
  ++held_;
  if (instead_of.is_valid()) {
    const auto vacancy = std::find_if(vacancies_.begin(), vacancies_.end(),
                                      [&](const Vacancy& v) { return v.left == instead_of; });
    check(vacancy != vacancies_.end(), "a server comes instead of one that left",
          instead_of.index());
    placement_.servers[vacancy->rank] = server;
    vacancies_.erase(vacancy);
  } else {
    placement_.servers.push_back(server);
  }
  if (held_ == servers_needed_) complete_.notify_all();
}

void Job::on_links_changed(const LinksChanged& change) {
  const bool is_on_fabric = state_ == JobState::training || state_ == JobState::saving ||
                            state_ == JobState::rerouting || state_ == JobState::cut_off;
  const bool is_hit =
      is_on_fabric && held_ == servers_needed_ && steps_.uses(placement(), change.links);
  steps_.links_changed(change.links);
  if (!is_on_fabric) return;  // it asks for its profile when it starts
  settle();
  if (change.is_lost && is_hit) {
    ++reroutes_;
    converged_at_ = add(engine_.now(), setup_.convergence);
    recorder_.event(engine_.now(), Phase::failure, reroute_, subject_, change.event,
                    to_seconds(setup_.convergence));
  }
  if (change.is_lost && !is_hit) return;
  refresh_profile();
}

void Job::refresh_profile() {
  is_profile_stale_ = true;
  pace_.notify_all();
}

void Job::close() {
  life_.stop();
  run_.stop();
  drain_.stop();
  found_timer_.cancel();
  settle();
  close_segment();
  if (!ended_) ended_ = engine_.now();
  const Duration under_way = progress_.done_of_step();
  progress_.end();
  ledger_.add(progress_.kept().ledger);
  kept_in_steps_ = progress_.kept().time - under_way;
}

// --- its parts -----------------------------------------------------------------------------------

Job::Job(sim::Engine& engine, sim::Recorder& recorder, ServerPool& pool, SharedStore* store,
         StepSource& steps, JobSetup setup)
    : engine_(engine),
      pool_(pool),
      store_(store),
      steps_(steps),
      recorder_(recorder),
      setup_(std::move(setup)),
      servers_needed_((setup_.spec.gpus + pool.shape().gpus_per_server - 1) /
                      pool.shape().gpus_per_server),
      gpus_per_server_(pool.shape().gpus_per_server),
      stall_(checkpoint_stall(setup_.spec.checkpoint, setup_.checkpoint_size, setup_.spec.gpus)),
      since_(engine.now()),
      progress_(setup_.spec.gpus),
      stopped_(setup_.name + " stopped"),
      pace_(setup_.name + " pace changed"),
      complete_(setup_.name + " has all servers"),
      found_timer_(engine, Phase::completion, [this] { stopped_.notify_all(); }),
      subject_(recorder.subject(setup_.name)),
      placed_(recorder.kind("job placed", "servers")),
      interrupted_(recorder.kind("job struck", "")),
      found_(recorder.kind("failure found", "")),
      let_go_(recorder.kind("servers let go", "servers")),
      starting_(recorder.kind("job starting", "")),
      resumed_(recorder.kind("job training", "step")),
      save_began_(recorder.kind("save began", "step")),
      save_complete_(recorder.kind("save complete", "step")),
      save_lost_(recorder.kind("save lost", "step")),
      done_(recorder.kind("job done", "step")),
      reroute_(recorder.kind("job traffic rerouted", "s")),
      cut_(recorder.kind("job cut off", "")) {
  check(setup_.spec.gpus > 0, "a job has GPUs", setup_.spec.gpus);
  open_segment();
  life_ = engine_.spawn(setup_.name, life());
}

Job::~Job() {
  life_.stop();
  run_.stop();
  drain_.stop();
}

void Job::enter(JobState state) {
  settle();
  if (state == state_) return;
  close_segment();
  state_ = state;
  open_segment();
}

/// Time since the last call, into the ledger or, if it was spent in steps, into the progress.
void Job::settle() {
  const Duration d = engine_.now() - since_;
  since_ = engine_.now();
  if (d == Duration::zero() || held_ == 0) return;
  const std::int64_t held = held_ * gpus_per_server_;
  const std::int64_t used = std::min<std::int64_t>(held, setup_.spec.gpus);
  ledger_.add(Account::unallocated, held - used, d);  // of a last server that is not used in full
  switch (state_) {
    case JobState::training:
      progress_.advance(d);
      break;
    case JobState::saving:
      ledger_.add(Account::checkpoint_stall, used, d);
      break;
    case JobState::detecting:
      ledger_.add(Account::detection, used, d);
      break;
    case JobState::starting:
    case JobState::loading:
    case JobState::replacing:
      ledger_.add(Account::restart, used, d);
      break;
    case JobState::queued:
    case JobState::waiting:
      ledger_.add(Account::waiting_for_nodes, used, d);
      break;
    case JobState::rerouting:
    case JobState::cut_off:
      ledger_.add(Account::down_connected, used, d);
      break;
    case JobState::done:
      check(false, "a job that is done holds nothing", held_);
  }
}

void Job::open_segment() {
  SegmentRow row;
  row.start = engine_.now();
  row.state = state_;
  row.profile = profile_;
  segments_.push_back(row);
  steps_at_segment_start_ = progress_.steps();
}

void Job::close_segment() {
  SegmentRow& row = segments_.back();
  row.end = engine_.now();
  row.servers = held_;
  if (state_ == JobState::training) row.steps = progress_.steps() - steps_at_segment_start_;
  if (row.end == row.start && row.steps == 0) segments_.pop_back();
}

/// False: the step cannot run.
bool Job::use_profile() {
  is_profile_stale_ = false;
  const StepProfile& now = steps_.profile(placement());
  if (!now.cut_off.empty()) {
    stand_cut_off(now);
    return false;
  }
  cut_off_by_.clear();
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

void Job::stand_cut_off(const StepProfile& profile) {
  enter(JobState::cut_off);
  if (cut_off_by_.empty()) {
    ++cuts_;
    note(cut_, 0);
  }
  cut_off_by_ = last_cut_ = profile.cut_off;
  is_cut_for_good_ = profile.is_cut_for_good;
}

Placement Job::placement() const {
  Placement p = placement_;
  for (const Fault& fault : faults_) {
    if (fault.spec->effect != Effect::slow) continue;
    const auto rank = std::find(p.servers.begin(), p.servers.end(), fault.servers.front());
    const std::int64_t first = (rank - p.servers.begin()) * gpus_per_server_;
    const bool is_gpu = fault.spec->component == Component::gpu;
    const std::int64_t place = is_gpu ? fault.unit % gpus_per_server_ : 0;
    for (std::int64_t i = 0; i < (is_gpu ? 1 : gpus_per_server_); ++i)
      if (first + place + i < setup_.spec.gpus)
        p.slow.push_back({first + place + i, fault.spec->speed});
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
  if (setup_.spec.checkpoint.enabled && !is_draining_)
    steps = std::min(steps, progress_.steps_to(setup_.spec.checkpoint.interval));
  return steps;
}

bool Job::is_done() const {
  return setup_.spec.steps && progress_.steps() >= *setup_.spec.steps;
}

bool Job::must_stop() const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    return fault.spec->effect != Effect::slow || fault.found_at <= engine_.now();
  });
}

bool Job::somebody_leaves() const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [](const Fault& fault) { return fault.spec->replace; });
}

Time Job::earliest_found() const {
  Time earliest = Time::max();
  for (const Fault& fault : faults_) earliest = std::min(earliest, fault.found_at);
  return earliest;
}

void Job::lose_work() {
  is_draining_ = false;
  if (!checkpoints_.empty() && !checkpoints_.back().complete && !checkpoints_.back().is_lost) {
    checkpoints_.back().is_lost = true;
    note(save_lost_, double(checkpoints_.back().step));
  }
  const Work lost = progress_.interrupt();
  ledger_.add_as(Account::lost_work, lost.ledger);
  lost_time_ += lost.time;
  // It is the loss of whoever stopped the job: what crashed or hung it, else the slow one that was
  // found.
  auto guilty = std::find_if(faults_.begin(), faults_.end(),
                             [](const Fault& fault) { return fault.spec->effect != Effect::slow; });
  if (guilty == faults_.end())
    guilty = std::find_if(faults_.begin(), faults_.end(),
                          [&](const Fault& fault) { return fault.found_at <= engine_.now(); });
  interruptions_[guilty->row].lost_steps = lost.steps;
  interruptions_[guilty->row].lost_time = lost.time;
}

/// Everything that is broken leaves, and a replacement is asked for each.
void Job::let_go_of_struck() {
  settle();
  std::int64_t left = 0;
  for (const Fault& fault : faults_) {
    InterruptionRow& row = interruptions_[fault.row];
    if (!row.found) row.found = engine_.now();
    unresumed_.push_back(fault.row);
    if (!fault.spec->replace) continue;
    for (const HostId server : fault.servers) {
      const auto rank = std::find(placement_.servers.begin(), placement_.servers.end(), server);
      if (rank == placement_.servers.end()) continue;  // it left for another fault
      *rank = HostId();
      vacancies_.push_back({server, std::size_t(rank - placement_.servers.begin())});
      --held_;
      ++left;
      pool_.release(*this, server);
      pool_.ask_instead_of(*this, server);
    }
  }
  faults_.clear();
  found_timer_.cancel();
  if (left > 0) report(let_go_, Phase::decision, double(left));
}

void Job::complete_save() {
  progress_.keep();
  checkpoints_.back().complete = engine_.now();
  note(save_complete_, double(checkpoints_.back().step));
}

void Job::note_resumed() {
  report(resumed_, Phase::completion, double(progress_.steps()));
  cause_ = sim::EventIndex();
  for (const std::size_t row : unresumed_) interruptions_[row].resumed = engine_.now();
  unresumed_.clear();
}

void Job::report(sim::KindId kind, Phase phase, double value) {
  cause_ = recorder_.event(engine_.now(), phase, kind, subject_, cause_, value);
}

void Job::note(sim::KindId kind, double value) {
  recorder_.event(engine_.now(), Phase::completion, kind, subject_, cause_, value);
}

bool Job::can_start() const {
  const bool has_store = store_ != nullptr || !setup_.spec.checkpoint.enabled;
  return has_store && servers_needed_ <= pool_.shape().servers - pool_.shape().spares;
}

std::string Job::state_text() const {
  if (state_ == JobState::done) return "done";
  if (store_ == nullptr && setup_.spec.checkpoint.enabled)
    return "stalled: there is no store \"" + setup_.spec.checkpoint.store + '"';
  if (!can_start())
    return "stalled: needs " + std::to_string(servers_needed_) + " servers, the cluster has " +
           std::to_string(pool_.shape().servers - pool_.shape().spares) + " besides its spares";
  if (held_ < servers_needed_)
    return "waiting: for " + std::to_string(servers_needed_ - held_) + " of " +
           std::to_string(servers_needed_) + " servers; " + std::to_string(pool_.spare_servers()) +
           " spare, " + std::to_string(pool_.unallocated_servers()) + " unallocated, " +
           std::to_string(pool_.down_servers()) + " down";
  if (state_ == JobState::cut_off)
    return (is_cut_for_good_ ? "stalled: " : "cut off: ") + cut_off_by_;
  return "running";
}

JobStats Job::stats() const {
  JobStats s;
  s.state = state_text();
  const Time end = ended_.value_or(engine_.now());
  const Time submitted = start_of_run + setup_.spec.start;
  if (end > submitted) s.queued = first_start_.value_or(end) - submitted;
  if (first_start_) s.wall = end - *first_start_;
  const Work& kept = progress_.kept();
  s.step_time = kept.time;
  s.lost_time = lost_time_;
  s.steps_kept = kept.steps;
  if (kept.steps > 0) s.step_s = to_seconds(kept_in_steps_) / double(kept.steps);
  s.tokens = kept.tokens;
  s.model_flops = kept.model_flops;
  s.hardware_flops = kept.hardware_flops;
  if (s.wall > Duration::zero()) {
    s.goodput = to_seconds(s.step_time) / to_seconds(s.wall);
    s.ettr = to_seconds(s.step_time) / to_seconds(s.queued + s.wall);
  }
  s.interruptions = std::int64_t(interruptions_.size());
  if (s.interruptions > 0) s.mtbi_s = to_seconds(s.wall) / double(s.interruptions);
  for (const InterruptionRow& row : interruptions_) ++s.interruptions_by_class[row.cls->name];
  s.reroutes = reroutes_;
  s.cuts = cuts_;
  s.last_cut = last_cut_;
  for (const CheckpointRow& row : checkpoints_) {
    s.checkpoints += row.complete.has_value();
    s.saves_lost += row.is_lost;
    s.saves_late += row.was_late;
  }
  return s;
}

}  // namespace trainyard::models
