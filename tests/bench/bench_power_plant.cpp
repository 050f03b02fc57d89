/// Changes of the load of all racks of a site of 512 racks with two feeds each, every device
/// healthy: two vectors in turn (known flows, nobody told; by name, or found by content), a new
/// vector each time (solved once, nobody told), and with every device told of every change.

#include <cmath>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/facility/power_layout.hpp"
#include "models/facility/power_plant.hpp"

namespace trainyard::models {
namespace {

using namespace literals;

PowerSpec site(int racks) {
  PowerSpec spec;
  const auto add = [&](const char* name, PowerKind kind, std::vector<std::string> from, int count) {
    PowerNodeSpec& node = spec.nodes[name];
    node.kind = kind;
    node.fed_by = std::move(from);
    node.count = count;
    return &node;
  };
  const double scale = racks / 512.0;
  for (const std::string k : {"a", "b"}) {
    add(("grid-" + k).c_str(), PowerKind::utility, {}, 1);
    add(("trafo-" + k).c_str(), PowerKind::transformer, {"grid-" + k}, 4)->apparent =
        VoltAmperes(8e6 * scale);
    add(("ups-" + k).c_str(), PowerKind::ups, {"trafo-" + k}, 16)->active = Watts(2e6 * scale);
    add(("pdu-" + k).c_str(), PowerKind::pdu, {"ups-" + k}, racks / 8)->active = 500_kW;
    RackFeedSpec& feed = spec.racks.feeds[k];
    feed.from = "pdu-" + k;
    feed.breaker = BreakerSpec{.rating = 100_A};
  }
  spec.loads["pumps"] = {.fed_by = {"trafo-a", "trafo-b"}, .constant = 500_kW};
  return spec;
}

struct Site {
  explicit Site(int racks) : layout(lay_out_power(site(racks), racks)) {
    plant = std::make_unique<PowerPlant>(engine, recorder, layout.nodes, PowerPolicySpec{},
                                         PowerPlant::Callbacks{});
    for (const double watts : {40e3, 15e3}) {
      loads.emplace_back();
      for (const std::size_t rack : layout.racks)
        loads.back().push_back({rack, Watts(watts), VoltAmperes(watts * 0.2)});
    }
  }
  void change(const std::vector<PowerPlant::RackLoad>& to, std::uint64_t name = 0) {
    engine.run_until(add(engine.now(), std::chrono::seconds(100)));
    plant->set_rack_loads(to, name);
  }
  PowerLayout layout;
  sim::Engine engine{sim::Seed{1}};
  sim::NullRecorder recorder;
  std::unique_ptr<PowerPlant> plant;
  std::vector<std::vector<PowerPlant::RackLoad>> loads;
};

void known(benchmark::State& state) {
  Site site(int(state.range(0)));
  std::size_t i = 0;
  for (auto _ : state) site.change(site.loads[++i % 2]);
}
BENCHMARK(known)->Arg(128)->Arg(512)->Arg(2048)->Unit(benchmark::kMicrosecond);

void known_by_name(benchmark::State& state) {
  Site site(int(state.range(0)));
  std::size_t i = 0;
  for (auto _ : state) {
    ++i;
    site.change(site.loads[i % 2], 1 + i % 2);
  }
}
BENCHMARK(known_by_name)->Arg(128)->Arg(512)->Arg(2048)->Unit(benchmark::kMicrosecond);

void one_rack_known(benchmark::State& state) {
  Site site(int(state.range(0)));
  site.change(site.loads[0]);
  std::size_t i = 0;
  for (auto _ : state) site.change({site.loads[++i % 2].front()});
}
BENCHMARK(one_rack_known)->Arg(512)->Unit(benchmark::kMicrosecond);

void never_seen(benchmark::State& state) {
  Site site(int(state.range(0)));
  double watts = 20e3;
  for (auto _ : state) {
    for (PowerPlant::RackLoad& load : site.loads[0]) load.active = Watts(watts);
    watts += 1e-3;
    site.change(site.loads[0]);
  }
}
BENCHMARK(never_seen)->Arg(128)->Arg(512)->Arg(2048)->Unit(benchmark::kMicrosecond);

void all_told(benchmark::State& state) {
  Site site(int(state.range(0)));
  site.plant->tell_all_devices();
  std::size_t i = 0;
  for (auto _ : state) site.change(site.loads[++i % 2]);
}
BENCHMARK(all_told)->Arg(128)->Arg(512)->Arg(2048)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainyard::models
