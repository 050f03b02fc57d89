#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "models/failures/failure_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"

/// Failures of the power and cooling plant, beside those of servers: at random, and by a script.
///
///     "faults": { "ups module": {"parts": ["ups"],      "lifetime": {"mean": "15 y"}},
///                 "cdu pump":   {"parts": ["cdu-*/pump"], "lifetime": {"mean": "10 y"}} },
///     "script": { "sag":  {"at": "2 h", "part": "north/chiller", "action": "trip"},
///                 "work": {"at": "8 h", "part": "ups-1", "action": "fail", "duration": "3 h"},
///                 "dark": {"at": "9 h 30 min", "action": "shed", "share": 0.4} }
///
/// A part is a unit ("ups-1", "cdu-3/pump-1") or a group or bank ("ups", "north/chiller"): all its
/// units. A star stands for any characters but '/'.
namespace trainyard::models {

struct PlantFaultSpec {
  std::vector<std::string> parts;
  LifetimeSpec lifetime;
  DelaySpec repair{Law::log_normal, std::chrono::hours(4), 1.0};  // typical of one on call
  std::string source;
};

template <class Visitor>
void describe(Visitor& v, PlantFaultSpec& s) {
  v.required("parts", s.parts,
             "what fails: units (ups-1, cdu-3/pump-1), groups and banks (ups, north/chiller), "
             "cdu-*/pump");
  v.required("lifetime", s.lifetime, "life of one unit, whether it runs or stands by");
  v.optional("repair", s.repair, "from the failure until the unit is back, with a new life");
  v.optional("source", s.source, "where the figures come from");
  v.check(!s.parts.empty(), "parts", "at least one name of a unit, group or bank");
}

enum class PlantAction {
  fail,            // until it is restored
  restore,         // ends what the script did to it; also closes what opened by itself
  trip,            // protection of a cooling unit stops it, as after a voltage sag
  return_by_hand,  // a UPS that stays on battery after too many disturbances
  people,          // the crew has another size
  shed             // operators power racks down
};

struct PlantScriptSpec {
  Duration at{};
  std::string part = {};
  PlantAction action = PlantAction::fail;
  std::optional<Duration> duration = {};
  std::optional<int> people = {};
  std::optional<double> share = {};
};

template <class Visitor>
void describe(Visitor& v, PlantScriptSpec& s) {
  v.required("at", s.at, "when it happens, from the start of the run", at_least(0));
  v.optional("part", s.part,
             "unit, group or bank it happens to: ups-1, north/chiller, cdu-3/pump-1");
  v.required("action", s.action,
             "fail and restore; trip: protection stops a cooling unit; return-by-hand: of a UPS; "
             "people: size of the crew; shed: operators power racks down");
  v.optional("duration", s.duration,
             "of a failure: restored after so long; default: by \"restore\", or never", above(0));
  v.optional("people", s.people, "of action people: size of the crew from now on",
             between(0, 1000));
  v.optional("share", s.share,
             "of action shed: part of the racks, highest numbers first; 0: all may run again",
             between(0, 1));
  const bool is_of_site = s.action == PlantAction::people || s.action == PlantAction::shed;
  v.check(s.part.empty() == is_of_site, "part",
          "fail, restore, trip and return-by-hand name a part, people and shed none");
  v.check(!s.duration || s.action == PlantAction::fail, "duration",
          "only \"fail\" has a duration; others last until the next entry");
  v.check(s.people.has_value() == (s.action == PlantAction::people), "people",
          "action \"people\" needs the size of the crew, and only it has one");
  v.check(s.share.has_value() == (s.action == PlantAction::shed), "share",
          "action \"shed\" needs a share of the racks, and only it has one");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::PlantAction> {
  static constexpr auto all =
      names<models::PlantAction>({{models::PlantAction::fail, "fail"},
                                  {models::PlantAction::restore, "restore"},
                                  {models::PlantAction::trip, "trip"},
                                  {models::PlantAction::return_by_hand, "return-by-hand"},
                                  {models::PlantAction::people, "people"},
                                  {models::PlantAction::shed, "shed"}});
};
}  // namespace trainyard
