#include <gmock/gmock.h>

#include "tests/models/training/life_rig.hpp"

/// A job while the fabric under it changes. By hand: start-up 5 s, then steps of 1 s.
namespace trainyard::models {
namespace {

using testing::HasSubstr;
using topologies::LinkId;

/// Fixed steps over a fabric that is cut while `is_cut`.
class CutSteps final : public StepSource {
 public:
  const StepProfile& profile(const Placement& placement) override {
    cut_.cut_off = "no path from node-0/gpu-0 to node-1/gpu-0; cut by leaf-0 -> spine-0";
    return is_cut ? cut_ : steps_.profile(placement);
  }
  bool uses(const Placement&, std::span<const LinkId> links) override {
    return links.front() == LinkId(7);
  }

  bool is_cut = false;

 private:
  FixedSteps steps_{1s};
  StepProfile cut_;
};

struct FabricLife : Life {
  explicit FabricLife(Duration convergence) {
    JobSpec spec = spec_by_hand();
    spec.checkpoint.enabled = false;
    jobs.push_back(std::make_unique<Job>(
        engine, *recorder, pool, StoreShelf{}, cut_steps,
        JobSetup{
            .name = "job", .spec = spec, .checkpoint_size = 100_GB, .convergence = convergence}));
  }
  Job& job() { return *jobs.front(); }
  void links_at(Duration t, LinkId link, bool lost, bool cut) {
    engine.at(start_of_run + t, sim::Phase::failure, [this, link, lost, cut] {
      cut_steps.is_cut = cut;
      job().on_links_changed({{link}, lost, {}});
    });
  }
  CutSteps cut_steps;
};

TEST(JobOnFabric, traffic_stands_still_until_routing_has_converged) {
  FabricLife life(3s);
  life.links_at(8500ms, LinkId(7), true, false);  // 3.5 steps done
  life.run_and_close(15s);
  // 10 s of training in all, less 3 s
  EXPECT_EQ(life.job().progress().steps(), 7);
  EXPECT_EQ(per_gpu(life.job().ledger(), Account::down_connected, 16), 3s);
  EXPECT_EQ(life.job().stats().reroutes, 1);
  EXPECT_EQ(life.job().stats().interruptions, 0);
}

TEST(JobOnFabric, a_second_failure_meanwhile_starts_the_delay_again) {
  FabricLife life(3s);
  life.links_at(8s, LinkId(7), true, false);
  life.links_at(9s, LinkId(7), true, false);
  life.run_and_close(15s);
  EXPECT_EQ(life.job().progress().steps(), 6);
  EXPECT_EQ(per_gpu(life.job().ledger(), Account::down_connected, 16), 4s);
}

TEST(JobOnFabric, links_that_it_does_not_use_and_links_that_come_back_cost_nothing) {
  FabricLife life(3s);
  life.links_at(8s, LinkId(1), true, false);
  life.links_at(9s, LinkId(7), false, false);
  life.run_and_close(15s);
  EXPECT_EQ(life.job().progress().steps(), 10);
  EXPECT_EQ(per_gpu(life.job().ledger(), Account::down_connected, 16), 0s);
  EXPECT_EQ(life.job().stats().reroutes, 0);
}

TEST(JobOnFabric, without_a_path_it_stands_until_the_fabric_is_repaired_and_says_why) {
  FabricLife life(3s);
  life.links_at(8s, LinkId(7), true, true);
  life.links_at(20s, LinkId(7), false, false);
  life.run_to(15s);
  EXPECT_EQ(life.job().state(), JobState::cut_off);
  EXPECT_THAT(life.job().stats().state, HasSubstr("cut off: no path from node-0/gpu-0"));
  EXPECT_THAT(life.job().stats().state, HasSubstr("leaf-0 -> spine-0"));
  life.run_and_close(25s);
  EXPECT_EQ(life.job().progress().steps(), 3 + 5);
  EXPECT_EQ(life.job().stats().cuts, 1);
  EXPECT_THAT(life.job().stats().last_cut, HasSubstr("leaf-0 -> spine-0"));
  EXPECT_EQ(per_gpu(life.job().ledger(), Account::down_connected, 16), 12s);
}

TEST(JobOnFabric, a_crash_while_cut_off_takes_its_usual_course) {
  FabricLife life(0s);
  life.links_at(8s, LinkId(7), true, true);
  life.fail_at(10s, life.crash(), 0);  // found after 4 s, replaced in 3 s, started in 5 s: 22 s
  life.links_at(12s, LinkId(7), false, false);
  life.run_and_close(30s);
  EXPECT_EQ(life.job().progress().steps(), 8);
  EXPECT_EQ(per_gpu(life.job().ledger(), Account::detection, 16), 4s);
  EXPECT_EQ(life.job().state(), JobState::training);
}

TEST(JobOnFabric, a_run_that_ends_cut_off_closes_its_books) {
  FabricLife life(3s);
  life.links_at(8s, LinkId(7), true, true);
  life.run_and_close(40s);
  EXPECT_EQ(life.job().progress().steps(), 3);
}

}  // namespace
}  // namespace trainyard::models
