#include "cli/step_trace.hpp"

#include <cmath>

namespace trainyard::cli {
namespace {

std::int64_t ns(double s) {
  return std::int64_t(std::llround(s * 1e9));
}

std::string pass_name(const models::PipelineOp& op) {
  const char* kind = op.weight_gradient ? "W" : op.backward ? "B" : "F";
  return kind + std::to_string(op.micro_batch) +
         (op.chunk > 0 ? " chunk " + std::to_string(op.chunk) : "");
}

}  // namespace

analysis::Trace step_trace(const std::string& job, const models::StepTimeline& timeline,
                           const models::StepProfile& profile) {
  constexpr int process = 1;
  analysis::TraceWriter trace({});
  trace.name_process(process, job + ": one step, slowest replica");
  for (int s = 0; s < timeline.stages; ++s) {
    trace.name_thread(process, 2 * s + 1, "stage " + std::to_string(s));
    trace.name_thread(process, 2 * s + 2, "stage " + std::to_string(s) + " data parallel");
  }
  for (const models::PipelineSlice& slice : timeline.passes)
    trace.slice(process, 2 * slice.stage + 1, pass_name(slice.op), ns(slice.start_s),
                ns(slice.end_s),
                "\"micro_batch\":" + std::to_string(slice.op.micro_batch) +
                    ",\"chunk\":" + std::to_string(slice.op.chunk),
                slice.op.weight_gradient ? "grey"
                : slice.op.backward      ? "bad"
                                         : "good");
  for (int s = 0; s < timeline.stages; ++s) {
    double ready_s = 0;
    for (int c = 0; c < timeline.chunks && !timeline.parameters_ready_s.empty(); ++c)
      ready_s =
          std::max(ready_s, timeline.parameters_ready_s[std::size_t(s * timeline.chunks + c)]);
    if (ready_s > 0) trace.slice(process, 2 * s + 2, "parameters", 0, ns(ready_s), "", "good");
    if (timeline.gradients_end_s > timeline.gradients_from_s[std::size_t(s)])
      trace.slice(process, 2 * s + 2, "gradients: first final to all reduced",
                  ns(timeline.gradients_from_s[std::size_t(s)]), ns(timeline.gradients_end_s), "",
                  "bad");
    trace.slice(process, 2 * s + 1, "optimizer", ns(timeline.gradients_end_s),
                ns(timeline.optimizer_end_s), "", "grey");
  }
  // The waveform is of the whole step, jitter included; the passes are without it.
  std::int64_t at = 0;
  for (const models::PowerPhase& phase : profile.power) {
    trace.counter(process, "power of the job [W]", at, phase.power.value());
    at += phase.duration.count();
  }
  return trace.take();
}

}  // namespace trainyard::cli
