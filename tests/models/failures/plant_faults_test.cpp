#include "models/failures/plant_faults.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "models/failures/failure_clocks.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Faults = std::map<std::string, PlantFaultSpec>;
using Script = std::map<std::string, PlantScriptSpec>;
using Names = std::vector<std::string>;

PlantFaultSpec exponential(Names parts, Duration mean, Duration repair) {
  PlantFaultSpec spec;
  spec.parts = std::move(parts);
  spec.lifetime.mean = mean;
  spec.repair = {Law::fixed, repair};
  return spec;
}

struct Bench {
  Bench(Faults faults, Script script, Names names, std::uint64_t seed = 1,
        sim::TieOrder ties = sim::TieOrder::as_scheduled)
      : engine(sim::Seed{seed}, ties),
        plant(engine, std::move(faults), std::move(script), std::move(names),
              {.act = [this](const std::string& part, PlantAction action, const std::string& why,
                             std::optional<double> value) {
                std::string line = to_text(engine.now().time_since_epoch()) + ' ' +
                                   std::string(name_of(action)) + ' ' + part + " by " + why;
                if (value) line += " to " + std::to_string(*value).substr(0, 4);
                lines.push_back(line);
                told.emplace_back(engine.now(), part, action);
                return sim::EventIndex(told.size() - 1);
              }}) {}
  sim::Engine engine;
  std::vector<std::string> lines;
  std::vector<std::tuple<Time, std::string, PlantAction>> told;
  PlantFaults plant;
};

// --- luck ----------------------------------------------------------------------------------------

struct Seen {
  std::string cls, part;
  Time at;
  std::optional<Time> back;
  auto operator<=>(const Seen&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Seen& s) {
  return out << s.cls << ' ' << s.part << ' ' << s.at.time_since_epoch().count();
}

std::vector<Seen> seen_by(const PlantFaults& plant) {
  std::vector<Seen> out;
  for (const PlantFaultRow& row : plant.rows())
    if (!row.is_scripted) out.push_back({row.cls, row.part, row.at, row.back});
  return out;
}

// The slow obvious twin: lives and repairs of one unit after the other, added up.
std::vector<Seen> twin(std::uint64_t seed, const std::string& cls, const PlantFaultSpec& spec,
                       const Names& units, Time end) {
  std::vector<Seen> out;
  for (const std::string& unit : units) {
    const sim::Stream stream =
        sim::Stream(sim::Seed{seed}, "plant/" + cls).child(sim::hash_path(unit));
    Time t{};
    for (std::uint64_t k = 0;; ++k) {
      sim::Stream luck = stream.child(k);
      const LifetimeSpec& life = spec.lifetime;
      const double mean_s = life.mean_s();
      const double scale_s = mean_s / std::tgamma(1 + 1 / life.shape);
      if (life.law == Law::exponential) {
        t += seconds(luck.exponential(mean_s));
      } else if (k > 0 || life.age == 0s) {
        t += seconds(luck.weibull(life.shape, scale_s));
      } else {
        const double a = to_seconds(life.age) / scale_s, e = luck.exponential(1.0);
        t += seconds(scale_s * (std::pow(std::pow(a, life.shape) + e, 1 / life.shape) - a));
      }
      if (t > end) break;
      const Time back = t + draw(spec.repair, luck);
      out.push_back({cls, unit, t, back});
      t = back;
    }
  }
  std::sort(out.begin(), out.end(), [](const Seen& a, const Seen& b) {
    return std::tie(a.at, a.part) < std::tie(b.at, b.part);
  });
  return out;
}

TEST(PlantFaults, agree_with_lives_and_repairs_added_up_one_unit_at_a_time) {
  const Names names = {"ups-0", "ups-1", "ups-2", "north/chiller-1", "north/chiller-2"};
  const Time end = start_of_run + 2000h;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    PlantFaultSpec spec = exponential({"ups", "north/chiller-2", "ups-1"}, 100h, 7h);
    spec.repair = {Law::log_normal, 4h, 1.0};
    if (seed % 2 == 0) {
      spec.lifetime.law = Law::weibull;
      spec.lifetime.shape = seed % 4 == 0 ? 0.7 : 3.0;
    }
    Bench b({{"x", spec}}, {}, names, seed);
    b.engine.run_until(end);
    EXPECT_EQ(seen_by(b.plant),
              twin(seed, "x", spec, {"ups-0", "ups-1", "ups-2", "north/chiller-2"}, end));
  }
}

// The first life alone begins at the age; the twin takes the difference of large numbers, so a
// microsecond apart.
TEST(PlantFaults, begin_at_the_age_of_the_plant) {
  const Names names = {"pump-1", "pump-2", "pump-3", "pump-4"};
  const Time end = start_of_run + 20'000h;
  PlantFaultSpec spec = exponential({"pump"}, 4000h, 0h);
  spec.lifetime.law = Law::weibull;
  spec.lifetime.shape = 4.0;
  spec.lifetime.age = 5000h;
  std::size_t early = 0, late = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Bench b({{"x", spec}}, {}, names, seed);
    b.engine.run_until(end);
    const std::vector<Seen> seen = seen_by(b.plant), expected = twin(seed, "x", spec, names, end);
    ASSERT_EQ(seen.size(), expected.size()) << seed;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].part, expected[i].part);
      EXPECT_LT(std::chrono::abs(seen[i].at - expected[i].at), 1us);
    }
    early += std::size_t(std::count_if(seen.begin(), seen.end(),
                                       [](const Seen& s) { return s.at < start_of_run + 2000h; }));
    spec.lifetime.age = 0h;
    Bench fresh({{"x", spec}}, {}, names, seed);
    fresh.engine.run_until(start_of_run + 2000h);
    late += fresh.plant.rows().size();
    spec.lifetime.age = 5000h;
  }
  EXPECT_GT(early, 5 * late);  // of shape 4, old pumps wear out and new ones do not
}

// Alternating renewal with an exponential life of mean m and a fixed repair r, m + r = c. In T
// hours a unit that starts up has T/c + (r/c)^2/2 failures on average, with a variance of T
// m^2/c^3, and is down for r T/c - (1 - r/c) r^2/(2c) with r times that standard deviation.
TEST(PlantFaults, come_at_the_rate_of_their_lifetimes) {
  Names names;
  for (int i = 0; i < 200; ++i) names.push_back("crah-" + std::to_string(i));
  const double m = 1000, r = 50, c = m + r, hours = 10'000, seeds = 30, n = seeds * 200;
  double failures = 0, down_h = 0;
  for (std::uint64_t seed = 1; seed <= std::uint64_t(seeds); ++seed) {
    Bench b({{"x", exponential({"crah"}, 1000h, 50h)}}, {}, names, seed);
    b.engine.run_until(start_of_run + 10'000h);
    failures += double(b.plant.rows().size());
    for (const PlantFaultRow& row : b.plant.rows())
      down_h += to_seconds(std::min(*row.back, b.engine.now()) - row.at) / 3600;
  }
  const double sigma = std::sqrt(n * hours * m * m / (c * c * c));
  EXPECT_NEAR(failures, n * (hours / c + 0.5 * std::pow(r / c, 2)), 3 * sigma);
  EXPECT_NEAR(down_h, n * (r * hours / c - (1 - r / c) * r * r / (2 * c)), 3 * sigma * r);
}

TEST(PlantFaults, observed_counts_give_the_rate) {
  Names names;
  for (int i = 0; i < 1000; ++i) names.push_back("pdu-" + std::to_string(i));
  PlantFaultSpec spec = exponential({"pdu"}, 1h, 0h);
  spec.lifetime.mean.reset();  // 25 failures of 400 units in 1000 h: a mean of 16,000 h
  spec.lifetime.count = 25;
  spec.lifetime.units = 400;
  spec.lifetime.duration = 1000h;
  Bench b({{"x", spec}}, {}, names, 3);
  b.engine.run_until(start_of_run + 16'000h);
  EXPECT_NEAR(double(b.plant.rows().size()), 1000, 3 * std::sqrt(1000.0));
}

TEST(PlantFaults, more_units_classes_and_scripts_change_nobody_elses_luck) {
  const PlantFaultSpec spec = exponential({"ups"}, 100h, 10h);
  const Time end = start_of_run + 5000h;
  Bench few({{"m", spec}}, {}, {"ups-0", "ups-1"}, 9);
  few.engine.run_until(end);
  Bench many({{"a", spec}, {"m", spec}, {"z", exponential({"pdu"}, 50h, 1h)}},
             {{"s", {.at = 10h, .part = "ups-0", .action = PlantAction::fail, .duration = 900h}},
              {"t", {.at = 300h, .part = "ups", .action = PlantAction::restore}}},
             {"pdu-0", "ups-0", "pdu-1", "ups-1", "ups-2"}, 9);
  many.engine.run_until(end);
  std::vector<Seen> shared = seen_by(many.plant);
  std::erase_if(shared, [](const Seen& s) { return s.cls != "m" || s.part == "ups-2"; });
  EXPECT_GT(shared.size(), 50u);
  EXPECT_EQ(seen_by(few.plant), shared);
}

TEST(PlantFaults, come_in_the_order_of_time_and_wait_with_one_event) {
  Names names;
  for (int i = 0; i < 2000; ++i) names.push_back("cdu-" + std::to_string(i) + "/pump-1");
  Bench b({{"a", exponential({"cdu-*/pump"}, 1000h, 8h)},
           {"b", exponential({"cdu-*/pump-1"}, 2000h, 8h)}},
          {{"s", {.at = 5h, .part = "cdu-7/pump", .action = PlantAction::trip}}}, names);
  EXPECT_EQ(b.engine.pending(), 1u);
  b.engine.run_until(start_of_run + 100h);
  EXPECT_GT(b.plant.rows().size(), 200u);
  EXPECT_TRUE(std::is_sorted(b.plant.rows().begin(), b.plant.rows().end(),
                             [](const auto& x, const auto& y) { return x.at < y.at; }));
  EXPECT_EQ(b.engine.pending(), 1u);
  std::size_t ends = 0;
  for (const PlantFaultRow& row : b.plant.rows()) ends += *row.back <= b.engine.now();
  EXPECT_EQ(b.engine.events_processed(), b.plant.rows().size() + ends + 1);
}

// --- the script ----------------------------------------------------------------------------------

TEST(PlantScript, acts_to_the_nanosecond_and_at_one_instant_in_the_order_of_the_keys) {
  Bench b({},
          {{"d", {.at = 0h, .part = "ups", .action = PlantAction::return_by_hand}},
           {"c", {.at = 2h, .part = "north/chiller", .action = PlantAction::trip}},
           {"a", {.at = 2h, .action = PlantAction::people, .people = 3}},
           {"b", {.at = 2h, .action = PlantAction::shed, .share = 0.25}}},
          {"ups-1", "ups-0", "north/chiller-1", "north/chiller-2"});
  b.engine.run_until(start_of_run + 2h - 1ns);
  EXPECT_THAT(b.lines,
              ElementsAre("0 s return-by-hand ups-1 by d", "0 s return-by-hand ups-0 by d"));
  b.lines.clear();
  b.engine.run_until(start_of_run + 2h);
  EXPECT_THAT(b.lines,
              ElementsAre("2 h people  by a to 3.00", "2 h shed  by b to 0.25",
                          "2 h trip north/chiller-1 by c", "2 h trip north/chiller-2 by c"));
  EXPECT_EQ(b.engine.pending(), 0u);
  EXPECT_THAT(b.plant.rows(), IsEmpty());
}

TEST(PlantScript, restores_after_the_duration_or_by_an_entry_or_never) {
  Bench b({},
          {{"a", {.at = 1h, .part = "ups-0", .duration = 30min}},
           {"b", {.at = 1h, .part = "ups-1"}},
           {"c", {.at = 1h, .part = "ups-2"}},
           {"d", {.at = 3h, .part = "ups-1", .action = PlantAction::restore}}},
          {"ups-0", "ups-1", "ups-2"});
  b.engine.run_until(start_of_run + 90min - 1ns);
  EXPECT_TRUE(b.plant.is_down("ups-0"));
  b.engine.run_until(start_of_run + 90min);
  EXPECT_FALSE(b.plant.is_down("ups-0"));
  b.engine.run();
  EXPECT_THAT(b.lines,
              ElementsAre("1 h fail ups-0 by a", "1 h fail ups-1 by b", "1 h fail ups-2 by c",
                          "1 h 30 min restore ups-0 by a", "3 h restore ups-1 by d"));
  ASSERT_EQ(b.plant.rows().size(), 3u);
  EXPECT_EQ(b.plant.rows()[0].back, start_of_run + 90min);
  EXPECT_EQ(b.plant.rows()[1].back, start_of_run + 3h);
  EXPECT_EQ(b.plant.rows()[2].back, std::nullopt);
  EXPECT_EQ(b.plant.rows()[2].event, sim::EventIndex(2));
  EXPECT_TRUE(b.plant.rows()[2].is_scripted);
  EXPECT_TRUE(b.plant.is_down("ups-2"));
  EXPECT_THROW(b.plant.is_down("ups"), CheckFailed);
}

TEST(PlantScript, an_entry_that_restores_ends_all_that_the_script_did_and_is_told_to_the_plant) {
  Bench b({},
          {{"a", {.at = 1h, .part = "pdu", .duration = 10h}},
           {"b", {.at = 2h, .part = "pdu"}},
           {"c", {.at = 3h, .part = "pdu", .action = PlantAction::restore}},
           {"d", {.at = 4h, .part = "pdu", .action = PlantAction::restore}}},
          {"pdu"});
  b.engine.run();
  // The second restore is for a breaker that opened by itself; the end of "a" at 11 h is void.
  EXPECT_THAT(b.lines,
              ElementsAre("1 h fail pdu by a", "3 h restore pdu by c", "4 h restore pdu by d"));
  EXPECT_EQ(b.plant.rows()[0].back, start_of_run + 3h);
  EXPECT_EQ(b.plant.rows()[1].back, start_of_run + 3h);
  EXPECT_FALSE(b.plant.rows()[1].event.is_valid());
}

// --- several causes ------------------------------------------------------------------------------

TEST(PlantFaults, that_overlap_fail_once_and_are_restored_with_the_last) {
  for (const sim::TieOrder ties : {sim::TieOrder::as_scheduled, sim::TieOrder::shuffled}) {
    Bench b({},
            {{"a", {.at = 1h, .part = "ups", .duration = 4h}},     // 1 - 5
             {"b", {.at = 2h, .part = "ups-1", .duration = 1h}},   // 2 - 3, within
             {"c", {.at = 4h, .part = "ups-1", .duration = 3h}},   // 4 - 7
             {"d", {.at = 7h, .part = "ups-1", .duration = 1h}},   // 7 - 8: meets c
             {"e", {.at = 9h, .part = "ups-1", .duration = 1h}}},  // 9 - 10
            {"ups-0", "ups-1"}, 1, ties);
    b.engine.run();
    EXPECT_THAT(b.lines, ElementsAre("1 h fail ups-0 by a", "1 h fail ups-1 by a",
                                     "5 h restore ups-0 by a", "8 h restore ups-1 by d",
                                     "9 h fail ups-1 by e", "10 h restore ups-1 by e"));
    EXPECT_EQ(b.plant.rows().size(), 6u);
  }
}

TEST(PlantFaults, a_script_does_not_end_a_repair) {
  PlantFaultSpec spec = exponential({"ups"}, 100h, 1000h);
  Bench b({{"x", spec}}, {{"s", {.at = 900h, .part = "ups", .action = PlantAction::restore}}},
          {"ups"});
  b.engine.run_until(start_of_run + 900h);
  ASSERT_EQ(b.plant.rows().size(), 1u);
  EXPECT_TRUE(b.plant.is_down("ups"));
  EXPECT_EQ(b.lines.size(), 1u);
}

// What is told of a part is the union of its rows, at random and scripted, with open ends.
TEST(PlantFaults, what_is_told_is_the_union_of_all_causes) {
  const Names names = {"ups-0", "ups-1", "ups-2"};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Script script;
    sim::Stream luck(sim::Seed{seed}, "script");
    for (int i = 0; i < 25; ++i) {
      PlantScriptSpec entry;
      entry.at = std::chrono::hours(luck.below(400));
      entry.part = luck.below(3) == 0 ? "ups" : names[luck.below(3)];
      entry.action = luck.below(4) == 0 ? PlantAction::restore : PlantAction::fail;
      if (entry.action == PlantAction::fail && luck.below(5) > 0)
        entry.duration = std::chrono::hours(1 + luck.below(50));
      script["s" + std::to_string(i)] = entry;
    }
    Bench b({{"x", exponential({"ups"}, 60h, 20h)}, {"y", exponential({"ups-1"}, 40h, 30h)}},
            script, names, seed);
    const Time end = start_of_run + 500h;
    b.engine.run_until(end);
    for (const std::string& name : names) {
      std::vector<std::pair<Time, Time>> down, told;
      for (const PlantFaultRow& row : b.plant.rows())
        if (row.part == name) down.emplace_back(row.at, std::min(end, row.back.value_or(end)));
      std::sort(down.begin(), down.end());
      std::vector<std::pair<Time, Time>> merged;
      for (const auto& [from, to] : down) {
        if (!merged.empty() && from <= merged.back().second)
          merged.back().second = std::max(merged.back().second, to);
        else
          merged.emplace_back(from, to);
      }
      bool is_down = false;
      for (const auto& [at, part, action] : b.told) {
        if (part != name) continue;
        if (action == PlantAction::fail) {
          ASSERT_FALSE(is_down);
          told.emplace_back(at, end);
        } else if (is_down) {
          told.back().second = at;
        }
        is_down = action == PlantAction::fail;
      }
      // A restore and a failure of one instant, in the order of their keys, are told as two.
      std::vector<std::pair<Time, Time>> joined;
      for (const auto& d : told) {
        if (!joined.empty() && joined.back().second == d.first)
          joined.back().second = d.second;
        else
          joined.push_back(d);
      }
      EXPECT_EQ(joined, merged) << name;
      EXPECT_EQ(b.plant.is_down(name), is_down);
    }
  }
}

// --- inputs --------------------------------------------------------------------------------------

/// Which members break a rule between members.
struct Rules {
  template <class T>
  void required(const char*, T&, const char*, Range = {}) {}
  template <class T>
  void optional(const char*, T&, const char*, Range = {}) {}
  void check(bool holds, const char* key, const char*) {
    if (!holds) broken.emplace_back(key);
  }
  Names broken;
};
template <class Spec>
Names broken(Spec spec) {
  Rules rules;
  describe(rules, spec);
  return rules.broken;
}

TEST(PlantSpecs, have_what_their_action_needs_and_nothing_else) {
  using enum PlantAction;
  for (const PlantAction of_a_part : {fail, restore, trip, return_by_hand}) {
    EXPECT_THAT(broken(PlantScriptSpec{.part = "x", .action = of_a_part}), IsEmpty());
    EXPECT_THAT(broken(PlantScriptSpec{.action = of_a_part}), ElementsAre("part"));
    EXPECT_THAT(
        broken(PlantScriptSpec{.part = "x", .action = of_a_part, .people = 1, .share = 1.0}),
        ElementsAre("people", "share"));
  }
  EXPECT_THAT(broken(PlantScriptSpec{.part = "x", .action = fail, .duration = 1h}), IsEmpty());
  for (const PlantAction other : {restore, trip, return_by_hand})
    EXPECT_THAT(broken(PlantScriptSpec{.part = "x", .action = other, .duration = 1h}),
                ElementsAre("duration"));
  EXPECT_THAT(broken(PlantScriptSpec{.action = people, .people = 0}), IsEmpty());
  EXPECT_THAT(broken(PlantScriptSpec{.action = shed, .share = 0.0}), IsEmpty());
  EXPECT_THAT(broken(PlantScriptSpec{.action = people}), ElementsAre("people"));
  EXPECT_THAT(broken(PlantScriptSpec{.action = shed}), ElementsAre("share"));
  EXPECT_THAT(broken(PlantScriptSpec{.part = "x", .action = shed, .share = 0.5}),
              ElementsAre("part"));
  EXPECT_THAT(broken(exponential({"x"}, 1h, 1h)), IsEmpty());
  EXPECT_THAT(broken(exponential({}, 1h, 1h)), ElementsAre("parts"));
}

// --- names ---------------------------------------------------------------------------------------

TEST(PlantParts, are_units_groups_and_patterns) {
  const Names names = {"utility",      "ups-0",           "ups-1",           "ups-10",
                       "ups-x",        "north/chiller-1", "north/chiller-2", "cdu-7/pump-1",
                       "cdu-7/pump-2", "cdu-8/pump-1"};
  const auto found = [&](const std::string& name) {
    Names out;
    for (const std::size_t i : find_plant_parts(name, names)) out.push_back(names[i]);
    return out;
  };
  EXPECT_THAT(found("utility"), ElementsAre("utility"));
  EXPECT_THAT(found("ups"), ElementsAre("ups-0", "ups-1", "ups-10"));
  EXPECT_EQ(find_plant_parts("x", {"x-1", "x"}),
            std::vector<std::size_t>{1});  // a unit comes first
  EXPECT_THAT(found("ups-1"), ElementsAre("ups-1"));
  EXPECT_THAT(found("north/chiller"), ElementsAre("north/chiller-1", "north/chiller-2"));
  EXPECT_THAT(found("cdu-7/pump"), ElementsAre("cdu-7/pump-1", "cdu-7/pump-2"));
  EXPECT_THAT(found("cdu-*/pump"), ElementsAre("cdu-7/pump-1", "cdu-7/pump-2", "cdu-8/pump-1"));
  EXPECT_THAT(found("*/*-2"), ElementsAre("north/chiller-2", "cdu-7/pump-2"));
  EXPECT_THAT(found("u*y"), ElementsAre("utility"));
  EXPECT_THAT(found("*p*p-1"),
              IsEmpty());  // a star does not pass a '/', nor does "cdu-7/pump-1" fit
  EXPECT_THAT(found("*/*p*p-1"), ElementsAre("cdu-7/pump-1", "cdu-8/pump-1"));
  for (const char* nobody :
       {"up", "ups-", "ups-2", "chiller", "north", "cdu", "cdu-7", "", "ups-1-"})
    EXPECT_THAT(found(nobody), IsEmpty()) << nobody;
}

TEST(PlantParts, that_nobody_knows_are_mistakes_with_a_suggestion) {
  const Names names = {"ups-0", "ups-1", "north/chiller-1"};
  const NearestName nearest = [](std::string_view word, const Names& candidates) {
    for (const std::string& c : candidates)
      if (!word.empty() && c.front() == word.front()) return c;
    return std::string();
  };
  const Faults faults = {{"x", exponential({"ups", "usp-0"}, 1h, 1h)},
                         {"y", exponential({"ups-1", "ups"}, 1h, 1h)}};
  const Script script = {{"a", {.at = 1h, .part = "hall/crah"}},
                         {"b", {.at = 1h, .action = PlantAction::people, .people = 1}},
                         {"c", {.at = 1h, .part = "north/chiller-1"}}};
  const Problems with = check_plant_faults(faults, script, names, nearest);
  ASSERT_EQ(with.size(), 3u);
  EXPECT_EQ(with[0].path, "faults.x.parts.1");
  EXPECT_EQ(with[0].what, "the plant has no \"usp-0\"");
  EXPECT_EQ(with[0].right, "did you mean \"ups\"?");
  EXPECT_EQ(with[1].path, "faults.y.parts.1");
  EXPECT_EQ(with[1].what, "\"ups-1\" is named by \"ups-1\" already");
  EXPECT_EQ(with[2].path, "script.a.part");
  EXPECT_EQ(with[2].right, "one of ups, north/chiller, or one unit of it by its number");
  EXPECT_EQ(check_plant_faults(faults, script, names)[0].right, with[2].right);
  EXPECT_THAT(check_plant_faults({}, script, {})[0].right, HasSubstr("describe them first"));
  EXPECT_THAT(check_plant_faults({{"x", exponential({"ups"}, 1h, 1h)}}, {}, names), IsEmpty());
}

}  // namespace
}  // namespace trainyard::models
