#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/scheduling/servers.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "topologies/routing.hpp"

/// Failures of the fabric itself: cables and switches; and where all other failures go from here.
///
///     link, access link, crash   down; traffic moves to other paths, once routing has converged
///     link, access link, slow    at `speed` of its rate: a capacity, not a failure; nothing moves
///     nic, slow                  the same for all cables of the adapter
///     upper switch               all its links are down
///     leaf switch                the same, and its servers are off the network; dual-homed they
///                                keep the other leaf, at half of the rate
///     store server               its store hears of it
///     anything else              goes to the server pool
///
/// It is back after detection and repair. Who uses the fabric hears of each change. A server is
/// connected while each of its adapters has a port that works.
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
  bool is_back = false;  // they are as built again
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
  /// Called with the store and the change of its working servers: -1 or +1.
  void on_store_server(std::function<void(const std::string& store, int change)> action) {
    on_store_server_ = std::move(action);
  }
  /// A failure happens now: from the clocks, or scripted.
  void strike(const Failure& failure);

  std::int64_t faults() const { return faults_; }
  /// Of the failure class of this name, so far.
  std::int64_t faults_of(const std::string& name) const;
  std::int64_t active() const { return std::int64_t(returns_.size()); }

 private:
  struct Fault {
    enum class Of : std::uint8_t { cables, switch_, store_server };
    Of of = Of::cables;
    std::vector<topologies::LinkId> cables;  // upwards
    double speed = 0;                        // of them; 0: down
    topologies::VertexId vertex;
    std::string store;
    std::string name;
    FailureClassId cls;
    std::uint32_t unit = 0;
    bool renews = false;  // neither the pool nor the clock itself does
    sim::EventIndex cause;
  };
  struct Return {
    Time when;
    std::uint64_t number;  // faults of one instant return in the order in which they struck
    Fault fault;
  };
  static bool is_later(const Return& a, const Return& b);

  std::vector<topologies::LinkId> cables_of(const Failure& failure) const;
  void apply(const Fault& fault, bool begins);
  void apply_to_cables(const Fault& fault, bool begins);
  void apply_to_switch(const Fault& fault, bool begins);
  void apply_to_store(const Fault& fault, bool begins);
  bool is_down(topologies::LinkId cable) const;
  void look_at_adapters(const std::vector<topologies::LinkId>& links, sim::EventIndex cause);
  void do_returns();
  void report(sim::KindId kind, const Fault& fault, bool begins,
              std::vector<topologies::LinkId> links, bool is_lost, double speed = 0);
  std::vector<topologies::LinkId> links_of(topologies::VertexId vertex) const;

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  topologies::Router& router_;
  ServerPool& pool_;
  FailureClocks* clocks_ = nullptr;
  std::vector<FabricUser*> users_;
  std::function<void(const std::string&, int)> on_store_server_;
  std::map<topologies::LinkId, std::multiset<double>> speeds_;  // of each faulty cable; 0: down
  std::map<topologies::VertexId, int> down_;                    // faults of each faulty switch
  std::map<std::pair<std::string, std::uint32_t>, int> store_down_;
  std::set<topologies::NicId> lost_adapters_;  // no port works
  std::vector<Return> returns_;                // heap, earliest first
  std::int64_t faults_ = 0;
  std::map<std::string, std::int64_t> by_class_;
  sim::Timer timer_;
  sim::KindId link_down_, link_slow_, link_back_, switch_down_, switch_back_;
};

}  // namespace trainyard::models
