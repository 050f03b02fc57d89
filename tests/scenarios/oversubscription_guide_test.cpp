#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "models/network/collectives/corrections.hpp"
#include "scenarios/collective_sweep.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/read.hpp"
#include "sim/random.hpp"

/// The tables of docs/guide/oversubscription.md come from here: what the product says, beside what
/// the page derives by hand. If they differ from the page the test fails; UPDATE_GOLDEN=1 rewrites
/// it.
namespace trainyard::scenarios {
namespace {

using models::CollectiveAlgorithm;
using models::CollectiveKind;

constexpr std::array ratios{1, 2, 4};
constexpr int seeds = 20;
constexpr double leaves = 8, adapters_a_leaf = 32;

/// One line of the table: traffic, and what of it leaves a leaf.
struct Pattern {
  const char* name;
  SweepTraffic traffic;
  CollectiveAlgorithm algorithm;
  ServerOrder order;
  double crossing;     // flows that leave a leaf, each at the rate of one adapter
  double of_adapter;   // what such a flow uses of an adapter, if nothing is in its way
  double small_flows;  // into which a flow is divided
};

// 256 GPUs on 8 leaves of 4 servers. Permutation: every flow crosses. All-to-all: of the 248 GPUs
// in other servers 224 are at other leaves. Ring in leaf order: each of the 8 channels leaves a
// leaf once. In random order nearly always; 32 is the most, and some leaf has it. The ring inside a
// server is limited to 0.815 · 450 GB/s by the scale-up links, 0.955 of eight adapters at 0.96 · 50
// GB/s.
constexpr double ring_share = 0.815 * 450 / (8 * 48);
const std::array patterns{Pattern{"permutation",
                                  {CollectiveKind::point_to_point, true},
                                  CollectiveAlgorithm::direct,
                                  ServerOrder::packed,
                                  32,
                                  1,
                                  1},
                          Pattern{"all-to-all",
                                  {CollectiveKind::all_to_all},
                                  CollectiveAlgorithm::direct,
                                  ServerOrder::packed,
                                  32 * 224 / 248.0,
                                  1,
                                  248},
                          Pattern{"ring, leaf order",
                                  {CollectiveKind::all_reduce},
                                  CollectiveAlgorithm::ring,
                                  ServerOrder::packed,
                                  8,
                                  ring_share,
                                  1},
                          Pattern{"ring, random order",
                                  {CollectiveKind::all_reduce},
                                  CollectiveAlgorithm::ring,
                                  ServerOrder::random,
                                  32,
                                  ring_share,
                                  1}};

SweepRequest request_for(const Pattern& p, bool has_failed, std::uint64_t seed) {
  SweepRequest r{.traffic = {p.traffic},
                 .bytes = {1073741824.0},
                 .order = p.order,
                 .algorithm = p.algorithm,
                 .protocol = models::Protocol::simple};
  if (has_failed) r.faults = {{"leaf-0 -> spine-0 #0", 0}};
  r.seed = seed;
  return r;
}

Scenario yard(int ratio, const std::string& routing) {
  const ReadResult read =
      read_scenario(std::string(TRAINYARD_LIBRARY) + "/quickstart.json",
                    {"cluster.fabric.leaf_oversubscription=" + std::to_string(ratio),
                     "cluster.fabric.routing=" + routing});
  EXPECT_TRUE(read.ok()) << to_text(read.diagnostics);
  return read.scenario;
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x < 9.995 ? "%.2f" : "%.1f", x);
  return text;
}

double slowdown(const Scenario& scenario, const Pattern& p, bool has_failed, std::uint64_t seed) {
  return sweep_collectives(scenario, request_for(p, has_failed, seed)).rows[0].slowdown();
}

double uplinks(int ratio) {
  return adapters_a_leaf / ratio;
}

/// Crossing flows over uplinks, and a failed cable: of four parallel ones to a spine three are
/// left, to which spraying still sends a quarter of four; adaptive routing spreads over all that
/// are left.
double by_hand(const Pattern& p, int ratio, const std::string& routing, bool has_failed) {
  double load = p.crossing / uplinks(ratio) * p.of_adapter;
  if (has_failed) load *= routing == "spray" ? 4.0 / 3 : uplinks(ratio) / (uplinks(ratio) - 1);
  return std::max(1.0, load);
}

std::string spread_cell(const Pattern& p, int ratio, const std::string& routing, bool has_failed) {
  const double told = slowdown(yard(ratio, routing), p, has_failed, 1);
  const double hand = by_hand(p, ratio, routing, has_failed);
  EXPECT_NEAR(told, hand, 1e-6 * hand)
      << p.name << ' ' << routing << ' ' << ratio << ":1 " << has_failed;
  return number(told) + " = " + number(hand);
}

struct Draws {
  double mean = 0, least = 0, most = 0;
};
Draws draws(const Scenario& scenario, const Pattern& p, bool has_failed) {
  std::vector<double> all;
  for (int seed = 1; seed <= seeds; ++seed)
    all.push_back(slowdown(scenario, p, has_failed, std::uint64_t(seed)));
  double sum = 0;
  for (const double x : all) sum += x;
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return {sum / double(all.size()), *least, *most};
}

/// The mean of the fullest cable when flows pick cables blindly: each leaf up and each leaf down.
/// Knows nothing of fabrics, routes or rates.
double balls_in_bins(const Pattern& p, int ratio) {
  sim::Stream random(sim::Seed{7}, "guide/balls");
  const auto bins = std::uint64_t(uplinks(ratio));
  const int balls = int(std::lround(p.crossing * p.small_flows));
  const int trials = std::max(20, 200'000 / (16 * balls));
  double sum = 0;
  for (int trial = 0; trial < trials; ++trial) {
    int most = 0;
    for (int side = 0; side < 2 * int(leaves); ++side) {
      std::vector<int> in_bin(bins, 0);
      for (int ball = 0; ball < balls; ++ball) most = std::max(most, ++in_bin[random.below(bins)]);
    }
    sum += std::max(1.0, p.of_adapter * most / p.small_flows);
  }
  return sum / trials;
}

std::string hashed_cell(const Pattern& p, int ratio, bool has_failed) {
  const Draws d = draws(yard(ratio, "ecmp"), p, has_failed);
  std::string text = number(d.mean) + " (" + number(d.least) + "–" + number(d.most) + ")";
  if (has_failed) return text;
  // Both count in flows; all of them in units of an adapter that is used to the full.
  const double formula =
      std::max(1.0, p.of_adapter * models::expected_collision_slowdown(
                                       std::size_t(leaves), std::size_t(uplinks(ratio)), p.crossing,
                                       int(p.small_flows)));
  const double thrown = balls_in_bins(p, ratio);
  EXPECT_NEAR(d.mean / thrown, 1, 0.12) << p.name << ' ' << ratio << ":1";
  const bool has_a_flow_a_cable = p.crossing >= uplinks(ratio);
  if (has_a_flow_a_cable) {
    EXPECT_NEAR(formula / thrown, 1, 0.2) << p.name << ' ' << ratio << ":1";
  }
  return text + " ≈ " + number(thrown) + ", " + number(formula);
}

std::string table(bool has_failed) {
  std::ostringstream out;
  out << "| traffic | routing | 1:1 | 2:1 | 4:1 |\n|---|---|---|---|---|\n";
  for (const Pattern& p : patterns)
    for (const std::string routing : {"spray", "adaptive", "ecmp"}) {
      if (!has_failed && routing == "adaptive") continue;  // as spray, where nothing has failed
      out << "| " << p.name << " | " << routing;
      for (const int ratio : ratios)
        out << " | "
            << (routing == "ecmp" ? hashed_cell(p, ratio, has_failed)
                                  : spread_cell(p, ratio, routing, has_failed));
      out << " |\n";
    }
  return out.str();
}

/// Text of the page between the lines <!-- name: begin --> and <!-- name: end -->.
struct Section {
  std::size_t begin = 0, end = 0;
};
Section section(const std::string& page, const std::string& name) {
  const std::string first = "<!-- " + name + ": begin -->\n", last = "<!-- " + name + ": end -->";
  const std::size_t begin = page.find(first), end = page.find(last);
  EXPECT_NE(begin, page.npos) << name;
  EXPECT_NE(end, page.npos) << name;
  return {begin + first.size(), end};
}

void expect_on_page(const std::string& name, const std::string& text) {
  const std::string file = std::string(TRAINYARD_SOURCE_DIR) + "/docs/guide/oversubscription.md";
  std::ostringstream read;
  read << std::ifstream(file, std::ios::binary).rdbuf();
  std::string page = read.str();
  const Section s = section(page, name);
  ASSERT_LE(s.begin, s.end);
  if (std::getenv("UPDATE_GOLDEN")) {
    page.replace(s.begin, s.end - s.begin, text);
    std::ofstream(file, std::ios::binary) << page;
    return;
  }
  EXPECT_EQ(page.substr(s.begin, s.end - s.begin), text)
      << "if this is meant, run again with UPDATE_GOLDEN=1";
}

TEST(OversubscriptionGuide, table_of_the_intact_fabric) {
  expect_on_page("intact", table(false));
}

TEST(OversubscriptionGuide, table_with_one_cable_down) {
  expect_on_page("one cable down", table(true));
}

}  // namespace
}  // namespace trainyard::scenarios
