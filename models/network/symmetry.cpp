#include "models/network/symmetry.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace trainyard::models {

namespace {

/// A colour and what it sees: the sorted (colour, weight) of the neighbours.
using Seen = std::pair<std::size_t, std::vector<std::pair<std::size_t, double>>>;

/// Numbers equal keys alike, in order of first appearance.
template <class Key>
std::size_t recolour(std::vector<Key>& keys, std::vector<std::size_t>& colours) {
  std::map<Key, std::size_t> numbers;
  for (std::size_t i = 0; i < keys.size(); ++i)
    colours[i] = numbers.try_emplace(std::move(keys[i]), numbers.size()).first->second;
  return numbers.size();
}

}  // namespace

SymmetryClasses find_symmetry(std::span<const double> capacities,
                              std::span<const ColouredVariable> variables) {
  SymmetryClasses classes;
  classes.of_link.resize(capacities.size());
  classes.of_variable.resize(variables.size());
  std::vector<std::vector<std::pair<std::size_t, double>>> users(capacities.size());
  for (std::size_t k = 0; k < variables.size(); ++k)
    for (const Load& load : variables[k].loads)
      users[load.link.index()].push_back({k, load.weight});

  std::vector<double> link_keys(capacities.begin(), capacities.end());
  classes.links = recolour(link_keys, classes.of_link);
  std::vector<std::tuple<double, double, double>> variable_keys;
  for (const ColouredVariable& v : variables) variable_keys.push_back({v.cap, v.bytes, v.start_s});
  classes.variables = recolour(variable_keys, classes.of_variable);

  for (;;) {
    std::vector<Seen> by_variable(variables.size()), by_link(capacities.size());
    for (std::size_t k = 0; k < variables.size(); ++k) {
      by_variable[k].first = classes.of_variable[k];
      for (const Load& load : variables[k].loads)
        by_variable[k].second.push_back({classes.of_link[load.link.index()], load.weight});
      std::sort(by_variable[k].second.begin(), by_variable[k].second.end());
    }
    for (std::size_t l = 0; l < capacities.size(); ++l) {
      by_link[l].first = classes.of_link[l];
      for (const auto& [k, weight] : users[l])
        by_link[l].second.push_back({classes.of_variable[k], weight});
      std::sort(by_link[l].second.begin(), by_link[l].second.end());
    }
    const std::size_t variables_now = recolour(by_variable, classes.of_variable);
    const std::size_t links_now = recolour(by_link, classes.of_link);
    // Classes only split: as many as before are the same ones.
    const bool is_stable = variables_now == classes.variables && links_now == classes.links;
    classes.variables = variables_now;
    classes.links = links_now;
    if (is_stable) return classes;
  }
}

std::vector<double> solve_quotient(std::span<const double> capacities,
                                   std::span<const ColouredVariable> variables,
                                   const SymmetryClasses& classes) {
  // The first member of each link class tells what one link of it carries: every member sees the
  // same.
  std::vector<std::size_t> example(classes.links, capacities.size());
  for (std::size_t l = capacities.size(); l-- > 0;) example[classes.of_link[l]] = l;
  MaxMin net;
  for (const std::size_t l : example) net.add_link(capacities[l]);
  std::vector<std::vector<Load>> loads(classes.variables);
  std::vector<double> caps(classes.variables);
  for (std::size_t k = 0; k < variables.size(); ++k) {
    const std::size_t c = classes.of_variable[k];
    caps[c] = variables[k].cap;
    for (const Load& load : variables[k].loads) {
      const std::size_t link_class = classes.of_link[load.link.index()];
      if (example[link_class] == load.link.index())
        loads[c].push_back({LinkIndex(link_class), load.weight});
    }
  }
  std::vector<VarIndex> vars;
  for (std::size_t c = 0; c < classes.variables; ++c) {
    std::stable_sort(loads[c].begin(), loads[c].end(),
                     [](const Load& a, const Load& b) { return a.link < b.link; });
    vars.push_back(net.add(loads[c], caps[c]));
  }
  net.solve();
  std::vector<double> rates;
  for (std::size_t k = 0; k < variables.size(); ++k)
    rates.push_back(net.rate(vars[classes.of_variable[k]]));
  return rates;
}

}  // namespace trainyard::models
