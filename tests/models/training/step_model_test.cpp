#include "models/training/step_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "models/training/transformer.hpp"
#include "tests/models/training/yard.hpp"

namespace trainyard::models {
namespace {

// Base; three steps between servers, each over two leaves and a spine of 500 ns.
constexpr double ring_of_four_s = 10e-6 + 3 * (10e-6 + 3 * 0.5e-6);
constexpr double nic_Bps = 50e9 * 0.96;  // NicSpec::efficiency

Duration sum(const StepProfile& p) {
  return std::accumulate(p.parts.begin(), p.parts.end(), Duration{});
}

TEST(StepModel, parts_and_power_phases_sum_to_the_step_to_the_nanosecond) {
  Yard yard(two_stages(), 10);
  const StepProfile& p = yard.model->profile(yard.packed());
  EXPECT_EQ(sum(p), p.step);
  Duration phases{};
  for (const PowerPhase& phase : p.power) phases += phase.duration;
  EXPECT_EQ(phases, p.step);
  // 64 GPUs between waiting (0.36 of 700 W) and their limit, 8 servers with 4 kW beside them
  EXPECT_GT(mean_power(p).value(), 64 * 252.0 + 32e3);
  EXPECT_LT(mean_power(p).value(), 64 * 700.0 + 32e3);
}

TEST(StepModel, no_step_is_shorter_than_its_bounds) {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
    for (const Sharding sharding : {Sharding::none, Sharding::zero1}) {
      JobSpec job = two_stages();
      job.parallel.recompute = recompute;
      job.parallel.sharding = sharding;
      Yard yard(job, 8);
      const StepProfile& p = yard.model->profile(yard.packed());
      const double step_s = to_seconds(p.step);
      EXPECT_GE(step_s, p.bounds.flops_s);
      EXPECT_GE(step_s, p.bounds.compute_s);
      EXPECT_GE(step_s, p.bounds.pipeline_s);
      EXPECT_GE(step_s, p.bounds.busiest_link_s);
      EXPECT_GE(p.hardware_flops, p.model_flops);
    }
}

// 32 GPUs, one stage: 4 servers, 8 groups of 4 ranks, one a server. Each rank sends (n-1)/n of its
// bytes over its own adapter; sprayed at 1:1 nothing else limits.
JobSpec one_stage() {
  JobSpec job = two_stages();
  job.gpus = 32;
  job.parallel.pipeline = 1;
  job.software.jitter_per_doubling = 0;
  job.software.data_slowdown = 0;
  return job;
}
double exposed_dp_s(Yard& yard) {
  return to_seconds(yard.model->profile(yard.packed()).part(StepPart::exposed_dp));
}

TEST(StepModel, reduction_without_overlap_is_bytes_over_rate) {
  // Nothing hides, so all of it is exposed: an all-reduce, twice 4 bytes a gradient.
  JobSpec job = one_stage();
  job.parallel.sharding = Sharding::none;
  job.software.overlap_data = false;
  job.software.bucket = Bytes(1e12);
  Yard whole(job, 4, RoutingKind::spray);
  const double bytes_s = 2 * 4.0 * whole.model->plan().stage_parameters(0) * 3 / 4 / nic_Bps;
  EXPECT_NEAR(exposed_dp_s(whole), ring_of_four_s + bytes_s, 2e-9);
  // In pieces, each with its own latency.
  job.software.bucket = Bytes(2 * 4.0 * whole.model->plan().stage_parameters(0) / 4.5);
  Yard pieces(job, 4, RoutingKind::spray);
  EXPECT_NEAR(exposed_dp_s(pieces), 5 * ring_of_four_s + bytes_s, 2e-9);
}

// What a pass cannot hide of traffic in `pieces` that it needs, or gives, evenly over its length:
// all of it but what fits in front of the last piece, and one piece at least.
double late_s(int pieces, double traffic_s, double pass_s) {
  return std::max(traffic_s / pieces, traffic_s - (pieces - 1.0) / pieces * pass_s);
}

TEST(StepModel, gathers_hide_behind_the_first_forward_and_reductions_behind_the_last_backward) {
  JobSpec job = one_stage();
  Yard zero1(job, 4, RoutingKind::spray);
  job.parallel.sharding = Sharding::none;
  Yard plain(job, 4, RoutingKind::spray);
  LinkTable links(zero1.fabric->links().size());
  const GroupTraffic groups(zero1.model->plan(), zero1.server, *zero1.router, links);
  const PassPair pass =
      step_costs(zero1.server.gpu, zero1.model->plan(), zero1.job.software, groups.costs())
          .chunk(0, 0);
  const double forward_s = pass.forward.total_s(), backward_s = pass.backward.total_s();
  const double parameters = zero1.model->plan().stage_parameters(0);
  ASSERT_EQ(std::ceil(2 * parameters / job.software.bucket.value()), 4);
  const auto traffic_s = [&](int pieces, double bytes) {
    return pieces * ring_of_four_s + bytes * parameters * 3 / 4 / nic_Bps;
  };
  // Twice 4 bytes a gradient, in 8 pieces, each slower than the eighth of the pass beside it.
  ASSERT_GT(traffic_s(8, 8), backward_s);
  EXPECT_NEAR(exposed_dp_s(plain), late_s(8, traffic_s(8, 8), backward_s), 4e-9);
  // 2 bytes a parameter in 4 pieces, quicker than the pass, and 4 bytes a gradient.
  ASSERT_LT(traffic_s(4, 2), forward_s);
  EXPECT_NEAR(exposed_dp_s(zero1),
              late_s(4, traffic_s(4, 2), forward_s) + late_s(8, traffic_s(8, 4), backward_s), 4e-9);

  // What hides takes a fifth of its time from the kernels beside it.
  const double hidden_s = traffic_s(4, 2) + traffic_s(8, 4) - exposed_dp_s(zero1);
  job = zero1.job;
  job.software.data_slowdown = 0.2;
  Yard slowed(job, 4, RoutingKind::spray);
  EXPECT_NEAR(exposed_dp_s(slowed), exposed_dp_s(zero1) + 0.2 * hidden_s, 4e-9);
}

TEST(StepModel, a_replaced_server_gives_what_a_fresh_model_gives) {
  for (const RoutingKind routing : {RoutingKind::ecmp, RoutingKind::spray}) {
    Yard yard(two_stages(), 12, routing);
    Placement p = yard.packed();
    yard.model->profile(p);
    for (const std::size_t rank : {1u, 6u, 3u}) {
      p.servers[rank] = HostId(8 + rank % 4);
      Yard fresh(two_stages(), 12, routing);
      const StepProfile& incremental = yard.model->profile(p);
      EXPECT_EQ(incremental.step, fresh.model->profile(p).step);
      EXPECT_EQ(incremental.parts, fresh.model->profile(p).parts);
    }
  }
}

TEST(StepModel, a_known_placement_costs_nothing) {
  Yard yard(two_stages(), 10);
  const StepProfile* first = &yard.model->profile(yard.packed());
  Placement other = yard.packed();
  other.servers[0] = HostId(9);
  yard.model->profile(other);
  EXPECT_EQ(&yard.model->profile(yard.packed()), first);
  EXPECT_EQ(yard.model->computed(), 2u);
  EXPECT_EQ(yard.model->reused(), 1u);
}

TEST(StepModel, sprayed_paths_see_leaves_not_servers) {
  Yard yard(two_stages(), 12, RoutingKind::spray);
  Placement p = yard.packed();
  yard.model->profile(p);
  p.servers = {HostId(0), HostId(1), HostId(2), HostId(3),
               HostId(4), HostId(5), HostId(7), HostId(6)};  // swapped in a leaf
  yard.model->profile(p);
  EXPECT_EQ(yard.model->computed(), 1u);
}

TEST(StepModel, a_slow_gpu_slows_the_step_and_is_accounted_apart) {
  Yard yard(two_stages(), 8);
  const StepProfile& nominal = yard.model->profile(yard.packed());
  Placement p = yard.packed();
  p.slow = {{17, 0.5}};
  const StepProfile& slowed = yard.model->profile(p);
  // Half the speed in one of two stages: between 1.5 and 2 times the step.
  EXPECT_GT(to_seconds(slowed.step), 1.4 * to_seconds(nominal.step));
  EXPECT_LT(to_seconds(slowed.step), 2.0 * to_seconds(nominal.step));
  const double more = to_seconds(slowed.part(StepPart::slow) - nominal.part(StepPart::slow));
  EXPECT_NEAR(more, to_seconds(slowed.step - nominal.step), 1e-6);
  EXPECT_NEAR(to_seconds(slowed.part(StepPart::useful)), to_seconds(nominal.part(StepPart::useful)),
              1e-8);
}

TEST(StepModel, fewer_uplinks_never_make_a_step_shorter) {
  Duration before{};
  for (const double ratio : {1.0, 2.0, 4.0, 8.0}) {
    Yard yard(two_stages(), 8, RoutingKind::spray, ratio);
    const Duration step = yard.model->profile(yard.packed()).step;
    EXPECT_GE(step, before) << ratio;
    before = step;
  }
}

TEST(StepModel, slower_switches_make_a_longer_step) {
  Yard quick(two_stages(), 8),
      slow(two_stages(), 8, RoutingKind::ecmp, 1, std::chrono::microseconds(50));
  EXPECT_GT(slow.model->profile(slow.packed()).step, quick.model->profile(quick.packed()).step);
}

TEST(StepModel, a_slower_scale_up_link_makes_a_longer_step) {
  Yard full(two_stages(), 8), half(two_stages(), 8);
  half.server.gpu.scale_up_rate = 225_GBps;
  half.model = std::make_unique<StepModel>(half.job, half.server, *half.router);
  const auto exposed = [](Yard& y) {
    return to_seconds(y.model->profile(y.packed()).part(StepPart::exposed_tp));
  };
  // 2 x the bytes' time, the same latencies: between once and twice
  EXPECT_GT(exposed(half), 1.2 * exposed(full));
  EXPECT_LT(exposed(half), 2.0 * exposed(full));
}

TEST(StepModel, a_measured_step_is_met_by_scaling_compute) {
  JobSpec job = two_stages();
  Yard predicted(job, 8);
  const Duration step = predicted.model->profile(predicted.packed()).step;
  job.measured_step = seconds(to_seconds(step) * 1.25);
  Yard measured(job, 8);
  EXPECT_NEAR(to_seconds(measured.model->profile(measured.packed()).step) / to_seconds(step), 1.25,
              1e-6);
  EXPECT_LT(measured.model->compute_scale(), 1.0);
  EXPECT_FALSE(measured.model->profile(measured.packed()).notes.empty());
}

TEST(StepModel, fsdp_exposes_at_least_its_share_of_the_traffic) {
  JobSpec job = two_stages();
  job.gpus = 64;
  job.parallel.tensor = 1;
  job.parallel.pipeline = 1;
  job.parallel.sharding = Sharding::fsdp;
  job.software.jitter_per_doubling = 0;
  Yard yard(job, 8, RoutingKind::spray);
  const StepProfile& p = yard.model->profile(yard.packed());
  // 64 ranks, 8 a server: every adapter carries 1/8 of (63/64) of the bytes: gathered twice,
  // reduced once.
  const double bytes = (2 * 2.0 + 4.0) * yard.model->plan().stage_parameters(0) * 63 / 64 / 8;
  EXPECT_GT(to_seconds(p.part(StepPart::exposed_dp)), 0.72 * bytes / nic_Bps);
  EXPECT_EQ(sum(p), p.step);
}

}  // namespace
}  // namespace trainyard::models
