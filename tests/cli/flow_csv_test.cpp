#include "cli/flow_csv.hpp"

#include <gmock/gmock.h>

#include <sstream>

namespace trainyard::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* good_links =
    "id,name,bytes_per_s,latency_s\n0,a,5e9,0\nup,\"b, upwards\",1e9,1e-6\n";

struct Read {
  FlowTables tables;
  std::vector<std::string> errors;
};

Read read(const std::string& links, const std::string& flows) {
  Read out;
  std::istringstream l(links), f(flows);
  out.tables = read_flow_tables(l, "links.csv", f, "flows.csv", out.errors);
  return out;
}

TEST(FlowCsv, finds_columns_by_name) {
  const Read r =
      read(good_links, "route,bytes,id,src,start_s\nup 0,100,first,7,0.5\n,0,second,8,0\n");
  EXPECT_THAT(r.errors, IsEmpty());
  ASSERT_THAT(r.tables.links, SizeIs(2));
  EXPECT_EQ(r.tables.links[1].id, "up");
  EXPECT_EQ(r.tables.links[1].bytes_per_s, 1e9);
  EXPECT_EQ(r.tables.links[1].latency_s, 1e-6);
  ASSERT_THAT(r.tables.flows, SizeIs(2));
  EXPECT_EQ(r.tables.flows[0].id, "first");
  EXPECT_EQ(r.tables.flows[0].bytes, 100);
  EXPECT_EQ(r.tables.flows[0].start_s, 0.5);
  EXPECT_FALSE(r.tables.flows[0].finish_s);
  EXPECT_THAT(r.tables.flows[0].route, ElementsAre(1, 0));
  EXPECT_THAT(r.tables.flows[1].route, IsEmpty());
}

TEST(FlowCsv, latency_and_start_may_be_left_out) {
  const Read r = read("id,bytes_per_s\n0,1\n", "id,bytes,route,finish_s\n0,3,0,3\n1,3,0,\n");
  EXPECT_THAT(r.errors, IsEmpty());
  EXPECT_EQ(r.tables.flows[0].finish_s, 3.0);
  EXPECT_FALSE(r.tables.flows[1].finish_s);
}

TEST(FlowCsv, accepts_files_of_other_systems) {
  const Read r = read("\xEF\xBB\xBFid,bytes_per_s\r\n0,1\r\n\r\n", "id,bytes,route\r\n0,3,0");
  EXPECT_THAT(r.errors, IsEmpty());
  EXPECT_THAT(r.tables.flows[0].route, ElementsAre(0));
}

TEST(FlowCsv, says_where_every_mistake_is) {
  const Read r = read("id,bytes_per_s\n0,fast\n0,-1\n1\n",
                      "id,bytes,start_s,route\n0,nan,0,0\n1,1,0,0 9 0\n2,1,1e999,\"0\"\n");
  EXPECT_THAT(
      r.errors,
      ElementsAre(
          "links.csv:2:3: error: bytes_per_s: expected a number of at least 0, found 'fast'",
          "links.csv:3:1: error: id: '0' stands in an earlier row too",
          "links.csv:3:3: error: bytes_per_s: expected a number of at least 0, found '-1'",
          "links.csv:4:1: error: expected 2 fields as in the header, found 1",
          "flows.csv:2:3: error: bytes: expected a number of at least 0, found 'nan'",
          "flows.csv:3:9: error: route: there is no link '9'",
          "flows.csv:3:11: error: route: link '0' is on it twice",
          "flows.csv:4:5: error: start_s: expected a number of at least 0, found '1e999'"));
}

TEST(FlowCsv, names_a_missing_column_and_the_header_that_it_found) {
  const Read r = read(good_links, "id,size,route\n0,3,0\n");
  EXPECT_THAT(
      r.errors,
      ElementsAre(
          "flows.csv:1:1: error: there is no column 'bytes'; the header is: id,size,route"));
}

TEST(FlowCsv, an_empty_file_is_one_error) {
  EXPECT_THAT(read("", "id,bytes,route\n").errors,
              ElementsAre(HasSubstr("links.csv:1:1: error: the file is empty")));
}

TEST(SplitCsv, follows_rfc_4180) {
  const auto fields = split_csv("a,\"b,\"\"c\"\"\",,\"d\"");
  ASSERT_THAT(fields, SizeIs(4));
  EXPECT_EQ(fields[1].text, "b,\"c\"");
  EXPECT_EQ(fields[1].column, 3u);
  EXPECT_EQ(fields[2].text, "");
  EXPECT_EQ(fields[3].text, "d");
  EXPECT_THAT(split_csv(""), SizeIs(1));
  EXPECT_EQ(split_csv("\"open")[0].text, "open");
}

}  // namespace
}  // namespace trainyard::cli
