#pragma once

#include <string>
#include <vector>

#include "models/facility/steady_power.hpp"

/// Ratings, at every node: active power against W, S = sqrt(P^2 + Q^2) against VA, the current of
/// each line against its breaker, of which 80 % may be planned as continuous load unless it is
/// rated for 100 %. An upper breaker may be ample while one PDU or one cord below carries too much:
/// all are looked at.
///
///     port_power(16_A, 220_V, 1, 0.9);                     // 3168 W
///     ports_needed(5_kW, 3168_W);                          // 2
///     SteadyPower power(layout);
///     power.set_racks(40_kW, 0.98);
///     power.solve();
///     for (const Finding& f : check_ratings(power)) print(to_text(f));
///     // pdu-2: 340 A on line b, made for 320 A as a continuous load (80 % of its rated current)
///
/// Sources: apparent power of one and three phases; NEC 210.20 and 215.3 for the 80 %.
namespace trainyard::models {

/// sqrt(3) U I for three phases, U I for one; `share` 0.8 for a continuous load.
VoltAmperes port_apparent(Amperes current, Volts voltage, int phases, double share = 1.0);
Watts port_power(Amperes current, Volts voltage, int phases, double power_factor,
                 double share = 1.0);
int ports_needed(Watts load, Watts port);
/// What a source rated in VA can give to a load of this power factor.
Watts usable_power(VoltAmperes rating, double power_factor);

/// What a plant has to be built for: full load through the conversion, network, losses of cooling,
/// and a margin of 20-30 % (usual practice).
struct PowerBudget {
  Watts servers{};  // at full load
  double efficiency = 0.95;
  Watts network{};
  Watts cooling{};
  double margin = 0.25;
  Watts total() const { return (servers / efficiency + network + cooling) * (1.0 + margin); }
};

enum class Rating {
  active,
  apparent,
  current,     // over the rated current
  continuous,  // within it, but over what may be planned
  rack,
  outlet,          // of the cord of a server
  outlet_alone,    // when one feed is lost
  supplies,        // of a server, together
  supplies_alone,  // when one feed is lost
};

struct Finding {
  std::string node;
  Rating rating = Rating::active;
  double found = 0.0;
  double limit = 0.0;
  std::string unit;
  std::string where = {};  // "line b", "feed a lost"
  /// Worst first when sorted by this.
  double ratio() const { return found / limit; }
};

std::string to_text(const Finding& finding);

/// Of a solved plant; worst first.
std::vector<Finding> check_ratings(const SteadyPower& power);
/// Supplies and cords of one server, all alike, with all feeds and with one lost; and the rack:
/// `servers` such servers against what it is made for.
std::vector<Finding> check_servers(const PowerSpec& spec, const PowerLayout& layout, Watts server,
                                   int servers);

}  // namespace trainyard::models
