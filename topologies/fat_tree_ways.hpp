#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "topologies/fabric.hpp"

/// All ways of one pair through a fat tree, as a graph of *places* computed from the numbering:
///
///     nic -> leaf_up -> spine_up -> core -> spine_down -> leaf_down -> end
///
/// `top` says how far up they go: to a leaf that both share, to a spine, to a core. A place is a
/// stage and an index there: a leaf is the port of the NIC that leads to it, a spine its number in
/// its pod, a core its number among all. The hops of a place are the links a flow may take from it.
namespace trainyard::topologies {

class FatTreeWays {
 public:
  enum class Top : std::uint8_t { leaf, spine, core, none };
  enum Stage : std::uint8_t { nic, leaf_up, spine_up, core, spine_down, leaf_down, end };
  static constexpr std::size_t stages = 7;

  struct Place {
    Stage stage;
    int index;
  };
  struct Hop {
    LinkId link;
    Place next;
  };

  /// The lowest top the cabling offers, whatever has failed; `none` if it joins the two nowhere.
  FatTreeWays(const Fabric&, NicId from, NicId to);

  Top top() const { return top_; }
  /// Two NICs share leaves, but the way over these is broken: over a spine from one to the other.
  bool may_rise() const { return top_ == Top::leaf && is_dual_ && tree_->spines_per_pod > 0; }
  void rise() { top_ = Top::spine; }
  /// Also show, as the last hop of its leaf, the way down from a leaf that both share.
  void show_short_cuts() { shows_short_cuts_ = true; }

  static constexpr Place start{nic, 0};
  int hops(Place) const;
  Hop hop(Place, int i) const;
  /// Places of a stage; 0 above the top.
  int places(Stage) const;
  /// The port of `to` at the leaf where port `p` of `from` ends; -1: none.
  int port_below(int p) const { return shared_[std::size_t(p)]; }
  int from_ports() const { return from_ports_; }
  int to_ports() const { return to_ports_; }
  int from_leaf(int port) const { return from_leaf_[std::size_t(port)]; }
  int to_leaf(int port) const { return to_leaf_[std::size_t(port)]; }
  int from_pod() const { return from_pod_; }
  int to_pod() const { return to_pod_; }

 private:
  const Fabric* fabric_;
  const FatTreeShape* tree_;
  NicId from_, to_;
  Top top_ = Top::none;
  bool is_dual_;
  bool shows_short_cuts_ = false;
  int from_ports_, to_ports_;
  int from_pod_, to_pod_;
  std::array<int, 2> from_leaf_{}, to_leaf_{};
  std::array<int, 2> shared_{-1, -1};
};

}  // namespace trainyard::topologies
