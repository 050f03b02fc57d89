#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "models/scheduling/cluster_care_spec.hpp"
#include "sim/engine.hpp"
#include "sim/random.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "topologies/fabric.hpp"

/// Who repairs broken servers: a queue in front of crews that work in shifts.
///
///     a visit    reset, out of band (if reset_share > 0) -> cured with probability reset_share
///                else to the vendor with probability vendor_share -> back after the vendor's delay
///                else waits for a crew: travel + hands-on, then the crew is free; test;
///                fails it with probability dead_on_arrival -> waits for a crew again
///
/// The queue is first come, first served, at one instant the lower server. A crew finishes what it
/// began, also after the end of its shift. With c crews, exponential repairs of mean 1/mu and N
/// servers that fail at rate lambda each, the number broken is the birth-death chain
///
///     up  lambda (N - k),   down  mu min(k, c)
///
/// (the "machine repairman": Palm 1947; Feller, "An Introduction to Probability Theory", XVII.7).
///
/// All luck of the n-th visit of a server is in the stream "repair" . server . n at fixed places:
/// 0 reset, 1 vendor, 2 the vendor's delay, 3 + i the i-th test.
///
///     RepairShop shop(engine, recorder, {.crews = 2});
///     shop.admit(HostId(17), 12h, failure.event, RepairWay::any, [&](sim::EventIndex why) { ...
///     });
///
/// docs/models/repair.md
namespace trainyard::models {

enum class RepairWay : std::uint8_t {
  any,      // a failure: reset, crew or vendor
  planned,  // planned work: a crew
  vendor    // a repeat offender: straight to the vendor
};

class RepairShop {
 public:
  /// Called in phase completion, with the last event of the visit (invalid only if the cause was).
  using Done = std::function<void(sim::EventIndex)>;

  RepairShop(sim::Engine& engine, sim::Recorder& recorder, RepairSpec spec);
  RepairShop(const RepairShop&) = delete;
  RepairShop& operator=(const RepairShop&) = delete;

  /// `server`, which is not here yet, needs `hands_on` of a crew's time; `forever`: it never
  /// returns, and occupies nobody.
  void admit(topologies::HostId server, Duration hands_on, sim::EventIndex cause, RepairWay way,
             Done done);

  const RepairSpec& spec() const { return spec_; }
  /// Servers that wait for a crew now, and crews at work.
  std::int64_t waiting() const { return std::int64_t(queue_.size()); }
  std::int64_t busy() const { return busy_; }
  /// Crews on duty at an instant; 0: any number.
  std::int64_t crews_at(Time when) const;

  struct Stats {
    std::int64_t visits = 0;
    std::int64_t resets = 0;   // cured by a reset
    std::int64_t vendor = 0;   // sent to the vendor
    std::int64_t repairs = 0;  // begun by a crew
    std::int64_t failed_tests = 0;
    Duration waited{};  // for a crew, of all repairs that began
    Duration worked{};  // of crews, travel included, of all repairs that ended
    double mean_wait_s() const { return repairs == 0 ? 0 : to_seconds(waited) / double(repairs); }
  };
  const Stats& stats() const { return stats_; }

 private:
  enum class Stage : std::uint8_t { reset, waiting, repair, test, vendor };
  struct Visit {
    Duration hands_on{};
    sim::EventIndex cause;
    sim::Stream luck;
    std::uint64_t tests = 0;
    Stage stage = Stage::waiting;
    Time since{};
    bool is_planned = false;
    Done done;
  };
  using Entry = std::pair<Time, topologies::HostId>;

  void enter(topologies::HostId server, Visit& visit, Stage stage, Duration lasts);
  void wait_for_crew(topologies::HostId server, Visit& visit);
  void begin(topologies::HostId server, Visit& visit);
  void to_vendor(topologies::HostId server, Visit& visit);
  void after_reset(topologies::HostId server, Visit& visit);
  void finish_due();
  void finish_stage(topologies::HostId server);
  void start_crews();
  Time next_shift(Time when) const;
  void note(const char* kind, topologies::HostId server, Visit& visit, sim::Phase phase);
  void sample();

  sim::Engine& engine_;
  sim::Recorder& recorder_;
  RepairSpec spec_;
  bool has_shifts_;
  sim::Stream luck_;
  std::map<topologies::HostId, Visit> visits_;
  std::map<topologies::HostId, std::uint64_t> visits_of_;
  std::set<Entry> ends_;   // of stages
  std::set<Entry> queue_;  // by the time of joining
  std::int64_t busy_ = 0;
  Stats stats_;
  sim::SeriesId waiting_series_, busy_series_;
  sim::Timer end_timer_;
  sim::Timer start_timer_;  // at the end of an instant, so that all who came in it are there
  sim::Timer shift_timer_;
};

}  // namespace trainyard::models
