#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "models/network/block_pool.hpp"
#include "sim/id.hpp"

/// Max-min fair rates, exact and incremental.
///
/// A variable k (a flow, or a whole collective that advances in lock-step) has one rate x_k and
/// loads link l with w_lk · x_k. Rates are max-min: none can rise unless one that is no larger
/// falls. x is that vector if and only if every link carries at most its capacity, and every
/// variable is at its own cap or has a *bottleneck*: a full link of its own on which nobody is
/// faster.
///
/// Level form. Give each link a level L_l and put x_k = min(cap_k, min of L_l over its links). If
/// every link is either "L = infinite and load <= capacity" or "L finite and load = capacity", x is
/// the answer, by whatever road it was reached. A link whose users and capacity did not change
/// stays right, so a change repairs only the links it touches, lowest level first:
///
///   fall   the link is overloaded:  level = root of  sum w min(x, level) = C,
///          faster users come down to it
///   rise   the link has room:       its users go up to the level, or to what their other links
///          allow
///
/// If a repair costs more than a full solve would, the connected part is solved afresh (progressive
/// filling), so the worst case stays near that. A link that could carry all its users at the most
/// they can reach is not looked at.
///
///     MaxMin net;
///     LinkIndex link = net.add_link(10.0);
///     VarIndex a = net.add({{{link, 1.0}}}, 2.0), b = net.add({{{link, 1.0}}});
///     net.solve();                                     // a at its cap: 2; b takes the rest: 8
///
/// Source of the definition and of the bottleneck condition: D. Bertsekas, R. Gallager, Data
/// Networks, 2nd ed., 1992, section 6.5. Why each link is repaired about once, and the layout in
/// memory: docs/models/fluid-network.md. Units are the caller's; capacities and rates share one.
namespace trainyard::models {

struct MaxMinLink;
struct MaxMinVariable;
using LinkIndex = Id<MaxMinLink>;
using VarIndex = Id<MaxMinVariable>;

/// A variable of rate x takes weight · x of the link.
struct Load {
  LinkIndex link;
  double weight = 1.0;
};

class MaxMin {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  struct Change {
    VarIndex var;
    double old_rate;
  };

  /// When an incremental repair gives up in favour of a full solve, and how far a wide variable
  /// may move before all its links are looked at. The defaults are measured; tests use other values
  /// to force one road or the other. The answer never depends on them.
  struct Tuning {
    double guard_factor = 1.5;      // of (edges + 8 · links in use) units of work …
    double guard_base = 500;        // … plus this
    double batch_fraction = 0.25;   // arrivals and departures of one solve over all variables, …
    std::size_t batch_least = 32;   // … and at least this many: solve in full at once
    double envelope_factor = 1.25;  // of the rate: what a wide variable is taken to reach
    std::size_t wide_least = 17;    // links that make a variable wide
  };

  /// Work done so far; regressions of speed show here without a clock.
  struct Counters {
    std::uint64_t solves = 0;
    std::uint64_t steps = 0;        // levels that fell or rose
    std::uint64_t looks = 0;        // scans of all users of a link
    std::uint64_t full_solves = 0;  // by choice
    std::uint64_t fallbacks = 0;    // because a repair became too long
    std::uint64_t touched = 0;      // variables handled
    std::uint64_t changed = 0;      // variables whose rate really changed
    std::uint64_t activations = 0;  // links that could not bind and now can
  };

  MaxMin() = default;
  explicit MaxMin(Tuning tuning) : tuning_(tuning) {}

  /// Room for so many at once, so that nothing is copied on the way there.
  void reserve(std::size_t links, std::size_t variables, std::size_t loads);
  LinkIndex add_link(double capacity);

  // All of these are noted and act at the next solve, together.

  /// Loads of one link named twice are added. A variable without loads needs a finite cap.
  VarIndex add(std::span<const Load> loads, double cap = unlimited);
  /// The index may be given to a later variable.
  void remove(VarIndex var);
  /// Zero is a broken link: who uses it stands still.
  void set_capacity(LinkIndex link, double capacity);
  void set_cap(VarIndex var, double cap);

  /// Brings all rates up to date, for all changes since the last call together. Gives the variables
  /// whose rate is now another one; valid until the next solve.
  std::span<const Change> solve();
  /// The same answer by progressive filling of everything: start, reference and yardstick.
  std::span<const Change> solve_from_scratch();
  bool is_solved() const {
    return touched_.empty() && arrivals_.empty() && leaving_.empty() && recapped_.empty();
  }

  /// Rates, loads and users are those of the last solve.
  double rate(VarIndex var) const { return hot_[var.index()].x; }
  double cap(VarIndex var) const {
    return var.index() < caps_.size() ? caps_[var.index()] : unlimited;
  }
  double capacity(LinkIndex link) const { return links_[link.index()].capacity; }
  double load(LinkIndex link) const;
  /// Sum of the weights on a link: capacity / weight is the share of everyone if all were alike.
  double weight(LinkIndex link) const { return links_[link.index()].weight; }
  /// The full link that holds this variable, none if it is at its cap. Among equal ones, any.
  std::optional<LinkIndex> bottleneck(VarIndex var) const;
  std::size_t links() const { return links_.size(); }
  std::size_t variables() const { return alive_; }
  const Counters& counters() const { return counters_; }
  /// All it holds, room not yet used included.
  std::size_t memory_bytes() const;

  template <class F>
  void for_each_load(VarIndex var, F&& f) const {
    const Index first = first_[var.index()];
    for (Index e = first; e != first + hot_[var.index()].count; ++e)
      f(Load{LinkIndex(edges_[e]), edge_weight(e)});
  }
  template <class F>
  void for_each_user(LinkIndex link, F&& f) const {
    const Link& l = links_[link.index()];
    for (Index u = l.first; u != l.first + l.count; ++u) f(VarIndex(users_[u]), user_weight(u));
  }

  /// Proves the present rates from the definition alone, in time proportional to the edges; throws
  /// CheckFailed if they are not max-min. `tolerance` is relative.
  void check_certificate(double tolerance = 1e-9) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index at_cap = 0xffffffffu;
  static constexpr Index rising = 0xfffffffeu;  // not yet fixed by the full solve

  struct Hot {             // of a variable: what scans of users read
    double x = 0;          // tentative during a solve
    Index bound = at_cap;  // the link whose level x is
    Index count : 28 = 0;  // links
    Index is_alive : 1 = 0;
    Index is_attached : 1 = 0;  // its links know it
    Index is_changed : 1 = 0;
    Index is_wide : 1 = 0;
  };
  struct Wide {           // of a variable of many links
    double envelope = 0;  // x stays below it
    Index active = 0;     // so many of its links, listed first, can bind
  };
  struct Link {
    double capacity = 0;
    double level = unlimited;
    double load = 0;                       // kept while active
    double weight = 0;                     // of all users
    double bound_weight = 0;               // of the users this link holds
    double reach = 0;                      // load if every user were at the most it can reach
    double queued_key = -1;                // in the repair heap; -1: not
    Index first = 0, count = 0, room = 0;  // users
    Index bound_count = 0;
    std::uint16_t load_updates = 0, reach_updates = 0;  // since they were added up afresh
    bool is_active = false;                             // reach > capacity: it can bind
    bool is_touched = false;
    bool is_seen = false;  // touched in this solve
    bool in_region = false;
  };
  struct Door {          // of a link: what adding a variable reads
    double nominal = 0;  // the largest capacity it ever had
    Index stamp = 0;     // of the last add that named it
  };
  struct Queued {
    double key;
    Index link;
    bool operator>(const Queued& o) const { return key != o.key ? key > o.key : link > o.link; }
  };
  struct Held {  // a user during a scan: it will take min(limit, level)
    double limit;
    double weight;
    Index var;
    Index holder;  // the link that sets the limit
  };
  struct Root {
    double level;  // unlimited: all fit
    double load;
    double weight;  // of those held at the level
  };

  double edge_weight(Index e) const { return is_weighted_ ? edge_weights_[e] : 1.0; }
  double user_weight(Index u) const { return is_weighted_ ? user_weights_[u] : 1.0; }
  double reach_of(Index k) const { return hot_[k].is_wide ? wide_[k].envelope : limits_[k]; }
  Index active_links(Index k) const { return hot_[k].is_wide ? wide_[k].active : hot_[k].count; }

  // max_min.cpp: the network as the caller says it
  void become_weighted();
  Index take_variable();
  std::span<const Change> publish();
  void forget_changes();

  // max_min_changes.cpp: taking it in
  void free_variable(Index var);
  void apply_changes(bool is_tentative);
  void attach(Index var, bool is_tentative);
  void detach(Index var);
  void push_user(Index link, Index var, double weight);
  void move_users(Index link, Index room);
  void note_change(Index var);
  void renew_limit(Index var, bool is_tentative);
  double least_share(Index var) const;

  // max_min_reach.cpp: which links can bind
  void touch(Index link);
  void sum_load(Index link);
  void sum_reach(Index link);
  bool is_over_reached(Index link);
  void consider(Index link);
  void activate(Index link);
  void deactivate(Index link);
  void deactivate_slack();
  void move_edge(Index var, Index link, bool to_active);
  void widen(Index var, double x);
  bool tighten(Index var);
  void narrow_envelope(Index var);
  void partition_all();
  void narrow_all();

  // max_min_repair.cpp: lowest level first
  void set(Index var, double x, Index bound);
  double highest(Index var, Index except, Index* holder) const;
  void classify(Index link);
  void classify_touched();
  void queue(Index link, double key);
  bool repair();
  void step(Index link, double key);
  void fall(Index link, const Root& root);
  void rise(Index link);
  void finish_step(Index link, const Root& root, Index held);
  Root root_of(double capacity, double base) const;

  // max_min_fill.cpp: progressive filling
  void rebuild_users();
  void collect_all();
  void collect_region();
  void enter_region(Index link);
  void fill();
  void fill_link(const Queued& lowest);
  void fix(Index var, double x, Index bound);
  void fill_rebuilt();
  void fill_all();
  void fill_region();
  bool widen_changed();
  void forget_touched();

  Tuning tuning_;
  Counters counters_;
  // By link.
  std::vector<Link> links_;
  std::vector<Door> doors_;
  // By variable. caps_ and wide_ stay empty until one needs them.
  std::vector<Hot> hot_;
  std::vector<double> limits_;  // min(cap, nominal capacity / weight over its links): none can pass
  std::vector<Index> first_;    // edges
  std::vector<double> caps_;
  std::vector<Wide> wide_;
  std::vector<Index> free_vars_;
  // Lists of links by variable and of variables by link; weights beside them once one is not 1.
  std::vector<Index> edges_, users_;
  std::vector<double> edge_weights_, user_weights_;
  BlockPool edge_pool_, user_pool_;
  bool is_weighted_ = false;
  bool are_envelopes_loose_ = false;  // set to the limits by a full solve
  std::size_t alive_ = 0;
  std::size_t edge_count_ = 0;
  std::size_t leaving_edges_ = 0;
  std::size_t links_in_use_ = 0;
  std::size_t batch_ = 0;  // arrivals and departures since the last solve
  Index stamp_ = 0;
  double current_key_ = 0;
  double work_ = 0;
  unsigned backoff_ = 0;
  unsigned skip_incremental_ = 0;
  std::vector<Index> arrivals_, leaving_, raised_, recapped_;  // since the last solve
  std::vector<Index> touched_, seen_, region_links_, over_;
  std::vector<Change> changed_;
  std::vector<Queued> heap_;
  std::vector<Held> scan_;
};

}  // namespace trainyard::models
