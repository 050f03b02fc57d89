#include <algorithm>
#include <cmath>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/cooling_units.hpp"
#include "models/facility/liquid_loop.hpp"

/// From what runs to what the thermal network is told.
namespace trainyard::models {
int CoolingPlant::running(const Bank& bank) const {
  return int(std::count_if(bank.begin(), bank.end(),
                           [&](std::size_t i) { return units_[i].machine.share() > 0; }));
}

double CoolingPlant::shares(const Bank& bank) const {
  double sum = 0.0;
  for (const std::size_t i : bank) sum += units_[i].machine.share();
  return sum;
}

void CoolingPlant::apply() {
  apply_pumps();
  split_branches();
  apply_racks();
  apply_rooms();
  apply_cdus();
  apply_loops();
  join_branches();
}

void CoolingPlant::apply_pumps() {
  for (Loop& loop : loops_) {
    const int normal = loop.spec.pumps.normal;
    const int n = std::min(running(loop.pumps), normal);
    loop.flow = pump_flow(n, normal);
    loop.pump_W = loop.spec.design_heat.value() * loop.spec.pumps.share * n / normal;
    loop.door_W = 0.0;
  }
  const double dew = least_coolant(std::min(outdoors_.dew, spec_.room_dew_point));
  cdu_pumps_W_ = 0.0;
  for (Cdu& cdu : cdus_) {
    const int normal = cdu.spec.pumps.normal;
    const int n = std::min(running(cdu.pumps), normal);
    cdu.flow = pump_flow(n, normal);
    cdu.pump_W = cdu.spec.capacity.value() * cdu.spec.pumps.share * n / normal;
    cdu_pumps_W_ += cdu.pump_W;
    const double set_point = std::max(cdu.spec.set_point, dew);
    if (set_point != cdu.set_point) cdu.is_due = true;
    cdu.set_point = set_point;
  }
}

void CoolingPlant::apply_racks() {
  for (Room& room : rooms_) room.draw = 0.0;
  // Rack by rack, not branch by branch: a sum in another order is another thermal mode.
  for (const Rack& rack : racks_) rooms_[rack.room].draw += rack.draw();
  for (Room& room : rooms_) {
    const int n = running(room.units);
    const double full = room.spec.capacity.value() / room.spec.air_rise;
    const double speed = fan_speed(room.draw, n, full, room.spec.least_speed);
    room.fans_W = n * fan_power(room.spec.capacity * room.spec.fan_share, speed).value();
    room.recirculation = recirculation(room.spec.recirculation, n * full * speed, room.draw);
    const double ua = n * room.spec.capacity.value() / room.spec.difference *
                      exchanger_share(speed, loops_[room.loop].flow);
    if (ua != room.valve.full) room.valve.is_due = true;
    room.valve.full = ua;
  }
  for (Branch& branch : branches_)
    for (std::size_t i = 0; i < branch.parts.size(); ++i) {
      Part& part = branch.parts[i];
      const Rack& rack = racks_[stems_[branch.stems.front()].racks[i]];
      const double n = rack.spec.count;
      const double to_air = n * rack.heat_W * (1.0 - rack.spec.liquid_share);
      Loop& loop = loops_[rooms_[rack.room].loop];
      RearDoor door;
      if (part.to_door && loop.flow > 0) {
        door = rear_door(rack.spec.rear_door * std::pow(loop.flow, 0.8),
                         rack.spec.rear_door_capacity * n, n * rack.spec.air_flow, Watts(to_air),
                         part.inlet_C, network_.temperature(loop.water));
        loop.door_W += branch.weight() * to_air * door.heat_share;
      }
      part.room_link = inlet_link(rooms_[rack.room].recirculation, rack.draw());
      part.door_link = door.link_W_per_K;
      part.inlet_W = to_air * (1.0 - door.heat_share);
      if (part.plate) {
        const Cdu& cdu = cdus_[*rack.cdu];
        part.plate_W = n * rack.heat_W * rack.spec.liquid_share;
        // A tank convects by itself; a cold plate without flow keeps its heat.
        const double flow = cdu.spec.tank > 0 ? 1.0 : std::pow(cdu.flow, 0.8);
        part.coolant_link = n * rack.spec.plate_to_coolant * flow;
      }
      put(branch, part);
    }
}

/// Looks again when the temperature has moved on by the next whole dead band. `weight`: valves.
void CoolingPlant::move_valve(Valve& valve, double T, double set_point, double dead_band,
                              double weight, Watts flowing_in, double cold_C) {
  valve.is_due = false;
  valve.opening = valve_opening(flowing_in, valve.full, set_point, cold_C);
  // In steps of 2 %, a hundredth of the difference off at most: loads that come back find the
  // thermal mode that they had.
  if (valve.opening > 0)
    valve.opening = std::min(1.0, std::exp2(std::round(32 * std::log2(valve.opening)) / 32));
  // A valve that cannot hold the set-point is open as long as it is too warm, however warm the
  // water.
  if (T >= set_point + dead_band - 2 * touch_K && valve.opening == 0.0) valve.opening = 1.0;
  network_.set_conductance(valve.link, weight * (valve.opening * valve.full));
  const auto bands = [&](double off) {
    return std::max(1.0, 1.0 + std::floor((off + 2 * touch_K) / dead_band)) * dead_band;
  };
  valve.above_C = set_point + bands(T - set_point);
  valve.below_C = set_point - bands(set_point - T);
}

void CoolingPlant::apply_rooms() {
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    Room& room = rooms_[i];
    network_.set_heat(room.air, Watts(room.fans_W));
    if (room.spec.thermal.to_outside > 0) network_.set_temperature(room.outside, outdoors_.dry);
    const double T = network_.temperature(room.air);
    if (!room.valve.is_due && !room.valve.is_left(T)) continue;
    double in = room.fans_W - network_.flow(room.to_structure).value() -
                network_.flow(room.to_outside).value();
    for (const Branch& branch : branches_)
      for (std::size_t k = 0; k < branch.parts.size(); ++k) {
        if (racks_[stems_[branch.stems.front()].racks[k]].room != i) continue;
        const Part& part = branch.parts[k];
        in += network_.heat(part.inlet).value() - network_.flow(part.to_mass).value();
        if (part.to_door) in -= network_.flow(*part.to_door).value();
      }
    move_valve(room.valve, T, room.spec.set_point, room.spec.dead_band, 1.0, Watts(in),
               network_.temperature(loops_[room.loop].water));
  }
}

void CoolingPlant::apply_cdus() {
  for (Branch& branch : branches_) {
    if (!branch.coolant) continue;
    const Stem& first = stems_[branch.stems.front()];
    const Cdu& cdu = cdus_[*first.cdu];
    Valve& valve = branch.valve;
    const double ua = cdu.spec.capacity.value() / cdu.spec.approach *
                      exchanger_share(cdu.flow, loops_[cdu.loop].flow);
    valve.is_due = cdu.is_due || ua != valve.full || valve.is_left(branch.coolant_C);
    valve.full = ua;
    for (const std::size_t stem : branch.stems) cdus_[*stems_[stem].cdu].is_due = false;
    network_.set_heat(*branch.coolant, Watts(branch.weight() * cdu.pump_W));
    if (!valve.is_due) continue;
    double in = cdu.pump_W;
    if (cdu.flow > 0 || cdu.spec.tank > 0)
      for (const Part& part : branch.parts) in += part.plate_W;
    move_valve(valve, branch.coolant_C, cdu.set_point, cdu.spec.dead_band, branch.weight(),
               Watts(in), network_.temperature(loops_[cdu.loop].water));
  }
}

void CoolingPlant::apply_loops() {
  for (Loop& loop : loops_) {
    RemovalInputs in{.set_point = loop.spec.set_point,
                     .gain = loop.spec.design_heat.value() / loop.spec.band};
    const double coolers_W =
        loop.spec.coolers ? running(loop.coolers) * loop.spec.coolers->capacity.value() : 0.0;
    if (loop.spec.chillers) {
      const ChillersSpec& chillers = *loop.spec.chillers;
      loop.cop = chiller_cop(chillers, loop.spec.set_point, outdoors_);
      in.mechanical =
          shares(loop.chillers) * chillers.capacity.value() * chiller_share(chillers, outdoors_);
      // Towers have to carry the work of the compressors as well.
      if (!chillers.is_air()) {
        in.towers = coolers_W;
        in.work = 1.0 / loop.cop;
      }
      loop.running_chillers = running(loop.chillers);
    }
    if (loop.spec.coolers && loop.spec.coolers->economizer) {
      in.free_slope = coolers_W / loop.spec.coolers->approach;
      in.free_most = coolers_W;
      in.outdoors = felt(loop.spec.coolers->kind, outdoors_);
    }
    if (loop.pieces.empty() || in != loop.inputs) {
      loop.inputs = in;
      loop.pieces = removal(in);
    }
    // At the end of a piece the direction decides. Both have the same heat there, so the slope is
    // that of either.
    const double T = network_.temperature(loop.water);
    loop.piece = piece_index(loop.pieces, T + 2 * touch_K);
    enter_piece(loop);
    if (loop.piece > 0 && std::abs(T - loop.pieces[loop.piece].begin) <= 2 * touch_K &&
        network_.slope(loop.water) < 0) {
      --loop.piece;
      enter_piece(loop);
    }
  }
}

void CoolingPlant::enter_piece(Loop& loop) {
  const RemovalPiece& piece = loop.pieces[loop.piece];
  network_.set_conductance(loop.out, piece.slope);
  if (piece.slope > 0) network_.set_temperature(loop.outside, piece.cold);
  network_.set_heat(loop.water, Watts(loop.pump_W + loop.door_W - piece.fixed_W));
  const std::size_t next = loop.piece + 1;
  aim(loop.band, next < loop.pieces.size() ? loop.pieces[next].begin : CoolingParts::never,
      loop.piece > 0 ? piece.begin : -CoolingParts::never);
}

}  // namespace trainyard::models
