#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>

#include "models/training/step_model.hpp"
#include "scenarios/check.hpp"
#include "scenarios/world.hpp"

/// The step of 16,384 GPUs of the library scenario: from nothing, after a link failed, and after a
/// server was replaced.
namespace {

using namespace trainyard;
using topologies::Fabric;
using topologies::LinkId;
using topologies::LinkState;

const scenarios::Scenario& llama() {
  static const scenarios::Scenario scenario =
      scenarios::load_scenario(std::filesystem::path(TRAINYARD_LIBRARY) / "llama3-405b-16k.json",
                               {})
          .scenario;
  return scenario;
}

void step_from_nothing(benchmark::State& state) {
  const scenarios::Site site(llama());
  const models::JobSpec& job = llama().jobs.begin()->second;
  const models::Placement placement = scenarios::first_placement(llama(), job);
  for (auto _ : state) {
    models::StepModel model(job, llama().cluster.server, site.router);
    benchmark::DoNotOptimize(model.profile(placement).step);
  }
}
BENCHMARK(step_from_nothing)->Unit(benchmark::kMillisecond);

/// One uplink of a leaf of the job fails; the next time it is back and another one fails.
void step_after_a_link_failure(benchmark::State& state) {
  scenarios::Site site(llama());
  const models::JobSpec& job = llama().jobs.begin()->second;
  const models::Placement placement = scenarios::first_placement(llama(), job);
  models::StepModel model(job, llama().cluster.server, site.router);
  model.profile(placement);
  int leaf = 0;
  const auto set = [&](LinkId up, bool is_up) {
    site.router.change([&](LinkState& s) { s.set_cable_up(up, is_up); });
    const LinkId links[] = {up, Fabric::reverse(up)};
    model.links_changed(links);
  };
  for (auto _ : state) {
    const LinkId up = site.fabric->leaf_uplink(leaf, leaf % 16);
    set(up, false);
    benchmark::DoNotOptimize(model.profile(placement).step);
    state.PauseTiming();
    set(up, true);
    model.profile(placement);
    leaf = (leaf + 37) % 1024;
    state.ResumeTiming();
  }
}
BENCHMARK(step_after_a_link_failure)->Unit(benchmark::kMillisecond);

void step_after_a_replacement(benchmark::State& state) {
  const scenarios::Site site(llama());
  const models::JobSpec& job = llama().jobs.begin()->second;
  models::Placement placement = scenarios::first_placement(llama(), job);
  models::StepModel model(job, llama().cluster.server, site.router);
  model.profile(placement);
  std::size_t rank = 0, spare = placement.servers.size();
  for (auto _ : state) {
    placement.servers[rank] = topologies::HostId(spare);
    benchmark::DoNotOptimize(model.profile(placement).step);
    rank = (rank + 61) % placement.servers.size();
    spare = placement.servers.size() + (spare + 1) % 64;
  }
}
BENCHMARK(step_after_a_replacement)->Unit(benchmark::kMillisecond);

}  // namespace
