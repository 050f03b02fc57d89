#include "sim/recorder.hpp"

#include <algorithm>
#include <sstream>

namespace trainyard::sim {
namespace {

/// The id a name has, or that of a new entry.
template <class IdType, class Entry>
IdType registered(std::map<std::string, IdType, std::less<>>& ids, std::vector<Entry>& entries,
                  std::string_view name, Entry entry) {
  if (auto known = ids.find(name); known != ids.end()) return known->second;
  const IdType id(entries.size());
  entries.push_back(std::move(entry));
  ids.emplace(name, id);
  return id;
}

}  // namespace

KindId MemoryRecorder::kind(std::string_view name, std::string_view unit_of_value) {
  return registered(kind_of_, kinds_, name, Kind{std::string(name), std::string(unit_of_value)});
}

SubjectId MemoryRecorder::subject(std::string_view name) {
  return registered(subject_of_, subjects_, name, std::string(name));
}

SeriesId MemoryRecorder::series(std::string_view name, std::string_view units,
                                std::string_view long_name) {
  return registered(series_of_, series_, name,
                    Series{std::string(name), std::string(units), std::string(long_name)});
}

EventIndex MemoryRecorder::event(Time when, Phase phase, KindId kind, SubjectId subject,
                                 EventIndex cause, double value) {
  check(kind.index() < kinds_.size(), "an event's kind is registered", kind.index());
  check(subject.index() < subjects_.size(), "an event's subject is registered", subject.index());
  check(!cause.is_valid() || cause.index() < events_.size(), "a cause comes before its effect",
        cause.index());
  events_.push_back({when, phase, kind, subject, cause, value});
  return EventIndex(events_.size() - 1);
}

void MemoryRecorder::sample(SeriesId series, Time when, double value) {
  check(series.index() < series_.size(), "a sample's series is registered", series.index());
  samples_.push_back({series, when, value});
}

std::size_t MemoryRecorder::count(std::string_view kind_name) const {
  const auto known = kind_of_.find(kind_name);
  if (known == kind_of_.end()) return 0;
  return static_cast<std::size_t>(std::count_if(
      events_.begin(), events_.end(), [&](const Event& e) { return e.kind == known->second; }));
}

std::string MemoryRecorder::to_text() const {
  std::ostringstream text;
  for (const Event& e : events_) {
    text << trainyard::to_text(e.when.time_since_epoch()) << ' ' << sim::to_text(e.phase) << ' '
         << kinds_[e.kind.index()].name << ' ' << subjects_[e.subject.index()] << ' ' << e.value;
    if (e.cause.is_valid()) text << " <- " << e.cause.index();
    text << '\n';
  }
  return text.str();
}

}  // namespace trainyard::sim
