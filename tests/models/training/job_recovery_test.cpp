#include <gmock/gmock.h>

#include "tests/models/training/life_rig.hpp"

/// How a job gets going again, each timeline by hand. The rig: start-up 5 s, replacing 3 s, steps
/// of 1 s, a save of 2 s each 10 s of training, a load of 1 s.
namespace trainyard::models {
namespace {

double s(std::optional<Time> t) {
  return t ? to_seconds(*t) : -1;
}

// Told at 20.3 s: the step ends at 21, it saves until 23; then replacing, start-up, loading.
TEST(JobRecovery, planned_work_loses_nothing) {
  Life life;
  Job& job = life.add(spec_by_hand());
  FailureClass& work = life.failure_class("maintenance", Effect::maintenance, 0s);
  work.spec.component = Component::server;
  life.fail_at(20300ms, work, 0);
  life.run_and_close(50s);
  EXPECT_EQ(job.stats().lost_time, 0s);
  EXPECT_EQ(job.stats().planned, 1);
  EXPECT_EQ(job.stats().interruptions, 0);
  EXPECT_DOUBLE_EQ(s(job.interruptions().at(0).resumed), 23 + 3 + 5 + 1);
  EXPECT_EQ(job.interruptions()[0].restored_step, 14);
  EXPECT_EQ(per_gpu(job.ledger(), Account::detection, 16), 0s);
}

// 16,384 GPUs would add 16.384 x 2 s; these 16 add 32 ms.
TEST(JobRecovery, start_up_grows_with_the_job_and_is_short_in_place) {
  for (const bool in_place : {false, true}) {
    Life life;
    JobSpec spec = spec_by_hand();
    spec.restart.start_up_per_1000_gpus = 2s;
    spec.restart.in_place = 1s;
    Job& job = life.add(spec);
    life.fail_at(20s, life.failure_class("any", Effect::crash, 4s, !in_place), 0);
    life.run_and_close(60s);
    EXPECT_EQ(job.interruptions().at(0).phases.start_up,
              in_place ? Duration(1s) : Duration(5032ms));
  }
}

// Detection 4, diagnosis 2, and with luck the right server; else it starts again, with the broken
// server, and strikes again as soon as training goes on: another 4 + 2 + 5 + 1 s each.
TEST(JobRecovery, a_diagnosis_that_misses_costs_another_round) {
  std::int64_t missed = 0, struck = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    LifeSetup setup;
    setup.seed = seed;
    Life life(setup);
    JobSpec spec = spec_by_hand();
    spec.restart.diagnosis = {Law::fixed, 2s, 1.0};
    spec.restart.misdiagnosis = 0.5;
    Job& job = life.add(spec);
    life.fail_at(20s, life.crash(), 0);
    life.run_and_close(400s);
    const std::int64_t n = job.stats().misdiagnoses;
    missed += n;
    ++struck;
    const InterruptionRow& row = job.interruptions().at(0);
    ASSERT_TRUE(row.resumed.has_value()) << seed;
    EXPECT_EQ(*row.resumed - row.when, 4s + 2s + 3s + 5s + 1s + n * (4s + 2s + 5s + 1s)) << seed;
  }
  // Geometric with mean 1, standard deviation sqrt 2: 200 of them within 2.6 standard errors.
  EXPECT_NEAR(double(missed) / double(struck), 1.0, 0.26);
}

/// Two replicas of one server each, no spare.
struct ElasticLife : Life {
  static LifeSetup small() {
    LifeSetup setup;
    setup.pool = {.servers = 2, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
    return setup;
  }
  ElasticLife() : Life(small()) {}
};

JobSpec elastic() {
  JobSpec spec = spec_by_hand();
  spec.parallel.tensor = 8;
  spec.parallel.data = 2;
  spec.elastic.enabled = true;
  spec.elastic.regrow_after = 10s;
  return spec;
}

// Struck at 20.5, found 24.5, replacing until 27.5: one server is left, and trains from 33.5 on.
// The other is repaired at 127.5; ten seconds later the job saves and starts again with both.
TEST(JobRecovery, an_elastic_job_goes_on_with_fewer_replicas_and_grows_back) {
  ElasticLife life;
  Job& job = life.add(elastic());
  life.fail_at(20500ms, life.crash(), 8);  // a GPU of server 1
  life.run_to(100s);
  EXPECT_EQ(job.servers_held(), 1);
  EXPECT_EQ(job.placement().servers, std::vector<HostId>{HostId(0)});
  EXPECT_EQ(job.state(), JobState::training);
  life.run_and_close(200s);
  const JobStats stats = job.stats();
  EXPECT_EQ(stats.shrinks, 1);
  EXPECT_DOUBLE_EQ(s(job.interruptions().at(0).resumed), 33.5);
  EXPECT_EQ(job.placement().servers.size(), 2u);
  EXPECT_EQ(stats.lost_time, 3500ms);  // 17-20.5; growing back loses nothing
  EXPECT_EQ(per_gpu(job.ledger(), Account::waiting_for_nodes, 8), 139500ms - 127500ms)
      << "the second server, from its return to the end of the save";
}

TEST(JobRecovery, below_its_least_size_an_elastic_job_waits) {
  ElasticLife life;
  JobSpec spec = elastic();
  spec.elastic.min_data = 2;
  Job& job = life.add(spec);
  life.fail_at(20500ms, life.crash(), 8);
  life.run_and_close(100s);
  EXPECT_THAT(job.stats().state, testing::StartsWith("waiting: for 1 of 2 servers"));
  EXPECT_EQ(job.stats().shrinks, 0);
}

// A job of higher priority loses a server at 20.5 s and gets one of the other, which saves first.
TEST(JobRecovery, a_server_is_taken_from_a_job_of_lower_priority_in_peace) {
  LifeSetup setup;
  setup.pool = {.servers = 4, .gpus_per_server = 8, .nics_per_server = 8, .spares = 0};
  Life life(setup);
  JobSpec high = spec_by_hand(), low = spec_by_hand();
  high.priority = 1;
  low.preemptible = true;
  Job& important = life.add(high, false, "high");
  Job& other = life.add(low, false, "low");
  life.fail_at(20500ms, life.crash(), 0);  // found 24.5, asks at 27.5
  life.run_and_close(60s);
  EXPECT_EQ(important.interruptions().at(0).why, "crash");
  ASSERT_EQ(other.interruptions().size(), 1u);
  EXPECT_EQ(other.interruptions()[0].why, "preempted");
  EXPECT_EQ(other.interruptions()[0].lost_steps, 0);
  EXPECT_EQ(other.stats().planned, 1);
  // Both saved at 15-19 s. The other ends its step at 28, saves until 30 and lets the server go.
  EXPECT_EQ(important.interruptions()[0].phases.waiting, 2500ms);
  EXPECT_THAT(other.stats().state, testing::StartsWith("waiting: for 1 of 2 servers"));
}

}  // namespace
}  // namespace trainyard::models
