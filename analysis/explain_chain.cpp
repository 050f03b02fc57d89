#include "analysis/explain_chain.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::analysis {

CauseLog::CauseLog(const RunReader& run)
    : events_(run.events()), kinds_(run.kinds()), subjects_(run.subjects()) {
  check(events_.size() < std::numeric_limits<std::uint32_t>::max(), "events are counted in 32 bits",
        events_.size());
  // The reader has checked that a cause is an earlier row.
  first_.assign(events_.size() + 1, 0);
  for (const EventRow& e : events_)
    if (e.cause >= 0) ++first_[static_cast<std::size_t>(e.cause) + 1];
  for (std::size_t i = 0; i < events_.size(); ++i) first_[i + 1] += first_[i];
  effects_.resize(first_.back());
  std::vector<std::uint32_t> next = first_;
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (events_[i].cause >= 0)
      effects_[next[static_cast<std::size_t>(events_[i].cause)]++] = static_cast<std::uint32_t>(i);
}

std::int64_t CauseLog::first_cause(std::int64_t event) const {
  while (event >= 0 && events_.at(static_cast<std::size_t>(event)).cause >= 0)
    event = events_[static_cast<std::size_t>(event)].cause;
  return event;
}

std::pair<std::size_t, std::size_t> CauseLog::at(std::int64_t time_ns) const {
  const auto [first, last] =
      std::equal_range(events_.begin(), events_.end(), EventRow{.time_ns = time_ns},
                       [](const EventRow& a, const EventRow& b) { return a.time_ns < b.time_ns; });
  return {static_cast<std::size_t>(first - events_.begin()),
          static_cast<std::size_t>(last - events_.begin())};
}

std::vector<std::int64_t> CauseLog::of(std::string_view kind, std::string_view subject) const {
  const auto index_in = [](const auto& names, std::string_view wanted, auto name_of) {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (name_of(names[i]) == wanted) return static_cast<std::int64_t>(i);
    return std::int64_t{-1};
  };
  const std::int64_t k = index_in(kinds_, kind, [](const Kind& i) { return clean_text(i.name); });
  const std::int64_t s =
      index_in(subjects_, subject, [](const std::string& i) { return clean_text(i); });
  std::vector<std::int64_t> rows;
  if (k < 0 || s < 0) return rows;
  for (std::size_t e = 0; e < events_.size(); ++e)
    if (static_cast<std::int64_t>(events_[e].kind) == k &&
        static_cast<std::int64_t>(events_[e].subject) == s)
      rows.push_back(static_cast<std::int64_t>(e));
  return rows;
}

std::string CauseLog::way_to(std::int64_t event) const {
  constexpr std::size_t most = 8;  // of a longer way, its first and its last links
  std::vector<std::string> links;
  for (ChainEvent e = described(event);; e = described(e.parent)) {
    std::string text = e.kind;
    if (!e.unit_of_value.empty()) {
      char number[32];
      std::snprintf(number, sizeof number, " %.4g ", e.value);
      text += number + e.unit_of_value;
    }
    links.push_back(e.parent < 0 ? e.subject + ": " + text : text);
    if (e.parent < 0) break;
  }
  std::reverse(links.begin(), links.end());
  std::string way;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links.size() > most && i == most / 2) {
      way += " -> ...";
      i = links.size() - most / 2;
    }
    way += (way.empty() ? "" : " -> ") + links[i];
  }
  return way;
}

ChainEvent CauseLog::described(std::int64_t event) const {
  const EventRow& e = events_.at(static_cast<std::size_t>(event));
  ChainEvent out;
  out.event = event;
  out.parent = e.cause;
  out.time_ns = e.time_ns;
  out.kind = clean_text(kinds_.at(static_cast<std::size_t>(e.kind)).name);
  out.unit_of_value = clean_text(kinds_.at(static_cast<std::size_t>(e.kind)).unit_of_value);
  out.subject = clean_text(subjects_.at(static_cast<std::size_t>(e.subject)));
  out.value = e.value;
  return out;
}

Chain CauseLog::chain(std::int64_t event, std::int64_t until_ns) const {
  Chain chain;
  if (event < 0) return chain;
  struct Found {
    std::uint32_t event;
    int depth;
  };
  std::vector<Found> found{{static_cast<std::uint32_t>(first_cause(event)), 0}};
  constexpr std::size_t most = 10'000;
  for (std::size_t i = 0; i < found.size() && found.size() < most; ++i)
    for (std::uint32_t e = first_[found[i].event]; e < first_[found[i].event + 1]; ++e)
      found.push_back({effects_[e], found[i].depth + 1});
  chain.is_cut = found.size() >= most;
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.event < b.event; });
  const std::int64_t asked_ns = events_[static_cast<std::size_t>(event)].time_ns;
  for (const Found& f : found) {
    const std::int64_t ns = events_[f.event].time_ns;
    if (until_ns >= 0 && ns > until_ns && ns > asked_ns) {
      ++chain.later;
      chain.last_ns = ns;
      const ChainEvent last = described(f.event);
      chain.last = last.subject + ": " + last.kind;
      continue;
    }
    if (f.event == event) chain.struck = chain.events.size();
    chain.events.push_back(described(f.event));
    chain.events.back().depth = f.depth;
  }
  return chain;
}

}  // namespace trainyard::analysis
