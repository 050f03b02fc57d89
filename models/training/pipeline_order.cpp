#include "models/training/pipeline_order.hpp"

#include <algorithm>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

int warm_up(Schedule schedule, int stages, int chunks, int micro_batches, int stage, int group) {
  if (schedule == Schedule::gpipe) return micro_batches;
  if (chunks == 1) return std::min(micro_batches, stages - stage - 1);
  return std::min(micro_batches * chunks, 2 * (stages - stage - 1) + (chunks - 1) * group);
}

int group_or_default(int stages, int chunks, int micro_batches, int group) {
  if (chunks == 1) return micro_batches;
  return group == 0 ? interleaved_group(stages, micro_batches) : std::min(group, micro_batches);
}

}  // namespace

bool is_group_valid(int stages, int micro_batches, int group) {
  if (group >= micro_batches) return true;
  const int rest = micro_batches % group;
  return group >= stages && (rest == 0 || rest >= stages);
}

int interleaved_group(int stages, int micro_batches) {
  int group = std::min(stages, micro_batches);
  while (!is_group_valid(stages, micro_batches, group)) ++group;
  return group;
}

int warm_up_passes(int stages, int chunks, int micro_batches, int stage) {
  return warm_up(Schedule::one_f_one_b, stages, chunks, micro_batches, stage,
                 group_or_default(stages, chunks, micro_batches, 0));
}

PipelineOrder::PipelineOrder(Schedule schedule, int stages, int chunks, int micro_batches,
                             int stage, int group)
    : chunks_(chunks),
      micro_batches_(micro_batches),
      group_(group_or_default(stages, chunks, micro_batches, group)),
      passes_(micro_batches * chunks),
      warm_up_(warm_up(schedule, stages, chunks, micro_batches, stage, group_)),
      lag_(schedule == Schedule::zero_bubble ? stage : passes_),
      splits_backward_(schedule == Schedule::zero_bubble),
      newest_first_(schedule == Schedule::gpipe),
      left_(passes_ * (splits_backward_ ? 3 : 2)) {
  check(chunks == 1 || schedule == Schedule::one_f_one_b || schedule == Schedule::interleaved,
        "GPipe and zero-bubble have one chunk per stage", chunks);
  check(chunks == 1 || is_group_valid(stages, micro_batches, group_),
        "groups of the interleaved order have at least as many micro-batches as there are stages",
        group_, micro_batches, stages);
  forward_.end = backward_.end = group_;
  choose();
}

}  // namespace trainyard::models
