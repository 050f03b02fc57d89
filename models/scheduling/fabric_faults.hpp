#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/scheduling/servers.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "topologies/routing.hpp"

/// Failures of the fabric itself: links between switches, and switches.
///
///     link, crash    down; traffic moves to other paths, once routing has converged
///     link, slow     at `speed` of its rate: a capacity, not a failure; nothing moves
///     upper switch   all its links are down
///     leaf switch    the same, and its servers are off the network; dual-homed they keep the other
///                    leaf, at half of the rate
///
/// It is back after detection and repair. Who uses the fabric hears of each change.
///
///     FabricFaults faults(engine, recorder, router, pool);
///     faults.attach(clocks);  faults.add_user(job);
///
/// docs/models/fabric-faults.md
namespace trainyard::models {

/// Links whose state is another one now, both directions of each.
struct LinksChanged {
  std::vector<topologies::LinkId> links;
  bool is_lost = false;  // went down: what runs over them stands still until routing has converged
  sim::EventIndex event;
};

class FabricUser {
 public:
  virtual ~FabricUser() = default;
  virtual void on_links_changed(const LinksChanged& change) = 0;
};

class FabricFaults {
 public:
  FabricFaults(sim::Engine& engine, sim::Recorder& recorder, topologies::Router& router,
               ServerPool& pool);
  FabricFaults(const FabricFaults&) = delete;
  FabricFaults& operator=(const FabricFaults&) = delete;

  /// Failures of these clocks strike here; what concerns servers goes on to the pool.
  void attach(FailureClocks& clocks);
  /// Told in the order in which they were added.
  void add_user(FabricUser& user) { users_.push_back(&user); }
  /// A failure happens now: from the clocks, or scripted.
  void strike(const Failure& failure);

  std::int64_t faults() const { return faults_; }
  /// Of the failure class of this name, so far.
  std::int64_t faults_of(const std::string& name) const;
  std::int64_t active() const { return std::int64_t(returns_.size()); }

 private:
  struct Return {
    Time when;
    std::uint64_t number;  // faults of one instant return in the order in which they struck
    FailureClassId cls;
    Component component;
    std::uint32_t unit;
    double speed;
    sim::EventIndex cause;
    bool renews;  // the pool does not
  };
  static bool is_later(const Return& a, const Return& b);

  void apply(const Return& fault, bool begins);
  void do_returns();
  void report(sim::KindId kind, const Return& fault, sim::Phase phase, sim::EventIndex cause,
              std::vector<topologies::LinkId> links, bool is_lost, double speed = 0);
  std::vector<topologies::LinkId> links_of(topologies::VertexId vertex) const;

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  topologies::Router& router_;
  ServerPool& pool_;
  FailureClocks* clocks_ = nullptr;
  std::vector<FabricUser*> users_;
  std::map<std::uint32_t, std::multiset<double>> speeds_;  // of each faulty cable; 0: down
  std::map<topologies::VertexId, int> down_;               // faults of each faulty switch
  std::vector<Return> returns_;                            // heap, earliest first
  std::int64_t faults_ = 0;
  std::map<std::string, std::int64_t> by_class_;
  sim::Timer timer_;
  sim::KindId link_down_, link_slow_, link_back_, switch_down_, switch_back_;
};

}  // namespace trainyard::models
