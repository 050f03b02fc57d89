#pragma once

#include <gmock/gmock.h>

#include "analysis/run_reader.hpp"
#include "tests/analysis/sample_run.hpp"

/// A run whose content says by itself where it belongs: event n happens at n ns, has the value n
/// and befalls node n / 2,500; so does sample n of the series n modulo their number. For the tests
/// that stop a writer at any point.
namespace trainyard::analysis::test {

class CountedRun {
 public:
  CountedRun(RunWriter& writer, int series) : writer_(writer), kind_(writer.kind("k", "")) {
    for (int i = 0; i < series; ++i)
      series_.push_back(writer.series("s" + std::to_string(i), "W", ""));
  }
  /// Returns how many events there are now.
  std::uint64_t record(int events) {
    for (; events > 0; --events, ++n_) {
      const Time now(Duration(static_cast<std::int64_t>(n_)));
      writer_.event(now, sim::Phase::failure, kind_,
                    writer_.subject("node-" + std::to_string(n_ / 2'500)), {},
                    static_cast<double>(n_));
      writer_.sample(series_[n_ % series_.size()], now, static_cast<double>(n_));
    }
    return n_;
  }

 private:
  RunWriter& writer_;
  sim::KindId kind_;
  std::vector<sim::SeriesId> series_;
  std::uint64_t n_ = 0;
};

/// Every event and every sample is where it belongs, and there are as many as were flushed.
inline void expect_whole(const RunReader& run, std::size_t at_least) {
  const auto events = run.events();
  EXPECT_GE(events.size(), at_least);
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].time_ns, static_cast<std::int64_t>(i));
    ASSERT_EQ(run.subjects()[static_cast<std::size_t>(events[i].subject)],
              "node-" + std::to_string(i / 2'500));
  }
  std::size_t samples = 0;
  for (const std::string& name : run.series_names()) {
    const Series series = run.series(name);
    samples += series.value.size();
    for (std::size_t i = 0; i < series.value.size(); ++i)
      ASSERT_EQ(series.value[i], static_cast<double>(series.time_ns[i])) << name << " sample " << i;
  }
  EXPECT_GE(samples, at_least);
}

}  // namespace trainyard::analysis::test
