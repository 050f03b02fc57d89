#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/facility/cooling_plant.hpp"
#include "models/facility/power_layout.hpp"
#include "models/facility/power_plant.hpp"
#include "models/failures/plant_faults.hpp"
#include "models/scheduling/servers.hpp"
#include "models/training/job.hpp"
#include "scenarios/facility_gpus.hpp"
#include "scenarios/facility_layout.hpp"
#include "scenarios/heat_buffer.hpp"
#include "scenarios/scenario.hpp"

/// The plant of a run, joined to its servers and jobs:
///
///     states of jobs ─▶ GPUs ─▶ load of racks ─▶ power plant ─▶ racks without feed ─▶ server pool
///                        ▲          │                 └ caps, brake, suspension ─▶ GPUs, jobs
///                        │          └─ heat ─▶ cooling plant ─▶ racks too hot ─▶ server pool
///                        └── inlet, flow ◀──────────┘     └ power of its units ─▶ power plant
///     speed of GPUs ─▶ steps of jobs;   predicted losses ─▶ emergency saves
///
/// Nothing is sampled: the loop of a run calls observe() after each event, and only what changed is
/// told on. Every event that the plant records names its cause.
///
/// Page: docs/models/facility.md.
namespace trainyard::scenarios {

/// Energy and what went on, at the end of a run.
struct FacilityResult {
  Joules it{};       // servers, and switches
  Joules cooling{};  // fans, pumps, chillers, coolers
  Joules losses{};   // of the power graph
  Joules others{};   // constant loads beside racks
  Joules site{};     // all
  Joules fans{}, pumps{}, chillers{}, coolers{};
  Joules heat_stored{};        // in the mass of racks, not yet given to the cooling plant
  double power_imbalance = 0;  // of the balance of the power graph, part of what went through
  double heat_imbalance = 0;   // of the thermal network
  double pue = 1;              // site / it
  double wue = 0;              // litres of water a kWh of servers
  double water_m3 = 0;
  Watts peak{};  // of the site
  Time peak_at{};
  double hottest_gpu_C = 0;
  std::int64_t racks_unfed = 0;     // times that a rack lost its feed
  std::int64_t faults = 0;          // of parts of the plant
  std::int64_t racks_uncooled = 0;  // times that a rack was shut down for heat
  std::int64_t racks_shed = 0;      // times that operators powered a rack down
  std::int64_t limits = 0;          // times that a rack was capped, braked or suspended
  struct Hour {
    Time from{};
    double dry_C = 0, wet_C = 0;
    std::string part;        // what was nearest to its limit
    double utilisation = 0;  // asked of it over what it can do
  };
  std::optional<Hour> hottest_hour;
  std::vector<std::pair<std::string, Joules>> losses_by_kind;  // of nodes; together `losses`
  models::CoolingPlant::Limit worst;  // of the cooling plant, when most was asked for
};

class Facility {
 public:
  /// `jobs` in the order of their numbers; all must outlive the facility.
  Facility(const Scenario& scenario, sim::Engine& engine, sim::Recorder& recorder,
           models::ServerPool& pool, std::vector<models::Job*> jobs);
  ~Facility();
  Facility(const Facility&) = delete;
  Facility& operator=(const Facility&) = delete;

  /// After every event, before time goes on. True: the power of something changed.
  bool observe();
  /// Of servers: those of no job, then of each job.
  const std::vector<Watts>& powers() const { return powers_; }
  /// Beside servers: losses and cooling.
  Watts overhead() const { return overhead_; }
  /// With the energy of switches, which are not on the power graph.
  FacilityResult result(Joules servers, Joules switches);

  /// From now on what racks draw is computed anew at each change: slower, with the same results.
  void remember_nothing();
  std::size_t scenes_reused() const { return scenes_reused_; }

  models::PowerPlant* power() { return power_.get(); }
  const models::PlantFaults* faults() const { return faults_.get(); }
  models::CoolingPlant* cooling() { return cooling_.get(); }
  const FacilityGpus& gpus() const { return *gpus_; }
  const FacilityLayout& layout() const { return layout_; }

 private:
  /// Servers of a rack that do the same.
  struct Share {
    std::size_t consumer;  // 0: the pool, else 1 + job
    bool is_active;        // takes part in the steps of its job
    std::int64_t servers;
  };
  struct Rack {
    std::vector<Share> shares = {};
    models::PowerPlant::Node node = 0;
    bool is_fed = true, is_cooled = true;
    bool is_shed = false;                  // operators powered it down
    bool is_lost = false, is_hot = false;  // as the pool knows it
    double cap_W = 0;                      // of a GPU
    double ceiling = 1;
    bool is_suspended = false;
    /// Without feed it would draw, and does so again when it is fed.
    bool is_on() const { return !is_shed && is_cooled; }
  };
  /// What all racks draw while every job does this and nothing limits a GPU: jobs that train and
  /// save go back and forth between a few of these.
  struct Scene {
    std::vector<FacilityGpus::Activity> activities;  // of the pool and the jobs
    std::vector<models::PowerPlant::RackLoad> loads = {};
    std::vector<Watts> powers = {};  // as powers()
    std::vector<Watts> heat = {};    // of each zone
    std::uint64_t name = 0;          // of the loads; 0: they will not come back
  };
  using ScenePtr = std::shared_ptr<const Scene>;
  struct Seen {
    models::JobState state = models::JobState::queued;
    const models::StepProfile* profile = nullptr;
    std::int64_t training = -1;
  };

  void build_power(const Scenario& scenario);
  void build_cooling(const Scenario& scenario);
  bool look_at_jobs();
  void place_servers();
  void reload();
  ScenePtr scene();
  Scene make_scene();
  Watts load_of(std::size_t rack, const Share& share);
  void tell_limits();
  void tell_heat(std::span<const Watts> drawn);
  void flush_heat();
  void tell_speeds();
  void flush();
  void take_racks(std::vector<std::size_t>& racks, models::Lack lack, sim::EventIndex cause);
  std::vector<topologies::HostId> servers_of(std::span<const std::size_t> racks) const;
  void on_fed(std::size_t rack, bool is_fed, sim::EventIndex cause);
  void on_order(std::size_t rack, models::RackOrder order, Watts watts, sim::EventIndex cause);
  void on_load_fed(models::PowerPlant::Node node, bool is_fed, sim::EventIndex cause);
  void look_at_gpus();
  void cool_again(std::size_t zone, sim::EventIndex cause);
  void on_cooled(std::size_t zone, bool is_cooled, sim::EventIndex cause);
  void on_warning(std::vector<std::size_t> racks, Duration window, models::FailureClass& cls,
                  sim::EventIndex cause);
  sim::EventIndex act(const std::string& part, models::PlantAction action, const std::string& why,
                      std::optional<double> value);
  bool is_up(std::size_t rack, models::Lack lack) const;
  bool is_cooling_unit(const std::string& part) const {
    return std::find(cooling_units_.begin(), cooling_units_.end(), part) != cooling_units_.end();
  }
  void shed(double share, sim::EventIndex cause);
  void touch();
  void look_at_weather();
  void sum_overhead();
  void set_others();

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  models::ServerPool& pool_;
  const Scenario& scenario_;
  FacilityLayout layout_;
  std::vector<models::Job*> jobs_;
  std::unique_ptr<FacilityGpus> gpus_;
  std::unique_ptr<models::PowerPlant> power_;
  std::unique_ptr<models::CoolingPlant> cooling_;
  std::unique_ptr<models::PlantFaults> faults_;
  std::optional<HeatBuffer> heat_;
  std::vector<std::string> cooling_units_;
  std::vector<Rack> racks_;
  std::map<models::PowerPlant::Node, std::size_t> rack_of_node_;
  /// Something else than a rack on the power graph.
  struct PlantLoad {
    models::PowerPlant::Node node;
    Watts constant{};
    double reactive_share = 0;
    bool is_fed = true;
    std::vector<std::string> units = {};  // of the cooling plant
  };
  std::vector<PlantLoad> loads_;
  std::vector<models::PowerPlant::RackLoad> told_loads_;
  std::vector<ScenePtr> scenes_;
  std::uint64_t scenes_named_ = 0;
  std::uint64_t scenes_epoch_ = 0;  // of the GPUs
  std::size_t scenes_reused_ = 0;
  bool is_forgetful_ = false;
  struct ZoneState {
    bool is_cooled = true;  // says the cooling plant
    bool is_off = false;    // its GPUs turned themselves off
  };
  std::vector<ZoneState> zone_states_;
  std::vector<Watts> powers_;
  std::vector<Seen> seen_;
  std::uint64_t seen_pool_ = 0;
  bool is_placed_ = false, is_dirty_ = true, has_new_speeds_ = false, has_slow_jobs_ = false;
  models::FailureClass no_feed_, no_cooling_;
  std::map<const models::FailureClass*, Time> warned_;
  std::vector<std::size_t> lost_, hot_, back_, cool_;  // racks, until the flush of this instant
  sim::EventIndex lost_cause_{}, hot_cause_{}, shed_cause_{}, speed_cause_{}, suspend_cause_{};
  Time seen_hour_ends_{};
  Watts overhead_{}, others_{};
  Time others_since_{};
  FacilityResult counted_;
  sim::Timer flush_, heat_timer_;
};

}  // namespace trainyard::scenarios
