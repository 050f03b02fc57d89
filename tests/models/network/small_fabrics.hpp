#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "models/network/collectives/plan.hpp"

/// Fabrics made by hand for the tests of collectives: links are numbered by formulas one can check.
namespace trainyard::models {

/// Leaves and spines; one GPU and one adapter a host, `hosts` of them a leaf. Paths between leaves
/// are hashed by label, or sprayed over all spines.
class LeafSpine final : public PathSource {
 public:
  LeafSpine(std::size_t leaves, std::size_t hosts, std::size_t spines, bool is_sprayed,
            double nic_Bps = 50e9)
      : capacities(2 * leaves * hosts + 2 * leaves * spines, nic_Bps),
        leaves_(leaves),
        hosts_(hosts),
        spines_(spines),
        is_sprayed_(is_sprayed) {}

  void add_path(std::size_t from, std::size_t to, std::uint64_t label, double flows,
                LoadAccumulator& loads) const override {
    loads.add(nic_out(from), flows);
    loads.add(nic_in(to), flows);
    const std::size_t a = from / hosts_, b = to / hosts_;
    if (a == b) return;
    const std::size_t hashed = connection_label(label, from, to, 0) % spines_;
    for (std::size_t s = 0; s < spines_; ++s) {
      if (!is_sprayed_ && s != hashed) continue;
      const double share = is_sprayed_ ? flows / static_cast<double>(spines_) : flows;
      loads.add(up(a, s), share);
      loads.add(down(b, s), share);
    }
  }
  /// Up to one spine, by label, and down again; just the leaf if all are below one.
  bool add_reduction_tree(std::span<const std::size_t> nics, std::uint64_t label, double weight,
                          LoadAccumulator& loads) const override {
    if (!can_reduce) return false;
    std::set<std::size_t> leaves;
    for (const std::size_t nic : nics) {
      loads.add(nic_out(nic), weight);
      loads.add(nic_in(nic), weight);
      leaves.insert(nic / hosts_);
    }
    const std::size_t spine = connection_label(label, 0, 0, 0) % spines_;
    for (const std::size_t leaf : leaves) {
      if (leaves.size() == 1) break;
      loads.add(up(leaf, spine), weight);
      loads.add(down(leaf, spine), weight);
    }
    return true;
  }
  LinkIndex nic_out(std::size_t host) const { return LinkIndex(host); }
  LinkIndex nic_in(std::size_t host) const { return LinkIndex(leaves_ * hosts_ + host); }
  LinkIndex up(std::size_t leaf, std::size_t spine) const {
    return LinkIndex(2 * leaves_ * hosts_ + leaf * spines_ + spine);
  }
  LinkIndex down(std::size_t leaf, std::size_t spine) const {
    return LinkIndex(2 * leaves_ * hosts_ + leaves_ * spines_ + leaf * spines_ + spine);
  }
  std::vector<Member> hosts_in(const std::vector<std::size_t>& order) const {
    std::vector<Member> group;
    for (const std::size_t h : order) group.push_back({h, h, h});
    return group;
  }

  std::vector<double> capacities;
  bool can_reduce = true;

 private:
  std::size_t leaves_, hosts_, spines_;
  bool is_sprayed_;
};

/// Nodes of g GPUs with an adapter each; adapter j of every node is on the leaf of rail j. Between
/// rails one wide link out of and into each rail.
class Rails final : public PathSource {
 public:
  Rails(std::size_t nodes, std::size_t g, double scale_up_Bps, double nic_Bps = 50e9)
      : nodes_(nodes), g_(g) {
    capacities.assign(2 * nodes * g, nic_Bps);
    capacities.resize(4 * nodes * g, scale_up_Bps);
    capacities.resize(4 * nodes * g + 2 * g, 1e15);
  }
  void add_path(std::size_t from, std::size_t to, std::uint64_t, double flows,
                LoadAccumulator& loads) const override {
    loads.add(nic_out(from), flows);
    loads.add(nic_in(to), flows);
    if (from % g_ == to % g_) return;
    loads.add(LinkIndex(4 * nodes_ * g_ + from % g_), flows);
    loads.add(LinkIndex(4 * nodes_ * g_ + g_ + to % g_), flows);
  }
  void add_scale_up(std::size_t from, std::size_t to, double flows,
                    LoadAccumulator& loads) const override {
    loads.add(gpu_out(from), flows);
    loads.add(gpu_in(to), flows);
  }
  /// Over one switch a rail.
  bool add_reduction_tree(std::span<const std::size_t> nics, std::uint64_t, double weight,
                          LoadAccumulator& loads) const override {
    for (const std::size_t nic : nics) {
      if (nic % g_ != nics.front() % g_) return false;
      loads.add(nic_out(nic), weight);
      loads.add(nic_in(nic), weight);
    }
    return true;
  }
  LinkIndex nic_out(std::size_t nic) const { return LinkIndex(nic); }
  LinkIndex nic_in(std::size_t nic) const { return LinkIndex(nodes_ * g_ + nic); }
  LinkIndex gpu_out(std::size_t gpu) const { return LinkIndex(2 * nodes_ * g_ + gpu); }
  LinkIndex gpu_in(std::size_t gpu) const { return LinkIndex(3 * nodes_ * g_ + gpu); }
  /// The first `k` GPUs of each node.
  std::vector<Member> group(std::size_t k) const {
    std::vector<Member> members;
    for (std::size_t v = 0; v < nodes_; ++v)
      for (std::size_t j = 0; j < k; ++j) members.push_back({v * g_ + j, v * g_ + j, v});
    return members;
  }

  std::vector<double> capacities;

 private:
  std::size_t nodes_, g_;
};

}  // namespace trainyard::models
