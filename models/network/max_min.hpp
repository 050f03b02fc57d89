#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

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
///   fall   the link is overloaded:  level = root of  sum w min(x, level) = C,  faster users come
///   down to it rise   the link has room:       its users go up to the level, or to what their
///   other links allow
///
/// If a repair costs more than a full solve would, the connected part is solved afresh (progressive
/// filling), so the worst case stays near that.
///
///     MaxMin net;
///     LinkIndex link = net.add_link(10.0);
///     VarIndex a = net.add({{{link, 1.0}}}, 2.0), b = net.add({{{link, 1.0}}});
///     net.solve();                                     // a at its cap: 2; b takes the rest: 8
///
/// Source of the definition and of the bottleneck condition: D. Bertsekas, R. Gallager, Data
/// Networks, 2nd ed., 1992, section 6.5. Why each link is repaired about once:
/// docs/models/fluid-network.md. Units are the caller's; capacities and rates share one.
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

  /// When an incremental repair gives up in favour of a full solve. The defaults are measured;
  /// tests use other values to force one road or the other. The answer never depends on them.
  struct Tuning {
    double guard_factor = 1.5;     // of (edges + 8 · links in use) units of work …
    double guard_base = 500;       // … plus this
    double batch_fraction = 0.25;  // arrivals and departures of one solve over all variables, …
    std::size_t batch_least = 32;  // … and at least this many: solve in full at once
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
  };

  MaxMin() = default;
  explicit MaxMin(Tuning tuning) : tuning_(tuning) {}

  LinkIndex add_link(double capacity);
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
  bool is_solved() const { return touched_.empty() && changed_.empty(); }

  double rate(VarIndex var) const { return cold(var).rate; }
  double cap(VarIndex var) const { return cold(var).cap; }
  double capacity(LinkIndex link) const { return links_[link.index()].capacity; }
  /// Summed over its users as of the last solve.
  double load(LinkIndex link) const;
  /// Sum of the weights on a link: capacity / weight is the share of everyone if all were alike.
  double weight(LinkIndex link) const { return links_[link.index()].weight; }
  /// The full link that holds this variable, none if it is at its cap. Among equal ones, any.
  std::optional<LinkIndex> bottleneck(VarIndex var) const;
  std::size_t links() const { return links_.size(); }
  std::size_t variables() const { return alive_; }
  const Counters& counters() const { return counters_; }

  template <class F>
  void for_each_load(VarIndex var, F&& f) const {
    const Variable& v = vars_[var.index()];
    for (std::uint32_t e = v.first; e != v.first + v.count; ++e)
      f(Load{LinkIndex(edges_[e].link), edges_[e].weight});
  }
  template <class F>
  void for_each_user(LinkIndex link, F&& f) const {
    for (const User& u : links_[link.index()].users) f(VarIndex(u.var), u.weight);
  }

  /// Proves the present rates from the definition alone, in time proportional to the edges; throws
  /// CheckFailed if they are not max-min. `tolerance` is relative.
  void check_certificate(double tolerance = 1e-9) const;

 private:
  using Index = std::uint32_t;
  static constexpr Index at_cap = 0xffffffffu;

  struct Edge {  // of a variable
    Index link;
    Index slot;  // where the link lists it
    double weight;
  };
  struct User {  // of a link
    Index var;
    Index edge;
    double weight;
  };
  struct Hot {             // what scans of users read
    double x = 0;          // tentative during a solve
    Index bound = at_cap;  // the link whose level x is
    bool is_changed = false;
  };
  struct Variable {
    double cap = 0;
    double bound = 0;  // min(cap, nominal capacity / weight over its links): no rate can pass it
    double rate = 0;   // as of the last solve
    Index first = 0;   // edges
    Index count = 0;
    bool is_alive = false;
    bool in_region = false;
  };
  struct Link {
    double capacity = 0;
    double nominal = 0;  // the largest capacity it ever had
    double level = unlimited;
    double load = 0;
    double weight = 0;        // of all users
    double bound_weight = 0;  // of the users this link holds
    double bound_sum = 0;     // load if every user were at its bound
    double queued_key = -1;   // in the repair heap; -1: not
    Index bound_count = 0;
    Index updates = 0;  // of load and bound_weight since both were summed afresh
    bool is_touched = false;
    bool is_seen = false;  // touched in this solve
    bool in_region = false;
    std::vector<User> users;
  };
  struct Queued {
    double key;
    Index link;
  };
  struct Held {  // a user during a scan: it will take min(limit, level)
    double limit;
    double weight;
    Index var;
    Index holder;  // the link that sets the limit
  };
  struct Filling {  // a link while the full solve fills it
    double fixed_load = 0;
    double free_weight = 0;
    std::size_t free_users = 0;
  };
  struct Fixed {  // a variable in the full solve; below zero: still rising
    double x = -1;
    Index bound = at_cap;
  };
  struct Root {
    double level;  // unlimited: all fit
    double load;
    double weight;  // of those held at the level
  };

  const Variable& cold(VarIndex var) const { return vars_[var.index()]; }
  Index take_edges(std::size_t count);
  void give_back_edges(Index first, Index count);
  void touch(Index link);
  void note_change(Index var);
  void set(Index var, double x, Index bound);
  void renew_bound(Index var);
  double highest(Index var, Index except, Index* holder) const;
  bool is_active(const Link& link) const;
  void sum_afresh(Index link);
  void sum_bounds(Index link);
  void classify(Index link);
  void queue(Index link, double key);
  void classify_touched();
  bool repair();
  void step(Index link, double key);
  void fall(Index link, const Root& root);
  void rise(Index link);
  Root root_of(double capacity, double base) const;
  void collect_region();
  void fill_region();
  void fix(Index var, double x, Index bound);
  bool fill_link(Index link, double key, double* level);
  std::span<const Change> publish();

  Tuning tuning_;
  Counters counters_;
  std::vector<Link> links_;
  std::vector<Hot> hot_;
  std::vector<Variable> vars_;
  std::vector<Edge> edges_;
  std::vector<std::vector<Index>> free_edges_;  // blocks by power of two
  std::vector<Index> free_vars_;
  std::size_t alive_ = 0;
  std::size_t edge_count_ = 0;
  std::size_t links_in_use_ = 0;
  std::size_t batch_ = 0;  // arrivals and departures since the last solve
  double current_key_ = 0;
  double work_ = 0;
  unsigned backoff_ = 0;
  unsigned skip_incremental_ = 0;
  std::vector<Index> touched_, seen_, changed_, region_links_, region_vars_;
  std::vector<Queued> heap_;
  std::vector<Held> scan_;
  std::vector<Filling> filling_;
  std::vector<Fixed> fixed_;
  std::vector<std::pair<double, Index>> by_bound_;  // variables of the region
  std::vector<Change> published_;
};

}  // namespace trainyard::models
