#include "analysis/link_loads.hpp"

#include <gmock/gmock.h>
#include <hdf5.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "analysis/export_csv.hpp"
#include "sim/check.hpp"
#include "tests/analysis/sample_run.hpp"

namespace trainyard::analysis {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<LinkLoad> after_a_file(std::vector<LinkLoad> loads, LinkLoadLimits limits = {}) {
  TemporaryFolder folder;
  RunWriter writer(folder / "run.h5", info_of({}));
  Ending ending;
  ending.tables = link_load_tables("jobs/llm", std::move(loads), limits);
  writer.close(ending);
  return link_loads(RunReader(folder / "run.h5"), "jobs/llm");
}

LinkLoad load_of(std::int64_t profile, std::int64_t link, double utilisation) {
  return {profile, link, "link " + std::to_string(link), 100, 50, utilisation, {}};
}

TEST(LinkLoads, ComeBackAsTheyWereWritten) {
  TemporaryFolder folder;
  write_sample(folder / "run.h5");
  const RunReader run(folder / "run.h5");
  EXPECT_EQ(link_loads(run, "jobs/llm"), link_loads_of_sample());
  EXPECT_TRUE(link_loads(run, "jobs/other").empty());
  const Table links = run.table("fabric/links");
  EXPECT_EQ(links.rows(), 2u);
  EXPECT_EQ(run.table_rows("fabric/links"), 2u);
  EXPECT_EQ((*links.find("name"))[1], Value("leaf-0 -> spine-1"));
  EXPECT_EQ((*links.find("capacity"))[1], Value(50e9));
  EXPECT_EQ((*run.table("jobs/llm/link_users").find("share"))[1], Value(0.25));
}

TEST(LinkLoads, AreSortedByProfileThenLoadThenLink) {
  std::vector<std::int64_t> links, profiles;
  for (const LinkLoad& l : after_a_file(
           {load_of(1, 4, 0.5), load_of(0, 9, 0.25), load_of(0, 7, 0.5), load_of(0, 3, 0.5)})) {
    profiles.push_back(l.profile);
    links.push_back(l.link);
  }
  EXPECT_THAT(profiles, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(links, ElementsAre(3, 7, 9, 4));
}

TEST(LinkLoads, KeepTheMostLoadedLinksOfEachProfile) {
  const auto kept =
      after_a_file({load_of(0, 1, 0.1), load_of(0, 2, 0.2), load_of(0, 3, 0.3), load_of(1, 1, 0.1)},
                   {.links = 2, .users = 16});
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0].link, 3);
  EXPECT_EQ(kept[1].link, 2);
  EXPECT_EQ(kept[2].profile, 1);
}

// 100 bytes: the largest two are 40 and 30; what is left is 30, of three users or of nobody named.
TEST(LinkLoads, SumUpTheSmallUsers) {
  const auto users_of = [](std::vector<LinkUser> users, std::size_t most) {
    LinkLoad load = load_of(0, 0, 0.5);
    load.users = std::move(users);
    return after_a_file({load}, {.links = 16, .users = most}).at(0).users;
  };
  const std::vector<LinkUser> five{{"a", 10}, {"b", 40}, {"c", 10}, {"d", 30}, {"e", 10}};
  EXPECT_THAT(users_of(five, 2),
              ElementsAre(LinkUser{"b", 40}, LinkUser{"d", 30}, LinkUser{"3 others", 30}));
  EXPECT_THAT(users_of(five, 4),
              ElementsAre(LinkUser{"b", 40}, LinkUser{"d", 30}, LinkUser{"a", 10},
                          LinkUser{"c", 10}, LinkUser{"1 other", 10}));
  EXPECT_EQ(users_of(five, 5).size(), 5u);  // nothing is left over
  EXPECT_THAT(users_of({{"b", 40}, {"d", 30}}, 5),
              ElementsAre(LinkUser{"b", 40}, LinkUser{"d", 30}, LinkUser{"others", 30}));
  EXPECT_THAT(users_of({}, 5), ElementsAre(LinkUser{"others", 100}));
}

TEST(LinkLoads, CheckOurOwnMistakes) {
  const auto refuses = [](LinkLoad load) {
    EXPECT_THROW(link_load_tables("jobs/llm", {load}), CheckFailed);
  };
  LinkLoad load = load_of(0, 0, 0.5);
  load.users = {{"a", 60}, {"b", 40}};
  EXPECT_NO_THROW(link_load_tables("jobs/llm", {load}));
  load.users[0].bytes = 61;
  refuses(load);
  refuses(load_of(-1, 0, 0.5));
  refuses(load_of(0, -1, 0.5));
  refuses(load_of(0, 0, std::numeric_limits<double>::infinity()));
  refuses(load_of(0, 0, std::nan("")));
  EXPECT_THROW(
      link_load_tables("jobs/llm", {load_of(0, 3, 0.5), load_of(0, 4, 0.4), load_of(0, 3, 0.3)}),
      CheckFailed);
}

TEST(LinkLoads, AreExportedAsCsv) {
  TemporaryFolder folder;
  write_sample(folder / "run.h5", {.events = 3});
  EXPECT_THAT(export_csv(RunReader(folder / "run.h5"), folder / "out"),
              testing::IsSupersetOf(
                  {"jobs/llm/link_loads.csv", "jobs/llm/link_users.csv", "fabric/links.csv"}));
  const auto lines_of = [&](const std::string& name) {
    std::ifstream in(folder / name, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  EXPECT_EQ(lines_of("out/jobs/llm/link_loads.csv"),
            "profile,link,name,bytes [B],capacity [B/s],utilisation [1]\r\n"
            "0,1,leaf-0 -> spine-1,4000000000,50000000000,0.02\r\n"
            "0,0,leaf-0 -> spine-0,3000000000,50000000000,0.014999999999999999\r\n"
            "1,1,leaf-0 -> spine-1,4000000000,25000000000,0.040000000000000001\r\n");
  EXPECT_THAT(lines_of("out/jobs/llm/link_users.csv"),
              testing::StartsWith("profile,link,user,bytes [B],share [1]\r\n"
                                  "0,1,\"llm: dp stage 0, node-0/gpu-0 -> node-1/gpu-0\","
                                  "3000000000,0.75\r\n"));
}

/// One cell of the sample changed behind our back.
class DamagedLinkLoads : public testing::Test {
 protected:
  template <class Cell>
  std::string error_after(const char* dataset, hid_t type, std::size_t row, Cell cell) {
    const std::string path = folder_ / "run.h5";
    write_sample(path, {.events = 3});
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t column = H5Dopen2(file, dataset, H5P_DEFAULT);
    std::vector<Cell> cells(64);
    EXPECT_GE(H5Dread(column, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()), 0);
    cells[row] = cell;
    EXPECT_GE(H5Dwrite(column, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()), 0);
    H5Dclose(column);
    H5Fclose(file);
    return error();
  }
  std::string error() {
    try {
      link_loads(RunReader(folder_ / "run.h5"), "jobs/llm");
    } catch (const RunFileError& error) {
      return error.what();
    }
    return "no error";
  }
  TemporaryFolder folder_;
};

TEST_F(DamagedLinkLoads, PointNowhere) {
  const auto number = [&](const char* column, std::int64_t value) {
    return error_after(column, H5T_NATIVE_INT64, 1, value);
  };
  EXPECT_EQ(number("jobs/llm/link_loads/link", 0), "no error");  // it was 0
  EXPECT_THAT(number("jobs/llm/link_loads/link", 2), HasSubstr("row 1 has link 2, and fabric/"));
  EXPECT_THAT(number("jobs/llm/link_loads/link", -1), HasSubstr("row 1 has link -1"));
  EXPECT_THAT(number("jobs/llm/link_loads/profile", 2),
              HasSubstr("row 1 has profile 2, and jobs/"));
  EXPECT_THAT(number("jobs/llm/link_loads/link", 1), HasSubstr("repeats link 1 of profile 0"));
  EXPECT_THAT(number("jobs/llm/link_users/profile", 7), HasSubstr("not in link_loads"));
}

TEST_F(DamagedLinkLoads, HoldNumbersThatAreNone) {
  for (const char* column : {"jobs/llm/link_loads/bytes", "jobs/llm/link_loads/capacity",
                             "jobs/llm/link_loads/utilisation", "jobs/llm/link_users/bytes"})
    for (const double value : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
      EXPECT_THAT(error_after(column, H5T_NATIVE_DOUBLE, 0, value), HasSubstr("is no amount"))
          << column;
}

TEST_F(DamagedLinkLoads, LackAColumn) {
  write_sample(folder_ / "run.h5", {.events = 3});
  const hid_t file = H5Fopen((folder_ / "run.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Lmove(file, "jobs/llm/link_loads/link", file, "jobs/llm/link_loads/other", H5P_DEFAULT,
          H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_THAT(error(), HasSubstr("it has no column link"));
}

}  // namespace
}  // namespace trainyard::analysis
