#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "models/failures/failure_clocks.hpp"
#include "models/scheduling/servers.hpp"

/// A busy cluster with every mechanism on, over many seeds: nothing is lost, nobody waits for what
/// is there, and the order of events of one instant does not matter.
namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using sim::Phase;

/// Holds a gang, lets go of what is struck or asked back after a while, and asks for other servers.
class Tenant final : public ServerHolder {
 public:
  Tenant(sim::Engine& engine, ServerPool& pool, std::size_t number, std::int64_t servers,
         int priority)
      : engine_(engine), pool_(pool), number_(number), servers_(servers), priority_(priority) {}
  std::size_t number() const override { return number_; }
  int priority() const override { return priority_; }
  bool is_preemptible() const override { return priority_ < 2; }

  void begin() {
    is_waiting_for_gang_ = true;
    pool_.ask_gang(*this, servers_);
  }
  void on_strike(const Strike& strike) override {
    if (!strike.failure.cls->spec.replace) return;
    for (const HostId s : strike.servers) leave_after(s, strike.failure.detection);
  }
  void on_preempted(HostId server) override { leave_after(server, 90s); }
  void on_granted(HostId server, HostId instead_of) override {
    settle();
    is_waiting_for_gang_ = false;
    if (instead_of.is_valid()) --waiting_;
    held_.push_back(server);
  }
  /// Lets everything go and begins again after a day.
  void end() {
    settle();
    pool_.withdraw(*this);
    for (const HostId s : held_) pool_.release(*this, s);
    held_.clear();
    leaving_.clear();
    waiting_ = 0;
    is_waiting_for_gang_ = false;
    engine_.after(24h, Phase::completion, [this] { begin(); });
  }
  void settle() {
    gpu_time_ += GpuNanoseconds(held_.size()) * (engine_.now() - since_).count();
    since_ = engine_.now();
  }

  GpuNanoseconds server_time() const { return gpu_time_; }
  std::int64_t waiting() const { return waiting_; }
  std::int64_t waits_for_gang_of() const { return is_waiting_for_gang_ ? servers_ : 0; }
  const std::vector<HostId>& held() const { return held_; }

 private:
  void leave_after(HostId server, Duration d) {
    if (std::find(leaving_.begin(), leaving_.end(), server) != leaving_.end()) return;
    leaving_.push_back(server);
    engine_.after(d, Phase::completion, [this, server] {
      const auto mine = std::find(leaving_.begin(), leaving_.end(), server);
      if (mine == leaving_.end()) return;  // it ended meanwhile
      settle();
      leaving_.erase(mine);
      held_.erase(std::find(held_.begin(), held_.end(), server));
      ++waiting_;
      pool_.release(*this, server);
      pool_.ask_instead_of(*this, server);
    });
  }

  sim::Engine& engine_;
  ServerPool& pool_;
  std::size_t number_;
  std::int64_t servers_;
  int priority_;
  Time since_{};
  GpuNanoseconds gpu_time_ = 0;
  std::vector<HostId> held_, leaving_;
  std::int64_t waiting_ = 0;
  bool is_waiting_for_gang_ = false;
};

FailureClassSpec failing(Component component, Duration life, Duration repair,
                         Effect effect = Effect::crash) {
  FailureClassSpec spec;
  spec.component = component;
  spec.effect = effect;
  spec.lifetime.mean = life;
  spec.detection = {Law::exponential, 60s, 1.0};
  spec.repair = {Law::log_normal, repair, 1.0};
  return spec;
}

struct Town {
  Town(std::uint64_t seed, sim::TieOrder ties)
      : engine(sim::Seed{seed}, ties), pool(engine, recorder, shape(seed)) {
    std::map<std::string, FailureClassSpec> classes;
    classes["gpu"] = failing(Component::gpu, 2000h, 10h);
    classes["gpu"].common_cause = CommonCauseSpec{0.2, Component::rack};
    classes["software"] = failing(Component::server, 300h, 1h);
    classes["software"].replace = false;
    classes["planned"] = failing(Component::server, 1500h, 4h, Effect::maintenance);
    classes["leaf"] = failing(Component::leaf_switch, 2000h, 6h);
    classes["rack"] = failing(Component::rack, 1500h, 5h);
    classes["pdu"] = failing(Component::pdu, 1500h, 2h);
    classes["cdu"] = failing(Component::cdu, 1500h, 3h);
    classes["work on a rack"] = failing(Component::rack, 2500h, 3h, Effect::maintenance);
    UnitCounts counts = pool.counts();
    clocks = std::make_unique<FailureClocks>(engine, recorder, classes, counts);
    pool.attach(*clocks);
    for (std::size_t j = 0; j < 4; ++j) {
      tenants.push_back(std::make_unique<Tenant>(engine, pool, j, 6, int(j)));
      engine.at(start_of_run + std::chrono::hours(10 * j), Phase::decision,
                [t = tenants.back().get()] { t->begin(); });
      for (int n = 1; n < 6; ++n)
        engine.at(start_of_run + std::chrono::hours(400 * n + 37 * std::int64_t(j)),
                  Phase::completion, [t = tenants.back().get()] { t->end(); });
    }
  }

  static PoolShape shape(std::uint64_t seed) {
    PoolShape s{.servers = 32, .gpus_per_server = 4, .nics_per_server = 1, .spares = 3};
    for (std::uint32_t i = 0; i < 32; ++i) {
      s.leaf.push_back(i / 4);
      s.pod.push_back(i / 16);
    }
    s.parents = {2, 8, 16, 0.1};
    s.repair = {.crews = 2,
                .night_crews = int(seed % 3),
                .travel = 30min,
                .reset_share = 0.2,
                .dead_on_arrival = 0.1,
                .test = 1h,
                .vendor_share = 0.1};
    if (seed % 4 == 0) s.repair = {};
    s.spare = {seed % 2 == 0 ? SparePlaces::spread : SparePlaces::last,
               seed % 3 == 0 ? Duration(0s) : Duration(10min)};
    s.exclude = {.after = 3, .within = 24h * 60};
    return s;
  }

  void check_everything() {
    pool.settle();
    GpuNanoseconds all = pool.ledger().total();
    std::int64_t held = 0;
    std::int64_t short_of = 0;
    std::vector<int> owners(32, 0);
    for (const auto& t : tenants) {
      t->settle();
      all += t->server_time() * 4;
      held += std::int64_t(t->held().size());
      short_of += t->waiting();
      for (const HostId s : t->held()) ++owners[s.index()];
    }
    ASSERT_TRUE(all == GpuNanoseconds(128) * engine.now().time_since_epoch().count());
    ASSERT_EQ(held, pool.held_servers());
    const std::int64_t idle = pool.spare_servers() + pool.unallocated_servers();
    ASSERT_EQ(32, held + idle + pool.reserved_servers() + pool.down_servers());
    std::int64_t up_and_free = 0;
    for (std::size_t s = 0; s < 32; ++s) {
      ASSERT_LE(owners[s], 1);
      if (owners[s] == 0 && pool.flags(HostId(s)).is_up()) ++up_and_free;
    }
    // Down is who lacks something and is held by nobody, and nobody else.
    ASSERT_EQ(up_and_free, idle + pool.reserved_servers());
    if (short_of > pool.reserved_servers()) {  // the others wait for spares that boot
      ASSERT_EQ(idle, 0);
    }
    for (const auto& t : tenants) {
      if (t->waits_for_gang_of() == 0) continue;
      ASSERT_LT(pool.unallocated_servers(), t->waits_for_gang_of());
    }
  }

  sim::Engine engine;
  sim::NullRecorder recorder;
  ServerPool pool;
  std::unique_ptr<FailureClocks> clocks;
  std::vector<std::unique_ptr<Tenant>> tenants;
};

TEST(PoolProperty, with_everything_on_nothing_is_lost_and_nobody_waits_for_what_is_there) {
  std::vector<double> seen(accounts, 0);
  std::int64_t excluded = 0, tests_failed = 0, vendor = 0, waits = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Town town(seed, sim::TieOrder::as_scheduled);
    for (int day = 1; day <= 100; ++day) {
      town.engine.run_until(start_of_run + std::chrono::hours(24 * day) + 11min * day);
      town.check_everything();
      if (testing::Test::HasFatalFailure()) return;
      for (const auto& t : town.tenants) waits += t->waiting();
    }
    for (std::size_t a = 0; a < accounts; ++a)
      seen[a] += town.pool.ledger().gpu_s(static_cast<Account>(a));
    excluded += town.pool.excluded();
    tests_failed += town.pool.shop().stats().failed_tests;
    vendor += town.pool.shop().stats().vendor;
  }
  // All of it happened.
  for (const Account a : {Account::spare_idle, Account::unallocated, Account::down_repair,
                          Account::down_fed, Account::down_cooled, Account::down_connected})
    EXPECT_GT(seen[std::size_t(a)], 0) << name_of(a);
  EXPECT_GT(excluded, 0);
  EXPECT_GT(tests_failed, 0);
  EXPECT_GT(vendor, 0);
  EXPECT_GT(waits, 0);
}

TEST(PoolProperty, events_of_one_instant_in_another_order_give_the_same_accounts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Town a(seed, sim::TieOrder::as_scheduled), b(seed, sim::TieOrder::shuffled);
    for (Town* town : {&a, &b}) {
      town->engine.run_until(start_of_run + 2000h);
      town->pool.settle();
    }
    for (std::size_t i = 0; i < accounts; ++i) {
      const auto account = static_cast<Account>(i);
      ASSERT_TRUE(a.pool.ledger()[account] == b.pool.ledger()[account])
          << "seed " << seed << ' ' << name_of(account);
    }
  }
}

}  // namespace
}  // namespace trainyard::models
