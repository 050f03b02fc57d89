#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/failures/failure_spec.hpp"
#include "models/failures/unit_names.hpp"
#include "sim/engine.hpp"
#include "sim/random.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "topologies/fabric.hpp"

/// When things fail. Every unit of a failure class (each GPU, each NIC, ...) has its own life,
/// drawn from its own random stream, so adding a server changes nobody else's luck, and two designs
/// compared under one seed see the same failures on the units they share.
///
///     life k of unit u of a class:   exponential, or Weibull of shape s and scale  mean / Gamma(1
///     + 1/s),
///                                    from the stream "failures/<class>" . u . k; the same stream
///                                    gives the delays of that failure, so that paired runs agree
///                                    on them, too
///
/// A unit that was replaced starts a new life; the others of its server stood still while it was
/// down, and go on with the age they had. A life is drawn once and never again: what changes is the
/// pace at which it is used up,
///
///     pace = (1 while the server trains, idle_factor while it does not, 0 while it is down)
///            x Arrhenius factor of the inlet temperature of this hour
///
/// and a unit fails when the integral of its pace, its *operational time*, reaches its life. A
/// server may be a lemon: the lives of its parts are shorter. Beside the classes there is a script
/// of faults at given times.
///
///     FailureClocks clocks(engine, recorder, FailureInputs{.classes = spec.all_classes()},
///                          {.servers = 2048, .gpus_per_server = 8});
///     clocks.on_failure([&](const Failure& f) { pool.strike(f); });
///     clocks.set_training(placement, true);
///     clocks.pause(HostId(17)); ...repair...
///     clocks.resume(HostId(17)); clocks.renew(f.cls->id, f.unit);
///
/// A class has one engine timer, whatever the number of units. O(units) to start; then see
/// steady_clock.cpp and paced_clock.cpp. Equations, assumptions, checks: docs/models/failures.md.
namespace trainyard::models {

using FailureClassId = Id<struct FailureClassTag>;

struct FailureClass {
  FailureClassId id;
  std::string name;
  FailureClassSpec spec;
};

/// One failure, with all its luck already drawn.
struct Failure {
  const FailureClass* cls = nullptr;
  std::uint32_t unit = 0;  // of the component: GPU, NIC, server or leaf of the whole cluster
  Duration detection{};    // until somebody knows, if a job is struck
  Duration repair{};       // once it is out of the job
  sim::EventIndex event;   // in the log: the cause of what follows
  /// Common cause: it strikes all servers of this parent of its server.
  std::optional<Component> shared_parent = {};
  std::uint32_t parent = 0;  // number of that parent
};

/// One draw of a delay law.
Duration draw(const DelaySpec& law, sim::Stream& stream);

struct FailureInputs {
  std::map<std::string, FailureClassSpec> classes = {};
  std::optional<LemonsSpec> lemons = {};
  std::optional<InletSpec> inlet = {};
  std::map<std::string, ScriptedFaultSpec> script = {};  // of units that exist (UnitNames)
};

class FailureClocks {
 public:
  FailureClocks(sim::Engine& engine, sim::Recorder& recorder, const FailureInputs& inputs,
                UnitCounts counts);
  FailureClocks(sim::Engine& engine, sim::Recorder& recorder,
                const std::map<std::string, FailureClassSpec>& classes, UnitCounts counts);
  ~FailureClocks();
  FailureClocks(const FailureClocks&) = delete;
  FailureClocks& operator=(const FailureClocks&) = delete;

  /// Called at each failure, in phase failure.
  void on_failure(std::function<void(const Failure&)> action) { on_failure_ = std::move(action); }
  /// Called, in phase failure, `warning` before a failure of a class that has one, or at once if it
  /// is nearer. It has the luck of the failure to come, and is announced once: if the pace changes
  /// or the server goes down before `strikes_at`, the failure comes at another time.
  void on_warning(std::function<void(const Failure&, Time strikes_at)> action) {
    on_warning_ = std::move(action);
  }

  /// The server is down: its units do not age and do not fail until resume().
  void pause(topologies::HostId server);
  void resume(topologies::HostId server);
  /// Servers begin as not training. One that is down keeps what was said last.
  void set_training(std::span<const topologies::HostId> servers, bool training);
  /// The unit that failed, or was replaced on a warning, begins a new life. A class that restarts
  /// in place (replace = false) renews its unit by itself, at the failure. Nothing for a scripted
  /// fault.
  void renew(FailureClassId cls, std::uint32_t unit);

  const UnitCounts& counts() const { return counts_; }
  /// Those of the inputs by name, then those of scripted faults; equal faults share one.
  std::size_t classes() const { return classes_.size(); }
  const FailureClass& failure_class(FailureClassId id) const;
  bool is_scripted(FailureClassId id) const { return id.index() >= clocks_.size(); }
  std::uint64_t failures() const { return failures_; }
  /// Failures a second of `servers` servers on `leaves` leaves that train at the reference
  /// temperature, every unit at its mean: expectation of a long run. Without those of what is not
  /// part of a server or a leaf, and without the script.
  double rate_per_s(std::int64_t servers, std::int64_t leaves) const;
  /// How much faster the parts of a server fail than the mean of the cluster: 1 without lemons.
  double relative_rate(topologies::HostId server) const;
  bool is_lemon(topologies::HostId server) const { return relative_rate(server) > 1.0; }

 private:
  enum class Pace : std::uint8_t { idle, training, down };
  class Clock;
  class SteadyClock;
  class PacedClock;
  class Script;

  const FailureClass& add_class(std::string name, FailureClassSpec spec);
  Pace pace_of(std::uint32_t server) const;
  std::optional<std::uint32_t> parent_of(Component parent, Component component,
                                         std::uint32_t unit) const;
  Failure failure_of(const FailureClass& cls, std::uint32_t unit, sim::Stream& luck) const;
  sim::SubjectId subject(const FailureClass& cls, std::uint32_t unit) const;
  void report(Failure failure, sim::KindId kind, sim::EventIndex cause);
  sim::EventIndex announce(Failure failure, sim::KindId kind, Time strikes_at);
  void begin_hour();

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  UnitCounts counts_;
  std::optional<LemonsSpec> lemons_;
  std::optional<InletSpec> inlet_;
  std::function<void(const Failure&)> on_failure_;
  std::function<void(const Failure&, Time)> on_warning_;
  std::vector<std::unique_ptr<FailureClass>> classes_;  // in the order of the class names; scripted
  std::vector<std::unique_ptr<Clock>> clocks_;          // of the first classes
  std::vector<PacedClock*> paced_;                      // those whose pace changes
  std::unique_ptr<Script> script_;
  std::vector<Time> down_since_;  // by server; Time::max(): it is up
  std::vector<bool> training_;    // by server
  std::vector<bool> lemon_;       // by server; empty: there are none
  sim::Timer hour_timer_;
  std::uint64_t failures_ = 0;
};

}  // namespace trainyard::models
