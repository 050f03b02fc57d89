#pragma once

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

/// The slow, obvious twin of MaxMin: textbook progressive filling in long double. All rates rise
/// together from zero; when a link is full or a variable at its cap, those concerned stop; the
/// others go on. Every round looks at everything.
namespace trainyard::tests {

struct FillingProblem {
  struct Variable {
    std::vector<std::pair<std::size_t, double>> loads;  // link, weight; no link twice
    double cap = std::numeric_limits<double>::infinity();
  };
  std::vector<double> capacities;
  std::vector<Variable> variables;
};

inline std::vector<double> water_filling(const FillingProblem& p) {
  const std::size_t links = p.capacities.size(), n = p.variables.size();
  std::vector<long double> rate(n, 0.0L);
  std::vector<bool> is_done(n, false);
  for (std::size_t left = n; left > 0;) {
    std::vector<long double> used(links, 0.0L), rising(links, 0.0L);
    for (std::size_t k = 0; k < n; ++k)
      for (const auto& [l, w] : p.variables[k].loads)
        (is_done[k] ? used[l] += w * rate[k] : rising[l] += w);
    long double level = std::numeric_limits<long double>::infinity();
    std::size_t full = links;
    for (std::size_t l = 0; l < links; ++l) {
      if (rising[l] <= 0) continue;
      long double at = (p.capacities[l] - used[l]) / rising[l];
      if (at < 0) at = 0;
      if (at < level) level = at, full = l;
    }
    std::size_t capped = n;
    for (std::size_t k = 0; k < n; ++k)
      if (!is_done[k] && p.variables[k].cap <= level) level = p.variables[k].cap, capped = k;
    for (std::size_t k = 0; k < n; ++k) {
      if (is_done[k]) continue;
      bool stops = k == capped;
      if (capped == n)
        for (const auto& [l, w] : p.variables[k].loads) stops = stops || (l == full && w > 0);
      if (!stops) continue;
      rate[k] = level;
      is_done[k] = true;
      --left;
    }
  }
  return {rate.begin(), rate.end()};
}

}  // namespace trainyard::tests
