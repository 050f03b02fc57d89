#include <gmock/gmock.h>

#include <memory>
#include <random>
#include <set>

#include "models/training/step_model.hpp"
#include "tests/models/training/yard.hpp"

/// The step when links and switches fail, degrade and come back.
namespace trainyard::models {
namespace {

using testing::HasSubstr;
using topologies::Fabric;
using topologies::LinkId;
using topologies::LinkState;
using topologies::Router;
using topologies::VertexKind;

/// Changes the router and tells the model, as the run level does.
void change(Yard& yard, const std::vector<LinkId>& links, auto&& f) {
  yard.router->change(f);
  yard.model->links_changed(links);
}

std::vector<LinkId> both(LinkId up) {
  return {up, Fabric::reverse(up)};
}

void expect_same(const StepProfile& a, const StepProfile& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.parts, b.parts);
  EXPECT_EQ(a.cut_off, b.cut_off);
}

TEST(LinkFailure, a_model_that_follows_changes_equals_one_that_is_made_afresh) {
  for (const RoutingKind routing : {RoutingKind::ecmp, RoutingKind::spray})
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      Yard yard(two_stages(), 12, routing, 2);
      Placement placement = yard.packed();
      const std::size_t first = yard.fabric->first_trunk().index();
      const std::size_t cables = (yard.fabric->links().size() - first) / 2;
      std::vector<double> speed(cables, 1.0);
      std::vector<bool> spine_up(yard.fabric->count(VertexKind::spine), true);
      yard.model->profile(placement);
      for (int event = 0; event < 25; ++event) {
        std::vector<LinkId> links;
        if (random() % 4 == 0) {
          const std::size_t s = random() % spine_up.size();
          spine_up[s] = !spine_up[s];
          const auto spine = yard.fabric->vertex(VertexKind::spine, s);
          for (const LinkId l : yard.fabric->out_links(spine))
            for (const LinkId one : both(l)) links.push_back(one);
          change(yard, links, [&](LinkState& state) { state.set_up(spine, spine_up[s]); });
        } else if (random() % 5 == 0) {
          placement.servers[random() % 8] = HostId(8 + random() % 4);
          const std::set<HostId> once(placement.servers.begin(), placement.servers.end());
          if (once.size() < placement.servers.size()) placement = yard.packed();
        } else {
          const std::size_t c = random() % cables;
          const double choices[] = {0.0, 0.5, 1.0};
          speed[c] = choices[random() % 3];
          const LinkId up(first + 2 * c);
          change(yard, both(up), [&](LinkState& state) {
            state.set_cable_up(up, speed[c] > 0);
            for (const LinkId l : both(up))
              state.set_capacity_factor(l, speed[c] > 0 ? speed[c] : 1);
          });
        }
        Router fresh_router(*yard.fabric, routing, 1, 2);
        fresh_router.change([&](LinkState& state) {
          for (std::size_t c = 0; c < cables; ++c) {
            const LinkId up(first + 2 * c);
            state.set_cable_up(up, speed[c] > 0);
            for (const LinkId l : both(up))
              state.set_capacity_factor(l, speed[c] > 0 ? speed[c] : 1);
          }
          for (std::size_t s = 0; s < spine_up.size(); ++s)
            state.set_up(yard.fabric->vertex(VertexKind::spine, s), spine_up[s]);
        });
        StepModel fresh(yard.job, yard.server, fresh_router);
        expect_same(yard.model->profile(placement), fresh.profile(placement));
        if (testing::Test::HasFailure()) return;
      }
    }
}

TEST(LinkFailure,
     a_degraded_link_makes_the_step_no_shorter_and_repair_gives_the_first_profile_back) {
  Yard yard(two_stages(), 8, RoutingKind::spray, 2);
  const StepProfile& before = yard.model->profile(yard.packed());
  const LinkId up = yard.fabric->leaf_uplink(0, 0);
  change(yard, both(up), [&](LinkState& s) { s.set_capacity_factor(up, 0.25); });
  EXPECT_GE(yard.model->profile(yard.packed()).step, before.step);
  change(yard, both(up), [&](LinkState& s) { s.set_capacity_factor(up, 1.0); });
  EXPECT_EQ(&yard.model->profile(yard.packed()), &before);
}

TEST(LinkFailure, a_fault_that_the_job_does_not_feel_costs_no_new_profile) {
  // Servers 8 … 11 are not the job's; nor are the uplinks of their leaves.
  Yard yard(two_stages(), 12, RoutingKind::ecmp);
  const StepProfile& before = yard.model->profile(yard.packed());
  const LinkId idle = yard.fabric->leaf_uplink(5, 0);
  EXPECT_FALSE(yard.model->uses(yard.packed(), both(idle)));
  change(yard, both(idle), [&](LinkState& s) { s.set_cable_up(idle, false); });
  EXPECT_EQ(&yard.model->profile(yard.packed()), &before);
}

TEST(LinkFailure, without_a_path_the_profile_names_the_pair_and_the_cut) {
  Yard yard(two_stages(), 8, RoutingKind::ecmp);
  const StepProfile& before = yard.model->profile(yard.packed());
  const auto leaf = yard.fabric->vertex(VertexKind::leaf, 1);
  std::vector<LinkId> uplinks;
  for (const LinkId l : yard.fabric->out_links(leaf))
    if (yard.fabric->kind(yard.fabric->link(l).to) == VertexKind::spine)
      for (const LinkId one : both(l)) uplinks.push_back(one);
  EXPECT_TRUE(yard.model->uses(yard.packed(), uplinks));
  change(yard, uplinks, [&](LinkState& s) {
    for (const LinkId l : uplinks) s.set_up(l, false);
  });
  const StepProfile& cut = yard.model->profile(yard.packed());
  EXPECT_THAT(cut.cut_off, HasSubstr("no path from node-"));
  EXPECT_THAT(cut.cut_off, HasSubstr("leaf-1"));
  EXPECT_THAT(cut.cut_off, HasSubstr("spine-0"));
  change(yard, uplinks, [&](LinkState& s) {
    for (const LinkId l : uplinks) s.set_up(l, true);
  });
  EXPECT_EQ(&yard.model->profile(yard.packed()), &before);
}

TEST(LinkFailure, of_several_rails_the_one_that_is_cut_is_named) {
  Yard yard(two_stages(), 8, RoutingKind::spray);
  const LinkId port = yard.fabric->uplink(yard.fabric->nic(HostId(1), 5));
  change(yard, both(port), [&](LinkState& s) { s.set_cable_up(port, false); });
  const StepProfile& cut = yard.model->profile(yard.packed());
  EXPECT_THAT(cut.cut_off, HasSubstr("gpu-5"));
  EXPECT_THAT(cut.cut_off, HasSubstr("node-1/nic-5"));
  EXPECT_FALSE(cut.is_cut_for_good);
}

TEST(LinkFailure, the_users_of_a_link_account_for_its_bytes) {
  // Two servers of each leaf, rings over four servers: few pairs, so all of them are listed.
  JobSpec job = two_stages();
  job.gpus = 32;
  job.parallel.pipeline = 1;
  Yard yard(job, 4, RoutingKind::ecmp);
  const StepProfile& p = yard.model->profile(yard.packed());
  int on_fabric = 0;
  for (const LinkUse& use : p.busiest_links) {
    const auto kind = yard.fabric->link(use.link).kind;
    if (kind == topologies::LinkKind::nvlink) continue;
    ++on_fabric;
    double listed = 0;
    for (const LinkUser& user : use.pairs) {
      EXPECT_EQ(user.what, "dp stage 0");
      EXPECT_NE(yard.fabric->host_of(user.from), yard.fabric->host_of(user.to));
      listed += user.bytes;
    }
    EXPECT_NEAR(listed, use.bytes, 1e-9 * use.bytes) << yard.fabric->name(use.link);
    EXPECT_NEAR(use.utilisation, use.bytes / use.capacity.value() / to_seconds(p.step), 1e-12);
  }
  EXPECT_GT(on_fabric, 0);
}

}  // namespace
}  // namespace trainyard::models
