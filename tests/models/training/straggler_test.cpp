#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "models/training/step_model.hpp"
#include "tests/models/training/yard.hpp"
#include "tests/support/pipeline_twin.hpp"
#include "tests/support/training_fixtures.hpp"

/// Slow members: a GPU, a link, and the jitter that every rank has.
namespace trainyard::models {
namespace {

using topologies::LinkId;
using topologies::LinkState;

// ---- The pipeline alone, on paper -----------------------------------------------------------

// F = 1, B = 2, four micro-batches, 1F1B; nominal: (4 + p - 1) . 3.
PipelineInput with_slow_stage(int stages, int slow_stage, int chunks = 1) {
  PipelineInput in = PipelineInput::equal(stages, chunks, 4, 1.0, 2.0);  // of a whole stage
  for (int c = 0; c < chunks; ++c) {
    in.forward_s[std::size_t(slow_stage * chunks + c)] /= 0.8;
    in.backward_s[std::size_t(slow_stage * chunks + c)] /= 0.8;
  }
  return in;
}

TEST(Straggler, last_of_two_stages) {
  // The last stage never waits after its first forward: 1 + 4 . (1.25 + 2.5) + 2, of 15 nominal.
  EXPECT_DOUBLE_EQ(play_pipeline(with_slow_stage(2, 1)).makespan_s, 18);
}

TEST(Straggler, first_of_two_stages) {
  // Stage 0: F0 0-1.25, F1 -2.5, waits for stage 1 (F0 1.25-2.25, B0 -4.25), B0 4.25-6.75, F2 -8,
  // B1 -10.5, F3 -11.75, B2 -14.25; stage 1 does F3 11.75-12.75 and B3 -14.75; B3 14.75-17.25.
  EXPECT_DOUBLE_EQ(play_pipeline(with_slow_stage(2, 0)).makespan_s, 17.25);
}

TEST(Straggler, last_of_four_stages) {
  // 3 forwards, the slow stage without a gap, 3 backwards: 3 + 4 . 3.75 + 6, of 21 nominal.
  EXPECT_DOUBLE_EQ(play_pipeline(with_slow_stage(4, 3)).makespan_s, 24);
}

TEST(Straggler, interleaving_shortens_the_way_to_the_slow_stage) {
  // Two chunks of half a stage: the last stage begins after half a forward of the first and ends
  // half a backward before it: 0.5 + 4 . 3.75 + 1.
  EXPECT_DOUBLE_EQ(play_pipeline(with_slow_stage(2, 1, 2)).makespan_s, 16.5);
}

TEST(Straggler, a_slow_stage_costs_between_its_own_delay_and_that_of_all) {
  for (const int stages : {2, 3, 4})
    for (int slow = 0; slow < stages; ++slow) {
      const PipelineInput in = with_slow_stage(stages, slow);
      const double nominal = (4 + stages - 1) * 3.0, slowed = play_pipeline(in).makespan_s;
      EXPECT_GE(slowed, nominal + 0.0) << stages << ' ' << slow;
      EXPECT_GE(slowed, 4 * 3.75);
      EXPECT_LE(slowed, nominal / 0.8);
      EXPECT_NEAR(slowed, twin::play(in).makespan_s, 1e-12);
    }
}

// ---- The step: who waits for whom -----------------------------------------------------------

/// Compute alone: no traffic, no jitter.
JobSpec bare(JobSpec job) {
  job.mechanisms.tensor_traffic = job.mechanisms.data_traffic = job.mechanisms.pipeline_traffic =
      job.mechanisms.context_traffic = job.mechanisms.expert_traffic = job.mechanisms.jitter =
          false;
  return job;
}

double step_s(Yard& yard, std::vector<SlowGpu> slow = {}) {
  Placement p = yard.packed();
  p.slow = std::move(slow);
  return to_seconds(yard.model->profile(p).step);
}

/// The compute of every stage and of the optimizer, from the shapes.
struct Hand {
  explicit Hand(const Yard& yard)
      : plan(make_plan(yard.job)),
        costs(step_costs(yard.server.gpu, plan, yard.job.software, {CommCosts::free()})) {}
  double forward(int s) const { return costs.chunk(s, 0).forward.total_s(); }
  double backward(int s) const { return costs.chunk(s, 0).backward.total_s(); }
  double stage(int s) const { return forward(s) + backward(s); }
  Plan plan;
  StepCosts costs;
};

TEST(Straggler, a_slow_gpu_of_the_last_stage_slows_all_its_stage_does) {
  Yard yard(bare(two_stages()), 8);
  const Hand hand(yard);
  const int m = hand.plan.micro_batches;
  const int gpu = hand.plan.rank_of({.tensor = 3, .context = 0, .data = 2, .pipeline = 1});
  // In tensor-parallel lockstep, the other seven do nothing more in that time; and the optimizer
  // of the stage ends when its slowest GPU is done.
  const double by_hand = hand.forward(0) + m * hand.stage(1) / 0.8 + hand.backward(0) +
                         std::max(hand.costs.optimizer_s[0], hand.costs.optimizer_s[1] / 0.8);
  EXPECT_NEAR(step_s(yard, {{gpu, 0.8}}), by_hand, 2e-9);
  // A second slow one in the same group, less slow: nothing more.
  EXPECT_NEAR(step_s(yard, {{gpu, 0.8}, {gpu + 1, 0.9}}), by_hand, 2e-9);
  // In another replica: they wait at the same time.
  const int other = hand.plan.rank_of({.tensor = 0, .context = 0, .data = 0, .pipeline = 1});
  EXPECT_NEAR(step_s(yard, {{other, 0.8}, {gpu, 0.8}}), by_hand, 2e-9);
}

TEST(Straggler, slow_gpus_in_two_stages_of_one_replica_add_up_and_of_two_replicas_do_not) {
  Yard yard(bare(two_stages()), 8);
  const Plan plan = make_plan(yard.job);
  const auto gpu = [&](int data, int stage) {
    return std::int64_t(plan.rank_of({.tensor = 0, .context = 0, .data = data, .pipeline = stage}));
  };
  const double first = step_s(yard, {{gpu(0, 0), 0.8}}), last = step_s(yard, {{gpu(1, 1), 0.8}});
  const double apart = step_s(yard, {{gpu(0, 0), 0.8}, {gpu(1, 1), 0.8}});
  const double together = step_s(yard, {{gpu(0, 0), 0.8}, {gpu(0, 1), 0.8}});
  EXPECT_DOUBLE_EQ(apart, std::max(first, last));
  EXPECT_NEAR(together, step_s(yard) / 0.8, 2e-9);
  EXPECT_GT(together, apart);
}

TEST(Straggler, all_replicas_wait_for_the_gradients_of_the_slow_one) {
  // With traffic: the reduction begins when the last replica has its gradients, so the step grows
  // by what the slow replica alone is longer, to the end.
  JobSpec job = two_stages();
  job.mechanisms.jitter = job.mechanisms.tensor_traffic = false;
  job.software.overlap_data = false;
  Yard yard(job, 8, RoutingKind::spray);
  const Hand hand(yard);
  const int gpu = hand.plan.rank_of({.tensor = 0, .context = 0, .data = 1, .pipeline = 1});
  const double optimizer_s = std::max(hand.costs.optimizer_s[0], hand.costs.optimizer_s[1] / 0.8) -
                             std::max(hand.costs.optimizer_s[0], hand.costs.optimizer_s[1]);
  // The last stage never waits, so its delay is that of the pipeline.
  EXPECT_NEAR(step_s(yard, {{gpu, 0.8}}) - step_s(yard),
              hand.plan.micro_batches * hand.stage(1) * 0.25 + optimizer_s, 2e-8);
}

TEST(Straggler, one_stage_with_accumulation_waits_in_full) {
  for (const Sharding sharding : {Sharding::none, Sharding::zero1, Sharding::fsdp}) {
    JobSpec job = bare(two_stages());
    job.parallel.pipeline = 1;
    job.parallel.sharding = sharding;
    Yard yard(job, 8);
    EXPECT_NEAR(step_s(yard, {{41, 0.8}}), step_s(yard) / 0.8, 2e-9) << int(sharding);
  }
}

TEST(Straggler, sharded_weights_do_not_hide_behind_another_replica) {
  // FSDP with traffic: compute of the slow rank is stretched, what is exposed of the traffic is
  // not.
  JobSpec job = two_stages();
  job.mechanisms.jitter = false;
  job.parallel.tensor = job.parallel.pipeline = 1;
  job.parallel.sharding = Sharding::fsdp;
  Yard yard(job, 8, RoutingKind::spray);
  const Hand hand(yard);
  const double compute_s = hand.plan.micro_batches * hand.stage(0) + hand.costs.optimizer_s[0];
  EXPECT_NEAR(step_s(yard, {{5, 0.8}}) - step_s(yard), compute_s * 0.25, 2e-8);
}

TEST(Straggler, a_context_parallel_group_goes_at_the_pace_of_its_slowest) {
  JobSpec job = bare(two_stages());
  job.parallel.tensor = 2;
  job.parallel.context = 4;
  Yard yard(job, 8);
  const Plan plan = make_plan(yard.job);
  const auto with = [&](int context) {
    return step_s(
        yard, {{plan.rank_of({.tensor = 1, .context = context, .data = 1, .pipeline = 1}), 0.8}});
  };
  EXPECT_DOUBLE_EQ(with(0), with(3));
  EXPECT_GT(with(3), 1.15 * step_s(yard));
  // One slow rank of the group or all: the same.
  std::vector<SlowGpu> all;
  for (int c = 0; c < 4; ++c)
    for (int t = 0; t < 2; ++t)
      all.push_back({plan.rank_of({.tensor = t, .context = c, .data = 1, .pipeline = 1}), 0.8});
  EXPECT_DOUBLE_EQ(step_s(yard, all), with(3));
}

// ---- Who is played --------------------------------------------------------------------------

std::size_t different(Yard& yard, std::vector<SlowGpu> slow) {
  Placement p = yard.packed();
  yard.model->profile(p);
  p.slow = std::move(slow);
  return yard.model->distinct_replicas(p);
}

TEST(Straggler, equal_replicas_are_played_once_and_each_different_one_once) {
  Yard yard(two_stages(), 8, RoutingKind::spray);
  const std::size_t alike = different(yard, {});
  // Without transfers all four replicas are alike.
  Yard no_transfers(bare(two_stages()), 8, RoutingKind::spray);
  EXPECT_EQ(different(no_transfers, {}), 1u);
  EXPECT_EQ(different(no_transfers, {{17, 0.8}}), 2u);
  EXPECT_EQ(different(no_transfers, {{17, 0.8}, {18, 0.7}}), 2u);  // one server: one group
  EXPECT_EQ(different(no_transfers, {{17, 0.8}, {25, 0.8}}), 2u);  // equally slow
  EXPECT_EQ(different(no_transfers, {{17, 0.8}, {25, 0.7}}), 3u);
  EXPECT_EQ(different(no_transfers, {{17, 0.8}, {17 + 32, 0.8}}), 2u);  // two stages of one replica
  EXPECT_LE(alike, 4u);
}

JobSpec experts(int tensor, int expert, int expert_tensor) {
  JobSpec job = bare(two_stages());
  job.model.experts = ExpertsSpec{};
  job.model.experts->count = expert;
  job.model.experts->per_token = 1;
  job.model.experts->ffn = 4096;
  job.parallel.pipeline = 1;
  job.parallel.tensor = tensor;
  job.parallel.expert = expert;
  job.parallel.expert_tensor = expert_tensor;
  return job;
}

TEST(Straggler, experts_hold_up_every_replica_that_sends_them_tokens) {
  // 64 ranks without tensor parallelism, groups of 16: a slow one holds up the 16 replicas of its
  // group. All 16 are equally slow, so there are two kinds.
  Yard yard(experts(1, 16, 1), 8);
  Placement p = yard.packed();
  EXPECT_EQ(different(yard, {{20, 0.8}}), 2u);
  // A slower one in the same group holds up the same 16; in another group others.
  EXPECT_EQ(different(yard, {{20, 0.8}, {31, 0.7}}), 2u);
  EXPECT_EQ(different(yard, {{20, 0.8}, {32, 0.7}}), 3u);
  EXPECT_NEAR(step_s(yard, {{20, 0.8}}), step_s(yard) / 0.8, 2e-9);
}

TEST(Straggler, groups_that_overlap_wait_in_turn) {
  // Tensor groups of two (0 1)(2 3)(4 5)…, expert groups of three (0 1 2)(3 4 5)…: rank 0 holds up
  // its expert group, so replica 1; rank 3 of replica 1 then holds up (3 4 5), so replica 2. Not
  // replica 3: six ranks are a whole number of both.
  JobSpec job = experts(2, 3, 1);
  job.gpus = 48;
  job.global_batch = 96;
  Yard yard(job, 8);
  // With replica 3 slower on its own there are three kinds: 0 to 2, 3 to 5, the rest.
  EXPECT_EQ(different(yard, {{0, 0.8}}), 2u);
  EXPECT_EQ(different(yard, {{0, 0.8}, {5, 0.7}}), 2u);
  EXPECT_EQ(different(yard, {{0, 0.8}, {6, 0.7}}), 3u);
}

// ---- One slow link --------------------------------------------------------------------------

void at_half_rate(Yard& yard, LinkId up) {
  const std::vector<LinkId> links{up, topologies::Fabric::reverse(up)};
  yard.router->change([&](LinkState& state) {
    for (const LinkId l : links) state.set_capacity_factor(l, 0.5);
  });
  yard.model->links_changed(links);
}

TEST(Straggler, a_link_at_half_rate_halves_the_ring_that_runs_over_it) {
  // One stage on 4 servers, nothing hidden: the reduction is latency + bytes over rate, and the
  // ring goes as fast as its slowest link.
  JobSpec job = two_stages();
  job.gpus = 32;
  job.parallel.pipeline = 1;
  job.parallel.sharding = Sharding::none;
  job.software.overlap_data = false;
  job.mechanisms.jitter = false;
  Yard yard(job, 4, RoutingKind::spray);
  const double before = step_s(yard);
  const double bytes = 2 * 4.0 * yard.model->plan().stage_parameters(0) * 3 / 4;
  const double rate = 50e9 * 0.96;
  at_half_rate(yard, yard.fabric->uplink(yard.fabric->nic(HostId(2), 5)));
  EXPECT_NEAR(step_s(yard) - before, bytes / rate, 1e-6 * before);
}

TEST(Straggler, a_link_that_nobody_uses_slows_nobody) {
  Yard yard(two_stages(), 10, RoutingKind::spray);  // 8 servers of 10
  const double before = step_s(yard);
  at_half_rate(yard, yard.fabric->uplink(yard.fabric->nic(HostId(9), 0)));
  EXPECT_DOUBLE_EQ(step_s(yard), before);
}

TEST(Straggler, a_slow_adapter_slows_the_transfers_of_its_replica_alone) {
  JobSpec job = two_stages();
  job.mechanisms.data_traffic = job.mechanisms.tensor_traffic = job.mechanisms.jitter = false;
  job.software.overlap_pipeline = false;
  Yard yard(job, 8, RoutingKind::spray);
  Placement p = yard.packed();
  yard.model->profile(p);
  const std::size_t before = yard.model->distinct_replicas(p);
  const double nominal = step_s(yard);
  at_half_rate(yard, yard.fabric->uplink(yard.fabric->nic(HostId(1), 0)));
  EXPECT_GT(step_s(yard), nominal);
  EXPECT_EQ(yard.model->distinct_replicas(p), before + 1);
}

// ---- 16,384 GPUs ----------------------------------------------------------------------------

TEST(Straggler, one_slow_gpu_of_16384_costs_its_stage_and_not_more_than_everything) {
  const JobSpec job = bare(fixtures::llama3_405b_16k());
  topologies::FabricSpec three_tiers;
  three_tiers.tiers = 3;
  three_tiers.hosts_per_leaf = 4;
  three_tiers.leaf_switch = {"box", 64, 400_Gbps, Duration(500), {}, {}};
  three_tiers.spine_switch = three_tiers.core_switch = three_tiers.leaf_switch;
  Yard yard(job, 2048, three_tiers, RoutingKind::spray);
  const Plan plan = make_plan(job);
  const StepCosts costs = step_costs(yard.server.gpu, plan, job.software, {CommCosts::free()});
  const double nominal = step_s(yard);
  const auto gpu = [&](int stage) {
    return std::int64_t(plan.rank_of({.tensor = 3, .context = 0, .data = 77, .pipeline = stage}));
  };
  PipelineInput in;
  in.stages = plan.pipeline;
  in.chunks = plan.chunks;
  in.micro_batches = plan.micro_batches;
  in.schedule = plan.schedule;
  in.forward_transfer_s.assign(16, 0.0);
  in.backward_transfer_s.assign(16, 0.0);
  for (const PassPair& pass : costs.chunks) {
    in.forward_s.push_back(pass.forward.total_s());
    in.backward_s.push_back(pass.backward.total_s());
  }
  for (const int stage : {0, 7, 15}) {
    const double slowed = step_s(yard, {{gpu(stage), 0.8}});
    const double busy_s = plan.micro_batches * costs.micro_batch_s(stage);
    // It cannot cost less than the stage itself takes, nor more than if all were slow.
    EXPECT_GE(slowed, busy_s / 0.8 + costs.optimizer_s[std::size_t(stage)]) << stage;
    EXPECT_GT(slowed, nominal);
    EXPECT_LE(slowed, nominal / 0.8) << stage;
    // 16 micro-batches on 16 stages in 8 chunks: a stage computes 128 of the 128 + 15 slots of the
    // ideal schedule, so most of its delay shows.
    EXPECT_GE(slowed - nominal, 0.8 * 0.25 * busy_s) << stage;
    PipelineInput slow = in;
    for (std::size_t c = 0; c < 8; ++c) {
      slow.forward_s[std::size_t(stage) * 8 + c] /= 0.8;
      slow.backward_s[std::size_t(stage) * 8 + c] /= 0.8;
    }
    EXPECT_NEAR(slowed - nominal, twin::play(slow).makespan_s - twin::play(in).makespan_s,
                2e-3 * nominal);
  }
  Placement p = yard.packed();
  p.slow = {{gpu(7), 0.8}};
  EXPECT_EQ(yard.model->distinct_replicas(p), 2u);  // of 128
}

// ---- Jitter ---------------------------------------------------------------------------------

double harmonic(int n) {
  double sum = 0;
  for (int k = 1; k <= n; ++k) sum += 1.0 / k;
  return sum;
}

TEST(Jitter, the_mean_of_the_maximum_of_exponentials_is_harmonic) {
  // beta . H_N, by drawing: the standard deviation of the maximum is about 1.28 beta, that of the
  // mean of 4,000 draws 0.02.
  std::mt19937_64 random(7);
  std::exponential_distribution<double> tail(1.0);
  for (const int ranks : {8, 64, 512}) {
    double sum = 0;
    for (int draw = 0; draw < 4000; ++draw) {
      double most = 0;
      for (int r = 0; r < ranks; ++r) most = std::max(most, tail(random));
      sum += most / 4000;
    }
    EXPECT_NEAR(sum, harmonic(ranks), 0.08) << ranks;
  }
}

TEST(Jitter, grows_as_the_mean_of_the_maximum_over_the_ranks) {
  // Kernels are calibrated with the jitter of 8 ranks in them. With beta = j / ln 2 of the step, N
  // ranks wait beta (H_N - H_8); the model's law is j log2(N / 8).
  const double per_doubling = 0.006, beta = per_doubling / std::log(2.0);
  JobSpec job = two_stages();
  job.software.jitter_per_doubling = per_doubling;
  for (const int gpus : {64, 128}) {
    job.gpus = gpus;
    Yard with(job, gpus / 8, RoutingKind::spray);
    JobSpec still = job;
    still.mechanisms.jitter = false;
    Yard without(still, gpus / 8, RoutingKind::spray);
    const double factor = step_s(with) / step_s(without);
    EXPECT_NEAR(factor, 1 + per_doubling * std::log2(gpus / 8.0), 1e-8);
    EXPECT_NEAR(factor, 1 + beta * (harmonic(gpus) - harmonic(8)), 1e-3);
  }
  for (const int gpus : {64, 512, 4096, 16384})
    EXPECT_NEAR(beta * (std::log(gpus) + 0.5772) / (beta * harmonic(gpus)), 1, 0.01) << gpus;
}

}  // namespace
}  // namespace trainyard::models
