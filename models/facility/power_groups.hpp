#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/power_spec.hpp"

/// What names, feeds and voltages in a PowerSpec mean, for its checks and for its layout.
///
///     find_named(spec, "ups");                             // the group
///     find_named(spec, "ups-1");                           // its second unit
///     order_of(spec).groups;                               // what feeds before what is fed
///     wirings_of(spec, order).at("pdu").voltage;
namespace trainyard::models {

std::string unit_name(const std::string& group, int count, std::size_t i);

/// The group that a name stands for, and which unit of it if it names one.
struct Named {
  std::string group;
  std::optional<std::size_t> unit;
};

std::optional<Named> find_named(const PowerSpec& spec, const std::string& name);

/// Groups, what feeds before what is fed; or the loop that prevents it.
struct GroupOrder {
  std::vector<std::string> groups = {};
  std::vector<std::string> loop = {};
};

GroupOrder order_of(const PowerSpec& spec);

struct Wiring {
  Volts voltage{400.0};
  int phases = 3;
};

/// Of what hangs on `feed`; a single-phase circuit of three phases is one to the neutral unless its
/// voltage says otherwise.
Wiring wiring_of(std::optional<Volts> voltage, std::optional<int> phases, const Wiring& feed);
/// Of each group; the order has no loop and all names are known.
std::map<std::string, Wiring> wirings_of(const PowerSpec& spec, const GroupOrder& order);

enum class Hang { as_its_feed, to_neutral, between_lines, not_at_all };

/// A single-phase node on three phases hangs where its voltage is, within the 10 % to which supply
/// voltages are kept. What isolates (transformer, UPS, rectifier) takes two lines at any voltage.
Hang hang(const Wiring& node, const Wiring& feed, bool isolates);
bool makes_voltage(PowerKind kind);

}  // namespace trainyard::models
