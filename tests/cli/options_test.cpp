#include "cli/options.hpp"

#include <gmock/gmock.h>

namespace trainyard::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Usage run_like() {
  return {
      .command = "run",
      .arguments = "SCENARIO [OPTIONS]",
      .what = "Simulates.",
      .examples = {{"trainyard run a.json", "one"}, {"trainyard run a.json --seed 2", "another"}},
      .options = {{"output,o", "FILE", "run file"},
                  {"seed", "N", "seed"},
                  {"set", "PATH=VALUE", "override", true},
                  {"json", "", "as JSON"}},
      .least = 1,
      .most = 1};
}

std::string error_of(const Arguments& args) {
  try {
    parse(run_like(), args);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, may_stand_before_and_after_the_scenario) {
  const Parsed a = parse(run_like(), {"--seed", "3", "x.json", "-o", "out.h5", "--json"});
  EXPECT_THAT(a.positional, ElementsAre("x.json"));
  EXPECT_EQ(a.value("seed"), "3");
  EXPECT_EQ(a.value("output"), "out.h5");
  EXPECT_TRUE(a.has("json"));
  EXPECT_FALSE(a.has("set"));
  EXPECT_EQ(parse(run_like(), {"x.json", "--output=out.h5"}).value("output"), "out.h5");
  EXPECT_EQ(parse(run_like(), {"x.json", "-oout.h5"}).value("output"), "out.h5");
}

TEST(Options, repeatable_ones_keep_their_order) {
  const Parsed a = parse(run_like(), {"x.json", "--set", "b=2", "--set", "a=-1", "--set=c=d=e"});
  EXPECT_THAT(a.values("set"), ElementsAre("b=2", "a=-1", "c=d=e"));
}

TEST(Options, help_is_seen_wherever_it_stands_and_demands_nothing_else) {
  EXPECT_TRUE(parse(run_like(), {"--help"}).help);
  EXPECT_TRUE(parse(run_like(), {"x.json", "-h"}).help);
  EXPECT_TRUE(parse(run_like(), {"a", "b", "c", "--help"}).help);
}

TEST(Options, mistakes_are_named) {
  EXPECT_THAT(error_of({"x.json", "--sed", "3"}),
              HasSubstr("no option '--sed'; did you mean '--seed'?"));
  EXPECT_THAT(error_of({"x.json", "--se", "3"}), HasSubstr("no option '--se'"))
      << "abbreviations are not guessed";
  EXPECT_THAT(error_of({"x.json", "--seed"}), HasSubstr("'--seed' needs a value"));
  EXPECT_THAT(error_of({"x.json", "--seed", "1", "--seed", "2"}),
              HasSubstr("'--seed' is given twice"));
  EXPECT_THAT(error_of({"x.json", "--json=1"}), HasSubstr("'--json' takes no value"));
  EXPECT_THAT(error_of({}), HasSubstr("too few arguments: expected SCENARIO"));
  EXPECT_THAT(error_of({"x.json", "y.json"}), HasSubstr("unexpected argument 'y.json'"));
}

TEST(Help, begins_with_two_examples) {
  const std::string text = help_text(run_like(), 80);
  EXPECT_THAT(
      text,
      StartsWith("Examples:\n  trainyard run a.json           # one\n"
                 "  trainyard run a.json --seed 2  # another\n\nUsage: trainyard run SCENARIO"));
  EXPECT_THAT(text, HasSubstr("-o [ --output ] FILE"));
  EXPECT_THAT(text, HasSubstr("--help"));
}

TEST(Seed, takes_the_whole_range_and_nothing_else) {
  EXPECT_EQ(parse_seed("0"), 0u);
  EXPECT_EQ(parse_seed("18446744073709551615"), 18446744073709551615u);
  for (const char* bad :
       {"", "-1", "+1", "1.5", "1e3", "18446744073709551616", "0x10", " 1", "1 ", "one"})
    EXPECT_THROW(parse_seed(bad), UsageError) << '\'' << bad << '\'';
}

}  // namespace
}  // namespace trainyard::cli
