#include <gmock/gmock.h>
#include <hdf5.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "analysis/export_csv.hpp"
#include "analysis/link_loads.hpp"
#include "analysis/run_reader.hpp"
#include "tests/analysis/sample_run.hpp"

/// Files that lie. They are read in a second process with a limit on time, so that a crash or a
/// hang, of ours or of libhdf5, is a failed test and not the end of it.
namespace trainyard::analysis {
namespace {

using namespace test;
using testing::HasSubstr;

enum class Outcome { read, refused, crashed };

/// Everything a reader can ask for.
void read_everything(const std::string& path) {
  const RunReader run(path);
  run.events();
  run.kinds();
  run.subjects();
  run.summary();
  run.notice();
  for (const std::string& name : run.series_names()) run.series(name);
  for (const std::string& table : run.table_paths()) run.table(table);
  link_loads(run, "jobs/llm");
}

Outcome outcome_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RunFileError&) {
    return Outcome::refused;
  } catch (...) {
    return Outcome::crashed;
  }
  return Outcome::read;
}

/// Reads the file of each seed. A second process does, and a third from the next seed on if that
/// one dies or hangs.
std::vector<Outcome> outcomes_of(std::uint64_t seeds,
                                 const std::function<void(std::uint64_t)>& read_file_of) {
  std::vector<Outcome> out;
  while (out.size() < seeds) {
    int results[2];
    if (pipe(results) != 0) throw std::runtime_error("no pipe");
    const pid_t child = fork();
    if (child == 0) {
      for (std::uint64_t seed = out.size() + 1; seed <= seeds; ++seed) {
        alarm(20);
        const Outcome outcome = outcome_of([&] { read_file_of(seed); });
        if (write(results[1], &outcome, sizeof outcome) != sizeof outcome) _exit(1);
      }
      _exit(0);
    }
    close(results[1]);
    Outcome outcome;
    while (::read(results[0], &outcome, sizeof outcome) == sizeof outcome) out.push_back(outcome);
    close(results[0]);
    waitpid(child, nullptr, 0);
    if (out.size() < seeds) out.push_back(Outcome::crashed);
  }
  return out;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// RUN_FILE_SEEDS=20000 for a long night.
std::uint64_t seeds() {
  const char* text = std::getenv("RUN_FILE_SEEDS");
  return text == nullptr ? 300 : std::strtoull(text, nullptr, 10);
}

class Damaged : public testing::TestWithParam<bool> {
 protected:
  /// A finished run, or one whose process was killed.
  std::string original() {
    const std::string path = folder_ / "original.h5";
    const SampleRun sample{.seed = 9, .events = 2'000, .flush_every = 700};
    if (GetParam()) {
      write_sample(path, sample);
    } else {
      const pid_t child = fork();
      if (child == 0) {
        RunWriter writer(path, info_of(sample));
        record(writer, sample);
        _exit(0);
      }
      waitpid(child, nullptr, 0);
    }
    return bytes_of(path);
  }
  TemporaryFolder folder_;
};

TEST_P(Damaged, BitsAreNoticedOrHarmless) {
  const std::string good = original();
  const std::string path = folder_ / "damaged.h5";
  const auto outcomes = outcomes_of(seeds(), [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string bytes = good;
    // Up to eight bits; half of the time near the front, where the structure is.
    for (std::uint64_t flips = 1 + random() % 8; flips > 0; --flips) {
      const std::size_t range =
          random() % 2 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 8'192);
      bytes[random() % range] ^= static_cast<char>(1u << (random() % 8));
    }
    write_bytes(path, bytes);
    read_everything(path);
  });
  for (std::size_t i = 0; i < outcomes.size(); ++i)
    EXPECT_NE(outcomes[i], Outcome::crashed) << "seed " << i + 1;
  EXPECT_GT(std::count(outcomes.begin(), outcomes.end(), Outcome::refused),
            static_cast<std::ptrdiff_t>(seeds() / 4));
}

TEST_P(Damaged, AShortenedFileIsNoticedOrHarmless) {
  const std::string good = original();
  const std::string path = folder_ / "damaged.h5";
  const auto outcomes = outcomes_of(seeds() / 3, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    write_bytes(path, good.substr(0, seed < 20 ? seed * 8 : random() % good.size()));
    read_everything(path);
  });
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_NE(outcomes[i], Outcome::crashed) << "seed " << i + 1;
    if (GetParam()) {
      EXPECT_EQ(outcomes[i], Outcome::refused) << "seed " << i + 1;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Damaged, testing::Values(true, false), [](const auto& p) {
  return p.param ? std::string("finished") : std::string("killed");
});

/// A run file with something in it that our writer would not put there.
class Hostile : public testing::Test {
 protected:
  void SetUp() override {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    write_sample(path_, {.events = 10});
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file_, 0);
  }
  std::string error_when(const std::function<void(const RunReader&)>& action) {
    if (file_ >= 0) H5Fclose(std::exchange(file_, -1));
    try {
      action(RunReader(path_));
    } catch (const RunFileError& error) {
      return error.what();
    }
    return "no error";
  }
  hid_t make(const char* name, hid_t type, hsize_t rows, hid_t creation = H5P_DEFAULT) {
    const hsize_t unlimited = H5S_UNLIMITED;
    const bool grows = creation != H5P_DEFAULT && H5Pget_layout(creation) == H5D_CHUNKED;
    const hid_t space = H5Screate_simple(1, &rows, grows ? &unlimited : nullptr);
    const hid_t dataset = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    return dataset;
  }
  hid_t chunked(hsize_t chunk) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 1, &chunk);
    return creation;
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "run.h5";
  hid_t file_ = -1;
};

TEST_F(Hostile, MoreRowsThanBytes) {
  H5Ldelete(file_, layout::subjects, H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, 160);
  H5Dclose(make(layout::subjects, type, hsize_t{1} << 60, chunked(256)));
  EXPECT_THAT(error_when([](const RunReader& run) { run.subjects(); }),
              HasSubstr("more rows than the file holds"));
}

TEST_F(Hostile, ChunksOfGigabytes) {
  H5Ldelete(file_, "series/cluster_power/value", H5P_DEFAULT);
  H5Dclose(make("series/cluster_power/value", H5T_NATIVE_DOUBLE, 10, chunked(200'000'000)));
  EXPECT_THAT(error_when([](const RunReader& run) { run.series("cluster_power"); }),
              HasSubstr("implausible size"));
}

TEST_F(Hostile, DataInAnotherFile) {
  H5Ldelete(file_, "series/cluster_power/value", H5P_DEFAULT);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(creation, "/etc/passwd", 0, 80);
  H5Dclose(make("series/cluster_power/value", H5T_NATIVE_DOUBLE, 10, creation));
  EXPECT_THAT(error_when([](const RunReader& run) { run.series("cluster_power"); }),
              HasSubstr("in other files"));
}

TEST_F(Hostile, LinksToAnotherFile) {
  H5Ldelete(file_, "jobs", H5P_DEFAULT);
  H5Lcreate_external("/etc/passwd", "/", file_, "jobs", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_THAT(error_when([](const RunReader& run) { run.table_paths(); }),
              HasSubstr("link to somewhere else"));
}

TEST_F(Hostile, AGroupInsideItself) {
  const hid_t jobs = H5Gopen2(file_, "jobs", H5P_DEFAULT);
  for (int i = 0; i < 20; ++i)
    H5Lcreate_hard(file_, "jobs", jobs, ("again" + std::to_string(i)).c_str(), H5P_DEFAULT,
                   H5P_DEFAULT);
  H5Gclose(jobs);
  EXPECT_THAT(error_when([](const RunReader& run) { run.table_paths(); }),
              HasSubstr("nested too deep"));
}

TEST_F(Hostile, TextWhereNumbersBelong) {
  H5Ldelete(file_, "series/cluster_power/value", H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Dclose(make("series/cluster_power/value", type, 10));
  EXPECT_THAT(error_when([](const RunReader& run) { run.series("cluster_power"); }),
              HasSubstr("not real numbers"));
}

TEST_F(Hostile, TextOfVariableLength) {
  H5Ldelete(file_, layout::kinds, H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  const hid_t dataset = make(layout::kinds, type, 1);
  const char* text = "x";
  H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text);
  H5Dclose(dataset);
  EXPECT_THAT(error_when([](const RunReader& run) { run.kinds(); }),
              HasSubstr("not text of fixed length"));
}

TEST_F(Hostile, EventsThatPointNowhere) {
  struct Case {
    const char* field;
    std::int64_t value;
    const char* says;
  };
  for (const Case& c : {Case{"kind", 3, "has kind 3 of 3"}, Case{"kind", -1, "has kind -1"},
                        Case{"subject", 1'000'000, "has subject 1000000"},
                        Case{"cause", 4, "event 4 has a cause that is not earlier"},
                        Case{"cause", -2, "has a cause that is not earlier"}}) {
    SCOPED_TRACE(c.says);
    TemporaryFolder folder;
    const std::string path = folder / "run.h5";
    write_sample(path, {.events = 10});
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t events = H5Dopen2(file, layout::events, H5P_DEFAULT);
    const hid_t type = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(type, c.field, 0, H5T_NATIVE_INT64);
    std::int64_t column[10];
    H5Dread(events, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, column);
    column[4] = c.value;
    ASSERT_GE(H5Dwrite(events, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, column), 0);
    H5Dclose(events);
    H5Fclose(file);
    try {
      RunReader(path).events();
      ADD_FAILURE() << "accepted";
    } catch (const RunFileError& error) {
      EXPECT_THAT(error.what(), HasSubstr(c.says));
    }
  }
}

TEST_F(Hostile, ATableWhoseColumnsDiffer) {
  H5Dclose(make("jobs/llm/ledger/extra", H5T_NATIVE_DOUBLE, 99));
  EXPECT_THAT(error_when([](const RunReader& run) { run.table("jobs/llm/ledger"); }),
              HasSubstr("extra"));
}

TEST_F(Hostile, ATableThatClaimsMoreRowsThanItHas) {
  // link_loads() trusts what another table says of its length, so what it points at is checked
  // again when that table is read.
  const hid_t group = H5Gopen2(file_, "fabric/links", H5P_DEFAULT);
  const hid_t rows = H5Aopen(group, "rows", H5P_DEFAULT);
  const std::uint64_t many = ~std::uint64_t{0};
  H5Awrite(rows, H5T_NATIVE_UINT64, &many);
  H5Aclose(rows);
  H5Gclose(group);
  EXPECT_THAT(error_when([](const RunReader& run) {
                link_loads(run, "jobs/llm");
                run.table("fabric/links");
              }),
              HasSubstr("another number of rows"));
}

TEST_F(Hostile, AnUnknownVersionOrState) {
  const hid_t attribute = H5Aopen(file_, "run_state", H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  std::string text = "napping!";
  ASSERT_EQ(H5Tget_size(type), text.size());
  H5Awrite(attribute, type, text.data());
  H5Aclose(attribute);
  EXPECT_THAT(error_when([](const RunReader&) {}), HasSubstr("unknown run_state \"napping!\""));
}

TEST_F(Hostile, ANameThatClimbsOutOfTheFolder) {
  const hid_t jobs = H5Gcreate2(file_, "jobs/..", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(jobs);
  H5Lmove(file_, "jobs/llm/checkpoints", file_, "jobs/../escaped", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_EQ(error_when([&](const RunReader& run) {
              for (const std::string& file : export_csv(run, folder_ / "out/inner"))
                EXPECT_THAT(file, testing::Not(HasSubstr("../"))) << file;
            }),
            "no error");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/escaped.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out/inner/jobs/%2E./escaped.csv"));
}

}  // namespace
}  // namespace trainyard::analysis
