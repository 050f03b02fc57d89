#include <algorithm>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/liquid_loop.hpp"
#include "sim/check.hpp"

/// What happens to units and when: faults, feeds, restarts, the crew, leaks, and the one timer.
namespace trainyard::models {

CoolingPlant::Cause CoolingPlant::record(std::string_view kind, sim::SubjectId subject,
                                         sim::Phase phase, Cause cause, double value) {
  return last_cause_ =
             recorder_.event(engine_.now(), phase, recorder_.kind(kind, ""), subject, cause, value);
}

CoolingPlant::Cause& CoolingPlant::cause_of(const Unit& u) {
  switch (u.kind) {
    case CoolingUnitKind::crah:
      return rooms_[u.owner].cause;
    case CoolingUnitKind::cdu_pump:
      return cdus_[u.owner].cause;
    default:
      return loops_[u.owner].cause;
  }
}

void CoolingPlant::change_heat(Rack& rack, double heat_W, Cause cause) {
  if (cause.is_valid()) rack.cause = cause;
  rack.heat_W = heat_W;
  rooms_[rack.room].valve.is_due = true;
  if (rack.cdu) cdus_[*rack.cdu].is_due = true;
}

void CoolingPlant::set_rack_heat(std::size_t rack, Watts heat, Cause cause) {
  check(heat.value() >= 0, "a rack gives heat", heat.value());
  Rack& r = racks_.at(rack);
  if (cause.is_valid()) r.cause = cause;
  if (r.heat_W == heat.value()) return;
  integrate(engine_.now());
  change_heat(r, heat.value(), cause);
  update();
}

void CoolingPlant::set_rack_heats(std::span<const Watts> heats, Cause cause) {
  check(heats.size() == racks_.size(), "a heat for each entry of racks", heats.size());
  bool is_changed = false;
  for (std::size_t i = 0; i < racks_.size(); ++i) {
    check(heats[i].value() >= 0, "a rack gives heat", heats[i].value());
    is_changed = is_changed || racks_[i].heat_W != heats[i].value();
  }
  if (!is_changed) return;
  integrate(engine_.now());
  for (std::size_t i = 0; i < racks_.size(); ++i)
    if (racks_[i].heat_W != heats[i].value()) change_heat(racks_[i], heats[i].value(), cause);
  update();
}

CoolingPlant::Cause CoolingPlant::fail(const std::string& name, Cause cause) {
  Unit& u = unit(name);
  if (u.machine.state() == RestartMachine::State::failed) return u.event;
  integrate(engine_.now());
  u.machine.fail(engine_.now());
  u.trigger = u.event = cause_of(u) =
      record("cooling unit failed", u.subject, sim::Phase::failure, cause);
  u.seen = RestartMachine::State::failed;
  const Cause event = u.event;
  update();
  return event;
}

CoolingPlant::Cause CoolingPlant::restore(const std::string& name, Cause cause) {
  Unit& u = unit(name);
  if (u.machine.state() != RestartMachine::State::failed) return u.event;
  integrate(engine_.now());
  u.machine.restore(engine_.now());
  u.trigger = u.event = record("cooling unit restored", u.subject, sim::Phase::completion, cause);
  const Cause event = u.event;
  update();
  return event;
}

void CoolingPlant::set_fed(const std::string& name, bool is_fed, Cause cause) {
  Unit& u = unit(name);
  integrate(engine_.now());
  const RestartMachine::State before = u.machine.state();
  u.machine.set_fed(engine_.now(), is_fed);
  if (u.machine.state() != before) u.trigger = cause;
  update();
}

CoolingPlant::Cause CoolingPlant::trip(const std::string& name, Cause cause) {
  Unit& u = unit(name);
  using State = RestartMachine::State;
  if (u.machine.state() != State::running && u.machine.state() != State::ramping) return u.event;
  integrate(engine_.now());
  u.machine.trip(engine_.now());
  u.failed_starts = u.machine.failed_starts();
  const Cause event = u.trigger =
      record("cooling unit tripped", u.subject, sim::Phase::failure, cause);
  update();
  return event;
}

void CoolingPlant::set_people(int people) {
  check(people >= 0, "a crew has people", people);
  people_ = people;
  update();
}

void CoolingPlant::update() {
  is_dirty_ = true;
  if (is_updating_) return;
  is_updating_ = true;
  const Time now = engine_.now();
  // A callback may change heat and feeds of this instant; what follows from it comes at once.
  while (is_dirty_) {
    is_dirty_ = false;
    step(now);
  }
  is_updating_ = false;
  arm();
}

void CoolingPlant::step(Time now) {
  ++steps_;
  integrate(now);
  // Whatever it was that arrived: each temperature is compared with its limits below.
  network_.take_arrivals();
  for (Branch& branch : branches_)
    if (!branch.stems.empty()) read(branch);
  outdoors_ = weather_.at(now);
  run_machines(now);
  run_crew(now);
  take_leaks(now);
  apply();
  report(now);
}

/// Everything is constant since integrated_to_, but for heat that follows the loop in a straight
/// line: its integral is that of the temperature.
void CoolingPlant::integrate(Time now) {
  network_.advance(now);
  const double dt = to_seconds(now - integrated_to_);
  if (now == integrated_to_) return;
  integrated_to_ = now;
  double racks_W = 0.0;
  for (const Rack& rack : racks_) racks_W += rack.heat_W * rack.spec.count;
  energy_.racks += Joules(racks_W * dt);
  for (const Room& room : rooms_) energy_.fans += Joules(room.fans_W * dt);
  energy_.pumps += Joules(cdu_pumps_W_ * dt);
  for (Loop& loop : loops_) {
    energy_.pumps += Joules(loop.pump_W * dt);
    const double integral = network_.temperature_integral(loop.water);
    const double mean = (integral - loop.seen_integral) / dt;
    loop.seen_integral = integral;
    const RemovalPiece& piece = loop.pieces[loop.piece];
    const double total = piece.heat(mean) * dt;
    const double chilled = piece.chilled(mean) * dt;
    energy_.rejected += Joules(total);
    energy_.chillers += Joules(chilled / loop.cop);
    if (!loop.spec.coolers) continue;
    const double by_coolers = cooler_heat(loop, total, chilled);
    energy_.coolers += Joules(by_coolers * loop.spec.coolers->fan_share);
    if (loop.spec.coolers->kind == Rejection::air) continue;
    const double evaporated = evaporated_kg(Joules(by_coolers));
    energy_.evaporated_kg += evaporated;
    energy_.make_up_kg += make_up_kg(evaporated, loop.spec.coolers->cycles);
  }
}

void CoolingPlant::set_ready(const Bank& bank, bool is_ready, Cause cause) {
  for (const std::size_t i : bank) {
    Unit& u = units_[i];
    if (!is_ready && u.machine.share() > 0) u.trigger = cause;
    u.machine.set_ready(engine_.now(), is_ready);
  }
}

void CoolingPlant::run_machines(Time now) {
  for (Unit& u : units_) {
    u.machine.advance(now);
    see(u, now);
  }
  for (Loop& loop : loops_) {
    const bool flows = running(loop.pumps) > 0;
    set_ready(loop.chillers, flows, loop.cause);
    set_ready(loop.coolers, flows, loop.cause);
    for (const std::size_t i : loop.coolers) see(units_[i], now);
    const bool is_hot = loop.spec.chillers && is_too_hot(*loop.spec.chillers, outdoors_);
    for (const std::size_t i : loop.chillers) {
      Unit& u = units_[i];
      if (is_hot && u.machine.share() > 0) {
        u.machine.trip(now);
        u.failed_starts = u.machine.failed_starts();
        u.trigger = record("chiller tripped by heat", u.subject, sim::Phase::failure, {},
                           felt(loop.spec.chillers->rejection, outdoors_));
      }
      see(u, now);
    }
  }
  lock_groups(now);
}

/// Tells the log what became of a unit since it was last looked at.
void CoolingPlant::see(Unit& u, Time) {
  using State = RestartMachine::State;
  if (u.machine.failed_starts() > u.failed_starts)
    u.trigger = u.event =
        record("cooling unit did not start", u.subject, sim::Phase::failure,
               u.event.is_valid() ? u.event : u.trigger, u.machine.failed_starts());
  u.failed_starts = u.machine.failed_starts();
  const State state = u.machine.state();
  if (state == u.seen) return;
  if (state == State::locked || state == State::running) u.is_reset = false;
  const auto runs = [](State s) { return s == State::running || s == State::ramping; };
  if (state == State::locked) {
    u.event = record("cooling unit locked out", u.subject, sim::Phase::failure, u.trigger);
    locked_.push_back(std::size_t(&u - units_.data()));
    cause_of(u) = u.event;
  } else if (runs(u.seen) && !runs(state)) {
    u.event = record("cooling unit stopped", u.subject, sim::Phase::failure, u.trigger);
    cause_of(u) = u.event;
  } else if (state == State::running) {
    u.event = record("cooling unit runs", u.subject, sim::Phase::completion,
                     u.event.is_valid() ? u.event : u.trigger);
    cause_of(u) = u.event;
  }
  u.seen = state;
}

void CoolingPlant::lock_groups(Time now) {
  using State = RestartMachine::State;
  for (const Loop& loop : loops_) {
    if (!loop.spec.chillers || loop.spec.chillers->group_lock == 0) continue;
    int locked = 0;
    Cause last{};
    for (const std::size_t i : loop.chillers) {
      if (units_[i].machine.state() != State::locked) continue;
      ++locked;
      if (!last.is_valid() || units_[i].event.index() > last.index()) last = units_[i].event;
    }
    if (locked < loop.spec.chillers->group_lock) continue;
    for (const std::size_t i : loop.chillers) {
      Unit& u = units_[i];
      const State state = u.machine.state();
      if (state == State::running || state == State::locked || state == State::failed) continue;
      if (u.is_reset) continue;
      u.machine.lock(now);
      u.trigger = last;
      see(u, now);
    }
  }
}

/// People take what locked out first, one unit each. Nobody resets a chiller that the weather would
/// trip again at once.
void CoolingPlant::run_crew(Time now) {
  int at_work = 0;
  for (std::size_t k = 0; k < locked_.size();) {
    Unit& u = units_[locked_[k]];
    if (u.machine.state() != RestartMachine::State::locked) {
      u.reset_at.reset();
      locked_.erase(locked_.begin() + std::ptrdiff_t(k));
      continue;
    }
    if (u.reset_at && *u.reset_at <= now) {
      u.reset_at.reset();
      u.machine.reset(now);
      u.is_reset = true;
      u.event = u.trigger =
          record("cooling unit reset by hand", u.subject, sim::Phase::decision, u.event);
      u.failed_starts = u.machine.failed_starts();
      see(u, now);
      continue;
    }
    if (u.reset_at) ++at_work;
    ++k;
  }
  if (locked_.empty()) {
    crew_at_.reset();
    return;
  }
  if (!crew_at_) crew_at_ = add(now, spec_.crew.arrival);
  if (*crew_at_ > now) return;
  for (const std::size_t i : locked_) {
    Unit& u = units_[i];
    if (u.reset_at || at_work >= people_) continue;
    if (u.kind == CoolingUnitKind::chiller && is_too_hot(*loops_[u.owner].spec.chillers, outdoors_))
      continue;
    u.reset_at = add(now, spec_.crew.reset);
    ++at_work;
  }
}

void CoolingPlant::take_leaks(Time now) {
  for (auto& [index, leaks] : leaks_) {
    while (const std::optional<Leak> leak = leaks.take(now)) {
      const Cause event = record("coolant leak", racks_[index].subject, sim::Phase::failure, {},
                                 leak->was_detected ? 1.0 : 0.0);
      isolations_.emplace(leak->isolated, Isolation{index, *leak, event});
    }
  }
  while (!isolations_.empty() && isolations_.begin()->first <= now) {
    const Isolation isolation = isolations_.begin()->second;
    isolations_.erase(isolations_.begin());
    const Cause event =
        record("leaking rack isolated", racks_[isolation.rack].subject, sim::Phase::completion,
               isolation.cause, 1.0 + double(isolation.leak.neighbours.size()));
    if (callbacks_.on_leak) callbacks_.on_leak(isolation.rack, isolation.leak, event);
  }
}

void CoolingPlant::arm() {
  Time next = Weather::next_change(engine_.now());
  const auto consider = [&](std::optional<Time> t) {
    if (t) next = std::min(next, *t);
  };
  consider(network_.next_event());
  for (const Unit& u : units_) {
    consider(u.machine.next_event());
    consider(u.reset_at);
  }
  if (crew_at_ && *crew_at_ > engine_.now()) consider(crew_at_);
  for (const auto& [index, leaks] : leaks_) consider(leaks.next_event());
  if (!isolations_.empty()) consider(isolations_.begin()->first);
  wake_.arm_at(std::max(next, engine_.now()));
}

}  // namespace trainyard::models
