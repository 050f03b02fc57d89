#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/power_ratings.hpp"
#include "models/facility/redundancy.hpp"
#include "scenarios/facility_at_rest.hpp"
#include "scenarios/facility_step_power.hpp"
#include "scenarios/scenario.hpp"

/// What an architect asks of a plant before anything runs: what it draws, what is loaded how far,
/// what each single loss does, what redundant feeds share, and how training swings.
///
///     FacilityReport r = facility_report(scenario);         // checked, with a facility
///     r.peak.site(), r.ratings.front().share(), r.losses.front().dark_racks;
///     for (const std::string& w : facility_warnings(scenario)) print(w);
///
/// Loads are those of every GPU at its limit, except where idle is named. Page:
/// docs/models/facility.md.
namespace trainyard::scenarios {

/// What a node carries of what it may carry all the time: of W, VA and A the worst.
struct NodeLoad {
  std::string node;
  std::string group;
  std::string kind;
  double load = 0;
  double allowed = 0;  // of a current: the part that may be planned, 80 % unless rated for all
  std::string unit = {};
  std::string where = {};  // "line b"
  double share() const { return load / allowed; }
};

/// A node after the loss of another.
struct LoadAfterLoss {
  std::string node;
  double ratio = 0;  // of its rating
  double before = 0;
  std::optional<Duration> trips = {};  // if nobody acts
};

struct NodeLoss {
  std::string node;
  std::string group;
  int alike = 1;  // units of the group whose loss does the same
  std::size_t dark_racks = 0;
  Watts dark_load{};
  std::vector<std::string> dark_loads = {};  // beside racks: cooling units that stop
  std::optional<LoadAfterLoss> worst = {};   // that carries more than before
  std::size_t overloaded = 0;                // nodes above their rating
  /// Racks dark in the end if every breaker that trips has tripped.
  std::size_t dark_after_trips = 0;
  bool is_harmless() const {
    return dark_racks == 0 && dark_loads.empty() && overloaded == 0 && dark_after_trips == 0;
  }
};

struct FacilityReport {
  std::string scenario;
  std::size_t racks = 0;
  std::int64_t servers = 0, gpus = 0;
  std::optional<models::Outdoors> outdoors = {};  // hottest hour of a year
  RollUp idle, peak;
  bool has_power_graph = false;
  std::vector<NodeLoad> ratings = {};            // all nodes with a rating, worst first
  std::vector<models::Finding> violations = {};  // of nodes and of servers, worst first
  std::vector<NodeLoss> losses = {};             // of one node each, the gravest first
  std::vector<models::SharedPoint> shared = {};  // by the feeds of a rack
  StepPowers steps = {};
};

/// The scenario has passed check_scenario() and has a facility.
FacilityReport facility_report(const Scenario& scenario);

/// Ratings that are passed at full load, parents that redundant feeds share (beside the utility
/// itself), limits of swing that training passes. Nothing without a facility.
std::vector<std::string> facility_warnings(const Scenario& scenario);

}  // namespace trainyard::scenarios
