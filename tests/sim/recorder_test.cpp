#include "sim/recorder.hpp"

#include <gtest/gtest.h>

namespace trainyard::sim {
namespace {

using namespace std::chrono_literals;

TEST(MemoryRecorder, keeps_events_with_their_causes_and_names) {
  MemoryRecorder recorder;
  const KindId failed = recorder.kind("gpu failed", "");
  const KindId restarted = recorder.kind("job restarted", "steps lost");
  const SubjectId gpu = recorder.subject("node-17/gpu-3");
  const SubjectId job = recorder.subject("llm70b");
  const EventIndex why =
      recorder.event(start_of_run + 5s, Phase::failure, failed, gpu, EventIndex(), 0.0);
  recorder.event(start_of_run + 750s, Phase::decision, restarted, job, why, 12.0);
  EXPECT_EQ(recorder.to_text(),
            "5 s failure gpu failed node-17/gpu-3 0\n"
            "12 min 30 s decision job restarted llm70b 12 <- 0\n");
  EXPECT_EQ(recorder.count("gpu failed"), 1u);
  EXPECT_EQ(recorder.count("never heard of"), 0u);
}

TEST(MemoryRecorder, a_name_registered_again_has_the_same_id) {
  MemoryRecorder recorder;
  EXPECT_EQ(recorder.subject("a"), recorder.subject("a"));
  EXPECT_NE(recorder.subject("a"), recorder.subject("b"));
  EXPECT_EQ(recorder.series("p", "W", "power"), recorder.series("p", "W", "power"));
  EXPECT_EQ(recorder.subjects().size(), 2u);
  EXPECT_EQ(recorder.all_series().front().units, "W");
}

TEST(MemoryRecorder, keeps_samples) {
  MemoryRecorder recorder;
  const SeriesId power = recorder.series("power", "W", "power of the room");
  recorder.sample(power, start_of_run + 1s, 700.0);
  ASSERT_EQ(recorder.samples().size(), 1u);
  EXPECT_EQ(recorder.samples()[0].value, 700.0);
}

TEST(MemoryRecorder, unregistered_ids_and_causes_from_the_future_are_our_mistake) {
  MemoryRecorder recorder;
  const KindId kind = recorder.kind("k", "");
  const SubjectId subject = recorder.subject("s");
  EXPECT_THROW(recorder.event(Time{}, Phase::failure, KindId(), subject, {}, 0), CheckFailed);
  EXPECT_THROW(recorder.event(Time{}, Phase::failure, kind, subject, EventIndex(0), 0),
               CheckFailed);
  EXPECT_THROW(recorder.sample(SeriesId(0), Time{}, 0), CheckFailed);
}

TEST(NullRecorder, numbers_events_as_the_others_do) {
  NullRecorder recorder;
  const KindId kind = recorder.kind("k", "");
  EXPECT_EQ(recorder.event(Time{}, Phase::failure, kind, {}, {}, 0), EventIndex(0));
  EXPECT_EQ(recorder.event(Time{}, Phase::failure, kind, {}, {}, 0), EventIndex(1));
}

}  // namespace
}  // namespace trainyard::sim
