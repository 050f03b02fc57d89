#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/scheduling/cluster_care_spec.hpp"
#include "models/scheduling/repair_shop.hpp"
#include "models/training/ledger.hpp"
#include "sim/engine.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"
#include "topologies/fabric.hpp"

/// Who has which server. A server is in a job, or a spare, or unallocated, or reserved, or down;
/// the pool accounts for all but the first, to the nanosecond, and the job that holds a server
/// accounts for that, so every GPU-nanosecond of the cluster is in exactly one ledger.
///
///     start        `spares` servers are spares (the last ones, or spread), the rest unallocated
///     up           working and fed and cooled and connected: four flags, each with its own causes.
///                  A rack or PDU takes the feed of its servers, a CDU the cooling, a leaf switch
///                  or a cable the network; what returns brings back only what it took
///     failure      a server in a job stays there until the job lets go of it; then, and if it was
///                  idle at once, it goes to the repair shop, and comes back as a spare if spares
///                  are missing, else as unallocated
///     a gang       the lowest-numbered unallocated servers, all at once
///     replacement  a spare, else an unallocated server: of the same leaf, else the same pod, else
///                  any; lowest first. A cold spare boots first
///     preemption   what idle servers cannot give, a preemptible holder of lower priority must
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
/// docs/models/servers.md
namespace trainyard::models {

using topologies::HostId;

/// A failure and the servers of one holder that it strikes.
struct Strike {
  const Failure& failure;
  std::span<const HostId> servers;
  bool loses_power = false;  // rack, PDU
  bool is_cooling = false;   // CDU
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

  /// Higher may take servers from lower, if those are preemptible.
  virtual int priority() const { return 0; }
  virtual bool is_preemptible() const { return false; }
  /// Somebody of higher priority needs `server`: save, then release it.
  virtual void on_preempted(HostId server) { static_cast<void>(server); }
  /// `failure` will strike `servers` of this holder, if they live until then.
  virtual void on_warning(const Failure& failure, std::span<const HostId> servers,
                          Time strikes_at) {
    static_cast<void>(failure), static_cast<void>(servers), static_cast<void>(strikes_at);
  }
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
  ParentsSpec parents = {};
  RepairSpec repair = {};
  SparesSpec spare = {};
  std::optional<ExclusionSpec> exclude = {};
};

/// Which servers are spares at the start, lowest first: the last `spares` of `servers`, or spread:
/// in the middle of each of `spares` equal parts.
std::vector<HostId> spare_places(std::int64_t servers, std::int64_t spares, SparePlaces places);

struct ServerFlags {
  bool working = true, fed = true, cooled = true, connected = true;
  bool is_up() const { return working && fed && cooled && connected; }
  friend bool operator==(const ServerFlags&, const ServerFlags&) = default;
};

/// What servers lack when a parent of theirs is down.
enum class Lack : std::uint8_t { feed, cooling, network };

class ServerPool {
 public:
  ServerPool(sim::Engine& engine, sim::Recorder& recorder, PoolShape shape);
  ServerPool(const ServerPool&) = delete;
  ServerPool& operator=(const ServerPool&) = delete;

  /// Failures of these clocks strike here, their warnings go to the holders, and repairs here renew
  /// their units.
  void attach(FailureClocks& clocks);
  /// A failure happens now: from the clocks, or scripted.
  void strike(const Failure& failure);
  /// A failure will happen at `strikes_at`.
  void warn(const Failure& failure, Time strikes_at);
  void warn(const Failure& failure, std::span<const HostId> threatened, Time strikes_at);
  /// The plant took feed or cooling from these servers; give_back() ends it. The failure's class
  /// must be of a parent, its repair is not used.
  void take_away(const Failure& failure, Lack lack, std::span<const HostId> servers);
  void give_back(Lack lack, std::span<const HostId> servers);
  /// One more (+1) or one fewer (-1) reason, beside its leaf, why a server is off the network. It
  /// is not struck: a job that holds it notices by its traffic.
  void change_access_faults(HostId server, int change, sim::EventIndex cause);
  /// Units of servers that train fail at another rate than idle ones (FailureClassSpec).
  void set_training(std::span<const HostId> servers, bool is_training);

  void ask_gang(ServerHolder& holder, std::int64_t servers);
  void ask_instead_of(ServerHolder& holder, HostId leaving);
  void withdraw(ServerHolder& holder);
  /// The holder lets go of a server: to repair if it is broken or lacks something, to whoever
  /// preempted it, else to the idle ones.
  void release(ServerHolder& holder, HostId server);

  /// A server became spare or unallocated.
  sim::Signal& available() { return available_; }

  const PoolShape& shape() const { return shape_; }
  /// What the failure clocks of this cluster count.
  const UnitCounts& counts() const { return counts_; }
  const RepairShop& shop() const { return shop_; }
  ServerFlags flags(HostId server) const;
  /// Of its own parts, so far; planned work is none.
  std::int64_t failures_of(HostId server) const { return servers_.at(server.index()).failures; }
  std::int64_t excluded() const { return excluded_; }  // times that a server was
  /// Another number after anything happened to any server here.
  std::uint64_t version() const { return version_; }
  /// Of who holds it: the holder's number; none: nobody.
  std::optional<std::size_t> holder_of(HostId server) const;
  bool is_down(HostId server) const { return servers_.at(server.index()).state == State::down; }
  std::int64_t gpus() const { return shape_.servers * shape_.gpus_per_server; }
  std::int64_t spare_servers() const { return std::int64_t(spare_.size()); }
  std::int64_t unallocated_servers() const { return std::int64_t(unallocated_.size()); }
  std::int64_t down_servers() const { return down_; }
  std::int64_t held_servers() const { return held_; }
  /// Promised to somebody: a spare that boots, or servers kept for the rest of a gang.
  std::int64_t reserved_servers() const { return reserved_; }
  std::int64_t leaves_of(std::span<const HostId> servers) const;  // how many different ones
  /// Servers under a parent, or the one that has the part.
  std::vector<HostId> servers_of(Component component, std::uint32_t unit) const;

  /// Brings the ledger up to now; then it holds the time of all servers while no job held them.
  void settle();
  const Ledger& ledger() const { return ledger_; }

 private:
  enum class State : std::uint8_t { held, spare, unallocated, reserved, down };
  struct Server {
    ServerHolder* holder = nullptr;
    Time since{};
    Time ready{};               // reserved: can be handed over
    std::uint64_t request = 0;  // reserved for it, or, if held, promised to it; 0: none
    State state = State::unallocated;
    bool is_broken = false;                // in repair, or will be when its holder lets go
    bool was_spare = false;                // when it was reserved
    std::array<std::uint16_t, 3> lacks{};  // causes of each Lack that are not yet repaired
    std::uint32_t feed_returns = 0;
    sim::EventIndex cause;  // in the log: why it is broken or down
    std::int64_t failures = 0;
  };
  struct Unit {
    FailureClassId cls;
    std::uint32_t unit = 0;
  };
  /// What a broken server needs. Parts are repaired side by side, so the longest repair counts.
  struct Damage {
    Duration repair{};
    std::vector<Unit> units;
    bool is_planned = true;  // nothing but planned work
    bool is_offender = false;
  };
  struct Outage {
    Lack lack;
    Duration lasts;
  };
  struct Request {
    std::uint64_t id;
    ServerHolder* holder;
    Time when;
    std::int64_t servers;          // of a gang
    HostId instead_of;             // valid: a replacement
    std::vector<HostId> reserved;  // idle, but not for others
    std::vector<HostId> promised;  // still held by those who were preempted
  };
  struct Return {
    enum class Of : std::uint8_t { parent, outage, boot };
    Time when;
    Of of;
    std::uint32_t index;  // of the parent, or of the server
    Component component;  // of a parent
    std::optional<Lack> lack;
    Unit unit;
  };
  /// What one pass of decide() gives and takes; told to the holders at its end.
  struct Decisions {
    struct Grant {
      ServerHolder* holder;
      HostId server, instead_of;
    };
    std::vector<Grant> grants;
    std::vector<std::pair<ServerHolder*, HostId>> preempted;
  };
  static bool is_later(const Return& a, const Return& b);

  // Failures and what they leave behind.
  void strike(const Failure& failure, std::optional<Lack> lack, std::span<const HostId> struck);
  void strike_idle(HostId server, const Failure& failure);
  void mark(HostId server, const Failure& failure);
  bool is_repeat(HostId server);
  void change_lack(HostId server, Lack lack, int change);
  void feed_returned(HostId server);
  bool must_go_down(HostId server) const;
  void go_down(HostId server);
  void admit(HostId server);
  void repaired(HostId server, sim::EventIndex last);
  void come_back(HostId server);
  void schedule_return(const Return& entry);
  void do_returns();
  void do_return(const Return& entry);

  // States and their time.
  Account account_of(const Server& server) const;
  bool is_idle(const Server& server) const;
  void settle(Server& server);
  void set_state(HostId server, State state);
  void become_idle(HostId server);
  sim::EventIndex report(sim::KindId kind, HostId server, sim::Phase phase, double value = 0);

  // Requests.
  void decide();
  bool serve_replacement(Request& request, Decisions& decisions);
  bool serve_gang(Request& request, Decisions& decisions);
  void give(Request& request, HostId server, Decisions& decisions);
  void reserve(Request& request, HostId server, Duration ready_in);
  void preempt_for(Request& request, std::int64_t missing, Decisions& decisions);
  void forget_promises(Request& request);
  void drop_promise(HostId server);
  Request* request_of(const Server& server);
  int distance(HostId a, HostId b) const;
  HostId nearest_to(HostId leaving) const;

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  PoolShape shape_;
  RepairShop shop_;
  UnitCounts counts_;
  FailureClocks* clocks_ = nullptr;
  std::vector<Server> servers_;
  std::vector<std::vector<HostId>> leaf_servers_;
  std::set<HostId> spare_;
  std::set<HostId> unallocated_;
  std::set<HostId> returned_;  // in this instant: the lowest of them become spares
  std::int64_t down_ = 0;
  std::int64_t held_ = 0;
  std::int64_t reserved_ = 0;
  std::map<std::size_t, std::pair<ServerHolder*, std::int64_t>> holders_;  // and their servers
  std::map<HostId, Damage> damage_;
  std::map<HostId, std::vector<Outage>> outages_;  // planned, of parents; begin when it is let go
  std::map<HostId, std::vector<Time>> history_;    // failures that count for the exclusion
  std::int64_t excluded_ = 0;
  std::vector<Return> returns_;  // heap, earliest first
  std::uint64_t requests_ = 0;
  std::deque<Request> replacements_;
  std::deque<Request> gangs_;
  std::uint64_t version_ = 0;
  Ledger ledger_;
  sim::Signal available_{"a server is free"};
  sim::Stream return_luck_;
  sim::Timer return_timer_;
  sim::Timer decide_timer_;
  sim::KindId went_down_, came_back_;
};

}  // namespace trainyard::models
