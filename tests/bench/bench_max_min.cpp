/// The max-min solver on a two-level tree: the cost of one arrival or departure, incremental
/// against a full solve of everything, at 1,000 and 10,000 flows; flows one by one ("uncoupled")
/// and rings of 16 as one variable each ("coupled"). Both roads run in one program, so that their
/// ratio means something on a shared machine.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/network/max_min.hpp"

namespace trainyard::models {
namespace {

/// Leaves of 32 hosts, 16 spines (2:1), paths hashed. A variable is a ring of `members` hosts, or
/// with two members one flow.
class Traffic {
 public:
  Traffic(std::size_t hosts, std::size_t members, std::size_t variables)
      : hosts_(hosts), members_(members) {
    for (std::size_t i = 0; i < 2 * hosts + 2 * hosts / 32 * spines; ++i) net.add_link(50e9);
    for (std::size_t i = 0; i < variables; ++i) arrive();
    net.solve();
  }
  void arrive() {
    std::vector<Load> loads;
    std::size_t first = random_() % hosts_, from = first;
    const std::size_t edges = members_ == 2 ? 1 : members_;
    for (std::size_t i = 0; i < edges; ++i) {
      std::size_t to = i + 1 == edges && edges > 1 ? first : random_() % hosts_;
      if (to == from) to = (to + 1) % hosts_;
      loads.push_back({LinkIndex(from), 1});
      loads.push_back({LinkIndex(hosts_ + to), 1});
      if (from / 32 != to / 32) {
        const std::size_t spine = random_() % spines, leaves = hosts_ / 32;
        loads.push_back({LinkIndex(2 * hosts_ + from / 32 * spines + spine), 1});
        loads.push_back({LinkIndex(2 * hosts_ + leaves * spines + to / 32 * spines + spine), 1});
      }
      from = to;
    }
    vars.push_back(net.add(loads));
  }
  void leave() {
    std::swap(vars[random_() % vars.size()], vars.back());
    net.remove(vars.back());
    vars.pop_back();
  }

  static constexpr std::size_t spines = 16;
  MaxMin net;
  std::vector<VarIndex> vars;

 private:
  std::mt19937_64 random_{5};
  std::size_t hosts_, members_;
};

/// Arguments: flows (edges), members of a ring (2: flows one by one).
Traffic make(const benchmark::State& state) {
  const auto flows = static_cast<std::size_t>(state.range(0)),
             members = static_cast<std::size_t>(state.range(1));
  return Traffic(2 * flows, members, members == 2 ? flows : flows / members);
}

void incremental(benchmark::State& state) {
  Traffic traffic = make(state);
  const MaxMin::Counters before = traffic.net.counters();
  bool is_arrival = false;
  for (auto _ : state) {
    (is_arrival = !is_arrival) ? traffic.leave() : traffic.arrive();
    benchmark::DoNotOptimize(traffic.net.solve().size());
  }
  const MaxMin::Counters& after = traffic.net.counters();
  const auto changed = static_cast<double>(after.changed - before.changed);
  state.counters["changed"] = changed / static_cast<double>(state.iterations());
  state.counters["touched/changed"] = static_cast<double>(after.touched - before.touched) / changed;
  state.counters["fallbacks"] = static_cast<double>(after.fallbacks - before.fallbacks);
}

void full(benchmark::State& state) {
  Traffic traffic = make(state);
  bool is_arrival = false;
  for (auto _ : state) {
    (is_arrival = !is_arrival) ? traffic.leave() : traffic.arrive();
    benchmark::DoNotOptimize(traffic.net.solve_from_scratch().size());
  }
}

void build_and_first_solve(benchmark::State& state) {
  for (auto _ : state) {
    Traffic traffic = make(state);
    benchmark::DoNotOptimize(traffic.net.rate(traffic.vars[0]));
  }
}

BENCHMARK(incremental)->ArgNames({"flows", "members"})->ArgsProduct({{1000, 10000}, {2, 16}});
BENCHMARK(full)->ArgNames({"flows", "members"})->ArgsProduct({{1000, 10000}, {2, 16}});
BENCHMARK(build_and_first_solve)
    ->ArgNames({"flows", "members"})
    ->ArgsProduct({{1000, 10000}, {2, 16}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard::models
