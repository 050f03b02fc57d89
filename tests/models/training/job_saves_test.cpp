#include <gmock/gmock.h>

#include <sstream>
#include <utility>

#include "tests/models/training/life_rig.hpp"

/// Levels of saves in the life of a job, each timeline by hand. The rig: start-up 0-5 s, steps of
/// 1 s, 100 GB on two servers, a store that takes 2 s to save and 1 s to load.
namespace trainyard::models {
namespace {

double s(std::optional<Time> t) {
  return t ? to_seconds(*t) : -1;
}

LevelSpec level(LevelKind kind, std::int64_t every_steps) {
  LevelSpec l;
  l.kind = kind;
  l.every_steps = every_steps;
  l.write_rate = 50_GBps;
  l.read_rate = 100_GBps;
  return l;
}

/// A save to NVMe each 4 steps, one to the store each 10 s of training; the copy to host memory
/// takes 500 ms.
JobSpec two_levels() {
  JobSpec spec = spec_by_hand();
  spec.checkpoint.mode = SaveMode::asynchronous;
  spec.checkpoint.stall = 500ms;
  spec.checkpoint.levels["nvme"] = level(LevelKind::local_nvme, 4);
  return spec;
}

struct Expected {
  const char* level;
  std::int64_t step;
  double start, stall_end, complete;
};

void expect_rows(const Job& job, const std::vector<Expected>& rows) {
  ASSERT_GE(job.checkpoints().size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(i);
    const CheckpointRow& row = job.checkpoints()[i];
    EXPECT_EQ(row.level, rows[i].level);
    EXPECT_EQ(row.step, rows[i].step);
    EXPECT_DOUBLE_EQ(to_seconds(row.start), rows[i].start);
    EXPECT_DOUBLE_EQ(s(row.stall_end), rows[i].stall_end);
    EXPECT_DOUBLE_EQ(s(row.complete), rows[i].complete);
  }
}

// Steps end at 6 7 8 9 | copy 9-9.5 | 10.5 ... 13.5 | copy | 15 16 | store: copy 16-16.5
// | 17.5 18.5 | copy ...: NVMe takes 1 s for its 50 GB a server, the store 2 s for all.
TEST(JobSaves, two_levels_event_by_event) {
  Life life;
  Job& job = life.add(two_levels());
  life.fail_at(21200ms, life.failure_class("software", Effect::crash, 4s, false), 0);
  life.run_and_close(40s);
  expect_rows(job, {{"nvme", 4, 9, 9.5, 10.5},
                    {"nvme", 8, 13.5, 14, 15},
                    {"pfs", 10, 16, 16.5, 18.5},
                    {"nvme", 12, 18.5, 19, 20}});
  // Two steps and 0.2 s since; found 25.2, started 30.2, loaded from NVMe at 100 GB/s: 30.7.
  ASSERT_EQ(job.interruptions().size(), 1u);
  const InterruptionRow& row = job.interruptions()[0];
  EXPECT_EQ(row.restored_level, "nvme");
  EXPECT_EQ(row.restored_step, 12);
  EXPECT_EQ(row.lost_steps, 2);
  EXPECT_EQ(row.lost_time, 2200ms);
  EXPECT_EQ(row.phases.detection, 4s);
  EXPECT_EQ(row.phases.start_up, 5s);
  EXPECT_EQ(row.phases.load, 500ms);
  EXPECT_DOUBLE_EQ(s(row.resumed), 30.7);
  EXPECT_EQ(job.stats().restores_by_level.at("nvme"), 1);
}

// The same failure takes the server with its disks: back to the save on the store, of step 10.
TEST(JobSaves, a_local_save_dies_with_its_node_and_one_on_the_store_survives) {
  Life life;
  Job& job = life.add(two_levels());
  life.fail_at(21200ms, life.crash(), 0);
  life.run_and_close(40s);
  const InterruptionRow& row = job.interruptions().at(0);
  EXPECT_EQ(row.restored_level, "pfs");
  EXPECT_EQ(row.restored_step, 10);
  EXPECT_EQ(row.lost_steps, 4);
  EXPECT_EQ(row.lost_time, 4200ms);
  EXPECT_DOUBLE_EQ(s(row.resumed), 25.2 + 3 + 5 + 1);
  EXPECT_EQ(per_gpu(job.ledger(), Account::lost_work, 16), 4200ms);
}

// Struck at 14.5 s, half way through the save to NVMe of step 8: back to that of step 4.
TEST(JobSaves, an_interrupted_save_is_never_loaded) {
  Life life;
  Job& job = life.add(two_levels());
  life.fail_at(14500ms, life.failure_class("software", Effect::crash, 4s, false), 0);
  life.run_and_close(40s);
  EXPECT_TRUE(job.checkpoints().at(1).is_lost);
  EXPECT_EQ(job.checkpoints()[1].why_lost, "software");
  EXPECT_EQ(job.interruptions().at(0).restored_step, 4);
  EXPECT_EQ(job.interruptions()[0].lost_time, 4500ms);
  EXPECT_EQ(job.stats().saves_lost, 1);
}

/// Four servers and four spares; peers are in other racks, if there are.
LifeSetup with_racks(int servers_per_rack) {
  LifeSetup setup;
  setup.pool = {.servers = 8, .gpus_per_server = 8, .nics_per_server = 8, .spares = 4};
  setup.pool.parents.servers_per_rack = servers_per_rack;
  return setup;
}

JobSpec with_peers() {
  JobSpec spec = spec_by_hand();
  spec.gpus = 32;
  spec.checkpoint.mode = SaveMode::asynchronous;
  spec.checkpoint.stall = 500ms;
  LevelSpec peers = level(LevelKind::peer_memory, 4);
  peers.apart = Component::rack;
  spec.checkpoint.levels["peers"] = peers;
  return spec;
}

TEST(JobSaves, a_peer_memory_save_survives_a_rack_if_the_peers_are_in_another) {
  Life life(with_racks(2));
  Job& job = life.add(with_peers());
  FailureClass& rack = life.failure_class("rack power", Effect::crash, 4s);
  rack.spec.component = Component::rack;
  life.fail_at(21200ms, rack, 0);
  life.run_and_close(60s);
  EXPECT_EQ(job.interruptions().at(0).servers, 2);
  EXPECT_EQ(job.interruptions()[0].restored_level, "peers");
  EXPECT_EQ(job.interruptions()[0].restored_step, 12);
}

TEST(JobSaves, a_peer_memory_save_dies_with_its_rack) {
  Life life(with_racks(4));  // all peers in one
  Job& job = life.add(with_peers());
  FailureClass& rack = life.failure_class("rack power", Effect::crash, 4s);
  rack.spec.component = Component::rack;
  life.fail_at(21200ms, rack, 0);
  life.run_and_close(60s);
  EXPECT_EQ(job.interruptions().at(0).servers, 4);
  EXPECT_EQ(job.interruptions()[0].restored_level, "pfs");
  EXPECT_EQ(job.interruptions()[0].restored_step, 10);
}

// Saves at 15-17, 27-29 and 39-41. Results are wrong from 16 s on; found 20 s later, after the
// second save: that is void as well.
TEST(JobSaves, silent_corruption_goes_back_to_the_last_save_before_it) {
  Life life;
  Job& job = life.add(spec_by_hand());
  life.fail_at(16s, life.failure_class("sdc", Effect::corrupt, 20s), 0);
  life.run_and_close(60s);
  const InterruptionRow& row = job.interruptions().at(0);
  EXPECT_DOUBLE_EQ(s(row.found), 36);
  EXPECT_EQ(row.restored_step, 10);
  EXPECT_EQ(row.lost_steps, 17);  // 17-27 and 29-36
  EXPECT_TRUE(job.checkpoints().at(1).is_corrupt);
  EXPECT_FALSE(job.checkpoints().at(0).is_corrupt);
}

TEST(JobSaves, a_save_that_is_verified_finds_the_corruption_earlier) {
  Life life;
  JobSpec spec = spec_by_hand();
  spec.checkpoint.verify = 3s;
  Job& job = life.add(spec);
  life.fail_at(16s, life.failure_class("sdc", Effect::corrupt, 1000s), 0);
  life.run_and_close(60s);
  const InterruptionRow& row = job.interruptions().at(0);
  EXPECT_DOUBLE_EQ(s(row.found), 32);  // the save of 27-29 s, and 3 s
  EXPECT_EQ(row.restored_step, 10);
  EXPECT_DOUBLE_EQ(s(job.checkpoints().at(0).verified), 20);
}

TEST(JobSaves, a_full_store_refuses_saves_and_retention_makes_room) {
  for (const int keep : {1, 3}) {
    SCOPED_TRACE(keep);
    LifeSetup setup;
    setup.store.capacity = 250_GB;
    Life life(setup);
    JobSpec spec = spec_by_hand();
    spec.checkpoint.keep = keep;
    Job& job = life.add(spec);
    life.run_and_close(70s);  // saves are due at 15, 27, 39, 51 and 63 s
    EXPECT_EQ(job.stats().saves_refused > 0, keep == 3);
    EXPECT_EQ(job.stats().checkpoints, keep == 1 ? 5 : 2);
    EXPECT_EQ(job.stats().saves_lost, 0);
  }
}

// The copy off site begins when the save on the store is complete, and no failure of the job stops
// it.
TEST(JobSaves, an_off_site_copy_follows_the_save_on_the_store) {
  Life life;
  life.shelf["vault"] = {&life.store, {}};
  JobSpec spec = spec_by_hand();
  LevelSpec off = level(LevelKind::off_site, 1);
  off.store = "vault";
  spec.checkpoint.levels["vault"] = off;
  Job& job = life.add(spec);
  life.fail_at(17500ms, life.crash(), 0);
  life.run_and_close(40s);
  expect_rows(job, {{"pfs", 10, 15, 17, 17}, {"vault", 10, 15, 15, 19}});
}

// Warned at 20.3 s of a crash at 25 s: the step ends at 21, the save at 23.
TEST(JobSaves, an_announced_failure_is_met_by_a_save) {
  Life life;
  Job& job = life.add(spec_by_hand());
  const FailureClass& crash = life.crash();
  life.engine.at(start_of_run + 20300ms, sim::Phase::failure, [&] {
    Failure failure;
    failure.cls = &crash;
    life.pool.warn(failure, start_of_run + 25s);
  });
  life.fail_at(25s, crash, 0);
  life.run_and_close(50s);
  EXPECT_TRUE(job.checkpoints().at(1).is_emergency);
  EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].complete), 23);
  EXPECT_EQ(job.interruptions().at(0).lost_time, 2s);
  EXPECT_EQ(job.interruptions()[0].restored_step, 14);
}

// Two warnings, the second before another step is done: what is saved already is not saved again.
TEST(JobSaves, a_second_warning_without_a_step_between_saves_nothing) {
  Life life;
  Job& job = life.add(spec_by_hand());
  const FailureClass& crash = life.crash();
  const auto warn_at = [&](Time when) {
    life.engine.at(when, sim::Phase::failure, [&] {
      Failure failure;
      failure.cls = &crash;
      life.pool.warn(failure, start_of_run + 40s);
    });
  };
  warn_at(start_of_run + 20300ms);
  // The save of the first ends at 23 s, and the next step begins there.
  warn_at(start_of_run + 23s);
  life.run_and_close(23s + 500ms);
  ASSERT_EQ(job.checkpoints().size(), 2u);  // the regular one and one emergency
  EXPECT_TRUE(job.checkpoints()[1].is_emergency);
  EXPECT_DOUBLE_EQ(s(job.checkpoints()[1].complete), 23);
}

// A drain of 8 s outlasts the interval: saves pile up and say so.
TEST(JobSaves, that_take_longer_than_their_interval_are_late) {
  LifeSetup setup;
  setup.store.write_rate = 100_GBps / 8.0;
  Life life(setup);
  JobSpec spec = two_levels();
  spec.checkpoint.levels.clear();
  spec.checkpoint.interval = 4s;
  Job& job = life.add(spec);
  life.run_and_close(60s);
  EXPECT_GT(job.stats().saves_late, 3);
  for (std::size_t i = 1; i < job.checkpoints().size(); ++i)
    EXPECT_GE(job.checkpoints()[i].start, *job.checkpoints()[i - 1].complete);
}

/// All that is written down of a job, and what the run loop saw at each instant.
std::string story(const Life& life, const std::string& seen) {
  std::ostringstream out;
  const Job& job = *life.jobs.front();
  out << static_cast<const sim::MemoryRecorder&>(*life.recorder).to_text() << seen;
  const auto ns = [](std::optional<Time> t) { return t ? t->time_since_epoch().count() : -1; };
  for (const CheckpointRow& r : job.checkpoints())
    out << r.level << ' ' << r.step << ' ' << ns(r.start) << ' ' << ns(r.stall_end) << ' '
        << ns(r.complete) << ' ' << ns(r.verified) << ' ' << r.was_late << r.is_lost << r.is_corrupt
        << r.is_emergency << ' ' << r.why_lost << '\n';
  for (const SegmentRow& r : job.segments())
    out << ns(r.start) << ' ' << ns(r.end) << ' ' << name_of(r.state) << ' ' << r.profile << ' '
        << r.steps << ' ' << r.servers << '\n';
  for (const InterruptionRow& r : job.interruptions())
    out << r.why << ' ' << ns(r.when) << ' ' << ns(r.found) << ' ' << ns(r.resumed) << ' '
        << r.lost_steps << ' ' << r.restored_level << ' ' << r.restored_step << '\n';
  for (std::size_t a = 0; a < accounts; ++a) {
    const GpuNanoseconds all = job.ledger()[static_cast<Account>(a)];
    out << static_cast<std::int64_t>(all / 1'000'000'000) << ' '
        << static_cast<std::int64_t>(all % 1'000'000'000) << '\n';
  }
  return out.str();
}

/// Three levels, checks of what they hold, and failures of all kinds. All at odd nanoseconds: at
/// one instant the order is that of scheduling, and the two do not schedule alike.
std::string run_with_failures(std::uint64_t seed, bool glides, std::uint64_t& events) {
  Life life({.seed = seed, .step = 1'000'000'007ns, .record = true});
  JobSpec spec = two_levels();
  spec.checkpoint.levels["memory"] = level(LevelKind::peer_memory, 3);
  spec.checkpoint.stall = 500'000'003ns;
  spec.checkpoint.levels["nvme"].write_rate = 43_GBps;
  spec.checkpoint.levels["memory"].write_rate = 47_GBps;
  spec.checkpoint.levels["memory"].verify = 7'000'000'011ns;
  spec.checkpoint.verify = 12'000'000'013ns;
  const Job& job = life.add(spec);
  sim::Stream luck(sim::Seed{seed}, "strikes");
  const FailureClass& crash = life.crash();
  const FailureClass& software = life.failure_class("software", Effect::crash, 4s, false);
  const FailureClass& corrupt = life.failure_class("corrupt", Effect::corrupt, 60s);
  const FailureClass& slow = life.failure_class("slow", Effect::slow, 30s);
  FailureClass& chore = life.failure_class("chore", Effect::maintenance, 0s);
  life.classes[life.classes.size() - 2].spec.speed = 0.7;
  const FailureClass* const all[] = {&crash, &software, &corrupt, &slow, &chore};
  for (int i = 0; i < 8; ++i)
    life.fail_at(seconds(luck.uniform() * 350), *all[std::size_t(luck.uniform() * 5)],
                 std::uint32_t(luck.uniform() * 3));
  std::ostringstream seen;
  JobState last = JobState::queued;
  const Time end = start_of_run + 400s;
  const auto look = [&] {
    if (std::exchange(last, job.state()) != job.state())
      seen << life.engine.now().time_since_epoch().count() << ' ' << name_of(last) << '\n';
  };
  if (glides) life.engine.allow_gliding(end, look);
  while (life.engine.next_event().value_or(Time::max()) <= end) {
    life.engine.step();
    look();
  }
  life.run_and_close(400s);
  events = life.engine.events_processed();
  EXPECT_EQ(life.engine.glides() > 0, glides);
  return story(life, seen.str());
}

// The slow twin: every wait of a save is an event.
TEST(JobSaves, undisturbed_saves_in_one_event_are_those_event_by_event) {
  std::uint64_t all_few = 0, all_many = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::uint64_t few = 0, many = 0;
    ASSERT_EQ(run_with_failures(seed, true, few), run_with_failures(seed, false, many));
    all_few += few;
    all_many += many;
  }
  EXPECT_LT(4 * all_few, 3 * all_many);  // saves lie close together here
}

}  // namespace
}  // namespace trainyard::models
