#include <gmock/gmock.h>
#include <sys/wait.h>

#include <sys/resource.h>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "analysis/run_reader.hpp"
#include "analysis/run_writer.hpp"
#include "analysis/sha256.hpp"
#include "sim/check.hpp"
#include "tests/analysis/sample_run.hpp"

namespace trainyard::analysis {
namespace {

using namespace test;
using sim::Phase;
using testing::ElementsAre;
using testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const RunFileError& error) {
    return error.what();
  }
  return "no error";
}

TEST(RunFile, ComesBackAsItWasWritten) {
  TemporaryFolder folder;
  const std::string path = folder / "run.h5";
  RunWriter writer(path, info_of({}));
  const auto failed = writer.kind("gpu failed", "");
  const auto saved = writer.kind("saved", "B");
  EXPECT_EQ(writer.kind("gpu failed", ""), failed);
  const auto gpu = writer.subject("node-17/gpu-3");
  const auto power = writer.series("cluster_power", "W", "power drawn by all servers");
  const auto why = writer.event(Time(Duration(5)), Phase::failure, failed, gpu, {}, 0.0);
  writer.begin();
  const auto late = writer.subject("jöb");  // names may come later
  writer.event(Time(Duration(7)), Phase::decision, saved, late, why, 1.5);
  writer.sample(power, Time(Duration(5)), 1e6);
  writer.sample(power, Time(Duration(9)), 2e6);
  Ending ending = ending_of({});
  writer.close(ending);

  const RunReader run(path);
  EXPECT_EQ(run.state(), RunState::complete);
  EXPECT_EQ(run.notice(), std::nullopt);
  EXPECT_EQ(*run.attribute("seed"), Value(std::uint64_t{1}));
  EXPECT_EQ(run.text("scenario"), info_of({}).scenario);
  EXPECT_EQ(run.text("scenario_sha256"), sha256(info_of({}).scenario));
  EXPECT_EQ(run.text("Conventions"), "CF-1.8");
  EXPECT_EQ(*run.attribute("simulated_duration_ns"), Value(std::int64_t{54} * 86'400'000'000'000));
  EXPECT_THAT(run.kinds(), ElementsAre(Kind{"gpu failed", ""}, Kind{"saved", "B"}));
  EXPECT_THAT(run.subjects(), ElementsAre("node-17/gpu-3", "jöb"));
  EXPECT_THAT(run.events(),
              ElementsAre(EventRow{5, -1, 0.0, 0, 0, 0}, EventRow{7, 0, 1.5, 1, 1, 3}));
  EXPECT_THAT(run.series_names(), ElementsAre("cluster_power"));
  EXPECT_EQ(run.series("cluster_power"),
            (Series{"cluster_power", "W", "power drawn by all servers", {5, 9}, {1e6, 2e6}}));
  std::vector<std::string> paths;
  for (const Table& table : ending.tables) paths.push_back(table.path);
  EXPECT_THAT(paths, testing::IsSupersetOf({"jobs/llm/ledger", "jobs/llm/link_loads",
                                            "jobs/llm/interruptions", "fabric/links"}));
  EXPECT_THAT(run.table_paths(), testing::UnorderedElementsAreArray(paths));
  for (const Table& table : ending.tables) {
    Table read = run.table(table.path);
    EXPECT_EQ(read.description, table.description);
    EXPECT_EQ(read.columns, table.columns);
    for (const Attribute& a : table.attributes) EXPECT_EQ(*read.attribute(a.name), a.value);
  }
  EXPECT_THAT(run.summary(), testing::UnorderedElementsAreArray(ending.summary));
}

// The same calls into a recorder that keeps everything in memory.
TEST(RunFile, AgreesWithTheRecorderInMemory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    TemporaryFolder folder;
    const SampleRun sample{.seed = seed, .events = 300, .flush_every = seed * 7};
    write_sample(folder / "run.h5", sample);
    sim::MemoryRecorder memory;
    record(
        memory, sample, [] {}, [] {});
    const RunReader run(folder / "run.h5");
    EXPECT_EQ(run.subjects(), memory.subjects());
    ASSERT_EQ(run.kinds().size(), memory.kinds().size());
    for (std::size_t i = 0; i < run.kinds().size(); ++i)
      EXPECT_EQ(run.kinds()[i], (Kind{memory.kinds()[i].name, memory.kinds()[i].unit_of_value}));
    std::vector<EventRow> rows;
    for (const auto& e : memory.events())
      rows.push_back({e.when.time_since_epoch().count(),
                      e.cause.is_valid() ? static_cast<std::int64_t>(e.cause.index()) : -1, e.value,
                      static_cast<std::int32_t>(e.kind.index()),
                      static_cast<std::int32_t>(e.subject.index()),
                      static_cast<std::uint8_t>(e.phase)});
    EXPECT_EQ(run.events(), rows);
    std::vector<Series> series;
    for (const auto& s : memory.all_series())
      series.push_back({s.name, s.units, s.long_name, {}, {}});
    for (const auto& s : memory.samples()) {
      series[s.series.index()].time_ns.push_back(s.when.time_since_epoch().count());
      series[s.series.index()].value.push_back(s.value);
    }
    for (const Series& s : series) EXPECT_EQ(run.series(s.name), s);
  }
}

TEST(RunFile, HoldsManyChunks) {
  TemporaryFolder folder;
  const SampleRun sample{
      .seed = 3, .events = 40'000, .flush_every = 7'001};  // 2.4 chunks, flushed at odd places
  write_sample(folder / "run.h5", sample);
  const RunReader run(folder / "run.h5");
  const auto all = run.events();
  ASSERT_EQ(all.size(), 40'000u);
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_EQ(all[i].time_ns, static_cast<std::int64_t>(i) * 1'000'000'007);
  const auto part = run.events(16'380, 10);  // across the border of a chunk
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 16'380, all.begin() + 16'390));
  EXPECT_TRUE(run.events(40'000, 10).empty());
  EXPECT_EQ(run.events(39'999, 10).size(), 1u);
}

TEST(RunFile, KeepsALargeScenario) {
  TemporaryFolder folder;
  RunInfo info = info_of({});
  info.scenario = std::string(1 << 20, 'x');  // an HDF5 object header holds 64 KiB
  RunWriter writer(folder / "run.h5", info);
  writer.close({});
  EXPECT_EQ(RunReader(folder / "run.h5").text("scenario"), info.scenario);
}

TEST(RunFile, CutsALongNameAtACharacter) {
  TemporaryFolder folder;
  RunWriter writer(folder / "run.h5", info_of({}));
  const std::string exact(160, 'a');
  writer.subject(exact);
  writer.subject(exact + "b");
  writer.subject(std::string(159, 'a') + "ö");  // two bytes, one too many
  writer.close({});
  EXPECT_THAT(RunReader(folder / "run.h5").subjects(),
              ElementsAre(exact, exact, std::string(159, 'a')));
}

TEST(RunFile, WritesALateSeriesAtTheEnd) {
  TemporaryFolder folder;
  RunWriter writer(folder / "run.h5", info_of({}));
  writer.begin();
  const auto late = writer.series("late", "1", "came after begin");
  writer.sample(late, Time(Duration(1)), 2.0);
  writer.flush();
  EXPECT_TRUE(RunReader(folder / "run.h5").series_names().empty());
  writer.close({});
  EXPECT_EQ(RunReader(folder / "run.h5").series("late").value, std::vector{2.0});
}

TEST(RunFile, IsTheSameContentTwice) {
  TemporaryFolder folder;
  write_sample(folder / "a.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));  // HDF5 notes whole seconds
  write_sample(folder / "b.h5");
  EXPECT_EQ(bytes_of(folder / "a.h5"), bytes_of(folder / "b.h5"));
  write_sample(folder / "c.h5",
               {.flush_every = 33});  // flushes follow the wall clock in a real run
  const RunReader a(folder / "a.h5"), c(folder / "c.h5");
  EXPECT_EQ(a.attributes(), c.attributes());
  EXPECT_EQ(a.events(), c.events());
  EXPECT_EQ(a.kinds(), c.kinds());
  EXPECT_EQ(a.subjects(), c.subjects());
  for (const std::string& name : a.series_names()) EXPECT_EQ(a.series(name), c.series(name));
  for (const std::string& path : a.table_paths()) EXPECT_EQ(a.table(path), c.table(path));
  EXPECT_EQ(a.summary(), c.summary());
}

TEST(RunFile, LeftWithoutCloseSaysRunningAndHoldsEverything) {
  TemporaryFolder folder;
  {
    RunWriter writer(folder / "run.h5", info_of({}));
    record(writer, {.events = 123, .flush_every = 100});
  }
  const RunReader run(folder / "run.h5");
  EXPECT_EQ(run.state(), RunState::running);
  EXPECT_THAT(run.notice().value_or(""), HasSubstr("did not finish"));
  EXPECT_EQ(run.event_count(), 123u);
  EXPECT_TRUE(run.summary().empty());
}

TEST(RunFile, KeepsTheStateOfItsEnd) {
  TemporaryFolder folder;
  RunWriter writer(folder / "run.h5", info_of({}));
  Ending ending;
  ending.state = RunState::failed;
  ending.failure = "job llm waits for 8 GPUs that nobody repairs";
  writer.close(ending);
  const RunReader run(folder / "run.h5");
  EXPECT_EQ(run.state(), RunState::failed);
  EXPECT_EQ(run.text("failure"), ending.failure);
}

TEST(RunFile, ReplacesARunFileOnlyWhenTheNewOneBegins) {
  TemporaryFolder folder;
  write_sample(folder / "run.h5", {.seed = 1, .events = 10});
  RunWriter writer(folder / "run.h5", info_of({.seed = 2}));
  EXPECT_EQ(RunReader(folder / "run.h5").event_count(), 10u);
  writer.begin();
  EXPECT_EQ(RunReader(folder / "run.h5").event_count(), 0u);
  writer.close({});
  EXPECT_EQ(*RunReader(folder / "run.h5").attribute("seed"), Value(std::uint64_t{2}));
  EXPECT_FALSE(std::filesystem::exists(folder / "run.h5.part"));
}

TEST(RunFile, RefusesToReplaceSomethingElse) {
  TemporaryFolder folder;
  std::ofstream(folder / "thesis.txt") << "years of work";
  const auto write_to = [](const std::string& path) {
    return error_of([&] { RunWriter writer(path, RunInfo{}); });
  };
  EXPECT_THAT(write_to(folder / "thesis.txt"), HasSubstr("not a readable run file"));
  EXPECT_EQ(bytes_of(folder / "thesis.txt"), "years of work");
  EXPECT_THAT(write_to("/dev/null"), HasSubstr("it is not a file"));
  EXPECT_THAT(write_to(folder / "no/such/folder.h5"), HasSubstr("No such file or directory"));
}

TEST(RunFile, SaysWhatIsWrongWithAFileThatIsNone) {
  TemporaryFolder folder;
  std::ofstream(folder / "text.h5") << "this is text, not HDF5";
  std::ofstream(folder / "empty.h5");
  const auto open = [](const std::string& path) { return error_of([&] { RunReader run(path); }); };
  EXPECT_THAT(open(folder / "none.h5"), HasSubstr("there is no such file"));
  EXPECT_THAT(open(folder / "text.h5"), HasSubstr("it is not an HDF5 file"));
  EXPECT_THAT(open(folder / "empty.h5"), HasSubstr("it is not an HDF5 file"));
  EXPECT_THAT(open(folder / ""), HasSubstr("it is not a file"));
}

TEST(RunFile, ReportsAFullDisk) {
  TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);  // writing past the limit is then an error, as on a full disk
    const rlimit limit{200'000, 200'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int result = 1;
    try {
      RunWriter writer(folder / "run.h5", info_of({}));
      record(writer, {.events = 200'000, .flush_every = 10'000});
    } catch (const RunFileError& error) {
      result = std::string(error.what()).find("File too large") != std::string::npos ? 0 : 2;
    }
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(RunFile, ChecksOurOwnMistakes) {
  TemporaryFolder folder;
  RunWriter writer(folder / "run.h5", info_of({}));
  const auto kind = writer.kind("k", "");
  const auto subject = writer.subject("s");
  EXPECT_THROW(writer.event({}, Phase::failure, sim::KindId(1), subject, {}, 0), CheckFailed);
  EXPECT_THROW(writer.event({}, Phase::failure, kind, subject, sim::EventIndex(0), 0), CheckFailed);
  EXPECT_THROW(writer.sample(sim::SeriesId(0), {}, 0), CheckFailed);
  EXPECT_THROW(writer.close({.state = RunState::running}), CheckFailed);
}

/// A second process writes, step by step as it is told; this one reads in between.
TEST(RunFile, CanBeReadWhileItGrows) {
  TemporaryFolder folder;
  const std::string path = folder / "run.h5";
  int go[2], done[2];
  ASSERT_EQ(pipe(go) + pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    char c;
    RunWriter writer(path, info_of({}));
    const auto kind = writer.kind("k", "");
    const auto power = writer.series("power", "W", "");
    writer.begin();
    for (int round = 0; round < 5; ++round) {
      if (write(done[1], "d", 1) != 1 || read(go[0], &c, 1) != 1) _exit(1);
      const auto subject = writer.subject("node-" + std::to_string(round));
      for (int i = 0; i < 10'000; ++i) {
        writer.event(Time(Duration(round)), Phase::failure, kind, subject, {}, i);
        writer.sample(power, Time(Duration(round)), i);
      }
      writer.flush();
    }
    if (write(done[1], "d", 1) != 1 || read(go[0], &c, 1) != 1) _exit(1);
    writer.close({});
    if (write(done[1], "d", 1) != 1) _exit(1);
    _exit(0);
  }
  char c;
  ASSERT_EQ(read(done[0], &c, 1), 1);
  RunReader held_open(path);  // refreshed in every round
  for (std::size_t round = 0; round <= 5; ++round) {
    const RunReader opened_now(path);
    for (const RunReader* run : std::initializer_list<const RunReader*>{&opened_now, &held_open}) {
      EXPECT_EQ(run->state(), RunState::running);
      const auto events = run->events();
      ASSERT_EQ(events.size(), 10'000 * round);
      if (round > 0) {
        EXPECT_EQ(run->subjects().at(static_cast<std::size_t>(events.back().subject)),
                  "node-" + std::to_string(round - 1));
      }
      EXPECT_EQ(run->series("power").value.size(), 10'000 * round);
    }
    ASSERT_EQ(write(go[1], "g", 1), 1);
    ASSERT_EQ(read(done[0], &c, 1), 1);
    held_open.refresh();
  }
  EXPECT_EQ(held_open.state(), RunState::complete);
  EXPECT_EQ(held_open.event_count(), 50'000u);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Names, AreMadeSafeForAPath) {
  EXPECT_EQ(path_component("llm-70b"), "llm-70b");
  EXPECT_EQ(path_component("a/b"), "a%2Fb");
  EXPECT_EQ(path_component(".."), "%2E.");
  EXPECT_EQ(path_component("a.b"), "a.b");
  EXPECT_EQ(path_component(""), "%");
}

TEST(Names, AreValidUtf8AfterCleaning) {
  EXPECT_EQ(clean_text("jöb €"), "jöb €");
  EXPECT_EQ(clean_text("a\xff\x80z"), "a??z");
  EXPECT_EQ(clean_text("\xc3"), "?");  // cut in the middle
  EXPECT_EQ(clean_text("\xe2\x82"), "??");
  EXPECT_EQ(clean_text("\xed\xa0\x80"), "???");  // a surrogate
  EXPECT_EQ(clean_text("\xc0\xaf"), "??");       // '/' in a longer form than needed
  EXPECT_EQ(clean_text("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");  // U+10FFFF, the last
  EXPECT_EQ(clean_text("\xf4\x90\x80\x80"), "????");              // one more
}

}  // namespace
}  // namespace trainyard::analysis
