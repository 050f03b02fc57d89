#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/storage/data_spec.hpp"
#include "models/storage/loader.hpp"
#include "models/storage/store.hpp"
#include "sim/engine.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

/// The batches of one job on their way from the store to its steps, at run level: a fluid queue
/// between the readers of all servers and the step. A step waits only when the queue is empty.
///
///     level' = p - c        p batches/s come (loader.hpp, and the share of the store),
///                           c = 1 / step are taken
///     empty and p < c:      the step takes 1 / p
///     full:                 p = c, and the readers ask the store for no more than that
///
/// Samples of uneven size: a step that need not wait on average still waits for the slowest GPU now
/// and then (`uneven_rate` in loader.hpp), so c is the rate that readers and steps reach together.
///
/// Between two events all rates are constant, so the moments when the queue runs empty, is full or
/// the hit rate of the cache changes with an epoch are known: one timer, no event a step.
///
///     DataFeed feed(engine, store, data, "llm", 128, 8, 2048);
///     feed.restart(0);                     // readers start: the first batch is 1 / p away
///     feed.train(800ms);                   // feed.step() is 800 ms, until feed.changed()
///     feed.stand();                        // a save: the queue fills up
///
/// docs/models/data-path.md
namespace trainyard::models {

class DataFeed {
 public:
  /// Nothing is read before the first restart() or train(). `samples_per_step` over all servers.
  DataFeed(sim::Engine& engine, SharedStore& store, DataSpec data, std::string user,
           std::int64_t servers, std::int64_t gpus_per_server, double samples_per_step);
  DataFeed(const DataFeed&) = delete;
  DataFeed& operator=(const DataFeed&) = delete;
  ~DataFeed();

  /// From now on the job takes one batch each `step`, if it need not wait.
  void train(Duration step);
  /// It takes none, its readers go on: the queue fills up.
  void stand();
  /// Its processes ended: the queue is lost, nobody reads.
  void stop();
  /// New processes, standing: the queue is empty, readers start after `samples_done` samples of
  /// training. Caches of the servers keep what they hold.
  void restart(double samples_done);
  /// The same on another number of servers.
  void restart(double samples_done, std::int64_t servers, double samples_per_step);

  /// What a step takes now: the step of train() while the queue holds something or the supply is
  /// faster, else the supply's time of a batch. `forever` before the first batch after a restart,
  /// and when nothing comes from the store. Only while training.
  Duration step() const;
  /// step() is another one now.
  sim::Signal& changed() { return changed_; }

  /// Whole batches ahead of the job, as a fluid.
  double queue_batches() const;
  /// Batches a second that readers bring now.
  double supply_batches() const { return supply_; }
  /// What limits the supply: "workers", "uneven samples", "CPU cores", "client limit", "cache",
  /// "read bandwidth of scratch", "metadata of scratch"; the last two with whom the share was lost
  /// to: ", shared with neighbour etl (8.2 GB/s)".
  std::string limit() const;
  /// Share of the reads that the caches answer in this epoch.
  double hit_rate() const { return hit_rate_; }
  /// Samples that readers brought, of all epochs; what stood in the queue at a restart is read
  /// again.
  double samples_read() const;

 private:
  enum class State { off, standing, training };
  /// For bytes and for operations a reader each, so that it is known which of them the job lacks,
  /// and that it asks for no more of the one than the other allows.
  struct Demand {
    std::unique_ptr<SharedStore::Reader> reader;
    bool is_bytes = true;
    double batches = 0;  // a second, that it asks for
    double told = -1;    // the store, bytes or operations a second
  };

  sim::Process follow_store();
  void advance();
  void decide();
  void update_hit_rate();
  double supply_of(double target);
  double let_through(Demand& demand, double batches_per_s);
  void arm();
  void announce();

  Duration pace_of(Duration step) const;
  double wanted() const;  // batches a second that the job would take
  double capacity() const { return double(data_.prefetch); }

  sim::Engine& engine_;
  SharedStore& store_;
  DataSpec data_;
  std::string user_;
  std::int64_t servers_;
  std::int64_t gpus_per_server_;
  double samples_per_step_;
  Demand bytes_;
  Demand operations_;
  sim::Signal changed_;
  sim::Timer timer_;
  sim::ProcessHandle follower_;

  State state_ = State::off;
  Duration asked_step_{};
  Duration pace_{};  // of a step while there are batches: asked_step_, if all samples are alike
  Time as_of_{};
  double level_ = 0;     // batches ahead of the one in use; below 0 before the first one is there
  double position_ = 0;  // samples read
  double supply_ = 0;    // batches a second, from as_of_ on
  double demand_ = 0;    // batches a second taken
  double hit_rate_ = 0;
  double next_hit_rate_at_ = 0;  // samples read; infinity: it stays
  double snap_level_ = 0;        // where the level is exactly when the timer fires
  bool snaps_ = false;
  Duration announced_{};
  SupplyLimit limit_ = SupplyLimit::workers;
};

}  // namespace trainyard::models
