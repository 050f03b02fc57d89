#include <algorithm>
#include <set>
#include <vector>

#include "models/training/step_model.hpp"

/// StepModel: who waits for slow GPUs.
namespace trainyard::models {

// A slow GPU holds up its tensor- and context-parallel group, and with experts every replica whose
// tokens its experts compute: each layer of theirs waits for it. What these replicas compute for
// others waits in turn.
void StepModel::slow_down(std::vector<Replica>& all, const SlowGpu& slow) const {
  const RankPlace place = plan_.place_of(int(slow.gpu));
  const double slowest = compute_scale_ * slow.speed;
  std::set<int> held_up{place.data};
  if (plan_.expert > 1) {
    // The ranks of an expert-parallel group lie within one block of the list.
    const std::vector<int> ranks = plan_.ranks_of_stage(place.pipeline);
    const auto block = std::size_t(plan_.expert) * std::size_t(plan_.expert_tensor);
    for (std::size_t before = 0; before < held_up.size();) {
      before = held_up.size();
      for (std::size_t first = 0; first < ranks.size(); first += block) {
        std::set<int> together;
        for (std::size_t i = first; i < first + block; ++i)
          together.insert(plan_.place_of(ranks[i]).data);
        const bool is_held_up = std::any_of(together.begin(), together.end(),
                                            [&](int data) { return held_up.contains(data); });
        if (is_held_up) held_up.merge(together);
      }
    }
  }
  for (const int data : held_up) {
    double& speed = all[std::size_t(data)].speed[std::size_t(place.pipeline)];
    speed = std::min(speed, slowest);
  }
}

std::size_t StepModel::distinct_replicas(const Placement& placement) {
  const std::vector<Replica> all = replicas(placement);
  return std::set<Replica>(all.begin(), all.end()).size();
}

// The optimizer of a stage ends with its slowest GPU.
double StepModel::optimizer_s(const Placement& placement) const {
  std::vector<double> speed(costs_.optimizer_s.size(), compute_scale_);
  for (const SlowGpu& slow : placement.slow) {
    double& of_stage = speed[std::size_t(plan_.place_of(int(slow.gpu)).pipeline)];
    of_stage = std::min(of_stage, compute_scale_ * slow.speed);
  }
  double slowest_s = 0;
  for (std::size_t s = 0; s < speed.size(); ++s)
    slowest_s = std::max(slowest_s, costs_.optimizer_s[s] / speed[s]);
  return slowest_s;
}

}  // namespace trainyard::models
