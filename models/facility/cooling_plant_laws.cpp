#include <algorithm>
#include <cmath>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/cooling_units.hpp"
#include "models/facility/liquid_loop.hpp"

/// From what runs to what the thermal network is told.
namespace trainyard::models {
namespace {

constexpr double unreachable = 1e6;  // degrees Celsius

}  // namespace

int CoolingPlant::running(const Bank& bank) const {
  return int(std::count_if(bank.begin(), bank.end(),
                           [&](std::size_t i) { return units_[i].machine.share() > 0; }));
}

double CoolingPlant::shares(const Bank& bank) const {
  double sum = 0.0;
  for (const std::size_t i : bank) sum += units_[i].machine.share();
  return sum;
}

void CoolingPlant::apply(Time) {
  for (Loop& loop : loops_) {
    const int normal = loop.spec.pumps.normal;
    const int n = std::min(running(loop.pumps), normal);
    loop.flow = pump_flow(n, normal);
    loop.pump_W = loop.spec.design_heat.value() * loop.spec.pumps.share * n / normal;
    loop.door_W = 0.0;
  }
  for (Cdu& cdu : cdus_) {
    const int normal = cdu.spec.pumps.normal;
    const int n = std::min(running(cdu.pumps), normal);
    cdu.flow = pump_flow(n, normal);
    cdu.pump_W = cdu.spec.capacity.value() * cdu.spec.pumps.share * n / normal;
    const double dew = std::min(outdoors_.dew, spec_.room_dew_point);
    const double set_point = std::max(cdu.spec.set_point, least_coolant(dew));
    if (set_point != cdu.set_point) cdu.valve.is_due = true;
    cdu.set_point = set_point;
  }
  apply_racks();
  apply_rooms();
  apply_cdus();
  apply_loops();
}

void CoolingPlant::apply_racks() {
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    Room& room = rooms_[i];
    double draw = 0.0;
    // Fans of a rack without heat idle at a tenth: typical figure.
    const auto draw_of = [](const Rack& rack) {
      return rack.spec.count * rack.spec.air_flow * (rack.heat_W > 0 ? 1.0 : 0.1);
    };
    for (const Rack& rack : racks_)
      if (rack.room == i) draw += draw_of(rack);
    const int n = running(room.units);
    const double full = room.spec.capacity.value() / room.spec.air_rise;
    const double speed = fan_speed(draw, n, full, room.spec.least_speed);
    room.fans_W = n * fan_power(room.spec.capacity * room.spec.fan_share, speed).value();
    room.recirculation = recirculation(room.spec.recirculation, n * full * speed, draw);
    const double ua = n * room.spec.capacity.value() / room.spec.difference *
                      exchanger_share(speed, loops_[room.loop].flow);
    if (ua != room.valve.full) room.valve.is_due = true;
    room.valve.full = ua;
    for (const Rack& rack : racks_)
      if (rack.room == i)
        network_.set_conductance(rack.to_room, inlet_link(room.recirculation, draw_of(rack)));
  }
  for (const Rack& rack : racks_) {
    const double n = rack.spec.count;
    const double to_air = n * rack.heat_W * (1.0 - rack.spec.liquid_share);
    Loop& loop = loops_[rooms_[rack.room].loop];
    RearDoor door;
    if (rack.to_door && loop.flow > 0) {
      door = rear_door(rack.spec.rear_door * std::pow(loop.flow, 0.8),
                       rack.spec.rear_door_capacity * n, n * rack.spec.air_flow, Watts(to_air),
                       network_.temperature(rack.inlet), network_.temperature(loop.water));
      loop.door_W += to_air * door.heat_share;
    }
    if (rack.to_door) network_.set_conductance(*rack.to_door, door.link_W_per_K);
    network_.set_heat(rack.inlet, Watts(to_air * (1.0 - door.heat_share)));
    if (!rack.plate) continue;
    const Cdu& cdu = cdus_[*rack.cdu];
    network_.set_heat(*rack.plate, Watts(n * rack.heat_W * rack.spec.liquid_share));
    // A tank convects by itself; a cold plate without flow keeps its heat.
    const double flow = cdu.spec.tank > 0 ? 1.0 : std::pow(cdu.flow, 0.8);
    network_.set_conductance(*rack.to_coolant, n * rack.spec.plate_to_coolant * flow);
  }
}

void CoolingPlant::move_valve(Valve& valve, ThermalNode node, double set_point, double dead_band,
                              double full, Watts flowing_in, ThermalNode cold) {
  if (!valve.is_due) return;
  valve.is_due = false;
  const double T = network_.temperature(node);
  // A valve that cannot hold the set-point is open as long as it is too warm, however warm the
  // water.
  valve.opening = valve_opening(flowing_in, full, set_point, network_.temperature(cold));
  // In steps of 2 %, a hundredth of the difference off at most: loads that come back find the
  // thermal mode that they had.
  if (valve.opening > 0)
    valve.opening = std::min(1.0, std::exp2(std::round(32 * std::log2(valve.opening)) / 32));
  if (T >= set_point + dead_band && valve.opening == 0.0) valve.opening = 1.0;
  network_.set_conductance(valve.link, valve.opening * full);
  network_.move_watch(valve.above, std::max(set_point, T) + dead_band);
  network_.move_watch(valve.below, std::min(set_point, T) - dead_band);
}

void CoolingPlant::apply_rooms() {
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    Room& room = rooms_[i];
    network_.set_heat(room.air, Watts(room.fans_W));
    if (room.spec.thermal.to_outside > 0) network_.set_temperature(room.outside, outdoors_.dry);
    if (!room.valve.is_due) continue;
    double in = room.fans_W - network_.flow(room.to_structure).value() -
                network_.flow(room.to_outside).value();
    for (const Rack& rack : racks_) {
      if (rack.room != i) continue;
      in += network_.heat(rack.inlet).value() - network_.flow(rack.to_mass).value();
      if (rack.to_door) in -= network_.flow(*rack.to_door).value();
    }
    move_valve(room.valve, room.air, room.spec.set_point, room.spec.dead_band, room.valve.full,
               Watts(in), loops_[room.loop].water);
  }
}

void CoolingPlant::apply_cdus() {
  for (std::size_t i = 0; i < cdus_.size(); ++i) {
    Cdu& cdu = cdus_[i];
    const double ua = cdu.spec.capacity.value() / cdu.spec.approach *
                      exchanger_share(cdu.flow, loops_[cdu.loop].flow);
    if (ua != cdu.valve.full) cdu.valve.is_due = true;
    cdu.valve.full = ua;
    network_.set_heat(cdu.coolant, Watts(cdu.pump_W));
    if (!cdu.valve.is_due) continue;
    double in = cdu.pump_W;
    for (const Rack& rack : racks_)
      if (rack.cdu == i && (cdu.flow > 0 || cdu.spec.tank > 0))
        in += network_.heat(*rack.plate).value();
    move_valve(cdu.valve, cdu.coolant, cdu.set_point, cdu.spec.dead_band, ua, Watts(in),
               loops_[cdu.loop].water);
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
    loop.inputs = in;
    loop.pieces = removal(in);
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
  const double above = next < loop.pieces.size() ? loop.pieces[next].begin : unreachable;
  const double below = loop.piece > 0 ? piece.begin : -unreachable;
  // Moving a watch costs a search.
  if (above != loop.above_C) network_.move_watch(loop.above, above);
  if (below != loop.below_C) network_.move_watch(loop.below, below);
  loop.above_C = above;
  loop.below_C = below;
}

}  // namespace trainyard::models
