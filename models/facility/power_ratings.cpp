#include "models/facility/power_ratings.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

/// Rounding is no overload.
bool exceeds(double found, double limit) {
  return found > limit * (1 + 1e-9);
}

std::string number(double value, const std::string& unit) {
  if (unit == "W") return to_text(Watts(value));
  if (unit == "VA") return to_text(VoltAmperes(value));
  return to_text(Amperes(value));
}

void sort_by_ratio(std::vector<Finding>& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.ratio() > b.ratio(); });
}

}  // namespace

VoltAmperes port_apparent(Amperes current, Volts voltage, int phases, double share) {
  check(phases == 1 || phases == 3, "circuits have one phase or three", phases);
  const double conductors = phases == 3 ? std::sqrt(3.0) : 1.0;
  return VoltAmperes(conductors * voltage.value() * current.value() * share);
}

Watts port_power(Amperes current, Volts voltage, int phases, double power_factor, double share) {
  return Watts(port_apparent(current, voltage, phases, share).value() * power_factor);
}

int ports_needed(Watts load, Watts port) {
  check(port > Watts(0), "a port gives power");
  return int(std::ceil(load / port * (1 - 1e-12)));
}

Watts usable_power(VoltAmperes rating, double power_factor) {
  return Watts(rating.value() * power_factor);
}

std::string to_text(const Finding& f) {
  std::string text = f.node + ": " + number(f.found, f.unit);
  if (!f.where.empty()) text += (f.where.rfind("line", 0) == 0 ? " on " : " with ") + f.where;
  text += ", made for " + number(f.limit, f.unit);
  switch (f.rating) {
    case Rating::active:
    case Rating::apparent:
    case Rating::current:
    case Rating::rack:
      break;
    case Rating::continuous:
      text += " as a continuous load (80 % of its rated current)";
      break;
    case Rating::outlet:
    case Rating::outlet_alone:
      text += " (outlet of each cord)";
      break;
    case Rating::supplies:
    case Rating::supplies_alone:
      text += " (power supplies of a server)";
      break;
  }
  return text;
}

std::vector<Finding> check_ratings(const SteadyPower& power) {
  std::vector<Finding> findings;
  const PowerLayout& layout = power.layout();
  for (std::size_t n = 0; n < layout.nodes.size(); ++n) {
    const std::string& name = layout.nodes[n].name;
    const NodeLimits& limits = layout.limits[n];
    const PowerPaths::Flow& flow = power.flow(n);
    const bool is_rack = layout.nodes[n].kind == PlantKind::rack;
    const auto note = [&](Rating rating, double found, double limit, const char* unit,
                          std::string where = {}) {
      if (exceeds(found, limit))
        findings.push_back({name, rating, found, limit, unit, std::move(where)});
    };
    if (limits.active)
      note(is_rack ? Rating::rack : Rating::active, flow.out_W, limits.active->value(), "W");
    if (limits.apparent)
      note(Rating::apparent, std::hypot(flow.out_W, flow.out_var), limits.apparent->value(), "VA");
    if (!limits.current) continue;
    const std::array<double, 3> currents = power.line_currents_A(n);
    for (std::size_t line = 0; line < 3; ++line) {
      const double rated_A = limits.current->value();
      const std::string where =
          layout.nodes[n].phases == 3 ? std::string("line ") + "abc"[line] : std::string();
      if (exceeds(currents[line], rated_A)) {
        note(Rating::current, currents[line], rated_A, "A", where);
      } else {
        note(Rating::continuous, currents[line], rated_A * limits.continuous, "A", where);
      }
      // The lines of a single-phase circuit carry the same current: one finding is enough.
      if (layout.nodes[n].phases != 3 && currents[line] > 0) break;
    }
  }
  sort_by_ratio(findings);
  return findings;
}

std::vector<Finding> check_servers(const PowerSpec& spec, const PowerLayout& layout, Watts server,
                                   int servers) {
  const PowerRacksSpec& racks = spec.racks;
  std::vector<Finding> findings;
  const auto note = [&](const std::string& node, Rating rating, double found, double limit,
                        const char* unit, std::string where = {}) {
    if (exceeds(found, limit))
      findings.push_back({node, rating, found, limit, unit, std::move(where)});
  };
  if (racks.rating)
    note("rack", Rating::rack, server.value() * servers, racks.rating->value(), "W",
         std::to_string(servers) + " servers of " + to_text(server));
  const auto supplies = [&](double count, Rating rating, const std::string& where) {
    if (!racks.supply_rating) return;
    note("server", rating, server.value(), count * racks.supply_rating->value(), "W", where);
  };
  const auto outlet = [&](double count, double voltage_V, Rating rating, const std::string& where) {
    if (!racks.outlet) return;
    const double current_A = server.value() / racks.power_factor / count / voltage_V;
    note("server", rating, current_A, racks.outlet->value(), "A", where);
  };
  const double cords = racks.supplies, feeds = double(racks.feeds.size());
  supplies(cords, Rating::supplies, "");
  if (feeds > 1) supplies(cords - cords / feeds, Rating::supplies_alone, "one feed lost");
  if (layout.racks.empty()) {
    sort_by_ratio(findings);
    return findings;
  }
  std::size_t circuit = 0;
  for (const auto& [name, feed] : racks.feeds) {
    const std::string& first = layout.nodes[layout.racks.front()].from[circuit];
    circuit += std::size_t(feed.circuits);
    const auto at = std::find_if(layout.nodes.begin(), layout.nodes.end(),
                                 [&](const PlantNode& node) { return node.name == first; });
    double voltage_V = at->voltage.value() / (at->phases == 3 ? std::sqrt(3.0) : 1.0);
    if (racks.outlet_voltage) voltage_V = racks.outlet_voltage->value();
    outlet(cords, voltage_V, Rating::outlet, "feed " + name);
    if (feeds > 1)
      outlet(cords - cords / feeds, voltage_V, Rating::outlet_alone,
             "feed " + name + " and without another");
  }
  sort_by_ratio(findings);
  return findings;
}

}  // namespace trainyard::models
