#include "models/scheduling/repair_shop.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "models/failures/failure_clocks.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using topologies::HostId;

struct Visit {
  Duration at;
  std::size_t server;
  Duration hands_on;
  RepairWay way = RepairWay::any;
};

/// Who is back when.
using Back = std::vector<std::pair<std::size_t, Duration>>;

struct ShopRig {
  explicit ShopRig(RepairSpec spec, std::uint64_t seed = 1)
      : engine(sim::Seed{seed}), shop(engine, recorder, std::move(spec)) {}
  void admit(const Visit& v) {
    engine.at(start_of_run + v.at, sim::Phase::decision, [this, v] {
      shop.admit(HostId(v.server), v.hands_on, {}, v.way, [this, v](sim::EventIndex) {
        back.emplace_back(v.server, engine.now() - start_of_run);
      });
    });
  }
  void run_to(Duration t) { engine.run_until(start_of_run + t); }

  sim::Engine engine;
  sim::MemoryRecorder recorder;
  RepairShop shop;
  Back back;
};

TEST(RepairShop, without_a_limit_everybody_is_repaired_at_once) {
  ShopRig rig({});
  for (std::size_t s = 0; s < 3; ++s) rig.admit({10s, s, 5s});
  rig.run_to(1h);
  EXPECT_EQ(rig.back, (Back{{0, 15s}, {1, 15s}, {2, 15s}}));
  EXPECT_DOUBLE_EQ(rig.shop.stats().mean_wait_s(), 0);
  EXPECT_TRUE(rig.recorder.events().empty());
}

TEST(RepairShop, one_crew_serves_first_come_first_and_at_one_instant_the_lower_server) {
  ShopRig rig({.crews = 1, .travel = 1s});
  rig.admit({10s, 5, 4s});  // 10 + 1 + 4 = 15
  rig.admit({11s, 7, 4s});
  rig.admit({11s, 2, 4s});  // 15 + 5 = 20, before 7, which came in the same instant
  rig.admit({12s, 1, 4s});  // 25 + 5 = 30
  rig.run_to(14s);
  EXPECT_EQ(rig.shop.waiting(), 3);
  EXPECT_EQ(rig.shop.busy(), 1);
  rig.run_to(1h);
  EXPECT_EQ(rig.back, (Back{{5, 15s}, {2, 20s}, {7, 25s}, {1, 30s}}));
  EXPECT_DOUBLE_EQ(rig.shop.stats().mean_wait_s(), (0 + 4 + 9 + 13) / 4.0);
  EXPECT_EQ(rig.shop.stats().worked, 20s);
  std::vector<double> queue;
  for (const auto& s : rig.recorder.samples())
    if (rig.recorder.all_series()[s.series.index()].name == "repair_queue")
      queue.push_back(s.value);
  EXPECT_EQ(*std::max_element(queue.begin(), queue.end()), 3);
  EXPECT_EQ(queue.back(), 0);
}

TEST(RepairShop, at_night_nobody_begins_but_what_was_begun_is_finished) {
  ShopRig rig({.crews = 2, .night_crews = 0});  // 08:00 to 20:00
  rig.admit({7h, 0, 1h});
  rig.admit({20h - 1ns, 1, 2h});  // begun in the last nanosecond of the shift
  rig.admit({20h, 2, 2h});        // one nanosecond late: from 08:00 of the next day
  rig.admit({25h, 3, 1h});
  rig.admit({26h, 4, 1h});  // two crews
  rig.run_to(72h);
  EXPECT_EQ(rig.back, (Back{{0, 9h}, {1, 22h - 1ns}, {3, 33h}, {2, 34h}, {4, 34h}}));
}

TEST(RepairShop, a_smaller_night_shift_begins_nothing_until_enough_crews_are_free) {
  ShopRig rig({.crews = 2, .night_crews = 1, .day_start = 8h, .day_end = 20h});
  rig.admit({19h, 0, 4h});  // until 23:00
  rig.admit({19h, 1, 2h});  // until 21:00: then one is at work, and one is on duty
  rig.admit({19h, 2, 1h});  // 23:00 to 24:00
  rig.run_to(72h);
  EXPECT_EQ(rig.back, (Back{{1, 21h}, {0, 23h}, {2, 24h}}));
}

TEST(RepairShop, a_reset_that_cures_needs_no_crew) {
  ShopRig rig({.crews = 1, .reset_share = 1, .reset = 10min});
  rig.admit({0s, 0, 5h});
  rig.admit({0s, 1, 5h});
  rig.admit({0s, 2, 5h, RepairWay::planned});  // no reset does planned work
  rig.run_to(24h);
  EXPECT_EQ(rig.back, (Back{{0, 600s}, {1, 600s}, {2, 5h}}));
  EXPECT_EQ(rig.shop.stats().resets, 2);
  EXPECT_EQ(rig.recorder.count("cured by reset"), 2u);
}

TEST(RepairShop, who_fails_the_test_queues_again_behind_the_others) {
  // Wanted: a seed and a share such that of all tests only the first of server 0 fails.
  std::uint64_t seed = 0;
  double share = 0;
  do {
    const sim::Engine probe(sim::Seed{++seed});
    const sim::Stream a = probe.random("repair").child(0).child(0);
    const sim::Stream b = probe.random("repair").child(1).child(0);
    const double others = std::min(a.uniform_at(4), b.uniform_at(3));
    share = a.uniform_at(3) < others ? (a.uniform_at(3) + others) / 2 : 0;
  } while (share == 0);
  ShopRig rig({.crews = 1, .dead_on_arrival = share, .test = 2s}, seed);
  rig.admit({0s, 0, 10s});  // repair to 10, test to 12, in vain: queues behind server 1
  rig.admit({1s, 1, 10s});  // 10 to 20, test to 22
  rig.run_to(1h);           // server 0 again: 20 to 30, test to 32
  EXPECT_EQ(rig.back, (Back{{1, 22s}, {0, 32s}}));
  EXPECT_EQ(rig.shop.stats().failed_tests, 1);
  EXPECT_EQ(rig.shop.stats().repairs, 3);
}

TEST(RepairShop, the_vendor_takes_his_own_time_and_no_crew) {
  ShopRig rig({.crews = 1, .vendor_share = 1, .vendor = {Law::fixed, 240h}});
  rig.admit({0s, 0, 1h});
  rig.admit({0s, 1, 1h, RepairWay::planned});
  rig.run_to(500h);
  EXPECT_EQ(rig.back, (Back{{1, 3600s}, {0, 240h}}));
  ShopRig never({.crews = 1, .vendor = {Law::fixed, 240h}});
  never.admit({0s, 0, 1h, RepairWay::vendor});
  never.admit({0s, 1, 1h});
  never.run_to(500h);
  EXPECT_EQ(never.back, (Back{{1, 3600s}, {0, 240h}}));
}

TEST(RepairShop, what_cannot_be_repaired_occupies_nobody) {
  ShopRig rig({.crews = 1, .travel = 1s});
  rig.admit({0s, 0, forever});
  rig.admit({1s, 1, 10s});
  rig.run_to(1h);
  EXPECT_EQ(rig.back, (Back{{1, 12s}}));
}

TEST(RepairShop, shares_are_met_and_other_servers_change_nobodys_luck) {
  const RepairSpec spec{
      .reset_share = 0.3, .reset = 1min, .vendor_share = 0.2, .vendor = {Law::fixed, 100h}};
  ShopRig many(spec), one(spec);
  for (std::size_t s = 0; s < 4000; ++s) many.admit({0s, s, 10h});
  one.admit({0s, 17, 10h});
  many.run_to(200h);
  one.run_to(200h);
  EXPECT_NEAR(double(many.shop.stats().resets), 1200, 2.6 * 29);  // sqrt(4000 .3 .7) = 29
  EXPECT_NEAR(double(many.shop.stats().vendor), 560, 2.6 * 22);   // .7 .2 4000
  const auto same = std::find(many.back.begin(), many.back.end(), one.back.front());
  EXPECT_NE(same, many.back.end());
}

TEST(RepairShop, a_server_is_repaired_once_at_a_time) {
  ShopRig rig({});
  rig.shop.admit(HostId(0), 1h, {}, RepairWay::any, [](sim::EventIndex) {});
  EXPECT_THROW(rig.shop.admit(HostId(0), 1h, {}, RepairWay::any, [](sim::EventIndex) {}),
               CheckFailed);
}

// The same rules with lists that are searched from end to end at each instant.
class ListShop {
 public:
  ListShop(const RepairSpec& spec, std::uint64_t seed) : spec_(spec), engine_(sim::Seed{seed}) {}

  Back run(std::vector<Visit> visits, Duration end) {
    std::vector<Place> places;
    Back back;
    for (Duration now{0}; now <= end; now = next(now, visits, places)) {
      for (bool again = true; again;) {
        again = false;
        std::sort(places.begin(), places.end(),
                  [](const Place& a, const Place& b) { return a.server < b.server; });
        for (std::size_t i = 0; i < places.size(); ++i) {
          Place& p = places[i];
          if (p.stage == queue || p.until != now) continue;
          again = true;
          if (p.stage == vendor || (p.stage == reset && p.luck.uniform_at(0) < spec_.reset_share) ||
              (p.stage == test && p.luck.uniform_at(3 + p.tests) >= spec_.dead_on_arrival)) {
            back.emplace_back(p.server, now);
            places.erase(places.begin() + std::ptrdiff_t(i));
          } else if (p.stage == reset) {
            crew_or_vendor(p, now);
          } else if (p.stage == work) {
            p.stage = test;
            p.until = now + spec_.test;
          } else {
            ++p.tests;
            p.stage = queue;
            p.since = now;
          }
          break;
        }
        if (again) continue;
        for (const Visit& v : visits)
          if (v.at == now && !taken_.contains({v.server, v.at})) {
            taken_.emplace(std::pair(v.server, v.at), true);
            again = true;
            Place p{v.server, v.hands_on, v.way == RepairWay::planned};
            p.luck = engine_.random("repair").child(v.server).child(nth_[v.server]++);
            if (v.way == RepairWay::vendor)
              to_vendor(p, now);
            else if (!p.is_planned && spec_.reset_share > 0)
              p.stage = reset, p.until = now + spec_.reset;
            else
              crew_or_vendor(p, now);
            places.push_back(p);
          }
        if (again) continue;
        const std::int64_t busy = std::count_if(places.begin(), places.end(),
                                                [](const Place& p) { return p.stage == work; });
        if (busy >= crews(now)) continue;
        Place* first = nullptr;
        for (Place& p : places)
          if (p.stage == queue && (first == nullptr || std::tuple(p.since, p.server) <
                                                           std::tuple(first->since, first->server)))
            first = &p;
        if (first == nullptr) continue;
        again = true;
        first->stage = work;
        first->until = now + spec_.travel + first->hands_on;
      }
    }
    return back;
  }

 private:
  enum Stage { reset, queue, work, test, vendor };
  struct Place {
    std::size_t server;
    Duration hands_on;
    bool is_planned;
    Stage stage = queue;
    Duration since{}, until{};
    std::uint64_t tests = 0;
    sim::Stream luck = {};
  };

  void to_vendor(Place& p, Duration now) {
    sim::Stream luck = p.luck;
    luck.bits(), luck.bits();
    p.stage = vendor;
    p.until = now + draw(spec_.vendor, luck);
  }
  void crew_or_vendor(Place& p, Duration now) {
    if (!p.is_planned && p.luck.uniform_at(1) < spec_.vendor_share) return to_vendor(p, now);
    p.stage = queue;
    p.since = now;
  }
  std::int64_t crews(Duration now) const {
    if (spec_.crews == 0) return 1 << 30;
    const Duration t = now % Duration(24h);
    const bool is_day = t >= spec_.day_start && t < spec_.day_end;
    return is_day ? spec_.crews : spec_.night_crews.value_or(spec_.crews);
  }
  Duration next(Duration now, const std::vector<Visit>& visits,
                const std::vector<Place>& places) const {
    Duration soonest = forever;
    const auto look = [&](Duration t) {
      if (t > now) soonest = std::min(soonest, t);
    };
    for (const Visit& v : visits) look(v.at);
    for (const Place& p : places)
      if (p.stage != queue) look(p.until);
    const Duration midnight = now - now % Duration(24h);
    if (!places.empty())
      for (const Duration t : {spec_.day_start, spec_.day_end, Duration(24h + spec_.day_start)})
        look(midnight + t);
    return soonest;
  }

  RepairSpec spec_;
  sim::Engine engine_;
  std::map<std::size_t, std::uint64_t> nth_;
  std::map<std::pair<std::size_t, Duration>, bool> taken_;
};

TEST(RepairShop, agrees_with_lists_searched_from_end_to_end) {
  int queued = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    sim::Stream random(sim::Seed{seed}, "inputs");
    RepairSpec spec;
    spec.crews = int(random.below(4));
    if (spec.crews > 0 && random.below(2) == 0) spec.night_crews = int(random.below(3));
    spec.day_start = std::chrono::hours(random.below(10));
    spec.day_end = std::chrono::hours(12 + random.below(13));
    spec.travel = std::chrono::hours(random.below(2));
    spec.test = std::chrono::hours(random.below(2));
    spec.reset = std::chrono::hours(random.below(2));
    if (random.below(2) == 0) spec.reset_share = 0.4;
    if (random.below(2) == 0) spec.dead_on_arrival = 0.3;
    if (random.below(2) == 0) spec.vendor_share = 0.2;
    spec.vendor = {Law::fixed, std::chrono::hours(5 + random.below(50)), 1.0};
    // Whole hours, so that much happens in one instant. A server comes again long after.
    std::vector<Visit> visits;
    for (std::size_t server = 0; server < 12; ++server)
      for (int n = 0; n < 3; ++n)
        visits.push_back({std::chrono::hours(2000 * n + std::int64_t(random.below(40))), server,
                          std::chrono::hours(random.below(9)),
                          random.below(5) == 0   ? RepairWay::planned
                          : random.below(9) == 0 ? RepairWay::vendor
                                                 : RepairWay::any});
    // Without night crews and with a long queue somebody might still be there: leave the seed.
    ShopRig rig(spec, seed);
    for (const Visit& v : visits) rig.admit(v);
    rig.run_to(6000h);
    queued += rig.shop.stats().waited > 0s;
    Back expected = ListShop(spec, seed).run(visits, 6000h);
    // At one instant the order among those who are back is no part of the rules.
    const auto by_time = [](const auto& a, const auto& b) {
      return std::tie(a.second, a.first) < std::tie(b.second, b.first);
    };
    std::sort(rig.back.begin(), rig.back.end(), by_time);
    std::sort(expected.begin(), expected.end(), by_time);
    ASSERT_EQ(rig.back, expected);
    ASSERT_EQ(rig.back.size(), visits.size());
  }
  EXPECT_GT(queued, 150);
}

}  // namespace
}  // namespace trainyard::models
