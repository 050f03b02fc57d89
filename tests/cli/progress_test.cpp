#include "cli/progress.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/command.hpp"

namespace trainyard::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr Time an_hour = start_of_run + std::chrono::hours(1);

TEST(Progress, automatic_is_silent_where_nobody_looks) {
  std::ostringstream out;
  {
    Progress progress(ProgressKind::automatic, out, Terminal{.interactive = false});
    EXPECT_TRUE(progress.is_off());
    progress.report(0.5, an_hour, 10);
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, a_bar_rewrites_its_line_and_takes_it_off_at_the_end) {
  std::ostringstream out;
  {
    Progress progress(ProgressKind::automatic, out, Terminal{.width = 80, .interactive = true});
    progress.report(0.5, an_hour, 1500);
  }
  EXPECT_THAT(out.str(), StartsWith("\r\033[K["));
  EXPECT_THAT(out.str(), HasSubstr(" 50 %  "));
  EXPECT_THAT(out.str(), HasSubstr("1.50 k events"));
  EXPECT_THAT(out.str(), EndsWith("\r\033[K"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\n")));
}

TEST(Progress, json_is_one_object_a_line) {
  std::ostringstream out;
  Progress progress(ProgressKind::json, out, Terminal{});
  progress.report(0.25, an_hour, 10);
  EXPECT_THAT(out.str(), EndsWith("}\n"));
  const auto json = nlohmann::json::parse(out.str());
  EXPECT_EQ(json["done"], 0.25);
  EXPECT_EQ(json["simulated_s"], 3600);
  EXPECT_EQ(json["events"], 10);
}

TEST(Progress, estimates_the_rest_once_there_is_something_to_go_by) {
  // A fifth took 2 s, so four fifths take 8 s.
  EXPECT_THAT(Progress::bar_line(Terminal{}, 0.2, an_hour, 10, 2.0),
              HasSubstr(to_text(seconds(8)) + " left"));
  EXPECT_THAT(Progress::bar_line(Terminal{}, 0.02, an_hour, 10, 2.0), Not(HasSubstr("left")));
  EXPECT_THAT(Progress::bar_line(Terminal{}, 0.2, an_hour, 10, 0.5), Not(HasSubstr("left")));
}

TEST(Progress, fits_the_terminal) {
  for (const int width : {40, 60, 80, 110})
    EXPECT_LE(columns_of(Progress::bar_line(Terminal{.width = width}, 0.3, an_hour, 10, 2)),
              std::size_t(width));
}

TEST(Progress, kinds_by_name) {
  EXPECT_EQ(parse_progress("auto"), ProgressKind::automatic);
  EXPECT_EQ(parse_progress("off"), ProgressKind::off);
  EXPECT_THROW(parse_progress("none"), UsageError);
}

}  // namespace
}  // namespace trainyard::cli
