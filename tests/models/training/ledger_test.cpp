#include "models/training/ledger.hpp"

#include <gmock/gmock.h>

#include "sim/check.hpp"
#include "sim/random.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;

StepProfile profile_of(std::initializer_list<std::int64_t> parts_ns) {
  StepProfile p;
  std::size_t i = 0;
  for (const std::int64_t ns : parts_ns) {
    p.parts[i++] = Duration(ns);
    p.step += Duration(ns);
  }
  return p;
}

std::int64_t in(const Ledger& ledger, Account account) {
  return static_cast<std::int64_t>(ledger[account]);
}

TEST(Ledger, adds_gpus_times_time) {
  Ledger ledger;
  ledger.add(Account::restart, 8, 3s);
  ledger.add(Account::restart, 2, 1ns);
  EXPECT_EQ(in(ledger, Account::restart), 24'000'000'002);
  EXPECT_DOUBLE_EQ(ledger.gpu_s(Account::restart), 24.000000002);
  EXPECT_TRUE(ledger.total() == ledger[Account::restart]);
}

// 16,384 GPUs for 54 days: 7.6e19, more than 64 bits hold.
TEST(Ledger, holds_more_than_64_bits) {
  Ledger ledger;
  ledger.add(Account::useful, 16'384, 54 * 24h);
  EXPECT_DOUBLE_EQ(ledger.gpu_s(Account::useful), 16'384 * 54 * 86'400.0);
  EXPECT_GT(ledger[Account::useful], GpuNanoseconds(INT64_MAX) * 8);
}

// 3 GPUs for 7 ns of a step of 4 + 3 + 3 ns: 21 GPU-ns end at 21 * 4/10 = 8.4 -> 8, 21 * 7/10
// = 14.7 -> 14, 21.
TEST(Ledger, splits_steps_by_cumulative_rounding) {
  Ledger ledger;
  ledger.add_steps(profile_of({4, 3, 3}), 3, 7ns);
  EXPECT_EQ(in(ledger, Account::useful), 8);
  EXPECT_EQ(in(ledger, Account::kernel_inefficiency), 6);
  EXPECT_EQ(in(ledger, Account::recompute), 7);
}

TEST(Ledger, splits_whole_steps_exactly) {
  Ledger ledger;
  ledger.add_steps(profile_of({400, 0, 0, 100, 7, 0, 0, 0, 0, 0, 3}), 5, 1000 * 510ns);
  EXPECT_EQ(in(ledger, Account::useful), 5 * 400'000);
  EXPECT_EQ(in(ledger, Account::bubble), 5 * 100'000);
  EXPECT_EQ(in(ledger, Account::exposed_tp), 5 * 7'000);
  EXPECT_EQ(in(ledger, Account::slow), 5 * 3'000);
}

TEST(Ledger, loses_nothing_to_rounding) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    sim::Stream luck(sim::Seed{seed}, "ledger");
    StepProfile p;
    for (Duration& part : p.parts) {
      part = Duration(static_cast<std::int64_t>(luck.below(luck.below(2) ? 5 : 3'000'000'000)));
      p.step += part;
    }
    p.parts[0] += 1ns;
    p.step += 1ns;
    const auto gpus = static_cast<std::int64_t>(luck.below(100'001));
    const Duration d(
        static_cast<std::int64_t>(luck.below(luck.below(2) ? 1000 : 3'000'000'000'000'000'000)));
    Ledger ledger;
    ledger.add_steps(p, gpus, d);
    ASSERT_TRUE(ledger.total() == GpuNanoseconds(gpus) * d.count());
    for (std::size_t i = 0; i < step_parts; ++i) {  // each part within one GPU-ns of its share
      const long double share =
          (long double)(gpus) * (long double)(d.count()) * p.parts[i].count() / p.step.count();
      const auto amount = (long double)(ledger[static_cast<Account>(i)]);
      ASSERT_LE(std::abs(amount - share), 1.0L + share * 1e-15L);
    }
  }
}

TEST(Ledger, work_that_was_lost_moves_as_a_whole) {
  Ledger work, job;
  work.add_steps(profile_of({4, 3, 3}), 2, 10ns);
  job.add(Account::useful, 1, 5ns);
  job.add_as(Account::lost_work, work);
  EXPECT_EQ(in(job, Account::lost_work), 20);
  EXPECT_EQ(in(job, Account::useful), 5);
  Ledger sum;
  sum.add(work);
  sum.add(job);
  EXPECT_EQ(in(sum, Account::useful), 8 + 5);
  sum.clear();
  EXPECT_TRUE(sum.total() == 0);
}

TEST(Ledger, refuses_nonsense) {
  Ledger ledger;
  StepProfile wrong = profile_of({4, 3, 3});
  wrong.step = 11ns;
  EXPECT_THROW(ledger.add_steps(wrong, 1, 1ns), CheckFailed);
  EXPECT_THROW(ledger.add(Account::useful, 1, -1ns), CheckFailed);
  EXPECT_THROW(ledger.add_steps(StepProfile{}, 1, 1ns), CheckFailed);
}

TEST(Accounts, of_the_parts_of_a_step_have_their_names) {
  for (std::size_t i = 0; i < step_parts; ++i)
    EXPECT_EQ(name_of(account_of(static_cast<StepPart>(i))), name_of(static_cast<StepPart>(i)));
}

}  // namespace
}  // namespace trainyard::models
