#include <gtest/gtest.h>

#include "models/training/step_model.hpp"
#include "tests/models/training/yard.hpp"

/// A step and a save beside what other jobs have on the fabric. Leaves of two servers with half as
/// many uplinks as adapters: of leaf 0 {0, 1} the job has server 0 and the other one server 1, of
/// leaf 1 {2, 3} servers 2 and 3; 4 and 6 are a store. So both share the 8 uplinks of each leaf,
/// sprayed.
namespace trainyard::models {
namespace {

constexpr double nic_Bps = 50e9 * 0.96;  // NicSpec::efficiency

std::vector<HostId> hosts(std::size_t first, std::size_t second) {
  return {HostId(first), HostId(second)};
}

/// One replica in each of two servers, gradients all-reduced after the last backward pass.
JobSpec exposed_reduction() {
  JobSpec job = two_stages();
  job.gpus = 16;
  job.parallel.pipeline = 1;
  job.parallel.sharding = Sharding::none;
  job.software.overlap_data = false;
  return job;
}

struct TwoJobs : Yard {
  explicit TwoJobs(const JobSpec& spec) : Yard(spec, 8, RoutingKind::spray, 2) {}
  Placement mine{hosts(0, 2), {}}, others{hosts(1, 3), {}};
  double sent() const {  // by an adapter in an all-reduce of two ranks
    return 4.0 * model->plan().shared_parameters(model->plan().share(0, 0));
  }
};

StoreFlow transfer_of_others(double rate, bool takes_all) {
  return {hosts(4, 6), true, BytesPerSecond(rate), "save of other", hosts(1, 3), takes_all};
}

TEST(StepBesideOthers, a_save_of_another_job_takes_from_the_uplinks_that_both_use) {
  TwoJobs yard(exposed_reduction());
  StepModel& model = *yard.model;
  const double step_s = to_seconds(model.profile(yard.mine).step);
  for (const double adapter_rate : {1e9, 5e9, 20e9}) {
    model.set_others({transfer_of_others(8 * adapter_rate, true)}, {});
    const StepProfile& beside = model.profile(yard.mine);
    EXPECT_NEAR(to_seconds(beside.step) - step_s,
                1.006 * (yard.sent() / (nic_Bps - adapter_rate) - yard.sent() / nic_Bps), 3e-9)
        << adapter_rate;
    const auto& users = beside.busiest_links.front().users;
    EXPECT_NE(std::find(users.begin(), users.end(), "save of other"), users.end());
  }
  model.set_others({}, {});
  EXPECT_EQ(to_seconds(model.profile(yard.mine).step), step_s);
}

TEST(StepBesideOthers, one_that_shares_no_link_costs_nothing_not_even_a_profile) {
  TwoJobs yard(exposed_reduction());
  StepModel& model = *yard.model;
  const Placement leaf{hosts(0, 1), {}};  // both of leaf 0: the ring does not cross a spine
  const StepProfile& alone = model.profile(leaf);
  StoreFlow far = transfer_of_others(8e9, true);
  far.servers = hosts(2, 3);
  model.set_others({far}, {});
  const auto computed = model.computed();
  EXPECT_EQ(&model.profile(leaf), &alone);
  EXPECT_EQ(model.computed(), computed);
}

TEST(StepBesideOthers, two_saves_share_what_they_both_use) {
  JobSpec quiet = exposed_reduction();
  quiet.mechanisms.data_traffic = false;
  TwoJobs yard(quiet);
  StepModel& model = *yard.model;
  const auto limit = [&] { return model.store_limit(yard.mine, hosts(4, 6), true).value(); };
  EXPECT_NEAR(limit(), 8 * nic_Bps, 1);  // eight uplinks, as many adapters
  model.set_others({transfer_of_others(8e9, true)}, {});
  EXPECT_NEAR(limit(), 4 * nic_Bps, 1);
  model.set_others({transfer_of_others(8e9, false)}, {});  // batches: they want no more
  EXPECT_NEAR(limit(), 8 * nic_Bps - 8e9, 1);
  model.set_others({}, {});
  EXPECT_NEAR(limit(), 8 * nic_Bps, 1);
}

TEST(StepBesideOthers, a_save_meets_the_collectives_of_another_job) {
  JobSpec quiet = exposed_reduction();
  quiet.mechanisms.data_traffic = false;
  TwoJobs yard(quiet);
  StepModel other(exposed_reduction(), yard.server, *yard.router);
  const StepOnLinks step = other.on_links(yard.others);
  EXPECT_EQ(step.step_s, to_seconds(other.profile(yard.others).step));
  double uplink_bytes = 0;
  for (const LinkWork& work : step.links) uplink_bytes = std::max(uplink_bytes, work.bytes);
  EXPECT_NEAR(uplink_bytes, yard.sent(), 1);

  yard.model->set_others({}, {step});
  // As many flows of both on an uplink: beside the save the reduction takes twice its time, and the
  // save has what its bytes leave.
  const double longer_s = step.step_s + yard.sent() / nic_Bps;
  EXPECT_NEAR(yard.model->store_limit(yard.mine, hosts(4, 6), true).value(),
              8 * (nic_Bps - yard.sent() / longer_s), 8e-3 * nic_Bps);
  // Somebody who does not train takes nothing.
  yard.model->set_others({}, {StepOnLinks{}});
  EXPECT_NEAR(yard.model->store_limit(yard.mine, hosts(4, 6), true).value(), 8 * nic_Bps, 1);
}

TEST(StepBesideOthers, a_server_without_a_partner_moves_nothing) {
  JobSpec quiet = exposed_reduction();
  quiet.mechanisms.data_traffic = false;
  TwoJobs yard(quiet);
  const std::vector<HostId> to{HostId(4), HostId()};
  EXPECT_NEAR(yard.model->store_limit(yard.mine, to, true).value(), 8 * nic_Bps, 1);
  const std::vector<HostId> nowhere{HostId(), HostId()};
  EXPECT_GT(yard.model->store_limit(yard.mine, nowhere, true).value(), 1e18);
}

}  // namespace
}  // namespace trainyard::models
