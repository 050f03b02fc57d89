#include "analysis/study_file.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "analysis/run_file.hpp"
#include "analysis/text_file.hpp"

namespace trainyard::analysis {
namespace {

using testing::HasSubstr;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

Study made_up() {
  Study s;
  s.name = "made-up";
  s.question = "1:1 or 4:1?";
  s.hash = "abc";
  s.base = "{}";
  s.common_random_numbers = false;
  s.confidence = 0.9;
  s.axes = {{"topology", "", "", false}, {"scale", "cluster.servers", "1", true}};
  s.metrics = {{"goodput", "jobs.llm.goodput", "1", Better::higher},
               {"step_s", "jobs.llm.step_s", "s", Better::lower}};
  s.accounts = {"useful", "lost work"};
  s.points = {{{"fat, tree", "128"}, {none, 128}}, {{"dragonfly", "256"}, {none, 256}}};
  s.runs = {{0, 0, 1, "complete", "f0", {0.5, 2}, {10, 1}},
            {0, 1, 2, "failed", "", {none, none}, {0, 0}},
            {1, 0, 3, "missing", "", {none, none}, {}}};
  s.builds = "1 a, 1 b";
  s.no_effect = {"cluster.spares: nothing fails"};
  return s;
}

std::string temporary(const std::string& name) {
  return (std::filesystem::path(testing::TempDir()) / name).string();
}

TEST(StudyFile, reads_back_as_it_was) {
  const std::string path = temporary("made-up-study.h5");
  write_study(made_up(), path, "1.0", "c0ffee");
  EXPECT_TRUE(is_study_file(path));
  const Study s = read_study(path), expected = made_up();
  EXPECT_EQ(s.name, expected.name);
  EXPECT_EQ(s.question, expected.question);
  EXPECT_EQ(s.hash, expected.hash);
  EXPECT_EQ(s.common_random_numbers, false);
  EXPECT_EQ(s.confidence, 0.9);
  EXPECT_EQ(s.axes, expected.axes);
  EXPECT_EQ(s.metrics, expected.metrics);
  EXPECT_EQ(s.accounts, expected.accounts);
  EXPECT_EQ(s.no_effect, expected.no_effect);
  EXPECT_EQ(s.builds, expected.builds);
  ASSERT_EQ(s.points.size(), 2u);
  EXPECT_EQ(s.points[1].labels, expected.points[1].labels);
  EXPECT_EQ(s.points[1].numbers[1], 256);
  EXPECT_TRUE(std::isnan(s.points[1].numbers[0]));
  ASSERT_EQ(s.runs.size(), 3u);
  EXPECT_EQ(s.runs[0].values, expected.runs[0].values);
  EXPECT_EQ(s.runs[0].ledger_gpu_s, expected.runs[0].ledger_gpu_s);
  EXPECT_EQ(s.runs[1].state, "failed");
  EXPECT_TRUE(std::isnan(s.runs[2].values[1]));
  EXPECT_TRUE(s.runs[2].ledger_gpu_s.empty());
  EXPECT_EQ(s.name_of_point(0), "topology fat, tree, scale 128");
}

TEST(StudyFile, the_same_study_gives_the_same_bytes) {
  const std::string a = temporary("study-a.h5"), b = temporary("study-b.h5");
  write_study(made_up(), a, "1.0", "c0ffee");
  write_study(made_up(), b, "1.0", "c0ffee");
  EXPECT_TRUE(read_text_file(a) == read_text_file(b));
}

TEST(StudyFile, csv_has_units_and_leaves_out_what_is_not_there) {
  EXPECT_EQ(study_csv(made_up()),
            "point,replication,seed,state,topology,scale,goodput,step_s [s]\r\n"
            "0,0,1,complete,\"fat, tree\",128,0.5,2\r\n"
            "0,1,2,failed,\"fat, tree\",128,,\r\n"
            "1,0,3,missing,dragonfly,256,,\r\n");
}

TEST(StudyFile, a_file_that_is_none_is_refused_by_name) {
  const std::string path = temporary("not-a-study.h5");
  write_text_file(path, "nothing");
  EXPECT_FALSE(is_study_file(path));
  try {
    read_study(path);
    FAIL();
  } catch (const RunFileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("not-a-study.h5"));
  }
  Study wrong = made_up();
  wrong.runs[0].point = 7;
  const std::string bad = temporary("bad-study.h5");
  write_study(wrong, bad, "1.0", "c0ffee");
  EXPECT_THROW(read_study(bad), RunFileError);
}

TEST(TextFile, is_replaced_in_one_step_and_says_why_it_cannot) {
  const std::string path = temporary("text-file.txt");
  write_text_file(path, "one");
  write_text_file(path, "two");
  EXPECT_EQ(read_text_file(path), "two");
  EXPECT_THROW(write_text_file(temporary("no-such-folder/x"), "one"), TextFileError);
  EXPECT_THROW(read_text_file(temporary("no-such-file")), TextFileError);
}

}  // namespace
}  // namespace trainyard::analysis
