#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/facility/power_plant_paths.hpp"
#include "sim/time.hpp"

/// Flows that came before, and what they left in breakers. Jobs that train and save change the load
/// of all racks between a few vectors, hundreds of thousands of times a year; as long as no device
/// would do anything, the flows are known, and devices need not be told.
///
/// A breaker's image is the only state that follows the load then. It is linear in the heating
/// h = (I / I_n)^2, and the part that each remembered solution k has in it depends on nothing but
/// the time constant:
///
///     theta(t) = u theta_0 + sum_k w_k h_k
///     after dt with solution m:  u, w_k -> times e^(-dt/tau),   w_m -> plus 1 - e^(-dt/tau)
///
/// so a change costs one step of a few weights, and images are summed when somebody wants them.
///
///     FlowMemory memory(time_constants_s, node_count);
///     memory.add(heating, {}, now);                         // what is in force
///     memory.settle(now);
///     if (auto to = memory.find(key)) paths.exchange(memory.change_to(*to, now));
///     memory.image(breaker, theta_0);
namespace trainyard::models {

class FlowMemory {
 public:
  using Key = std::span<const std::byte>;
  static constexpr std::size_t none = std::size_t(-1);

  /// Of all breakers; `nodes` of the plant bound how much is remembered.
  FlowMemory(std::vector<double> time_constants_s, std::size_t nodes);

  /// The solution in force; its flows are with the paths, those of all others here.
  std::size_t at() const { return at_; }
  /// What `key` leads to from here, if that is known.
  std::optional<std::size_t> find(Key key);
  /// The same, by the name of a key; none was given for 0.
  std::optional<std::size_t> find(std::uint64_t name) const;
  /// The way that the last find() by a key found, or that was learned since, has this name too.
  void name_last(std::uint64_t name);
  /// A solution with these loads.
  std::optional<std::size_t> find(const std::vector<PowerPaths::Load>& loads) const;
  /// `from` none: the key gives all loads.
  void learn(Key key, std::size_t from, std::size_t to);

  /// A new solution that is in force from now on; what was in force, `before`, is kept. When it is
  /// full, the one that was not used for longest is forgotten: images must be taken before if it
  /// has a part in them.
  void add(std::vector<double> heating, PowerPaths::Solved before, Time now);
  bool must_settle() const;
  /// The flows of a known solution, which is in force from now on: put them into the paths, and
  /// what the paths had comes back here.
  PowerPaths::Solved& change_to(std::size_t k, Time now);
  /// What the paths have is this known solution.
  void hold(std::size_t k);
  /// What comes is not to be remembered: `before` are the flows in force until now.
  void leave(PowerPaths::Solved before);
  void forget();

  /// What is in force was so until now.
  void pass(Time now);
  /// Images begin anew.
  void settle(Time now);
  /// Another solution was in force since: images are not what breakers think.
  bool has_changed() const { return has_changed_; }
  Time settled() const { return settled_; }
  Time since() const { return since_; }
  /// At since(); `image` is what it was when settled.
  double image(std::size_t breaker, double image) const;

 private:
  struct Known {
    PowerPaths::Solved solved;
    std::vector<double> heating;
    std::uint64_t used = 0;
  };
  struct Way {
    std::uint64_t hash;
    std::size_t from;  // none: from anywhere
    std::size_t to;
    std::vector<std::byte> key;
    std::uint64_t name = 0;
  };
  /// Breakers of one time constant.
  struct Cooling {
    double tau_s;
    double start = 1.0;
    std::vector<double> weights = {};  // of known_
  };
  std::size_t oldest() const;

  std::size_t most_;
  std::vector<Known> known_;
  std::vector<Way> ways_;
  std::size_t last_way_ = none;
  std::vector<Cooling> coolings_;
  std::vector<std::size_t> cooling_of_;  // of a breaker
  std::size_t at_ = none;
  std::uint64_t uses_ = 0;
  Time settled_{}, since_{};
  bool has_changed_ = false;
};

}  // namespace trainyard::models
