#include "sim/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/check.hpp"

namespace trainyard::sim {
namespace {

// ---- the generator

/// Vectors 1 to 3 of philox4x32-10 in the file kat_vectors of Random123 1.14.
TEST(Philox, known_answers) {
  using Counter = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Stream, golden_first_values) {
  Stream stream(Seed{1}, "failures/node-17/gpu-3");
  EXPECT_EQ(stream.bits(), 0x0627fcc5ad2c540eu);
  EXPECT_EQ(stream.bits(), 0x837451a74630804cu);
  EXPECT_EQ(stream.bits(), 0x7c07c5b363dff78bu);
  EXPECT_EQ(stream.child(5).bits(), 0x5fb906a14449bbc6u);
}

TEST(Stream, is_what_philox_gives_for_seed_and_place) {
  Stream stream(Seed{0x0123456789abcdef}, "x");
  const std::uint64_t place = hash_path("x");
  for (std::uint32_t block = 0; block < 3; ++block) {
    const auto word = philox({block, 0, std::uint32_t(place), std::uint32_t(place >> 32)},
                             {0x89abcdef, 0x01234567});
    EXPECT_EQ(stream.bits(), word[0] | std::uint64_t{word[1]} << 32);
    EXPECT_EQ(stream.bits(), word[2] | std::uint64_t{word[3]} << 32);
  }
}

TEST(Stream, random_access_gives_the_same_values_as_drawing) {
  const Stream fresh(Seed{3}, "x");
  Stream drawn = fresh;
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(drawn.uniform(), fresh.uniform_at(i)) << i;
  Stream again = fresh;
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(again.bits(), fresh.bits_at(i)) << i;
}

TEST(Stream, another_streams_draws_change_nothing) {
  Stream alone(Seed{1}, "a");
  Stream beside(Seed{1}, "a");
  Stream other(Seed{1}, "b");
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < i; ++j) other.bits();
    ASSERT_EQ(alone.bits(), beside.bits());
  }
}

TEST(Stream, every_distribution_takes_one_value_a_draw) {
  const Stream fresh(Seed{1}, "x");
  for (const auto& draw : std::vector<std::function<void(Stream&)>>{
           [](Stream& s) { s.bits(); }, [](Stream& s) { s.uniform(); },
           [](Stream& s) { s.uniform_open(); }, [](Stream& s) { s.exponential(1.0); },
           [](Stream& s) { s.weibull(2.0, 1.0); }, [](Stream& s) { s.normal(); },
           [](Stream& s) { s.log_normal(1.0, 1.0); }, [](Stream& s) { s.below(10); }}) {
    Stream stream = fresh;
    for (int i = 0; i < 7; ++i) draw(stream);
    EXPECT_EQ(stream.bits(), fresh.bits_at(7));
  }
}

TEST(Stream, names_numbers_and_seeds_all_matter) {
  std::set<std::uint64_t> seen;
  std::size_t made = 0;
  auto add = [&](Stream stream) {
    seen.insert(stream.bits());
    ++made;
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const char* path : {"", "a", "b", "a/b", "b/a", "node-1/gpu-11", "node-11/gpu-1"}) {
      const Stream stream(Seed{seed}, path);
      add(stream);
      for (std::uint64_t i = 0; i < 50; ++i) {
        add(stream.child(i));
        add(stream.child(i).child(i + 1));
        add(stream.child(i + 1).child(i + 60));
      }
    }
  }
  EXPECT_EQ(seen.size(), made);  // a chance collision has probability 21,140^2 / 2^65 = 1e-11
}

TEST(HashPath, is_fnv_1a_scrambled_and_has_no_collision_among_component_names) {
  std::set<std::uint64_t> seen;
  for (int node = 0; node < 2000; ++node)
    for (int gpu = 0; gpu < 8; ++gpu)
      for (const char* kind : {"failures", "repairs"})
        seen.insert(hash_path(std::string(kind) + "/node-" + std::to_string(node) + "/gpu-" +
                              std::to_string(gpu)));
  EXPECT_EQ(seen.size(), 32'000u);
}

// ---- the distributions

struct Law {
  const char* name;
  std::function<double(Stream&)> draw;
  double mean;
  double variance;
  double
      fourth_central_moment;  // over variance squared (kurtosis): bounds the error of the variance
};

class Moments : public testing::TestWithParam<Law> {};

/// Half a million draws. The mean's standard error is sigma / sqrt(n), the variance's is
/// variance * sqrt((kurtosis - 1) / n); five of them are missed once in two million tries.
TEST_P(Moments, agree_with_the_closed_form) {
  const Law& law = GetParam();
  constexpr int n = 500'000;
  Stream stream(Seed{2024}, law.name);
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < n; ++i) {
    const double x = law.draw(stream) - law.mean;
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 5.0 * std::sqrt(law.variance / n));
  EXPECT_NEAR(squares / n, law.variance,
              5.0 * law.variance * std::sqrt((law.fourth_central_moment - 1.0) / n));
}

// Weibull of shape k and scale 1: E[X^m] = Gamma(1 + m/k). For k = 2: mean sqrt(pi)/2, variance
// 1 - pi/4, kurtosis 3.2451. For k = 0.7: mean 1.26582, variance 3.42684, kurtosis 23.54 (computed
// from the Gamma function). Log-normal, median 2, s = 0.5: mean 2 e^(s²/2), variance 4 e^(s²)
// (e^(s²) - 1), kurtosis e^(4s²) + 2 e^(3s²) + 3 e^(2s²) - 3 = 8.898.
INSTANTIATE_TEST_SUITE_P(
    Laws, Moments,
    testing::Values(Law{"uniform", [](Stream& s) { return s.uniform(); }, 0.5, 1.0 / 12.0, 1.8},
                    Law{"uniform_open", [](Stream& s) { return s.uniform_open(); }, 0.5, 1.0 / 12.0,
                        1.8},
                    Law{"exponential", [](Stream& s) { return s.exponential(3.0); }, 3.0, 9.0, 9.0},
                    Law{"weibull_1_is_exponential", [](Stream& s) { return s.weibull(1.0, 3.0); },
                        3.0, 9.0, 9.0},
                    Law{"weibull_2", [](Stream& s) { return s.weibull(2.0, 1.0); },
                        0.886226925452758, 0.214601836602552, 3.2451},
                    Law{"weibull_infant", [](Stream& s) { return s.weibull(0.7, 1.0); },
                        std::tgamma(1 + 1 / 0.7),
                        std::tgamma(1 + 2 / 0.7) - std::pow(std::tgamma(1 + 1 / 0.7), 2), 23.6},
                    Law{"normal", [](Stream& s) { return s.normal(); }, 0.0, 1.0, 3.0},
                    Law{"log_normal", [](Stream& s) { return s.log_normal(2.0, 0.5); },
                        2.0 * std::exp(0.125), 4.0 * std::exp(0.25) * (std::exp(0.25) - 1.0), 8.9},
                    Law{"below", [](Stream& s) { return double(s.below(10)); }, 4.5, 8.25, 1.7757}),
    [](const auto& test) { return test.param.name; });

TEST(Stream, below_reaches_every_value_and_never_n) {
  Stream stream(Seed{1}, "x");
  std::vector<int> count(7);
  for (int i = 0; i < 70'000; ++i) ++count.at(stream.below(7));
  // Each has mean 10,000 and deviation sqrt(70000 * 1/7 * 6/7) = 93.
  for (int c : count) EXPECT_NEAR(c, 10'000, 5 * 93);
  EXPECT_EQ(stream.below(1), 0u);
  EXPECT_THROW(stream.below(0), CheckFailed);
}

TEST(Stream, uniform_stays_in_its_interval) {
  Stream stream(Seed{1}, "x");
  for (int i = 0; i < 100'000; ++i) {
    const double u = stream.uniform(), v = stream.uniform_open();
    ASSERT_TRUE(u >= 0.0 && u < 1.0 && v > 0.0 && v <= 1.0) << u << ' ' << v;
  }
}

TEST(Stream, parameters_without_meaning_are_our_mistake) {
  Stream stream(Seed{1}, "x");
  EXPECT_THROW(stream.exponential(-1.0), CheckFailed);
  EXPECT_THROW(stream.weibull(0.0, 1.0), CheckFailed);
  EXPECT_THROW(stream.log_normal(1.0, -1.0), CheckFailed);
  EXPECT_EQ(stream.exponential(0.0), 0.0);
}

TEST(NormalQuantile, undoes_the_normal_distribution) {
  // Phi(x) = erfc(-x / sqrt 2) / 2. An error e in x changes the tail Phi by the relative amount
  // |x| e at most about x^2 1e-16 x: 1e-13 allows for x = -37.
  for (double p : {1e-300, 1e-100, 1e-20, 1e-9, 1e-3, 0.02425, 0.07, 0.075, 0.1, 0.3, 0.5})
    EXPECT_NEAR(std::erfc(-normal_quantile(p) / std::sqrt(2.0)) / 2.0 / p, 1.0, 2e-12) << p;
  EXPECT_EQ(normal_quantile(0.5), 0.0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
  EXPECT_THROW(normal_quantile(0.0), CheckFailed);
  EXPECT_THROW(normal_quantile(1.0), CheckFailed);
}

}  // namespace
}  // namespace trainyard::sim
