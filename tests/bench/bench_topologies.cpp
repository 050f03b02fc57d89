#include <benchmark/benchmark.h>

#include <sstream>

#include "topologies/bisection.hpp"
#include "topologies/catalog.hpp"
#include "topologies/custom.hpp"
#include "topologies/distances.hpp"
#include "topologies/export.hpp"
#include "topologies/measure.hpp"
#include "topologies/routing.hpp"

// Building, measuring and routing at the scale of 65,536 NICs. `gpus` has 8,192 servers of 8 GPUs
// on 3 tiers of 64-port switches, `hosts` 65,536 servers of one.
namespace trainyard::topologies {
namespace {

const SwitchSpec box{.name = "64 ports", .ports = 64, .port_rate = BytesPerSecond(50e9)};

std::shared_ptr<const Fabric> gpus(int servers) {
  FabricSpec spec{
      .tiers = 3, .hosts_per_leaf = 4, .leaf_switch = box, .spine_switch = box, .core_switch = box};
  return build_fabric(spec, {.hosts = servers}).fabric;
}

std::shared_ptr<const Fabric> hosts() {
  FabricSpec spec{.tiers = 3,
                  .hosts_per_leaf = 32,
                  .leaf_switch = box,
                  .spine_switch = box,
                  .core_switch = box};
  return build_fabric(spec, {.hosts = 65536, .gpus = 1, .nics = 1}).fabric;
}

std::shared_ptr<const Fabric> dragonfly() {  // 129 groups: 16 * 32 * 128 = 66,048 at full size
  FabricSpec spec{.kind = FabricKind::dragonfly,
                  .nics_per_router = 16,
                  .routers_per_group = 32,
                  .global_links_per_router = 16,
                  .groups = 128,
                  .router_switch = box};
  return build_fabric(spec, {.hosts = 65536, .gpus = 1, .nics = 1}).fabric;
}

std::shared_ptr<const Fabric> torus(int side) {
  FabricSpec spec{
      .kind = FabricKind::torus, .router_switch = box, .dimensions = {side, side, side}};
  return build_fabric(spec, {.hosts = side * side * side, .gpus = 1, .nics = 1}).fabric;
}

void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(gpus(int(state.range(0))));
}
BENCHMARK(build)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);

template <class Make>
void build_of(benchmark::State& state, Make make) {
  for (auto _ : state) benchmark::DoNotOptimize(make());
}
BENCHMARK_CAPTURE(build_of, three_tiers_65536_hosts, hosts)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build_of, dragonfly_65536_hosts, dragonfly)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build_of, torus_16, [] { return torus(16); })->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(build_of, torus_40, [] { return torus(40); })->Unit(benchmark::kMillisecond);

template <class Make>
void measure_of(benchmark::State& state, Make make) {
  const auto f = make();
  for (auto _ : state) benchmark::DoNotOptimize(measure(*f));
}
BENCHMARK_CAPTURE(measure_of, three_tiers_65536_hosts, hosts)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure_of, dragonfly_65536_hosts, dragonfly)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure_of, torus_16, [] { return torus(16); })->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(measure_of, torus_40, [] { return torus(40); })->Unit(benchmark::kMillisecond);

template <class Make>
void bisect_of(benchmark::State& state, Make make) {
  const auto f = make();
  for (auto _ : state) benchmark::DoNotOptimize(bisection(*f));
}
BENCHMARK_CAPTURE(bisect_of, three_tiers_65536_hosts, hosts)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bisect_of, dragonfly_65536_hosts, dragonfly)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bisect_of, torus_16, [] { return torus(16); })->Unit(benchmark::kMillisecond);

template <class Make>
void diameter_of(benchmark::State& state, Make make) {
  const auto f = make();
  for (auto _ : state) benchmark::DoNotOptimize(diameter(*f));
}
BENCHMARK_CAPTURE(diameter_of, three_tiers_65536_hosts, hosts)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(diameter_of, dragonfly_65536_hosts, dragonfly)->Unit(benchmark::kMillisecond);

/// Argument: 0 GraphML, 1 DOT. 65,536 hosts, 393,216 links between 70,656 vertices that count.
void read_back(benchmark::State& state) {
  const auto f = hosts();
  const auto format = state.range(0) == 0 ? GraphFormat::graphml : GraphFormat::dot;
  std::ostringstream out;
  state.range(0) == 0 ? write_graphml(out, *f) : write_dot(out, *f);
  const std::string text = out.str();
  for (auto _ : state) {
    Problems problems;
    const GraphFile graph = parse_graph(text, "fabric", format, problems);
    benchmark::DoNotOptimize(
        build_custom({.kind = FabricKind::custom}, {.hosts = 65536, .gpus = 1, .nics = 1}, graph));
  }
  state.SetBytesProcessed(state.iterations() * std::int64_t(text.size()));
}
BENCHMARK(read_back)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// Argument: links that are down.
void hashed_paths(benchmark::State& state) {
  const auto f = gpus(8192);
  Router router(*f, RoutingKind::ecmp, 1, 1);
  for (int l = 0; l < state.range(0); ++l) router.set_up(f->leaf_uplink(l, 0), false);
  std::vector<LinkId> path;
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(router.path(NicId(i), NicId(65535 - i), 7, path));
    i = (i + 97) % 65536;
  }
}
BENCHMARK(hashed_paths)->Arg(0)->Arg(1)->Arg(100);

/// The same tree read from a file: routes found on the graph. Argument: destinations in turn.
void hashed_paths_on_a_graph(benchmark::State& state) {
  const auto tree = gpus(1024);
  std::ostringstream out;
  write_dot(out, *tree);
  Problems problems;
  const GraphFile graph = parse_graph(out.str(), "fabric", GraphFormat::dot, problems);
  const auto f = build_custom({.kind = FabricKind::custom}, {.hosts = 1024}, graph).fabric;
  const Router router(*f, RoutingKind::ecmp, 1, 1);
  std::vector<LinkId> path;
  std::size_t i = 0;
  const auto n = std::size_t(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(router.path(NicId(i), NicId(8191 - i % n), 7, path));
    i = (i + 97) % 4096;
  }
}
BENCHMARK(hashed_paths_on_a_graph)->Arg(8)->Arg(4096);

void sprayed_loads(benchmark::State& state) {
  const auto f = gpus(8192);
  Router router(*f, RoutingKind::spray, 1, 1);
  for (int l = 0; l < state.range(0); ++l) router.set_up(f->leaf_uplink(l, 0), false);
  std::vector<double> load(f->links().size(), 0.0);
  std::size_t i = 0;
  for (auto _ : state) {
    router.for_each_load(NicId(i), NicId(65535 - i), 7, 1.0,
                         [&](LinkId l, double w) { load[l.index()] += w; });
    i = (i + 97) % 65536;
  }
}
BENCHMARK(sprayed_loads)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainyard::topologies
