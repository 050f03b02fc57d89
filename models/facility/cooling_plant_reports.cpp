#include <algorithm>
#include <cmath>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/cooling_units.hpp"

/// What the owner is told, and what it may ask.
namespace trainyard::models {
namespace {

/// A watch arrives within touch_K of its limit; what it was set for has then happened.
constexpr double near = 2 * touch_K;

}  // namespace

RackCondition CoolingPlant::condition(std::size_t index) const {
  const Rack& rack = racks_.at(index);
  RackCondition c{.air_C = network().temperature(part_of(rack).inlet)};
  c.coolant_C = c.air_C;
  if (rack.cdu) {
    c.coolant_C = network().temperature(*branch_of(rack).coolant);
    c.flow = cdus_[*rack.cdu].flow;
  }
  return c;
}

CoolingPlant::Cause CoolingPlant::why(const Rack& rack) const {
  Cause newest = rack.cause;
  const auto consider = [&](Cause c) {
    if (c.is_valid() && (!newest.is_valid() || c.index() > newest.index())) newest = c;
  };
  const Room& room = rooms_[rack.room];
  consider(room.cause);
  consider(loops_[room.loop].cause);
  if (rack.cdu) {
    consider(cdus_[*rack.cdu].cause);
    consider(loops_[cdus_[*rack.cdu].loop].cause);
  }
  return newest;
}

void CoolingPlant::report(Time now) {
  report_loops();
  for (std::size_t i = 0; i < racks_.size(); ++i) report_rack(i);
  aim();
  warn(now);
  if (const Limit limit = this->limit(); limit.utilisation > worst_.utilisation) worst_ = limit;
  const double power_W = power().value();
  if (told_power_W_ < 0 || std::abs(power_W - told_power_W_) > 0.01 * told_power_W_) {
    told_power_W_ = power_W;
    if (callbacks_.on_power) callbacks_.on_power(Watts(power_W), last_cause_);
  }
}

void CoolingPlant::report_loops() {
  for (Loop& loop : loops_) {
    if (loop.spec.chillers) {
      const double above =
          felt(loop.spec.chillers->rejection, outdoors_) - loop.spec.chillers->design_C();
      if ((above > 0) != loop.was_hot)
        loop.cause = record(above > 0 ? "hotter than the chillers are rated for"
                                      : "cooler than the chillers are rated for",
                            loop.subject, sim::Phase::observation, {},
                            felt(loop.spec.chillers->rejection, outdoors_));
      loop.was_hot = above > 0;
    }
    const bool is_short = loop.pieces[loop.piece].is_short;
    if (is_short == loop.was_short) continue;
    loop.was_short = is_short;
    loop.cause = record(is_short ? "cooling falls short" : "cooling suffices again", loop.subject,
                        sim::Phase::observation, loop.cause,
                        loop.pieces[loop.piece].heat(network_.temperature(loop.water)));
  }
}

void CoolingPlant::report_rack(std::size_t index) {
  Rack& rack = racks_[index];
  const CoolingLimitsSpec& limits = spec_.limits;
  const Part& part = part_of(rack);
  RackCondition c{.air_C = part.inlet_C, .coolant_C = part.inlet_C};
  if (rack.cdu) {
    c.coolant_C = branch_of(rack).coolant_C;
    c.flow = cdus_[*rack.cdu].flow;
  }
  const double plate = rack.cdu ? part.plate_C : c.coolant_C;

  const auto is_at = [](double T, double limit) { return T >= limit - near; };
  const bool is_hot =
      is_at(c.air_C, limits.air_off) ||
      (rack.cdu && (is_at(c.coolant_C, limits.coolant_off) || is_at(plate, limits.plate_off)));
  const double h = limits.hysteresis - near;
  const bool is_cool =
      c.air_C <= limits.air_off - h &&
      (!rack.cdu || (c.coolant_C <= limits.coolant_off - h && plate <= limits.plate_off - h));
  const bool is_warm = is_at(c.air_C, limits.air_warning) ||
                       (rack.cdu && is_at(c.coolant_C, limits.coolant_warning));
  if (is_warm && !rack.is_warm)
    rack.cause = record("rack is warm", rack.subject, sim::Phase::observation, why(rack),
                        is_at(c.air_C, limits.air_warning) ? c.air_C : c.coolant_C);
  rack.is_warm = is_warm;

  // Told before it is too hot to run, so that the owner knows the temperature when it is.
  const double moved = rack.told ? std::max(std::abs(c.air_C - rack.told->air_C),
                                            std::abs(c.coolant_C - rack.told->coolant_C))
                                 : limits.report;
  if (moved >= limits.report - near || c.flow != rack.told->flow || (is_hot && rack.is_cooled)) {
    rack.told = c;
    if (callbacks_.on_inlet) callbacks_.on_inlet(index, c, why(rack));
  }
  if (rack.is_cooled ? is_hot : is_cool) {
    rack.is_cooled = !rack.is_cooled;
    rack.cause = record(rack.is_cooled ? "rack may run again" : "rack too hot", rack.subject,
                        rack.is_cooled ? sim::Phase::completion : sim::Phase::failure, why(rack),
                        std::max(c.air_C, plate));
    if (callbacks_.on_cooled) callbacks_.on_cooled(index, rack.is_cooled, rack.cause);
  }
}

/// Moving a watch costs a search.
void CoolingPlant::aim(Band& band, double above_C, double below_C) {
  if (above_C != band.above_C) network_.move_watch(band.above, above_C);
  if (below_C != band.below_C) network_.move_watch(band.below, below_C);
  band.above_C = above_C;
  band.below_C = below_C;
}

/// One watch up and one down for each node: the nearest temperature at which anything happens.
void CoolingPlant::aim() {
  for (Branch& branch : branches_)
    if (!branch.stems.empty()) aim(branch);
  for (Room& room : rooms_) aim(room.band, room.valve.above_C, room.valve.below_C);
}

void CoolingPlant::aim(Branch& branch) {
  const CoolingLimitsSpec& limits = spec_.limits;
  struct Range {
    double T;
    double above = CoolingParts::never, below = -CoolingParts::never;
    void up(double limit) {
      if (limit > T + near) above = std::min(above, limit);
    }
    void down(double limit) {
      if (limit < T - near) below = std::max(below, limit);
    }
    void around(double told, double step) {
      up(told + step);
      down(told - step);
    }
  };
  Range coolant{branch.coolant_C};
  if (branch.coolant) {
    coolant.up(branch.valve.above_C);
    coolant.down(branch.valve.below_C);
  }
  for (std::size_t i = 0; i < branch.parts.size(); ++i) {
    Part& part = branch.parts[i];
    Range air{part.inlet_C}, plate{part.plate_C};
    air.up(limits.air_warning);
    air.up(limits.air_off);
    if (branch.coolant) {
      coolant.up(limits.coolant_warning);
      coolant.up(limits.coolant_off);
      plate.up(limits.plate_off);
    }
    for (const std::size_t stem : branch.stems) {
      const Rack& rack = racks_[stems_[stem].racks[i]];
      air.around(rack.told->air_C, limits.report);
      if (branch.coolant) coolant.around(rack.told->coolant_C, limits.report);
      if (rack.is_cooled) continue;
      air.down(limits.air_off - limits.hysteresis);
      coolant.down(limits.coolant_off - limits.hysteresis);
      plate.down(limits.plate_off - limits.hysteresis);
    }
    aim(part.air, air.above, air.below);
    if (part.plate) aim(part.plates, plate.above, plate.below);
  }
  if (branch.coolant) aim(branch.band, coolant.above, coolant.below);
}

/// When the racks of a part reach a limit if nothing else happens.
std::optional<Time> CoolingPlant::too_hot(Branch& branch, Part& part) {
  if (part.too_hot) return *part.too_hot;
  std::optional<Time> when;
  const auto consider = [&](ThermalNode node, double limit) {
    const auto t = network_.first_crossing(node, limit, Direction::rising);
    if (t && (!when || *t < *when)) when = t;
  };
  consider(part.inlet, spec_.limits.air_off);
  if (part.plate) {
    consider(*branch.coolant, spec_.limits.coolant_off);
    consider(*part.plate, spec_.limits.plate_off);
  }
  part.too_hot = when;
  return when;
}

/// Only looked for when something does less than is asked of it: the search costs a march a part.
void CoolingPlant::warn(Time now) {
  bool is_danger = false;
  for (const Loop& loop : loops_) is_danger = is_danger || loop.pieces[loop.piece].is_short;
  for (const Room& room : rooms_)
    is_danger = is_danger || room.valve.opening >= 1.0 || room.valve.full <= 0;
  for (const Branch& branch : branches_)
    if (branch.coolant)
      is_danger = is_danger || branch.valve.opening >= 1.0 || branch.valve.full <= 0;
  Time first = Time::max();
  std::vector<std::size_t> racks;
  Cause cause{};
  if (is_danger) {
    for (Branch& branch : branches_)
      for (Part& part : branch.parts) part.too_hot.reset();
    for (std::size_t i = 0; i < racks_.size(); ++i) {
      const Rack& rack = racks_[i];
      if (!rack.is_cooled || rack.heat_W <= 0) continue;
      Branch& branch = branches_[stems_[rack.stem].branch];
      const std::optional<Time> when = too_hot(branch, branch.parts[rack.place]);
      if (!when || *when == Time::max()) continue;
      racks.push_back(i);
      if (*when < first) cause = why(rack);
      first = std::min(first, *when);
    }
  }
  // A prediction that stays within a tenth of what was said needs no second word.
  const bool is_same = racks == warned_racks_ &&
                       (racks.empty() || std::abs(to_seconds(first - warned_)) <=
                                             std::max(1.0, 0.1 * to_seconds(warned_ - now)));
  if (is_same) return;
  warned_racks_ = racks;
  warned_ = first;
  if (callbacks_.on_warning)
    callbacks_.on_warning(racks, racks.empty() ? forever : first - now, cause);
}

double CoolingPlant::cooler_heat(const Loop& loop, double total, double chilled) const {
  const bool with_chillers = loop.spec.chillers && !loop.spec.chillers->is_air();
  return total - chilled + (with_chillers ? chilled * (1.0 + 1.0 / loop.cop) : 0.0);
}

RestartMachine::State CoolingPlant::state(const std::string& name) const {
  return unit(name).machine.state();
}

Watts CoolingPlant::power(const std::string& name) const {
  const Unit& u = unit(name);
  if (u.machine.share() <= 0) return Watts(0);
  if (u.kind == CoolingUnitKind::crah) {
    const Room& room = rooms_[u.owner];
    return Watts(room.fans_W / running(room.units));
  }
  if (u.kind == CoolingUnitKind::cdu_pump) {
    const Cdu& cdu = cdus_[u.owner];
    return Watts(cdu.pump_W / running(cdu.pumps));
  }
  const Loop& loop = loops_[u.owner];
  if (u.kind == CoolingUnitKind::loop_pump) return Watts(loop.pump_W / running(loop.pumps));
  const RemovalPiece& piece = loop.pieces[loop.piece];
  const double T = network().temperature(loop.water);
  if (u.kind == CoolingUnitKind::chiller)
    return Watts(piece.chilled(T) / loop.cop * u.machine.share() / shares(loop.chillers));
  return Watts(cooler_heat(loop, piece.heat(T), piece.chilled(T)) * loop.spec.coolers->fan_share /
               running(loop.coolers));
}

Watts CoolingPlant::power() const {
  Watts sum{};
  for (const Room& room : rooms_) sum += Watts(room.fans_W);
  for (const Cdu& cdu : cdus_) sum += Watts(cdu.pump_W);
  for (const Loop& loop : loops_) {
    const RemovalPiece& piece = loop.pieces[loop.piece];
    const double T = network().temperature(loop.water);
    sum += Watts(loop.pump_W + piece.chilled(T) / loop.cop);
    if (loop.spec.coolers)
      sum +=
          Watts(cooler_heat(loop, piece.heat(T), piece.chilled(T)) * loop.spec.coolers->fan_share);
  }
  return sum;
}

CoolingPlant::Limit CoolingPlant::limit() const {
  Limit most;
  const auto consider = [&](const std::string& part, double utilisation) {
    if (utilisation > most.utilisation) most = {part, utilisation, engine_.now()};
  };
  // Nothing at all runs: more is asked of it than it can ever do.
  const auto ratio = [](double asked, double most_W) {
    return asked <= 0 ? 0.0 : most_W <= 0 ? 1e9 : asked / most_W;
  };
  for (const Loop& loop : loops_) {
    const RemovalInputs& in = loop.inputs;
    const double T = network().temperature(loop.water);
    consider(loop.name, ratio(in.gain * (T - in.set_point), able(in, T)));
  }
  const auto valve = [&](const std::string& name, const Valve& v, bool is_asked, double T,
                         double set_point, double water) {
    if (v.full <= 0) return consider(name, is_asked ? 1e9 : 0.0);
    if (v.opening < 1.0) return consider(name, v.opening);
    consider(name, ratio(v.full * (T - water), v.full * (set_point - water)));
  };
  const auto heats = [&](const Rack& rack) { return rack.heat_W > 0; };
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    const Room& room = rooms_[i];
    const bool is_asked = std::any_of(racks_.begin(), racks_.end(), [&](const Rack& rack) {
      return heats(rack) && rack.room == i && rack.spec.liquid_share < 1;
    });
    valve(room.name, room.valve, is_asked, network().temperature(room.air), room.spec.set_point,
          network().temperature(loops_[room.loop].water));
  }
  for (std::size_t i = 0; i < cdus_.size(); ++i) {
    const Branch& branch = branches_[stems_[i].branch];
    if (branch.stems.front() != i) continue;
    const bool is_asked = std::any_of(stems_[i].racks.begin(), stems_[i].racks.end(),
                                      [&](std::size_t rack) { return heats(racks_[rack]); });
    valve(cdus_[i].name, branch.valve, is_asked, network().temperature(*branch.coolant),
          cdus_[i].set_point, network().temperature(loops_[cdus_[i].loop].water));
  }
  return most;
}

CoolingPlant::Limit CoolingPlant::worst() const {
  const Limit now = limit();
  return now.utilisation > worst_.utilisation ? now : worst_;
}

CoolingPlant::Energy CoolingPlant::energy() {
  integrate(engine_.now());
  return energy_;
}

HeatBalance CoolingPlant::balance() {
  integrate(engine_.now());
  return network_.balance();
}

}  // namespace trainyard::models
