#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/run_file.hpp"
#include "analysis/table.hpp"
#include "sim/recorder.hpp"

/// Writes the run file while the run goes on. The file can be read by others meanwhile, and
/// whatever happens to this process, what was flushed stays readable.
///
///     RunWriter writer("run.h5", info);            // nothing of that name is touched yet
///     SeriesId power = writer.series("cluster_power", "W", "power drawn by all servers");
///     writer.begin();                              // run.h5 appears, says "running", can be read
///     … writer.event(…), writer.sample(…) …
///     writer.flush();                              // about once a second of wall time
///     writer.close({.state = RunState::complete, .simulated = 54 * 24h, .tables = …, .summary =
///     …});
///
/// Three phases, because HDF5's single-writer-multiple-readers mode (SWMR) forbids making datasets
/// and attributes while it is on. Before begin(): everything is created, under a temporary name.
/// After it: only appending. close(): the file is copied, the copy gets the tables and the final
/// state, and takes the name in one step; so the name always stands for a readable file, and two
/// runs of one scenario write the same content (there is no wall-clock time in it).
///
/// A writer destroyed without close() flushes and leaves the state "running", as a killed process
/// does. One writer, one thread. HDF5 errors (a full disk) are thrown as RunFileError.
namespace trainyard::analysis {

/// What is known at the end.
struct Ending {
  RunState state = RunState::complete;
  Duration simulated{};
  std::string failure{};  // why, if state is failed
  std::vector<Table> tables{};
  std::vector<Attribute> summary{};     // "jobs.llm.goodput": 0.91
  std::vector<Attribute> attributes{};  // of the file itself
};

class RunWriter final : public sim::Recorder {
 public:
  /// Throws RunFileError if `path` cannot be written, or is something else than a run file: a run
  /// file is replaced, anything else is not.
  RunWriter(std::string path, const RunInfo& info);
  ~RunWriter() override;
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  /// Kinds and subjects may come at any time. A name longer than 160 bytes is cut in the file.
  sim::KindId kind(std::string_view name, std::string_view unit_of_value) override;
  sim::SubjectId subject(std::string_view name) override;
  /// Before begin(). A series that comes later is kept in memory and written by close(): it cannot
  /// be watched, and is lost if the process is killed. A '/' in the name makes a group.
  sim::SeriesId series(std::string_view name, std::string_view units,
                       std::string_view long_name) override;

  sim::EventIndex event(Time when, sim::Phase phase, sim::KindId kind, sim::SubjectId subject,
                        sim::EventIndex cause, double value) override;
  void sample(sim::SeriesId series, Time when, double value) override;

  /// Makes the datasets, turns SWMR on and gives the file its name.
  void begin();
  /// Appends what is buffered and hands it to the operating system. Calls begin() if nobody did.
  void flush();
  void close(const Ending& ending);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainyard::analysis
