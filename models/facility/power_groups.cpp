#include "models/facility/power_groups.hpp"

#include <algorithm>
#include <cmath>

namespace trainyard::models {
namespace {

void visit(const PowerSpec& spec, const std::string& group, std::map<std::string, int>& seen,
           std::vector<std::string>& way, GroupOrder& order) {
  if (!order.loop.empty() || seen[group] == 2) return;
  way.push_back(group);
  if (seen[group] == 1) {
    order.loop.assign(std::find(way.begin(), way.end(), group), way.end());
    return;
  }
  seen[group] = 1;
  for (const std::string& name : spec.nodes.at(group).fed_by)
    if (const auto feed = find_named(spec, name)) visit(spec, feed->group, seen, way, order);
  if (!order.loop.empty()) return;
  way.pop_back();
  seen[group] = 2;
  order.groups.push_back(group);
}

}  // namespace

std::string unit_name(const std::string& group, int count, std::size_t i) {
  return count == 1 ? group : group + "-" + std::to_string(i);
}

std::optional<Named> find_named(const PowerSpec& spec, const std::string& name) {
  if (spec.nodes.contains(name)) return Named{name, std::nullopt};
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos || name.size() - dash > 7) return std::nullopt;
  const auto group = spec.nodes.find(name.substr(0, dash));
  if (group == spec.nodes.end()) return std::nullopt;
  const std::string digits = name.substr(dash + 1);
  std::size_t unit = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    unit = 10 * unit + std::size_t(digit - '0');
  }
  const int count = group->second.count;
  if (count > 1 && unit < std::size_t(count) && std::to_string(unit) == digits)
    return Named{group->first, unit};
  return std::nullopt;
}

GroupOrder order_of(const PowerSpec& spec) {
  GroupOrder order;
  std::map<std::string, int> seen;
  std::vector<std::string> way;
  for (const auto& [name, node] : spec.nodes) visit(spec, name, seen, way, order);
  return order;
}

Hang hang(const Wiring& node, const Wiring& feed, bool isolates) {
  if (node.phases == feed.phases) return Hang::as_its_feed;
  if (node.phases == 3) return isolates ? Hang::as_its_feed : Hang::not_at_all;
  const double ratio = node.voltage / feed.voltage;
  if (std::abs(ratio * std::sqrt(3.0) - 1) <= 0.1) return Hang::to_neutral;
  if (std::abs(ratio - 1) <= 0.1 || isolates) return Hang::between_lines;
  return Hang::not_at_all;
}

Wiring wiring_of(std::optional<Volts> voltage, std::optional<int> phases, const Wiring& feed) {
  Wiring wiring{feed.voltage, phases.value_or(feed.phases)};
  if (wiring.phases < feed.phases) wiring.voltage /= std::sqrt(3.0);
  if (voltage) wiring.voltage = *voltage;
  return wiring;
}

bool makes_voltage(PowerKind kind) {
  return kind == PowerKind::transformer || kind == PowerKind::ups || kind == PowerKind::rectifier;
}

std::map<std::string, Wiring> wirings_of(const PowerSpec& spec, const GroupOrder& order) {
  std::map<std::string, Wiring> wirings;
  for (const std::string& group : order.groups) {
    const PowerNodeSpec& node = spec.nodes.at(group);
    Wiring feed;
    if (node.is_source() || node.fed_by.empty()) {
      feed.phases = node.phases.value_or(3);
    } else if (const auto first = find_named(spec, node.fed_by.front())) {
      feed = wirings.at(first->group);
    }
    wirings[group] = wiring_of(node.voltage, node.phases, feed);
  }
  return wirings;
}

}  // namespace trainyard::models
