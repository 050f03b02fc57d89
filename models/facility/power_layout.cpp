#include "models/facility/power_layout.hpp"

#include <algorithm>
#include <cmath>

#include "models/facility/power_groups.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Units = std::vector<std::size_t>;

PlantKind plant_kind(PowerKind kind) {
  switch (kind) {
    case PowerKind::utility:
      return PlantKind::utility;
    case PowerKind::generators:
      return PlantKind::generators;
    case PowerKind::transfer_switch:
      return PlantKind::transfer;
    case PowerKind::ups:
      return PlantKind::ups;
    case PowerKind::breaker:
      return PlantKind::breaker;
    case PowerKind::transformer:
      return PlantKind::transformer;
    case PowerKind::switchgear:
      return PlantKind::switchgear;
    case PowerKind::busway:
      return PlantKind::busway;
    case PowerKind::pdu:
      return PlantKind::pdu;
    case PowerKind::rectifier:
      return PlantKind::rectifier;
  }
  return PlantKind::bus;
}

class Layout {
 public:
  Layout(const PowerSpec& spec, int racks) : spec_(spec), racks_(racks) {}

  PowerLayout make() {
    const GroupOrder order = order_of(spec_);
    check(order.loop.empty(), "feeds close no loop");
    wirings_ = wirings_of(spec_, order);
    for (const std::string& group : order.groups) add_group(group);
    for (const auto& [name, feed] : spec_.racks.feeds) out_.feeds.push_back(name);
    for (std::size_t r = 0; r < std::size_t(racks_); ++r) add_rack(r);
    for (const auto& [name, load] : spec_.loads) add_load(name, load);
    return std::move(out_);
  }

 private:
  Units units_of(const std::string& name) const {
    const auto named = find_named(spec_, name);
    check(named.has_value(), "a feed is a node of the plant");
    const Units& units = units_.at(named->group);
    return named->unit ? Units{units[*named->unit]} : units;
  }

  void add_group(const std::string& group) {
    const PowerNodeSpec& spec = spec_.nodes.at(group);
    std::vector<Units> parents;
    for (const std::string& name : spec.fed_by) parents.push_back(units_of(name));
    for (std::size_t i = 0; i < std::size_t(spec.count); ++i) {
      PlantNode node;
      node.name = unit_name(group, spec.count, i);
      node.kind = plant_kind(spec.kind);
      Units feeds;
      for (const Units& units : parents) {
        const std::size_t children = std::size_t(spec.count);
        if (children >= units.size()) {
          feeds.push_back(units[i % units.size()]);
        } else {
          for (std::size_t j = i; j < units.size(); j += children) feeds.push_back(units[j]);
        }
      }
      NodeLimits limits = limits_of(spec, wirings_.at(group));
      node.rating = rating_of(spec, limits, wirings_.at(group));
      const PowerLossSpec loss = spec.loss();
      node.a0 = loss.a0;
      node.a1 = loss.a1;
      node.a2 = loss.a2;
      if (spec.breaker) node.breaker = *spec.breaker;
      if (spec.ups) node.ups = *spec.ups;
      if (spec.generators) node.generators = *spec.generators;
      if (spec.transfer) node.transfer = *spec.transfer;
      const bool isolates = makes_voltage(spec.kind);
      units_[group].push_back(add(std::move(node), limits, feeds, wirings_.at(group), isolates));
      if (spec.utility) out_.utilities[units_[group].back()] = *spec.utility;
    }
  }

  static NodeLimits limits_of(const PowerNodeSpec& spec, const Wiring& wiring) {
    NodeLimits limits;
    limits.active = spec.active;
    limits.apparent = spec.apparent;
    if (!limits.active && spec.power_factor < 1.0) {
      if (spec.apparent) limits.active = Watts(spec.apparent->value() * spec.power_factor);
      if (!spec.apparent && spec.current)
        limits.active = power_at(*spec.current, wiring) * spec.power_factor;
    }
    limits.current = spec.current;
    if (spec.breaker) {
      limits.current = spec.breaker->rating;
      limits.continuous = spec.breaker->continuous_share();
    }
    if (spec.generators) {
      const Watts sets = spec.generators->rating * double(spec.generators->sets);
      limits.active = limits.active ? std::min(*limits.active, sets) : sets;
    }
    return limits;
  }

  static Watts power_at(Amperes current, const Wiring& wiring) {
    const double conductors = wiring.phases == 3 ? std::sqrt(3.0) : 1.0;
    return Watts(conductors * wiring.voltage.value() * current.value());
  }

  /// What losses are parts of.
  static Watts rating_of(const PowerNodeSpec& spec, const NodeLimits& limits,
                         const Wiring& wiring) {
    Watts rating{};
    if (limits.current) rating = power_at(*limits.current, wiring);
    if (spec.apparent) rating = Watts(spec.apparent->value());
    return limits.active ? *limits.active : rating;
  }

  void add_rack(std::size_t r) {
    PlantNode rack;
    rack.name = "rack-" + std::to_string(r);
    rack.kind = PlantKind::rack;
    Units circuits;
    Wiring wiring;
    for (const auto& [name, feed] : spec_.racks.feeds) {
      const Units units = units_of(feed.from);
      const std::size_t unit = units[unit_of(feed, r, units.size())];
      wiring = wiring_of(feed.voltage, feed.phases, wiring_at(unit));
      for (std::size_t i = 0; i < std::size_t(feed.circuits); ++i) {
        PlantNode circuit;
        circuit.name = unit_name(rack.name + "/" + name, feed.circuits, i);
        NodeLimits limits;
        if (feed.breaker) {
          circuit.kind = PlantKind::breaker;
          circuit.breaker = *feed.breaker;
          limits.current = feed.breaker->rating;
          limits.continuous = feed.breaker->continuous_share();
        }
        circuits.push_back(add(std::move(circuit), limits, {unit}, wiring, false));
      }
    }
    NodeLimits limits;
    limits.active = spec_.racks.rating;
    out_.racks.push_back(add(std::move(rack), limits, circuits, wiring, true));
  }

  void add_load(const std::string& name, const PowerLoadSpec& spec) {
    PlantNode load;
    load.name = name;
    load.kind = PlantKind::load;
    Units feeds;
    for (const std::string& feed : spec.fed_by)
      for (const std::size_t unit : units_of(feed)) feeds.push_back(unit);
    check(!feeds.empty(), "a load has a feed");
    out_.loads[name] = add(std::move(load), {}, feeds, wiring_at(feeds.front()), false);
  }

  std::size_t unit_of(const RackFeedSpec& feed, std::size_t r, std::size_t units) const {
    std::size_t unit = r + std::size_t(feed.offset);
    if (feed.attach == Attach::in_blocks)
      unit = r * units / std::size_t(racks_) + std::size_t(feed.offset);
    if (feed.attach == Attach::in_pairs && units > 1) unit += (r / units) % (units - 1);
    return unit % units;
  }

  Wiring wiring_at(std::size_t n) const { return {out_.nodes[n].voltage, out_.nodes[n].phases}; }

  std::size_t add(PlantNode node, NodeLimits limits, const Units& feeds, const Wiring& wiring,
                  bool isolates) {
    const std::size_t n = out_.nodes.size();
    node.voltage = wiring.voltage;
    node.phases = wiring.phases;
    for (const std::size_t feed : feeds) node.from.push_back(out_.nodes[feed].name);
    limits.lines = wiring.phases == 3 ? Lines::abc : Lines::a;
    if (node.draws()) {
      limits.lines = Lines::abc;  // those of a rack are those of its circuits
    } else if (wiring.phases == 1 && !feeds.empty()) {
      limits.lines = lines_on(feeds.front(), wiring, isolates);
    }
    node.lines = limits.lines;
    out_.nodes.push_back(std::move(node));
    out_.limits.push_back(limits);
    dealt_.push_back(0);
    return n;
  }

  /// The next phase, or pair of phases, of a three-phase feed.
  Lines lines_on(std::size_t feed, const Wiring& wiring, bool isolates) {
    static constexpr Lines to_neutral[] = {Lines::a, Lines::b, Lines::c};
    static constexpr Lines between[] = {Lines::ab, Lines::bc, Lines::ca};
    switch (hang(wiring, wiring_at(feed), isolates)) {
      case Hang::as_its_feed:
        return out_.limits[feed].lines;
      case Hang::to_neutral:
        return to_neutral[dealt_[feed]++ % 3];
      case Hang::between_lines:
        return between[dealt_[feed]++ % 3];
      case Hang::not_at_all:
        break;
    }
    check(false, "a single-phase circuit fits its feed");
    return Lines::a;
  }

  const PowerSpec& spec_;
  int racks_;
  PowerLayout out_;
  std::map<std::string, Wiring> wirings_;
  std::map<std::string, Units> units_;
  std::vector<std::size_t> dealt_;  // single-phase circuits of a node
};

}  // namespace

double reactive_share(double power_factor) {
  return std::sqrt(1 / (power_factor * power_factor) - 1);
}

PowerLayout lay_out_power(const PowerSpec& spec, int racks) {
  check(racks >= 0, "a cluster has racks");
  return Layout(spec, racks).make();
}

}  // namespace trainyard::models
