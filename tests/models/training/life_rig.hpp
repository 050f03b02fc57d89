#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/training/job.hpp"

/// A small cluster in which the life of a job can be worked out by hand.
///
///     step 1 s (slow members stretch it)    interval 10 s, save 2 s, load 1 s    start-up 5 s,
///     replace 3 s 3 servers of 8 GPUs on leaves {0, 1, 1}, the last a spare; the job takes two
namespace trainyard::models {

using namespace std::chrono_literals;
using namespace literals;

/// A step of `step` whose parts are 4/10 useful, 3/10 kernels, 2/10 exposed_dp, 1/10 bubble; what a
/// slow member adds is in `slow`. Same speed, same object.
class FixedSteps final : public StepSource {
 public:
  explicit FixedSteps(Duration step) : step_(step) {}

  const StepProfile& profile(const Placement& placement) override {
    ++asked;
    double speed = 1.0;
    for (const SlowGpu& gpu : placement.slow) speed = std::min(speed, gpu.speed);
    const auto [found, is_new] = profiles_.try_emplace(speed);
    if (is_new) {
      StepProfile& p = found->second;
      p.parts[0] = step_ * 4 / 10;
      p.parts[1] = step_ * 3 / 10;
      p.parts[5] = step_ * 2 / 10;
      p.parts[3] = step_ - p.parts[0] - p.parts[1] - p.parts[5];
      p.parts[10] = seconds(to_seconds(step_) / speed) - step_;
      p.step = step_ + p.parts[10];
      p.tokens = 100;
      p.model_flops = 1000;
      p.hardware_flops = 1200;
    }
    return found->second;
  }

  std::int64_t asked = 0;

 private:
  Duration step_;
  std::map<double, StepProfile> profiles_;
};

struct LifeSetup {
  PoolShape pool{.servers = 3,
                 .gpus_per_server = 8,
                 .nics_per_server = 8,
                 .spares = 1,
                 .leaf = {0, 1, 1},
                 .pod = {0, 0, 0}};
  StoreSpec store{50_GBps, 100_GBps, 200_GBps, 0s};
  std::uint64_t seed = 1;
  sim::TieOrder ties = sim::TieOrder::as_scheduled;
  Duration step = 1s;
  bool record = false;
};

inline JobSpec spec_by_hand() {
  JobSpec spec;
  spec.gpus = 16;
  spec.checkpoint.interval = 10s;
  spec.checkpoint.mode = SaveMode::synchronous;
  spec.checkpoint.store = "pfs";
  spec.restart = {.replace = 3s, .start_up = 5s, .load = true};
  return spec;
}

struct Life {
  explicit Life(LifeSetup setup = {})
      : engine(sim::Seed{setup.seed}, setup.ties),
        recorder(setup.record ? std::unique_ptr<sim::Recorder>(new sim::MemoryRecorder)
                              : std::unique_ptr<sim::Recorder>(new sim::NullRecorder)),
        network(engine, "stores"),
        store(engine, network, "pfs", setup.store),
        shelf{{"pfs", {&store, {}}}},
        pool(engine, *recorder, setup.pool),
        steps(setup.step) {}

  Job& add(const JobSpec& spec, bool every_step = false, std::string name = "job") {
    jobs.push_back(std::make_unique<Job>(
        engine, *recorder, pool, shelf, steps,
        JobSetup{std::move(name), jobs.size(), spec, 100_GB, {}, every_step}));
    return *jobs.back();
  }

  FailureClass& failure_class(std::string name, Effect effect, Duration detection,
                              bool replace = true) {
    FailureClass c;
    c.id = FailureClassId(classes.size());
    c.name = std::move(name);
    c.spec.effect = effect;
    c.spec.detection = {Law::fixed, detection, 1.0};
    c.spec.replace = replace;
    c.spec.repair = {Law::fixed, 100s, 1.0};
    classes.push_back(c);
    return classes.back();
  }
  FailureClass& crash() { return failure_class("crash", Effect::crash, 4s); }

  /// The scripted source of failures.
  void fail_at(Duration t, const FailureClass& cls, std::uint32_t unit) {
    engine.at(start_of_run + t, sim::Phase::failure, [this, &cls, unit] {
      Failure failure;
      failure.cls = &cls;
      failure.unit = unit;
      failure.detection = cls.spec.detection.value;
      failure.repair = cls.spec.repair.value;
      failure.event = recorder->event(engine.now(), sim::Phase::failure,
                                      recorder->kind(cls.name + " failed", ""),
                                      recorder->subject("unit " + std::to_string(unit)), {}, 0);
      pool.strike(failure);
    });
  }

  void run_to(Duration t) { engine.run_until(start_of_run + t); }
  /// Ends the run and proves that every GPU-nanosecond is in exactly one account.
  void close() {
    for (auto& job : jobs) job->close();
    pool.settle();
    Ledger all = pool.ledger();
    for (auto& job : jobs) all.add(job->ledger());
    const GpuNanoseconds expected =
        GpuNanoseconds(pool.gpus()) * engine.now().time_since_epoch().count();
    EXPECT_TRUE(all.total() == expected) << double(all.total()) << " GPU-ns in the accounts, "
                                         << double(expected) << " in the cluster";
    for (std::size_t a = 0; a < accounts; ++a) EXPECT_GE(double(all[static_cast<Account>(a)]), 0.0);
  }
  void run_and_close(Duration t) {
    run_to(t);
    close();
  }

  sim::Engine engine;
  std::unique_ptr<sim::Recorder> recorder;
  FluidNetwork network;
  SharedStore store;
  StoreShelf shelf;
  ServerPool pool;
  FixedSteps steps;
  std::deque<FailureClass> classes;
  std::vector<std::unique_ptr<Job>> jobs;
};

/// An account in nanoseconds of one GPU (of `gpus` alike), exact.
inline Duration per_gpu(const Ledger& ledger, Account account, std::int64_t gpus) {
  EXPECT_TRUE(ledger[account] % gpus == 0);
  return Duration(static_cast<std::int64_t>(ledger[account] / gpus));
}

/// Sum of the accounts of kept steps.
inline GpuNanoseconds in_steps(const Ledger& ledger) {
  GpuNanoseconds sum = 0;
  for (std::size_t i = 0; i < step_parts; ++i) sum += ledger[static_cast<Account>(i)];
  return sum;
}

}  // namespace trainyard::models
