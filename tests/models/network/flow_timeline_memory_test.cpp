#include <gmock/gmock.h>

#include "models/network/flow_timeline.hpp"

namespace trainyard::models {
namespace {

using Loads = std::vector<Load>;
constexpr double C = 50e9, MiB = 1048576;

// An exchange of all with all over a three-tier tree in small: every flow has six links, every
// link the same number of flows. 130 bytes a flow, everything counted that timeline and solver
// hold.
TEST(FlowTimeline, a_running_flow_of_six_links_takes_at_most_130_bytes) {
  constexpr std::size_t hosts = 256, flows = hosts * 252, loads = 6 * flows;
  FlowTimeline line;
  line.reserve(6 * hosts + 1, flows + 1, loads + 1);
  for (std::size_t l = 0; l < 6 * hosts; ++l) line.add_link(C);
  for (std::size_t from = 0; from < hosts; ++from) {
    for (std::size_t shift = 1; shift <= 252; ++shift) {
      const std::size_t to = (from + shift) % hosts, middle = (from * 3 + to) % hosts;
      line.add(MiB * static_cast<double>(1 + shift % 7),
               Loads{{LinkIndex(from)},
                     {LinkIndex(hosts + (from + middle) % hosts)},
                     {LinkIndex(2 * hosts + (from + 2 * middle) % hosts)},
                     {LinkIndex(3 * hosts + (to + 2 * middle) % hosts)},
                     {LinkIndex(4 * hosts + (to + middle) % hosts)},
                     {LinkIndex(5 * hosts + to)}});
    }
  }
  line.advance(line.next_completion_s().value() / 2);
  line.add(MiB, Loads{{line.add_link(C)}});  // an event, so that the list of all the rates that
  line.next_completion_s();                  // were new at the start is gone
  ASSERT_EQ(line.running(), flows + 1);
  const double bytes = static_cast<double>(line.memory_bytes()) / flows;
  RecordProperty("bytes_per_flow", testing::PrintToString(bytes));
  EXPECT_LE(bytes, 130);
  EXPECT_GE(bytes, 80);  // six link numbers on each side, bytes, rate and end cannot take less
}

}  // namespace
}  // namespace trainyard::models
