#include <gmock/gmock.h>

#include <cmath>
#include <optional>

#include "models/failures/failure_clocks.hpp"
#include "tests/topologies/fabrics.hpp"

/// Faults at given times, announcements, common causes.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using sim::Phase;
using testing::ElementsAre;
using topologies::HostId;

struct Bench {
  explicit Bench(FailureInputs inputs, UnitCounts counts = {.servers = 4, .gpus_per_server = 8},
                 std::uint64_t seed = 1)
      : engine(sim::Seed{seed}), clocks(engine, recorder, inputs, counts) {
    clocks.on_failure([this](const Failure& f) { note("failed", f, {}); });
    clocks.on_warning([this](const Failure& f, Time at) { note("announced", f, at); });
  }
  void note(const std::string& what, const Failure& f, std::optional<Time> at) {
    std::string line = to_text(engine.now().time_since_epoch()) + ' ' + f.cls->name + ' ' + what +
                       ' ' +
                       unit_name(clocks.counts(), f.cls->spec.component, f.unit, f.cls->spec.store);
    if (at) line += " for " + to_text(at->time_since_epoch());
    lines.push_back(line);
    failures.push_back(f);
  }
  std::size_t no_effect() const { return recorder.count("fault had no effect"); }

  sim::Engine engine;
  sim::MemoryRecorder recorder;
  std::vector<std::string> lines;
  std::vector<Failure> failures;
  FailureClocks clocks;
};

TEST(Script, strikes_at_its_time_and_at_one_instant_in_the_order_of_the_keys) {
  Bench b(FailureInputs{.script = {{"c", {.at = 1h, .fail = "node-1/gpu-3"}},
                                   {"a", {.at = 2h, .fail = "rack-1"}},
                                   {"b", {.at = 1h, .fail = "scratch/server-2", .name = "disk"}},
                                   {"d", {.at = 0s, .fail = "node-2"}}}},
          {.servers = 4,
           .gpus_per_server = 8,
           .servers_per_rack = 2,
           .store_servers = {{"scratch", 3}}});
  b.engine.run_until(start_of_run + 1h - 1ns);
  EXPECT_THAT(b.lines, ElementsAre("0 s d failed node-2"));
  b.engine.run_until(start_of_run + 10h);
  EXPECT_THAT(b.lines, ElementsAre("0 s d failed node-2", "1 h disk failed scratch/server-2",
                                   "1 h c failed node-1/gpu-3", "2 h a failed rack-1"));
  EXPECT_EQ(b.clocks.failures(), 4u);
  EXPECT_EQ(b.failures[1].cls->spec.store, "scratch");
  EXPECT_EQ(b.engine.pending(), 0u);
  b.clocks.renew(b.failures[0].cls->id, 2);  // has no life to begin
  EXPECT_EQ(b.engine.pending(), 0u);
}

TEST(Script, follows_the_classes_and_shares_one_class_among_equal_faults) {
  FailureClassSpec spec;
  spec.component = Component::gpu;
  spec.lifetime.mean = forever;
  Bench b(FailureInputs{
      .classes = {{"gpu", spec}},
      .script = {{"a", {.at = 1h, .fail = "node-1", .name = "log"}},
                 {"b", {.at = 2h, .fail = "node-2", .name = "log"}},
                 {"c", {.at = 3h, .fail = "node-3", .name = "log", .replace = false}}}});
  ASSERT_EQ(b.clocks.classes(), 3u);
  EXPECT_EQ(b.clocks.failure_class(FailureClassId(0)).name, "gpu");
  EXPECT_FALSE(b.clocks.is_scripted(FailureClassId(0)));
  EXPECT_EQ(b.clocks.failure_class(FailureClassId(1)).name, "log");
  EXPECT_EQ(b.clocks.failure_class(FailureClassId(2)).name, "log");
  EXPECT_TRUE(b.clocks.is_scripted(FailureClassId(2)));
  EXPECT_THROW(b.clocks.failure_class(FailureClassId(3)), std::out_of_range);
  b.engine.run();
  EXPECT_EQ(b.failures[0].cls, b.failures[1].cls);
  EXPECT_FALSE(b.failures[2].cls->spec.replace);
  EXPECT_NE(b.failures[0].repair, b.failures[1].repair);  // each its own luck
}

TEST(Script, has_no_effect_on_a_server_that_is_down) {
  Bench b(FailureInputs{.script = {{"a", {.at = 2h, .fail = "node-1/gpu-3", .warning = 1h}},
                                   {"b", {.at = 3h, .fail = "node-1/gpu-3"}}}});
  b.engine.at(start_of_run + 90min, Phase::completion, [&] { b.clocks.pause(HostId(1)); });
  b.engine.at(start_of_run + 150min, Phase::completion, [&] { b.clocks.resume(HostId(1)); });
  b.engine.run();
  EXPECT_THAT(b.lines,
              ElementsAre("1 h a announced node-1/gpu-3 for 2 h", "3 h b failed node-1/gpu-3"));
  EXPECT_EQ(b.no_effect(), 1u);
  EXPECT_EQ(b.clocks.failures(), 1u);
}

TEST(Script, announces_at_the_start_what_is_near) {
  Bench b(FailureInputs{.script = {{"a", {.at = 1h, .fail = "node-1", .warning = 2h}},
                                   {"b", {.at = 0s, .fail = "node-2", .warning = 2h}}}});
  b.engine.run();
  EXPECT_THAT(b.lines,
              ElementsAre("0 s a announced node-1 for 1 h", "0 s b announced node-2 for 0 s",
                          "0 s b failed node-2", "1 h a failed node-1"));
  // The announcement has the luck of the failure, and is its cause.
  EXPECT_EQ(b.failures[0].repair, b.failures[3].repair);
  EXPECT_EQ(b.recorder.events()[b.failures[3].event.index()].cause, b.failures[0].event);
  EXPECT_EQ(b.recorder.events()[b.failures[0].event.index()].value, 3600);
}

TEST(Script, of_a_unit_that_is_not_there_is_our_mistake) {
  EXPECT_THROW(Bench(FailureInputs{.script = {{"a", {.at = 1h, .fail = "node-4"}}}}), CheckFailed);
}

TEST(Script, adds_nothing_to_the_luck_of_others) {
  std::map<std::string, ScriptedFaultSpec> one{{"b", {.at = 1h, .fail = "node-1"}}}, two = one;
  two["a"] = {.at = 1min, .fail = "node-2"};
  Bench few(FailureInputs{.script = one}), more(FailureInputs{.script = two});
  few.engine.run();
  more.engine.run();
  EXPECT_EQ(few.failures.back().repair, more.failures.back().repair);
}

// --- announcements of classes --------------------------------------------------------------------

FailureClassSpec announced(double idle_factor) {
  FailureClassSpec spec;
  spec.component = Component::server;
  spec.lifetime.mean = 100h;
  spec.detection = {Law::exponential, 10s};
  spec.warning = 10h;
  spec.idle_factor = idle_factor;
  return spec;
}

// Both kinds of clock: 1 ages at one pace, 0.5 with two.
class Warnings : public testing::TestWithParam<double> {};
INSTANTIATE_TEST_SUITE_P(IdleFactor, Warnings, testing::Values(1.0, 0.5));

TEST_P(Warnings, come_ahead_of_every_failure_with_its_luck) {
  Bench b(FailureInputs{.classes = {{"x", announced(GetParam())}}}, {.servers = 200}, 3);
  std::map<std::uint32_t, std::pair<Failure, std::pair<Time, Time>>> waiting;
  int early = 0, on_time = 0;
  b.clocks.on_warning([&](const Failure& f, Time strikes_at) {
    EXPECT_TRUE(
        waiting.emplace(f.unit, std::pair(f, std::pair(b.engine.now(), strikes_at))).second);
  });
  b.clocks.on_failure([&](const Failure& f) {
    ASSERT_TRUE(waiting.contains(f.unit));
    const auto& [warned, times] = waiting.at(f.unit);
    EXPECT_EQ(times.second, b.engine.now());
    if (b.engine.now() - start_of_run < 10h) {
      EXPECT_EQ(times.first, start_of_run);  // at once
      ++early;
    } else {
      EXPECT_EQ(b.engine.now() - times.first, 10h);
      ++on_time;
    }
    EXPECT_EQ(warned.detection, f.detection);
    EXPECT_EQ(warned.repair, f.repair);
    EXPECT_EQ(b.recorder.events()[f.event.index()].cause, warned.event);
  });
  b.engine.run();
  EXPECT_EQ(early + on_time, 200);
  EXPECT_GT(early, 3);
  EXPECT_GT(on_time, 100);
}

TEST_P(Warnings, are_given_once_whatever_happens_to_the_server) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Bench b(FailureInputs{.classes = {{"x", announced(GetParam())}}}, {.servers = 1}, seed);
    int warnings = 0;
    Time told{}, struck{};
    b.clocks.on_warning([&](const Failure&, Time strikes_at) {
      ++warnings;
      told = strikes_at;
      if (strikes_at - b.engine.now() < 2h) return;
      b.engine.after(1h, Phase::completion, [&] { b.clocks.pause(HostId(0)); });
      b.engine.after(31h, Phase::completion, [&] { b.clocks.resume(HostId(0)); });
    });
    b.clocks.on_failure([&](const Failure&) { struck = b.engine.now(); });
    b.engine.run();
    EXPECT_EQ(warnings, 1);
    EXPECT_TRUE(struck == told || struck == told + 30h);
  }
}

TEST_P(Warnings, let_the_unit_be_replaced_before_it_fails) {
  Bench b(FailureInputs{.classes = {{"x", announced(GetParam())}}}, {.servers = 1}, 5);
  int warnings = 0, failures = 0;
  b.clocks.on_warning([&](const Failure& f, Time strikes_at) {
    ++warnings;
    if (strikes_at - b.engine.now() < 2h) return;
    b.clocks.pause(HostId(0));
    b.engine.after(5h, Phase::completion, [&b, id = f.cls->id] {
      b.clocks.resume(HostId(0));
      b.clocks.renew(id, 0);
    });
  });
  b.clocks.on_failure([&](const Failure& f) {
    ++failures;
    EXPECT_GE(warnings, 1);
    b.engine.after(1h, Phase::completion, [&b, id = f.cls->id] { b.clocks.renew(id, 0); });
  });
  b.engine.run_until(start_of_run + 10'000h);
  // Only lives shorter than the time it takes to act end in a failure: 2 h of 100 h.
  EXPECT_GT(warnings, 50);
  EXPECT_LT(failures, warnings / 5);
  EXPECT_THROW(b.clocks.renew(FailureClassId(0), 0), CheckFailed);
}

TEST(Warnings, say_when_it_strikes_at_the_pace_of_now) {
  // Idle at half the pace: announced 10 h ahead, that is 5 h of its life; then it trains.
  Bench b(FailureInputs{.classes = {{"x", announced(0.5)}}}, {.servers = 1}, 3);
  sim::Stream luck = sim::Stream(sim::Seed{3}, "failures/x").child(0).child(0);
  const Duration life = seconds(luck.exponential(360'000));
  ASSERT_GT(life, 20h);
  Time told{}, at{};
  b.clocks.on_warning([&](const Failure&, Time strikes_at) {
    at = b.engine.now();
    told = strikes_at;
    b.engine.after(0s, Phase::decision, [&] {
      const std::vector<HostId> it{HostId(0)};
      b.clocks.set_training(it, true);
    });
  });
  Time struck{};
  b.clocks.on_failure([&](const Failure&) { struck = b.engine.now(); });
  b.engine.run();
  EXPECT_EQ(told, start_of_run + 2 * life);
  EXPECT_EQ(at, told - 10h);
  EXPECT_EQ(struck, told - 5h);
}

// --- common causes -------------------------------------------------------------------------------

TEST(CommonCause, strikes_the_parent_with_its_share_and_moves_nothing_else) {
  FailureClassSpec spec;
  spec.component = Component::gpu;
  spec.lifetime.mean = 100h;
  spec.detection = spec.repair = {Law::exponential, 10s};
  spec.replace = false;
  const UnitCounts counts{.servers = 10, .gpus_per_server = 8, .servers_per_rack = 4};
  Bench plain(FailureInputs{.classes = {{"x", spec}}}, counts);
  spec.common_cause = CommonCauseSpec{.beta = 0.2, .parent = Component::rack};
  Bench shared(FailureInputs{.classes = {{"x", spec}}}, counts);
  spec.common_cause->parent = Component::cdu;  // there are none
  Bench none(FailureInputs{.classes = {{"x", spec}}}, counts);
  for (Bench* b : {&plain, &shared, &none}) b->engine.run_until(start_of_run + 4000h);
  EXPECT_EQ(plain.lines, shared.lines);
  EXPECT_EQ(plain.lines, none.lines);
  double parents = 0;
  for (std::size_t i = 0; i < plain.failures.size(); ++i) {
    const Failure& f = shared.failures[i];
    EXPECT_EQ(plain.failures[i].repair, f.repair);
    EXPECT_FALSE(plain.failures[i].shared_parent || none.failures[i].shared_parent);
    if (!f.shared_parent) continue;
    ++parents;
    EXPECT_EQ(*f.shared_parent, Component::rack);
    EXPECT_EQ(f.parent, f.unit / 8 / 4);  // servers 8 and 9 are rack 2
  }
  const double n = double(plain.failures.size());
  EXPECT_GT(n, 2000);
  EXPECT_NEAR(parents / n, 0.2, 3.3 * std::sqrt(0.2 * 0.8 / n));
}

TEST(CommonCause, of_a_rail_is_the_leaf_of_the_adapter) {
  using namespace topologies::testing_fabrics;
  const auto f = must_build(rail_spec(topologies::FabricKind::rail_optimized, 2, 4),
                            {.hosts = 8, .gpus = 8, .nics = 8});
  FailureClassSpec spec;
  spec.component = Component::gpu;
  spec.lifetime.mean = 10h;
  spec.common_cause = CommonCauseSpec{.beta = 1, .parent = Component::leaf_switch};
  Bench b(FailureInputs{.classes = {{"x", spec}}}, {.servers = 8,
                                                    .gpus_per_server = 8,
                                                    .nics_per_server = 8,
                                                    .leaves = std::int64_t(f->edge_count()),
                                                    .fabric = f.get()});
  b.engine.run();
  ASSERT_EQ(b.failures.size(), 64u);
  for (const Failure& x : b.failures) {
    ASSERT_EQ(x.shared_parent, Component::leaf_switch);
    EXPECT_EQ(f->vertex(f->edge_kind(), x.parent),
              f->edge_of(f->nic_of(topologies::GpuId(x.unit))));
  }
}

}  // namespace
}  // namespace trainyard::models
