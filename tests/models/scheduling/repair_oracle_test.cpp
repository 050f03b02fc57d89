#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/scheduling/servers.hpp"

/// Availability of groups of servers against closed forms: failure clocks, pool and repair shop
/// together, inside 99 % intervals by batch means.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

constexpr Duration hour = 1h, day = 24h, year = 8760h;

/// Long-run shares of time with k servers broken: births lambda (n - k), deaths mu min(k, crews).
std::vector<double> birth_death(int n, double lambda, double mu, int crews) {
  std::vector<double> p{1.0};
  for (int k = 1; k <= n; ++k)
    p.push_back(p.back() * lambda * (n - k + 1) / (mu * std::min(k, crews)));
  double sum = 0;
  for (const double x : p) sum += x;
  for (double& x : p) x /= sum;
  return p;
}

struct Estimate {
  double mean, half;  // half of the 99 % interval
};

Estimate estimate(const std::vector<double>& batches) {
  const double n = double(batches.size());
  double sum = 0, squares = 0;
  for (const double x : batches) sum += x;
  for (const double x : batches) squares += (x - sum / n) * (x - sum / n);
  const double t = 2.576 * (1 + 2.0 / n);  // near enough to Student's quantile for 40 and more
  return {sum / n, t * std::sqrt(squares / (n - 1) / n)};
}

#define EXPECT_INSIDE(batches, expected, width)                            \
  do {                                                                     \
    const Estimate e = estimate(batches);                                  \
    EXPECT_LT(std::abs(e.mean - (expected)), e.half)                       \
        << e.mean << " +- " << e.half << " against " << (expected);        \
    EXPECT_LT(e.half, (width) * (expected)) << "too little was simulated"; \
    RecordProperty(#batches, std::to_string(e.mean));                      \
  } while (false)

/// Hears which servers go down and come back, and accounts for the time with k down in each group.
class Watch final : public sim::Recorder {
 public:
  Watch(std::size_t servers, std::size_t group)
      : group_(group), down_(servers / group), since_(servers / group), time_(group + 1) {}

  sim::KindId kind(std::string_view name, std::string_view) override {
    return sim::KindId(name == "server down" ? 1 : name == "server back" ? 2 : 0);
  }
  sim::SubjectId subject(std::string_view name) override {
    return sim::SubjectId(std::stoul(std::string(name.substr(5))));  // "node-17"
  }
  sim::SeriesId series(std::string_view, std::string_view, std::string_view) override {
    return sim::SeriesId(0);
  }
  sim::EventIndex event(Time when, sim::Phase, sim::KindId kind, sim::SubjectId server,
                        sim::EventIndex, double) override {
    if (kind == sim::KindId(0)) return {};
    const std::size_t g = server.index() / group_;
    settle(g, when);
    down_[g] += kind == sim::KindId(1) ? 1 : -1;
    if (kind == sim::KindId(1)) ++reached_[std::size_t(down_[g])];
    return {};
  }
  void sample(sim::SeriesId, Time, double) override {}

  struct Batch {
    std::vector<double> share;    // of time with k down
    std::vector<double> reached;  // times that the k-th went down, in each group and second
  };
  Batch batch(Time now) {
    for (std::size_t g = 0; g < down_.size(); ++g) settle(g, now);
    double total = 0;
    for (const double t : time_) total += t;
    Batch b;
    for (std::size_t k = 0; k < time_.size(); ++k) {
      b.share.push_back(time_[k] / total);
      b.reached.push_back(double(reached_[k]) / total);
    }
    std::fill(time_.begin(), time_.end(), 0);
    std::fill(reached_.begin(), reached_.end(), 0);
    return b;
  }

 private:
  void settle(std::size_t g, Time now) {
    time_[std::size_t(down_[g])] += to_seconds(now - since_[g]);
    since_[g] = now;
  }

  std::size_t group_;
  std::vector<std::int64_t> down_;
  std::vector<Time> since_;
  std::vector<double> time_;
  std::vector<std::int64_t> reached_ = std::vector<std::int64_t>(group_ + 1);
};

struct Plant {
  std::int64_t servers;
  std::int64_t group;
  Duration mtbf, mttr;
  int crews = 0;
};

/// `batches` stretches of `length`, after 30 repair times to warm up.
std::vector<Watch::Batch> simulate(const Plant& plant, std::uint64_t seed, int batches,
                                   Duration length) {
  sim::Engine engine(sim::Seed{seed});
  Watch watch(std::size_t(plant.servers), std::size_t(plant.group));
  ServerPool pool(engine, watch, {.servers = plant.servers, .repair = {.crews = plant.crews}});
  std::map<std::string, FailureClassSpec> classes;
  FailureClassSpec& cls = classes["server"];
  cls.component = Component::server;
  cls.lifetime.mean = plant.mtbf;
  cls.repair = {Law::exponential, plant.mttr, 1.0};
  FailureClocks clocks(engine, watch, classes, pool.counts());
  pool.attach(clocks);
  std::vector<Watch::Batch> found;
  engine.run_until(start_of_run + 30 * plant.mttr);
  watch.batch(engine.now());
  for (int b = 0; b < batches; ++b) {
    engine.run_until(add(engine.now(), length));
    found.push_back(watch.batch(engine.now()));
  }
  return found;
}

/// Share of time with more than `most` down.
std::vector<double> beyond(const std::vector<Watch::Batch>& batches, std::size_t most) {
  std::vector<double> out;
  for (const Watch::Batch& b : batches) {
    double sum = 0;
    for (std::size_t k = most + 1; k < b.share.size(); ++k) sum += b.share[k];
    out.push_back(sum);
  }
  return out;
}
std::vector<double> reached_a_year(const std::vector<Watch::Batch>& batches, std::size_t k) {
  std::vector<double> out;
  for (const Watch::Batch& b : batches) out.push_back(b.reached[k] * to_seconds(year));
  return out;
}

// Unit MTBF 50,000 h and MTTR 24 h: A = 0.999520230; of independent units 2N, 4-of-5 and 4-of-4.
TEST(RepairOracle, series_parallel_and_k_of_n_of_independent_units) {
  const double a = 50'000.0 / 50'024.0;
  EXPECT_NEAR(a, 0.999520230, 5e-10);
  const double pair = (1 - a) * (1 - a);
  EXPECT_NEAR(1 - pair, 0.999999769821, 5e-13);
  const double four_of_five = 1 - std::pow(a, 5) - 5 * std::pow(a, 4) * (1 - a);
  EXPECT_NEAR(1 - four_of_five, 0.999997700418, 5e-13);
  EXPECT_NEAR(std::pow(a, 4), 0.998082302, 5e-10);

  const auto pairs =
      simulate({.servers = 20'000, .group = 2, .mtbf = 50'000 * hour, .mttr = day}, 1, 60, year);
  const auto fives =
      simulate({.servers = 4000, .group = 5, .mtbf = 50'000 * hour, .mttr = day}, 2, 60, 4 * year);
  const auto fours =
      simulate({.servers = 2000, .group = 4, .mtbf = 50'000 * hour, .mttr = day}, 3, 50, year / 5);
  const auto unit = beyond(fours, 0);
  EXPECT_INSIDE(unit, 1 - std::pow(a, 4), 0.1);
  const auto both_down = beyond(pairs, 1);
  EXPECT_INSIDE(both_down, pair, 0.6);
  const auto two_of_five_down = beyond(fives, 1);
  EXPECT_INSIDE(two_of_five_down, four_of_five, 0.3);
}

struct Group {
  const char* name;
  int units, needed, crews;
  double unavailability, failures_a_year;  // published
  int runs;                                // of 280 years
  double width;                            // of half of the interval, at most
};

class GroupOracle : public testing::TestWithParam<Group> {};

// Life 8760 h and repair 24 h on the average.
TEST_P(GroupOracle, unavailability_and_failures_a_year) {
  const Group& g = GetParam();
  const auto spare = std::size_t(g.units - g.needed);
  const auto p = birth_death(g.units, 1.0 / 8760, 1.0 / 24, g.crews);
  double unavailable = 0;
  for (std::size_t k = spare + 1; k < p.size(); ++k) unavailable += p[k];
  EXPECT_NEAR(unavailable, g.unavailability, 5e-4 * g.unavailability);
  const double failures = p[spare] * g.needed;  // a year: lambda is 1 a year
  EXPECT_NEAR(failures, g.failures_a_year, 5e-4 * g.failures_a_year);

  std::vector<Watch::Batch> all;
  for (int run = 0; run < g.runs; ++run) {
    const Plant plant{g.units, g.units, year, day, g.crews};
    const auto batches = simulate(plant, std::uint64_t(100 + run), 1, 280 * year);
    all.insert(all.end(), batches.begin(), batches.end());
  }
  const auto share_down = beyond(all, spare);
  EXPECT_INSIDE(share_down, unavailable, g.width);
  const auto failures_a_year = reached_a_year(all, spare + 1);
  EXPECT_INSIDE(failures_a_year, failures, g.width);
}

INSTANTIATE_TEST_SUITE_P(
    RepairOracle, GroupOracle,
    testing::Values(Group{"four_of_five_5_crews", 5, 4, 5, 7.424e-5, 0.05405, 80, 0.15},
                    Group{"four_of_five_1_crew", 5, 4, 1, 1.493e-4, 0.05405, 80, 0.15},
                    Group{"five_of_seven_7_crews", 7, 5, 7, 7.080e-7, 7.73e-4, 1800, 0.3},
                    Group{"five_of_seven_1_crew", 7, 5, 1, 4.283e-6, 1.546e-3, 240, 0.5}),
    [](const auto& test) { return std::string(test.param.name); });

struct Cluster {
  const char* name;
  int crews;  // 0: one for each
  double mean_down;
  std::size_t percentile;  // 99th
  int batches;
  Duration length;
};

class ClusterOracle : public testing::TestWithParam<Cluster> {};

// 2048 servers, 3.8 failures per 1000 server-days, repair 24 h on the average.
TEST_P(ClusterOracle, servers_down_and_their_99th_percentile) {
  const Cluster& c = GetParam();
  const auto p = birth_death(2048, 0.0038, 1, c.crews == 0 ? 2048 : c.crews);
  double mean = 0;
  for (std::size_t k = 0; k < p.size(); ++k) mean += double(k) * p[k];
  EXPECT_NEAR(mean, c.mean_down, 5e-4);

  const Plant plant{2048, 2048, Duration(day) * 10'000 / 38, day, c.crews};
  const auto batches = simulate(plant, 5, c.batches, c.length);
  std::vector<double> down;
  for (const Watch::Batch& b : batches) {
    double sum = 0;
    for (std::size_t k = 0; k < b.share.size(); ++k) sum += double(k) * b.share[k];
    down.push_back(sum);
  }
  EXPECT_INSIDE(down, mean, 0.2);
  // One fewer is not enough for 99 % of the time, so many are, as far as the intervals tell.
  const Estimate fewer = estimate(beyond(batches, c.percentile - 1));
  const Estimate enough = estimate(beyond(batches, c.percentile));
  EXPECT_GT(fewer.mean + fewer.half, 0.01);
  EXPECT_LT(enough.mean - enough.half, 0.01);
}

INSTANTIATE_TEST_SUITE_P(RepairOracle, ClusterOracle,
                         testing::Values(Cluster{"no_limit", 0, 7.753, 15, 60, 60 * day},
                                         Cluster{"crews_12", 12, 7.961, 17, 60, 100 * day},
                                         Cluster{"crews_9", 9, 11.156, 34, 60, 600 * day},
                                         Cluster{"crews_8", 8, 25.163, 85, 60, 1700 * day}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace trainyard::models
