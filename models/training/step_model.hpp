#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/training/boundary_traffic.hpp"
#include "models/training/data_traffic.hpp"
#include "models/training/group_traffic.hpp"
#include "models/training/job_spec.hpp"
#include "models/training/pipeline.hpp"
#include "models/training/plan.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/step_source.hpp"
#include "models/training/store_traffic.hpp"
#include "topologies/routing.hpp"

/// One training iteration of one job on its real placement: the step level.
///
///     t = 0            optimizer of the step before is done everywhere (gradient norm: a barrier)
///     gather           sharded parameters of chunk 0, 1, … of every stage, in buckets, behind the
///                      first forwards; FSDP: layer by layer in every pass
///     pipeline         every distinct replica is played, operation by operation, with its own
///                      transfer times; a pass contains its tensor-, context- and expert-parallel
///                      traffic as far as it is exposed
///     reduce           gradients in buckets, as the last backward of a chunk goes through them in
///                      *all* replicas, behind what follows
///     step             = max over stages(reduced, played) + optimizer, times the jitter of so many
///                      ranks
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
/// that fails, the paths that ran over it; a transfer to or from a store at a new rate
/// (store_traffic.hpp), new solves on known paths. Page: docs/models/step.md.
namespace trainyard::models {

/// One step of the slowest replica on the clock, in seconds from the end of the optimizer of the
/// step before; what stages do at the same time overlaps. Without jitter.
struct StepTimeline {
  int stages = 0, chunks = 0;
  std::vector<PipelineSlice> passes;       // of one stage in order; empty without a played pipeline
  std::vector<double> parameters_ready_s;  // [stage * chunks + chunk]; empty: from the start
  std::vector<double> gradients_from_s;    // by stage: the first of them are final
  double gradients_end_s = 0;              // all are reduced, in all replicas
  double optimizer_end_s = 0;              // the step
};

class StepModel final : public StepSource {
 public:
  /// The job must have passed check_plan(). `router` must outlive the model; after its links
  /// change, call links_changed().
  StepModel(const JobSpec& job, const ServerSpec& server, const topologies::Router& router);

  const StepProfile& profile(const Placement& placement) override;
  bool uses(const Placement& placement, std::span<const topologies::LinkId> links) override;
  void links_changed(std::span<const topologies::LinkId> links) override;
  void set_store_flows(std::vector<StoreFlow> flows) override;
  void set_others(std::vector<StoreFlow> transfers, std::vector<StepOnLinks> steps) override;
  StepOnLinks on_links(const Placement& placement) override;
  /// Zero if one of the servers has no path.
  BytesPerSecond store_limit(const Placement& placement, std::span<const topologies::HostId> store,
                             bool is_write) override;

  /// A new run begins, on the fabric as built, and nobody holds a profile of an earlier one. What
  /// is known stays, and no step depends on what was asked before: a run on a used model is the
  /// same run. `first` is where the job would start on an empty cluster.
  void begin_run(const Placement& first);

  /// What the step sends between adapters, bytes a step: the traffic that adaptive routing learns.
  std::vector<topologies::Demand> demands(const Placement& placement) const;

  /// The step with compute 20 times faster and 20 times slower than calibrated: what measured_step
  /// can lie between. Leaves the model as it was.
  std::pair<Duration, Duration> scalable_range(const Placement& placement);

  /// Seconds of the step with another calibration and other constants of the software stack, on the
  /// network as it is: what a calibration evaluates over and over. Leaves them in place. The
  /// collectives inside a scale-up domain keep the efficiency that they had.
  double step_s_with(const GpuCalibration& calibration, const SoftwareSpec& software,
                     const Placement& placement);

  /// Seconds of the step of another job with the same ranks, groups and bytes of a message: this
  /// one with mechanisms turned off. Paths are not routed again. Becomes a model of that job.
  double step_s_of(const JobSpec& variant, const Placement& placement);

  /// The step on the clock, for a picture of it.
  StepTimeline timeline(const Placement& placement);

  /// How many replicas of the model have to be played: those with equal speeds and equal transfer
  /// times count once.
  std::size_t distinct_replicas(const Placement& placement);

  const Plan& plan() const { return plan_; }
  /// What compute was scaled by to meet JobSpec::measured_step; 1 without one.
  double compute_scale() const { return compute_scale_; }
  /// Compute faster by this factor, as measured_step would make it.
  void scale_compute(double factor);
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
    double useful_s = 0, kernels_s = 0, recompute_s = 0, exposed_tp_s = 0, exposed_cp_s = 0,
           exposed_ep_s = 0, exposed_dp_s = 0, exposed_pp_s = 0, bubble_s = 0;
    double optimizer_s = 0;  // of the slowest stage; contained in kernels and bubble
    double pipeline_bound_s = 0;
    double busiest_stage_s = 0;
    PipelinePlay slowest;  // of the slowest replica
  };
  /// When gradients of a chunk become ready: from start to end of its last backward.
  struct Window {
    double start_s = 0;
    double end_s = 0;
  };
  /// Parameters by chunk, and how long their collectives were under way; empty: they are there.
  struct Gathered {
    std::vector<double> ready_s;
    double busy_s = 0;
  };
  struct Reduced {
    double end_s = 0;
    double busy_s = 0;
  };
  enum class Detail { total, split };

  /// A profile under its key, and whether its links were looked at one by one.
  struct Known {
    std::shared_ptr<const StepProfile> profile;
    bool is_detailed = false;
  };

  /// One transfer of the store on the links of a placement.
  struct StoreLoad {
    std::string what;
    double flow_Bps = 0;
    LinkLoads flows;
  };
  /// What collectives and transfers ask of links in a step.
  struct LinkDemand {
    std::vector<double> bytes;
    std::vector<double> flow_bytes;  // of one flow; bytes / flow_bytes: how many at once
    double flows(std::size_t link) const { return bytes[link] / flow_bytes[link]; }
  };

  /// What a result depends on, in 128 bits: two of a million are alike once in 10^26 runs, and a
  /// placement of 2,048 servers needs no 8 KB in each map.
  using Digest = std::pair<std::uint64_t, std::uint64_t>;
  static Digest digest(std::span<const std::uint32_t> key);
  std::vector<std::uint32_t> key(const Placement& placement) const;
  void forget_profiles();
  void trim();
  const StepProfile& profile_alone(const Placement& placement);
  void place_store_flows(const Placement& placement);
  const LinkLoads& loads_of(const StoreFlow& flow, const Placement& placement);
  void add_transfers_met(const Placement& placement);
  bool crosses(const Placement& placement, const std::vector<bool>& links);
  double capacity_Bps(topologies::LinkId link) const;
  std::vector<double> left_by_others(std::span<const double> store_flows);
  const LinkDemand& link_demand(const Placement& placement);
  LinkDemand make_link_demand(const Placement& placement);
  double exposed_on_fabric_s(const StepProfile& profile) const;
  double link_s_beside_store(const Placement& placement);
  void stand_on(const Placement& placement);
  StepProfile compute(const Placement& placement, bool detailed);
  std::string cut_off(const Placement& placement, bool& is_for_good);
  void name_users(const Placement& placement, std::vector<LinkUse>& uses);
  /// Calls f(from stage, to stage, transfers of one replica in a step) for both directions.
  template <class F>
  void for_each_transfer(F&& f) const {
    const bool has_transfers = plan_.pipeline > 1 && plan_.mechanisms.pipeline_traffic;
    for (int s = 0; has_transfers && s < plan_.pipeline; ++s) {
      const int next = (s + 1) % plan_.pipeline;
      if (transfers_after(s) == 0) continue;
      f(s, next, transfers_after(s));
      f(next, s, transfers_after(s));
    }
  }
  /// Calls f(stage, ring, bytes of one group in a step).
  template <class F>
  void for_each_ring(F&& f) const {
    for (int s = 0; s < plan_.pipeline; ++s)
      for (const RingKind ring : {RingKind::shards, RingKind::replicas, RingKind::experts})
        if (plan_.mechanisms.data_traffic && data_.size(ring) > 1 && ring_bytes(s, ring) > 0)
          f(s, ring, ring_bytes(s, ring));
  }
  double ring_bytes(int stage, RingKind ring) const;
  /// Calls f(stage, pattern, bytes in a step) where groups inside a layer span servers.
  template <class F>
  void for_each_group(F&& f) {
    for (const GroupPattern pattern : group_patterns) {
      if (!groups_.uses_fabric(pattern)) continue;
      if (group_bytes_[std::size_t(pattern)].empty()) count_group_bytes(pattern);
      for (int s = 0; s < plan_.pipeline; ++s)
        if (const double bytes = group_bytes_[std::size_t(pattern)][std::size_t(s)]; bytes > 0)
          f(s, pattern, bytes);
    }
  }
  void count_group_bytes(GroupPattern pattern);
  double transfers_after(int stage) const;
  void make_costs();
  Times times(const Placement& placement, Detail detail = Detail::split);
  void split_times(Times& t, const Replica& slowest, double end_s);
  std::vector<Replica> replicas(const Placement& placement);
  void slow_down(std::vector<Replica>& all, const SlowGpu& slow) const;
  double optimizer_s(const Placement& placement) const;
  PipelineInput pipeline_input(const Replica& replica) const;
  PipelinePlay played(const PipelineInput& input) const;
  const PipelinePlay& play(const Replica& replica);
  const PipelinePlay& play_with_parameters(const Replica& replica,
                                           const std::vector<double>& ready_s,
                                           std::size_t ready_number);
  bool gathers_every_pass() const;
  bool reduces_every_pass() const;
  double ring_parameters(int stage, int chunk, RingKind ring) const;
  int buckets(double bytes) const;
  Gathered parameters_ready();
  Reduced reduced(const std::vector<Window>& gradients, double end_s);
  double tied_embedding_s(const Placement& placement);
  void add_traffic_of_passes();
  std::vector<double> link_bytes(const Placement& placement);
  double busiest_link_s(const std::vector<double>& bytes) const;
  void find_busiest_links(const Placement& placement, std::vector<double> bytes,
                          StepProfile& profile);
  void add_power(const Times& times, StepProfile& profile) const;
  double jitter() const;
  double step_at_s(const Placement& placement, double compute_scale);
  void meet_measured_step(const Placement& placement);

  JobSpec job_;
  ServerSpec server_;
  const topologies::Router& router_;
  Plan plan_;
  StepCosts costs_;  // empty before the groups are placed
  LinkTable links_;
  BoundaryTraffic boundaries_;
  DataTraffic data_;
  GroupTraffic groups_;
  StoreTraffic store_;
  std::vector<StoreFlow> store_flows_;       // in one order
  std::vector<StoreFlow> others_transfers_;  // in one order
  std::vector<StepOnLinks> others_steps_;
  std::vector<const StoreFlow*> beside_;  // the step that is asked for: of both
  std::vector<StoreLoad> store_loads_;    // of them, while a profile is made
  std::map<Digest, BytesPerSecond> store_limits_;
  std::array<std::vector<double>, group_patterns.size()> group_bytes_;  // by stage, once counted
  // Of the latest placement: a limit and the step beside the transfer ask for the same.
  LinkDemand demand_;
  std::vector<topologies::HostId> demand_of_;  // empty: of none
  bool watches_links_ = false;                 // some link is so busy that it may bound the step
  bool is_first_of_run_ = true;
  std::vector<topologies::HostId> standing_on_;  // whose paths are all known; empty: not all are
  StepTimeline* timeline_ = nullptr;             // that times() fills in
  double compute_scale_ = 1.0;
  bool is_calibrated_ = false;
  std::vector<double> pass_forward_s_,
      pass_backward_s_;  // exposed traffic of sharded weights, by stage and chunk, of one pass
  std::map<Digest, Known> profiles_;
  std::multimap<Duration, std::shared_ptr<const StepProfile>> detailed_;  // by step
  std::map<std::pair<Replica, std::size_t>, PipelinePlay> plays_;         // by ready_times_
  std::map<std::vector<double>, std::size_t> ready_times_;  // of parameters; 0: all at the start
  std::uint64_t computed_ = 0;
  std::uint64_t reused_ = 0;
};

/// What tells two profiles beside a transfer of a store apart.
void add_to_key(std::vector<std::uint32_t>& key, const StoreFlow& flow);

/// Board power while waiting in or running a collective.
Watts communicating_power(const GpuSpec& gpu);

/// Seconds to nanoseconds of every part so that they sum to `step` exactly (cumulative rounding).
void set_parts(StepProfile& profile, const std::array<double, step_parts>& seconds_by_part);

}  // namespace trainyard::models
