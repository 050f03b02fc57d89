#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "models/facility/gpu_cooling.hpp"
#include "models/training/step_profile.hpp"
#include "scenarios/facility_layout.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"

/// How warm the GPUs of a run are, what they draw and how fast they may run. GPUs of one zone, of
/// one job, under one order of the power plant are alike: a group. A group is at rest (a pure
/// function of its inlet) until something limits it; then it is one lump of heat that moves in
/// closed form until it has come to rest again.
///
///     gpus.set_condition(zone, 32.0, 1.0, cause);       // inlet, flow
///     const FacilityGpus::Group& g = gpus.group({zone, job, {}, 1.0});
///     g.training, g.waiting, g.idle                      // W of one GPU
///     g.speed                                            // of kernels, 1: as the plant was
///     designed
namespace trainyard::scenarios {

class FacilityGpus {
 public:
  struct Key {
    std::size_t zone = 0;
    std::size_t job = 0;  // 0: of none
    double cap_W = 0;     // of one GPU; 0: none
    double ceiling = 1;   // clock ratio of the hardware brake
    auto operator<=>(const Key&) const = default;
  };
  struct Group {
    models::OperatingPoint point = {};
    Watts training{}, waiting{}, idle{};
    double speed = 1;
    std::optional<Time> told_at = {};  // when the speed changed last
    std::optional<models::GpuCooling> lump = {};
    models::GpuLoad load = {};
    sim::EventIndex event = {};  // in the log: of its last change of clock
    bool is_used = false;
    std::uint64_t seen = 0;  // the step of its job that it was computed for
  };

  /// `on_change`: some group draws or runs otherwise; in a timer's event, or inside a call.
  FacilityGpus(sim::Engine& engine, sim::Recorder& recorder, const FacilityLayout& layout,
               const models::ServerSpec& server, std::size_t jobs, std::function<void()> on_change);

  void set_condition(std::size_t zone, double inlet_C, double flow, sim::EventIndex cause);
  /// What the GPUs of a job do at present.
  enum class Mode { training, waiting, idle };
  struct Activity {
    const models::StepProfile* profile = nullptr;  // only for telling that it is another one
    double activity = 1, weight = 1;
    Mode mode = Mode::training;
    bool operator==(const Activity& other) const {
      return activity == other.activity && weight == other.weight && mode == other.mode &&
             (profile == nullptr) == (other.profile == nullptr);
    }
  };
  void set_mode(std::size_t job, Mode mode);
  /// What the GPUs of a job do over its step; null: it has none yet.
  void set_step(std::size_t job, const models::StepProfile* profile, double gpus, Watts servers);
  /// The event that made an order.
  void set_cause(sim::EventIndex cause) { cause_ = cause; }
  const Group& group(const Key& key);
  /// Groups that were not asked for since the last call are forgotten.
  void forget_unused();
  /// Some GPU of the zone has turned itself off.
  bool is_off(std::size_t zone) const { return zones_[zone].is_off; }
  /// In the log: the last change of the conditions of a zone.
  sim::EventIndex cause(std::size_t zone) const { return zones_[zone].cause; }
  double hottest();  // die of any group that trains, degrees Celsius
  /// Of the pool (no job), then of the jobs.
  const std::vector<Activity>& activities() const { return steps_; }
  /// No group is on its way: what they draw follows from conditions and activities.
  bool is_at_rest() const { return lumps_ == 0; }
  /// Changes whenever something else than an activity did.
  std::uint64_t epoch() const { return epoch_; }

 private:
  struct Zone {
    double inlet_C = 25, flow = 1;
    sim::EventIndex cause = {};
    bool is_off = false;
    sim::SubjectId subject = {};
  };
  models::GpuLoad load_of(const Key& key) const;  // while the job trains
  models::GpuLoad present_load(const Key& key) const;
  void refresh(const Key& key, Group& group, bool is_new);
  void catch_up(const Key& key, Group& group);
  models::OperatingPoint point_of(const models::GpuLoad& load);
  void tell(const Key& key, Group& group, const models::OperatingPoint& point);
  void step();
  void arm();

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  const FacilityLayout& layout_;
  models::GpuPower power_;
  double members_;
  double design_speed_ = 1;
  std::function<void()> on_change_;
  std::vector<Zone> zones_;
  std::vector<Activity> steps_;
  std::vector<std::uint64_t> step_;  // of each job: counts set_step()
  std::map<Key, Group> groups_;
  std::size_t lumps_ = 0;
  std::uint64_t epoch_ = 0;
  /// Zones are many and alike, and loads come back.
  std::vector<std::pair<models::GpuLoad, models::OperatingPoint>> known_points_;
  sim::EventIndex cause_{};
  sim::Timer wake_;
};

}  // namespace trainyard::scenarios
