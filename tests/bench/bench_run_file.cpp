#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>

#include "analysis/run_reader.hpp"
#include "analysis/run_writer.hpp"

/// Rows of log/events per second, appended and read back; a run of a year on 16,384 GPUs has about
/// 1e5.
namespace {

using namespace trainyard;
using namespace trainyard::analysis;

std::string bench_file() {
  return (std::filesystem::temp_directory_path() / "trainyard-bench-run.h5").string();
}

void write_events(std::int64_t events) {
  RunWriter writer(bench_file(), RunInfo{});
  const auto kind = writer.kind("gpu failed", "");
  const auto power = writer.series("power", "W", "");
  writer.begin();
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < events; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const Time now(Duration(i * 1'000'003));
    const auto subject = writer.subject("node-" + std::to_string(state >> 53));
    writer.event(now, sim::Phase::failure, kind, subject, {}, static_cast<double>(state >> 40));
    if (i % 4 == 0) writer.sample(power, now, static_cast<double>(state >> 48));
  }
  writer.close({});
}

void run_file_write(benchmark::State& state) {
  for (auto _ : state) write_events(state.range(0));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["bytes_per_event"] =
      static_cast<double>(std::filesystem::file_size(bench_file())) /
      static_cast<double>(state.range(0));
  std::filesystem::remove(bench_file());
}
BENCHMARK(run_file_write)->Arg(1'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void run_file_read(benchmark::State& state) {
  write_events(state.range(0));
  for (auto _ : state) {
    const RunReader run(bench_file());
    benchmark::DoNotOptimize(run.events().size());
    benchmark::DoNotOptimize(run.series("power").value.size());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  std::filesystem::remove(bench_file());
}
BENCHMARK(run_file_read)->Arg(1'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
