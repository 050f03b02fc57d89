#include "models/training/job.hpp"

#include <algorithm>
#include <utility>

#include "models/training/checkpoints.hpp"
#include "sim/check.hpp"

/// The story of a job. What happens to it from outside is in job_events.cpp, its bookkeeping in
/// job_parts.cpp.
namespace trainyard::models {

using sim::any_of;
using sim::Phase;
using sim::Process;
using topologies::HostId;

Process Job::life() {
  co_await engine_.until(start_of_run + setup_.spec.start, Phase::arrival);
  if (!can_start()) co_return;
  co_await gang();
  for (;;) {
    run_ = engine_.spawn(setup_.name + " run", run());
    while (!run_.done() && !must_stop()) co_await any_of(engine_, run_, stopped_);
    if (run_.done() && why_ended_ == Why::done) break;
    const bool is_peaceful = run_.done();
    run_.stop();  // destroys it: a save or a load under way is withdrawn
    enter(is_peaceful ? JobState::replacing : JobState::detecting);
    stop_work();
    if (!is_peaceful) {
      co_await detection();
      co_await diagnosis();
    }
    co_await replacement();
  }
  finish();
}

/// From start-up to the last step, if nothing happens.
Process Job::run() {
  why_ended_ = Why::done;
  restore();
  enter(JobState::starting);
  report(starting_, Phase::completion);
  co_await engine_.delay(start_up());
  const std::optional<CheckpointVault::Choice> from = saves_.newest();
  if (setup_.spec.restart.load && progress_.steps() > 0 && from) {
    enter(JobState::loading);
    co_await saves_.load(*from);
  }
  begin_training();
  for (;;) {
    co_await train_until_due();
    if (is_done()) co_return;
    const bool goes = must_leave() || wants_to_regrow();
    if (goes || warned_until_) {
      if (saves_.can_save()) {
        enter(JobState::saving);
        co_await saves_.save(true);
      }
      warned_until_.reset();
      if (goes) {
        why_ended_ = must_leave() ? Why::leaves : Why::regrows;
        co_return;
      }
    } else {
      enter(JobState::saving);
      co_await saves_.save(false);
    }
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
      co_await stand_until_back();
      continue;
    }
    enter(JobState::training);
    const std::int64_t steps =
        setup_.every_step ? std::min<std::int64_t>(steps_to_go(), 1) : steps_to_go();
    if (steps == 0) co_return;
    const Time due = add(engine_.now(), progress_.time_to(steps));
    // What it would hear of while it waits.
    const auto holds = [&] { return !is_profile_stale_ && steps_to_go() == steps; };
    const bool waits = setup_.every_step || (!saves_.glide_to(due, holds) && holds());
    if (waits) co_await any_of(engine_, engine_.until(due), pace_);
    settle();
  }
}

/// Without a path: until the fabric changes, or the watchdog gives up those whose adapters have
/// none.
Process Job::stand_until_back() {
  const Time give_up = add(segments_.back().start, setup_.spec.restart.watchdog);
  while (!is_profile_stale_) {
    if (engine_.now() >= give_up) {
      give_up_cut_off_servers();
      co_await pace_.wait();
    } else {
      co_await any_of(engine_, engine_.until(give_up), pace_);
    }
  }
}

Process Job::detection() {
  while (engine_.now() < earliest_found()) {
    const Time found = earliest_found();
    co_await any_of(engine_, engine_.until(found), stopped_);
  }
  for (const Fault& fault : faults_)
    if (fault.found_at <= engine_.now() && !interruptions_[fault.row].found)
      interruptions_[fault.row].found = engine_.now();
  report(found_, Phase::completion);
}

/// Who of those that stopped the job is broken? Whoever is missed stays, and strikes again.
Process Job::diagnosis() {
  const RestartSpec& restart = setup_.spec.restart;
  sim::Stream luck = engine_.random("jobs/" + setup_.name + "/diagnosis").child(diagnoses_++);
  const Duration d = draw(restart.diagnosis, luck);
  if (d > Duration::zero()) {
    enter(JobState::diagnosing);
    co_await engine_.delay(d);
  }
  for (Fault& fault : faults_) {
    const double u = luck.uniform();
    if (!fault.stops_at_once() || !fault.replaces || u >= restart.misdiagnosis) continue;
    fault.is_missed = true;
    ++counted_.misdiagnoses;
    report(missed_, Phase::completion);
  }
}

/// From here to the next start the job is stopped and examined: what breaks now is found at once.
Process Job::replacement() {
  if (somebody_leaves()) {
    enter(JobState::replacing);
    // Who leaves in peace is already known, and others wait for it.
    if (why_ended_ == Why::leaves) let_go_of_struck();
    co_await engine_.delay(setup_.spec.restart.replace);
  }
  let_go_of_struck();
  co_await wait_for_servers();
}

Process Job::wait_for_servers() {
  const ElasticSpec& elastic = setup_.spec.elastic;
  const Time patience = add(engine_.now(), elastic.patience);
  while (held_ < servers_needed_) {
    if (elastic.enabled && engine_.now() >= patience && whole_replicas() >= elastic.min_data) {
      take_size(whole_replicas());
      co_return;
    }
    enter(JobState::waiting);
    if (elastic.enabled && engine_.now() < patience) {
      co_await any_of(engine_, complete_, stopped_, engine_.until(patience));
    } else {
      co_await any_of(engine_, complete_, stopped_);
    }
    let_go_of_struck();
  }
  take_size(replicas());
}

Process Job::gang() {
  enter(JobState::queued);
  pool_.ask_gang(*this, servers_needed_);
  co_await complete_.wait();
  first_start_ = engine_.now();
  take_size(replicas());
  report(placed_, Phase::decision, double(servers_needed_));
}

void Job::finish() {
  enter(JobState::done);
  ended_ = engine_.now();
  saves_.interrupt("the job is done", {});
  for (const HostId server : placement_.servers)
    if (server.is_valid()) pool_.release(*this, server);
  pool_.withdraw(*this);
  placement_.servers.clear();
  training_on_.clear();
  held_ = 0;
  report(done_, Phase::completion, double(progress_.steps()));
}

Job::Job(sim::Engine& engine, sim::Recorder& recorder, ServerPool& pool, const StoreShelf& stores,
         StepSource& steps, JobSetup setup, std::unique_ptr<DataFeed> feed, StoreAccess data_store)
    : engine_(engine),
      pool_(pool),
      steps_(steps),
      recorder_(recorder),
      setup_(std::move(setup)),
      servers_needed_((setup_.spec.gpus + pool.shape().gpus_per_server - 1) /
                      pool.shape().gpus_per_server),
      gpus_per_server_(pool.shape().gpus_per_server),
      since_(engine.now()),
      active_(servers_needed_),
      active_gpus_(setup_.spec.gpus),
      progress_(setup_.spec.gpus),
      saves_(engine, recorder, *this, progress_, steps, stores, setup_.spec.checkpoint, setup_.name,
             setup_.checkpoint_size, setup_.spec.gpus, servers_needed_),
      feed_(std::move(feed)),
      data_store_(std::move(data_store)),
      stopped_(setup_.name + " stopped"),
      pace_(setup_.name + " pace changed"),
      complete_(setup_.name + " has all servers"),
      paths_changed_(setup_.name + " paths changed"),
      found_timer_(engine, Phase::completion, [this] { stopped_.notify_all(); }),
      regrow_timer_(engine, Phase::completion, [this] { pace_.notify_all(); }),
      step_changed_timer_(engine, Phase::decision, [this] { neighbours_->step_changed(*this); }),
      subject_(recorder.subject(setup_.name)),
      placed_(recorder.kind("job placed", "servers")),
      interrupted_(recorder.kind("job struck", "")),
      found_(recorder.kind("failure found", "")),
      missed_(recorder.kind("failure missed by the diagnosis", "")),
      let_go_(recorder.kind("servers let go", "servers")),
      starting_(recorder.kind("job starting", "")),
      restored_(recorder.kind("job goes back", "step")),
      resumed_(recorder.kind("job training", "step")),
      done_(recorder.kind("job done", "step")),
      reroute_(recorder.kind("job traffic rerouted", "s")),
      cut_(recorder.kind("job cut off", "")),
      gave_up_(recorder.kind("watchdog gives servers up", "servers")),
      warned_(recorder.kind("job warned", "s")),
      leaving_(recorder.kind("server to leave in peace", "")),
      shrunk_(recorder.kind("job shrinks", "replicas")),
      grown_(recorder.kind("job grows back", "replicas")),
      data_wait_(recorder.kind("steps wait for data", "share")) {
  check(setup_.spec.gpus > 0, "a job has GPUs", setup_.spec.gpus);
  open_segment();
  life_ = engine_.spawn(setup_.name, life());
  if (feed_) feed_watch_ = engine_.spawn(setup_.name + " data", watch_feed());
}

Job::~Job() {
  life_.stop();
  run_.stop();
  feed_watch_.stop();
}

void Job::close() {
  restore();  // if work is void and nothing has been loaded yet
  life_.stop();
  run_.stop();
  feed_watch_.stop();
  saves_.stop();
  found_timer_.cancel();
  regrow_timer_.cancel();
  step_changed_timer_.cancel();
  settle();
  close_segment();
  if (!data_waits_.empty() && is_waiting_for_data_) data_waits_.back().end = engine_.now();
  if (!ended_) ended_ = engine_.now();
  const Duration under_way = progress_.done_of_step();
  progress_.end();
  ledger_.add(progress_.kept().ledger);
  kept_in_steps_ = progress_.kept().time - under_way;
}

}  // namespace trainyard::models
