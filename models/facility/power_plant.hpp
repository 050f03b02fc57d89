#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/facility/breaker.hpp"
#include "models/facility/generators.hpp"
#include "models/facility/power_flow_memory.hpp"
#include "models/facility/power_plant_paths.hpp"
#include "models/facility/power_policy_spec.hpp"
#include "models/facility/transfer_switch.hpp"
#include "models/facility/ups.hpp"
#include "models/facility/utility_spec.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"

/// The power plant in a run: paths of power, the devices on them, what happens to them, and what
/// the operator does. Between two events everything is constant. After each change the paths are
/// solved, every device learns its new load, says when it will change by itself, and one timer
/// waits for the earliest of these times; arming it again drops the older prediction. A change of
/// one device may change others at once (a UPS loses its input, a switch its source): this repeats
/// until nothing changes, before simulated time goes on.
///
///     PowerPlant plant(engine, recorder, nodes, policy, {.on_fed = [&](auto rack, bool fed, auto
///                      why) { fed ? start(rack) : stop(rack, why); }});
///     plant.set_rack_loads(loads);                         // of all racks, one change
///     plant.disturb(plant.node("utility-a"), 0.0, 90s);
///
/// Order of means when something carries too much: hardware brake at once if the software cap would
/// come too late, cap by priority, suspend, cut racks. Loads beside racks are never touched. Every
/// recorded event names its cause.
namespace trainyard::models {

enum class RackOrder { none, cap, brake, suspend };

class PowerPlant {
 public:
  using Node = std::size_t;
  using Cause = sim::EventIndex;

  struct Callbacks {
    /// A rack goes dark, or may start again. A load beside racks: at once, whenever it is not fed.
    std::function<void(Node rack, bool is_fed, Cause)> on_fed = {};
    /// Limit of a rack: watts for a cap or a suspension; the brake's clock ratio is the policy's.
    std::function<void(Node rack, RackOrder, Watts, Cause)> on_order = {};
    /// These racks will go dark in so long if nothing else happens: the window in which a save must
    /// end. `forever` when the danger is over.
    std::function<void(const std::vector<Node>& racks, Duration window, Cause)> on_warning = {};
  };

  /// `rack` may also be a load beside the racks.
  struct RackLoad {
    Node rack;
    Watts active;
    VoltAmperes reactive;
  };

  struct Energy {
    Joules from_sources{}, to_racks{}, to_loads{}, losses{};
    Joules battery_given{}, battery_taken{}, battery_stored{}, battery_lost{};
    Joules battery_at_start{};
    /// in - out - losses - increase of what is stored; zero but for rounding.
    Joules imbalance() const {
      return from_sources - to_racks - to_loads - losses - battery_lost -
             (battery_stored - battery_at_start);
    }
  };

  PowerPlant(sim::Engine& engine, sim::Recorder& recorder, const std::vector<PlantNode>& nodes,
             const PowerPolicySpec& policy, Callbacks callbacks);
  PowerPlant(const PowerPlant&) = delete;
  PowerPlant& operator=(const PowerPlant&) = delete;

  Node node(const std::string& name) const { return paths_.index(name); }
  /// What a rack or a load draws from now on, while it is fed.
  void set_rack_load(Node rack, Watts active, VoltAmperes reactive);
  /// Many at once: one change. `name`, unless 0, stands for these very loads: whoever gives one
  /// again gives the same again, and is answered without a look at them.
  void set_rack_loads(std::span<const RackLoad> loads, std::uint64_t name = 0);
  /// From now on every device is told of every change and no flow is remembered: slower, with the
  /// same results.
  void tell_all_devices();
  /// How far a software cap reaches, what it draws with its jobs suspended, who is kept longest.
  /// Takes effect with the next step of the operator.
  void set_rack_limits(Node rack, Watts cap_floor, Watts idle, int priority);

  /// Residual voltage per unit. At 0.85 and more nothing happens (the usual input range of power
  /// supplies and rectifiers); below, the utility gives nothing for so long.
  Cause disturb(Node utility, double residual, Duration duration, Cause cause = {});
  /// Scripted events, and random ones from now on.
  void follow(Node utility, const UtilitySpec& spec);
  /// A breaker opens, a UPS or a switch fails, generators stop, anything else is dead.
  Cause fail(Node node, Cause cause = {});
  Cause restore(Node node, Cause cause = {});
  /// Ends the latch of a UPS after too many disturbances.
  Cause return_by_hand(Node ups, Cause cause = {});

  bool is_fed(Node rack) const;
  bool is_live(Node node) const { return paths_.flow(node).is_live; }
  RackOrder order(Node rack) const {
    return rack_at_[rack] == nowhere ? RackOrder::none : racks_[rack_at_[rack]].order;
  }
  const PowerPaths::Flow& flow(Node node) const { return paths_.flow(node); }
  /// As they are now; the reference holds until the next look at the same node.
  const Breaker& breaker(Node node) const;
  const Ups& ups(Node node) const;
  const Generators& generators(Node node) const { return *devices_[node].generators; }
  const TransferSwitch& transfer(Node node) const { return *devices_[node].transfer; }
  Energy energy() const;
  /// Changes of the load so far of which no device was told.
  std::size_t quiet_changes() const { return quiet_changes_; }
  /// Lost at present in all nodes.
  Watts losses() const;
  /// Lost so far by kind of node; together Energy::losses.
  std::map<PlantKind, Joules> losses_by_kind() const;

 private:
  struct Device {
    std::unique_ptr<Breaker> breaker;
    std::unique_ptr<Ups> ups;
    std::unique_ptr<Generators> generators;
    std::unique_ptr<TransferSwitch> transfer;
    bool is_any() const { return breaker || ups || generators || transfer; }
    bool has_failed = false;  // by fail()
    int disturbances = 0;     // of a utility, at present
    bool carries = false;     // generators: connected to the load
    std::optional<int> seen;  // last state that was recorded
    bool seen_flag = false;   // second one: latched, failed, calls backup
    Cause event{};            // of the abnormal state that it is in, if any
    Cause trigger{};          // of a current that is too high, of an order to start
    Watts demand{};           // generators: all that their transfer switches would draw
    mutable std::unique_ptr<Breaker> shown_breaker;  // as they are seen while they are not told
    mutable std::unique_ptr<Ups> shown_ups;
  };
  /// What the paths were last solved with.
  struct Told {
    bool gate = true;
    bool draws = true;
    std::optional<std::size_t> source = 0;
    std::tuple<bool, double, double> ups{true, 1.0, 0.0};
  };
  struct Rack {
    Node node = 0;
    bool is_fed = true;
    bool is_cut = false;
    std::optional<Time> dark_at;   // its supplies hold until then
    std::optional<Time> start_at;  // it waits for its turn to start
    Watts cap_floor{}, idle{};
    int priority = 0;
    RackOrder order = RackOrder::none;
    Watts wanted{};  // before the first order
    VoltAmperes wanted_reactive{};
  };
  struct Load {
    Node node = 0;
    bool is_fed = true;
  };
  struct Overload {
    Node node;
    double ratio;  // of the limit to the load: below 1
    std::optional<Time> until;
  };
  enum class Step { none, brake, cap, suspend, cut };
  static constexpr std::size_t nowhere = std::size_t(-1);

  // power_plant_update.cpp
  void update();
  bool tell_paths();
  void tell_devices(Time now);
  void tell_generators(Time now);
  void update_loads();
  void update_racks(Time now);
  void arm();
  void integrate(Time now);
  UpsInput input_of(Node node) const;
  std::optional<Time> next_device_event() const;
  void lock_out_utility(Node ups, bool is_locked);

  // power_plant_quiet.cpp
  bool change_quietly(std::span<const RackLoad> loads, std::uint64_t name);
  bool learn(std::span<const RackLoad> loads, FlowMemory::Key key);
  std::vector<double> breaker_heating() const;
  bool is_quiet(const std::vector<double>& heating) const;
  bool is_calm() const;
  void settle_breakers();
  void end_quiet();

  // power_plant_events.cpp
  Cause record(std::string_view kind, Node node, sim::Phase phase, Cause cause, double value = 0.0);
  Cause why(Node node) const;
  void record_changes();
  void record_breaker(Node node);
  void record_ups(Node node);
  void record_transfer(Node node);
  void record_generators(Node node);

  // power_plant_policy.cpp
  std::vector<Overload> overloads(const PowerPaths& paths) const;
  /// With every rack drawing what it wanted before it was limited.
  PowerPaths without_limits() const;
  void watch_overloads();
  void go_to(Step step, Duration after);
  void take_step();
  /// What racks behind an overloaded node may take together, as a part of what they take: other
  /// loads give nothing.
  static double part_for_racks(const Overload& over, const PowerPaths::Behind& behind);
  void brake_racks();
  void cap_racks();
  void suspend_racks();
  void cut_racks();
  void try_release();
  void give(Node rack, RackOrder order, Watts watts, Cause cause);
  void warn();

  // power_plant_utility.cpp
  void schedule_random(Node utility, const RandomDisturbanceSpec& spec, const std::string& path);

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  PowerPolicySpec policy_;
  Callbacks callbacks_;
  PowerPaths paths_;
  std::vector<Device> devices_;
  std::vector<Told> told_;
  std::vector<Node> breakers_;
  std::vector<Node> with_device_;     // by number
  std::vector<Node> sources_first_;   // the same
  std::vector<std::size_t> rack_at_;  // place of a node in racks_, or nowhere
  std::vector<std::size_t> load_at_;
  std::vector<Rack> racks_;
  std::vector<Load> loads_;
  std::vector<sim::SubjectId> subjects_;
  std::map<std::string, sim::Stream> random_;

  bool is_updating_ = false;
  bool is_dirty_ = false;
  bool tells_all_ = false;
  bool has_switched_ = true;  // what has no device of its own: a utility, a bus, a rack
  Cause last_change_{};
  FlowMemory memory_;
  std::optional<bool> is_calm_;  // if known
  std::size_t quiet_changes_ = 0;
  Time integrated_to_{};
  Energy energy_;
  std::array<Joules, plant_kinds> losses_{};

  Step next_step_ = Step::none;
  Time restart_slot_{};
  int restarted_in_slot_ = 0;
  Time warned_loss_ = Time::max();
  std::vector<Node> warned_racks_;

  sim::Timer wake_;
  sim::Timer policy_timer_;
  sim::Timer release_timer_;
};

}  // namespace trainyard::models
