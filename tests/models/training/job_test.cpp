#include "models/training/job.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/models/training/life_rig.hpp"

namespace trainyard::models {
namespace {

using sim::Phase;
using testing::HasSubstr;
using testing::StartsWith;
using topologies::HostId;

/// Accounts of a job of 16 GPUs in time per GPU; an account not named is empty.
void expect_accounts(const Job& job, std::map<Account, Duration> expected, Duration steps) {
  for (std::size_t a = step_parts; a < accounts; ++a) {
    const auto account = static_cast<Account>(a);
    EXPECT_EQ(per_gpu(job.ledger(), account, 16), expected[account]) << name_of(account);
  }
  EXPECT_TRUE(in_steps(job.ledger()) == GpuNanoseconds(16) * steps.count())
      << double(in_steps(job.ledger())) / 16e9 << " s in kept steps";
}

double s(std::optional<Time> t) {
  return t ? to_seconds(*t) : -1;
}

// Start-up 0-5; then 10 steps and a save of 2 s, again and again: 5-15-17-27-29-39-41...
TEST(Job, an_undisturbed_life) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.run_and_close(35s);
  expect_accounts(job, {{Account::restart, 5s}, {Account::checkpoint_stall, 4s}}, 26s);
  EXPECT_EQ(per_gpu(job.ledger(), Account::useful, 16), 10'400ms);  // 0.4 of 26 s
  EXPECT_EQ(per_gpu(job.ledger(), Account::exposed_dp, 16), 5'200ms);
  const JobStats stats = job.stats();
  EXPECT_EQ(stats.state, "running");
  EXPECT_EQ(stats.steps_kept, 26);
  EXPECT_DOUBLE_EQ(stats.goodput, 26.0 / 35);
  EXPECT_DOUBLE_EQ(stats.step_s, 1.0);
  EXPECT_DOUBLE_EQ(stats.tokens, 2600);
  EXPECT_EQ(stats.checkpoints, 2);
  EXPECT_EQ(stats.interruptions, 0);
  EXPECT_EQ(stats.mtbi_s, 0);
  ASSERT_EQ(job.checkpoints().size(), 2u);
  EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].start), 27);
  EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].complete), 29);
  EXPECT_EQ(job.checkpoints()[1].step, 20);
  EXPECT_EQ(life.pool.ledger()[Account::spare_idle], GpuNanoseconds(8) * 35'000'000'000);
}

TEST(Job, stops_after_its_last_step_and_gives_its_servers_back) {
  Life life;
  JobSpec spec = spec_by_hand();
  spec.steps = 12;  // 5-15, save -17, two more: 19
  Job& job = life.add(spec);
  life.run_and_close(100s);
  expect_accounts(job, {{Account::restart, 5s}, {Account::checkpoint_stall, 2s}}, 12s);
  EXPECT_EQ(job.stats().state, "done");
  EXPECT_EQ(job.stats().steps_kept, 12);
  EXPECT_EQ(job.stats().wall, 19s);
  EXPECT_DOUBLE_EQ(job.stats().goodput, 12.0 / 19);
  EXPECT_EQ(per_gpu(life.pool.ledger(), Account::unallocated, 16), 81s);
}

TEST(Job, waits_for_its_submission_and_for_the_servers_of_another) {
  Life life;
  JobSpec first = spec_by_hand(), second = spec_by_hand();
  first.steps = 12;  // done at 19 s
  second.start = 10s;
  life.add(first, false, "first");
  Job& job = life.add(second, false, "second");
  life.run_and_close(30s);  // start-up 19-24, 6 steps
  EXPECT_EQ(job.stats().queued, 9s);
  EXPECT_EQ(job.stats().wall, 11s);
  EXPECT_DOUBLE_EQ(job.stats().goodput, 6.0 / 11);
  EXPECT_DOUBLE_EQ(job.stats().ettr, 6.0 / 20);
}

// 30.5 s: one step (29-30) and a half since the save that completed at 29. Found at 34.5, replaced
// until 37.5 by the spare, start-up until 42.5, load until 43.5, train to 53.5, save to 55.5, 4.5 s
// more.
TEST(Job, a_crash_costs_detection_replacement_start_up_load_and_lost_work) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.fail_at(30500ms, life.crash(), 11);  // GPU 3 of server 1
  life.run_and_close(60s);
  expect_accounts(job,
                  {{Account::restart, 5s + 3s + 5s + 1s},
                   {Account::detection, 4s},
                   {Account::checkpoint_stall, 6s},
                   {Account::lost_work, 1500ms}},
                  34500ms);
  EXPECT_EQ(per_gpu(life.pool.ledger(), Account::spare_idle, 8), 37500ms);
  EXPECT_EQ(per_gpu(life.pool.ledger(), Account::down_repair, 8), 22500ms);
  const JobStats stats = job.stats();
  EXPECT_EQ(stats.steps_kept, 34);
  EXPECT_EQ(stats.step_time, 34500ms);
  EXPECT_EQ(stats.lost_time, 1500ms);
  EXPECT_DOUBLE_EQ(stats.step_s, 1.0);
  EXPECT_EQ(stats.interruptions, 1);
  EXPECT_DOUBLE_EQ(stats.mtbi_s, 60);
  EXPECT_EQ(stats.interruptions_by_class.at("crash"), 1);
  EXPECT_EQ(stats.saves_lost, 0);
  ASSERT_EQ(job.interruptions().size(), 1u);
  const InterruptionRow& row = job.interruptions()[0];
  EXPECT_DOUBLE_EQ(s(row.when), 30.5);
  EXPECT_DOUBLE_EQ(s(row.found), 34.5);
  EXPECT_DOUBLE_EQ(s(row.resumed), 43.5);
  EXPECT_EQ(row.server, HostId(1));
  EXPECT_EQ(row.lost_steps, 1);
  EXPECT_EQ(row.lost_time, 1500ms);
  EXPECT_EQ(job.servers(),
            (std::vector<HostId>{HostId(0), HostId(2)}));  // the same rank, another server
}

TEST(Job, its_segments_tell_the_story_without_gaps) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.fail_at(30500ms, life.crash(), 11);
  life.run_and_close(60s);
  std::string story;
  for (const SegmentRow& row : job.segments())
    story += std::string(name_of(row.state)) + " " +
             std::to_string(row.end.time_since_epoch() / 100ms) + " " + std::to_string(row.steps) +
             "; ";
  EXPECT_EQ(story,
            "starting 50 0; training 150 10; saving 170 0; training 270 10; saving 290 0; training "
            "305 1; "
            "detecting 345 0; replacing 375 0; starting 425 0; loading 435 0; training 535 10; "
            "saving 555 0; "
            "training 600 4; ");
  for (std::size_t i = 1; i < job.segments().size(); ++i)
    EXPECT_EQ(job.segments()[i - 1].end, job.segments()[i].start);
}

TEST(Job, the_log_names_the_cause_of_everything_that_follows) {
  Life life({.record = true});
  life.add(spec_by_hand());
  life.fail_at(30500ms, life.crash(), 11);
  life.run_and_close(60s);
  const auto& log = static_cast<sim::MemoryRecorder&>(*life.recorder);
  std::size_t last = log.events().size();
  for (std::size_t i = 0; i < log.events().size(); ++i)
    if (log.kinds()[log.events()[i].kind.index()].name == "job training") last = i;
  std::vector<std::string> chain;
  for (sim::EventIndex e(last); e.is_valid(); e = log.events()[e.index()].cause)
    chain.push_back(log.kinds()[log.events()[e.index()].kind.index()].name);
  EXPECT_THAT(
      chain, testing::ElementsAre("job training", "job starting", "job goes back", "servers let go",
                                  "failure found", "job struck", "crash failed"));
}

// Both sides of the instant at which the second save is complete (29 s).
TEST(Job, a_save_that_is_struck_before_it_is_complete_is_no_checkpoint) {
  for (const Duration offset : {-1ns, 0ns, 1ns}) {
    SCOPED_TRACE(offset.count());
    Life life;
    Job& job = life.add(spec_by_hand());
    life.fail_at(29s + offset, life.crash(), 0);
    life.run_and_close(29s + offset + 12s);  // detection 4, replace 3, start-up 5: then it loads
    const bool is_safe = offset > 0ns;       // at the same instant the failure comes first
    EXPECT_EQ(job.stats().steps_kept, is_safe ? 20 : 10);
    EXPECT_EQ(job.stats().saves_lost, is_safe ? 0 : 1);
    EXPECT_EQ(job.checkpoints()[1].is_lost, !is_safe);
    expect_accounts(job,
                    {{Account::restart, 13s},
                     {Account::detection, 4s},
                     {Account::checkpoint_stall, std::min(4s + offset, Duration(4s))},
                     {Account::lost_work, is_safe ? Duration(1ns) : 10s}},
                    is_safe ? 20s : 10s);
  }
}

TEST(Job, without_any_checkpoint_it_starts_over_and_loads_nothing) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.fail_at(14s, life.crash(), 0);  // 9 steps; found 18, replaced 21, started 26
  life.run_and_close(30s);
  expect_accounts(
      job, {{Account::restart, 13s}, {Account::detection, 4s}, {Account::lost_work, 9s}}, 4s);
}

// Stall 15-16, drain 16-18, then every 11 s: 26-27, drain 27-29.
TEST(Job, an_asynchronous_save_drains_behind_training) {
  JobSpec spec = spec_by_hand();
  spec.checkpoint.mode = SaveMode::asynchronous;
  spec.checkpoint.stall = 1s;
  {
    Life life;
    Job& job = life.add(spec);
    life.run_and_close(30s);
    expect_accounts(job, {{Account::restart, 5s}, {Account::checkpoint_stall, 2s}}, 23s);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[0].start), 15);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[0].stall_end), 16);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[0].complete), 18);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].start), 26);
    EXPECT_EQ(job.stats().saves_late, 0);
  }
  for (const Duration offset : {-1ns, 1ns}) {  // both sides of the end of the first drain
    Life life;
    Job& job = life.add(spec);
    life.fail_at(18s + offset, life.crash(), 0);
    life.run_and_close(24s);
    EXPECT_EQ(job.stats().steps_kept, offset > 0ns ? 10 : 0);
    EXPECT_EQ(job.interruptions()[0].lost_time, offset > 0ns ? 2s + offset : 12s + offset);
    EXPECT_EQ(job.interruptions()[0].lost_steps, offset > 0ns ? 2 : 11);
  }
}

// The drain takes 25 s (16-41), so the save due at 26 waits. At 41 s a step ends: saved at once.
// With half a second more the drain ends in the middle of a step, and the save waits for its end
// at 42.
TEST(Job, saves_that_pile_up_wait_for_the_drain_and_are_counted) {
  JobSpec spec = spec_by_hand();
  spec.checkpoint.mode = SaveMode::asynchronous;
  spec.checkpoint.stall = 1s;
  for (const Duration latency : {0ms, 500ms}) {
    LifeSetup setup;
    setup.store = {4_GBps, 100_GBps, 200_GBps, latency};
    Life life(setup);
    Job& job = life.add(spec);
    life.run_and_close(60s);
    ASSERT_EQ(job.checkpoints().size(), 2u);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[0].complete), 41 + to_seconds(latency));
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].start), latency == 0ms ? 41 : 42);
    EXPECT_EQ(job.stats().saves_late, 1);
    EXPECT_FALSE(job.checkpoints()[0].was_late);
  }
}

TEST(Job, a_save_that_is_due_as_the_drain_ends_is_not_late) {
  JobSpec spec = spec_by_hand();
  spec.checkpoint.mode = SaveMode::asynchronous;
  spec.checkpoint.stall = 1s;
  LifeSetup setup;
  setup.store = {10_GBps, 100_GBps, 200_GBps, 0s};  // drain 16-26, due at 26
  for (const sim::TieOrder ties : {sim::TieOrder::as_scheduled, sim::TieOrder::shuffled}) {
    setup.ties = ties;
    Life life(setup);
    Job& job = life.add(spec);
    life.run_and_close(70s);
    EXPECT_EQ(job.stats().saves_late, 0);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].start), 26);
    EXPECT_DOUBLE_EQ(s(job.checkpoints()[4].start), 59);
  }
}

// No spare: the broken server leaves at 37.5 s, is repaired until 137.5 s and comes back to the
// same job.
TEST(Job, without_spares_it_waits_for_the_repair) {
  LifeSetup setup;
  setup.pool.servers = 2;
  setup.pool.spares = 0;
  setup.pool.leaf = {0, 1};
  setup.pool.pod = {0, 0};
  Life life(setup);
  Job& job = life.add(spec_by_hand());
  life.fail_at(30500ms, life.crash(), 11);
  life.run_to(100s);
  EXPECT_EQ(job.state(), JobState::waiting);
  EXPECT_EQ(job.stats().state, "waiting: for 1 of 2 servers; 0 spare, 0 unallocated, 1 down");
  life.run_and_close(150s);  // start-up -142.5, load -143.5, 6.5 s
  EXPECT_EQ(per_gpu(job.ledger(), Account::waiting_for_nodes, 8),
            100s);  // of the one server it held
  EXPECT_EQ(per_gpu(life.pool.ledger(), Account::down_repair, 8), 100s);
  EXPECT_EQ(job.stats().step_time, 20s + 6500ms);
  EXPECT_EQ(job.servers(), (std::vector<HostId>{HostId(0), HostId(1)}));
}

TEST(Job, a_hang_is_found_by_the_watchdog) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.fail_at(30500ms, life.failure_class("hang", Effect::hang, 20s), 11);
  life.run_and_close(60s);  // found 50.5, replaced 53.5, start-up -58.5, load -59.5
  expect_accounts(job,
                  {{Account::restart, 14s},
                   {Account::detection, 20s},
                   {Account::checkpoint_stall, 4s},
                   {Account::lost_work, 1500ms}},
                  20500ms);
}

// 30.25 s: a quarter of the second step is done, the rest takes 1.5 s at half speed; then steps of
// 2 s end at 31.75, 33.75, 35.75, 37.75. Found at 38.25: 5 steps and 0.5 s are lost. Replaced
// at 41.25, start-up 46.25, load 47.25.
TEST(Job, a_slow_member_slows_the_job_until_it_is_found_and_replaced) {
  Life life;
  Job& job = life.add(spec_by_hand());
  FailureClass& slow = life.failure_class("slow", Effect::slow, 8s);
  slow.spec.speed = 0.5;
  life.fail_at(30250ms, slow, 11);
  life.run_to(35s);
  EXPECT_EQ(job.placement().slow, (std::vector<SlowGpu>{{11, 0.5}}));
  life.run_and_close(50s);
  expect_accounts(job,
                  {{Account::restart, 5s + 3s + 5s + 1s},
                   {Account::checkpoint_stall, 4s},
                   {Account::lost_work, 9250ms}},
                  20s + 2750ms);
  EXPECT_EQ(job.interruptions()[0].lost_steps, 5);
  EXPECT_DOUBLE_EQ(s(job.interruptions()[0].found), 38.25);
  EXPECT_EQ(job.profiles().size(), 2u);
  EXPECT_TRUE(job.placement().slow.empty());
}

TEST(Job, what_is_saved_while_it_is_slow_is_kept_and_its_time_is_in_the_slow_account) {
  Life life;
  Job& job = life.add(spec_by_hand());
  FailureClass& slow = life.failure_class("slow", Effect::slow, 1h);
  slow.spec.speed = 0.5;
  slow.spec.component = Component::server;
  life.fail_at(29s, slow, 0);  // exactly between the save and the next step
  life.run_to(30s);
  EXPECT_EQ(job.placement().slow.size(), 8u);
  life.run_and_close(41s);  // 5 steps of 2 s, then the save 39-41
  EXPECT_EQ(job.stats().steps_kept, 25);
  EXPECT_EQ(per_gpu(job.ledger(), Account::slow, 16), 5s);
  EXPECT_DOUBLE_EQ(job.stats().step_s, 30.0 / 25);
}

TEST(Job, software_restarts_in_place) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.fail_at(30500ms, life.failure_class("software", Effect::crash, 4s, false), 11);
  life.run_and_close(60s);  // found 34.5, start-up -39.5, load -40.5, -50.5, save -52.5
  expect_accounts(job,
                  {{Account::restart, 11s},
                   {Account::detection, 4s},
                   {Account::checkpoint_stall, 6s},
                   {Account::lost_work, 1500ms}},
                  37500ms);
  EXPECT_EQ(life.pool.spare_servers(), 1);
  EXPECT_EQ(life.pool.down_servers(), 0);
}

// The second crash strikes during the start-up (37.5-42.5): found at 44, replaced at 47, start-up
// 52, load 53.
TEST(Job, a_crash_during_start_up_begins_the_recovery_again) {
  LifeSetup setup;
  setup.pool = {.servers = 4, .gpus_per_server = 8, .nics_per_server = 8, .spares = 2};
  Life life(setup);
  Job& job = life.add(spec_by_hand());
  const FailureClass& crash = life.crash();
  life.fail_at(30500ms, crash, 11);
  life.fail_at(40s, crash, 3);
  life.run_and_close(60s);
  expect_accounts(job,
                  {{Account::restart, 5s + 3s + 2500ms + 3s + 5s + 1s},
                   {Account::detection, 8s},
                   {Account::checkpoint_stall, 4s},
                   {Account::lost_work, 1500ms}},
                  27s);
  EXPECT_EQ(job.stats().interruptions, 2);
  EXPECT_EQ(job.interruptions()[1].lost_steps, 0);
  EXPECT_DOUBLE_EQ(s(job.interruptions()[0].resumed), 53);
  EXPECT_EQ(job.servers(), (std::vector<HostId>{HostId(3), HostId(2)}));
  EXPECT_EQ(life.pool.down_servers(), 2);
}

TEST(Job, a_crash_during_the_load_begins_the_recovery_again) {
  Life life;
  Job& job = life.add(spec_by_hand());
  const FailureClass& software = life.failure_class("software", Effect::crash, 4s, false);
  life.fail_at(30500ms, software, 11);  // load 39.5-40.5
  life.fail_at(40s, software, 3);       // found 44, start-up 49, load 50
  life.run_and_close(55s);
  expect_accounts(job,
                  {{Account::restart, 5s + 5500ms + 6s},
                   {Account::detection, 8s},
                   {Account::checkpoint_stall, 4s},
                   {Account::lost_work, 1500ms}},
                  25s);
}

// Struck again while it is broken anyhow: in detection the earlier finding counts, in replacement
// the examination finds it; both servers leave at once.
TEST(Job, failures_before_the_restart_are_dealt_with_together) {
  for (const Duration second : {32s, 36s}) {
    LifeSetup setup;
    setup.pool = {.servers = 4, .gpus_per_server = 8, .nics_per_server = 8, .spares = 2};
    Life life(setup);
    Job& job = life.add(spec_by_hand());
    const FailureClass& crash = life.crash();
    life.fail_at(30500ms, crash, 11);
    life.fail_at(second, crash, 3);
    life.run_and_close(60s);  // as if there had been one
    expect_accounts(job,
                    {{Account::restart, 14s},
                     {Account::detection, 4s},
                     {Account::checkpoint_stall, 6s},
                     {Account::lost_work, 1500ms}},
                    34500ms);
    EXPECT_EQ(job.stats().interruptions, 2);
    EXPECT_EQ(life.pool.down_servers(), 2);
  }
}

// While the job is stopped a slow member does no harm and is found at once; during a start-up it
// does not disturb that, and is found later: training 43.5, two steps of 2 s, found at 48, replaced
// 51, start-up 56, load 57.
TEST(Job, a_member_that_turns_slow_during_a_recovery) {
  for (const Duration second : {36s, 40s}) {
    LifeSetup setup;
    setup.pool = {.servers = 4, .gpus_per_server = 8, .nics_per_server = 8, .spares = 2};
    Life life(setup);
    Job& job = life.add(spec_by_hand());
    FailureClass& slow = life.failure_class("slow", Effect::slow, 8s);
    slow.spec.speed = 0.5;
    life.fail_at(30500ms, life.crash(), 11);
    life.fail_at(second, slow, 3);
    life.run_and_close(60s);
    const bool is_late = second == 40s;
    expect_accounts(job,
                    {{Account::restart, is_late ? 23s : 14s},
                     {Account::detection, 4s},
                     {Account::checkpoint_stall, is_late ? 4s : 6s},
                     {Account::lost_work, is_late ? 6s : 1500ms}},
                    is_late ? 23s : 34500ms);
    EXPECT_TRUE(job.placement().slow.empty());
    EXPECT_EQ(job.interruptions()[1].lost_steps, is_late ? 2 : 0);
    EXPECT_DOUBLE_EQ(s(job.interruptions()[1].found), is_late ? 48 : 37.5);
  }
}

TEST(Job, a_quick_crash_ends_the_slow_detection_of_a_hang) {
  LifeSetup setup;
  setup.pool = {.servers = 4, .gpus_per_server = 8, .nics_per_server = 8, .spares = 2};
  Life life(setup);
  Job& job = life.add(spec_by_hand());
  life.fail_at(30500ms, life.failure_class("hang", Effect::hang, 600s), 11);
  life.fail_at(50s, life.crash(), 3);  // found at 54
  life.run_and_close(60s);
  EXPECT_EQ(per_gpu(job.ledger(), Account::detection, 16), 23500ms);
  EXPECT_EQ(life.pool.down_servers(), 2);
}

TEST(Job, a_member_that_breaks_while_it_waits_leaves_too) {
  LifeSetup setup;
  setup.pool.servers = 2;
  setup.pool.spares = 0;
  setup.pool.leaf = {0, 1};
  setup.pool.pod = {0, 0};
  Life life(setup);
  Job& job = life.add(spec_by_hand());
  const FailureClass& crash = life.crash();
  life.fail_at(30500ms, crash, 11);  // server 1 leaves at 37.5, back at 137.5
  life.fail_at(50s, crash, 3);       // server 0 leaves at once, back at 150
  life.run_to(60s);
  EXPECT_EQ(job.servers_held(), 0);
  life.run_and_close(160s);  // start-up 155, load 156
  EXPECT_EQ(job.stats().step_time, 24s);
  EXPECT_EQ(per_gpu(job.ledger(), Account::waiting_for_nodes, 8), 12500ms + 12500ms);
}

TEST(Job, a_leaf_switch_takes_all_its_servers) {
  LifeSetup setup;
  setup.pool = {.servers = 4,
                .gpus_per_server = 8,
                .nics_per_server = 8,
                .spares = 2,
                .leaf = {0, 0, 1, 1},
                .pod = {0, 0, 0, 0}};
  Life life(setup);
  Job& job = life.add(spec_by_hand());
  FailureClass& leaf = life.failure_class("leaf", Effect::crash, 4s);
  leaf.spec.component = Component::leaf_switch;
  life.fail_at(30500ms, leaf, 0);
  life.run_and_close(60s);
  EXPECT_EQ(job.stats().interruptions, 1);  // one failure, one interruption
  EXPECT_EQ(job.interruptions()[0].servers, 2);
  EXPECT_EQ(job.servers(), (std::vector<HostId>{HostId(2), HostId(3)}));
  EXPECT_EQ(per_gpu(life.pool.ledger(), Account::down_connected, 16), 22500ms);
}

TEST(Job, gpus_of_a_last_server_that_it_does_not_use_are_unallocated) {
  Life life;
  JobSpec spec = spec_by_hand();
  spec.gpus = 12;
  Job& job = life.add(spec);
  life.run_and_close(15s);
  EXPECT_EQ(per_gpu(job.ledger(), Account::unallocated, 4), 15s);
  EXPECT_EQ(per_gpu(job.ledger(), Account::restart, 12), 5s);
}

TEST(Job, that_cannot_start_is_stalled_and_says_why) {
  Life life;
  JobSpec large = spec_by_hand();
  large.gpus = 24;  // 3 servers; one of the 3 is a spare
  Job& job = life.add(large);
  Job homeless(life.engine, *life.recorder, life.pool, StoreShelf{}, life.steps,
               {"homeless", 7, spec_by_hand(), 100_GB});
  life.run_and_close(1000h);
  homeless.close();
  EXPECT_EQ(job.stats().state, "stalled: needs 3 servers, the cluster has 2 besides its spares");
  EXPECT_EQ(homeless.stats().state, "stalled: there is no store \"pfs\"");
  EXPECT_EQ(job.stats().goodput, 0);
  EXPECT_EQ(life.engine.live_processes(), 0u);
}

TEST(Job, without_checkpoints_needs_no_store_and_loses_everything) {
  Life life;
  JobSpec spec = spec_by_hand();
  spec.checkpoint.enabled = false;
  Job job(life.engine, *life.recorder, life.pool, StoreShelf{}, life.steps,
          {"job", 0, spec, 100_GB});
  life.fail_at(30500ms, life.failure_class("software", Effect::crash, 4s, false), 0);
  life.run_to(50s);
  job.close();
  EXPECT_EQ(per_gpu(job.ledger(), Account::lost_work, 16), 25500ms);
  EXPECT_EQ(job.stats().step_time, 10500ms);
}

TEST(Job, asks_for_its_profile_only_when_something_changed) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.run_to(1000s);
  EXPECT_EQ(life.steps.asked, 1);
  job.refresh_profile();
  life.run_to(1001s);
  EXPECT_EQ(life.steps.asked, 2);
  EXPECT_LT(life.engine.events_processed(), 350u);  // 83 rounds of train and save, not 1000 steps
}

// --- properties ----------------------------------------------------------------------------------

/// A busy cluster: three jobs, two savers of each kind, all effects, leaf switches, few spares.
struct Busy {
  explicit Busy(std::uint64_t seed, sim::TieOrder ties = sim::TieOrder::as_scheduled,
                bool every_step = false) {
    LifeSetup setup;
    setup.seed = seed;
    setup.ties = ties;
    setup.step = 700ms;
    setup.pool = {.servers = 14,
                  .gpus_per_server = 4,
                  .nics_per_server = 2,
                  .spares = std::int64_t(seed % 3),
                  .leaf = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4},
                  .pod = {}};
    life = std::make_unique<Life>(setup);

    const auto add = [&](const char* name, Component component, Duration mean, Effect effect,
                         Duration detection) {
      FailureClassSpec& c = classes[name];
      c.component = component;
      c.lifetime.mean = mean;
      c.effect = effect;
      c.detection = {Law::exponential, detection, 1.0};
      c.repair = {Law::log_normal, 400s, 1.0};
      if (effect == Effect::slow) c.speed = 0.6;
      return &c;
    };
    add("gpu", Component::gpu, 20'000s, Effect::crash, 3s);
    add("hang", Component::nic, 20'000s, Effect::hang, 30s);
    add("slow", Component::server, 10'000s, Effect::slow, 60s);
    add("leaf", Component::leaf_switch, 20'000s, Effect::crash, 3s);
    add("software", Component::server, 5'000s, Effect::crash, 3s)->replace = false;
    FailureClassSpec& old = *add("old", Component::server, 10'000s, Effect::crash, 0s);
    old.lifetime.law = Law::weibull;
    old.lifetime.shape = 0.7;
    clocks = std::make_unique<FailureClocks>(
        life->engine, *life->recorder, classes,
        UnitCounts{.servers = 14, .gpus_per_server = 4, .nics_per_server = 2, .leaves = 5});
    life->pool.attach(*clocks);

    JobSpec spec = spec_by_hand();
    spec.checkpoint.interval = 40s;
    for (int i = 0; i < 3; ++i) {
      spec.gpus = i == 0 ? 20 : 14;
      spec.start = i * 100s;
      spec.checkpoint.mode = i == 1 ? SaveMode::synchronous : SaveMode::asynchronous;
      if (i == 2) spec.steps = 900;
      life->add(spec, every_step, "job-" + std::to_string(i));
    }
  }
  ~Busy() { life->engine.clear(); }

  /// All that counts, as text; `split`: with the parts of the steps, and not only their sum.
  std::string results(bool split = true) const {
    std::ostringstream out;
    const auto print = [&](const Ledger& ledger) {
      out << ' ' << static_cast<std::int64_t>(in_steps(ledger));
      for (std::size_t a = split ? 0 : step_parts; a < accounts; ++a)
        out << ' ' << static_cast<std::int64_t>(ledger[static_cast<Account>(a)]);
    };
    print(life->pool.ledger());
    for (const auto& job : life->jobs) {
      const JobStats stats = job->stats();
      out << '\n'
          << stats.state << ' ' << stats.steps_kept << ' ' << stats.interruptions << ' '
          << stats.checkpoints << ' ' << stats.saves_lost << ' ' << stats.saves_late << ' '
          << stats.goodput;
      print(job->ledger());
    }
    return out.str();
  }

  std::map<std::string, FailureClassSpec> classes;
  std::unique_ptr<Life> life;
  std::unique_ptr<FailureClocks> clocks;
};

TEST(JobProperties, every_gpu_nanosecond_is_in_one_account_whenever_the_run_stops) {
  std::set<Account> used;
  std::set<std::string> struck;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Busy busy(seed);
    sim::Stream luck(sim::Seed{seed}, "end of run");
    busy.life->run_and_close(seconds(luck.uniform() * 8000));
    for (const auto& job : busy.life->jobs) {
      Ledger all = job->ledger();
      all.add(busy.life->pool.ledger());
      for (std::size_t a = 0; a < accounts; ++a)
        if (all[static_cast<Account>(a)] > 0) used.insert(static_cast<Account>(a));
      const JobStats stats = job->stats();
      for (const auto& [name, count] : stats.interruptions_by_class) struck.insert(name);
      EXPECT_GE(stats.step_time.count(), 0);
      EXPECT_LE(stats.step_time + stats.lost_time, stats.wall);
      std::int64_t done = 0, lost = 0;
      for (const SegmentRow& row : job->segments()) done += row.steps;
      for (const InterruptionRow& row : job->interruptions()) lost += row.lost_steps;
      EXPECT_EQ(done - lost, stats.steps_kept);
      std::int64_t complete = 0;
      for (const CheckpointRow& row : job->checkpoints())
        complete = row.complete ? row.step : complete;
      EXPECT_GE(stats.steps_kept, complete);
    }
    if (HasFailure()) break;
  }
  // The property means something only if the runs go everywhere.
  for (const Account a :
       {Account::useful, Account::slow, Account::checkpoint_stall, Account::lost_work,
        Account::detection, Account::restart, Account::waiting_for_nodes, Account::spare_idle,
        Account::unallocated, Account::down_repair, Account::down_connected})
    EXPECT_TRUE(used.count(a)) << name_of(a);
  EXPECT_EQ(struck.size(), 6u);
}

TEST(JobProperties, the_same_seed_gives_the_same_run) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Busy a(seed), b(seed), c(seed + 100);
    for (Busy* busy : {&a, &b, &c}) busy->life->run_and_close(5000s);
    EXPECT_EQ(a.results(), b.results());
    EXPECT_EQ(a.life->engine.fingerprint(), b.life->engine.fingerprint());
    EXPECT_NE(a.results(), c.results());
  }
}

TEST(JobProperties, the_order_of_events_of_one_instant_changes_no_result) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Busy a(seed), b(seed, sim::TieOrder::shuffled);
    for (Busy* busy : {&a, &b}) busy->life->run_and_close(5000s);
    ASSERT_EQ(a.results(), b.results());
  }
}

// The slow twin: one event a step. No time is rounded between two events, so the two agree to the
// nanosecond; only the split of a stretch into parts of a step is rounded once a stretch, by less
// than a GPU-nanosecond a part.
TEST(JobProperties, every_step_agrees_with_fast_forward) {
  std::int64_t steps = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Busy fast(seed), slow(seed, sim::TieOrder::as_scheduled, true);
    for (Busy* busy : {&fast, &slow}) busy->life->run_and_close(5000s);
    ASSERT_EQ(fast.results(false), slow.results(false));
    EXPECT_GT(slow.life->engine.events_processed(), fast.life->engine.events_processed());
    for (std::size_t j = 0; j < 3; ++j) {
      const Job& job = *fast.life->jobs[j];
      for (std::size_t part = 0; part < step_parts; ++part) {
        const auto account = static_cast<Account>(part);
        EXPECT_NEAR(double(job.ledger()[account] - slow.life->jobs[j]->ledger()[account]), 0.0,
                    double(job.stats().steps_kept + std::int64_t(job.segments().size())));
      }
      steps += job.stats().steps_kept;
    }
  }
  EXPECT_GT(steps, 40 * 1000);
}

TEST(JobProperties, gliding_through_quiet_time_changes_no_result) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Busy a(seed), b(seed);
    b.life->engine.allow_gliding(start_of_run + 5000s, {});
    for (Busy* busy : {&a, &b}) busy->life->run_and_close(5000s);
    ASSERT_EQ(a.results(), b.results());
    EXPECT_GT(a.life->engine.events_processed(), b.life->engine.events_processed());
  }
}

TEST(JobProperties, a_run_stopped_anywhere_leaves_nothing_behind) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Busy busy(seed);
    for (std::uint64_t i = 0; i < seed * 17; ++i) busy.life->engine.step();
    busy.life->close();
    EXPECT_EQ(busy.life->engine.live_processes(), 0u);
    EXPECT_EQ(busy.life->network.running(), 0u);
  }
}

}  // namespace
}  // namespace trainyard::models
