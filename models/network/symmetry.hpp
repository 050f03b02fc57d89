#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/network/max_min.hpp"

/// Which variables are alike, exactly: colour refinement.
///
/// Variables start with a colour given by the caller (equal bytes, start, cap), links with their
/// capacity. Each round a variable's new colour is its old one with the multiset of (colour of
/// link, weight) over its links, and a link's with that over its users, until no class splits. At
/// every level of the filling all variables of a class then have the same rate, so it is enough to
/// solve the *quotient*: one variable and one link a class, the weight of a variable class on a
/// link class being the sum of the weights of all its members on one such link. Identical replicas
/// are found this way, never assumed: one odd path or a failed link splits exactly what it touches.
///
/// On sprayed fabrics thousands of variables become a handful; on hashed ones nothing is gained.
/// Cost: rounds · edges · log(edges). Colours are compared whole, not by hash: no collisions.
///
///     SymmetryClasses classes = find_symmetry(capacities, variables);
///     std::vector<double> rates = solve_quotient(capacities, variables, classes);
///
/// Source: B. Weisfeiler, A. Leman, 1968 (1-dimensional refinement); proof for max-min:
/// docs/models/fluid-network.md.
namespace trainyard::models {

struct ColouredVariable {
  std::vector<Load> loads;  // each link once
  double cap = MaxMin::unlimited;
  double bytes = 0;  // with `start_s`: variables that differ here end at different times
  double start_s = 0;
};

struct SymmetryClasses {
  std::vector<std::size_t> of_variable;  // class of each, numbered in order of first member
  std::vector<std::size_t> of_link;
  std::size_t variables = 0;  // number of classes
  std::size_t links = 0;
};

SymmetryClasses find_symmetry(std::span<const double> capacities,
                              std::span<const ColouredVariable> variables);

/// The max-min rates of all variables from those of one a class.
std::vector<double> solve_quotient(std::span<const double> capacities,
                                   std::span<const ColouredVariable> variables,
                                   const SymmetryClasses& classes);

}  // namespace trainyard::models
