#include <gmock/gmock.h>

#include <cmath>

#include "models/failures/failure_clocks.hpp"

/// Laws of lives and delays against closed forms; intervals of 99 % (2.576 standard errors).
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using topologies::HostId;

constexpr int units = 40'000;
const UnitCounts many{.servers = 5000, .gpus_per_server = 8};

FailureClassSpec weibull(Duration age = {}) {
  FailureClassSpec spec;
  spec.component = Component::gpu;
  spec.lifetime.law = Law::weibull;
  spec.lifetime.mean = 50'000h;
  spec.lifetime.shape = 0.7;
  spec.lifetime.age = age;
  spec.replace = false;
  return spec;
}

struct Lives {
  std::vector<int> failures = std::vector<int>(units, 0);
  std::vector<double> first_h = std::vector<double>(units, 0);

  double mean() const {
    double sum = 0;
    for (const int n : failures) sum += n;
    return sum / units;
  }
  double standard_error() const {
    const double m = mean();
    double squares = 0;
    for (const int n : failures) squares += (n - m) * (n - m);
    return std::sqrt(squares / units / units);
  }
  double failed() const {
    double sum = 0;
    for (const int n : failures) sum += n > 0;
    return sum / units;
  }
};

Lives live(std::uint64_t seed, const FailureClassSpec& spec, Duration duration) {
  sim::Engine engine(sim::Seed{seed});
  sim::NullRecorder recorder;
  FailureClocks clocks(engine, recorder, FailureInputs{.classes = {{"x", spec}}}, many);
  Lives lives;
  clocks.on_failure([&](const Failure& f) {
    if (lives.failures[f.unit]++ == 0) lives.first_h[f.unit] = to_seconds(engine.now()) / 3600;
  });
  engine.run_until(start_of_run + duration);
  return lives;
}

double bernoulli_error(double p) {
  return std::sqrt(p * (1 - p) / units);
}

// Weibull k 0.7 of mean 50,000 h: eta = 50,000 h / Gamma(1 + 1/0.7) = 39,499.98 h; expected
// renewals 0.3679 in one year and 1.2587 in five.
TEST(Laws, weibull_lives_meet_the_closed_forms) {
  constexpr std::uint64_t seed = 21;
  SCOPED_TRACE(seed);
  const Lives one_year = live(seed, weibull(), 8760h);
  EXPECT_NEAR(one_year.failed(), 0.29422, 2.576 * bernoulli_error(0.29422));
  EXPECT_NEAR(one_year.mean(), 0.3679, 2.576 * one_year.standard_error());
  const Lives five_years = live(seed, weibull(), 5 * 8760h);
  EXPECT_NEAR(five_years.mean(), 1.2587, 2.576 * five_years.standard_error());
  sim::Stream luck = sim::Stream(sim::Seed{seed}, "failures/x").child(7).child(0);
  const double x = -std::log(luck.uniform_open());
  EXPECT_NEAR(five_years.first_h[7], 39'499.98 * std::pow(x, 1 / 0.7), 1e-6 * 39'500);
}

// A unit that has lived for 20,000 h has 66,854 h left on average, and a new one 50,000 h. With
// a = 20,000 h it fails in the first year with 1 - exp((a/eta)^k - ((a + 8760)/eta)^k) = 0.16456.
TEST(Laws, units_of_an_age_have_the_life_that_is_left) {
  constexpr std::uint64_t seed = 22;
  SCOPED_TRACE(seed);
  FailureClassSpec once = weibull(20'000h);
  once.replace = true;
  const Lives aged = live(seed, once, 2'400'000h);
  double sum = 0, squares = 0;
  for (const double h : aged.first_h) {
    sum += h / units;
    squares += h * h / units;
  }
  EXPECT_GT(aged.failed(), 0.99999);
  EXPECT_NEAR(sum, 66'854, 2.576 * std::sqrt((squares - sum * sum) / units));
  EXPECT_NEAR(live(seed, weibull(20'000h), 8760h).failed(), 0.16456,
              2.576 * bernoulli_error(0.16456));
}

TEST(Laws, only_the_first_life_has_an_age) {
  // What is left of the first life, and the second one from the same draws as a new unit's.
  const auto second_life_h = [](Duration age) {
    sim::Engine engine(sim::Seed{23});
    sim::NullRecorder recorder;
    FailureClocks clocks(engine, recorder, FailureInputs{.classes = {{"x", weibull(age)}}},
                         {.servers = 1, .gpus_per_server = 1});
    std::vector<Time> times;
    clocks.on_failure([&](const Failure&) { times.push_back(engine.now()); });
    while (times.size() < 2) engine.step();
    return times[1] - times[0];
  };
  EXPECT_EQ(second_life_h(0h), second_life_h(20'000h));
  // An age of nothing is no age: the two formulas meet.
  const Lives fresh = live(24, weibull(), 8760h), almost = live(24, weibull(1ns), 8760h);
  for (int u = 0; u < units; ++u) EXPECT_NEAR(fresh.first_h[u], almost.first_h[u], 1e-6);
}

// 16,384 GPUs, 8 a server, at 6.5 failures in 1000 node-days: one in 1.8029 h; 131,072: in
// 0.22536 h. 419 failures in 54 days: one in 3.0931 h.
TEST(Laws, rates_of_whole_systems_meet_published_figures) {
  sim::Engine engine(sim::Seed{31});
  sim::NullRecorder recorder;
  FailureClassSpec spec;
  spec.component = Component::server;
  spec.lifetime.count = 6.5;
  spec.lifetime.units = 1000;
  spec.lifetime.duration = 24h;
  spec.replace = false;
  FailureClocks clocks(engine, recorder, FailureInputs{.classes = {{"x", spec}}},
                       {.servers = 2048});
  EXPECT_NEAR(1 / clocks.rate_per_s(2048, 0) / 3600, 1.8029, 5e-5);
  EXPECT_NEAR(1 / clocks.rate_per_s(16'384, 0) / 3600, 0.22536, 5e-6);
  engine.run_until(start_of_run + 3000h);
  const double expected = 3000 / 1.8029;
  EXPECT_NEAR(double(clocks.failures()), expected, 2.576 * std::sqrt(expected));

  spec.lifetime.count = 419;
  spec.lifetime.units = 2048;
  spec.lifetime.duration = 54 * 24h;
  FailureClocks llama(engine, recorder, FailureInputs{.classes = {{"x", spec}}}, {.servers = 2048});
  EXPECT_NEAR(1 / llama.rate_per_s(2048, 0) / 3600, 3.0931, 5e-5);
}

TEST(Laws, rate_counts_access_links_of_servers) {
  sim::Engine engine(sim::Seed{1});
  sim::NullRecorder recorder;
  FailureClassSpec spec;
  spec.component = Component::access_link;
  spec.lifetime.mean = 1000h;
  FailureClocks clocks(
      engine, recorder,
      FailureInputs{.classes = {{"x", spec}}, .script = {{"f", {.at = 1h, .fail = "node-0"}}}},
      {.servers = 4, .access_links = 64});
  EXPECT_NEAR(clocks.rate_per_s(2, 0), 2 * 16 / 3.6e6, 1e-15);
  EXPECT_EQ(clocks.classes(), 2u);
}

// With share 0.05 at factor 20: the others have 1/1.95 of the mean rate, lemons 20/1.95, and lemons
// have 1/1.95 = 51 % of all failures.
TEST(Lemons, concentrate_failures_and_keep_the_mean) {
  constexpr std::uint64_t seed = 41;
  SCOPED_TRACE(seed);
  sim::Engine engine(sim::Seed{seed});
  sim::NullRecorder recorder;
  FailureClassSpec spec;
  spec.component = Component::gpu;
  spec.lifetime.mean = 50'000h;
  spec.replace = false;
  FailureClassSpec load = spec;
  load.idle_factor = 0.5;  // the same through the clocks that change their pace
  FailureClocks clocks(engine, recorder,
                       FailureInputs{.classes = {{"load", load}, {"x", spec}},
                                     .lemons = LemonsSpec{.share = 0.05, .factor = 20}},
                       many);
  double lemons = 0;
  for (std::size_t s = 0; s < 5000; ++s) lemons += clocks.is_lemon(HostId(s));
  EXPECT_NEAR(lemons, 250, 2.576 * std::sqrt(5000 * 0.05 * 0.95));
  double of_lemons[2] = {}, of_others[2] = {};
  clocks.on_failure([&](const Failure& f) {
    (clocks.is_lemon(HostId(f.unit / 8)) ? of_lemons : of_others)[f.cls->id.index()] += 1;
  });
  engine.run_until(start_of_run + 8760h);
  for (const int c : {0, 1}) {
    const double one = 8 * 8760 / 50'000.0 / 1.95 * (c == 0 ? 0.5 : 1);
    EXPECT_NEAR(of_others[c], one * (5000 - lemons), 2.576 * std::sqrt(one * (5000 - lemons)));
    EXPECT_NEAR(of_lemons[c], one * 20 * lemons, 2.576 * std::sqrt(one * 20 * lemons));
  }
  const double all = 5000 * 8 * 8760 / 50'000.0;
  // Beside their own luck: how many lemons there are.
  EXPECT_NEAR(of_lemons[1] + of_others[1], all,
              2.576 * std::sqrt(all + std::pow(8 * 8760 / 50'000.0 * 19 / 1.95, 2) * 237.5));
}

TEST(Lemons, shorten_the_lives_of_the_same_draws) {
  const auto first = [](std::optional<LemonsSpec> lemons) {
    sim::Engine engine(sim::Seed{42});
    sim::NullRecorder recorder;
    FailureClassSpec spec;
    spec.component = Component::server;
    spec.lifetime.mean = 100h;
    FailureClocks clocks(engine, recorder,
                         FailureInputs{.classes = {{"x", spec}}, .lemons = lemons},
                         {.servers = 50});
    std::map<std::uint32_t, double> times;
    clocks.on_failure([&](const Failure& f) {
      times[f.unit] = to_seconds(engine.now()) * clocks.relative_rate(HostId(f.unit));
    });
    engine.run();
    return times;
  };
  const auto plain = first({}), lemons = first(LemonsSpec{.share = 0.2, .factor = 10});
  ASSERT_EQ(plain.size(), 50u);
  for (const auto& [unit, t] : plain) EXPECT_NEAR(t, lemons.at(unit), 1e-6);
}

TEST(Delays, empirical_ones_are_equally_likely_and_take_one_value) {
  const DelaySpec spec{.law = Law::empirical, .values = {1s, 5s, 60s}};
  std::map<Duration, int> times;
  const sim::Stream all(sim::Seed{5}, "delays");
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    sim::Stream s = all.child(i), skipped = s;
    ++times[draw(spec, s)];
    skipped.bits();
    EXPECT_EQ(s.bits(), skipped.bits());
  }
  ASSERT_EQ(times.size(), 3u);
  for (const auto& [value, n] : times) EXPECT_NEAR(n, 10'000, 3.3 * std::sqrt(30'000 * 2 / 9.0));
}

}  // namespace
}  // namespace trainyard::models
