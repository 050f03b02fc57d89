#include <algorithm>
#include <utility>

#include "models/training/job.hpp"
#include "sim/check.hpp"

/// The bookkeeping of a job: states and their time, profiles, sizes, sums.
namespace trainyard::models {

using sim::Phase;
using sim::Process;
using topologies::HostId;

namespace {

std::uint32_t parent_of(const PoolShape& shape, HostId server, Component component) {
  const auto s = std::uint32_t(server.index());
  const auto among = [s](const std::optional<int>& servers) {
    return servers ? s / std::uint32_t(*servers) : 0u;
  };
  switch (component) {
    case Component::rack:
      return among(shape.parents.servers_per_rack);
    case Component::pdu:
      return among(shape.parents.servers_per_pdu);
    case Component::cdu:
      return among(shape.parents.servers_per_cdu);
    case Component::leaf_switch:
      return shape.leaf[s];
    default:
      return s;
  }
}

}  // namespace

std::string_view name_of(JobState state) {
  constexpr std::string_view names[] = {"queued",  "starting",  "loading",    "training",
                                        "saving",  "detecting", "diagnosing", "replacing",
                                        "waiting", "rerouting", "cut off",    "done"};
  return names[static_cast<std::size_t>(state)];
}

void Job::enter(JobState state) {
  settle();
  const bool trains =
      state == JobState::training || state == JobState::saving || state == JobState::rerouting;
  if (trains != is_in_training_) {
    is_in_training_ = trains;
    pool_.set_training(training_on_, trains);
    saves_.set_training(trains);
    step_is_another();
  }
  if (feed_ && state != JobState::training && state_ == JobState::training) {
    feed_->stand();
    is_profile_stale_ = true;  // the feed is told when steps go on
  }
  if (state == state_) return;
  close_segment();
  state_ = state;
  open_segment();
  if (state != JobState::training) note_data_wait();
}

/// Time since the last call, into the ledger or, if it was spent in steps, into the progress.
void Job::settle() {
  const Duration d = engine_.now() - since_;
  since_ = engine_.now();
  if (d == Duration::zero() || held_ == 0) return;
  const std::int64_t held = held_ * gpus_per_server_;
  const std::int64_t used = std::min<std::int64_t>(held, setup_.spec.gpus);
  ledger_.add(Account::unallocated, held - used, d);  // of a last server that is not used in full
  const std::int64_t active = std::min(used, active_gpus_);
  ledger_.add(Account::waiting_for_nodes, used - active, d);  // of replicas that are not whole
  RecoveryPhases unused;
  RecoveryPhases& phases = guilty_ ? interruptions_[*guilty_].phases : unused;
  if (active_ < servers_needed_ && state_ == JobState::training) counted_.shrunk += d;
  switch (state_) {
    case JobState::training:
      progress_.advance(d);
      break;
    case JobState::saving:
      ledger_.add(Account::checkpoint_stall, active, d);
      break;
    case JobState::detecting:
      ledger_.add(Account::detection, active, d);
      phases.detection += d;
      break;
    case JobState::starting:
      ledger_.add(Account::restart, active, d);
      phases.start_up += d;
      break;
    case JobState::loading:
      ledger_.add(Account::restart, active, d);
      phases.load += d;
      break;
    case JobState::diagnosing:
      ledger_.add(Account::restart, active, d);
      phases.diagnosis += d;
      break;
    case JobState::replacing:
      ledger_.add(Account::restart, active, d);
      phases.replace += d;
      break;
    case JobState::queued:
    case JobState::waiting:
      ledger_.add(Account::waiting_for_nodes, active, d);
      phases.waiting += d;
      break;
    case JobState::rerouting:
    case JobState::cut_off:
      ledger_.add(is_suspended_ ? Account::down_fed : Account::down_connected, active, d);
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
  steps_at_segment_start_ = progress_.trained_steps();
}

void Job::close_segment() {
  SegmentRow& row = segments_.back();
  row.end = engine_.now();
  row.servers = held_;
  if (state_ == JobState::training) row.steps = progress_.trained_steps() - steps_at_segment_start_;
  if (row.end == row.start && row.steps == 0) segments_.pop_back();
}

// --- size and start ------------------------------------------------------------------------------

/// Replicas that the servers at hand can make up, in whole servers.
std::int64_t Job::whole_replicas() const {
  const std::int64_t data = replicas();
  if (data <= 1 || servers_needed_ % data != 0) return held_ == servers_needed_ ? data : 0;
  return std::min(data, held_ / (servers_needed_ / data));
}

std::int64_t Job::replicas() const {
  const ParallelSpec& p = setup_.spec.parallel;
  return p.data.value_or(
      std::max(1, setup_.spec.gpus / std::max(1, p.tensor * p.context * p.pipeline)));
}

void Job::take_size(std::int64_t replicas_now) {
  const std::int64_t data = replicas();
  const bool is_whole = replicas_now >= data;
  const std::int64_t before = active_;
  active_ = is_whole ? servers_needed_ : servers_needed_ / data * replicas_now;
  active_gpus_ = is_whole ? setup_.spec.gpus : active_ * gpus_per_server_;
  progress_.set_gpus(active_gpus_);
  training_on_.clear();
  std::vector<bool> is_member(placement_.servers.size(), false);
  for (std::size_t rank = 0; rank < placement_.servers.size(); ++rank) {
    const HostId server = placement_.servers[rank];
    if (!server.is_valid() || std::int64_t(training_on_.size()) == active_) continue;
    training_on_.push_back(server);
    is_member[rank] = true;
  }
  saves_.set_members(is_member);
  all_back_since_.reset();
  if (active_ == before) return;
  servers_changed_ = true;
  if (!is_whole) ++counted_.shrinks;
  report(is_whole ? grown_ : shrunk_, Phase::decision, double(replicas_now));
}

bool Job::wants_to_regrow() const {
  return all_back_since_ && held_ == servers_needed_ && active_ < servers_needed_ &&
         saves_.can_save() &&
         engine_.now() >= add(*all_back_since_, setup_.spec.elastic.regrow_after);
}

Duration Job::start_up() const {
  const RestartSpec& restart = setup_.spec.restart;
  if (restart.in_place && !servers_changed_) return *restart.in_place;
  return restart.start_up +
         seconds(to_seconds(restart.start_up_per_1000_gpus) * double(active_gpus_) / 1000.0);
}

void Job::begin_training() {
  settle();  // start-up and loading belong to what stopped the job
  is_profile_stale_ = true;
  if (servers_changed_)
    saves_.set_peers([this](Component component) { return parents_of_ranks(component); });
  servers_changed_ = false;
  saves_.begin_intervals();
  seconds_per_step_without_store_ = 0;
  saves_.set_data_flow(std::nullopt);
  if (feed_)
    feed_->restart(double(progress_.steps()) * double(setup_.spec.global_batch), active_,
                   double(setup_.spec.global_batch) * double(active_) / double(servers_needed_));
  note_resumed();
  for (Fault& fault : faults_) {
    if (!fault.is_missed) continue;
    fault.is_missed = false;
    fault.found_at = add(engine_.now(), fault.detection);
    stopped_.notify_all();
  }
  if (held_ == servers_needed_ && active_ < servers_needed_) {
    all_back_since_ = engine_.now();
    regrow_timer_.arm(setup_.spec.elastic.regrow_after);
  }
}

std::vector<std::uint32_t> Job::parents_of_ranks(Component component) const {
  std::vector<std::uint32_t> parents;
  for (const HostId server : placement_.servers)
    parents.push_back(server.is_valid() ? parent_of(pool_.shape(), server, component) : 0);
  return parents;
}

// --- reports -------------------------------------------------------------------------------------

void Job::report(sim::KindId kind, Phase phase, double value) {
  cause_ = recorder_.event(engine_.now(), phase, kind, subject_, cause_, value);
}

void Job::note(sim::KindId kind, double value) {
  recorder_.event(engine_.now(), Phase::completion, kind, subject_, cause_, value);
}

bool Job::can_start() const {
  return saves_.has_stores() && servers_needed_ <= pool_.shape().servers - pool_.shape().spares;
}

std::string Job::state_text() const {
  if (state_ == JobState::done) return "done";
  if (!saves_.has_stores()) return "stalled: there is no store \"" + saves_.missing_store() + '"';
  if (!can_start())
    return "stalled: needs " + std::to_string(servers_needed_) + " servers, the cluster has " +
           std::to_string(pool_.shape().servers - pool_.shape().spares) + " besides its spares";
  if (held_ < servers_needed_ && active_ == servers_needed_)
    return "waiting: for " + std::to_string(servers_needed_ - held_) + " of " +
           std::to_string(servers_needed_) + " servers; " + std::to_string(pool_.spare_servers()) +
           " spare, " + std::to_string(pool_.unallocated_servers()) + " unallocated, " +
           std::to_string(pool_.down_servers()) + " down";
  if (state_ == JobState::cut_off)
    return (is_cut_for_good_ ? "stalled: " : "cut off: ") + cut_off_by_;
  return "running";
}

JobStats Job::stats() const {
  JobStats s = counted_;
  s.state = state_text();
  const Time end = ended_.value_or(engine_.now());
  const Time submitted = start_of_run + setup_.spec.start;
  if (end > submitted) s.queued = first_start_.value_or(end) - submitted;
  if (first_start_) s.wall = end - *first_start_;
  const Work& kept = progress_.kept();
  s.step_time = kept.time;
  s.steps_kept = kept.steps;
  if (kept.steps > 0) s.step_s = to_seconds(kept_in_steps_) / double(kept.steps);
  s.tokens = kept.tokens;
  s.model_flops = kept.model_flops;
  s.hardware_flops = kept.hardware_flops;
  if (s.wall > Duration::zero()) {
    s.goodput = to_seconds(s.step_time) / to_seconds(s.wall);
    s.ettr = to_seconds(s.step_time) / to_seconds(s.queued + s.wall);
  }
  for (const InterruptionRow& row : interruptions_) {
    const bool is_planned = row.effect == Effect::maintenance;
    ++(is_planned ? s.planned : s.interruptions);
    ++(is_planned ? s.planned_by_class : s.interruptions_by_class)[row.why];
  }
  if (s.interruptions > 0) s.mtbi_s = to_seconds(s.wall) / double(s.interruptions);
  s.saves_refused = saves_.failed();
  for (const CheckpointRow& row : saves_.rows()) {
    s.checkpoints += row.complete.has_value();
    s.saves_lost += row.is_lost;
    s.saves_late += row.was_late;
  }
  s.saves_lost -= s.saves_refused;
  double waited_s = 0, longest_s = 0;
  std::map<std::string, double> by_limit;
  for (const DataWaitRow& row : data_waits_) {
    const double d = to_seconds(row.end - row.start) * row.share;
    waited_s += d;
    if ((by_limit[row.limit] += d) > longest_s) {
      longest_s = by_limit[row.limit];
      s.data_limit = row.limit;
    }
  }
  const double in_steps_s = to_seconds(s.step_time) + to_seconds(s.lost_time);
  if (in_steps_s > 0) s.data_wait = waited_s / in_steps_s;
  return s;
}

}  // namespace trainyard::models
