#include <benchmark/benchmark.h>

#include "topologies/bisection.hpp"
#include "topologies/fat_tree.hpp"
#include "topologies/measure.hpp"
#include "topologies/routing.hpp"

// Building and routing at the scale of 65,536 GPUs: 8,192 servers on 3 tiers of 64-port switches.
namespace trainyard::topologies {
namespace {

std::shared_ptr<const Fabric> fabric_of(int hosts) {
  const SwitchSpec box{.name = "64 ports", .ports = 64, .port_rate = BytesPerSecond(50e9)};
  FabricSpec spec{
      .tiers = 3, .hosts_per_leaf = 4, .leaf_switch = box, .spine_switch = box, .core_switch = box};
  return build_fat_tree(spec, {.hosts = hosts}).fabric;
}

void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(fabric_of(int(state.range(0))));
}
BENCHMARK(build)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);

void bisect(benchmark::State& state) {
  const auto f = fabric_of(int(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(bisection(*f));
}
BENCHMARK(bisect)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);

/// Argument: links that are down.
void hashed_paths(benchmark::State& state) {
  const auto f = fabric_of(8192);
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

void sprayed_loads(benchmark::State& state) {
  const auto f = fabric_of(8192);
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
