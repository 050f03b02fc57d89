#include "cli/summary.hpp"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

#include "tests/cli/golden.hpp"
#include "tests/cli/made_up_run.hpp"

namespace trainyard::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr Terminal paper{.width = 80, .interactive = false, .colour = false, .unicode = false};
constexpr Terminal screen{.width = 100, .interactive = true, .colour = true, .unicode = true};

TEST(Summary, of_a_made_up_run_in_a_pipe) {
  expect_golden("summary.txt", summary(made_up_run(), paper));
}

TEST(Summary, of_a_made_up_run_on_a_terminal) {
  expect_golden("summary_terminal.txt", summary(made_up_run(), screen));
}

TEST(Summary, no_line_is_wider_than_the_terminal) {
  for (const int width : {72, 80, 100, 110}) {
    Terminal terminal = paper;
    terminal.width = width;
    std::istringstream text(summary(made_up_run(), terminal));
    for (std::string line; std::getline(text, line);)
      EXPECT_LE(columns_of(line), std::size_t(width)) << line;
  }
}

TEST(Summary, accounts_below_a_thousandth_are_one_row) {
  // 20 and 10 of 36,000 seconds on 14 of 16 GPUs: 0.05 % and 0.02 % of all.
  const std::string text = summary(made_up_run(), paper);
  EXPECT_THAT(text, HasSubstr("2 small accounts"));
  EXPECT_THAT(text, Not(HasSubstr("checkpoint stall")));
  EXPECT_THAT(text, HasSubstr("lost work"));
}

TEST(Summary, a_single_account_at_a_thousandth_has_its_row) {
  scenarios::RunResult r = made_up_run();
  r.cluster.ledger.clear();
  r.cluster.ledger.add(models::Account::useful, 1, Duration(999));
  r.cluster.ledger.add(models::Account::restart, 1, Duration(1));
  EXPECT_THAT(summary(r, paper), HasSubstr("restart"));
  r.cluster.ledger.add(models::Account::useful, 1, Duration(1));  // now 1 of 1001
  EXPECT_THAT(summary(r, paper), HasSubstr("1 small account "));
}

TEST(Summary, says_that_a_run_was_interrupted_or_failed) {
  scenarios::RunResult r = made_up_run();
  r.state = scenarios::RunState::cancelled;
  EXPECT_THAT(summary(r, paper), HasSubstr("Interrupted"));
  r.state = scenarios::RunState::failed;
  r.failure = "job llm waits for a server";
  EXPECT_THAT(summary(r, paper), HasSubstr("The run failed: job llm waits for a server"));
}

TEST(Summary, a_run_of_nothing_prints_no_bars_and_no_division_by_zero) {
  const std::string text = summary(scenarios::RunResult{}, paper);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("Where the time")));
}

TEST(Summary, every_account_has_its_own_spoken_name) {
  std::set<std::string_view> names;
  for (std::size_t a = 0; a < models::accounts; ++a) names.insert(spoken(models::Account(a)));
  EXPECT_EQ(names.size(), models::accounts);
  EXPECT_EQ(names.count("?"), 0u);
}

}  // namespace
}  // namespace trainyard::cli
