#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "scenarios/read.hpp"

/// For no_effect*.cpp only: what they share. Each lists settings that were written but cannot
/// matter.
namespace trainyard::scenarios {

/// One way in which something of the cluster can fail during the run: a class, or a fault of the
/// script.
struct WayToFail {
  models::Component component = models::Component::gpu;
  models::Effect effect = models::Effect::crash;
  bool replaces = true;
  bool is_announced = false;
  std::string store = {};

  bool is_of_server() const;  // gpu, nic, server
  bool is_of_fabric() const;  // a switch or cable
  bool is_parent() const;     // rack, pdu, cdu
  /// A crew, a reset or the vendor gets a server.
  bool is_repaired() const { return is_of_server() && replaces; }
};

/// Of everything that is enabled. The fabric is not built for this: a name that may be that of a
/// leaf or of an upper switch counts as both.
std::vector<WayToFail> ways_to_fail(const Scenario& scenario);

class NoEffectLines {
 public:
  explicit NoEffectLines(const ReadResult& result)
      : read(result), scenario(result.scenario), ways(ways_to_fail(result.scenario)) {}

  const ReadResult& read;
  const Scenario& scenario;
  const std::vector<WayToFail> ways;
  std::vector<std::string> lines;

  /// If the user wrote it.
  void idle(const std::string& path, const std::string& reason) {
    if (read.is_written(path)) lines.push_back(path + ": " + reason);
  }
  void idle(const std::string& parent, std::initializer_list<const char*> keys,
            const std::string& reason) {
    for (const char* key : keys) idle(parent + "." + key, reason);
  }
  /// A whole object: as one line if it was written as one, else what --set says of it.
  void idle_object(const std::string& path, std::initializer_list<const char*> keys,
                   const std::string& reason) {
    if (read.is_written(path)) return idle(path, reason);
    idle(path, keys, reason);
  }

  bool can_fail() const { return !ways.empty(); }
  bool any_way(const std::function<bool(const WayToFail&)>& holds) const;
  bool any_job(const std::function<bool(const models::JobSpec&)>& holds) const;
  /// Some job could take servers of another.
  bool can_preempt() const;
};

void failures_without_effect(NoEffectLines& out);
/// Who repairs, parents, spares, exclusion.
void care_without_effect(NoEffectLines& out);
void stores_without_effect(NoEffectLines& out);
void economics_without_effect(NoEffectLines& out);
void facility_without_effect(NoEffectLines& out);
/// Of one job: saves and levels, restarts, elasticity, data, priority.
void job_life_without_effect(NoEffectLines& out, const std::string& path,
                             const models::JobSpec& job);

}  // namespace trainyard::scenarios
