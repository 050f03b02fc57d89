#include "models/training/saves.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"
#include "sim/glide.hpp"

namespace trainyard::models {

using sim::Phase;
using sim::Process;
using topologies::HostId;

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

std::vector<VaultLevel> levels_of(const CheckpointSpec& spec) {
  return spec.enabled ? vault_levels(spec.all_levels()) : std::vector<VaultLevel>{};
}

bool is_stored(LevelKind kind) {
  return kind == LevelKind::store || kind == LevelKind::off_site;
}

}  // namespace

Saves::Saves(sim::Engine& engine, sim::Recorder& recorder, Client& client, Progress& progress,
             StepSource& steps, const StoreShelf& stores, const CheckpointSpec& spec,
             std::string job, Bytes size, std::int64_t gpus, std::int64_t servers)
    : engine_(engine),
      recorder_(recorder),
      client_(client),
      progress_(progress),
      steps_(steps),
      spec_(spec),
      job_(std::move(job)),
      size_(size),
      gpus_(gpus),
      servers_(servers),
      stall_(checkpoint_stall(spec, size, gpus)),
      vault_(levels_of(spec), servers),
      next_check_(engine, Phase::completion, [this] { check_due(); }),
      subject_(recorder.subject(job_)),
      began_(recorder.kind("save began", "step")),
      complete_(recorder.kind("save complete", "step")),
      lost_(recorder.kind("save lost", "step")),
      full_(recorder.kind("save refused: store full", "step")),
      verified_(recorder.kind("save verified", "step")),
      bad_(recorder.kind("save found corrupt", "step")) {
  for (const VaultLevel& v : levels_of(spec)) {
    auto level = std::make_unique<Level>();
    level->name = v.name;
    level->spec = v.spec;
    level->at = levels_.size();
    if (is_stored(v.spec.kind)) {
      const auto found = stores.find(v.spec.store);
      if (found == stores.end() || found->second.store == nullptr)
        missing_store_ = v.spec.store;
      else
        level->own_access = found->second;
      if (missing_store_.empty()) level->access = &level->own_access;
    }
    levels_.push_back(std::move(level));
  }
}

Saves::~Saves() {
  stop();
}

void Saves::stop() {
  for (auto& level : levels_) {
    level->drain.stop();
    level->watch.stop();
  }
  load_watch_.stop();
  checks_.clear();
  next_check_.cancel();
}

// --- when ----------------------------------------------------------------------------------------

std::int64_t Saves::steps_to(const Level& level) const {
  // Once at an end of a step; after a restart there is a step first.
  if (progress_.trained_steps() <= level.trained_steps)
    return std::max<std::int64_t>(1, steps_to_interval(level));
  return steps_to_interval(level);
}

std::int64_t Saves::steps_to_interval(const Level& level) const {
  if (level.spec.every_steps)
    return std::max<std::int64_t>(progress_.is_between_steps() ? 0 : 1,
                                  *level.spec.every_steps - (progress_.steps() - level.mark.steps));
  return progress_.steps_to(*level.spec.interval - (progress_.time() - level.mark.time));
}

bool Saves::is_due(const Level& level) const {
  return level.spec.kind != LevelKind::off_site && !level.is_writing && steps_to(level) == 0;
}

std::int64_t Saves::steps_to_due() const {
  std::int64_t steps = never;
  for (const auto& level : levels_)
    if (level->spec.kind != LevelKind::off_site && !level->is_writing)
      steps = std::min(steps, steps_to(*level));
  return steps;
}

void Saves::begin_intervals() {
  for (auto& level : levels_) {
    level->mark.time = std::min(level->mark.time, progress_.time());
    level->mark.steps = std::min(level->mark.steps, progress_.steps());
    level->trained_steps = progress_.trained_steps();
  }
}

// --- the course of a save ------------------------------------------------------------------------

Process Saves::save(bool is_emergency) {
  std::vector<Level*> due;
  bool has_store = false;
  for (auto& level : levels_) has_store |= level->spec.kind == LevelKind::store;
  for (auto& level : levels_) {
    if (is_emergency ? (level->spec.kind == LevelKind::store ||
                        (!has_store && level->spec.kind != LevelKind::off_site))
                     : is_due(*level))
      due.push_back(level.get());
  }
  check(is_emergency || !due.empty(), "a save is due");
  const SnapshotId snapshot = snapshot_of_now();
  std::vector<Level*> under_way;  // of this very state
  if (is_emergency) {
    std::erase_if(due, [&](Level* level) {
      const bool is_here = has(*level, snapshot);
      if (is_here && level->is_writing) under_way.push_back(level);
      return is_here;
    });
    // What it overtakes would hold an older state.
    for (Level* level : due)
      if (level->is_writing) abort(*level, "overtaken by an emergency save");
  }
  std::erase_if(due, [&](Level* level) { return !begin(*level, snapshot, is_emergency); });

  const bool is_copied = std::any_of(due.begin(), due.end(), [&](const Level* level) {
    return level->spec.mode == SaveMode::asynchronous;
  });
  if (is_copied) co_await sim::pass(engine_, stall_);
  for (Level* level : due)
    if (level->spec.kind == LevelKind::host_memory)
      complete(*level);
    else
      level->drain = engine_.spawn(job_ + " save to " + level->name, drain(*level));
  for (Level* level : due)
    if ((is_emergency || level->spec.mode == SaveMode::synchronous) && level->is_writing)
      co_await level->drain.join();
  for (Level* level : under_way)
    if (level->is_writing) co_await level->drain.join();
  for (Level* level : due) rows_[level->row].stall_end = engine_.now();
  forget_what_no_one_needs();
}

/// One for each state: two that differ in nothing would make each other void.
SnapshotId Saves::snapshot_of_now() {
  if (!here_ || here_trained_ != progress_.trained_steps()) went_back_to(progress_.snapshot());
  return *here_;
}

void Saves::went_back_to(std::optional<SnapshotId> snapshot) {
  here_ = snapshot;
  here_trained_ = progress_.trained_steps();
}

/// Complete, or being written.
bool Saves::has(const Level& level, SnapshotId snapshot) const {
  const std::vector<CheckpointVault::Copy> copies = vault_.copies();
  return std::any_of(copies.begin(), copies.end(), [&](const CheckpointVault::Copy& copy) {
    return copy.level == level.at && copy.snapshot == snapshot;
  });
}

/// False: there is no room for it.
bool Saves::begin(Level& level, SnapshotId snapshot, bool is_emergency) {
  CheckpointRow row;
  row.start = engine_.now();
  row.step = progress_.steps();
  row.bytes = size_;
  row.level = level.name;
  row.kind = level.spec.kind;
  row.is_emergency = is_emergency;
  row.was_late = !is_emergency && level.spec.interval &&
                 progress_.time() - level.mark.time - progress_.last_step() >= *level.spec.interval;
  row.is_corrupt = client_.is_corrupt(engine_.now());
  level.mark_before = std::exchange(level.mark, {progress_.time(), progress_.steps()});
  level.trained_steps = progress_.trained_steps();
  if (level.access != nullptr && !level.access->store->reserve(size_)) {
    ++failed_;
    row.is_lost = true;
    row.why_lost = "the store is full";
    rows_.push_back(std::move(row));
    note(full_, level, double(progress_.steps()));
    return false;
  }
  level.row = rows_.size();
  rows_.push_back(std::move(row));
  level.snapshot = snapshot;
  level.save = vault_.begin(level.at, snapshot, progress_.steps(), engine_.now());
  held_[level.save] = {level.at, level.row};
  level.is_writing = true;
  note(began_, level, double(progress_.steps()));
  return true;
}

Process Saves::drain(Level& level) {
  co_await write(level);
  client_.bring_up_to_date();
  if (!vault_.is_under_way(level.save)) {  // what it was copied from was bad
    level.is_writing = false;
    co_return;
  }
  complete(level);
  client_.on_save_complete();
}

Process Saves::write(Level& level) {
  const std::int64_t servers = client_.active_servers();
  const Bytes share = size_ / double(servers);
  switch (level.spec.kind) {
    case LevelKind::host_memory:
      break;
    case LevelKind::local_nvme:
      co_await sim::pass(engine_, transfer_time(share, level.spec.write_rate));
      break;
    case LevelKind::peer_memory: {
      const std::vector<HostId> to = partners(level);
      BytesPerSecond limit = fabric_limit(to, true);
      while (limit.value() <= 0) {
        co_await client_.paths_changed().wait();
        limit = fabric_limit(to, true);
      }
      level.peer_rate = std::min(level.spec.write_rate, limit);
      update_flows();
      co_await sim::pass(engine_,
                         transfer_time(share * double(level.spec.group - 1), level.peer_rate));
      break;
    }
    case LevelKind::store:
    case LevelKind::off_site: {
      level.request = StoreRequest{};
      level.request.user = job_;
      level.request.is_write = true;
      level.request.servers = servers;
      level.request.size = size_;
      if (is_on_fabric(level)) {
        level.request.limit = fabric_limit(level.access->on_fabric, true);
        level.watch = engine_.spawn(job_ + " traffic to " + level.name, watch(level));
      }
      co_await level.access->store->move(level.request);
      break;
    }
  }
}

/// Tells the step of each change of the rate of a transfer over the training fabric.
Process Saves::watch(Level& level) {
  update_flows();  // it may have its rate already
  for (;;) {
    co_await level.access->store->changed().wait();
    update_flows();
  }
}

Process Saves::watch_load() {
  publish();
  for (;;) {
    co_await load_from_.store->changed().wait();
    publish();
  }
}

void Saves::end_load() {
  load_watch_.stop();
  if (std::exchange(is_loading_, false)) publish();
}

void Saves::complete(Level& level) {
  level.is_writing = false;
  level.watch.stop();
  vault_.complete(level.save, engine_.now());
  CheckpointRow& row = rows_[level.row];
  row.complete = engine_.now();
  note(complete_, level, double(row.step));
  update_flows();
  if (level.spec.verify) {
    checks_.emplace(add(engine_.now(), *level.spec.verify), Check{&level, level.save, level.row});
    aim_at_next_check();
  }
  if (level.spec.kind == LevelKind::store) copy_off_site(level);
  forget_what_no_one_needs();
}

void Saves::aim_at_next_check() {
  if (checks_.empty())
    next_check_.cancel();
  else
    next_check_.arm_at(checks_.begin()->first);
}

void Saves::check_due() {
  while (!checks_.empty() && checks_.begin()->first <= engine_.now()) {
    const Check check = checks_.begin()->second;
    checks_.erase(checks_.begin());
    verify(check);
  }
  aim_at_next_check();
}

bool Saves::glide_to(Time when, const std::function<bool()>& holds) {
  while (!checks_.empty() && checks_.begin()->first <= when) {
    next_check_.cancel();  // the only event of its own in the way
    if (!engine_.glide_to(checks_.begin()->first, holds)) {
      aim_at_next_check();
      return false;
    }
    check_due();
  }
  return engine_.glide_to(when, holds);
}

void Saves::verify(const Check& check) {
  if (!held_.contains(check.save)) return;  // dropped in the meantime
  CheckpointRow& row = rows_[check.row];
  if (row.is_corrupt) {
    note(bad_, *check.level, double(row.step));
    client_.on_bad_save(row.start);
  } else {
    row.verified = engine_.now();
    note(verified_, *check.level, double(row.step));
    vault_.verified(check.save, engine_.now());
    forget_what_no_one_needs();
  }
}

/// A copy from store to store, which neither the job nor its failures touch.
void Saves::copy_off_site(const Level& from) {
  for (auto& to : levels_) {
    if (to->spec.kind != LevelKind::off_site || to->is_writing) continue;
    const bool is_due = to->spec.every_steps
                            ? progress_.steps() - to->mark.steps >= *to->spec.every_steps
                            : progress_.time() - to->mark.time >= *to->spec.interval;
    if (!is_due || !to->access->store->reserve(size_)) continue;
    to->mark = {progress_.time(), progress_.steps()};
    CheckpointRow row = rows_[from.row];
    row.level = to->name;
    row.kind = to->spec.kind;
    row.stall_end = row.start;
    row.complete = row.verified = std::nullopt;
    row.was_late = false;
    to->row = rows_.size();
    rows_.push_back(std::move(row));
    to->snapshot = from.snapshot;
    to->save = vault_.begin(to->at, from.snapshot, rows_[to->row].step, rows_[to->row].start);
    held_[to->save] = {to->at, to->row};
    to->is_writing = true;
    note(began_, *to, double(rows_[to->row].step));
    to->drain = engine_.spawn(job_ + " copy to " + to->name, drain(*to));
  }
}

// --- what becomes of saves -----------------------------------------------------------------------

void Saves::abort(Level& level, const std::string& why) {
  level.drain.stop();
  level.watch.stop();
  level.is_writing = false;
  vault_.abort(level.save);
  level.mark = level.mark_before;  // its newest save is still the one before
  CheckpointRow& row = rows_[level.row];
  row.is_lost = true;
  row.why_lost = why;
  note(lost_, level, double(row.step));
  collect_gone();
}

void Saves::interrupt(const std::string& why, sim::EventIndex cause) {
  cause_ = cause;
  for (auto& level : levels_)
    if (level->is_writing && level->spec.kind != LevelKind::off_site) abort(*level, why);
  cause_ = {};
  end_load();
  update_flows();
}

/// What the vault let go of frees its room on the store.
void Saves::collect_gone() {
  for (const CheckpointVault::Gone& gone : vault_.take_gone()) {
    const auto found = held_.find(gone.save);
    if (found == held_.end()) continue;
    const Level& level = *levels_[found->second.first];
    if (level.access != nullptr) level.access->store->release(size_);
    held_.erase(found);
  }
}

void Saves::lose_server(std::size_t rank, bool only_memory) {
  if (only_memory)
    vault_.lose_power(rank);
  else
    vault_.lose_server(rank);
  collect_gone();
}

void Saves::set_members(const std::vector<bool>& is_member) {
  is_member_ = is_member;
  for (std::size_t rank = 0; rank < is_member.size(); ++rank)
    vault_.set_member(rank, is_member[rank]);
}

void Saves::void_since(Time corrupted) {
  vault_.void_since(corrupted);
  collect_gone();
}

void Saves::set_peers(const std::function<std::vector<std::uint32_t>(Component)>& parents) {
  for (const auto& level : levels_) {
    if (level->spec.kind != LevelKind::peer_memory) continue;
    const PeerGroups groups = peer_groups(std::size_t(servers_), std::size_t(level->spec.group),
                                          parents(level->spec.apart));
    std::vector<std::size_t>& partner = partner_of_[level->at];
    partner.assign(std::size_t(servers_), 0);
    for (const std::vector<std::size_t>& group : groups.groups)
      for (std::size_t i = 0; i < group.size(); ++i)
        partner[group[i]] = group[(i + 1) % group.size()];
    vault_.set_peers(level->at, groups.groups);
  }
}

/// Boxes of work before everything that can be loaded, now or after the saves under way.
void Saves::forget_what_no_one_needs() {
  collect_gone();
  if (const std::optional<SnapshotId> oldest = vault_.oldest_restorable())
    progress_.forget_before(*oldest);
}

Process Saves::load(CheckpointVault::Choice choice) {
  const Level& level = *levels_[choice.level];
  const std::int64_t servers = client_.active_servers();
  switch (level.spec.kind) {
    case LevelKind::host_memory:
      co_await engine_.delay(transfer_time(size_, spec_.host_copy_rate * double(gpus_)));
      break;
    case LevelKind::local_nvme:
    case LevelKind::peer_memory:
      co_await engine_.delay(transfer_time(size_ / double(servers), level.spec.read_rate));
      break;
    case LevelKind::store:
    case LevelKind::off_site: {
      load_ = StoreRequest{};
      load_.user = job_;
      load_.is_write = false;
      load_.servers = servers;
      load_.size = size_;
      if (is_on_fabric(level)) {
        load_.limit = fabric_limit(level.access->on_fabric, false);
        while (load_.limit.value() <= 0) {
          co_await client_.paths_changed().wait();
          load_.limit = fabric_limit(level.access->on_fabric, false);
        }
        is_loading_ = true;
        load_from_ = *level.access;
        load_name_ = "load from " + level.name;
        if (client_.has_neighbours())
          load_watch_ = engine_.spawn(job_ + " traffic from " + level.name, watch_load());
      }
      co_await level.access->store->move(load_);
      end_load();
      break;
    }
  }
}

void Saves::note(sim::KindId kind, const Level& level, double value) {
  const sim::SubjectId subject =
      levels_.size() == 1 ? subject_ : recorder_.subject(job_ + '/' + level.name);
  recorder_.event(engine_.now(), Phase::completion, kind, subject, cause_, value);
}

}  // namespace trainyard::models
