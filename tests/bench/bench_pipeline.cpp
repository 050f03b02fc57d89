#include <benchmark/benchmark.h>

#include "models/training/memory.hpp"
#include "models/training/pipeline.hpp"
#include "tests/support/training_fixtures.hpp"

namespace trainyard::models {
namespace {

/// One step of one replica; arguments: stages, chunks, micro-batches.
void play(benchmark::State& state) {
  const PipelineInput in = PipelineInput::equal(int(state.range(0)), int(state.range(1)),
                                                int(state.range(2)), 1.0, 2.0, 0.01);
  for (auto _ : state) benchmark::DoNotOptimize(play_pipeline(in).makespan_s);
  state.SetItemsProcessed(state.iterations() * 2 * state.range(0) * state.range(1) *
                          state.range(2));
}
BENCHMARK(play)->Args({16, 8, 16})->Args({16, 8, 64})->Args({8, 1, 64})->Args({64, 2, 256});

/// Arguments: stages, micro-batches.
void play_zero_bubble(benchmark::State& state) {
  PipelineInput in =
      PipelineInput::equal(int(state.range(0)), 1, int(state.range(1)), 1.0, 2.0, 0.01);
  in.schedule = Schedule::zero_bubble;
  in.weight_gradient_s.assign(std::size_t(state.range(0)), 1.0);
  for (auto _ : state) benchmark::DoNotOptimize(play_pipeline(in).makespan_s);
  state.SetItemsProcessed(state.iterations() * 3 * state.range(0) * state.range(1));
}
BENCHMARK(play_zero_bubble)->Args({8, 64})->Args({16, 128});

void refuse_llama3_405b(benchmark::State& state) {
  JobSpec job = fixtures::llama3_405b_16k();
  job.parallel.sharding = Sharding::none;
  const GpuSpec gpu = fixtures::h100();
  for (auto _ : state) benchmark::DoNotOptimize(check_memory(job, gpu, 8).size());
}
BENCHMARK(refuse_llama3_405b);

}  // namespace
}  // namespace trainyard::models
