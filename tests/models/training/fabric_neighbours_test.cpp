#include <gmock/gmock.h>

#include <cmath>

#include "models/training/fabric_neighbours.hpp"
#include "tests/models/training/life_rig.hpp"

/// What jobs on one fabric tell each other.
namespace trainyard::models {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using topologies::HostId;

struct Listener final : FabricNeighbours::Member {
  void on_neighbours_changed() override { ++told; }
  StepOnLinks step_on_links() override { return step; }
  int told = 0;
  StepOnLinks step;
};

StoreFlow flow(double rate) {
  return {{HostId(9)}, true, BytesPerSecond(rate), "save", {HostId(1)}, true};
}

TEST(FabricNeighbours, everybody_else_hears_of_a_change_once) {
  FabricNeighbours fabric;
  Listener a, b, c;
  for (Listener* each : {&a, &b, &c}) fabric.join(*each);
  fabric.set_transfers(a, {flow(1e9)});
  fabric.set_transfers(a, {flow(1e9)});
  EXPECT_EQ(a.told, 0);
  EXPECT_EQ(b.told, 1);
  EXPECT_EQ(c.told, 1);
  fabric.set_transfers(b, {flow(2e9)});
  EXPECT_EQ(a.told, 1);
  EXPECT_THAT(fabric.transfers_of_others(c), ElementsAre(flow(1e9), flow(2e9)));
  EXPECT_THAT(fabric.transfers_of_others(a), ElementsAre(flow(2e9)));
  fabric.set_transfers(a, {});
  EXPECT_THAT(fabric.transfers_of_others(b), IsEmpty());
  c.step.links = {{topologies::LinkId(3), 1e9, 2}};
  EXPECT_EQ(fabric.steps_of_others(a).size(), 1u);  // b does not train
  EXPECT_THAT(fabric.steps_of_others(c), IsEmpty());
}

/// Fixed steps of a job that writes down what others have on the fabric.
struct Watcher final : StepSource {
  explicit Watcher(sim::Engine& e) : engine(e) {}
  const StepProfile& profile(const Placement& placement) override {
    return steps.profile(placement);
  }
  void set_others(std::vector<StoreFlow> transfers, std::vector<StepOnLinks> with) override {
    others_train = !with.empty();
    std::string text;
    for (const StoreFlow& f : transfers) text += (text.empty() ? "" : ", ") + f.name;
    if (seen.empty() ? text.empty() : seen.back().second == text) return;
    seen.emplace_back(std::round(1e3 * to_seconds(engine.now().time_since_epoch())) / 1e3, text);
  }
  StepOnLinks on_links(const Placement&) override {
    return {1.0, 0.2, {{topologies::LinkId(5), 1e9, 1}}};
  }
  BytesPerSecond store_limit(const Placement&, std::span<const HostId>, bool) override {
    if (others_train) limited_beside_others = true;
    return BytesPerSecond(25e9);
  }
  sim::Engine& engine;
  FixedSteps steps{std::chrono::seconds(1)};
  std::vector<std::pair<double, std::string>> seen;
  bool others_train = false, limited_beside_others = false;
};

// Two jobs of one server and a store on the fabric at host 9. Start-up 5 s; the first saves every
// 10 s: 100 GB at 25 GB/s in 4 s, synchronous. At 22 s it crashes (4 s to find, 3 s to replace, 5 s
// to start) and loads in 4 s.
TEST(FabricNeighbours, a_job_tells_when_it_saves_and_loads_and_only_then) {
  LifeSetup setup;
  setup.pool.servers = 4;
  setup.pool.leaf = {0, 0, 1, 1};
  setup.pool.pod = {0, 0, 0, 0};
  setup.pool.spares = 1;
  Life life(setup);
  life.shelf["pfs"].on_fabric = {HostId(9)};
  Watcher one(life.engine), two(life.engine);
  FabricNeighbours fabric;
  JobSpec saving = spec_by_hand();
  saving.gpus = 8;
  JobSpec quiet = saving;
  quiet.checkpoint.enabled = false;
  life.jobs.push_back(std::make_unique<Job>(life.engine, *life.recorder, life.pool, life.shelf, one,
                                            JobSetup{"saver", 0, saving, 100_GB, {}, false}));
  life.jobs.push_back(std::make_unique<Job>(life.engine, *life.recorder, life.pool, life.shelf, two,
                                            JobSetup{"quiet", 1, quiet, 100_GB, {}, false}));
  for (auto& job : life.jobs) job->share_fabric(fabric);
  life.fail_at(22s, life.crash(), 0);
  life.run_and_close(45s);
  using Seen = std::pair<double, std::string>;
  EXPECT_THAT(two.seen, ElementsAre(Seen(15, "save to pfs of saver"), Seen(19, ""),
                                    Seen(34, "load from pfs of saver"), Seen(38, "")));
  EXPECT_THAT(one.seen, IsEmpty());
  EXPECT_TRUE(one.limited_beside_others);   // the quiet one trains
  EXPECT_FALSE(two.limited_beside_others);  // it transfers nothing
}

}  // namespace
}  // namespace trainyard::models
