#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/power_devices_spec.hpp"
#include "models/facility/utility_spec.hpp"
#include "sim/describe.hpp"
#include "sim/units.hpp"

/// What a scenario says about the power graph: groups of equal units by name, each with the names
/// of what feeds it, and how the cluster's racks hang on them.
///
///     "nodes": { "utility": {"kind": "utility"},
///                "ups":     {"kind": "ups", "fed_by": ["utility"], "apparent": "500 kVA", "count":
///                2}, "pdu":     {"kind": "pdu", "fed_by": ["ups"], "current": "400 A", "count": 2}
///                },
///     "racks": { "feeds": { "a": {"from": "pdu-0"}, "b": {"from": "pdu-1"} } }
///
///     "loads": { "pumps": {"fed_by": ["pdu-0", "pdu-1"], "constant": "30 kW"} }
///
/// A name stands for its group or, with its number, for one unit ("ups-1"). Of two groups, the
/// units of the larger are dealt to those of the smaller in turn: eight PDU on two UPS are four
/// each; four UPS and one bus are in parallel on it. N+1, 2N, 3N/2 and block redundancy are nothing
/// but feeds.
///
/// Losses a0 + a1 x + a2 x^2 of the rating at the load x. The curves are fits to typical
/// efficiencies (makers' data sheets): UPS 95.0 / 96.3 / 96.0 % at 25 / 50 / 100 % load; in eco
/// mode 98.5 / 99.0 / 99.0 %; rectifier 97.0 / 97.5 / 97.0 %; transformer of 1-2.5 MVA 99.3 % at
/// its best; distribution (busway, PDU, cables) 99.3 % at full load.
namespace trainyard::models {

enum class PowerKind {
  utility,
  generators,
  transfer_switch,
  ups,
  transformer,
  switchgear,
  busway,
  pdu,
  rectifier,
  breaker
};

enum class LossCurve { none, ups, ups_eco, rectifier, transformer, distribution };

struct PowerLossSpec {
  double a0 = 0.0, a1 = 0.0, a2 = 0.0;
};

template <class Visitor>
void describe(Visitor& v, PowerLossSpec& s) {
  v.optional("a0", s.a0, "loss without load, part of the rating", between(0, 1));
  v.optional("a1", s.a1, "times the load", between(0, 1));
  v.optional("a2", s.a2, "times the square of the load", between(0, 1));
}

constexpr PowerLossSpec losses_of(LossCurve curve) {
  switch (curve) {
    case LossCurve::none:
      return {};
    case LossCurve::ups:
      return {0.010555, 0.003512, 0.027600};
    case LossCurve::ups_eco:  // the fit has a1 = -0.000154: taken as nothing
      return {0.003418, 0.0, 0.006837};
    case LossCurve::rectifier:
      return {0.005287, 0.004494, 0.021147};
    case LossCurve::transformer:
      return {0.0014, 0.0, 0.0075};
    case LossCurve::distribution:
      return {0.0, 0.0, 0.007};
  }
  return {};
}

/// A group of `count` equal nodes; ratings are those of one.
struct PowerNodeSpec {
  PowerKind kind = PowerKind::pdu;
  std::vector<std::string> fed_by = {};
  int count = 1;
  std::optional<Watts> active = {};
  std::optional<VoltAmperes> apparent = {};
  std::optional<Amperes> current = {};
  double power_factor = 1.0;  // rated: modern UPS 1.0, older ones 0.8-0.9: typical
  std::optional<Volts> voltage = {};
  std::optional<int> phases = {};
  std::optional<LossCurve> curve = {};
  std::optional<PowerLossSpec> losses = {};
  std::optional<BreakerSpec> breaker = {};
  std::optional<UpsSpec> ups = {};
  std::optional<GeneratorSpec> generators = {};
  std::optional<TransferSpec> transfer = {};
  std::optional<UtilitySpec> utility = {};

  bool is_source() const { return kind == PowerKind::utility || kind == PowerKind::generators; }
  LossCurve default_curve() const {
    switch (kind) {
      case PowerKind::ups:
        return ups && ups->mode == UpsMode::eco ? LossCurve::ups_eco : LossCurve::ups;
      case PowerKind::transformer:
        return LossCurve::transformer;
      case PowerKind::busway:
      case PowerKind::pdu:
        return LossCurve::distribution;
      case PowerKind::rectifier:
        return LossCurve::rectifier;
      case PowerKind::utility:
      case PowerKind::generators:
      case PowerKind::transfer_switch:
      case PowerKind::switchgear:
      case PowerKind::breaker:
        break;
    }
    return LossCurve::none;
  }
  PowerLossSpec loss() const {
    return losses ? *losses : losses_of(curve.value_or(default_curve()));
  }
};

template <class Visitor>
void describe(Visitor& v, PowerNodeSpec& s) {
  v.required("kind", s.kind, "what it is");
  v.optional("fed_by", s.fed_by,
             "what feeds it, by name; of a transfer switch in the order of priority");
  v.optional("count", s.count, "equal units, called name-0, name-1 ...", between(1, 100'000));
  v.optional("active", s.active, "rated active power of a unit, W", above(0));
  v.optional("apparent", s.apparent, "rated apparent power of a unit, VA", above(0));
  v.optional("current", s.current, "rated current of a unit at its output, A", above(0));
  v.optional("power_factor", s.power_factor, "rated: active power of the apparent power",
             between(0.1, 1));
  v.optional("voltage", s.voltage,
             "between two conductors at its output, V; default: of its first feed, else 400 V",
             above(0));
  v.optional("phases", s.phases, "1 or 3; default: of its first feed, else 3", between(1, 3));
  v.optional("curve", s.curve, "losses by name; default: by kind");
  v.optional("losses", s.losses, "losses by their coefficients, instead of a name");
  v.optional("breaker", s.breaker, "kind breaker: its rating and curve");
  v.optional("ups", s.ups, "kind ups: battery, overload, transfers");
  v.optional("generators", s.generators, "kind generators: sets, starting, fuel");
  v.optional("transfer", s.transfer, "kind transfer-switch: times");
  v.optional("utility", s.utility, "kind utility: disturbances");
  const auto only = [&](bool is_given, PowerKind kind, const char* key, const char* right) {
    v.check(!is_given || s.kind == kind, key, right);
  };
  only(s.breaker.has_value(), PowerKind::breaker, "breaker", "of kind \"breaker\" only");
  only(s.ups.has_value(), PowerKind::ups, "ups", "of kind \"ups\" only");
  only(s.generators.has_value(), PowerKind::generators, "generators",
       "of kind \"generators\" only");
  only(s.transfer.has_value(), PowerKind::transfer_switch, "transfer",
       "of kind \"transfer-switch\" only");
  only(s.utility.has_value(), PowerKind::utility, "utility", "of kind \"utility\" only");
  v.check(s.kind != PowerKind::breaker || s.breaker, "breaker", "a breaker has a rating");
  v.check(s.kind != PowerKind::breaker || !s.current, "current",
          "the rated current of a breaker is breaker.rating");
  v.check(s.kind != PowerKind::generators || s.generators, "generators", "sets have a rating");
  v.check(!s.phases || *s.phases == 1 || *s.phases == 3, "phases", "1 or 3");
  v.check(!s.curve || !s.losses, "losses", "give either curve or losses");
  v.check(s.kind != PowerKind::ups || s.active || s.apparent, "apparent",
          "a UPS is rated in VA, W or both");
  const PowerLossSpec loss = s.loss();
  v.check((loss.a0 == 0 && loss.a1 == 0 && loss.a2 == 0) || s.active || s.apparent || s.current ||
              s.kind == PowerKind::breaker || s.kind == PowerKind::generators,
          "apparent",
          "losses are parts of a rating: give apparent, active or current, or curve \"none\"");
  v.check(!s.is_source() || s.fed_by.empty(), "fed_by", "nothing feeds a source");
  v.check(s.is_source() || !s.fed_by.empty(), "fed_by",
          "name what feeds it: only a utility and generators give power by themselves");
  v.check(s.kind != PowerKind::transfer_switch || s.fed_by.size() >= 2, "fed_by",
          "a transfer switch chooses between two sources or more");
}

/// Which unit of the group a rack hangs on. In turn: rack r on unit r; in blocks: neighbours
/// together; in pairs: in turn, but each round shifted by one more, so that, beside another feed in
/// turn, every pair of units has racks: what 3N/2 and 4N/3 need.
enum class Attach { in_turn, in_blocks, in_pairs };

/// One feed of every rack.
struct RackFeedSpec {
  std::string from;
  Attach attach = Attach::in_turn;
  int offset = 0;
  int circuits = 1;
  std::optional<BreakerSpec> breaker = {};
  std::optional<int> phases = {};
  std::optional<Volts> voltage = {};
};

template <class Visitor>
void describe(Visitor& v, RackFeedSpec& s) {
  v.required("from", s.from, "the node or group that feeds the racks");
  v.optional("attach", s.attach, "which unit of the group feeds which rack");
  v.optional("offset", s.offset, "units further on: of feed b 1, to differ from feed a",
             between(0, 100'000));
  v.optional("circuits", s.circuits, "circuits of a rack on this feed", between(1, 100));
  v.optional("breaker", s.breaker, "of each circuit");
  v.optional("phases", s.phases,
             "of a circuit, 1 or 3; default: of its feed. Single-phase circuits are dealt to the "
             "phases in turn",
             between(1, 3));
  v.optional("voltage", s.voltage, "of a circuit, V; default: of its feed, or to its neutral",
             above(0));
  v.check(!s.phases || *s.phases == 1 || *s.phases == 3, "phases", "1 or 3");
}

struct PowerRacksSpec {
  std::map<std::string, RackFeedSpec> feeds = {};
  std::optional<Watts> rating = {};
  double power_factor = 0.98;  // supplies with active correction, half load and more: typical
  int supplies = 2;
  std::optional<Watts> supply_rating = {};
  std::optional<Amperes> outlet = {};
  std::optional<Volts> outlet_voltage = {};
};

template <class Visitor>
void describe(Visitor& v, PowerRacksSpec& s) {
  v.required("feeds", s.feeds, "feeds of every rack by name, such as a and b");
  v.optional("rating", s.rating, "what a rack is made for, with its cooling, W", above(0));
  v.optional("power_factor", s.power_factor, "of the racks", between(0.1, 1));
  v.optional("supplies", s.supplies,
             "power supplies of a server, each with a cord, dealt evenly to the feeds",
             between(1, 64));
  v.optional("supply_rating", s.supply_rating, "of one power supply, W", above(0));
  v.optional("outlet", s.outlet, "rated current of the outlet of a cord, A", above(0));
  v.optional("outlet_voltage", s.outlet_voltage,
             "of an outlet, V; default: of the circuit, of a three-phase one to its neutral",
             above(0));
  v.check(!s.feeds.empty(), "feeds", "racks have one feed at least");
  v.check(s.feeds.empty() || s.supplies % int(s.feeds.size()) == 0, "supplies",
          "a multiple of the number of feeds");
}

/// What is fed beside the racks: cooling, pumps, lights. With several feeds it takes the same from
/// each that is live.
struct PowerLoadSpec {
  std::vector<std::string> fed_by;
  Watts constant{};
  std::vector<std::string> units = {};
  double power_factor = 0.9;  // motors and drives: typical
};

template <class Visitor>
void describe(Visitor& v, PowerLoadSpec& s) {
  v.required("fed_by", s.fed_by, "what feeds it, by name");
  v.optional("constant", s.constant, "drawn as long as it is fed, W", at_least(0));
  v.optional("units", s.units,
             "cooling units whose power is drawn here too: \"north/chiller\" all of this kind, "
             "\"north/chiller-2\" one, \"north\" everything of this owner");
  v.optional("power_factor", s.power_factor, "of all of it", between(0.1, 1));
  v.check(!s.fed_by.empty(), "fed_by", "a load has one feed at least");
  v.check(s.constant > Watts(0) || !s.units.empty(), "constant",
          "a load draws a constant power, that of units, or both");
}

struct PowerSpec {
  std::map<std::string, PowerNodeSpec> nodes = {};
  PowerRacksSpec racks = {};
  std::map<std::string, PowerLoadSpec> loads = {};
};

template <class Visitor>
void describe(Visitor& v, PowerSpec& s) {
  v.required("nodes", s.nodes, "sources, switches, UPS and distribution, by name");
  v.required("racks", s.racks, "how the racks of the cluster hang on them");
  v.optional("loads", s.loads, "what they feed beside the racks, by name");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::PowerKind> {
  static constexpr auto all =
      names<models::PowerKind>({{models::PowerKind::utility, "utility"},
                                {models::PowerKind::generators, "generators"},
                                {models::PowerKind::transfer_switch, "transfer-switch"},
                                {models::PowerKind::ups, "ups"},
                                {models::PowerKind::transformer, "transformer"},
                                {models::PowerKind::switchgear, "switchgear"},
                                {models::PowerKind::busway, "busway"},
                                {models::PowerKind::pdu, "pdu"},
                                {models::PowerKind::rectifier, "rectifier"},
                                {models::PowerKind::breaker, "breaker"}});
};
template <>
struct Names<models::LossCurve> {
  static constexpr auto all =
      names<models::LossCurve>({{models::LossCurve::none, "none"},
                                {models::LossCurve::ups, "ups"},
                                {models::LossCurve::ups_eco, "ups-eco"},
                                {models::LossCurve::rectifier, "rectifier"},
                                {models::LossCurve::transformer, "transformer"},
                                {models::LossCurve::distribution, "distribution"}});
};
template <>
struct Names<models::Attach> {
  static constexpr auto all = names<models::Attach>({{models::Attach::in_turn, "in-turn"},
                                                     {models::Attach::in_blocks, "in-blocks"},
                                                     {models::Attach::in_pairs, "in-pairs"}});
};
}  // namespace trainyard
