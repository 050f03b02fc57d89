#include <cmath>
#include <map>
#include <set>

#include "models/facility/power_groups.hpp"
#include "models/facility/power_layout.hpp"

namespace trainyard::models {
namespace {

/// Supply voltages are kept within 10 % of what they are called.
constexpr double same_voltage = 0.1;

std::string what_exists(const PowerSpec& spec) {
  std::string text;
  for (const auto& [name, node] : spec.nodes) {
    text += (text.empty() ? "" : ", ") + name;
    if (node.count > 1) text += " (" + name + "-0 to -" + std::to_string(node.count - 1) + ")";
  }
  return text.empty() ? "there are no nodes" : "one of " + text;
}

std::vector<std::string> units_of(const PowerSpec& spec, const std::string& name) {
  const Named named = *find_named(spec, name);
  const int count = spec.nodes.at(named.group).count;
  std::vector<std::string> units;
  for (std::size_t i = 0; i < std::size_t(count); ++i)
    if (!named.unit || *named.unit == i) units.push_back(unit_name(named.group, count, i));
  return units;
}

}  // namespace

Problems check_power(const PowerSpec& spec) {
  Problems problems;
  const auto look_up = [&](const std::string& path, const std::string& name) {
    if (find_named(spec, name)) return true;
    problems.push_back({path, "there is no \"" + name + "\"", what_exists(spec)});
    return false;
  };
  const auto look_up_feeds = [&](const std::string& path, const std::vector<std::string>& feeds) {
    std::set<std::string> seen;
    for (const std::string& feed : feeds) {
      if (!look_up(path, feed)) continue;
      for (const std::string& unit : units_of(spec, feed))
        if (!seen.insert(unit).second) {
          problems.push_back({path, "\"" + unit + "\" is named twice", "each feed once"});
          break;
        }
    }
  };
  std::map<std::string, std::string> owner;  // of the name of a unit
  for (const auto& [name, node] : spec.nodes) {
    const std::string path = "nodes." + name;
    if (unit_name(name, node.count, 0).rfind("rack-", 0) == 0 ||
        name.find('/') != std::string::npos)
      problems.push_back({path, "\"" + name + "\" is a name of racks and their circuits",
                          "a name that does not begin with rack- and has no /"});
    for (std::size_t i = 0; i < std::size_t(node.count); ++i) {
      const auto [at, is_new] = owner.emplace(unit_name(name, node.count, i), name);
      if (!is_new)
        problems.push_back({path, at->first + " is a unit of " + at->second + " already",
                            "another name for one of the two"});
    }
    if (node.fed_by.empty() && !node.is_source())
      problems.push_back({path + ".fed_by", "nothing feeds " + name, what_exists(spec)});
    look_up_feeds(path + ".fed_by", node.fed_by);
  }
  for (const auto& [name, load] : spec.loads) {
    const std::string path = "loads." + name;
    if (name.rfind("rack-", 0) == 0 || name.find('/') != std::string::npos)
      problems.push_back({path, "\"" + name + "\" is a name of racks and their circuits",
                          "a name that does not begin with rack- and has no /"});
    if (const auto at = owner.find(name); at != owner.end())
      problems.push_back({path, name + " is a unit of " + at->second + " already",
                          "another name for one of the two"});
    if (load.fed_by.empty())
      problems.push_back({path + ".fed_by", "nothing feeds " + name, what_exists(spec)});
    look_up_feeds(path + ".fed_by", load.fed_by);
  }
  std::map<std::string, std::string> feed_of;  // of the name of a circuit
  for (const auto& [name, feed] : spec.racks.feeds) {
    look_up("racks.feeds." + name + ".from", feed.from);
    for (std::size_t i = 0; i < std::size_t(feed.circuits); ++i) {
      const auto [at, is_new] = feed_of.emplace(unit_name(name, feed.circuits, i), name);
      if (!is_new)
        problems.push_back({"racks.feeds." + name,
                            at->first + " is a circuit of " + at->second + " already",
                            "another name for one of the two"});
    }
  }
  const GroupOrder order = order_of(spec);
  if (!order.loop.empty()) {
    std::string loop = order.loop.front();
    for (std::size_t i = 1; i < order.loop.size(); ++i) loop += " is fed by " + order.loop[i];
    problems.push_back({"nodes." + order.loop.front() + ".fed_by", "a loop: " + loop,
                        "power comes from a utility or from generators"});
  }
  if (!problems.empty()) return problems;

  const std::map<std::string, Wiring> wirings = wirings_of(spec, order);
  const auto fits = [&](const std::string& path, const Wiring& wiring, const std::string& feed,
                        bool isolates) {
    const Wiring& above = wirings.at(find_named(spec, feed)->group);
    if (hang(wiring, above, isolates) != Hang::not_at_all) return;
    const auto volts = [](double v) { return std::to_string(std::lround(v)) + " V"; };
    const std::string what = std::to_string(wiring.phases) + " phase at " +
                             volts(wiring.voltage.value()) + " on " + feed + " with " +
                             std::to_string(above.phases) + " phases and " +
                             volts(above.voltage.value());
    problems.push_back(
        {path, what,
         above.phases == 1 ? std::string("one phase, or a transformer between")
                           : volts(above.voltage.value() / std::sqrt(3.0)) + " to the neutral or " +
                                 volts(above.voltage.value()) + " between two lines"});
  };
  const auto agree = [&](const std::string& path, const std::vector<std::string>& feeds) {
    const auto of = [&](const std::string& feed) {
      return wirings.at(find_named(spec, feed)->group);
    };
    const auto volts = [](const Wiring& w) {
      return std::to_string(std::lround(w.voltage.value())) + " V";
    };
    for (std::size_t i = 1; i < feeds.size(); ++i) {
      const Wiring first = of(feeds.front()), other = of(feeds[i]);
      const double ratio = other.voltage / first.voltage;
      if (first.phases != other.phases || std::abs(ratio - 1) <= same_voltage) continue;
      problems.push_back(
          {path, feeds.front() + " has " + volts(first) + ", " + feeds[i] + " has " + volts(other),
           "feeds of one voltage: a transformer before one of them"});
    }
  };
  for (const auto& [name, node] : spec.nodes) agree("nodes." + name + ".fed_by", node.fed_by);
  for (const auto& [name, load] : spec.loads) agree("loads." + name + ".fed_by", load.fed_by);
  for (const auto& [name, node] : spec.nodes)
    for (const std::string& feed : node.fed_by)
      fits("nodes." + name + ".voltage", wirings.at(name), feed, makes_voltage(node.kind));
  for (const auto& [name, feed] : spec.racks.feeds) {
    const Wiring& above = wirings.at(find_named(spec, feed.from)->group);
    fits("racks.feeds." + name + ".voltage", wiring_of(feed.voltage, feed.phases, above), feed.from,
         false);
  }
  return problems;
}

}  // namespace trainyard::models
