#include <algorithm>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/liquid_loop.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

/// For the least useful ones to go: a plant that runs alike has modes of some kilobytes.
constexpr std::size_t modes_bytes = std::size_t{32} << 20;

template <class Parts>
std::size_t find(const Parts& parts, const std::string& name) {
  const auto it =
      std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.name == name; });
  check(it != parts.end(), "a part of the cooling plant has this name: " + name);
  return std::size_t(it - parts.begin());
}

}  // namespace

CoolingPlant::CoolingPlant(sim::Engine& engine, sim::Recorder& recorder,
                           const CoolingPlantSpec& spec, const std::vector<CooledRack>& racks,
                           Callbacks callbacks, std::optional<WeatherSeries> series)
    : engine_(engine),
      recorder_(recorder),
      spec_(spec),
      callbacks_(std::move(callbacks)),
      weather_(spec.weather, std::move(series)),
      outdoors_(weather_.at(engine.now())),
      network_(std::make_shared<ThermalModes>(modes_bytes)),
      people_(spec.crew.people),
      integrated_to_(engine.now()),
      wake_(engine, sim::Phase::failure, [this] { update(); }) {
  network_.advance(engine.now());
  build(spec, racks);
  update();
}

CoolingPlant::Bank CoolingPlant::add_bank(const std::string& owner_name, const std::string& what,
                                          CoolingUnitKind kind, std::size_t owner, int count,
                                          const UnitRestartSpec& restart) {
  Bank bank;
  for (int i = 1; i <= count; ++i) {
    const std::string name = owner_name + "/" + what + "-" + std::to_string(i);
    unit_of_[name] = units_.size();
    bank.push_back(units_.size());
    units_.push_back({.name = name,
                      .kind = kind,
                      .owner = owner,
                      .machine = RestartMachine(restart, engine_.random("cooling/" + name)),
                      .subject = recorder_.subject(name)});
  }
  return bank;
}

CoolingPlant::Band CoolingPlant::make_band(ThermalNode node) {
  return {.above = network_.watch(node, CoolingParts::never, Direction::rising),
          .below = network_.watch(node, -CoolingParts::never, Direction::falling)};
}

void CoolingPlant::build(const CoolingPlantSpec& spec, const std::vector<CooledRack>& racks) {
  for (const auto& [name, s] : spec.loops) {
    Loop loop{.name = name, .spec = s};
    const std::size_t self = loops_.size();
    if (s.chillers)
      loop.chillers = add_bank(name, "chiller", CoolingUnitKind::chiller, self, s.chillers->units,
                               s.chillers->restart);
    if (s.coolers)
      loop.coolers = add_bank(name, "cooler", CoolingUnitKind::cooler, self, s.coolers->units,
                              s.coolers->restart);
    loop.pumps =
        add_bank(name, "pump", CoolingUnitKind::loop_pump, self, s.pumps.units, s.pumps.restart);
    loop.subject = recorder_.subject(name);
    loop.water = network_.add_node(name, loop_capacity(s.volume), s.set_point + 0.5 * s.band);
    loop.outside = network_.add_boundary(name + " outside", s.set_point);
    loop.out = network_.connect(loop.water, loop.outside, 0.0);
    loop.band = make_band(loop.water);
    loops_.push_back(std::move(loop));
  }
  for (const auto& [name, s] : spec.rooms) {
    Room room{.name = name, .spec = s, .loop = find(loops_, s.loop)};
    room.units = add_bank(name, "crah", CoolingUnitKind::crah, rooms_.size(), s.units, s.restart);
    room.air = network_.add_node(name, s.thermal.air_capacity, s.set_point);
    room.structure =
        network_.add_node(name + " structure", s.thermal.structure_capacity, s.set_point);
    room.outside = network_.add_boundary(name + " outside", outdoors_.dry);
    room.to_structure = network_.connect(room.air, room.structure, s.thermal.air_to_structure);
    room.to_outside = network_.connect(room.air, room.outside, s.thermal.to_outside);
    room.valve.link = network_.connect(room.air, loops_[room.loop].water, 0.0);
    room.band = make_band(room.air);
    rooms_.push_back(std::move(room));
  }
  for (const auto& [group, s] : spec.cdus)
    for (const std::string& name : cdu_names(group, s)) {
      Cdu cdu{.name = name, .spec = s, .loop = find(loops_, s.loop), .set_point = s.set_point};
      cdu.pumps = add_bank(name, "pump", CoolingUnitKind::cdu_pump, cdus_.size(), s.pumps.units,
                           s.pumps.restart);
      stems_.push_back({.name = name, .cdu = cdus_.size()});
      cdus_.push_back(std::move(cdu));
    }
  for (const CooledRack& in : racks) {
    const RackCoolingSpec& s = in.spec;
    Rack rack{.name = in.name, .spec = s, .room = find(rooms_, s.room)};
    rack.subject = recorder_.subject(in.name);
    rack.stem = stems_.size();
    if (s.cdu.empty()) {
      stems_.push_back({.name = in.name});
    } else {
      rack.stem = *(rack.cdu = find(cdus_, s.cdu));
      if (spec.leaks)
        leaks_.emplace(
            racks_.size(),
            Leaks(*spec.leaks, s.count, engine_.random("cooling/leaks/" + in.name), engine_.now()));
    }
    Stem& stem = stems_[rack.stem];
    rack.place = stem.racks.size();
    stem.racks.push_back(racks_.size());
    racks_.push_back(std::move(rack));
  }
  build_branches();
}

CoolingPlant::Unit& CoolingPlant::unit(const std::string& name) {
  const auto it = unit_of_.find(name);
  check(it != unit_of_.end(), "the cooling plant has a unit of this name: " + name);
  return units_[it->second];
}

const CoolingPlant::Unit& CoolingPlant::unit(const std::string& name) const {
  return const_cast<CoolingPlant*>(this)->unit(name);
}

std::vector<std::string> CoolingPlant::unit_names() const {
  std::vector<std::string> names;
  for (const Unit& u : units_) names.push_back(u.name);
  return names;
}

double CoolingPlant::loop_temperature(const std::string& loop) const {
  return network().temperature(loops_[find(loops_, loop)].water);
}

double CoolingPlant::room_temperature(const std::string& room) const {
  return network().temperature(rooms_[find(rooms_, room)].air);
}

double CoolingPlant::coolant_temperature(const std::string& cdu) const {
  return network().temperature(*branches_[stems_[find(cdus_, cdu)].branch].coolant);
}

double CoolingPlant::plate_temperature(std::size_t rack) const {
  const Part& part = part_of(racks_.at(rack));
  check(part.plate.has_value(), "a rack with cold plates");
  return network().temperature(*part.plate);
}

bool CoolingPlant::is_short(const std::string& loop) const {
  const Loop& l = loops_[find(loops_, loop)];
  return l.pieces[l.piece].is_short;
}

}  // namespace trainyard::models
