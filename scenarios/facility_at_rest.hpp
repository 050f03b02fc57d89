#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/power_layout.hpp"
#include "models/facility/steady_power.hpp"
#include "scenarios/facility_layout.hpp"
#include "scenarios/scenario.hpp"
#include "topologies/fabric.hpp"

/// The plant of a scenario long after anything changed, with every GPU at the same power: who draws
/// what.
///
///     racks     servers * (GPUs * power of one + the rest of a server)
///     losses    of each node of the power graph at that load
///     cooling   the cooling plant with that heat, in the weather of the hottest hour of the year
///               from the start of the run, until it has come to rest; then a mean of six hours
///     others    constant loads of the power graph
///     site      racks + switches + losses + cooling + others;   PUE = site / (racks + switches)
///
/// Batteries are full, nothing is broken. Switches are outside of the power graph.
///
///     PlantAtRest plant(scenario);
///     RollUp idle = plant.roll_up(plant.idle_gpu());
///     RollUp peak = plant.roll_up(plant.peak_gpu());
///     peak.site(), peak.pue();
namespace trainyard::scenarios {

/// Asked of a part of the cooling plant over what it can do: above this nothing of it runs.
inline constexpr double nothing_left = 1e3;

/// Of all units of one group of the power graph.
struct GroupLoss {
  std::string group;
  std::string kind;
  int units = 1;
  Watts lost{};
};

struct RollUp {
  Watts gpu{};                          // of one
  Watts gpus{}, servers{}, switches{};  // servers: without their GPUs
  std::vector<GroupLoss> losses = {};   // from the sources to the racks; groups that lose something
  Watts fans{}, pumps{}, chillers{}, coolers{};
  Watts others{};                           // constant loads beside racks
  std::map<std::string, Watts> units = {};  // through each load of the graph: cooling units
  // Of the cooling plant:
  bool is_cooled = true;                      // no rack too hot to run
  models::CoolingPlant::Limit limit = {};     // what is nearest to its limit
  double warmest_air_C = 0, coolant_C = 0;    // at the inlet of any rack; 0: there is none
  std::vector<std::string> short_loops = {};  // all they can do is asked for, and more

  Watts it() const { return gpus + servers + switches; }
  Watts lost() const;
  Watts cooling() const { return fans + pumps + chillers + coolers; }
  Watts site() const { return it() + lost() + cooling() + others; }
  double pue() const { return site() / it(); }
};

class PlantAtRest {
 public:
  /// A checked scenario with a facility. Both must live as long.
  PlantAtRest(const Scenario& scenario, Watts switches);
  explicit PlantAtRest(const Scenario& scenario);  // without switches
  PlantAtRest(const PlantAtRest&) = delete;
  PlantAtRest& operator=(const PlantAtRest&) = delete;

  /// Of the data sheet: a die of 25 degrees Celsius; the limit of the board.
  Watts idle_gpu() const;
  Watts peak_gpu() const { return layout_.gpu.power_limit; }
  Watts server(Watts gpu) const;
  const FacilityLayout& layout() const { return layout_; }
  /// Of the hottest hour; nothing without a cooling plant.
  const std::optional<models::Outdoors>& outdoors() const { return outdoors_; }

  RollUp roll_up(Watts gpu);
  /// Only the power graph; `units`: what cooling units draw through each of its loads.
  void load(Watts gpu, const std::map<std::string, Watts>& units);
  /// As it was loaded last; null: the scenario has no power graph.
  models::SteadyPower* power() { return power_.get(); }
  /// Group and kind of a node; circuits of racks are group "rack feed a", racks are "racks".
  std::string group(std::size_t node) const;
  std::string kind(std::size_t node) const;

 private:
  std::int64_t servers_of(std::size_t rack) const;
  void cool(RollUp& result, Watts gpu) const;
  void add_losses(RollUp& result) const;

  const Scenario& scenario_;
  FacilityLayout layout_;
  Watts switches_{};
  std::optional<models::Outdoors> outdoors_;
  models::PowerLayout graph_;
  std::unique_ptr<models::SteadyPower> power_;
  std::vector<std::string> groups_;  // of nodes
};

}  // namespace trainyard::scenarios
