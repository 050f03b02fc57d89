#pragma once

#include <string>
#include <vector>

#include "analysis/table.hpp"
#include "models/facility/power_layout.hpp"
#include "scenarios/facility.hpp"
#include "scenarios/scenario.hpp"
#include "sim/recorder.hpp"

/// The plant in a run file: what it is made of, and how loads and temperatures went.
///
///     plant/power_nodes, power_feeds     the power graph without racks and their circuits
///     plant/cooling                      loops, rooms, CDUs
///     plant/zones                        racks that are cooled alike
///     series/plant/power/NODE            W at its output
///     series/plant/temperature/NAME      degrees Celsius: water of a loop, air of a room, coolant
///
/// A series has a new value when it has moved by a hundredth of the rating, or by a fifth of a
/// degree, since the last one; energies are not made from them. States are in the event log, whose
/// subjects have the same names. At most `most_series` nodes and as many temperatures have one, in
/// the order of the tables.
///
/// Page: docs/guide/run-file.md. Growth: O(series) for a change of loads.
namespace trainyard::scenarios {

class PlantRecord {
 public:
  static constexpr std::size_t most_series = 128;

  /// All must live as long.
  PlantRecord(const Scenario& scenario, Facility& facility, sim::Recorder& recorder);

  /// After the facility has observed.
  void observe(Time now);
  std::vector<analysis::Table> tables() const;

 private:
  struct Node {
    std::size_t at = 0;  // in the layout
    double step_W = 0;
    sim::SeriesId series{};
    double told_W = -1;
  };
  struct Body {
    enum class Kind { loop, room, cdu };
    Kind kind = Kind::loop;
    std::string name;
    std::string on = {};  // its loop
    Watts capacity{};
    double set_point_C = 0;
    bool has_series = false;
    sim::SeriesId series{};
    double told_C = -1e9;
  };
  double temperature(const Body& body) const;
  void add_power(std::vector<analysis::Table>& tables) const;
  void add_cooling(std::vector<analysis::Table>& tables) const;

  Facility& facility_;
  sim::Recorder& recorder_;
  models::PowerLayout layout_;
  std::vector<std::size_t> places_;  // of nodes in the table; nowhere: not in it
  std::vector<Node> nodes_;
  std::vector<Body> bodies_;
  std::size_t seen_steps_ = std::size_t(-1);
};

}  // namespace trainyard::scenarios
