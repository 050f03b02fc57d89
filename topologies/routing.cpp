#include "topologies/routing.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "sim/check.hpp"

namespace trainyard::topologies {

namespace {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit moves every output bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t hash_flow(std::uint64_t seed, NicId from, NicId to, std::uint64_t label,
                        int queue_pair) {
  std::uint64_t h = mix(seed);
  h = mix(h ^ (std::uint64_t{from.index()} << 32 | to.index()));
  h = mix(h ^ label);
  return mix(h ^ static_cast<std::uint64_t>(queue_pair));
}

/// One of 0 … n-1 from a hash; the high half, so that n need not be a power of two.
int reduce(std::uint64_t hash, int n) {
  return static_cast<int>((hash >> 32) * static_cast<std::uint64_t>(n) >> 32);
}

/// The hop's choice among n. If that one does not work, again among those that do.
template <class Works>
std::optional<int> choose(std::uint64_t flow_hash, int hop, int n, Works works) {
  const std::uint64_t hash = mix(flow_hash + static_cast<std::uint64_t>(hop));
  const int first = reduce(hash, n);
  if (works(first)) return first;
  int working = 0;
  for (int i = 0; i < n; ++i) working += works(i) ? 1 : 0;
  if (working == 0) return {};
  int left = reduce(mix(hash), working);
  for (int i = 0; i < n; ++i)
    if (works(i) && left-- == 0) return i;
  check(false, "a hop that works is found again");
  return {};
}

}  // namespace

struct Router::Ends {
  LinkId up, down;         // the NICs' own links
  int from_leaf, to_leaf;  // among all leaves
  int from_pod, to_pod;
};

Router::Router(const Fabric& fabric, RoutingKind kind, std::uint64_t seed, int flows_per_pair)
    : fabric_(&fabric),
      shape_(&fabric.shape()),
      kind_(kind),
      seed_(seed),
      flows_per_pair_(flows_per_pair),
      state_(fabric) {
  check(flows_per_pair >= 1, "a connection has at least one flow", flows_per_pair);
}

Router::Ends Router::ends(NicId from, NicId to) const {
  const std::size_t nics = fabric_->nic_count() + fabric_->count(VertexKind::storage);
  check(from.index() < nics && to.index() < nics, "a route joins NICs of the fabric", from.index(),
        to.index());
  const auto leaf = [&](NicId n) {
    return static_cast<int>(fabric_->index_in_kind(fabric_->leaf_of(n)));
  };
  Ends e{fabric_->uplink(from), fabric_->downlink(to), leaf(from), leaf(to), 0, 0};
  e.from_pod = shape_->pod_of_leaf(e.from_leaf);
  e.to_pod = shape_->pod_of_leaf(e.to_leaf);
  return e;
}

// Next hops

int Router::spine_above(int leaf, int uplink) const {
  return shape_->pod_of_leaf(leaf) * shape_->spines_per_pod + uplink / shape_->leaf_bundle;
}

int Router::core_above(int spine, int uplink) const {
  const int group = spine % shape_->spines_per_pod % shape_->core_groups;
  return group * shape_->cores_per_group + uplink / shape_->core_bundle;
}

LinkId Router::spine_down(int spine, int leaf, int parallel) const {
  const int in_pod = spine % shape_->spines_per_pod;
  return Fabric::reverse(fabric_->leaf_uplink(leaf, in_pod * shape_->leaf_bundle + parallel));
}

int Router::spine_below(int core, const Ends& e, int choice) const {
  const int group = core / shape_->cores_per_group;
  const int in_pod = group + shape_->core_groups * (choice / shape_->core_bundle);
  return e.to_pod * shape_->spines_per_pod + in_pod;
}

LinkId Router::core_down(int core, const Ends& e, int choice) const {
  const int uplink =
      core % shape_->cores_per_group * shape_->core_bundle + choice % shape_->core_bundle;
  return Fabric::reverse(fabric_->spine_uplink(spine_below(core, e, choice), uplink));
}

bool Router::reaches_leaf(int spine, int leaf) const {
  for (int p = 0; p < shape_->leaf_bundle; ++p)
    if (is_up(spine_down(spine, leaf, p))) return true;
  return false;
}

bool Router::goes_down(int core, const Ends& e, int choice) const {
  return is_up(core_down(core, e, choice)) && reaches_leaf(spine_below(core, e, choice), e.to_leaf);
}

bool Router::goes_over_core(int spine, int uplink, const Ends& e) const {
  if (!is_up(fabric_->spine_uplink(spine, uplink))) return false;
  const int core = core_above(spine, uplink);
  const int choices = shape_->spines_per_group() * shape_->core_bundle;
  for (int c = 0; c < choices; ++c)
    if (goes_down(core, e, c)) return true;
  return false;
}

bool Router::goes_up(const Ends& e, int uplink) const {
  if (!is_up(fabric_->leaf_uplink(e.from_leaf, uplink))) return false;
  const int spine = spine_above(e.from_leaf, uplink);
  if (e.from_pod == e.to_pod) return reaches_leaf(spine, e.to_leaf);
  for (int u = 0; u < shape_->uplinks_per_spine; ++u)
    if (goes_over_core(spine, u, e)) return true;
  return false;
}

// One hashed path

bool Router::path(NicId from, NicId to, std::uint64_t label, std::vector<LinkId>& out,
                  int queue_pair) const {
  out.clear();
  if (from == to) return true;
  const Ends e = ends(from, to);
  if (!is_up(e.up) || !is_up(e.down)) return false;
  out.push_back(e.up);
  if (e.from_leaf != e.to_leaf) {
    const std::uint64_t hash = hash_flow(seed_, from, to, label, queue_pair);
    const bool all_up = state_.is_all_up();
    const auto first =
        choose(hash, 0, shape_->uplinks_per_leaf, [&](int u) { return all_up || goes_up(e, u); });
    if (!first) {
      out.clear();
      return false;
    }
    out.push_back(fabric_->leaf_uplink(e.from_leaf, *first));
    int spine = spine_above(e.from_leaf, *first);

    if (e.from_pod != e.to_pod) {
      // A leaf uplink that works promises that these two do.
      const auto second = choose(hash, 1, shape_->uplinks_per_spine,
                                 [&](int u) { return all_up || goes_over_core(spine, u, e); });
      check(second.has_value(), "a spine that was chosen has a way to a core");
      const int core = core_above(spine, *second);
      out.push_back(fabric_->spine_uplink(spine, *second));
      const auto third = choose(hash, 2, shape_->spines_per_group() * shape_->core_bundle,
                                [&](int c) { return all_up || goes_down(core, e, c); });
      check(third.has_value(), "a core that was chosen has a way down");
      out.push_back(core_down(core, e, *third));
      spine = spine_below(core, e, *third);
    }
    const auto last = choose(hash, 3, shape_->leaf_bundle, [&](int p) {
      return all_up || is_up(spine_down(spine, e.to_leaf, p));
    });
    check(last.has_value(), "a spine that was chosen has a way to the leaf");
    out.push_back(spine_down(spine, e.to_leaf, *last));
  }
  out.push_back(e.down);
  return true;
}

// Loads

bool Router::has_path(NicId from, NicId to) const {
  if (from == to || state_.is_all_up()) return true;
  const Ends e = ends(from, to);
  if (!is_up(e.up) || !is_up(e.down)) return false;
  if (e.from_leaf == e.to_leaf) return true;
  for (int u = 0; u < shape_->uplinks_per_leaf; ++u)
    if (goes_up(e, u)) return true;
  return false;
}

bool Router::visit_loads(NicId from, NicId to, std::uint64_t label, double flows, Visit visit,
                         void* context) const {
  if (from == to) return true;
  if (!has_path(from, to)) return false;
  if (kind_ == RoutingKind::spray) {
    const Ends e = ends(from, to);
    if (state_.is_all_up())
      spray(e, flows, visit, context);
    else
      spray_around_failures(e, flows, visit, context);
    return true;
  }
  std::vector<LinkId> links;
  links.reserve(6);
  for (int q = 0; q < flows_per_pair_; ++q) {
    check(path(from, to, label, links, q), "a pair that has a path has one for every queue pair");
    for (const LinkId l : links) visit(context, l, flows);
  }
  return true;
}

void Router::spray(const Ends& e, double flows, Visit visit, void* context) const {
  visit(context, e.up, flows);
  if (e.from_leaf != e.to_leaf) {
    // An intact tree is symmetric: each tier's links share evenly.
    const double per_leaf_link = flows / shape_->uplinks_per_leaf;
    for (int u = 0; u < shape_->uplinks_per_leaf; ++u) {
      visit(context, fabric_->leaf_uplink(e.from_leaf, u), per_leaf_link);
      visit(context, Fabric::reverse(fabric_->leaf_uplink(e.to_leaf, u)), per_leaf_link);
    }
    if (e.from_pod != e.to_pod) {
      const int spines = shape_->spines_per_pod;
      const double per_spine_link = flows / (double(spines) * shape_->uplinks_per_spine);
      for (int s = 0; s < spines; ++s)
        for (int u = 0; u < shape_->uplinks_per_spine; ++u) {
          visit(context, fabric_->spine_uplink(e.from_pod * spines + s, u), per_spine_link);
          visit(context, Fabric::reverse(fabric_->spine_uplink(e.to_pod * spines + s, u)),
                per_spine_link);
        }
    }
  }
  visit(context, e.down, flows);
}

void Router::spray_around_failures(const Ends& e, double flows, Visit visit, void* context) const {
  // Level by level: what arrives at a vertex is split evenly over the next hops that work.
  const auto split = [&](double share, int n, auto works, auto link, auto give) {
    if (share == 0.0) return;
    int working = 0;
    for (int i = 0; i < n; ++i) working += works(i) ? 1 : 0;
    check(working > 0, "a share is only sent where it can go on");
    for (int i = 0; i < n; ++i) {
      if (!works(i)) continue;
      visit(context, link(i), share / working);
      give(i, share / working);
    }
  };
  const int spines = shape_->spines_per_pod;
  visit(context, e.up, flows);
  if (e.from_leaf != e.to_leaf) {
    std::vector<double> at_spine(std::size_t(spines),
                                 0.0);  // first of the sender's pod, then the receiver's
    const auto in_pod = [&](int spine) { return std::size_t(spine % spines); };
    split(
        flows, shape_->uplinks_per_leaf, [&](int u) { return goes_up(e, u); },
        [&](int u) { return fabric_->leaf_uplink(e.from_leaf, u); },
        [&](int u, double w) { at_spine[in_pod(spine_above(e.from_leaf, u))] += w; });

    if (e.from_pod != e.to_pod) {
      std::vector<double> at_core(std::size_t(shape_->cores()), 0.0);
      for (int s = 0; s < spines; ++s) {
        const int spine = e.from_pod * spines + s;
        split(
            at_spine[std::size_t(s)], shape_->uplinks_per_spine,
            [&](int u) { return goes_over_core(spine, u, e); },
            [&](int u) { return fabric_->spine_uplink(spine, u); },
            [&](int u, double w) { at_core[std::size_t(core_above(spine, u))] += w; });
      }
      std::fill(at_spine.begin(), at_spine.end(), 0.0);
      for (int core = 0; core < shape_->cores(); ++core)
        split(
            at_core[std::size_t(core)], shape_->spines_per_group() * shape_->core_bundle,
            [&](int c) { return goes_down(core, e, c); },
            [&](int c) { return core_down(core, e, c); },
            [&](int c, double w) { at_spine[in_pod(spine_below(core, e, c))] += w; });
    }
    for (int s = 0; s < spines; ++s) {
      const int spine = e.to_pod * spines + s;
      split(
          at_spine[std::size_t(s)], shape_->leaf_bundle,
          [&](int p) { return is_up(spine_down(spine, e.to_leaf, p)); },
          [&](int p) { return spine_down(spine, e.to_leaf, p); }, [](int, double) {});
    }
  }
  visit(context, e.down, flows);
}

// Why there is none

std::vector<LinkId> Router::cut(NicId from, NicId to) const {
  if (has_path(from, to)) return {};
  const Ends e = ends(from, to);
  if (!is_up(e.up)) return {e.up};
  if (!is_up(e.down)) return {e.down};

  // Walk the usual routes from `from` as far as they work, noting the failed links met on the way …
  enum Level { first_spine, core, last_spine, leaf };
  struct Failed {
    LinkId link;
    Level level;  // of the vertex it would have led to, and which one there
    int head;
  };
  std::vector<Failed> failed;
  const int spines = shape_->spines_per_pod;
  const bool is_one_pod = e.from_pod == e.to_pod;
  const int ways_down = is_one_pod ? 0 : shape_->spines_per_group() * shape_->core_bundle;
  std::array<std::vector<char>, 4> reached{
      std::vector<char>(std::size_t(spines)), std::vector<char>(std::size_t(shape_->cores())),
      std::vector<char>(std::size_t(spines)), std::vector<char>(1)};
  const auto is_reached = [&](Level level, int i) -> char& {
    return reached[level][std::size_t(i)];
  };
  const auto walk = [&](LinkId l, Level level, int head) {
    if (is_up(l))
      is_reached(level, head) = 1;
    else
      failed.push_back({l, level, head});
  };
  for (int u = 0; u < shape_->uplinks_per_leaf; ++u)
    walk(fabric_->leaf_uplink(e.from_leaf, u), is_one_pod ? last_spine : first_spine,
         u / shape_->leaf_bundle);
  for (int s = 0; s < spines; ++s)
    for (int u = 0; is_reached(first_spine, s) && u < shape_->uplinks_per_spine; ++u) {
      const int spine = e.from_pod * spines + s;
      walk(fabric_->spine_uplink(spine, u), core, core_above(spine, u));
    }
  for (int c = 0; c < shape_->cores(); ++c)
    for (int way = 0; is_reached(core, c) && way < ways_down; ++way)
      walk(core_down(c, e, way), last_spine, spine_below(c, e, way) % spines);
  for (int s = 0; s < spines; ++s)
    for (int p = 0; is_reached(last_spine, s) && p < shape_->leaf_bundle; ++p)
      walk(spine_down(e.to_pod * spines + s, e.to_leaf, p), leaf, 0);
  check(!is_reached(leaf, 0), "a pair without a path is separated");

  // … and keep those that would lead on to `to` by ground not reached already: what only rejoins
  // ground that was reached is broken, but does not separate.
  const auto core_leads = [&](int c) {
    if (is_reached(core, c)) return false;
    for (int way = 0; way < ways_down; ++way)
      if (!is_reached(last_spine, spine_below(c, e, way) % spines)) return true;
    return false;
  };
  const auto leads = [&](const Failed& at) {
    switch (at.level) {
      case leaf:
        return true;
      case last_spine:
        return !is_reached(last_spine, at.head);
      case core:
        return core_leads(at.head);
      case first_spine:
        break;
    }
    if (is_reached(first_spine, at.head)) return false;
    for (int u = 0; u < shape_->uplinks_per_spine; ++u)
      if (core_leads(core_above(e.from_pod * spines + at.head, u))) return true;
    return false;
  };
  std::vector<LinkId> separating;
  for (const Failed& one : failed)
    if (leads(one)) separating.push_back(one.link);
  check(!separating.empty(), "a pair without a path is separated by failed links");
  return separating;
}

Duration Router::latency(const std::vector<LinkId>& path) const {
  Duration sum{};
  for (const LinkId l : path) sum += fabric_->link(l).latency;
  return sum;
}

}  // namespace trainyard::topologies
