#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/failures/failure_spec.hpp"
#include "sim/engine.hpp"
#include "sim/random.hpp"
#include "sim/recorder.hpp"
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
/// down, and go on with the age they had. A class keeps its units in a heap and has one engine
/// timer: O(units) to start, O(log units) a failure, whatever the number of units.
///
///     FailureClocks clocks(engine, recorder, spec.classes, {.servers = 2048, .gpus_per_server =
///     8}); clocks.on_failure([&](const Failure& f) { pool.strike(f); }); clocks.pause(HostId(17));
///     ...repair...   clocks.resume(HostId(17)); clocks.renew(f.cls->id, f.unit);
///
/// Equations, assumptions, checks: docs/models/failures.md.
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
};

/// How many of each component there are; the parts of server s are s * n .. s * n + n - 1.
struct UnitCounts {
  std::int64_t servers = 0;
  std::int64_t gpus_per_server = 0;
  std::int64_t nics_per_server = 0;
  std::int64_t leaves = 0;
  std::int64_t upper_switches = 0;
  std::int64_t links = 0;                      // cables between switches
  const topologies::Fabric* fabric = nullptr;  // for names of switches and links; may be null

  std::int64_t per_server(Component c) const;  // 0 for what no server has
  std::int64_t of(Component c) const;
};

/// "node-17/gpu-3", "node-17", "pod-2/leaf-12".
std::string unit_name(const UnitCounts& counts, Component component, std::uint32_t unit);

/// Unit `unit` of Component::upper_switch, and (upwards) of Component::link, on a fabric.
topologies::VertexId upper_switch(const topologies::Fabric& fabric, std::uint32_t unit);
topologies::LinkId trunk(const topologies::Fabric& fabric, std::uint32_t unit);

/// One draw of a delay law.
Duration draw(const DelaySpec& law, sim::Stream& stream);

class FailureClocks {
 public:
  FailureClocks(sim::Engine& engine, sim::Recorder& recorder,
                const std::map<std::string, FailureClassSpec>& classes, UnitCounts counts);
  ~FailureClocks();
  FailureClocks(const FailureClocks&) = delete;
  FailureClocks& operator=(const FailureClocks&) = delete;

  /// Called at each failure, in phase failure.
  void on_failure(std::function<void(const Failure&)> action) { on_failure_ = std::move(action); }

  /// The server is down: its units do not age and do not fail until resume().
  void pause(topologies::HostId server);
  void resume(topologies::HostId server);
  /// The unit that failed was replaced and begins a new life. A class that restarts in place
  /// (replace = false) renews its unit by itself, at the failure.
  void renew(FailureClassId cls, std::uint32_t unit);

  const UnitCounts& counts() const { return counts_; }
  std::size_t classes() const { return clocks_.size(); }
  const FailureClass& failure_class(FailureClassId id) const;
  std::uint64_t failures() const { return failures_; }
  /// Failures a second of `servers` servers on `leaves` leaves, every unit at its mean: expectation
  /// of a long run. Without those of upper switches and links.
  double rate_per_s(std::int64_t servers, std::int64_t leaves) const;

 private:
  class Clock;

  void report(const FailureClass& cls, std::uint32_t unit, sim::Stream& luck, sim::KindId kind);

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  UnitCounts counts_;
  std::function<void(const Failure&)> on_failure_;
  std::vector<std::unique_ptr<Clock>> clocks_;  // in the order of the class names
  std::vector<Time> down_since_;                // by server; Time::max(): it is up
  std::uint64_t failures_ = 0;
};

}  // namespace trainyard::models
