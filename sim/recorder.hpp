#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine.hpp"
#include "sim/id.hpp"
#include "sim/time.hpp"

/// Where models report what happened. Names are registered once and travel as ids; units travel
/// with them, so a file or a plot can label itself. Two kinds of report:
///   an *event*   something happened to a subject at an instant, perhaps because of an earlier
///   event; a *sample*   from this instant on, a quantity has this value (change-driven, not
///   periodic).
///
///     KindId failed = recorder.kind("gpu failed", "");
///     SubjectId gpu = recorder.subject("node-17/gpu-3");
///     EventIndex why = recorder.event(engine.now(), Phase::failure, failed, gpu, {}, 0.0);
///     recorder.event(engine.now(), Phase::decision, restarted, job, why, 1.0);   // caused by it
namespace trainyard::sim {

using KindId = Id<struct KindTag>;
using SubjectId = Id<struct SubjectTag>;
using SeriesId = Id<struct SeriesTag>;
/// The number of a recorded event; an invalid one means "no cause known".
using EventIndex = Id<struct EventTag>;

class Recorder {
 public:
  virtual ~Recorder() = default;

  /// Registering a name again returns the id it already has.
  virtual KindId kind(std::string_view name, std::string_view unit_of_value) = 0;
  virtual SubjectId subject(std::string_view name) = 0;
  virtual SeriesId series(std::string_view name, std::string_view units,
                          std::string_view long_name) = 0;

  virtual EventIndex event(Time when, Phase phase, KindId kind, SubjectId subject, EventIndex cause,
                           double value) = 0;
  virtual void sample(SeriesId series, Time when, double value) = 0;
};

/// Forgets everything, but numbers events as the others do, so causes stay valid.
class NullRecorder final : public Recorder {
 public:
  KindId kind(std::string_view, std::string_view) override { return KindId(0); }
  SubjectId subject(std::string_view) override { return SubjectId(0); }
  SeriesId series(std::string_view, std::string_view, std::string_view) override {
    return SeriesId(0);
  }
  EventIndex event(Time, Phase, KindId, SubjectId, EventIndex, double) override {
    return EventIndex(events_++);
  }
  void sample(SeriesId, Time, double) override {}

 private:
  std::size_t events_ = 0;
};

/// Keeps everything in memory, in the order it came: for tests and small runs.
class MemoryRecorder final : public Recorder {
 public:
  struct Kind {
    std::string name;
    std::string unit_of_value;
  };
  struct Series {
    std::string name;
    std::string units;
    std::string long_name;
  };
  struct Event {
    Time when;
    Phase phase;
    KindId kind;
    SubjectId subject;
    EventIndex cause;
    double value;
  };
  struct Sample {
    SeriesId series;
    Time when;
    double value;
  };

  KindId kind(std::string_view name, std::string_view unit_of_value) override;
  SubjectId subject(std::string_view name) override;
  SeriesId series(std::string_view name, std::string_view units,
                  std::string_view long_name) override;
  EventIndex event(Time when, Phase phase, KindId kind, SubjectId subject, EventIndex cause,
                   double value) override;
  void sample(SeriesId series, Time when, double value) override;

  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::vector<std::string>& subjects() const { return subjects_; }
  const std::vector<Series>& all_series() const { return series_; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Sample>& samples() const { return samples_; }

  /// How many events of this kind were reported; 0 for a name nobody registered.
  std::size_t count(std::string_view kind_name) const;
  /// One line an event: "12 min 30 s failure gpu failed node-17/gpu-3 0 <- 4".
  std::string to_text() const;

 private:
  std::vector<Kind> kinds_;
  std::vector<std::string> subjects_;
  std::vector<Series> series_;
  std::vector<Event> events_;
  std::vector<Sample> samples_;
  std::map<std::string, KindId, std::less<>> kind_of_;
  std::map<std::string, SubjectId, std::less<>> subject_of_;
  std::map<std::string, SeriesId, std::less<>> series_of_;
};

}  // namespace trainyard::sim
