#pragma once

#include <string>
#include <vector>

#include "models/failures/failure_clocks.hpp"

/// For the .cpp files of this folder only.
namespace trainyard::models {

/// Faults at given times, in the order of time and then of their keys; each happens once. One timer
/// for all. Delays come from the stream "failures/script/<key>", so that another fault changes
/// nobody else's.
class FailureClocks::Script {
 public:
  Script(FailureClocks& all, const std::map<std::string, ScriptedFaultSpec>& script);

 private:
  struct Fault {
    const FailureClass* cls = nullptr;
    std::uint32_t unit = 0;
    Time at{};
    sim::Stream luck;
    sim::EventIndex announced = {};
  };
  struct Action {
    Time when;
    bool is_announcement;
    std::uint32_t fault;
  };

  const FailureClass& class_of(const std::string& name, const ScriptedFaultSpec& entry,
                               const UnitRef& unit);
  void arm();
  void act();

  FailureClocks& all_;
  std::vector<Fault> faults_;                         // in the order of the keys
  std::vector<Action> actions_;                       // in the order of time
  std::map<std::string, const FailureClass*> equal_;  // classes by all that they say
  std::size_t next_ = 0;                              // of the actions
  sim::Timer timer_;
};

}  // namespace trainyard::models
