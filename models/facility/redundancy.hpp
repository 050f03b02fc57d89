#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/facility/steady_power.hpp"
#include "sim/time.hpp"

/// What redundancy is worth: what it shares, and what the survivors carry.
///
/// Shared points. A node on all ways from the sources to a rack is one whose loss alone makes the
/// rack dark: a dominator. With sources before what they feed, one pass gives the nearest one,
///
///     idom(n) = lowest common ancestor, in the tree of idom, of all feeds of n
///
/// n-1. After the loss of any one node, what every other carries, and how soon a breaker trips with
/// the thermal image that it had before. That is how a plant with two feeds goes dark: each carried
/// 0.8 of its rating, so the survivor trips after 76 s.
///
///     for (const SharedPoint& s : shared_points(layout)) print(to_text(s));
///     // rack-3's feeds a and b share pdu-2
///     for (const Loss& loss : n_minus_1(power, {.keep = 3})) print(to_text(loss, layout));
///
/// Source: K. Cooper, T. Harvey, K. Kennedy, A Simple, Fast Dominance Algorithm (2001).
namespace trainyard::models {

/// Nodes whose loss alone unfeeds n, nearest first; n itself is not among them.
std::vector<std::size_t> dominators(const PowerLayout& layout, std::size_t n);

struct SharedPoint {
  std::size_t node = 0;
  std::string name;
  std::vector<std::string> racks = {};
  std::vector<std::string> feeds = {};  // of each of these racks
  std::vector<std::string> loads = {};  // other loads with several feeds
};

/// Of racks and loads with two feeds or more; those that take away most racks last, nearest to
/// racks first.
std::vector<SharedPoint> shared_points(const PowerLayout& layout);
std::string to_text(const SharedPoint& shared);

/// A node after the loss of another.
struct Survivor {
  std::size_t node = 0;
  Watts active{};
  VoltAmperes apparent{};
  Amperes current{};    // of its worst line
  double ratio = 0.0;   // worst of W, VA and A to what it is rated for; 0 without a rating
  double before = 0.0;  // the same before the loss
  std::optional<Duration> trips = {};  // a breaker: after the loss, if nobody acts
};

struct Loss {
  std::size_t node = 0;
  std::vector<std::size_t> dark = {};        // racks
  Watts dark_load{};                         // of racks
  std::vector<std::size_t> dark_loads = {};  // beside racks: chillers that stop
  std::vector<Survivor> survivors = {};      // worst first
  double worst() const { return survivors.empty() ? 0.0 : survivors.front().ratio; }
};

std::string to_text(const Loss& loss, const PowerLayout& layout);

struct NMinus1Options {
  bool circuits = false;  // also lose the circuits of racks
  std::size_t keep = 10;  // survivors a loss, the worst; 0: all
  bool only_more = true;  // only those that carry more than before
};

/// Every node with a rating after the loss of `lost`, sorted worst first. The plant is left as it
/// is without it.
Loss lose(SteadyPower& power, std::size_t lost, const NMinus1Options& options = {});
/// All losses of one node that is not a rack or a load, at the present load, the worst first: by
/// the worst survivor, then by the load that goes dark. The plant is left whole.
std::vector<Loss> n_minus_1(SteadyPower& power, const NMinus1Options& options = {});

}  // namespace trainyard::models
