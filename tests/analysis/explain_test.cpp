#include "analysis/explain.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/analysis/explained_run.hpp"

/// The figures come from the comment of explained_run.hpp, added by hand. A second is a GPU-hour.
namespace trainyard::analysis {
namespace {

using test::ExplainedRun;
using test::TemporaryFolder;
using test::whole_s;
using test::write_explained;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Explained {
  explicit Explained(const ExplainedRun& what = {}) : Explained(what, [](Ending&) {}) {}
  template <class Change>
  Explained(const ExplainedRun& what, Change change) {
    const std::string path = folder / "run.h5";
    write_explained(path, what, change);
    run = std::make_unique<RunReader>(path);
    log = std::make_unique<CauseLog>(*run);
    x = explain(*run, what.job, *log);
  }
  TemporaryFolder folder;
  std::unique_ptr<RunReader> run;
  std::unique_ptr<CauseLog> log;
  Explanation x;
};

const Lever* lever(const Explanation& x, const std::string& what) {
  for (const Lever& l : x.levers)
    if (l.what.find(what) != std::string::npos) return &l;
  return nullptr;
}

/// Seconds that a lever saves; -1: there is none of that name.
double saved(const Explanation& x, const std::string& what) {
  const Lever* found = lever(x, what);
  return found ? found->saved_s : -1;
}

Table& table_of(Ending& ending, const std::string& end_of_path) {
  for (Table& t : ending.tables)
    if (t.path.ends_with(end_of_path)) return t;
  throw std::runtime_error("no table " + end_of_path);
}

void set(Ending& ending, const std::string& table, const char* column, std::size_t row,
         std::int64_t value) {
  for (Column& c : table_of(ending, table).columns)
    if (c.name == column) std::get<std::vector<std::int64_t>>(c.cells).at(row) = value;
}

TEST(Explain, every_second_is_in_one_place) {
  const Explained e;
  EXPECT_THAT(e.x.notes, IsEmpty());
  EXPECT_DOUBLE_EQ(e.x.queued_s, 100);
  EXPECT_DOUBLE_EQ(e.x.wall_s, 6030);
  EXPECT_DOUBLE_EQ(e.x.training_s, 5400);
  EXPECT_DOUBLE_EQ(e.x.kept_s, 3200);
  EXPECT_DOUBLE_EQ(e.x.goodput, 3200.0 / 6030);
  std::vector<std::pair<std::string, double>> outside;
  double shares = e.x.goodput;
  for (const TimeShare& t : e.x.outside) {
    outside.emplace_back(t.name, t.s);
    shares += t.share;
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  using P = std::pair<std::string, double>;
  EXPECT_THAT(outside, ElementsAre(P("lost work", 2200), P("detection", 310), P("restarts", 280),
                                   P("saves", 20), P("waiting for servers", 20)));
}

TEST(Explain, classes_are_ranked_by_what_they_cost) {
  const Explained e;
  ASSERT_EQ(e.x.classes.size(), 3u);
  const ClassCost& hang = e.x.classes[0];  // 300 + 1,000 + 40 + 10
  EXPECT_EQ(hang.cls + ' ' + hang.effect, "server-hang hang");
  EXPECT_DOUBLE_EQ(hang.total_s(), 1350);
  const ClassCost& crash = e.x.classes[1];
  EXPECT_EQ(crash.cls, "gpu-crash");
  EXPECT_DOUBLE_EQ(crash.detection_s, 10);
  EXPECT_DOUBLE_EQ(crash.lost_s, 800);
  EXPECT_DOUBLE_EQ(crash.restart_s, 5 + 15 + 40 + 10);
  EXPECT_DOUBLE_EQ(crash.waiting_s, 20);
  EXPECT_DOUBLE_EQ(crash.total_s(), 900);
  const ClassCost& slow = e.x.classes[2];  // found while it trained: detection costs nothing itself
  EXPECT_DOUBLE_EQ(slow.detection_s, 0);
  EXPECT_DOUBLE_EQ(slow.slow_s, 320 * 0.25);
  EXPECT_DOUBLE_EQ(slow.total_s(), 400 + 60 + 80);
  EXPECT_DOUBLE_EQ(e.x.gpu_hours(slow.total_s()), 540);
  ASSERT_EQ(e.x.offenders.size(), 1u);
  EXPECT_EQ(e.x.offenders[0].count, 3);
  EXPECT_DOUBLE_EQ(e.x.offenders[0].s, 900 + 540 + 1350);
}

TEST(Explain, a_server_that_failed_once_is_no_repeat_offender) {
  const Explained e({}, [](Ending& ending) {
    for (Column& c : table_of(ending, "/interruptions").columns)
      if (c.name == "server") c.cells = std::vector<std::string>{"node-1", "node-2", "node-2"};
  });
  ASSERT_EQ(e.x.offenders.size(), 1u);
  EXPECT_EQ(e.x.offenders[0].server, "node-2");
  EXPECT_EQ(e.x.offenders[0].count, 2);
  EXPECT_EQ(lever(e.x, "take servers out"), nullptr);  // two are not three
}

TEST(Explain, slower_steps_have_a_cause_and_a_part) {
  const Explained e;
  ASSERT_EQ(e.x.slow_steps.size(), 2u);
  const SlowSteps& cable = e.x.slow_steps[0];
  EXPECT_EQ(cable.profile, 2);
  EXPECT_DOUBLE_EQ(cable.s, 800 * 0.25);
  EXPECT_EQ(cable.part, "exposed_dp");
  EXPECT_NEAR(cable.part_s, 0.25, 1e-12);
  EXPECT_EQ(cable.cause, "leaf-0 -> spine-1: link degraded");
  EXPECT_EQ(cable.first_ns, 5130 * whole_s);
  const SlowSteps& member = e.x.slow_steps[1];
  EXPECT_DOUBLE_EQ(member.s, 320 * 0.25);
  EXPECT_EQ(member.part, "slow");
  EXPECT_NEAR(member.part_s, 0.24, 1e-12);
  EXPECT_EQ(member.cause, "node-3/gpu-1 slow (gpu-slow)");
}

TEST(Explain, steps_that_power_slows_name_the_way_from_its_fault) {
  ExplainedRun what;
  what.is_throttled = true;
  const Explained e(what);
  ASSERT_EQ(e.x.slow_steps.size(), 2u);
  EXPECT_EQ(e.x.slow_steps[0].cause,
            "ups-a: power node failed -> GPU speed 0.8 of full speed -> step time 1.25 s");
}

TEST(Explain, a_step_time_that_the_log_tells_of_another_step_is_no_cause) {
  ExplainedRun what;
  what.is_throttled = true;
  const Explained e(
      what, [](Ending& ending) { set(ending, "/step_profiles", "step_ns", 2, 1'300'000'000); });
  EXPECT_EQ(e.x.slow_steps[0].cause, "not told by the log");
}

TEST(Explain, a_wait_for_data_counts_while_training_only_and_names_its_limit) {
  const Explained e;
  ASSERT_EQ(e.x.data_waits.size(), 2u);
  EXPECT_EQ(e.x.data_waits[0].limit, "read bandwidth of scratch; neighbour etl takes 71 %");
  EXPECT_DOUBLE_EQ(e.x.data_waits[0].s, 200);          // 0.2 of 1,000 s
  EXPECT_DOUBLE_EQ(e.x.data_waits[1].training_s, 40);  // 3,500 to 3,520 and 3,580 to 3,600
  EXPECT_DOUBLE_EQ(e.x.data_waits[1].s, 20);
  EXPECT_DOUBLE_EQ(e.x.data_wait_s, 220);
}

TEST(Explain, waiting_for_data_in_the_profiles_is_used_without_the_table) {
  ExplainedRun what;
  what.has_data_waits = false;
  const Explained e(
      what, [](Ending& ending) { set(ending, "/step_profiles", "data_stall_ns", 2, 250'000'000); });
  ASSERT_EQ(e.x.data_waits.size(), 1u);
  EXPECT_DOUBLE_EQ(e.x.data_waits[0].s, 800 * 0.25);
  EXPECT_THAT(e.x.data_waits[0].limit, HasSubstr("no table data_waits"));
  ASSERT_EQ(e.x.slow_steps.size(), 1u);  // the same time is not counted as slow steps, too
  EXPECT_EQ(e.x.slow_steps[0].profile, 1);
}

TEST(Explain, saves_stores_and_repairs_are_added_up) {
  const Explained e;
  ASSERT_EQ(e.x.saves.size(), 1u);
  const SaveCost& s = e.x.saves[0];
  EXPECT_EQ(s.level, "scratch");
  EXPECT_EQ(s.count, 2);
  EXPECT_EQ(s.late, 1);
  EXPECT_DOUBLE_EQ(s.stall_s, 20);
  EXPECT_DOUBLE_EQ(s.save_s, 30);
  EXPECT_DOUBLE_EQ(s.drain_s, 20);
  EXPECT_DOUBLE_EQ(s.interval_s, 5400.0 / 2);
  ASSERT_EQ(e.x.stores.size(), 2u);
  EXPECT_TRUE(e.x.stores[0].is_neighbour);
  EXPECT_DOUBLE_EQ(e.x.stores[1].bytes, 2e12);
  EXPECT_DOUBLE_EQ(e.x.stores[1].s, 60);
  EXPECT_EQ(e.x.repairs.count, 2);
  EXPECT_DOUBLE_EQ(e.x.repairs.waited_s, 115);
}

TEST(Explain, levers_by_hand) {
  const Explained e;
  // Lost work beyond the drain of 20 s: 780 + 380 + 980 = 2,140 s; stalls 20 s.
  const double V = 2140, S = 20;
  EXPECT_THAT(saved(e.x, "save to scratch"), DoubleNear(S + V - 2 * std::sqrt(S * V), 1e-9));
  EXPECT_THAT(e.x.saves[0].best_interval_s, DoubleNear(2700 * std::sqrt(S / V), 1e-9));
  EXPECT_THAT(
      lever(e.x, "save to scratch")->assumption,
      HasSubstr("Young's sqrt(2 C M) from the same figures is 3 min 10 s"));  // C 10, M 1,800
  EXPECT_DOUBLE_EQ(saved(e.x, "stalls of saves"), 10);
  EXPECT_DOUBLE_EQ(saved(e.x, "find hangs"), 150);
  EXPECT_DOUBLE_EQ(saved(e.x, "find other failures"), 5);
  EXPECT_DOUBLE_EQ(saved(e.x, "find slow members"), 40);
  EXPECT_DOUBLE_EQ(saved(e.x, "start up"), 60);
  EXPECT_DOUBLE_EQ(saved(e.x, "load in half"), 15);
  EXPECT_DOUBLE_EQ(saved(e.x, "diagnose and replace"), 15);
  EXPECT_DOUBLE_EQ(saved(e.x, "spares enough"), 20);
  EXPECT_DOUBLE_EQ(saved(e.x, "crews enough"), 15);
  EXPECT_DOUBLE_EQ(saved(e.x, "take servers out"), 1350);  // the third interruption of node-3
  EXPECT_DOUBLE_EQ(saved(e.x, "half as many failures of class server-hang"), 675);
  EXPECT_DOUBLE_EQ(saved(e.x, "no slower steps for other reasons"), 200);
  EXPECT_DOUBLE_EQ(saved(e.x, "neighbour etl"), 200);
  EXPECT_DOUBLE_EQ(lever(e.x, "neighbour etl")->gpu_s / 3600, 180);  // the account holds no more
  EXPECT_EQ(lever(e.x, "corrupt"), nullptr);

  const Lever& out = *lever(e.x, "take servers out");
  EXPECT_NEAR(out.points, 100 * (3200.0 / (6030 - 1350) - 3200.0 / 6030), 1e-9);
  EXPECT_FALSE(out.in_steps);
  const Lever& data = *lever(e.x, "neighbour etl");
  EXPECT_TRUE(data.in_steps);
  EXPECT_NEAR(data.points, 100 * 200.0 / 6030, 1e-9);
  for (std::size_t i = 1; i < e.x.levers.size(); ++i)
    EXPECT_GE(e.x.levers[i - 1].saved_s, e.x.levers[i].saved_s);
}

TEST(Explain, corruption_that_is_found_sooner_voids_less_work) {
  const Explained e({}, [](Ending& ending) {
    for (Column& c : table_of(ending, "/interruptions").columns)
      if (c.name == "effect") c.cells = std::vector<std::string>{"crash", "corrupt", "hang"};
  });
  EXPECT_DOUBLE_EQ(saved(e.x, "corrupt"), 200);  // found after 400 s, 400 s lost
  // It does not follow the interval of saves: 780 + 980 s do.
  EXPECT_THAT(e.x.saves[0].best_interval_s, DoubleNear(2700 * std::sqrt(20.0 / 1760), 1e-9));
}

TEST(Explain, a_file_without_the_phases_gets_them_from_its_segments) {
  ExplainedRun old;
  old.has_new_columns = false;
  const Explained e(old), with_columns;
  EXPECT_EQ(e.x.notes.size(), 2u);
  EXPECT_DOUBLE_EQ(e.x.goodput, with_columns.x.goodput);
  for (std::size_t i = 0; i < 3; ++i) {
    const JobRows::Phases& a = e.x.rows.interruptions[i].phases;
    const JobRows::Phases& b = with_columns.x.rows.interruptions[i].phases;
    EXPECT_DOUBLE_EQ(a.detection_s, b.detection_s) << i;
    EXPECT_DOUBLE_EQ(a.waiting_s, b.waiting_s) << i;
    EXPECT_DOUBLE_EQ(a.restart_s(), b.restart_s()) << i;
    EXPECT_EQ(e.x.rows.interruptions[i].unit, "node-3");
  }
  EXPECT_DOUBLE_EQ(saved(e.x, "find failures"), 155);
}

TEST(Explain, says_when_the_summary_and_the_rows_differ) {
  const auto with = [](double goodput) {
    return Explained({}, [=](Ending& ending) { ending.summary[0].value = goodput; }).x.notes;
  };
  EXPECT_THAT(with(3200.0 / 6030 + 4e-4), IsEmpty());
  EXPECT_THAT(with(3200.0 / 6030 + 6e-4), ElementsAre(HasSubstr("the rows add up to 53.07 %")));
}

TEST(Explain, a_job_that_never_started_has_no_goodput_and_no_levers) {
  const Explained e({}, [](Ending& ending) {
    for (const char* name : {"/segments", "/interruptions", "/checkpoints", "/data_waits"}) {
      Table& t = table_of(ending, name);
      for (Column& c : t.columns) c = Column(c.name, c.units, c.long_name, c.type());
    }
    table_of(ending, "/segments")
        .add_row({std::int64_t{0}, 50 * whole_s, "queued", std::int64_t{0}, std::int64_t{0},
                  std::int64_t{0}});
    ending.summary.clear();
  });
  EXPECT_DOUBLE_EQ(e.x.queued_s, 50);
  EXPECT_DOUBLE_EQ(e.x.wall_s, 0);
  EXPECT_DOUBLE_EQ(e.x.goodput, 0);
  EXPECT_THAT(e.x.levers, IsEmpty());
}

TEST(Explain, names_of_jobs_are_as_people_wrote_them) {
  ExplainedRun what;
  what.job = "team/llm%";
  const Explained e(what);
  EXPECT_THAT(job_names(*e.run), ElementsAre("team/llm%"));
  EXPECT_DOUBLE_EQ(e.x.wall_s, 6030);
}

void expect_refused(const std::string& reason, void (*spoil)(Ending&)) {
  const TemporaryFolder folder;
  write_explained(folder / "run.h5", {}, spoil);
  const RunReader run(folder / "run.h5");
  const CauseLog log(run);
  try {
    explain(run, "llm", log);
    FAIL() << "not refused: " << reason;
  } catch (const RunFileError& error) {
    EXPECT_THAT(error.what(), HasSubstr(reason));
    EXPECT_THAT(error.what(), HasSubstr("run.h5"));
  }
}

TEST(Explain, refuses_tables_that_do_not_add_up) {
  expect_refused("row 1: it overlaps the row before",
                 [](Ending& e) { set(e, "/segments", "start_ns", 1, 100 * whole_s - 1); });
  expect_refused("row 2: it ends before it begins",
                 [](Ending& e) { set(e, "/segments", "end_ns", 2, 1); });
  expect_refused("no step profile 3", [](Ending& e) { set(e, "/segments", "profile", 2, 3); });
  expect_refused("no such event", [](Ending& e) { set(e, "/interruptions", "event", 1, 20); });
  expect_refused("detection_ns is negative",
                 [](Ending& e) { set(e, "/interruptions", "detection_ns", 1, -2); });
  expect_refused("it has no time", [](Ending& e) { set(e, "/interruptions", "time_ns", 0, -1); });
  expect_refused("share is not between", [](Ending& e) {
    for (Column& c : table_of(e, "/data_waits").columns)
      if (c.name == "share") c.cells = std::vector<double>{0.5, 1.5};
  });
  expect_refused("state is no text", [](Ending& e) {
    for (Column& c : table_of(e, "/segments").columns)
      if (c.name == "state") {
        c.cells = std::vector<std::int64_t>(c.size());
        c.units = "1";
      }
  });
}

// --- chains --------------------------------------------------------------------------------------

std::vector<std::int64_t> rows_of(const Chain& chain) {
  std::vector<std::int64_t> out;
  for (const ChainEvent& e : chain.events) out.push_back(e.event);
  return out;
}

TEST(CauseChain, goes_up_to_the_first_cause_and_down_until_training_goes_on) {
  const Explained e;
  const Chain hang = e.log->chain(12, 4930 * whole_s);
  EXPECT_THAT(rows_of(hang), ElementsAre(11, 12, 13, 14, 15, 16, 17));
  EXPECT_EQ(hang.events[hang.struck].subject, "node-3");
  EXPECT_EQ(hang.events[0].subject + ": " + hang.events[0].kind, "cdu-1: cooling lost");
  std::vector<int> depths;
  for (const ChainEvent& event : hang.events) depths.push_back(event.depth);
  EXPECT_THAT(depths, ElementsAre(0, 1, 2, 1, 1, 1, 3));
  EXPECT_EQ(hang.later, 1u);
  EXPECT_EQ(hang.last, "node-3: server back");
  EXPECT_EQ(hang.last_ns, 6000 * whole_s);
}

TEST(CauseChain, ends_at_the_instant_itself_and_not_a_nanosecond_before) {
  const Explained e;
  EXPECT_THAT(rows_of(e.log->chain(0, 2110 * whole_s)), ElementsAre(0, 1, 2, 3, 4, 6, 7));
  EXPECT_THAT(rows_of(e.log->chain(0, 2110 * whole_s - 1)), ElementsAre(0, 1, 2, 3, 4, 6));
  EXPECT_THAT(rows_of(e.log->chain(11, -1)), ElementsAre(11, 12, 13, 14, 15, 16, 17, 19));
}

TEST(CauseChain, of_no_event_is_empty_and_of_a_lone_one_is_itself) {
  const Explained e;
  EXPECT_THAT(e.log->chain(-1, -1).events, IsEmpty());
  EXPECT_THAT(rows_of(e.log->chain(18, -1)), ElementsAre(18));
  EXPECT_EQ(e.log->first_cause(7), 0);
  EXPECT_EQ(e.log->first_cause(-1), -1);
}

TEST(CauseChain, agrees_with_a_search_of_the_whole_log) {
  const TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::SampleRun sample;
    sample.seed = seed;
    test::write_sample(folder / "run.h5", sample);
    const RunReader run(folder / "run.h5");
    const CauseLog log(run);
    const auto events = run.events();
    std::vector<std::int64_t> root(events.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      root[i] = events[i].cause < 0 ? std::int64_t(i) : root[std::size_t(events[i].cause)];
    for (std::size_t i = 0; i < events.size(); i += 7) {
      std::vector<std::int64_t> slow;
      for (std::size_t j = 0; j < events.size(); ++j)
        if (root[j] == root[i]) slow.push_back(std::int64_t(j));
      EXPECT_EQ(rows_of(log.chain(std::int64_t(i), -1)), slow) << "event " << i;
    }
  }
}

// --- levers --------------------------------------------------------------------------------------

TEST(BestStretch, is_where_a_slow_search_finds_the_least) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> amount(0.1, 1000);
  for (int n = 0; n < 200; ++n) {
    const double S = amount(random), V = amount(random), low = amount(random) / 500;
    const double r = best_stretch(S, V, low, 50);
    for (double other = low; other <= 50; other += 0.01)
      ASSERT_LE(S / r + r * V, S / other + other * V + 1e-9) << S << ' ' << V << ' ' << low;
  }
}

TEST(BestStretch, stays_inside_its_bounds) {
  EXPECT_DOUBLE_EQ(best_stretch(1, 4, 0.1, 10), 0.5);
  EXPECT_DOUBLE_EQ(best_stretch(1, 4, 0.6, 10), 0.6);
  EXPECT_DOUBLE_EQ(best_stretch(4, 1, 0.1, 1.5), 1.5);
  EXPECT_DOUBLE_EQ(best_stretch(4, 0, 0.1, 10), 10);
  EXPECT_DOUBLE_EQ(best_stretch(4, 1, 3, 2), 3);  // a save that takes longer than the training
}

TEST(ChanceOfThree, is_the_tail_of_a_poisson_law) {
  // One interruption a server: 1 - (1 + 1 + 1/2)/e = 0.0803 of them have three or more.
  EXPECT_NEAR(chance_of_three(1000, 1000), 80.3, 0.05);
  EXPECT_DOUBLE_EQ(chance_of_three(5, 0), 0);
}

TEST(Levers, never_promise_more_than_there_is) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto up_to = [&](double most) {
      return std::uniform_real_distribution<double>(0, most)(random);
    };
    JobRows job;
    job.gpus = 8;
    LeverInput in;
    in.job = &job;
    const char* const effects[] = {"crash", "hang", "slow", "corrupt", "maintenance", ""};
    for (std::size_t n = 0; n < 1 + seed % 12; ++n) {
      JobRows::Interruption i;
      i.server = "node-" + std::to_string(random() % 3);
      i.effect = effects[random() % 6];
      i.phases = {up_to(500), up_to(50), up_to(100), up_to(900), up_to(300), up_to(90), 0};
      i.lost_s = up_to(3000);
      job.interruptions.push_back(i);
    }
    // Accounts may hold less than the rows say: they are the truth.
    in.training_s = up_to(20000);
    in.lost_s = std::min(in.training_s, up_to(9000));
    in.kept_s = in.training_s - in.lost_s;
    in.saves_s = up_to(400);
    in.detection_s = up_to(3000);
    in.restarts_s = up_to(2000);
    in.waiting_s = up_to(4000);
    in.wall_s = in.training_s + in.saves_s + in.detection_s + in.restarts_s + in.waiting_s;
    SaveCost level;
    level.count = 10;
    level.stall_s = level.scheduled_stall_s = in.saves_s;
    level.interval_s = in.training_s / 10;
    level.save_s = up_to(200);
    in.saves.push_back(level);
    in.worst_class = "any";
    in.worst_class_s = up_to(20000);
    std::vector<std::string> notes;
    const double lost = in.wall_s - in.kept_s;
    for (const Lever& l : levers(in, notes)) {
      EXPECT_GT(l.saved_s, 0) << l.what;
      EXPECT_LE(l.saved_s, lost * (1 + 1e-12)) << l.what;
      EXPECT_LE(l.points, 100 * l.saved_s / in.wall_s + 1e-9) << l.what;
      EXPECT_LE(100 * in.kept_s / in.wall_s + l.points, 100 + 1e-9) << l.what;
      if (l.what.starts_with("spares")) {
        EXPECT_LE(l.saved_s, in.waiting_s);
      }
      if (l.what.starts_with("start up")) {
        EXPECT_LE(l.saved_s, in.restarts_s);
      }
      if (l.what.starts_with("find")) {
        EXPECT_LE(l.saved_s, std::max(in.detection_s, in.lost_s));
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::analysis
