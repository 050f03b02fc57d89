#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/failures/failure_clocks.hpp"
#include "models/failures/inlet.hpp"

/// Hazards that follow load and temperature.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using sim::Phase;
using topologies::HostId;

constexpr Duration hour = 1h;

FailureClassSpec class_of(Component component, Duration mean, double idle_factor, double energy) {
  FailureClassSpec spec;
  spec.component = component;
  spec.lifetime.mean = mean;
  spec.replace = false;
  spec.idle_factor = idle_factor;
  spec.activation_energy = energy;
  return spec;
}

/// What happens to a server, from outside.
struct Change {
  enum Kind { train, rest, down, up } kind;
  Time when;
  std::vector<HostId> servers;
};

struct Seen {
  std::uint32_t unit;
  Time when;
  auto operator<=>(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& s) {
  return out << s.unit << " at " << s.when.time_since_epoch().count();
}

std::vector<Seen> failures_of(std::uint64_t seed, const FailureInputs& inputs, UnitCounts counts,
                              const std::vector<Change>& changes, Time end,
                              const std::string& cls = "x") {
  sim::Engine engine(sim::Seed{seed});
  sim::NullRecorder recorder;
  FailureClocks clocks(engine, recorder, inputs, std::move(counts));
  std::vector<Seen> seen;
  clocks.on_failure([&](const Failure& f) {
    if (f.cls->name == cls) seen.push_back({f.unit, engine.now()});
  });
  for (const Change& c : changes)
    engine.at(c.when, Phase::completion, [&clocks, &c] {
      if (c.kind == Change::train || c.kind == Change::rest)
        clocks.set_training(c.servers, c.kind == Change::train);
      for (const HostId server : c.servers) {
        if (c.kind == Change::down) clocks.pause(server);
        if (c.kind == Change::up) clocks.resume(server);
      }
    });
  engine.run_until(end);
  std::sort(seen.begin(), seen.end());
  return seen;
}

/// The slow obvious twin: each unit by itself, through every hour and every change of its server,
/// its life used up piece by piece. Paces are whole multiples of 2^-40, as in the clocks.
std::vector<Seen> twin(std::uint64_t seed, const FailureInputs& inputs, const UnitCounts& counts,
                       const std::vector<Change>& changes, Time end) {
  __extension__ using Wide = __int128;
  const FailureClassSpec& spec = inputs.classes.at("x");
  const auto per_server = counts.per_server(spec.component);
  const sim::Stream stream(sim::Seed{seed}, "failures/x");
  std::vector<Seen> seen;
  for (std::uint32_t unit = 0; unit < counts.of(spec.component); ++unit) {
    std::uint64_t life = 0;
    const auto new_life = [&] {
      sim::Stream luck = stream.child(unit).child(life++);
      return Wide{seconds(luck.exponential(spec.lifetime.mean_s())).count()} << 40;
    };
    Wide left = new_life();
    bool trains = per_server == 0, is_down = false;
    std::size_t next = 0;
    for (Time t{}; t < end;) {
      for (; next < changes.size() && changes[next].when <= t; ++next) {
        const Change& c = changes[next];
        if (per_server == 0 || std::find(c.servers.begin(), c.servers.end(),
                                         HostId(unit / per_server)) == c.servers.end())
          continue;
        if (c.kind == Change::train) trains = true;
        if (c.kind == Change::rest) trains = false;
        if (c.kind == Change::down) is_down = true;
        if (c.kind == Change::up) is_down = false;
      }
      const std::int64_t h = t.time_since_epoch() / hour;
      Time until = std::min(end, Time((h + 1) * hour));
      if (next < changes.size()) until = std::min(until, changes[next].when);
      double pace = trains ? 1.0 : spec.idle_factor;
      if (inputs.inlet)
        pace *= arrhenius(spec.activation_energy, inputs.inlet->reference,
                          inlet_temperature(*inputs.inlet, h));
      const Wide whole = is_down ? 0 : std::llround(std::ldexp(pace, 40));
      if (whole * (until - t).count() < left) {
        left -= whole * (until - t).count();
        t = until;
        continue;
      }
      const Wide wait = left <= 0 ? 0 : (left + whole - 1) / whole;  // a whole nanosecond, upwards
      t += Duration(static_cast<std::int64_t>(wait));
      seen.push_back({unit, t});
      left = new_life();
    }
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

/// Jobs of random sizes that start and stop, servers that go down and come back.
std::vector<Change> random_changes(std::uint64_t seed, std::size_t servers, Time end, int count) {
  std::mt19937_64 random(seed);
  std::vector<Time> times;
  for (int i = 0; i < count; ++i)
    times.push_back(Time(Duration(static_cast<std::int64_t>(
        random() % static_cast<std::uint64_t>(end.time_since_epoch().count())))));
  std::sort(times.begin(), times.end());
  std::vector<Change> changes;
  std::vector<bool> is_down(servers, false);
  for (const Time t : times) {
    Change c{Change::Kind(random() % 4), t, {}};
    const std::uint64_t share = random() % 5;
    for (std::size_t s = 0; s < servers; ++s) {
      if (random() % 4 > share) continue;
      if (c.kind >= Change::down && is_down[s] == (c.kind == Change::down)) continue;
      if (c.kind >= Change::down) is_down[s] = c.kind == Change::down;
      c.servers.push_back(HostId(s));
    }
    changes.push_back(c);
  }
  return changes;
}

TEST(ChangingPace, agrees_with_lives_used_up_piece_by_piece_to_the_nanosecond) {
  const UnitCounts counts{.servers = 40, .gpus_per_server = 4, .nics_per_server = 2, .leaves = 7};
  std::size_t failures = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    constexpr double idle_factors[] = {0, 0.3, 1, 5};
    FailureInputs inputs;
    const double energy = seed % 3 == 0 ? 0.0 : 0.7;
    const Component component =
        std::array{Component::gpu, Component::server, Component::leaf_switch}[seed / 4 % 3];
    inputs.classes["x"] = class_of(component, 100h, idle_factors[seed % 4], energy);
    if (seed % 2 == 0)
      inputs.inlet = InletSpec{
          .reference = 20, .mean = 25, .day_swing = 8, .year_swing = 10, .start_day = int(seed)};
    const Time end = start_of_run + 300h;
    const auto changes = random_changes(seed, 40, end, 60);
    const std::vector<Seen> seen = failures_of(seed, inputs, counts, changes, end);
    EXPECT_EQ(seen, twin(seed, inputs, counts, changes, end));
    failures += seen.size();
  }
  EXPECT_GT(failures, 3000u);
}

/// First life of unit 0 of class x, 1 at full pace.
Duration first_life(std::uint64_t seed, double mean_s) {
  sim::Stream luck = sim::Stream(sim::Seed{seed}, "failures/x").child(0).child(0);
  return seconds(luck.exponential(mean_s));
}

TEST(ChangingPace, uses_up_a_life_slower_while_idle_and_not_at_all_while_down) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    FailureInputs inputs;
    inputs.classes["x"] = class_of(Component::server, 1000h, 0.5, 0);
    const Duration life = first_life(seed, 3.6e6);
    const auto first = [&](const std::vector<Change>& changes) {
      return failures_of(seed, inputs, {.servers = 1}, changes, start_of_run + 3 * life).at(0).when;
    };
    const std::vector<HostId> it{HostId(0)};
    const Time half = start_of_run + life / 2;
    // Always idle: twice the life. Idle for half a life uses up a quarter of it.
    EXPECT_EQ(first({}), start_of_run + 2 * life);
    const Time works = half + (life - (life / 2) / 2);
    EXPECT_NEAR(double((first({{Change::train, half, it}}) - works).count()), 0, 1);
    // Idle for 3/8 of the life, as it was down for 1/8: 3/16 are used up, 13/16 are left.
    const Time quarter = start_of_run + life / 4;
    EXPECT_NEAR(double((first({{Change::down, quarter, it},
                               {Change::up, quarter + life / 8, it},
                               {Change::train, half, it}}) -
                        (half + life / 16 * 13))
                           .count()),
                0, 20);
    // While it is down it is told to train, and does so when it is back.
    EXPECT_NEAR(double((first({{Change::down, half, it},
                               {Change::train, half + 1h, it},
                               {Change::up, half + 2h, it}}) -
                        (works + 2h))
                           .count()),
                0, 1);
  }
}

TEST(ChangingPace, stands_still_while_idle_if_only_load_wears_out) {
  FailureInputs inputs;
  inputs.classes["x"] = class_of(Component::server, 10h, 0, 0);
  const Duration life = first_life(4, 36'000);
  EXPECT_TRUE(failures_of(4, inputs, {.servers = 1}, {}, start_of_run + 10'000h).empty());
  const std::vector<HostId> it{HostId(0)};
  EXPECT_EQ(failures_of(4, inputs, {.servers = 1}, {{Change::train, start_of_run + 100h, it}},
                        start_of_run + 100h + life)
                .at(0)
                .when,
            start_of_run + 100h + life);
  EXPECT_TRUE(failures_of(4, inputs, {.servers = 1}, {{Change::train, start_of_run + 100h, it}},
                          start_of_run + 100h + life - 1ns)
                  .empty());
}

// 0.7 eV / 8.617333e-5 eV/K = 8123.2 K; 1/298.15 - 1/308.15 = 1.08844e-4 1/K; e^0.88416 = 2.42094.
TEST(Inlet, warmth_of_ten_degrees_at_0_7_eV_is_a_factor_of_2_42) {
  EXPECT_NEAR(arrhenius(0.7, 25, 35), 2.420937, 1e-6);
  EXPECT_EQ(arrhenius(0.7, 25, 25), 1.0);
  EXPECT_NEAR(arrhenius(0.7, 35, 25), 1 / 2.420937, 1e-6);
  FailureInputs inputs;
  inputs.classes["x"] = class_of(Component::server, 1000h, 1, 0.7);
  inputs.inlet = InletSpec{.reference = 25, .mean = 35};
  const Time end = start_of_run + 10'000h;
  const Duration life = first_life(9, 3.6e6);
  EXPECT_NEAR(to_seconds(failures_of(9, inputs, {.servers = 1}, {}, end).at(0).when),
              to_seconds(life) / 2.420937, 1e-6 * to_seconds(life));
  inputs.inlet.reset();  // nothing to follow
  EXPECT_EQ(failures_of(9, inputs, {.servers = 1}, {}, end).at(0).when, start_of_run + life);
}

TEST(Inlet, is_warmest_at_three_and_in_the_middle_of_the_year) {
  const InletSpec day{.mean = 20, .day_swing = 5};
  // Hours begin half an hour before their middle: 14:30 and 15:30 are alike.
  EXPECT_NEAR(inlet_temperature(day, 14), 20 + 5 * std::cos(M_PI / 24), 1e-12);
  EXPECT_NEAR(inlet_temperature(day, 15), inlet_temperature(day, 14), 1e-12);
  EXPECT_NEAR(inlet_temperature(day, 24 + 2), 20 - 5 * std::cos(M_PI / 24), 1e-12);
  double sum = 0;
  for (int h = 0; h < 24; ++h) sum += inlet_temperature(day, h);
  EXPECT_NEAR(sum / 24, 20, 1e-12);
  const InletSpec year{.mean = 20, .year_swing = 5, .start_day = 182};
  EXPECT_NEAR(inlet_temperature(year, 12), 25, 1e-6);  // 12:30, half an hour after noon
  EXPECT_LT(inlet_temperature(year, 12 + 24), inlet_temperature(year, 12));
  EXPECT_NEAR(inlet_temperature(year, 12), inlet_temperature(year, 11), 1e-12);
  const InletSpec winter{.mean = 20, .year_swing = 5, .start_day = 1};
  EXPECT_NEAR(inlet_temperature(winter, 12), 20 - 5 * std::cos(2 * M_PI * 1.5 / 365), 1e-3);
}

TEST(ChangingPace, costs_no_events_besides_the_hours_and_the_horizons) {
  sim::Engine engine(sim::Seed{1});
  sim::NullRecorder recorder;
  FailureInputs inputs;
  inputs.classes["load"] = class_of(Component::gpu, 50'000h, 0.3, 0);
  inputs.classes["steady"] = class_of(Component::gpu, 50'000h, 1, 0);
  FailureClocks clocks(engine, recorder, inputs, {.servers = 2048, .gpus_per_server = 8});
  EXPECT_EQ(engine.pending(), 2u);
  std::vector<HostId> all;
  for (std::size_t s = 0; s < 2048; ++s) all.push_back(HostId(s));
  for (int i = 0; i < 100; ++i) {
    clocks.set_training(all, i % 2 == 0);
    engine.run_until(engine.now() + 10h);
  }
  // 16,384 units: a new horizon every 144 lives of the class.
  EXPECT_LE(engine.events_processed(), clocks.failures() + 1000 * 0.328 / 144 + 10);
  EXPECT_GT(clocks.failures(), 300u);  // 328 + 0.65 * 328 expected
}

TEST(ChangingPace, does_not_move_the_failures_of_others) {
  const Time end = start_of_run + 300h;
  const auto changes = random_changes(5, 6, end, 30);
  FailureInputs few;
  few.classes["x"] = class_of(Component::gpu, 50h, 0.3, 0.5);
  few.inlet = InletSpec{.day_swing = 5};
  few.lemons = LemonsSpec{.share = 0.3, .factor = 5};
  FailureInputs many = few;
  many.classes["a"] = class_of(Component::gpu, 5h, 2, 0);
  many.classes["z"] = class_of(Component::server, 5h, 1, 0);
  many.script["fault"] = {.at = 100h, .fail = "node-8"};
  const std::vector<Seen> a =
      failures_of(3, few, {.servers = 6, .gpus_per_server = 4}, changes, end);
  std::vector<Seen> b = failures_of(3, many, {.servers = 9, .gpus_per_server = 4}, changes, end);
  std::erase_if(b, [](const Seen& s) { return s.unit >= 24; });
  EXPECT_EQ(a, b);
  EXPECT_GT(a.size(), 20u);
}

}  // namespace
}  // namespace trainyard::models
