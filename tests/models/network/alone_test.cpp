#include "models/network/collectives/alone.hpp"

#include <gmock/gmock.h>

namespace trainyard::models {
namespace {

using enum CollectiveKind;

constexpr double MiB = 1048576, GiB = 1073741824;

TEST(Alone, calibrated_constants_give_the_published_times) {
  const AloneConstants h100;
  AloneConstants a100;
  a100.step_s = 3e-6;
  a100.sqrt_s_per_sqrt_B = 2.4e-8;
  a100.ring_Bps = 234e9;
  const auto is_within_1_percent = [](double got_s, double want_s) {
    EXPECT_NEAR(got_s / want_s, 1, 0.01) << got_s;
  };
  is_within_1_percent(alone_s(all_gather, 128 * MiB, 8, 8, h100), 455e-6);
  is_within_1_percent(alone_s(reduce_scatter, GiB, 16, 1, h100), 23.3e-3);  // one rank a server
  is_within_1_percent(alone_s(all_reduce, 64 * MiB, 1024, 8, h100), 1.15e-3);
  is_within_1_percent(alone_s(all_gather, GiB, 512, 8, h100), 4.57e-3);
  is_within_1_percent(alone_s(all_reduce, 48 * MiB, 8, 8, a100), 578e-6);
}

TEST(Alone, terms_by_hand) {
  AloneConstants c;
  c.ring_Bps = 100;
  c.sqrt_s_per_sqrt_B = 0.5;
  c.base_s = 1;
  c.step_s = 2;
  c.nic_step_s = 10;
  c.nic_Bps = 10;
  c.nic_efficiency = 0.5;
  EXPECT_DOUBLE_EQ(alone_s(all_gather, 400, 4, 4, c),
                   1 + 3 + 10 + 3);  // base, 3·a/2, 0.5·20, 0.75·400/100
  EXPECT_DOUBLE_EQ(alone_s(all_reduce, 400, 4, 4, c), 1 + 6 + 10 + 6);
  EXPECT_DOUBLE_EQ(alone_s(all_gather, 400, 4, 2, c), 1 + 2 * 2 + 10 + 20);  // (1/2)·(400/2)/5
  EXPECT_DOUBLE_EQ(alone_point_to_point_s(400, false, c), 1 + 10 + 80);
  EXPECT_EQ(alone_s(all_reduce, 400, 1, 8, c), 0);
}

TEST(Alone, more_bytes_or_ranks_never_take_less) {
  const AloneConstants c;
  for (const CollectiveKind kind :
       {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all}) {
    double before = 0;
    for (double bytes = 1024; bytes < 1e11; bytes *= 3) {
      const double now = alone_s(kind, bytes, 64, 8, c);
      EXPECT_GT(now, before);
      before = now;
    }
    // From two domains on: the law of one domain has a term that the others lack, and is above them
    // there.
    before = 0;
    for (std::size_t n = 16; n <= 1024; n *= 2) {
      const double now = alone_s(kind, GiB, n, 8, c);
      EXPECT_GE(now, before) << n;
      before = now;
    }
  }
}

}  // namespace
}  // namespace trainyard::models
