#include <algorithm>
#include <set>
#include <utility>

#include "models/training/job.hpp"
#include "sim/check.hpp"

/// What happens to a job from outside, and how it deals with those that are struck.
namespace trainyard::models {

using sim::Phase;
using topologies::HostId;

void Job::on_strike(const Strike& strike) {
  settle();
  const bool is_idle = std::none_of(strike.servers.begin(), strike.servers.end(), [&](HostId s) {
    return std::find(training_on_.begin(), training_on_.end(), s) != training_on_.end();
  });
  cause_ = strike.failure.event;
  report(interrupted_, Phase::failure);
  add_fault(strike);
  if (is_idle && !training_on_.empty()) {  // held by a shrunk job, which trains without them
    let_go_of_idle();
    return;
  }
  switch (strike.failure.cls->spec.effect) {
    case Effect::crash:
    case Effect::hang:
      stopped_.notify_all();
      break;
    case Effect::slow:
      arm_found_timer();
      step_is_another();
      refresh_profile();
      break;
    case Effect::corrupt:
      arm_found_timer();
      break;
    case Effect::maintenance:
      report(leaving_, Phase::decision);
      pace_.notify_all();
      stopped_.notify_all();
      break;
  }
}

void Job::add_fault(const Strike& strike) {
  const Failure& failure = strike.failure;
  const FailureClassSpec& spec = failure.cls->spec;
  InterruptionRow row;
  row.when = engine_.now();
  row.cls = failure.cls;
  row.why = failure.cls->name;
  row.effect = spec.effect;
  row.unit = unit_name(pool_.counts(), spec.component, failure.unit);
  row.server = strike.servers.front();
  row.servers = std::int64_t(strike.servers.size());
  row.event = cause_;
  Fault fault;
  fault.row = interruptions_.size();
  fault.unit = failure.unit;
  fault.found_at =
      spec.effect == Effect::maintenance ? engine_.now() : add(engine_.now(), failure.detection);
  fault.servers.assign(strike.servers.begin(), strike.servers.end());
  fault.effect = spec.effect;
  fault.component = spec.component;
  fault.speed = spec.speed;
  fault.replaces = spec.replace;
  fault.loses_power = strike.loses_power;
  fault.detection = failure.detection;
  fault.corrupt_since = engine_.now();
  interruptions_.push_back(std::move(row));
  faults_.push_back(std::move(fault));
}

/// Something else than a failure wants a server of the job.
void Job::add_leave(HostId server, const std::string& why, Effect effect) {
  InterruptionRow row;
  row.when = engine_.now();
  row.why = why;
  row.effect = effect;
  row.unit = unit_name(pool_.counts(), Component::server, std::uint32_t(server.index()));
  row.server = server;
  row.event = cause_;
  Fault fault;
  fault.row = interruptions_.size();
  fault.unit = std::uint32_t(server.index());
  fault.found_at = engine_.now();
  fault.servers = {server};
  fault.effect = effect;
  interruptions_.push_back(std::move(row));
  faults_.push_back(std::move(fault));
}

void Job::on_preempted(HostId server) {
  settle();
  cause_ = sim::EventIndex();
  report(leaving_, Phase::decision);
  add_leave(server, "preempted", Effect::maintenance);
  if (!training_on_.empty() &&
      std::find(training_on_.begin(), training_on_.end(), server) == training_on_.end()) {
    let_go_of_idle();
    return;
  }
  pace_.notify_all();
  stopped_.notify_all();
}

void Job::on_warning(const Failure& failure, std::span<const HostId> servers, Time strikes_at) {
  const bool is_of_use = setup_.spec.checkpoint.emergency && saves_.can_save() &&
                         failure.cls->spec.effect != Effect::maintenance && !servers.empty();
  if (!is_of_use || state_ != JobState::training) return;
  recorder_.event(engine_.now(), Phase::failure, warned_, subject_, failure.event,
                  to_seconds(strikes_at - engine_.now()));
  warned_until_ = strikes_at;
  pace_.notify_all();
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
  if (held_ < servers_needed_) return;
  complete_.notify_all();
  if (active_ < servers_needed_ && is_on_fabric()) {
    all_back_since_ = engine_.now();
    regrow_timer_.arm(setup_.spec.elastic.regrow_after);
  }
}

bool Job::is_on_fabric() const {
  return state_ == JobState::training || state_ == JobState::saving ||
         state_ == JobState::rerouting || state_ == JobState::cut_off;
}

void Job::on_links_changed(const LinksChanged& change) {
  if (is_blocked_ || (is_on_fabric() && change.is_lost && is_unplugged())) {
    settle();
    note_link_changes(change);
    if (is_unplugged())
      saves_.update_limits();  // nothing moves
    else
      tell_link_changes();
    refresh_profile();
    return;
  }
  const bool is_hit = is_on_fabric() && steps_.uses(placement(), change.links);
  steps_.links_changed(change.links);
  step_is_another();
  saves_.update_limits();
  paths_changed_.notify_all();
  if (!is_on_fabric()) return;  // it asks for its profile when it starts
  settle();
  if (change.is_lost && is_hit) {
    ++counted_.reroutes;
    converged_at_ = add(engine_.now(), setup_.convergence);
    recorder_.event(engine_.now(), Phase::failure, reroute_, subject_, change.event,
                    to_seconds(setup_.convergence));
  }
  if (change.is_lost && !is_hit) return;
  refresh_profile();
}

bool Job::is_unplugged() const {
  return std::any_of(training_on_.begin(), training_on_.end(),
                     [&](HostId server) { return !pool_.flags(server).connected; });
}

void Job::note_link_changes(const LinksChanged& change) {
  if (!is_blocked_) {
    is_blocked_ = true;
    converged_at_ = add(engine_.now(), setup_.convergence);
    recorder_.event(engine_.now(), Phase::failure, cut_, subject_, change.event, 0);
  }
  for (const topologies::LinkId link : change.links) {
    if (change.is_lost)
      lost_links_.insert(link);
    else if (change.is_back && lost_links_.contains(link))
      lost_links_.erase(link);
    else
      other_changes_.push_back(link);
  }
}

void Job::tell_link_changes() {
  is_blocked_ = false;
  other_changes_.insert(other_changes_.end(), lost_links_.begin(), lost_links_.end());
  if (!other_changes_.empty()) {
    steps_.links_changed(other_changes_);
    step_is_another();
  }
  saves_.update_limits();
  lost_links_.clear();
  other_changes_.clear();
  paths_changed_.notify_all();
}

void Job::on_bad_save(Time taken) {
  bool is_found = false;
  for (Fault& fault : faults_)
    if (fault.effect == Effect::corrupt && fault.corrupt_since <= taken) {
      fault.found_at = engine_.now();
      is_found = true;
    }
  if (is_found) stopped_.notify_all();
}

bool Job::is_corrupt(Time taken) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    return fault.effect == Effect::corrupt && fault.corrupt_since <= taken;
  });
}

void Job::refresh_profile() {
  is_profile_stale_ = true;
  pace_.notify_all();
}

/// Those without a link at their adapters leave; who else is cut off waits on.
void Job::give_up_cut_off_servers() {
  std::int64_t given_up = 0;
  const std::vector<HostId> servers = training_on_;
  for (const HostId server : servers) {
    if (pool_.flags(server).connected) continue;
    add_leave(server, "cut off", Effect::crash);
    ++given_up;
  }
  if (given_up == 0) return;
  ++counted_.watchdogs;
  report(gave_up_, Phase::decision, double(given_up));
  stopped_.notify_all();
}

// --- the faults that act on it -------------------------------------------------------------------

void Job::arm_found_timer() {
  // Others may be found, but not yet gone.
  found_timer_.arm_at(std::max(engine_.now(), earliest_found()));
}

Time Job::earliest_found() const {
  Time earliest = Time::max();
  for (const Fault& fault : faults_)
    if (!fault.is_missed) earliest = std::min(earliest, fault.found_at);
  return earliest;
}

bool Job::must_stop() const {
  const bool can_go_in_peace =
      state_ == JobState::training || state_ == JobState::saving || state_ == JobState::rerouting;
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    if (fault.is_missed) return false;
    if (fault.is_peaceful()) return !can_go_in_peace;
    return fault.stops_at_once() || fault.found_at <= engine_.now();
  });
}

bool Job::must_leave() const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [](const Fault& fault) { return fault.is_peaceful() && !fault.is_missed; });
}

bool Job::somebody_leaves() const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const Fault& fault) {
    return fault.replaces && !fault.is_missed && !stays_unseen(fault);
  });
}

/// A corruption that nobody has found yet survives a restart for another reason.
bool Job::stays_unseen(const Fault& fault) const {
  return fault.effect == Effect::corrupt && fault.found_at > engine_.now();
}

/// Training stands; where it will go on from is decided when everybody is there who will load it.
void Job::stop_work() {
  auto guilty = std::find_if(faults_.begin(), faults_.end(), [](const Fault& fault) {
    return fault.stops_at_once() && !fault.is_missed;
  });
  if (guilty == faults_.end())
    guilty = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& fault) {
      return fault.found_at <= engine_.now() && !fault.is_missed;
    });
  if (guilty != faults_.end()) guilty_ = guilty->row;
  saves_.interrupt(guilty_ ? interruptions_[*guilty_].why : "the job grows back", cause_);
  warned_until_.reset();
  throttled_by_.reset();
  tell_link_changes();
  if (feed_) feed_->stop();
  is_restore_pending_ = true;
}

/// Goes back to the newest state that can be loaded.
void Job::restore() {
  if (!is_restore_pending_) return;
  is_restore_pending_ = false;
  const auto choice = saves_.newest();
  const Work lost =
      progress_.restore(choice ? std::optional<SnapshotId>(choice->snapshot) : std::nullopt);
  saves_.went_back_to(choice ? std::optional<SnapshotId>(choice->snapshot) : std::nullopt);
  ledger_.add_as(Account::lost_work, lost.ledger);
  counted_.lost_time += lost.time;
  const std::string level = choice ? saves_.level_name(choice->level) : std::string();
  ++counted_.restores_by_level[level];
  report(restored_, Phase::decision, double(progress_.steps()));
  if (guilty_) {
    InterruptionRow& row = interruptions_[*guilty_];
    row.lost_steps += lost.steps;
    row.lost_time += lost.time;
    row.restored_level = level;
    row.restored_step = progress_.steps();
  }
  // What corrupts in silence goes on doing so from the restored state; if it is gone, so is it.
  std::erase_if(faults_, [&](Fault& fault) {
    if (!stays_unseen(fault) || (choice && choice->taken >= fault.corrupt_since)) return false;
    fault.corrupt_since = engine_.now();
    const auto& s = placement_.servers;
    return std::find(s.begin(), s.end(), fault.servers.front()) == s.end();
  });
}

void Job::lose_copies_of(HostId server, bool only_memory) {
  const auto rank = std::find(placement_.servers.begin(), placement_.servers.end(), server);
  if (rank != placement_.servers.end())
    saves_.lose_server(std::size_t(rank - placement_.servers.begin()), only_memory);
}

/// Everything that is broken leaves, and a replacement is asked for each. Missed faults and
/// corruption that nobody knows of stay.
void Job::let_go_of_struck() {
  settle();
  std::int64_t left = 0;
  for (const Fault& fault : faults_) {
    if (fault.is_missed || stays_unseen(fault)) continue;
    InterruptionRow& row = interruptions_[fault.row];
    if (!row.found) row.found = engine_.now();
    unresumed_.push_back(fault.row);
    if (fault.effect == Effect::corrupt) saves_.void_since(fault.corrupt_since);
    if (!fault.replaces) continue;
    for (const HostId server : fault.servers) left += let_go(server);
  }
  std::erase_if(faults_,
                [&](const Fault& fault) { return !fault.is_missed && !stays_unseen(fault); });
  found_timer_.cancel();
  if (std::any_of(faults_.begin(), faults_.end(),
                  [&](const Fault& fault) { return stays_unseen(fault); }))
    arm_found_timer();
  if (left > 0) report(let_go_, Phase::decision, double(left));
}

/// Servers that the shrunk job holds but does not use: they go without stopping it.
void Job::let_go_of_idle() {
  const Fault fault = faults_.back();
  faults_.pop_back();
  InterruptionRow& row = interruptions_[fault.row];
  row.found = row.resumed = engine_.now();
  ++counted_.idle_strikes;
  if (!fault.replaces) return;
  for (const HostId server : fault.servers) let_go(server);
}

/// False: it left for another fault.
bool Job::let_go(HostId server) {
  const auto rank = std::find(placement_.servers.begin(), placement_.servers.end(), server);
  if (rank == placement_.servers.end()) return false;
  lose_copies_of(server, false);
  *rank = HostId();
  vacancies_.push_back({server, std::size_t(rank - placement_.servers.begin())});
  --held_;
  all_back_since_.reset();
  servers_changed_ = true;
  pool_.release(*this, server);
  pool_.ask_instead_of(*this, server);
  return true;
}

void Job::note_resumed() {
  report(resumed_, Phase::completion, double(progress_.steps()));
  cause_ = sim::EventIndex();
  for (const std::size_t row : unresumed_) interruptions_[row].resumed = engine_.now();
  unresumed_.clear();
  guilty_.reset();
}

}  // namespace trainyard::models
