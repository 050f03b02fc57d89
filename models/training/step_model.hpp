#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/training/boundary_traffic.hpp"
#include "models/training/data_traffic.hpp"
#include "models/training/job_spec.hpp"
#include "models/training/pipeline.hpp"
#include "models/training/plan.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/step_source.hpp"
#include "topologies/routing.hpp"

/// One training iteration of one job on its real placement: the step level.
///
///     t = 0            optimizer of the step before is done everywhere (gradient norm: a barrier)
///     gather           ZeRO-1: parameters of chunk 0, 1, … of every stage, behind the first
///     forwards pipeline         every distinct replica is played, operation by operation, with its
///     own transfer times reduce           gradients of a chunk once its last backward has ended in
///     *all* replicas, behind what follows step             = max over stages(reduced, played) +
///     optimizer,      times the jitter of so many ranks
///
/// Collectives and transfers share the fabric max-min, on routed paths (data_traffic,
/// boundary_traffic). Replicas with equal speeds and equal transfer times are equal by construction
/// and are played once.
///
///     StepModel model(job, server, router);
///     const StepProfile& p = model.profile({servers, {}});       // p.step,
///     p.part(StepPart::bubble), …
///
/// Profiles are kept under what they depend on and nothing else: the servers in rank order (their
/// leaves, if paths are sprayed on an intact fabric), the slow GPUs, and what of the fabric is not
/// as built. A replaced server costs its own paths, one replica's play and one small solve; a link
/// that fails, the paths that ran over it. Page: docs/models/step.md.
namespace trainyard::models {

class StepModel final : public StepSource {
 public:
  /// The job must have passed check_plan(). `router` must outlive the model; after its links
  /// change, call links_changed().
  StepModel(const JobSpec& job, const ServerSpec& server, const topologies::Router& router);

  const StepProfile& profile(const Placement& placement) override;
  bool uses(const Placement& placement, std::span<const topologies::LinkId> links) override;
  void links_changed(std::span<const topologies::LinkId> links) override;

  /// What the step sends between adapters, bytes a step: the traffic that adaptive routing learns.
  std::vector<topologies::Demand> demands(const Placement& placement) const;

  /// The step with compute 20 times faster and 20 times slower than calibrated: what measured_step
  /// can lie between. Leaves the model as it was.
  std::pair<Duration, Duration> scalable_range(const Placement& placement);

  const Plan& plan() const { return plan_; }
  /// What compute was scaled by to meet JobSpec::measured_step; 1 without one.
  double compute_scale() const { return compute_scale_; }
  std::uint64_t computed() const { return computed_; }
  std::uint64_t reused() const { return reused_; }

 private:
  static constexpr double parameter_bytes = 2;  // gathered in BF16
  struct Replica {
    std::vector<double> speed;               // by stage
    std::vector<double> forward_transfer_s;  // by boundary
    std::vector<double> backward_transfer_s;
    friend auto operator<=>(const Replica&, const Replica&) = default;
  };
  /// The step before jitter and integers, in seconds.
  struct Times {
    double step_s = 0;
    double useful_s = 0, kernels_s = 0, recompute_s = 0, exposed_tp_s = 0, exposed_dp_s = 0,
           exposed_pp_s = 0, bubble_s = 0;
    double optimizer_s = 0;  // of the slowest stage; contained in kernels and bubble
    double pipeline_bound_s = 0;
    double busiest_stage_s = 0;
    PipelinePlay slowest;  // of the slowest replica
  };

  std::vector<std::uint32_t> key(const Placement& placement) const;
  StepProfile compute(const Placement& placement, bool detailed);
  std::string cut_off(const Placement& placement, bool& is_for_good);
  void name_users(const Placement& placement, std::vector<LinkUse>& uses);
  /// Calls f(from stage, to stage, transfers of one replica in a step) for both directions.
  template <class F>
  void for_each_transfer(F&& f) const {
    for (int s = 0; plan_.pipeline > 1 && s < plan_.pipeline; ++s) {
      const int next = (s + 1) % plan_.pipeline;
      if (transfers_after(s) == 0) continue;
      f(s, next, transfers_after(s));
      f(next, s, transfers_after(s));
    }
  }
  double data_volume(int stage) const;
  double transfers_after(int stage) const;
  Times times(const Placement& placement);
  std::vector<Replica> replicas(const Placement& placement);
  PipelineInput pipeline_input(const Replica& replica) const;
  const PipelinePlay& play(const Replica& replica);
  const PipelinePlay& play_with_parameters(const Replica& replica,
                                           const std::vector<double>& ready_s,
                                           std::size_t ready_number);
  std::vector<std::vector<StageCollective>> gathers() const;
  void add_fsdp_traffic();
  void find_busiest_links(const Placement& placement, StepProfile& profile);
  void add_power(const Times& times, StepProfile& profile) const;
  double jitter() const;
  double step_at_s(const Placement& placement, double compute_scale);
  void meet_measured_step(const Placement& placement);

  JobSpec job_;
  ServerSpec server_;
  const topologies::Router& router_;
  Plan plan_;
  StepCosts costs_;
  LinkTable links_;
  BoundaryTraffic boundaries_;
  DataTraffic data_;
  double compute_scale_ = 1.0;
  bool is_calibrated_ = false;
  std::vector<double> fsdp_forward_s_,
      fsdp_backward_s_;  // exposed, by stage and chunk, of one micro-batch
  std::map<std::vector<std::uint32_t>, std::shared_ptr<const StepProfile>> profiles_;
  std::map<std::pair<Replica, std::size_t>, PipelinePlay> plays_;  // by ready_times_
  std::map<std::vector<double>, std::size_t> ready_times_;  // of parameters; 0: all at the start
  std::uint64_t computed_ = 0;
  std::uint64_t reused_ = 0;
};

/// Board power while waiting in or running a collective.
Watts communicating_power(const GpuSpec& gpu);

/// Seconds to nanoseconds of every part so that they sum to `step` exactly (cumulative rounding).
void set_parts(StepProfile& profile, const std::array<double, step_parts>& seconds_by_part);

}  // namespace trainyard::models
