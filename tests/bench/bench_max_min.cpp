/// The max-min solver. First on a two-level tree: the cost of one arrival or departure, incremental
/// against a full solve of everything, at 1,000 and 10,000 flows; flows one by one ("uncoupled")
/// and rings of 16 as one variable each ("coupled"). Both roads run in one program, so that their
/// ratio means something on a shared machine. Then rings over 16,384 GPUs, one event at a time.

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
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

// ---- 16,384 GPUs

/// 2,048 servers of 8 rails; a unit of 32 servers has one leaf switch a rail, a pod of 8 units 32
/// spines, each with 64 cores above: 98,304 links, one a direction, all of 50 GB/s. A variable is a
/// ring over one rail of some servers; its edges are hashed over spines and cores.
class RingsOverRails {
 public:
  RingsOverRails(std::size_t rings, std::size_t least, std::size_t most, bool half_contiguous)
      : least_(least), most_(most), half_contiguous_(half_contiguous) {
    net.reserve(links, rings + 1, 0);
    for (std::size_t l = 0; l < links; ++l) net.add_link(50e9);
    for (std::size_t i = 0; i < rings; ++i) arrive();
    net.solve();
  }

  void arrive() {
    const double u = static_cast<double>(random_() >> 11) * 0x1p-53;
    const auto members = static_cast<std::size_t>(
        static_cast<double>(least_) *
        std::pow(static_cast<double>(most_ + 1) / static_cast<double>(least_), u));
    const std::size_t rail = random_() % rails;
    std::vector<std::size_t> ring(members);
    if (half_contiguous_ && random_() % 2 == 0) {
      std::iota(ring.begin(), ring.end(), random_() % (servers - members));
    } else {
      for (std::size_t& server : ring) server = random_() % servers;
      std::sort(ring.begin(), ring.end());
      ring.erase(std::unique(ring.begin(), ring.end()), ring.end());
      std::shuffle(ring.begin(), ring.end(), random_);
    }
    std::vector<Load> loads;
    for (std::size_t i = 0; i < ring.size(); ++i)
      add_path(ring[i], ring[(i + 1) % ring.size()], rail, loads);
    nonzeros.push_back(loads.size());
    vars.push_back(net.add(loads));
  }
  void leave() {
    const std::size_t i = random_() % vars.size();
    net.remove(vars[i]);
    std::swap(vars[i], vars.back());
    std::swap(nonzeros[i], nonzeros.back());
    vars.pop_back();
    nonzeros.pop_back();
  }
  /// A link that somebody uses.
  LinkIndex some_link() {
    for (;;)
      if (const LinkIndex link(random_() % links); net.weight(link) > 0) return link;
  }

  static constexpr std::size_t rails = 8, servers = 2048, units = 64, pods = 8, spines = 32,
                               cores = 64;
  static constexpr std::size_t nics = servers * rails, leaf_ups = units * rails * spines,
                               core_ups = pods * spines * cores;
  static constexpr std::size_t links = 2 * (nics + leaf_ups + core_ups);
  MaxMin net;
  std::vector<VarIndex> vars;
  std::vector<std::size_t> nonzeros;

 private:
  void add_path(std::size_t from, std::size_t to, std::size_t rail, std::vector<Load>& loads) {
    const auto add = [&](std::size_t link) { loads.push_back({LinkIndex(link), 1.0}); };
    const std::size_t down = links / 2, unit_a = from / 32, unit_b = to / 32;
    add(from * rails + rail);
    add(down + to * rails + rail);
    if (unit_a == unit_b) return;
    const std::size_t spine = random_() % spines, core = random_() % cores;
    add(nics + (unit_a * rails + rail) * spines + spine);
    add(down + nics + (unit_b * rails + rail) * spines + spine);
    if (unit_a / 8 == unit_b / 8) return;
    add(nics + leaf_ups + (unit_a / 8 * spines + spine) * cores + core);
    add(down + nics + leaf_ups + (unit_b / 8 * spines + spine) * cores + core);
  }

  std::mt19937_64 random_{16};
  std::size_t least_, most_;
  bool half_contiguous_;
};

/// Processor times of one kind of event, in microseconds: what else runs on the machine is not
/// counted.
class Times {
 public:
  template <class F>
  void take(F&& f) {
    const double start_us = now_us();
    f();
    us_.push_back(now_us() - start_us);
  }
  double quantile(double q) {
    std::sort(us_.begin(), us_.end());
    return us_[static_cast<std::size_t>(q * static_cast<double>(us_.size() - 1))];
  }
  void report(benchmark::State& state, const std::string& name) {
    state.counters[name + "_p50_us"] = quantile(0.5);
    state.counters[name + "_p99_us"] = quantile(0.99);
  }

 private:
  static double now_us() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
  }

  std::vector<double> us_;
};

/// Arguments: rings, least and most members (log-uniform), half of them on neighbouring servers.
void rings_over_16384_gpus(benchmark::State& state) {
  const auto argument = [&](std::size_t i) { return static_cast<std::size_t>(state.range(i)); };
  RingsOverRails rings(argument(0), argument(1), argument(2), state.range(3) != 0);
  MaxMin& net = rings.net;
  Times arrival, departure, failure, repair, full;
  for (int i = 0; i < 50; ++i) {  // the first events find the links that can bind
    rings.leave();
    rings.arrive();
    net.solve();
  }
  const MaxMin::Counters before = net.counters();
  for (auto _ : state) {
    rings.arrive();
    arrival.take([&] { net.solve(); });
    rings.leave();
    departure.take([&] { net.solve(); });
    const LinkIndex link = rings.some_link();
    net.set_capacity(link, 0);
    failure.take([&] { net.solve(); });
    net.set_capacity(link, 50e9);
    repair.take([&] { net.solve(); });
  }
  const MaxMin::Counters& after = net.counters();
  state.counters["touched/changed"] = static_cast<double>(after.touched - before.touched) /
                                      static_cast<double>(after.changed - before.changed);
  state.counters["changed"] = static_cast<double>(after.changed - before.changed) /
                              (4.0 * static_cast<double>(state.iterations()));
  state.counters["fallbacks"] = static_cast<double>(after.fallbacks - before.fallbacks);
  for (int i = 0; i < 30; ++i) full.take([&] { net.solve_from_scratch(); });
  arrival.report(state, "arrival");
  departure.report(state, "departure");
  failure.report(state, "failure");
  repair.report(state, "repair");
  state.counters["full_p50_us"] = full.quantile(0.5);
  state.counters["nonzeros"] = static_cast<double>(
      std::accumulate(rings.nonzeros.begin(), rings.nonzeros.end(), std::size_t{0}));
}

/// A fresh solver for every round, as a step model makes them: thousands of variables of about a
/// hundred links each, then one solve.
void build_rings_and_solve_once(benchmark::State& state) {
  for (auto _ : state) {
    RingsOverRails rings(static_cast<std::size_t>(state.range(0)), 16, 16, false);
    benchmark::DoNotOptimize(rings.net.rate(rings.vars[0]));
  }
}

BENCHMARK(rings_over_16384_gpus)
    ->ArgNames({"rings", "least", "most", "half_contiguous"})
    ->Args({128, 8, 128, 1})
    ->Args({128, 128, 128, 0})
    ->Args({512, 8, 128, 1})
    ->Args({768, 8, 128, 1})
    ->Args({1024, 8, 128, 1})
    ->Args({2048, 8, 64, 0})
    ->Iterations(300);
BENCHMARK(build_rings_and_solve_once)->ArgName("rings")->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK(incremental)->ArgNames({"flows", "members"})->ArgsProduct({{1000, 10000}, {2, 16}});
BENCHMARK(full)->ArgNames({"flows", "members"})->ArgsProduct({{1000, 10000}, {2, 16}});
BENCHMARK(build_and_first_solve)
    ->ArgNames({"flows", "members"})
    ->ArgsProduct({{1000, 10000}, {2, 16}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard::models
