#include <algorithm>
#include <cmath>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/cooling_units.hpp"

/// What the owner is told, and what it may ask.
namespace trainyard::models {

RackCondition CoolingPlant::condition(std::size_t index) const {
  const Rack& rack = racks_.at(index);
  RackCondition c{.air_C = network().temperature(rack.inlet)};
  c.coolant_C = c.air_C;
  if (rack.cdu) {
    c.coolant_C = network().temperature(cdus_[*rack.cdu].coolant);
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
  warn(now);
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
  const RackCondition c = condition(index);
  const double plate = rack.plate ? network_.temperature(*rack.plate) : c.coolant_C;

  const bool is_hot = c.air_C >= limits.air_off - touch_K ||
                      (rack.cdu && (c.coolant_C >= limits.coolant_off - touch_K ||
                                    plate >= limits.plate_off - touch_K));
  const double h = limits.hysteresis - touch_K;
  const bool is_cool =
      c.air_C <= limits.air_off - h &&
      (!rack.cdu || (c.coolant_C <= limits.coolant_off - h && plate <= limits.plate_off - h));
  const bool is_warm = c.air_C >= limits.air_warning - touch_K ||
                       (rack.cdu && c.coolant_C >= limits.coolant_warning - touch_K);
  if (is_warm && !rack.is_warm)
    rack.cause = record("rack is warm", rack.subject, sim::Phase::observation, why(rack), c.air_C);
  rack.is_warm = is_warm;

  // Told before it is too hot to run, so that the owner knows the temperature when it is.
  const double moved = rack.told ? std::max(std::abs(c.air_C - rack.told->air_C),
                                            std::abs(c.coolant_C - rack.told->coolant_C))
                                 : limits.report;
  if (moved >= limits.report - 2 * touch_K || c.flow != rack.told->flow ||
      (is_hot && rack.is_cooled)) {
    rack.told = c;
    network_.move_watch(rack.above, c.air_C + limits.report);
    network_.move_watch(rack.below, c.air_C - limits.report);
    if (rack.cdu) {
      network_.move_watch(rack.liquid[0], c.coolant_C + limits.report);
      network_.move_watch(rack.liquid[1], c.coolant_C - limits.report);
    }
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

/// Only looked for when something does less than is asked of it: the search costs a march a rack.
void CoolingPlant::warn(Time now) {
  bool is_danger = false;
  for (const Loop& loop : loops_) is_danger = is_danger || loop.pieces[loop.piece].is_short;
  for (const Room& room : rooms_)
    is_danger = is_danger || room.valve.opening >= 1.0 || room.valve.full <= 0;
  for (const Cdu& cdu : cdus_)
    is_danger = is_danger || cdu.valve.opening >= 1.0 || cdu.valve.full <= 0;
  Time first = Time::max();
  std::vector<std::size_t> racks;
  Cause cause{};
  if (is_danger) {
    const CoolingLimitsSpec& limits = spec_.limits;
    for (std::size_t i = 0; i < racks_.size(); ++i) {
      const Rack& rack = racks_[i];
      if (!rack.is_cooled || rack.heat_W <= 0) continue;
      Time when = Time::max();
      const auto consider = [&](ThermalNode node, double limit) {
        const auto t = network_.first_crossing(node, limit, Direction::rising);
        if (t) when = std::min(when, *t);
      };
      consider(rack.inlet, limits.air_off);
      if (rack.cdu) {
        consider(cdus_[*rack.cdu].coolant, limits.coolant_off);
        consider(*rack.plate, limits.plate_off);
      }
      if (when == Time::max()) continue;
      racks.push_back(i);
      if (when < first) cause = why(rack);
      first = std::min(first, when);
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
    if (utilisation > most.utilisation) most = {part, utilisation};
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
  const auto heats = [&](auto&& is_on_it) {
    return std::any_of(racks_.begin(), racks_.end(),
                       [&](const Rack& rack) { return rack.heat_W > 0 && is_on_it(rack); });
  };
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    const Room& room = rooms_[i];
    const bool is_asked =
        heats([&](const Rack& rack) { return rack.room == i && rack.spec.liquid_share < 1; });
    valve(room.name, room.valve, is_asked, network().temperature(room.air), room.spec.set_point,
          network().temperature(loops_[room.loop].water));
  }
  for (std::size_t i = 0; i < cdus_.size(); ++i) {
    const Cdu& cdu = cdus_[i];
    valve(cdu.name, cdu.valve, heats([&](const Rack& rack) { return rack.cdu == i; }),
          network().temperature(cdu.coolant), cdu.set_point,
          network().temperature(loops_[cdu.loop].water));
  }
  return most;
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
