#include <gtest/gtest.h>

#include <random>

#include "models/training/step_model.hpp"
#include "tests/models/training/yard.hpp"

/// A whole step beside transfers to and from a store on the training fabric.
namespace trainyard::models {
namespace {

using topologies::LinkId;

constexpr double line_Bps = 50e9, nic_Bps = line_Bps * 0.96;  // NicSpec::efficiency

std::vector<HostId> hosts(std::size_t first, std::size_t count) {
  std::vector<HostId> list;
  for (std::size_t h = 0; h < count; ++h) list.emplace_back(first + h);
  return list;
}

/// One tensor-parallel group in each of two servers, gradients all-reduced after the last backward
/// pass; two more servers are the store.
JobSpec exposed_reduction() {
  JobSpec job = two_stages();
  job.gpus = 16;
  job.parallel.pipeline = 1;
  job.parallel.sharding = Sharding::none;
  job.software.overlap_data = false;
  return job;
}

StoreFlow save(std::vector<HostId> store, double rate) {
  return {std::move(store), true, BytesPerSecond(rate), "save to scratch"};
}

TEST(StepBesideStore, an_exposed_reduction_is_longer_by_what_a_save_takes) {
  for (const RoutingKind routing : {RoutingKind::ecmp, RoutingKind::spray}) {
    Yard yard(exposed_reduction(), 4, routing);
    StepModel& model = *yard.model;
    const double step_s = to_seconds(model.profile(yard.packed()).step);
    const Plan& plan = model.plan();
    // An adapter sends (n - 1) / n of a gradient, twice: all-reduce of two ranks.
    const double sent = 4.0 * plan.shared_parameters(plan.share(0, 0));
    const double jitter = 1 + 0.006;  // two servers of 8
    for (const bool is_write : {true, false})
      for (const double adapter_rate : {1e9, 5e9, 20e9, 23.9e9}) {
        model.set_store_flows({{hosts(2, 2), is_write, BytesPerSecond(8 * adapter_rate)}});
        const StepProfile& drain = model.profile(yard.packed());
        EXPECT_NEAR(to_seconds(drain.step) - step_s,
                    jitter * (sent / (nic_Bps - adapter_rate) - sent / nic_Bps), 2e-9);
        // The fluid bound: bytes of both on the busiest link over its capacity.
        EXPECT_NEAR(drain.bounds.busiest_link_s, sent / (line_Bps - adapter_rate), 1e-9);
        EXPECT_GE(to_seconds(drain.step),
                  (sent + adapter_rate * to_seconds(drain.step)) / line_Bps);
      }
    // As many flows of both: a save that wants more than half of an adapter gets half.
    model.set_store_flows({save(hosts(2, 2), 8 * 40e9)});
    EXPECT_NEAR(to_seconds(model.profile(yard.packed()).step) - step_s, jitter * sent / nic_Bps,
                2e-9);
  }
}

TEST(StepBesideStore, the_same_rate_is_the_same_profile_and_none_is_the_one_before) {
  Yard yard(two_stages(), 10);
  StepModel& model = *yard.model;
  const StepProfile* before = &model.profile(yard.packed());
  const StepProfile copy = *before;
  model.set_store_flows({save(hosts(8, 2), 0)});  // no rate: nothing
  EXPECT_EQ(&model.profile(yard.packed()), before);
  model.set_store_flows({save(hosts(8, 2), 8e9), {hosts(8, 2), false, BytesPerSecond(1e9)}});
  const StepProfile* drain = &model.profile(yard.packed());
  EXPECT_NE(drain, before);
  EXPECT_GT(drain->step, before->step);
  model.set_store_flows({save(hosts(8, 2), 9e9)});
  EXPECT_NE(&model.profile(yard.packed()), drain);
  model.set_store_flows({{hosts(8, 2), false, BytesPerSecond(1e9)}, save(hosts(8, 2), 8e9)});
  EXPECT_EQ(&model.profile(yard.packed()), drain);
  const std::uint64_t computed = model.computed();
  model.set_store_flows({});
  EXPECT_EQ(&model.profile(yard.packed()), before);
  EXPECT_EQ(model.computed(), computed);
  EXPECT_EQ(before->step, copy.step);
  EXPECT_EQ(before->parts, copy.parts);
}

TEST(StepBesideStore, links_that_are_not_shared_change_nothing) {
  JobSpec job = two_stages();  // four replicas of one server each, and no traffic between them
  job.gpus = 32;
  job.parallel.pipeline = 1;
  job.mechanisms.data_traffic = false;
  Yard yard(job, 6);
  const StepProfile before = yard.model->profile(yard.packed());
  yard.model->set_store_flows({save(hosts(4, 2), 100e9)});
  const StepProfile& drain = yard.model->profile(yard.packed());
  EXPECT_EQ(drain.step, before.step);
  EXPECT_EQ(drain.parts, before.parts);
}

TEST(StepBesideStore, a_busy_link_names_the_save) {
  Yard yard(exposed_reduction(), 4);
  const double sent = 4.0 * yard.model->plan().shared_parameters(yard.model->plan().share(0, 0));
  yard.model->set_store_flows({save(hosts(2, 2), 8 * 10e9)});
  const StepProfile& drain = yard.model->profile(yard.packed());
  ASSERT_FALSE(drain.busiest_links.empty());
  bool has_adapter = false;
  for (const LinkUse& use : drain.busiest_links) {
    if (yard.fabric->link(use.link).kind != topologies::LinkKind::nic_leaf ||
        !topologies::Fabric::is_upward(use.link))
      continue;
    has_adapter = true;
    EXPECT_EQ(use.users, (std::vector<std::string>{"dp stage 0", "save to scratch"}));
    EXPECT_NEAR(use.bytes, sent + 10e9 * to_seconds(drain.step), 1);
  }
  EXPECT_TRUE(has_adapter);
}

TEST(StepBesideStore, a_model_that_follows_changes_equals_one_that_is_made_afresh) {
  for (const RoutingKind routing : {RoutingKind::ecmp, RoutingKind::spray})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      Yard yard(two_stages(), 12, routing, 2);
      Placement placement = yard.packed();
      yard.model->profile(placement);
      const std::size_t first = yard.fabric->first_trunk().index();
      const std::size_t cables = (yard.fabric->links().size() - first) / 2;
      for (int event = 0; event < 12; ++event) {
        if (random() % 2 == 0) {
          const LinkId up(first + 2 * (random() % cables));
          const bool is_down = yard.router->state().capacity(up).value() == 0;
          yard.router->change([&](topologies::LinkState& s) { s.set_cable_up(up, is_down); });
          yard.model->links_changed(std::vector{up, topologies::Fabric::reverse(up)});
        } else {
          placement.servers[random() % 2] = HostId(8 + random() % 2);
          if (placement.servers[0] == placement.servers[1]) placement = yard.packed();
        }
        std::vector<StoreFlow> flows;
        if (random() % 3 > 0) flows.push_back(save(hosts(10, 2), double(random() % 100) * 1e9));
        yard.model->set_store_flows(flows);
        StepModel fresh(yard.job, yard.server, *yard.router);
        fresh.set_store_flows(flows);
        const StepProfile& a = yard.model->profile(placement);
        const StepProfile& b = fresh.profile(placement);
        EXPECT_EQ(a.step, b.step);
        EXPECT_EQ(a.parts, b.parts);
        EXPECT_EQ(a.cut_off, b.cut_off);
        EXPECT_EQ(yard.model->store_limit(placement, hosts(10, 2), true),
                  fresh.store_limit(placement, hosts(10, 2), true));
      }
    }
}

TEST(StoreLimit, the_store_s_adapters_bound_what_every_server_gets) {
  JobSpec job = two_stages();
  job.gpus = 32;
  job.parallel.pipeline = 1;
  job.mechanisms.data_traffic = false;
  Yard yard(job, 8, RoutingKind::spray);
  StepModel& model = *yard.model;
  for (const bool is_write : {true, false})  // four servers
    for (const std::size_t servers : {1u, 2u, 4u})
      EXPECT_NEAR(model.store_limit(yard.packed(), hosts(4, servers), is_write).value(),
                  8 * nic_Bps * double(servers) / 4, 1);
  EXPECT_NEAR(model.store_limit(yard.packed(), hosts(4, 3), true).value(), 8 * nic_Bps / 2, 1);
}

TEST(StoreLimit, an_exposed_reduction_takes_its_share_of_the_adapters) {
  Yard yard(exposed_reduction(), 4, RoutingKind::spray);
  StepModel& model = *yard.model;
  const double step_s = to_seconds(model.profile(yard.packed()).step);
  const double sent = 4.0 * model.plan().shared_parameters(model.plan().share(0, 0));
  // As many flows of both: beside the save the reduction takes twice its time.
  const double longer_s = step_s + sent / nic_Bps;
  const BytesPerSecond limit = model.store_limit(yard.packed(), hosts(2, 2), true);
  EXPECT_NEAR(limit.value(), 8 * (nic_Bps - sent / longer_s), 1e-3 * limit.value());
  // That is also what the step says beside such a save: it has half of the link.
  model.set_store_flows({save(hosts(2, 2), limit.value())});
  EXPECT_NEAR(to_seconds(model.profile(yard.packed()).step), longer_s, 0.01 * longer_s);
  EXPECT_EQ(model.store_limit(yard.packed(), hosts(2, 2), true), limit);  // whatever runs now
}

TEST(StoreLimit, slow_and_broken_adapters) {
  JobSpec job = two_stages();
  job.gpus = 16;
  job.parallel.pipeline = 1;
  job.mechanisms.data_traffic = false;
  Yard yard(job, 4, RoutingKind::spray);
  StepModel& model = *yard.model;
  const auto limit = [&] { return model.store_limit(yard.packed(), hosts(2, 2), true).value(); };
  EXPECT_NEAR(limit(), 8 * nic_Bps, 1);
  std::vector<LinkId> links;
  for (std::size_t r = 0; r < 8; ++r)
    links.push_back(yard.fabric->uplink(yard.fabric->nic(HostId(0), r)));
  const auto change = [&](auto&& f) {
    yard.router->change(f);
    model.links_changed(links);
  };
  change([&](topologies::LinkState& s) { s.set_capacity_factor(links[2], 0.5); });
  EXPECT_NEAR(limit(), 4 * nic_Bps, 1);  // bytes are spread evenly: the slow one is waited for
  change([&](topologies::LinkState& s) { s.set_up(links[2], false); });
  EXPECT_NEAR(limit(), 7 * nic_Bps, 1);
  change([&](topologies::LinkState& s) {
    for (const LinkId link : links) s.set_up(link, false);
  });
  EXPECT_EQ(limit(), 0);
  change([&](topologies::LinkState& s) {
    s.set_capacity_factor(links[2], 1);
    for (const LinkId link : links) s.set_up(link, true);
  });
  EXPECT_NEAR(limit(), 8 * nic_Bps, 1);
}

}  // namespace
}  // namespace trainyard::models
