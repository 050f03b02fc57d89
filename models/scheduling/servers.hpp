#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/training/ledger.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"
#include "topologies/fabric.hpp"

/// Who has which server. A server is in a job, or a warm spare, or unallocated, or down; the pool
/// accounts for the last three, to the nanosecond, and the job that holds a server accounts for the
/// first, so every GPU-nanosecond of the cluster is in exactly one ledger.
///
///     start        the last `spares` servers are spares, the rest unallocated
///     a gang       the lowest-numbered unallocated servers, all at once
///     replacement  a spare, else an unallocated server: of the same leaf, else the same pod, else
///     any; lowest first failure      a server in a job stays there until the job lets go of it;
///     then, and if it was idle at once, it
///                  is repaired and comes back as a spare if spares are missing, else as
///                  unallocated
///     leaf switch  takes all its servers off the network until it is repaired
///
/// Requests are granted in phase decision of the instant at which they can be: replacements before
/// gangs, and within each the older request first, at one instant the lower holder number. So the
/// order in which processes happened to ask is never what decides. A gang that does not fit lets no
/// later gang pass.
///
///     ServerPool pool(engine, recorder, {.servers = 34, .gpus_per_server = 8, .spares = 2});
///     pool.ask_gang(job, 32);                    // job.on_granted(...) 32 times, in rank order
///     pool.release(job, broken);  pool.ask_instead_of(job, broken);
///
/// docs/models/job.md, section "Servers".
namespace trainyard::models {

using topologies::HostId;

/// A failure and the servers of one holder that it strikes.
struct Strike {
  const Failure& failure;
  std::span<const HostId> servers;
};

/// Whoever can hold servers: a job.
class ServerHolder {
 public:
  virtual ~ServerHolder() = default;
  /// Lower is served first at one instant; also the order in which a shared failure strikes.
  virtual std::size_t number() const = 0;
  /// Servers of this holder are struck; they stay with it until it releases them.
  virtual void on_strike(const Strike& strike) = 0;
  /// It holds `server` from now on. `instead_of`: the server it was asked for, invalid for a gang.
  virtual void on_granted(HostId server, HostId instead_of) = 0;
};

struct PoolShape {
  std::int64_t servers = 0;
  std::int64_t gpus_per_server = 8;
  std::int64_t nics_per_server = 8;
  std::int64_t spares = 0;
  std::vector<std::uint32_t> leaf = {};  // of each server; empty: all on leaf 0
  /// Servers that a leaf switch takes off the network, by leaf; empty: those of `leaf`. With rails
  /// a server is on several.
  std::vector<std::vector<HostId>> leaf_servers = {};
  std::vector<std::uint32_t> pod = {};  // of each server; empty: all in pod 0
};

class ServerPool {
 public:
  ServerPool(sim::Engine& engine, sim::Recorder& recorder, PoolShape shape);
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  /// Failures of these clocks strike here, and repairs here renew their units.
  void attach(FailureClocks& clocks);
  /// A failure happens now: from the clocks, or scripted.
  void strike(const Failure& failure);

  void ask_gang(ServerHolder& holder, std::int64_t servers);
  void ask_instead_of(ServerHolder& holder, HostId leaving);
  void withdraw(ServerHolder& holder);
  /// The holder lets go of a server: to repair if it is broken or off the network, else to the idle
  /// ones.
  void release(ServerHolder& holder, HostId server);

  /// A server became spare or unallocated.
  sim::Signal& available() { return available_; }

  const PoolShape& shape() const { return shape_; }
  /// What the failure clocks of this cluster count.
  const UnitCounts& counts() const { return counts_; }
  std::int64_t gpus() const { return shape_.servers * shape_.gpus_per_server; }
  std::int64_t spare_servers() const { return std::int64_t(spare_.size()); }
  std::int64_t unallocated_servers() const { return std::int64_t(unallocated_.size()); }
  std::int64_t down_servers() const { return down_; }
  std::int64_t held_servers() const { return held_; }
  std::int64_t leaves_of(std::span<const HostId> servers) const;  // how many different ones

  /// Brings the ledger up to now; then it holds the time of all servers while no job held them.
  void settle();
  const Ledger& ledger() const { return ledger_; }

 private:
  enum class State : std::uint8_t { held, spare, unallocated, down };
  struct Server {
    ServerHolder* holder = nullptr;
    Time since{};
    State state = State::unallocated;
    bool is_broken = false;  // in repair, or will be when its holder lets go
    sim::EventIndex cause;   // in the log: why it is broken or down
    std::uint16_t leaf_faults =
        0;  // of its leaf switch, not yet repaired: off the network while above zero
  };
  struct Unit {
    FailureClassId cls;
    std::uint32_t unit = 0;
  };
  /// What a broken server needs. Parts are repaired side by side, so the longest repair counts.
  struct Damage {
    Duration repair{};
    std::vector<Unit> units;
  };
  struct Request {
    ServerHolder* holder;
    Time when;
    std::int64_t servers;  // of a gang
    HostId instead_of;     // valid: a replacement
  };
  struct Return {
    Time when;
    std::uint32_t index;  // of a server, or of a leaf
    bool is_leaf;
    Unit leaf_unit;
  };
  static bool is_later(const Return& a, const Return& b);

  std::vector<HostId> servers_of(Component component, std::uint32_t unit) const;
  void strike_idle(HostId server, const Failure& failure);
  void set_state(HostId server, State state);
  void change_leaf_faults(HostId server, int change);
  Account account_of(const Server& server) const;
  void settle(Server& server);
  void go_down(HostId server);
  void come_back(HostId server);
  void report(sim::KindId kind, HostId server, sim::Phase phase);
  void schedule_return(const Return& entry);
  void do_returns();
  void decide();
  bool grant(const Request& request);
  void hand_over(ServerHolder& holder, HostId server, HostId instead_of);
  HostId nearest_to(HostId leaving) const;

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  PoolShape shape_;
  UnitCounts counts_;
  FailureClocks* clocks_ = nullptr;
  std::vector<Server> servers_;
  std::vector<std::vector<HostId>> leaf_servers_;
  std::set<HostId> spare_;
  std::set<HostId> unallocated_;
  std::int64_t down_ = 0;
  std::int64_t held_ = 0;
  std::map<HostId, Damage> damage_;
  std::vector<Return> returns_;  // heap, earliest first
  std::deque<Request> replacements_;
  std::deque<Request> gangs_;
  Ledger ledger_;
  sim::Signal available_{"a server is free"};
  sim::Timer return_timer_;
  sim::Timer decide_timer_;
  sim::KindId went_down_, came_back_;
};

}  // namespace trainyard::models
