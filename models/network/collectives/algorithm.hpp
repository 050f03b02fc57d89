#pragma once

#include "sim/describe.hpp"

/// Names of the ways in which a collective can be done, and of the wire protocols of NCCL.
///
///     ring               every rank passes slices to the next
///     tree               double binary tree over nodes (each tree half of the bytes), chain inside
///     a
///                        node
///     halving-doubling   recursive halving, then doubling: log2(n) steps, power of two ranks
///     (others
///                        fold first)
///     direct             every rank to every other
///     hierarchical       reduce-scatter in the scale-up domain, one ring a rail, all-gather
///     sharp              reduction in the switches of the fabric (in-network), one stream up, one
///     down nvls               reduction in the scale-up switch (one domain) nvls-tree nvls in the
///     domain, double binary tree between domains
///
/// Page: docs/models/collectives.md.
namespace trainyard::models {

enum class CollectiveAlgorithm {
  ring,
  tree,
  halving_doubling,
  direct,
  hierarchical,
  sharp,
  nvls,
  nvls_tree
};

/// How data is signalled: whole chunks with a fence (simple), 4 B flag for each 4 B of data (LL), 8
/// B flag for each 120 B (LL128).
enum class Protocol { simple, ll, ll128 };

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::CollectiveAlgorithm> {
  using A = models::CollectiveAlgorithm;
  static constexpr auto all = names<A>({{A::ring, "ring"},
                                        {A::tree, "tree"},
                                        {A::halving_doubling, "halving-doubling"},
                                        {A::direct, "direct"},
                                        {A::hierarchical, "hierarchical"},
                                        {A::sharp, "sharp"},
                                        {A::nvls, "nvls"},
                                        {A::nvls_tree, "nvls-tree"}});
};
template <>
struct Names<models::Protocol> {
  static constexpr auto all = names<models::Protocol>({{models::Protocol::simple, "simple"},
                                                       {models::Protocol::ll, "ll"},
                                                       {models::Protocol::ll128, "ll128"}});
};
}  // namespace trainyard
