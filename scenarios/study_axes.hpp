#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/json_tree.hpp"

/// The points of a study before any scenario is made of them: axes with their values, crossed,
/// zipped, filtered or sampled.
namespace trainyard::scenarios {

struct AxisValue;

/// "scale <= 4096 or topology = fat-tree": a point is kept if one of its comparisons holds.
struct Condition {
  struct Comparison {
    std::size_t axis = 0;
    std::string relation;  // = != < <= > >=
    std::string label;
    double number = 0;  // not a number: compared as text
  };
  std::vector<Comparison> any;

  bool holds(const std::vector<const AxisValue*>& point) const;
};

/// Of one axis: what it is called in tables, as a number (not a number: none), and what it puts
/// into the scenario. Cases: settings that depend on the values of other axes, laid over it in
/// order.
struct AxisValue {
  struct Case {
    Condition where;
    Node set;
  };
  std::string label;
  double number = 0;
  Node node;
  std::vector<Case> cases = {};
};

struct Axis {
  std::string name;
  std::string path;       // empty: values are objects that are laid over the scenario
  std::string units;      // of the numbers
  bool is_given = false;  // points are ranked for each of its values
  Place place;
  std::vector<AxisValue> values;
  /// Of a range: what lies at a share of the way, 0 to 1.
  std::function<AxisValue(double)> at;
};

struct AxisPlan {
  std::vector<Axis> axes;
  std::vector<std::vector<std::size_t>> zipped;  // axes that advance together
  std::vector<Condition> where;                  // all must hold
  std::size_t samples = 0;                       // of a Latin hypercube; 0: the grid
  std::uint64_t sample_seed = 1;
};

/// Values by axis, of every point. The grid counts like digits: the last axis fastest; axes that
/// are zipped count as the first of them. A Latin hypercube of n samples cuts every axis into n
/// equal parts and uses each once (McKay, Beckman and Conover, Technometrics 21(2), 1979). Empty
/// and `too_many` set: more than `most`.
std::vector<std::vector<AxisValue>> points_of(const AxisPlan& plan, std::size_t most,
                                              bool& too_many);

/// The parts of a study that say what is varied; what is wrong with them goes to `diagnostics`.
AxisPlan read_axes(const Node& study, std::vector<Diagnostic>& diagnostics);

/// "10 min" -> 600 s, "4 GB/s" -> 4e9 B/s, "1,024" -> 1024: not a number and no units if it is none
/// of these.
double number_of_label(const std::string& label, std::string& units);

}  // namespace trainyard::scenarios
