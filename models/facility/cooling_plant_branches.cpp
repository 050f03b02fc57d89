#include <algorithm>
#include <cmath>
#include <utility>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/liquid_loop.hpp"

/// Stems that run alike are one branch of the network.
namespace trainyard::models {
namespace {

/// Far below touch_K, so that no event moves by more than its own tolerance; far above rounding.
constexpr double joined_K = 1e-10;

}  // namespace

bool CoolingPlant::are_of_a_kind(const Stem& a, const Stem& b) const {
  if (a.cdu.has_value() != b.cdu.has_value() || a.racks.size() != b.racks.size()) return false;
  if (a.cdu &&
      (cdus_[*a.cdu].loop != cdus_[*b.cdu].loop || cdus_[*a.cdu].spec != cdus_[*b.cdu].spec))
    return false;
  for (std::size_t i = 0; i < a.racks.size(); ++i) {
    RackCoolingSpec x = racks_[a.racks[i]].spec, y = racks_[b.racks[i]].spec;
    x.cdu.clear();
    y.cdu.clear();
    if (x != y) return false;
  }
  return true;
}

void CoolingPlant::build_branches() {
  std::vector<std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < stems_.size(); ++i) {
    std::size_t k = 0;
    while (k < kinds.size() && !are_of_a_kind(stems_[kinds[k].front()], stems_[i])) ++k;
    if (k == kinds.size()) kinds.emplace_back();
    kinds[k].push_back(i);
    stems_[i].kind = k;
  }
  for (std::vector<std::size_t>& stems : kinds) sprout(std::move(stems), nullptr);
}

/// A branch of these stems, at the temperatures of the one that they leave or of a start.
std::size_t CoolingPlant::sprout(std::vector<std::size_t> stems, const Branch* like) {
  const Stem& first = stems_[stems.front()];
  Branch branch{.stems = std::move(stems)};
  const double n = branch.weight();
  if (first.cdu) {
    const Cdu& cdu = cdus_[*first.cdu];
    branch.coolant =
        network_.add_node(first.name, n * (loop_capacity(cdu.spec.volume) + cdu.spec.tank),
                          like ? network_.temperature(*like->coolant) : cdu.spec.set_point);
    branch.valve.link = network_.connect(*branch.coolant, loops_[cdu.loop].water, 0.0);
    branch.band = make_band(*branch.coolant);
  }
  for (const std::size_t index : first.racks) {
    const Rack& rack = racks_[index];
    const RackCoolingSpec& s = rack.spec;
    const Room& room = rooms_[rack.room];
    const Part* from = like ? &like->parts[rack.place] : nullptr;
    const auto add = [&](const char* what, double capacity, double start, const auto& node) {
      return network_.add_node(rack.name + what, n * (s.count * capacity),
                               from ? network_.temperature(node(*from)) : start);
    };
    Part part = from ? *from : Part{};
    part.inlet =
        add("", s.thermal.air_capacity, room.spec.set_point, [](const Part& p) { return p.inlet; });
    part.mass = add(" mass", s.thermal.mass_capacity, room.spec.set_point,
                    [](const Part& p) { return p.mass; });
    part.to_room = network_.connect(part.inlet, room.air, 0.0);
    part.to_mass = network_.connect(part.inlet, part.mass, 0.0);
    if (s.rear_door > 0) part.to_door = network_.connect(part.inlet, loops_[room.loop].water, 0.0);
    part.air = make_band(part.inlet);
    if (rack.cdu) {
      part.plate = add(" plates", s.plate_capacity, cdus_[*rack.cdu].spec.set_point,
                       [](const Part& p) { return *p.plate; });
      part.to_coolant = network_.connect(*part.plate, *branch.coolant, 0.0);
      part.plates = make_band(*part.plate);
    }
    branch.parts.push_back(part);
  }
  if (like) {
    const ThermalLink link = branch.valve.link;
    branch.valve = like->valve;
    branch.valve.link = link;
  }
  auto slot = std::find_if(branches_.begin(), branches_.end(),
                           [](const Branch& b) { return b.stems.empty(); });
  if (slot == branches_.end()) slot = branches_.emplace(branches_.end());
  *slot = std::move(branch);
  const auto index = std::size_t(slot - branches_.begin());
  for (const std::size_t stem : slot->stems) stems_[stem].branch = index;
  scale(*slot);
  read(*slot);
  return index;
}

/// Brings the network's numbers to those of as many stems as the branch has.
void CoolingPlant::scale(Branch& branch) {
  const double n = branch.weight();
  const Stem& first = stems_[branch.stems.front()];
  if (branch.coolant) {
    const Cdu& cdu = cdus_[*first.cdu];
    network_.set_capacity(*branch.coolant, n * (loop_capacity(cdu.spec.volume) + cdu.spec.tank));
    network_.set_conductance(branch.valve.link, n * (branch.valve.opening * branch.valve.full));
    network_.set_heat(*branch.coolant, Watts(n * cdu.pump_W));
  }
  for (std::size_t i = 0; i < branch.parts.size(); ++i) {
    const Part& part = branch.parts[i];
    const RackCoolingSpec& s = racks_[first.racks[i]].spec;
    network_.set_capacity(part.inlet, n * (s.count * s.thermal.air_capacity));
    network_.set_capacity(part.mass, n * (s.count * s.thermal.mass_capacity));
    network_.set_conductance(part.to_mass, n * (s.count * s.thermal.air_to_mass));
    if (part.plate) network_.set_capacity(*part.plate, n * (s.count * s.plate_capacity));
    put(branch, part);
  }
}

void CoolingPlant::put(const Branch& branch, const Part& part) {
  const double n = branch.weight();
  network_.set_heat(part.inlet, Watts(n * part.inlet_W));
  network_.set_conductance(part.to_room, n * part.room_link);
  if (part.to_door) network_.set_conductance(*part.to_door, n * part.door_link);
  if (!part.plate) return;
  network_.set_heat(*part.plate, Watts(n * part.plate_W));
  network_.set_conductance(*part.to_coolant, n * part.coolant_link);
}

void CoolingPlant::read(Branch& branch) {
  if (branch.coolant) branch.coolant_C = network_.temperature(*branch.coolant);
  for (Part& part : branch.parts) {
    part.inlet_C = network_.temperature(part.inlet);
    part.mass_C = network_.temperature(part.mass);
    part.plate_C = part.plate ? network_.temperature(*part.plate) : part.inlet_C;
  }
}

bool CoolingPlant::have_equal_inputs(const Stem& a, const Stem& b) const {
  for (std::size_t i = 0; i < a.racks.size(); ++i)
    if (racks_[a.racks[i]].heat_W != racks_[b.racks[i]].heat_W) return false;
  if (!a.cdu) return true;
  const Cdu &x = cdus_[*a.cdu], &y = cdus_[*b.cdu];
  return x.flow == y.flow && x.pump_W == y.pump_W && x.is_due == y.is_due;
}

/// The most numerous stay.
void CoolingPlant::split_branches() {
  const std::size_t size = branches_.size();
  for (std::size_t b = 0; b < size; ++b) {
    if (branches_[b].stems.size() < 2) continue;
    std::vector<std::vector<std::size_t>> groups;
    for (const std::size_t stem : branches_[b].stems) {
      auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
        return have_equal_inputs(stems_[g.front()], stems_[stem]);
      });
      if (group == groups.end()) group = groups.emplace(groups.end());
      group->push_back(stem);
    }
    if (groups.size() == 1) continue;
    const auto most =
        std::max_element(groups.begin(), groups.end(),
                         [](const auto& x, const auto& y) { return x.size() < y.size(); });
    branches_[b].stems = *most;
    groups.erase(most);
    scale(branches_[b]);
    for (std::vector<std::size_t>& stems : groups) {
      const Branch like = branches_[b];
      sprout(std::move(stems), &like);
    }
  }
}

bool CoolingPlant::are_alike(const Branch& a, const Branch& b) const {
  const Stem &x = stems_[a.stems.front()], &y = stems_[b.stems.front()];
  if (x.kind != y.kind || !have_equal_inputs(x, y)) return false;
  const auto is_near = [](double s, double t) { return std::abs(s - t) <= joined_K; };
  if (a.coolant && (a.valve.opening != b.valve.opening || a.valve.full != b.valve.full ||
                    a.valve.above_C != b.valve.above_C || a.valve.below_C != b.valve.below_C ||
                    !is_near(a.coolant_C, b.coolant_C)))
    return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i)
    if (!is_near(a.parts[i].inlet_C, b.parts[i].inlet_C) ||
        !is_near(a.parts[i].mass_C, b.parts[i].mass_C) ||
        !is_near(a.parts[i].plate_C, b.parts[i].plate_C))
      return false;
  return true;
}

void CoolingPlant::join_branches() {
  for (std::size_t a = 0; a < branches_.size(); ++a)
    for (std::size_t b = a + 1; b < branches_.size() && !branches_[a].stems.empty(); ++b)
      if (!branches_[b].stems.empty() && are_alike(branches_[a], branches_[b]))
        join(branches_[a], branches_[b]);
}

void CoolingPlant::join(Branch& into, Branch& from) {
  if (into.coolant) network_.absorb(*into.coolant, *from.coolant);
  for (std::size_t i = 0; i < into.parts.size(); ++i) {
    const Part &to = into.parts[i], &gone = from.parts[i];
    network_.absorb(to.inlet, gone.inlet);
    network_.absorb(to.mass, gone.mass);
    if (to.plate) network_.absorb(*to.plate, *gone.plate);
  }
  const std::size_t index = stems_[into.stems.front()].branch;
  for (const std::size_t stem : from.stems) stems_[stem].branch = index;
  std::vector<std::size_t> all;
  std::merge(into.stems.begin(), into.stems.end(), from.stems.begin(), from.stems.end(),
             std::back_inserter(all));
  into.stems = std::move(all);
  from = Branch{};
  scale(into);
  read(into);
}

std::size_t CoolingPlant::branches() const {
  return std::size_t(std::count_if(branches_.begin(), branches_.end(),
                                   [](const Branch& b) { return !b.stems.empty(); }));
}

}  // namespace trainyard::models
