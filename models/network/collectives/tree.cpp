#include "models/network/collectives/tree.hpp"

#include <algorithm>
#include <vector>

#include "models/network/collectives/grouping.hpp"
#include "models/network/collectives/tree_walk.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

namespace {

/// In a tree over 0 … n-1 built on the lowest set bit: odd ranks are leaves, a rank whose lowest
/// bit is b hangs below the multiple of 2b beside it, 0 is the root with one child.
std::optional<std::size_t> first_parent(std::size_t rank, std::size_t n) {
  if (rank == 0) return std::nullopt;
  const std::size_t bit = rank & (~rank + 1);
  const std::size_t up = (rank ^ bit) | (bit << 1);
  return up < n ? up : rank ^ bit;
}

/// Adds one tree of one channel over all nodes.
class Tree {
 public:
  Tree(const std::vector<NodeMembers>& nodes, std::size_t channel, int number,
       const PathSource& paths, const StreamOptions& options)
      : nodes_(nodes), channel_(channel), number_(number), paths_(paths), options_(options) {}

  std::vector<Load> all_reduce() {
    add_tree_edges(nodes_, channel_, number_, paths_, options_, loads_);
    for (const NodeMembers& node : nodes_)
      for (std::size_t i = 0; i + 1 < node.size(); ++i) {
        scale_up(at(node, i + 1), at(node, i));  // up: towards the adapter of entry
        scale_up(at(node, i), at(node, i + 1));
      }
    return loads_.take();
  }

  std::vector<Load> broadcast() {
    for (std::size_t v = 1; v < nodes_.size(); ++v) edge(broadcast_parent(v), v);
    for (std::size_t v = 0; v < nodes_.size(); ++v)
      for (std::size_t i = 0; i + 1 < nodes_[v].size(); ++i)
        v == 0 ? scale_up(nodes_[0][i], nodes_[0][i + 1])  // from the root, whatever the channel
               : scale_up(at(nodes_[v], i), at(nodes_[v], i + 1));
    return loads_.take();
  }

 private:
  const Member& at(const NodeMembers& node, std::size_t i) const {
    return node[(channel_ + i) % node.size()];
  }
  /// The first node has all the bytes: it feeds the root of the second tree and receives nothing.
  /// Where it would be an inner node of that tree (n odd) its only child moves up.
  std::size_t broadcast_parent(std::size_t v) const {
    const std::size_t n = nodes_.size();
    const std::optional<std::size_t> up = tree_parent(v, n, number_);
    if (!up) return 0;
    return number_ == 1 && *up == 0 ? tree_parent(0, n, 1).value() : *up;
  }
  void edge(std::size_t from, std::size_t to) {
    add_tree_edge(nodes_, from, to, channel_, number_, paths_, options_, loads_);
  }
  void scale_up(const Member& from, const Member& to) {
    paths_.add_scale_up(from.gpu, to.gpu, options_.queue_pairs, loads_);
  }

  const std::vector<NodeMembers>& nodes_;
  std::size_t channel_;
  int number_;
  const PathSource& paths_;
  const StreamOptions& options_;
  LoadAccumulator loads_;
};

}  // namespace

std::optional<std::size_t> tree_parent(std::size_t rank, std::size_t n, int tree) {
  if (tree == 0) return first_parent(rank, n);
  // The second is the mirror image of the first, or the first moved on by one if n is odd: either
  // way its leaves are inner ranks of the first.
  if (n % 2 == 0) {
    const auto up = first_parent(n - 1 - rank, n);
    return up ? std::optional(n - 1 - *up) : std::nullopt;
  }
  const auto up = first_parent((rank + n - 1) % n, n);
  return up ? std::optional((*up + 1) % n) : std::nullopt;
}

std::size_t tree_depth(std::size_t n) {
  std::size_t deepest = 0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    std::size_t depth = 0;
    for (auto up = first_parent(rank, n); up; up = first_parent(*up, n)) ++depth;
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

void add_tree_edge(std::span<const NodeMembers> nodes, std::size_t from, std::size_t to,
                   std::size_t channel, int tree, const PathSource& paths,
                   const StreamOptions& options, LoadAccumulator& loads) {
  const Member& a = nodes[from][channel % nodes[from].size()];
  const Member& b = nodes[to][channel % nodes[to].size()];
  for (int q = 0; q < options.queue_pairs; ++q) {
    const std::uint64_t connection =
        connection_label(options.label, from, to, static_cast<std::uint64_t>(q));
    paths.add_path(a.nic, b.nic,
                   connection_label(connection, channel, static_cast<std::uint64_t>(tree), 0), 1,
                   loads);
  }
}

void add_tree_edges(std::span<const NodeMembers> nodes, std::size_t channel, int tree,
                    const PathSource& paths, const StreamOptions& options, LoadAccumulator& loads) {
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    const std::optional<std::size_t> up = tree_parent(v, nodes.size(), tree);
    if (!up) continue;
    add_tree_edge(nodes, v, *up, channel, tree, paths, options, loads);
    add_tree_edge(nodes, *up, v, channel, tree, paths, options, loads);
  }
}

void set_tree_latency(CollectivePlan& plan, std::size_t nodes, std::size_t chain, bool up_and_down,
                      const StreamOptions& options) {
  const double ways = up_and_down ? 2 : 1;
  const auto depth = static_cast<double>(tree_depth(nodes));
  const auto inside = static_cast<double>(chain);
  const MessageCosts& costs = options.costs;
  LatencyTerms& t = plan.latency;
  t.base_s = costs.base_s;
  t.form = LatencyForm::additive;  // once: behind the first chunk the tree stays full
  t.steps = ways * (depth + inside);
  if (t.steps == 0) return;
  t.alpha_s = ways * (depth * costs.nic_s + inside * costs.scale_up_s) / t.steps;
  // While the tree fills an edge has its adapter alone; later it shares it with the other edges of
  // the pair of trees, and the rate of a flow is C/4. Links inside a node are too fast to count
  // beside adapters.
  const double edges =
      up_and_down && nodes > 1 ? std::min(2.0 * ways, static_cast<double>(nodes)) : 2 * ways;
  t.fill_chunks = ways * (nodes > 1 ? depth : inside) / edges;
  t.chunk_bytes = costs.slice_bytes / options.queue_pairs;
}

CollectivePlan plan_tree(CollectiveKind kind, double bytes, std::span<const Member> group,
                         const PathSource& paths, const StreamOptions& options) {
  check(kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast,
        "trees do all-reduce and broadcast");
  check(options.channels_per_nic > 0 && options.queue_pairs > 0,
        "a tree has channels and queue pairs");
  CollectivePlan plan{kind, bytes, group.size(), {}, {}};
  if (group.size() < 2) return plan;

  const std::vector<NodeMembers> nodes = by_node(group);
  const std::size_t k = least_members(nodes);
  const std::size_t channels = k * static_cast<std::size_t>(options.channels_per_nic);
  const double tree_bytes = bytes / static_cast<double>(2 * channels);
  for (std::size_t c = 0; c < channels; ++c) {
    for (const int number : {0, 1}) {
      Tree tree(nodes, c, number, paths, options);
      plan.streams.push_back(
          {kind == CollectiveKind::all_reduce ? tree.all_reduce() : tree.broadcast(),
           tree_bytes / options.queue_pairs});
    }
  }
  std::size_t longest = 0;
  for (const NodeMembers& node : nodes) longest = std::max(longest, node.size());
  set_tree_latency(plan, nodes.size(), longest - 1, kind == CollectiveKind::all_reduce, options);
  if (options.merge_channels) plan.streams = {merged(plan.streams)};
  return plan;
}

}  // namespace trainyard::models
