#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "models/facility/thermal_network.hpp"
#include "models/facility/thermal_spec.hpp"
#include "sim/id.hpp"
#include "sim/units.hpp"

/// Racks that are alike, stand alike and are loaded alike share one temperature, so they are one
/// block of nodes with n times the capacity, the conductance and the heat: the *same* equations,
/// not an approximation. A hall of a thousand racks round a room is then as large as its number of
/// cohorts.
///
///     dT/dt = (q - g (T - T_room)) / c   for each of n racks
///     n c dT/dt = n q - n g (T - T_room)   for their cohort; the room gets n g (T - T_room)
///
/// A rack that is to differ (a dead fan, another job) is split off first; `merge` joins again what
/// has become the same. All numbers handed in are for *one* rack.
///
///     RackCohorts racks(network);
///     RackCohort row = racks.add("row", RackThermalSpec{}, 512, 22.0);
///     RackLink flow = racks.connect(row, RackPart::air, room, 3333.3);
///     racks.set_heat(row, RackPart::chips, 22.4_kW);
///     RackCohort broken = racks.split(row, std::vector{Rack(17)});
///     racks.set_conductance(broken, flow, 0.0);
namespace trainyard::models {

struct ThermalRackTag;
struct RackCohortTag;
struct RackLinkTag;
using Rack = Id<ThermalRackTag>;  // in the order they were added, from 0
using RackCohort = Id<RackCohortTag>;
/// A link of every rack of a cohort; keeps its id when racks are split off.
using RackLink = Id<RackLinkTag>;

enum class RackPart { chips, air, mass };

/// Inside every rack.
inline constexpr RackLink chips_to_air{0};
inline constexpr RackLink air_to_mass{1};

class RackCohorts {
 public:
  /// The network outlives this.
  explicit RackCohorts(ThermalNetwork& network) : network_(network) {}

  RackCohort add(std::string name, const RackThermalSpec& kind, std::size_t count,
                 double temperature_C);
  RackLink connect(RackCohort, RackPart, ThermalPlace to, double conductance_W_per_K);

  void set_heat(RackCohort, RackPart, Watts);
  void set_heat_slope(RackCohort, RackPart, double slope_W_per_K, double reference_C);
  void set_conductance(RackCohort, RackLink, double conductance_W_per_K);

  /// The racks leave for a cohort of their own, with all that they have but watches. All of them
  /// leaving is no change.
  RackCohort split(RackCohort, std::span<const Rack> leaving);

  struct Merged {
    RackCohort into;
    RackCohort from;  // no longer valid, nor are its nodes and their watches
  };
  /// Joins cohorts of one kind with equal links, heat and temperatures; the lower id stays. Apart
  /// by up to the tolerance they take their mean, heat kept: each temperature moves by no more than
  /// that. 0 asks for equal bits.
  std::vector<Merged> merge(double tolerance_K = 1e-9);

  RackCohort cohort_of(Rack) const;
  const std::vector<Rack>& racks(RackCohort) const;  // ascending
  std::vector<RackCohort> cohorts() const;
  ThermalNode node(RackCohort, RackPart) const;
  double temperature(RackCohort, RackPart) const;
  /// The network's link for all racks together; the first two are inside.
  ThermalLink link(RackCohort, RackLink) const;

 private:
  struct Part {
    ThermalNode node;
    double capacity = 0.0;
    double heat = 0.0;
    double slope = 0.0, reference = 0.0;
  };
  struct Tie {
    RackPart part;
    ThermalPlace to;  // of ties that leave the rack
    double conductance = 0.0;
    ThermalLink link;
  };
  struct Cohort {
    std::string name;
    std::array<Part, 3> parts;
    std::vector<Tie> ties;  // by RackLink
    std::vector<Rack> racks;
  };

  Cohort& at(RackCohort);
  const Cohort& at(RackCohort) const;
  /// Brings the network's numbers to `count` times those of one rack.
  void scale(Cohort&);
  void link_up(Cohort&);
  bool are_alike(const Cohort&, const Cohort&, double tolerance_K) const;

  ThermalNetwork& network_;
  std::vector<Cohort> cohorts_;  // those without racks are free
  std::vector<RackCohort> cohort_of_;
};

}  // namespace trainyard::models
