#include "analysis/export_csv.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "tests/analysis/sample_run.hpp"

namespace trainyard::analysis {
namespace {

using namespace test;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// RFC 4180 §2, points 5 to 7.
TEST(CsvField, IsQuotedOnlyWhenItMust) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(ExportCsv, WritesEachPartOfARun) {
  TemporaryFolder folder;
  {
    RunWriter writer(folder / "run.h5", info_of({}));
    const auto kind = writer.kind("saved, at last", "B");
    const auto job = writer.subject("llm");
    const auto power = writer.series("plant/power", "W", "");
    const auto first = writer.event(Time(Duration(5)), sim::Phase::failure, kind, job, {}, 0.1);
    writer.event(Time(Duration(6)), sim::Phase::decision, kind, job, first, 2.0);
    writer.sample(power, Time(Duration(5)), 1.5);
    Table table = Table::with(
        "jobs/llm/segments", "",
        {{"start_ns", "ns", "", ColumnType::int64}, {"state", "", "", ColumnType::text}});
    table.add_row({std::int64_t{-7}, "waiting \"long\""});
    Ending ending;
    ending.tables = {table};
    ending.summary = {{"goodput", 0.5}};
    writer.close(ending);
  }
  const RunReader run(folder / "run.h5");
  EXPECT_THAT(export_csv(run, folder / "out"),
              testing::ElementsAre("log/events.csv", "series/plant/power.csv",
                                   "jobs/llm/segments.csv", "summary.csv"));
  EXPECT_EQ(bytes_of(folder / "out/log/events.csv"),
            "event,time_ns [ns],phase,kind,subject,cause,value,unit of value\r\n"
            "0,5,failure,\"saved, at last\",llm,,0.10000000000000001,B\r\n"
            "1,6,decision,\"saved, at last\",llm,0,2,B\r\n");
  EXPECT_EQ(bytes_of(folder / "out/series/plant/power.csv"), "time_ns [ns],value [W]\r\n5,1.5\r\n");
  EXPECT_EQ(bytes_of(folder / "out/jobs/llm/segments.csv"),
            "start_ns [ns],state\r\n-7,\"waiting \"\"long\"\"\"\r\n");
  EXPECT_EQ(bytes_of(folder / "out/summary.csv"), "name,value\r\ngoodput,0.5\r\n");
}

TEST(ExportCsv, SaysWhereItCannotWrite) {
  TemporaryFolder folder;
  write_sample(folder / "run.h5", {.events = 3});
  std::ofstream(folder / "file") << "in the way";
  EXPECT_THROW(export_csv(RunReader(folder / "run.h5"), folder / "file"), RunFileError);
}

}  // namespace
}  // namespace trainyard::analysis
