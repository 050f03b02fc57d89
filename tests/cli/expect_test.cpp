#include "cli/expect.hpp"

#include <gmock/gmock.h>

namespace trainyard::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* result =
    R"({"seed": 1, "state": "complete", "fast": true, "jobs": {"llm": {"goodput": 0.9, "mtbi_s": null},
        "llm.v2": {"goodput": 0.8}}, "warnings": ["slow"], "rows": [{"x": 4}]})";

std::vector<std::string> misses(const std::string& bound) {
  return missed(parse_bounds({bound}), result);
}

std::string error_of(const std::string& bound) {
  try {
    misses(bound);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Expect, holds_on_the_bound_and_misses_beyond_it) {
  for (const char* held :
       {"jobs.llm.goodput>=0.9", "jobs.llm.goodput<=0.9", "jobs.llm.goodput==0.9",
        "jobs.llm.goodput>0.899", "jobs.llm.goodput < 0.901", "jobs.llm.goodput!=1", "seed==1"})
    EXPECT_THAT(misses(held), IsEmpty()) << held;
  for (const char* missed_bound :
       {"jobs.llm.goodput>=0.9000001", "jobs.llm.goodput<=0.8999999", "jobs.llm.goodput>0.9",
        "jobs.llm.goodput<0.9", "jobs.llm.goodput!=0.9", "jobs.llm.goodput==0.91"})
    EXPECT_EQ(misses(missed_bound).size(), 1u) << missed_bound;
}

TEST(Expect, says_what_was_found) {
  EXPECT_THAT(misses("jobs.llm.goodput>=0.95"),
              ElementsAre("expected jobs.llm.goodput>=0.95, but it is 0.9"));
}

TEST(Expect, what_is_not_defined_meets_no_bound) {
  EXPECT_THAT(misses("jobs.llm.mtbi_s>=0"), ElementsAre(HasSubstr("not defined")));
  EXPECT_THAT(misses("jobs.llm.mtbi_s!=5"), ElementsAre(HasSubstr("not defined")));
}

TEST(Expect, reaches_names_with_dots_and_elements_of_arrays) {
  EXPECT_THAT(misses("jobs.llm.v2.goodput==0.8"), IsEmpty());
  EXPECT_THAT(misses("rows.0.x==4"), IsEmpty());
  EXPECT_THAT(error_of("rows.1.x==4"), HasSubstr("no 'rows.1.x'"));
}

TEST(Expect, compares_text_and_truth_for_equality) {
  EXPECT_THAT(misses("state==complete"), IsEmpty());
  EXPECT_THAT(misses("state!=failed"), IsEmpty());
  EXPECT_EQ(misses("state==failed").size(), 1u);
  EXPECT_THAT(misses("fast==true"), IsEmpty());
  EXPECT_THAT(error_of("state>=1"), HasSubstr("only be compared with == and !="));
}

TEST(Expect, mistakes_are_named) {
  EXPECT_THAT(error_of("jobs.llm.godput>=0.9"), HasSubstr("did you mean 'goodput'?"));
  EXPECT_THAT(error_of("jobs.zzzzzzzz.goodput>=0.9"), HasSubstr("there is: llm, llm.v2"));
  EXPECT_THAT(error_of("jobs.llm>=0.9"), HasSubstr("not one figure"));
  EXPECT_THAT(error_of("jobs.llm.goodput>=high"),
              HasSubstr("'high' in 'jobs.llm.goodput>=high' is not a number"));
  EXPECT_THAT(error_of("jobs.llm.goodput==high"), HasSubstr("is a number, 'high' is not"));
  for (const char* bad : {"", "goodput", ">=1", "goodput>=", "goodput=1", "goodput!1", "a>=nan"})
    EXPECT_THROW(parse_bounds({bad}), UsageError) << bad;
}

}  // namespace
}  // namespace trainyard::cli
