#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/failures/plant_faults_spec.hpp"
#include "sim/engine.hpp"
#include "sim/problem.hpp"
#include "sim/random.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"

/// When parts of the power and cooling plant fail and come back. It knows their names only, and
/// tells whoever owns them.
///
///     life k of unit u of a class:   exponential, or Weibull (of the spec's age for k = 0), from
///                                    the stream "plant/<class>" . hash(u) . k; the next value of
///                                    the same stream is its repair time
///     unit u of the class fails at   sum over i <= k of life(i)  +  sum over i < k of repair(i)
///
/// Time is that of the calendar: a unit ages whether it runs, stands by, or is down for another
/// reason, so that neither a script nor another class changes anybody's luck. A part may have
/// several causes to be down at once; it fails with the first and is restored with the last.
///
///     PlantFaults faults(engine, spec.faults, spec.script, names,
///                        {.act = [&](const std::string& part, PlantAction what, const
///                        std::string&,
///                                    std::optional<double>) {
///                          return what == PlantAction::fail ? plant.fail(plant.node(part)) : …;
///                        }});
///     faults.rows();                       // who failed when and why
///
/// At one instant: the script in the order of its keys, then failures, then what ends; so outages
/// that meet are one. One timer and one heap, O(log units) a failure. Checks and
/// assumptions: docs/models/plant-faults.md.
namespace trainyard::models {

struct PlantFaultRow {
  Time at{};
  std::string cls;  // class, or key of the script
  std::string part;
  std::optional<Time> back = {};  // when this cause ends; none: not as far as is known
  bool is_scripted = false;
  sim::EventIndex event = {};  // what `act` returned; invalid if the part was down already
};

/// One life, from the first value of the stream. Only the first life begins at the age of the spec.
Duration draw_life(const LifetimeSpec& spec, bool is_first, sim::Stream& stream);

/// Units that a name stands for, as positions in `part_names` and in their order: the unit of this
/// name; or else units called "<name>-<number>"; '*' stands for any characters but '/'.
std::vector<std::size_t> find_plant_parts(const std::string& name,
                                          const std::vector<std::string>& part_names);

/// The candidate nearest to a word, or nothing: scenarios::nearest.
using NearestName = std::function<std::string(std::string_view, const std::vector<std::string>&)>;

/// Names that nothing has, and units named twice. Paths: "faults.<class>.parts.0",
/// "script.<key>.part".
Problems check_plant_faults(const std::map<std::string, PlantFaultSpec>& faults,
                            const std::map<std::string, PlantScriptSpec>& script,
                            const std::vector<std::string>& part_names,
                            const NearestName& nearest = {});

class PlantFaults {
 public:
  struct Callbacks {
    /// Once for each unit, in the order of the part names. `part` is empty for people and shed;
    /// `value` is theirs. `why`: the class, or the key of the script. Returns the recorded event.
    std::function<sim::EventIndex(const std::string& part, PlantAction action,
                                  const std::string& why, std::optional<double> value)>
        act = {};
  };

  /// All names are known (check_plant_faults), and the script lies ahead.
  PlantFaults(sim::Engine& engine, std::map<std::string, PlantFaultSpec> faults,
              std::map<std::string, PlantScriptSpec> script, std::vector<std::string> part_names,
              Callbacks callbacks);
  PlantFaults(const PlantFaults&) = delete;
  PlantFaults& operator=(const PlantFaults&) = delete;

  /// Every cause, in the order in which it struck; a part that was down already, too.
  const std::vector<PlantFaultRow>& rows() const { return rows_; }
  bool is_down(const std::string& part) const;

 private:
  struct Class {
    std::string name;
    PlantFaultSpec spec;
    sim::Stream luck;
  };
  struct Unit {
    std::uint32_t cls = 0;
    std::uint32_t part = 0;
    std::uint32_t life = 0;  // which one: 0, 1, 2, ...
  };
  struct Entry {
    std::string key;
    PlantScriptSpec spec;
    std::vector<std::size_t> parts;
  };
  /// In the order in which they come at one instant.
  enum class Kind : std::uint8_t { script, failure, end };
  struct Event {
    Time when;
    Kind kind;
    std::uint32_t number;  // of the entry, of the unit, of the row
  };
  struct Row {
    std::uint32_t part = 0;
    std::optional<std::uint32_t> unit = {};  // none: scripted
    bool is_open = true;
  };
  static bool is_later(const Event& a, const Event& b);

  sim::Stream luck_of(const Unit& unit) const;
  void add(Event event);
  void arm();
  void act();
  void begin_life(std::uint32_t unit);
  void fail_by_itself(std::uint32_t unit);
  void follow(const Entry& entry);
  void take_down(std::uint32_t part, const std::string& why, std::optional<std::uint32_t> unit,
                 Duration duration);
  /// True if nothing holds the part down any more.
  bool close(std::uint32_t row);
  void end(std::uint32_t row);
  void restore(std::uint32_t part, const std::string& why);
  sim::EventIndex tell(std::uint32_t part, PlantAction action, const std::string& why);

  sim::Engine& engine_;
  Callbacks callbacks_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> causes_;  // by part: how many hold it down
  std::vector<Class> classes_;
  std::vector<Unit> units_;  // one for each class and part of it
  std::vector<Entry> script_;
  std::vector<PlantFaultRow> rows_;
  std::vector<Row> states_;                                       // of the rows
  std::map<std::uint32_t, std::vector<std::uint32_t>> scripted_;  // open rows by part
  std::vector<Event> heap_;
  sim::Timer timer_;
};

}  // namespace trainyard::models
