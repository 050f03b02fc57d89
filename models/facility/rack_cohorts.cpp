#include "models/facility/rack_cohorts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr std::size_t chips = std::size_t(RackPart::chips), air = std::size_t(RackPart::air),
                      mass = std::size_t(RackPart::mass);
constexpr std::size_t inner_ties = 2;
constexpr std::array part_names = {"chips", "air", "mass"};

}  // namespace

RackCohorts::Cohort& RackCohorts::at(RackCohort cohort) {
  return const_cast<Cohort&>(std::as_const(*this).at(cohort));
}

const RackCohorts::Cohort& RackCohorts::at(RackCohort cohort) const {
  check(cohort.index() < cohorts_.size() && !cohorts_[cohort.index()].racks.empty(),
        "a rack cohort is one of these and has racks", cohort.index());
  return cohorts_[cohort.index()];
}

RackCohort RackCohorts::add(std::string name, const RackThermalSpec& kind, std::size_t count,
                            double temperature_C) {
  check(count > 0, "a cohort has at least one rack");
  Cohort cohort{.name = std::move(name), .parts = {}, .ties = {}, .racks = {}};
  cohort.parts[chips].capacity = kind.chips_capacity;
  cohort.parts[air].capacity = kind.air_capacity;
  cohort.parts[mass].capacity = kind.mass_capacity;
  for (std::size_t i = 0; i < count; ++i) {
    cohort.racks.emplace_back(cohort_of_.size());
    cohort_of_.emplace_back(cohorts_.size());
  }
  for (std::size_t part = 0; part < 3; ++part)
    cohort.parts[part].node =
        network_.add_node(cohort.name + "/" + part_names[part],
                          double(count) * cohort.parts[part].capacity, temperature_C);
  cohort.ties = {Tie{RackPart::chips, cohort.parts[air].node, kind.chips_to_air, {}},
                 Tie{RackPart::air, cohort.parts[mass].node, kind.air_to_mass, {}}};
  link_up(cohort);
  cohorts_.push_back(std::move(cohort));
  return RackCohort(cohorts_.size() - 1);
}

void RackCohorts::link_up(Cohort& cohort) {
  cohort.ties[chips_to_air.index()].to = cohort.parts[air].node;
  cohort.ties[air_to_mass.index()].to = cohort.parts[mass].node;
  for (Tie& tie : cohort.ties)
    tie.link = network_.connect(cohort.parts[std::size_t(tie.part)].node, tie.to,
                                double(cohort.racks.size()) * tie.conductance);
}

RackLink RackCohorts::connect(RackCohort cohort, RackPart part, ThermalPlace to,
                              double conductance_W_per_K) {
  Cohort& of = at(cohort);
  Tie tie{part, to, conductance_W_per_K, {}};
  tie.link = network_.connect(of.parts[std::size_t(part)].node, to,
                              double(of.racks.size()) * conductance_W_per_K);
  of.ties.push_back(tie);
  return RackLink(of.ties.size() - 1);
}

void RackCohorts::set_heat(RackCohort cohort, RackPart part, Watts heat) {
  Part& of = at(cohort).parts[std::size_t(part)];
  of.heat = heat.value();
  network_.set_heat(of.node, Watts(double(at(cohort).racks.size()) * of.heat));
}

void RackCohorts::set_heat_slope(RackCohort cohort, RackPart part, double slope_W_per_K,
                                 double reference_C) {
  Part& of = at(cohort).parts[std::size_t(part)];
  of.slope = slope_W_per_K;
  of.reference = reference_C;
  network_.set_heat_slope(of.node, double(at(cohort).racks.size()) * of.slope, of.reference);
}

void RackCohorts::set_conductance(RackCohort cohort, RackLink link, double conductance_W_per_K) {
  Cohort& of = at(cohort);
  check(link.index() < of.ties.size(), "a rack link is one of its cohort", link.index());
  of.ties[link.index()].conductance = conductance_W_per_K;
  network_.set_conductance(of.ties[link.index()].link,
                           double(of.racks.size()) * conductance_W_per_K);
}

void RackCohorts::scale(Cohort& cohort) {
  const auto count = double(cohort.racks.size());
  for (const Part& part : cohort.parts) {
    network_.set_capacity(part.node, count * part.capacity);
    network_.set_heat(part.node, Watts(count * part.heat));
    network_.set_heat_slope(part.node, count * part.slope, part.reference);
  }
  for (const Tie& tie : cohort.ties) network_.set_conductance(tie.link, count * tie.conductance);
}

RackCohort RackCohorts::split(RackCohort cohort, std::span<const Rack> leaving) {
  check(!leaving.empty(), "at least one rack is split off");
  std::vector<Rack> away(leaving.begin(), leaving.end());
  std::sort(away.begin(), away.end());
  const std::vector<Rack> all = at(cohort).racks;
  check(std::adjacent_find(away.begin(), away.end()) == away.end() &&
            std::includes(all.begin(), all.end(), away.begin(), away.end()),
        "racks that are split off are in the cohort, each once", cohort.index());
  if (away.size() == all.size()) return cohort;

  std::size_t slot = 0;
  while (slot < cohorts_.size() && !cohorts_[slot].racks.empty()) ++slot;
  if (slot == cohorts_.size()) cohorts_.emplace_back();
  Cohort& from = at(cohort);
  Cohort& to = cohorts_[slot];
  to = from;
  to.racks = away;
  from.racks.clear();
  std::set_difference(all.begin(), all.end(), away.begin(), away.end(),
                      std::back_inserter(from.racks));
  for (Rack rack : away) cohort_of_[rack.index()] = RackCohort(slot);

  std::array<double, 3> temperatures{};
  for (std::size_t part = 0; part < 3; ++part)
    temperatures[part] = network_.temperature(from.parts[part].node);
  scale(from);
  for (std::size_t part = 0; part < 3; ++part)
    to.parts[part].node =
        network_.add_node(to.name + "/" + part_names[part],
                          double(to.racks.size()) * to.parts[part].capacity, temperatures[part]);
  link_up(to);
  scale(to);
  return RackCohort(slot);
}

bool RackCohorts::are_alike(const Cohort& a, const Cohort& b, double tolerance_K) const {
  if (a.ties.size() != b.ties.size()) return false;
  for (std::size_t i = 0; i < a.ties.size(); ++i) {
    const Tie &x = a.ties[i], &y = b.ties[i];
    if (x.part != y.part || x.conductance != y.conductance) return false;
    if (i >= inner_ties && x.to != y.to) return false;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const Part &x = a.parts[i], &y = b.parts[i];
    if (x.capacity != y.capacity || x.heat != y.heat || x.slope != y.slope ||
        x.reference != y.reference)
      return false;
  }
  for (std::size_t i = 0; i < 3; ++i)
    if (std::abs(network_.temperature(a.parts[i].node) - network_.temperature(b.parts[i].node)) >
        tolerance_K)
      return false;
  return true;
}

std::vector<RackCohorts::Merged> RackCohorts::merge(double tolerance_K) {
  std::vector<Merged> merged;
  for (std::size_t i = 0; i < cohorts_.size(); ++i)
    for (std::size_t j = i + 1; j < cohorts_.size() && !cohorts_[i].racks.empty(); ++j) {
      Cohort &into = cohorts_[i], &from = cohorts_[j];
      if (from.racks.empty() || !are_alike(into, from, tolerance_K)) continue;
      for (std::size_t part = 0; part < 3; ++part)
        network_.absorb(into.parts[part].node, from.parts[part].node);
      std::vector<Rack> all;
      std::merge(into.racks.begin(), into.racks.end(), from.racks.begin(), from.racks.end(),
                 std::back_inserter(all));
      into.racks = std::move(all);
      from.racks.clear();
      for (Rack rack : into.racks) cohort_of_[rack.index()] = RackCohort(i);
      scale(into);
      merged.push_back({RackCohort(i), RackCohort(j)});
    }
  return merged;
}

RackCohort RackCohorts::cohort_of(Rack rack) const {
  check(rack.index() < cohort_of_.size(), "a rack is one of these", rack.index());
  return cohort_of_[rack.index()];
}

const std::vector<Rack>& RackCohorts::racks(RackCohort cohort) const {
  return at(cohort).racks;
}

std::vector<RackCohort> RackCohorts::cohorts() const {
  std::vector<RackCohort> alive;
  for (std::size_t i = 0; i < cohorts_.size(); ++i)
    if (!cohorts_[i].racks.empty()) alive.emplace_back(i);
  return alive;
}

ThermalNode RackCohorts::node(RackCohort cohort, RackPart part) const {
  return at(cohort).parts[std::size_t(part)].node;
}

double RackCohorts::temperature(RackCohort cohort, RackPart part) const {
  return network_.temperature(node(cohort, part));
}

ThermalLink RackCohorts::link(RackCohort cohort, RackLink link) const {
  const Cohort& of = at(cohort);
  check(link.index() < of.ties.size(), "a rack link is one of its cohort", link.index());
  return of.ties[link.index()].link;
}

}  // namespace trainyard::models
