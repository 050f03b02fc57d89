#pragma once

#include <unistd.h>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analysis/link_loads.hpp"
#include "analysis/run_writer.hpp"

/// A small run that never happened, for the tests of this folder: every kind of thing a run file
/// holds, from a seed.
namespace trainyard::analysis::test {

struct SampleRun {
  std::uint64_t seed = 1;
  std::size_t events = 500;
  std::size_t flush_every = 100;
  std::int64_t gpus = 16384;
  Duration simulated = std::chrono::hours(24 * 54);
};

inline RunInfo info_of(const SampleRun& sample) {
  RunInfo info;
  info.creator_version = "0.1.0";
  info.git_commit = "0123abc";
  info.command_line = "trainyard run sample.json";
  info.scenario_name = "sample";
  info.scenario = R"({"cluster": {"servers": 2048}, "name": "sample"})";
  info.seed = sample.seed;
  info.planned = sample.simulated;
  return info;
}

/// Registers and records; `begin` and `flush` are called where a run would.
template <class Begin, class Flush>
void record(sim::Recorder& writer, const SampleRun& sample, Begin begin, Flush flush) {
  std::mt19937_64 random(sample.seed);
  const sim::KindId kinds[] = {writer.kind("gpu failed", ""), writer.kind("checkpoint saved", "B"),
                               writer.kind("job restarted", "s")};
  const sim::SeriesId power = writer.series("cluster_power", "W", "power drawn by all servers");
  const sim::SeriesId rate = writer.series("jobs/llm/step_time", "s", "time of one step");
  begin();
  for (std::size_t i = 0; i < sample.events; ++i) {
    const Time now(Duration(static_cast<std::int64_t>(i) * 1'000'000'007));
    const sim::SubjectId subject = writer.subject("node-" + std::to_string(random() % 40));
    const sim::EventIndex cause =
        i > 0 && random() % 3 == 0 ? sim::EventIndex(random() % i) : sim::EventIndex();
    writer.event(now, static_cast<sim::Phase>(random() % 5), kinds[random() % 3], subject, cause,
                 static_cast<double>(random() % 1000) / 8);
    if (random() % 2 == 0) writer.sample(power, now, 1e6 + static_cast<double>(random() % 1000));
    if (random() % 5 == 0) writer.sample(rate, now, 5.0 + static_cast<double>(random() % 100) / 64);
    if ((i + 1) % sample.flush_every == 0) flush();
  }
}

/// Does not close.
inline void record(RunWriter& writer, const SampleRun& sample) {
  record(
      writer, sample, [&] { writer.begin(); }, [&] { writer.flush(); });
}

/// Accounts that sum to gpus x simulated exactly, with more than 64 bits in one of them.
inline std::vector<std::pair<std::string, GpuNanoseconds>> accounts_of(const SampleRun& sample) {
  const GpuNanoseconds total = static_cast<GpuNanoseconds>(sample.gpus) * sample.simulated.count();
  const GpuNanoseconds bubble = total / 7, lost = 12'345'678'901'234'567;
  return {
      {"useful", total - bubble - lost}, {"bubble", bubble}, {"lost_work", lost}, {"detection", 0}};
}

/// Two links between switches, two distinct steps; in the second one cable is degraded to half.
inline std::vector<LinkLoad> link_loads_of_sample() {
  const LinkUser first{"llm: dp stage 0, node-0/gpu-0 -> node-1/gpu-0", 3e9};
  const LinkUser second{"llm: pp stage 0 -> 1, node-0/gpu-1 -> node-2/gpu-1", 1e9};
  return {{0, 1, "leaf-0 -> spine-1", 4e9, 50e9, 0.02, {first, second}},
          {0, 0, "leaf-0 -> spine-0", 3e9, 50e9, 0.015, {first}},
          {1, 1, "leaf-0 -> spine-1", 4e9, 25e9, 0.04, {first, second}}};
}

inline Ending ending_of(const SampleRun& sample) {
  Ending ending;
  ending.simulated = sample.simulated;
  ending.tables.push_back(ledger_table(
      "jobs/llm/ledger", "where the job's GPU time went", accounts_of(sample),
      {{"gpus", sample.gpus}, {"duration_ns", std::int64_t{sample.simulated.count()}}}));
  Table saves = Table::with("jobs/llm/checkpoints", "one row a save",
                            {{"start_ns", "ns", "instant the save began", ColumnType::int64},
                             {"level", "", "where it was kept", ColumnType::text},
                             {"size", "B", "bytes of one copy", ColumnType::real}});
  for (std::int64_t i = 0; i < 1500; ++i)
    saves.add_row({i * 1'800'000'000'000, i % 4 == 0 ? "parallel store, off-site" : "node \"nvme\"",
                   1.25e12});
  ending.tables.push_back(std::move(saves));
  ending.tables.push_back(Table::with("jobs/llm/interruptions", "one row an interruption",
                                      {{"start_ns", "ns", "instant", ColumnType::int64},
                                       {"cause", "", "what failed", ColumnType::text}}));
  Table profiles = Table::with("jobs/llm/step_profiles", "every distinct step the job had",
                               {{"step_ns", "ns", "time of one step", ColumnType::int64}});
  for (int i = 0; i < 2; ++i) profiles.add_row({std::int64_t{4'000'000'000}});
  ending.tables.push_back(std::move(profiles));
  for (Table& t : link_load_tables("jobs/llm", link_loads_of_sample()))
    ending.tables.push_back(std::move(t));
  const FabricLink links[] = {{0, 1, 50e9, 2, "leaf-0 -> spine-0", "leaf_spine"},
                              {0, 2, 50e9, 2, "leaf-0 -> spine-1", "leaf_spine"}};
  ending.tables.push_back(fabric_links_table(links));
  ending.summary = {{"fingerprint", "00ff00ff00ff00ff"}, {"jobs.llm.goodput", 0.9125}};
  return ending;
}

inline void write_sample(const std::string& path, const SampleRun& sample = {}) {
  RunWriter writer(path, info_of(sample));
  record(writer, sample);
  writer.close(ending_of(sample));
}

/// An empty folder of its own, gone at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "run-file-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

}  // namespace trainyard::analysis::test
