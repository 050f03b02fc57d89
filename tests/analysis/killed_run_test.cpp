#include <fcntl.h>
#include <gmock/gmock.h>
#include <hdf5.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "analysis/repair.hpp"
#include "analysis/run_reader.hpp"
#include "tests/analysis/counted_run.hpp"

namespace trainyard::analysis {
namespace {

using namespace test;
using testing::HasSubstr;

/// Writes for ever in a second process and kills it a moment after one of its first flushes.
/// Returns how many events the last finished flush had made safe.
std::size_t write_and_kill(const std::string& path, std::mt19937_64& random) {
  int flushed[2];
  EXPECT_EQ(pipe(flushed), 0);
  const pid_t child = fork();
  if (child == 0) {
    RunWriter writer(path, info_of({}));
    CountedRun run(writer, 30);
    writer.begin();
    for (std::uint64_t n = 0;;) {
      if (write(flushed[1], &n, sizeof n) != sizeof n) _exit(1);
      n = run.record(3'000);
      writer.flush();
    }
  }
  close(flushed[1]);
  std::uint64_t n = 0, last = 0;
  for (std::uint64_t flushes = 1 + random() % 8; flushes > 0; --flushes) {
    EXPECT_EQ(read(flushed[0], &n, sizeof n), static_cast<ssize_t>(sizeof n));
    last = n;
  }
  usleep(static_cast<useconds_t>(random() % 5'000));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  while (read(flushed[0], &n, sizeof n) == sizeof n) last = n;
  close(flushed[0]);
  return last;
}

bool opens_plainly(const std::string& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file >= 0) H5Fclose(file);
  return file >= 0;
}

/// RUN_FILE_KILLS=2000 for a long night.
std::uint64_t kills() {
  const char* text = std::getenv("RUN_FILE_KILLS");
  return text == nullptr ? 32 : std::strtoull(text, nullptr, 10);
}

TEST(KilledRun, KeepsEverythingUpToTheLastFlush) {
  TemporaryFolder folder;
  std::size_t most = 0;
  for (std::uint64_t seed = 1; seed <= kills(); ++seed) try {
      SCOPED_TRACE(seed);
      std::mt19937_64 random(seed);
      const std::string path = folder / "run.h5";
      const std::size_t safe = write_and_kill(path, random);
      most = std::max(most, safe);
      std::size_t before = 0;
      {
        const RunReader run(path);
        EXPECT_FALSE(run.is_finished());
        EXPECT_THAT(run.notice().value_or(""), HasSubstr("did not finish"));
        expect_whole(run, safe);
        before = run.event_count();
      }
      EXPECT_FALSE(opens_plainly(path));

      const RepairReport report = repair(path);
      EXPECT_EQ(report.way, RepairReport::Way::marks) << report.text;
      EXPECT_EQ(report.events, before);
      EXPECT_TRUE(opens_plainly(path));
      const RunReader run(path);
      EXPECT_EQ(run.state(), RunState::failed);
      EXPECT_THAT(run.notice().value_or(""), HasSubstr("repaired"));
      expect_whole(run, safe);
      std::filesystem::remove(path);
    } catch (const RunFileError& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
      std::filesystem::remove(folder / "run.h5");
    }
  EXPECT_GT(most, 10'000u) << "the trials should include some that were killed late";
}

TEST(Repair, LeavesAFinishedRunAlone) {
  TemporaryFolder folder;
  write_sample(folder / "run.h5");
  const auto before = std::filesystem::last_write_time(folder / "run.h5");
  EXPECT_EQ(repair(folder / "run.h5").way, RepairReport::Way::not_needed);
  EXPECT_EQ(std::filesystem::last_write_time(folder / "run.h5"), before);
}

TEST(Repair, RefusesWhatIsNoRunFile) {
  TemporaryFolder folder;
  std::ofstream(folder / "text.h5") << "text";
  EXPECT_THROW(repair(folder / "text.h5"), RunFileError);
  EXPECT_THROW(repair(folder / "none.h5"), RunFileError);
}

/// Damages one chunk of events of a killed run: the marks can be cleared, the events not all be
/// read.
TEST(Repair, SavesWhatCanBeReadOfADamagedFile) {
  TemporaryFolder folder;
  const std::string path = folder / "run.h5";
  const pid_t child = fork();
  if (child == 0) {
    RunWriter writer(path, info_of({}));
    record(writer, {.events = 60'000, .flush_every = 16'384});
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  haddr_t address = 0;
  hsize_t size = 0;
  {
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, H5P_DEFAULT);
    const hid_t events = H5Dopen2(file, layout::events, H5P_DEFAULT);
    const hid_t space = H5Dget_space(events);
    hsize_t start = 0;
    ASSERT_GE(H5Dget_chunk_info(events, space, 2, &start, nullptr, &address, &size), 0);
    ASSERT_EQ(start, 2u * 16'384u);
    H5Sclose(space);
    H5Dclose(events);
    H5Fclose(file);
  }
  std::fstream damage(path, std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(static_cast<std::streamoff>(address + size / 2));
  damage.write("damaged here", 12);
  damage.close();

  const RepairReport report = repair(path);
  EXPECT_EQ(report.way, RepairReport::Way::salvage) << report.text;
  EXPECT_EQ(report.events, 2u * 16'384u);  // the third chunk is the damaged one
  EXPECT_TRUE(opens_plainly(path));
  const RunReader run(path);
  EXPECT_EQ(run.state(), RunState::failed);
  EXPECT_EQ(run.events().size(), 2u * 16'384u);
  EXPECT_GT(run.series("cluster_power").value.size(),
            24'000u);  // about half of three flushes of 16,384
}

}  // namespace
}  // namespace trainyard::analysis
