#include "scenarios/failure_log.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace trainyard::scenarios {
namespace {

using namespace std::chrono_literals;
using models::Effect;
using models::Law;
using testing::HasSubstr;

FailureLog read(const std::string& text, const models::UnitNames* units = nullptr) {
  std::istringstream in(text);
  return read_failure_log(in, "log.csv", units);
}

TEST(FailureLog, reads_one_fault_a_line_in_the_order_of_the_file) {
  const FailureLog log = read(
      "unit,at,name,effect,detection,repair,replace,speed,warning\n"
      "node-17/gpu-3,3 d 2 h,xid-79,crash,30 s,6 h,true,,10 min\n"
      "\n"
      "\"pod-0/leaf-1 -> node-4/nic-0\",7200 s,,slow,,1 h,,0.5,\n"
      "node-2,0 s,update,maintenance,,,false,,\n");
  EXPECT_EQ(to_text(log.diagnostics), "");
  ASSERT_EQ(log.entries.size(), 3u);
  auto at = log.entries.begin();
  EXPECT_EQ(at->first, "log:0000002");
  EXPECT_EQ(at->second.fail, "node-17/gpu-3");
  EXPECT_EQ(at->second.at, 74h);
  EXPECT_EQ(at->second.name, "xid-79");
  EXPECT_EQ(at->second.detection.value, 30s);
  EXPECT_EQ(at->second.repair.law, Law::fixed);
  EXPECT_EQ(at->second.repair.value, 6h);
  EXPECT_EQ(at->second.warning, 10min);
  ++at;
  EXPECT_EQ(at->first, "log:0000004");  // a blank line counts as a line
  EXPECT_EQ(at->second.fail, "pod-0/leaf-1 -> node-4/nic-0");
  EXPECT_EQ(at->second.at, 2h);
  EXPECT_EQ(at->second.name, "log");
  EXPECT_EQ(at->second.effect, Effect::slow);
  EXPECT_EQ(at->second.speed, 0.5);
  EXPECT_EQ(at->second.detection.value, 10s);  // of a scripted fault
  EXPECT_TRUE(at->second.replace);
  ++at;
  EXPECT_EQ(at->second.effect, Effect::maintenance);
  EXPECT_EQ(at->second.at, 0s);
  EXPECT_FALSE(at->second.replace);
  EXPECT_EQ(at->second.repair.law, Law::log_normal);  // of a scripted fault
}

TEST(FailureLog, takes_seconds_in_a_column_of_their_own) {
  const FailureLog log = read("at_s,unit\n0,node-1\n1.5,node-2\n");
  EXPECT_EQ(to_text(log.diagnostics), "");
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(log.entries.begin()->second.at, 0s);
  EXPECT_EQ(log.entries.rbegin()->second.at, 1500ms);
}

struct Mistake {
  const char* name;
  const char* text;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const Mistake& m) {
  return out << m.name;
}
class Mistakes : public testing::TestWithParam<Mistake> {};
TEST_P(Mistakes, are_said_with_their_place) {
  const models::UnitNames units({.servers = 4, .gpus_per_server = 8});
  const FailureLog log = read(GetParam().text, &units);
  ASSERT_EQ(log.diagnostics.size(), 1u) << to_text(log.diagnostics);
  EXPECT_THAT(log.diagnostics[0].text(), HasSubstr(GetParam().message));
  EXPECT_TRUE(log.entries.empty());
}
INSTANTIATE_TEST_SUITE_P(
    FailureLog, Mistakes,
    testing::Values(
        Mistake{"empty", "", "log.csv:1:1: error: the file is empty"},
        Mistake{"column", "at,unit,repare\n", "did you mean \"repair\"?"},
        Mistake{"no_time", "unit\nnode-1\n", "no column at"},
        Mistake{"two_times", "at,at_s,unit\n", "both at and at_s"},
        Mistake{"no_unit", "at\n1 s\n", "no column unit"},
        Mistake{"bare_number", "at,unit\n5,node-1\n", "log.csv:2:1: error: at:"},
        Mistake{"negative", "unit,at\nnode-1,-1 s\n", "log.csv:2:8: error: at: found \"-1 s\""},
        Mistake{"negative_s", "unit,at_s\nnode-1,-1\n", "log.csv:2:8: error: at_s: found \"-1\""},
        Mistake{"when", "unit,at\nnode-1,\n", "log.csv:2:8: error: at: is empty"},
        Mistake{"what", "unit,at\n,1 s\n", "log.csv:2:1: error: unit: is empty"},
        Mistake{"who", "at,unit\n1 s,node-4\n", "log.csv:2:5: error: unit: found \"node-4\""},
        Mistake{"effect", "at,unit,effect\n1 s,node-1,cras\n", "did you mean \"crash\"?"},
        Mistake{"replace", "at,unit,replace\n1 s,node-1,maybe\n", "true or false"},
        Mistake{"too_slow", "at,unit,effect,speed\n1 s,node-1,slow,0.01\n", "from 0.05 to 1"},
        Mistake{"slow", "at,unit,effect\n1 s,node-1,slow\n", "effect \"slow\" without a speed"},
        Mistake{"fast", "at,unit,speed\n1 s,node-1,0.5\n", "a speed without effect \"slow\""},
        Mistake{"fields", "at,unit\n1 s,node-1,x\n", "log.csv:2:1: error: found 3 fields"}),
    [](const auto& of) { return std::string(of.param.name); });

TEST(FailureLog, of_many_mistakes_says_a_hundred) {
  std::string text = "at,unit\n";
  for (int i = 0; i < 300; ++i) text += "soon,node-1\n";
  EXPECT_EQ(read(text).diagnostics.size(), 101u);
}

TEST(FailureLog, is_read_from_a_file) {
  const auto file = std::filesystem::path(testing::TempDir()) / "failure_log_test.csv";
  std::ofstream(file) << "at,unit\n1 h,node-3\n";
  EXPECT_EQ(read_failure_log(file).entries.size(), 1u);
  std::filesystem::remove(file);
  const FailureLog missing = read_failure_log(file);
  ASSERT_EQ(missing.diagnostics.size(), 1u);
  EXPECT_THAT(missing.diagnostics[0].text(), HasSubstr("there is no such file"));
  EXPECT_EQ(read_failure_log(testing::TempDir()).diagnostics.size(), 1u);
}

}  // namespace
}  // namespace trainyard::scenarios
