#include "models/scheduling/repair_shop.hpp"

#include "models/failures/failure_clocks.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

using sim::Phase;
using topologies::HostId;

namespace {
constexpr Duration one_day = std::chrono::hours(24);
constexpr std::uint64_t reset_place = 0, vendor_place = 1, first_test_place = 3;

Duration sum(Duration a, Duration b) {
  return b > forever - a ? forever : a + b;
}
}  // namespace

RepairShop::RepairShop(sim::Engine& engine, sim::Recorder& recorder, RepairSpec spec)
    : engine_(engine),
      recorder_(recorder),
      spec_(std::move(spec)),
      has_shifts_(spec_.night_crews && *spec_.night_crews != spec_.crews),
      luck_(engine.random("repair")),
      end_timer_(engine, Phase::completion, [this] { finish_due(); }),
      start_timer_(engine, Phase::observation, [this] { start_crews(); }),
      shift_timer_(engine, Phase::observation, [this] { start_crews(); }) {
  if (spec_.crews == 0) return;
  waiting_series_ =
      recorder.series("repair_queue", "1", "broken servers that wait for a repair crew");
  busy_series_ = recorder.series("crews_busy", "1", "repair crews at work");
}

void RepairShop::admit(HostId server, Duration hands_on, sim::EventIndex cause, RepairWay way,
                       Done done) {
  const auto [place, is_new] = visits_.try_emplace(server);
  check(is_new, "a server is repaired once at a time", server.index());
  Visit& visit = place->second;
  visit.hands_on = hands_on;
  visit.cause = cause;
  visit.luck = luck_.child(server.index()).child(visits_of_[server]++);
  visit.is_planned = way == RepairWay::planned;
  visit.done = std::move(done);
  ++stats_.visits;
  if (way == RepairWay::vendor)
    to_vendor(server, visit);
  else if (way == RepairWay::any && spec_.reset_share > 0)
    enter(server, visit, Stage::reset, spec_.reset);
  else
    after_reset(server, visit);
}

void RepairShop::enter(HostId server, Visit& visit, Stage stage, Duration lasts) {
  visit.stage = stage;
  visit.since = engine_.now();
  const Time end = add(engine_.now(), lasts);
  if (end == Time::max()) return;  // never
  ends_.emplace(end, server);
  end_timer_.arm_at(ends_.begin()->first);
}

/// No reset, or it was in vain.
void RepairShop::after_reset(HostId server, Visit& visit) {
  if (!visit.is_planned && visit.luck.uniform_at(vendor_place) < spec_.vendor_share)
    to_vendor(server, visit);
  else
    wait_for_crew(server, visit);
}

void RepairShop::to_vendor(HostId server, Visit& visit) {
  ++stats_.vendor;
  note("sent to vendor", server, visit, Phase::decision);
  sim::Stream luck = visit.luck;
  luck.bits();
  luck.bits();
  enter(server, visit, Stage::vendor, draw(spec_.vendor, luck));
}

void RepairShop::wait_for_crew(HostId server, Visit& visit) {
  visit.stage = Stage::waiting;
  visit.since = engine_.now();
  const Duration work = sum(spec_.travel, visit.hands_on);
  if (add(engine_.now(), work) == Time::max()) return;
  if (spec_.crews == 0) return begin(server, visit);
  queue_.emplace(engine_.now(), server);
  sample();
  start_timer_.arm(Duration::zero());
}

void RepairShop::begin(HostId server, Visit& visit) {
  ++stats_.repairs;
  ++busy_;
  stats_.waited += engine_.now() - visit.since;
  if (engine_.now() > visit.since) note("repair begun", server, visit, Phase::observation);
  enter(server, visit, Stage::repair, sum(spec_.travel, visit.hands_on));
}

std::int64_t RepairShop::crews_at(Time when) const {
  if (!has_shifts_) return spec_.crews;
  const Duration of_day = when.time_since_epoch() % one_day;
  return of_day >= spec_.day_start && of_day < spec_.day_end ? spec_.crews : *spec_.night_crews;
}

Time RepairShop::next_shift(Time when) const {
  const Duration of_day = when.time_since_epoch() % one_day;
  const Duration until = of_day < spec_.day_start ? spec_.day_start - of_day
                         : of_day < spec_.day_end ? spec_.day_end - of_day
                                                  : one_day - of_day + spec_.day_start;
  return add(when, until);
}

void RepairShop::start_crews() {
  const std::int64_t crews = crews_at(engine_.now());
  while (busy_ < crews && !queue_.empty()) {
    const HostId server = queue_.begin()->second;
    queue_.erase(queue_.begin());
    begin(server, visits_.at(server));
  }
  sample();
  if (has_shifts_ && !queue_.empty()) shift_timer_.arm_at(next_shift(engine_.now()));
}

void RepairShop::finish_due() {
  while (!ends_.empty() && ends_.begin()->first <= engine_.now()) {
    const HostId server = ends_.begin()->second;
    ends_.erase(ends_.begin());
    finish_stage(server);
  }
  if (!ends_.empty()) end_timer_.arm_at(ends_.begin()->first);
}

void RepairShop::finish_stage(HostId server) {
  Visit& visit = visits_.at(server);
  switch (visit.stage) {
    case Stage::reset:
      if (visit.luck.uniform_at(reset_place) >= spec_.reset_share)
        return after_reset(server, visit);
      ++stats_.resets;
      note("cured by reset", server, visit, Phase::completion);
      break;
    case Stage::repair:
      --busy_;
      stats_.worked += engine_.now() - visit.since;
      if (spec_.crews > 0) {
        sample();
        if (!queue_.empty()) start_timer_.arm(Duration::zero());
      }
      return enter(server, visit, Stage::test, spec_.test);
    case Stage::test:
      if (visit.luck.uniform_at(first_test_place + visit.tests++) < spec_.dead_on_arrival) {
        ++stats_.failed_tests;
        note("dead on arrival", server, visit, Phase::completion);
        return wait_for_crew(server, visit);
      }
      break;
    case Stage::vendor:
      break;
    case Stage::waiting:
      check(false, "waiting for a crew has no end of its own", server.index());
  }
  const Done done = std::move(visit.done);
  const sim::EventIndex last = visit.cause;
  visits_.erase(server);  // first: it may be back in the same instant
  done(last);
}

void RepairShop::note(const char* kind, HostId server, Visit& visit, Phase phase) {
  visit.cause =
      recorder_.event(engine_.now(), phase, recorder_.kind(kind, ""),
                      recorder_.subject(topologies::Fabric::name(server)), visit.cause, 0.0);
}

void RepairShop::sample() {
  if (spec_.crews == 0) return;
  recorder_.sample(waiting_series_, engine_.now(), double(queue_.size()));
  recorder_.sample(busy_series_, engine_.now(), double(busy_));
}

}  // namespace trainyard::models
