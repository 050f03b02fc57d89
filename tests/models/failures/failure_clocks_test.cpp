#include "models/failures/failure_clocks.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using sim::Phase;
using topologies::HostId;

FailureClassSpec in_place(Component component, Duration mean) {
  FailureClassSpec spec;
  spec.component = component;
  spec.lifetime.mean = mean;
  spec.replace = false;
  return spec;
}

struct Seen {
  std::string cls;
  std::uint32_t unit;
  Time when;
  Duration detection;
  auto operator<=>(const Seen&) const = default;
};

/// All failures up to `end`; `script` may pause and resume servers.
std::vector<Seen> failures_of(std::uint64_t seed,
                              const std::map<std::string, FailureClassSpec>& classes,
                              UnitCounts counts, Time end,
                              const std::vector<std::tuple<std::size_t, Time, Time>>& pauses = {}) {
  sim::Engine engine(sim::Seed{seed});
  sim::NullRecorder recorder;
  FailureClocks clocks(engine, recorder, classes, counts);
  std::vector<Seen> seen;
  clocks.on_failure([&](const Failure& f) {
    seen.push_back({f.cls->name, f.unit, engine.now(), f.detection});
  });
  for (const auto& [server, from, to] : pauses) {
    engine.at(from, Phase::completion, [&clocks, s = HostId(server)] { clocks.pause(s); });
    engine.at(to, Phase::completion, [&clocks, s = HostId(server)] { clocks.resume(s); });
  }
  engine.run_until(end);
  return seen;
}

// The slow obvious twin: life after life of one unit, added up, with the time it was down in
// between.
std::vector<Seen> twin(std::uint64_t seed, const std::string& name, const FailureClassSpec& spec,
                       UnitCounts counts, Time end,
                       const std::vector<std::tuple<std::size_t, Time, Time>>& pauses = {}) {
  std::vector<Seen> seen;
  const sim::Stream stream(sim::Seed{seed}, "failures/" + name);
  const auto per_server = counts.per_server(spec.component);
  for (std::uint32_t unit = 0; unit < counts.of(spec.component); ++unit) {
    Time t{};
    for (std::uint64_t life = 0;; ++life) {
      sim::Stream luck = stream.child(unit).child(life);
      Duration up = spec.lifetime.law == Law::weibull
                        ? seconds(luck.weibull(
                              spec.lifetime.shape,
                              spec.lifetime.mean_s() / std::tgamma(1 + 1 / spec.lifetime.shape)))
                        : seconds(luck.exponential(spec.lifetime.mean_s()));
      for (const auto& [server, from, to] : pauses)  // in order of time
        if (per_server > 0 && unit / per_server == std::int64_t(server) && from >= t &&
            t + up > from)
          up += to - from;
      t = add(t, up);
      if (t > end) break;
      seen.push_back({name, unit, t, draw(spec.detection, luck)});
    }
  }
  std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.when, a.unit) < std::tie(b.when, b.unit);
  });
  return seen;
}

const UnitCounts small{.servers = 6, .gpus_per_server = 4, .nics_per_server = 2, .leaves = 3};

TEST(FailureClocks, agree_with_lives_added_up_one_unit_at_a_time) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    for (const Component c :
         {Component::gpu, Component::nic, Component::server, Component::leaf_switch}) {
      FailureClassSpec spec = in_place(c, 10h);
      spec.detection = {Law::exponential, 10s, 1.0};
      if (seed % 2 == 0) {
        spec.lifetime.law = Law::weibull;
        spec.lifetime.shape = 0.7;
      }
      const Time end = start_of_run + 100h;
      EXPECT_EQ(failures_of(seed, {{"x", spec}}, small, end), twin(seed, "x", spec, small, end));
    }
  }
}

TEST(FailureClocks, a_server_that_is_down_neither_ages_nor_fails) {
  const std::vector<std::tuple<std::size_t, Time, Time>> pauses = {
      {2, start_of_run + 10h, start_of_run + 30h},
      {0, start_of_run + 15h, start_of_run + 16h},
      {2, start_of_run + 31h, start_of_run + 32h}};
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    const FailureClassSpec spec = in_place(Component::gpu, 5h);
    const Time end = start_of_run + 100h;
    const std::vector<Seen> seen = failures_of(seed, {{"x", spec}}, small, end, pauses);
    EXPECT_EQ(seen, twin(seed, "x", spec, small, end, pauses));
    for (const Seen& s : seen)
      EXPECT_FALSE(s.unit / 4 == 2 && s.when > start_of_run + 10h && s.when < start_of_run + 30h);
  }
}

TEST(FailureClocks, a_failed_unit_is_quiet_until_it_is_renewed_and_then_lives_anew) {
  FailureClassSpec spec = in_place(Component::server, 1h);
  spec.replace = true;
  sim::Engine engine(sim::Seed{7});
  sim::NullRecorder recorder;
  FailureClocks clocks(engine, recorder, {{"x", spec}}, {.servers = 1});
  std::vector<Time> times;
  clocks.on_failure([&](const Failure&) { times.push_back(engine.now()); });
  engine.run_until(start_of_run + 1000h);
  ASSERT_EQ(times.size(), 1u);
  clocks.renew(FailureClassId(0), 0);
  engine.run_until(start_of_run + 2000h);
  ASSERT_EQ(times.size(), 2u);
  sim::Stream second = engine.random("failures/x").child(0).child(1);
  EXPECT_EQ(times[1], start_of_run + 1000h + seconds(second.exponential(3600)));
  EXPECT_THROW(clocks.resume(HostId(0)), CheckFailed);
}

TEST(FailureClocks, more_servers_and_more_classes_change_nobody_elses_luck) {
  const FailureClassSpec spec = in_place(Component::gpu, 10h);
  UnitCounts more = small;
  more.servers = 9;
  const Time end = start_of_run + 200h;
  const std::vector<Seen> few = failures_of(3, {{"m", spec}}, small, end);
  std::vector<Seen> many = failures_of(3, {{"a", spec}, {"m", spec}, {"z", spec}}, more, end);
  std::erase_if(many, [](const Seen& s) { return s.cls != "m" || s.unit >= 24; });
  EXPECT_EQ(few, many);
  EXPECT_FALSE(few.empty());
}

// Closed form (Weibull k 0.7, mean 50,000 h): a unit fails within the first year with probability
// 0.29422 and is expected to be renewed 0.3679 times; exponential: 0.16071 and 0.1752.
// Tolerance: 3.3 standard errors of 40,000 units.
TEST(FailureClocks, weibull_renewals_meet_the_oracle) {
  struct Row {
    Law law;
    double shape, fails, renewals;
  };
  for (const Row row :
       {Row{Law::weibull, 0.7, 0.29422, 0.3679}, Row{Law::exponential, 1.0, 0.16071, 0.1752}}) {
    FailureClassSpec spec = in_place(Component::gpu, 50'000h);
    spec.lifetime.law = row.law;
    spec.lifetime.shape = row.shape;
    const UnitCounts counts{.servers = 5000, .gpus_per_server = 8};
    const std::vector<Seen> seen = failures_of(11, {{"x", spec}}, counts, start_of_run + 8760h);
    std::vector<int> times(40'000);
    for (const Seen& s : seen) ++times[s.unit];
    const double n = 40'000;
    const double failed =
        double(std::count_if(times.begin(), times.end(), [](int k) { return k > 0; })) / n;
    EXPECT_NEAR(failed, row.fails, 3.3 * std::sqrt(row.fails * (1 - row.fails) / n));
    EXPECT_NEAR(double(seen.size()) / n, row.renewals, 3.3 * std::sqrt(1.6 * row.renewals / n));
  }
}

TEST(FailureClocks, expected_rate_adds_up_over_components) {
  sim::Engine engine(sim::Seed{1});
  sim::NullRecorder recorder;
  FailureClassSpec observed = in_place(Component::gpu, 1h);
  observed.lifetime.mean.reset();  // 148 failures of 16,384 GPUs in 54 days
  observed.lifetime.count = 148;
  observed.lifetime.units = 16'384;
  observed.lifetime.duration = 54 * 24h;
  const FailureClocks clocks(engine, recorder,
                             {{"gpu", observed}, {"leaf", in_place(Component::leaf_switch, 1000h)}},
                             {.servers = 2048, .gpus_per_server = 8, .leaves = 64});
  const double per_second = 148 / (54 * 86'400.0) + 64 / 3.6e6;
  EXPECT_NEAR(clocks.rate_per_s(2048, 64), per_second, 1e-15);
  EXPECT_NEAR(clocks.rate_per_s(1024, 0), 74 / (54 * 86'400.0), 1e-15);
}

TEST(Delays, follow_their_laws_and_take_one_value_each) {
  for (const Law law : {Law::fixed, Law::exponential, Law::log_normal}) {
    const DelaySpec spec{law, 100s, 0.5};
    const sim::Stream all(sim::Seed{5}, "delays");
    std::vector<double> draws;
    double sum = 0;
    for (std::uint64_t i = 0; i < 20'001; ++i) {
      sim::Stream s = all.child(i), skipped = s;
      draws.push_back(to_seconds(draw(spec, s)));
      sum += draws.back();
      skipped.bits();
      EXPECT_EQ(s.bits(), skipped.bits());
    }
    std::sort(draws.begin(), draws.end());
    const double median = draws[10'000], mean = sum / 20'001;
    if (law == Law::fixed) {
      EXPECT_EQ(mean, 100);
    } else if (law == Law::exponential) {
      EXPECT_NEAR(mean, 100, 3.3 * 100 / std::sqrt(20'001.0));
    } else {
      EXPECT_NEAR(median, 100, 3.3 * 100 * 0.5 * 1.2533 / std::sqrt(20'001.0));
      EXPECT_NEAR(mean, 100 * std::exp(0.125), 3.3 * 60 / std::sqrt(20'001.0));
    }
  }
}

TEST(UnitNames, say_where_a_unit_sits) {
  const UnitCounts counts{.servers = 4, .gpus_per_server = 8, .nics_per_server = 2};
  EXPECT_EQ(unit_name(counts, Component::gpu, 11), "node-1/gpu-3");
  EXPECT_EQ(unit_name(counts, Component::nic, 5), "node-2/nic-1");
  EXPECT_EQ(unit_name(counts, Component::server, 3), "node-3");
  EXPECT_EQ(unit_name(counts, Component::leaf_switch, 12), "leaf-12");
}

TEST(FailureClocks, a_million_units_are_cheap_and_wait_with_one_event) {
  sim::Engine engine(sim::Seed{1});
  sim::NullRecorder recorder;
  const FailureClocks clocks(engine, recorder, {{"gpu", in_place(Component::gpu, 50'000h)}},
                             {.servers = 125'000, .gpus_per_server = 8});
  EXPECT_EQ(engine.pending(), 1u);
  engine.run_until(start_of_run + 24h);
  EXPECT_EQ(engine.events_processed(), clocks.failures());
  EXPECT_NEAR(double(clocks.failures()), 480, 3.3 * std::sqrt(480.0));  // 10^6 * 24 / 50,000
}

}  // namespace
}  // namespace trainyard::models
