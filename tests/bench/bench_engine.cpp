// The hold model: N things are pending; each, when it happens, schedules itself again after a
// random time. Events per second, for the three ways to wait. Figures belong in the changelog,
// never in a pass/fail: the machine is shared.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "sim/engine.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

namespace trainyard::sim {
namespace {

/// Exponential waiting times with a mean of a millisecond, drawn beforehand: the benchmark measures
/// the queue and not the logarithm.
class Waits {
 public:
  Waits() {
    Stream stream(Seed{1}, "bench");
    for (Duration& d : times_) d = Duration(1 + std::int64_t(stream.exponential(1e6)));
  }
  Duration next() { return times_[at_++ % times_.size()]; }

 private:
  std::array<Duration, 16384> times_;
  std::size_t at_ = 0;
};

void run(benchmark::State& state, Engine& engine) {
  constexpr std::uint64_t batch = 10'000;
  for (std::uint64_t i = 0; i < 10 * batch; ++i) engine.step();  // warm-up
  const std::uint64_t before = engine.events_processed();
  const double mean_events_per_ns = double(state.range(0)) / 1e6;
  const Duration span(1 + std::int64_t(double(batch) / mean_events_per_ns));
  for (auto _ : state) engine.run_until(engine.now() + span);
  state.SetItemsProcessed(std::int64_t(engine.events_processed() - before));
}

void callbacks(benchmark::State& state) {
  Engine engine(Seed{1});
  Waits waits;
  struct Again {
    Engine& engine;
    Waits& waits;
    void operator()() const { engine.after(waits.next(), Phase::completion, *this); }
  };
  for (std::int64_t i = 0; i < state.range(0); ++i)
    engine.after(waits.next(), Phase::completion, Again{engine, waits});
  run(state, engine);
}

void timers(benchmark::State& state) {
  Engine engine(Seed{1});
  Waits waits;
  std::vector<std::unique_ptr<Timer>> all;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    all.push_back(nullptr);
    auto rearm = [&waits, &all, i] { all[std::size_t(i)]->arm(waits.next()); };
    all.back() = std::make_unique<Timer>(engine, Phase::completion, rearm);
    all.back()->arm(waits.next());
  }
  run(state, engine);
}

Process wait_for_ever(Engine& engine, Waits& waits) {
  for (;;) co_await engine.delay(waits.next());
}

void coroutines(benchmark::State& state) {
  Engine engine(Seed{1});
  Waits waits;
  for (std::int64_t i = 0; i < state.range(0); ++i) engine.spawn("p", wait_for_ever(engine, waits));
  run(state, engine);
}

Process wait_once(Engine& engine, Duration d) {
  co_await engine.delay(d);
}

Process call_for_ever(Engine& engine, Waits& waits) {
  for (;;) co_await wait_once(engine, waits.next());
}

void coroutines_calling_another(benchmark::State& state) {
  Engine engine(Seed{1});
  Waits waits;
  for (std::int64_t i = 0; i < state.range(0); ++i) engine.spawn("p", call_for_ever(engine, waits));
  run(state, engine);
}

Process race_for_ever(Engine& engine, Waits& waits, Signal& failed) {
  for (;;) co_await any_of(engine, engine.delay(waits.next()), failed.wait());
}

void coroutines_in_any_of(benchmark::State& state) {
  Engine engine(Seed{1});
  Waits waits;
  Signal failed("failed");
  for (std::int64_t i = 0; i < state.range(0); ++i)
    engine.spawn("p", race_for_ever(engine, waits, failed));
  run(state, engine);
  engine.clear();
}

/// A fluid model's life: a timer that is nearly always re-armed before it fires.
void timer_rearmed(benchmark::State& state) {
  Engine engine(Seed{1});
  Waits waits;
  Timer timer(engine, Phase::completion, [] {});
  for (std::int64_t i = 0; i < state.range(0); ++i)
    engine.after(Duration(1'000'000'000'000'000 + i), Phase::completion, [] {});
  for (auto _ : state) timer.arm(waits.next());
  state.SetItemsProcessed(std::int64_t(state.iterations()));
}

BENCHMARK(callbacks)->Arg(1'000)->Arg(100'000);
BENCHMARK(timers)->Arg(1'000)->Arg(100'000);
BENCHMARK(coroutines)->Arg(1'000)->Arg(100'000);
BENCHMARK(coroutines_calling_another)->Arg(1'000);
BENCHMARK(coroutines_in_any_of)->Arg(1'000);
BENCHMARK(timer_rearmed)->Arg(1'000);

void stream_made(benchmark::State& state) {
  const Stream nodes(Seed{1}, "failures");
  std::uint64_t i = 0;
  for (auto _ : state) {
    Stream one = nodes.child(i++);
    benchmark::DoNotOptimize(one);
  }
}
void stream_exponential(benchmark::State& state) {
  Stream stream(Seed{1}, "failures");
  for (auto _ : state) benchmark::DoNotOptimize(stream.exponential(1.0));
}
BENCHMARK(stream_made);
BENCHMARK(stream_exponential);

}  // namespace
}  // namespace trainyard::sim
