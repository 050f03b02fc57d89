#include "models/training/step_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <string>

#include "models/compute/kernels.hpp"
#include "models/network/collectives/alone.hpp"
#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double most_scaling = 20;  // of compute, to meet a measured step
// Waiting in a collective or polling: share of the board power limit (docs/models/step.md).
constexpr double communicating_share = 0.36;

// Tensor-parallel collectives have the scale-up domain to themselves: closed forms.
CommCosts inside_domain(const GpuSpec& gpu) {
  AloneConstants constants;
  constants.ring_Bps = gpu.scale_up_rate.value() * gpu.calibration.scale_up_efficiency;
  constants.sqrt_s_per_sqrt_B = gpu.calibration.scale_up_sqrt_s_per_sqrt_B;
  const auto collective = [constants](CollectiveKind kind) {
    return [constants, kind](double bytes, int members) {
      return alone_s(kind, bytes, std::size_t(members), std::size_t(members), constants);
    };
  };
  return {collective(CollectiveKind::all_gather), collective(CollectiveKind::reduce_scatter),
          collective(CollectiveKind::all_reduce)};
}

/// The same on the busiest links.
bool same_load(const StepProfile& a, const StepProfile& b) {
  return std::equal(a.busiest_links.begin(), a.busiest_links.end(), b.busiest_links.begin(),
                    b.busiest_links.end(), [](const LinkUse& x, const LinkUse& y) {
                      return x.link == y.link && x.bytes == y.bytes && x.capacity == y.capacity;
                    });
}

}  // namespace

Watts communicating_power(const GpuSpec& gpu) {
  return gpu.power_communicating > Watts(0) ? gpu.power_communicating
                                            : gpu.power_max * communicating_share;
}

void set_parts(StepProfile& profile, const std::array<double, step_parts>& seconds_by_part) {
  const double sum = std::accumulate(seconds_by_part.begin(), seconds_by_part.end(), 0.0);
  const double step = double(profile.step.count());
  double so_far = 0;
  std::int64_t given = 0;
  for (std::size_t p = 0; p < step_parts; ++p) {
    so_far += seconds_by_part[p];
    const std::int64_t until =
        p + 1 == step_parts ? profile.step.count() : std::llround(step * (so_far / sum));
    profile.parts[p] = Duration(until - given);
    given = until;
  }
}

StepModel::StepModel(const JobSpec& job, const ServerSpec& server, const topologies::Router& router)
    : job_(job),
      server_(server),
      router_(router),
      plan_(make_plan(job_)),
      costs_(step_costs(server_.gpu, plan_, job_.software, inside_domain(server_.gpu))),
      links_(router.fabric().links().size()),
      boundaries_(plan_, server_, router_, links_),
      data_(plan_, server_, router_, links_),
      fsdp_forward_s_(plan_.shares.size(), 0.0),
      fsdp_backward_s_(plan_.shares.size(), 0.0) {}

std::vector<std::uint32_t> StepModel::key(const Placement& placement) const {
  // Sprayed on an intact fabric, two servers of one edge switch are alike.
  const bool by_edge = router_.treats_neighbours_alike();
  std::vector<std::uint32_t> key;
  key.reserve(placement.servers.size() + 3 * placement.slow.size());
  for (const topologies::HostId server : placement.servers)
    key.push_back(
        std::uint32_t(by_edge ? router_.fabric().edge_of(server).index() : server.index()));
  for (const SlowGpu& slow : placement.slow) {
    const std::uint64_t speed = std::uint64_t(slow.speed * 4294967295.0);
    key.push_back(std::uint32_t(slow.gpu));
    key.push_back(std::uint32_t(speed));
  }
  const std::vector<std::uint32_t> fabric = router_.state().changes();
  key.insert(key.end(), fabric.begin(), fabric.end());
  return key;
}

const StepProfile& StepModel::profile(const Placement& placement) {
  if (job_.measured_step && !is_calibrated_) meet_measured_step(placement);
  std::vector<std::uint32_t> k = key(placement);
  if (const auto found = profiles_.find(k); found != profiles_.end()) {
    ++reused_;
    return *found->second;
  }
  ++computed_;
  // Links are looked at one by one where somebody will ask: as the job starts, and when the fabric
  // is not as built.
  const bool detailed = profiles_.empty() || router_.state().is_changed();
  auto made = std::make_shared<const StepProfile>(compute(placement, detailed));
  if (router_.state().is_changed())  // a fault that the job does not feel gives the same step
    for (const auto& [other, known] : profiles_)
      if (known->step == made->step && known->parts == made->parts &&
          known->cut_off == made->cut_off && same_load(*known, *made)) {
        made = known;
        break;
      }
  return *profiles_.emplace(std::move(k), std::move(made)).first->second;
}

std::vector<StepModel::Replica> StepModel::replicas(const Placement& placement) {
  std::vector<Replica> all(std::size_t(plan_.data));
  for (Replica& r : all) r.speed.assign(std::size_t(plan_.pipeline), compute_scale_);
  for (const SlowGpu& slow :
       placement.slow) {  // the tensor-parallel group goes at the pace of its slowest member
    const RankPlace place = plan_.place_of(int(slow.gpu));
    double& speed = all[std::size_t(place.data)].speed[std::size_t(place.pipeline)];
    speed = std::min(speed, compute_scale_ * slow.speed);
  }
  for (Replica& r : all) {
    r.forward_transfer_s.assign(std::size_t(plan_.pipeline), 0.0);
    r.backward_transfer_s.assign(std::size_t(plan_.pipeline), 0.0);
  }
  if (plan_.pipeline == 1) return all;
  for (int s = 0; s < plan_.pipeline; ++s) {
    const int next = (s + 1) % plan_.pipeline;
    if (next == 0 && plan_.chunks == 1)
      continue;  // only chunks lead from the last stage to the first
    const BoundaryTimes& there = boundaries_.times(placement.servers, s, next);
    const BoundaryTimes& back = boundaries_.times(placement.servers, next, s);
    const std::vector<double>& forward = there.seconds;
    const std::vector<double>& backward = back.seconds;
    for (std::size_t d = 0; d < all.size(); ++d) {
      all[d].forward_transfer_s[std::size_t(s)] = forward[d];
      all[d].backward_transfer_s[std::size_t(s)] = backward[d];
    }
  }
  return all;
}

PipelineInput StepModel::pipeline_input(const Replica& replica) const {
  PipelineInput in;
  in.stages = plan_.pipeline;
  in.chunks = plan_.chunks;
  in.micro_batches = plan_.micro_batches;
  in.overlap = job_.software.overlap_pipeline;
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int c = 0; c < plan_.chunks; ++c) {
      const std::size_t at = std::size_t(s * plan_.chunks + c);
      const double speed = replica.speed[std::size_t(s)];
      in.forward_s.push_back(costs_.chunks[at].forward.total_s(speed) + fsdp_forward_s_[at]);
      in.backward_s.push_back(costs_.chunks[at].backward.total_s(speed) + fsdp_backward_s_[at]);
    }
  in.forward_transfer_s = replica.forward_transfer_s;
  in.backward_transfer_s = replica.backward_transfer_s;
  return in;
}

const PipelinePlay& StepModel::play(const Replica& replica) {
  const auto found = plays_.find({replica, 0});
  if (found != plays_.end()) return found->second;
  return plays_.emplace(std::pair(replica, std::size_t(0)), play_pipeline(pipeline_input(replica)))
      .first->second;
}

const PipelinePlay& StepModel::play_with_parameters(const Replica& replica,
                                                    const std::vector<double>& ready_s,
                                                    std::size_t ready_number) {
  const auto found = plays_.find({replica, ready_number});
  if (found != plays_.end()) return found->second;
  PipelineInput in = pipeline_input(replica);
  in.parameters_ready_s = ready_s;
  return plays_.emplace(std::pair(replica, ready_number), play_pipeline(in)).first->second;
}

std::vector<std::vector<StageCollective>> StepModel::gathers() const {
  std::vector<std::vector<StageCollective>> stages(std::size_t(plan_.pipeline));
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int c = 0; c < plan_.chunks; ++c)
      stages[std::size_t(s)].push_back(
          {.bytes = parameter_bytes * plan_.share(s, c).weights / plan_.tensor});
  return stages;
}

void StepModel::add_fsdp_traffic() {
  // Per layer and micro-batch: gather before the forward, gather and reduce-scatter around the
  // backward, on the same ports. Hiding is poor (kernels and copies share the memory): at least
  // `fsdp_exposed` of the traffic shows.
  const auto exposed = [&](double traffic_s, double compute_s) {
    const double at_least = job_.software.fsdp_exposed * traffic_s;
    return job_.software.overlap_data ? std::max(at_least, traffic_s - compute_s) : traffic_s;
  };
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int c = 0; c < plan_.chunks; ++c) {
      const std::size_t at = std::size_t(s * plan_.chunks + c);
      const double weights = plan_.share(s, c).weights / plan_.tensor;
      const double pieces = std::max(1, plan_.share(s, c).layers);  // one collective a layer
      const double fixed = pieces * data_.latency_s(s);
      const double gather = fixed + data_.steady_s(parameter_bytes * weights)[std::size_t(s)];
      const double reduce =
          fixed + data_.steady_s(job_.software.gradient_bytes * weights)[std::size_t(s)];
      const double forward = costs_.chunks[at].forward.total_s(compute_scale_);
      const double backward = costs_.chunks[at].backward.total_s(compute_scale_);
      fsdp_forward_s_[at] = exposed(gather, forward);
      fsdp_backward_s_[at] = exposed(gather + reduce, backward);
    }
}

StepModel::Times StepModel::times(const Placement& placement) {
  const std::size_t stages = std::size_t(plan_.pipeline), chunks = std::size_t(plan_.chunks);
  check(data_.place(placement.servers), "every data-parallel ring has a path");
  const bool fsdp = plan_.sharding == Sharding::fsdp && plan_.data > 1;
  if (fsdp) {
    add_fsdp_traffic();
    plays_.clear();  // their durations contain the traffic of this placement
  }

  Times t;
  const std::vector<Replica> all = replicas(placement);

  // Parameters for the first forwards.
  std::vector<double> parameters_ready;
  if (plan_.sharding == Sharding::zero1 && plan_.data > 1) {
    std::vector<std::vector<StageCollective>> gather = gathers();
    data_.play(gather);
    for (std::size_t s = 0; s < stages; ++s)
      for (std::size_t c = 0; c < chunks; ++c)
        parameters_ready.push_back(gather[s][job_.software.overlap_data ? c : chunks - 1].finish_s);
  }

  // Placements share few distinct times: what holds a ring up is seldom the server that changed.
  constexpr std::size_t plays_kept = 50'000;
  if (plays_.size() > plays_kept) plays_.clear();
  const std::size_t ready =
      parameters_ready.empty()
          ? 0
          : ready_times_.emplace(parameters_ready, ready_times_.size() + 1).first->second;

  // Every distinct replica; the gradients of a chunk are ready when the last replica has them.
  const std::set<Replica> distinct(all.begin(), all.end());
  std::vector<double> gradients_ready(stages * chunks, 0.0);
  const Replica* slowest = nullptr;
  std::vector<double> stage_end(stages, 0.0);
  for (const Replica& replica : distinct) {
    const PipelinePlay& played =
        ready == 0 ? play(replica) : play_with_parameters(replica, parameters_ready, ready);
    for (std::size_t at = 0; at < gradients_ready.size(); ++at)
      gradients_ready[at] = std::max(gradients_ready[at], played.last_backward_s[at]);
    for (std::size_t s = 0; s < stages; ++s)
      stage_end[s] = std::max(stage_end[s], played.stages[s].end_s);
    if (!slowest || played.makespan_s > t.slowest.makespan_s) {
      slowest = &replica;
      t.slowest = played;
    }
  }

  // Reduction of gradients, in the order in which they become ready.
  double reduced = t.slowest.makespan_s;
  if (plan_.data > 1 && !fsdp) {
    const double volume =
        job_.software.gradient_bytes * (plan_.sharding == Sharding::none ? 2.0 : 1.0);
    std::vector<std::vector<StageCollective>> reduce(stages);
    for (std::size_t s = 0; s < stages; ++s) {
      for (std::size_t c = 0; c < chunks; ++c)
        reduce[s].push_back(
            {.ready_s = job_.software.overlap_data ? gradients_ready[s * chunks + c] : stage_end[s],
             .bytes = volume * plan_.share(int(s), int(c)).weights / plan_.tensor});
      std::stable_sort(
          reduce[s].begin(), reduce[s].end(),
          [](const StageCollective& a, const StageCollective& b) { return a.ready_s < b.ready_s; });
    }
    data_.play(reduce);
    for (const auto& stage : reduce)
      for (const StageCollective& c : stage) reduced = std::max(reduced, c.finish_s);
  }
  for (const double s : costs_.optimizer_s)
    t.optimizer_s = std::max(t.optimizer_s, s / compute_scale_);
  t.step_s = reduced + t.optimizer_s;

  // Where the time went, as a mean over the GPUs.
  const double m = plan_.micro_batches;
  double busy = 0, fsdp_s = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    double stage_compute = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      const std::size_t at = s * chunks + c;
      for (const PassCost* pass : {&costs_.chunks[at].forward, &costs_.chunks[at].backward}) {
        t.useful_s += m * pass->useful_s;
        t.kernels_s += m * (pass->useful_s + pass->kernels_s) / compute_scale_ - m * pass->useful_s;
        t.recompute_s += m * pass->recompute_s / compute_scale_;
        t.exposed_tp_s += m * pass->exposed_tp_s;
        stage_compute += m * pass->compute_s() / compute_scale_;
        busy += m * pass->total_s(compute_scale_);
      }
      fsdp_s += m * (fsdp_forward_s_[at] + fsdp_backward_s_[at]);
    }
    t.kernels_s += costs_.optimizer_s[s] / compute_scale_;
    busy += costs_.optimizer_s[s] / compute_scale_;
    t.busiest_stage_s =
        std::max(t.busiest_stage_s, stage_compute + costs_.optimizer_s[s] / compute_scale_);
  }
  for (double* part : {&t.useful_s, &t.kernels_s, &t.recompute_s, &t.exposed_tp_s, &busy, &fsdp_s})
    *part /= double(stages);

  Replica no_transfers = *slowest;
  no_transfers.forward_transfer_s.assign(stages, 0.0);
  no_transfers.backward_transfer_s.assign(stages, 0.0);
  const double free_s = play(*slowest).makespan_s, bare_s = play(no_transfers).makespan_s;
  t.exposed_dp_s = fsdp_s + (t.slowest.makespan_s - free_s) + (reduced - t.slowest.makespan_s);
  t.exposed_pp_s = free_s - bare_s;
  t.bubble_s = bare_s + t.optimizer_s - busy - fsdp_s;
  t.pipeline_bound_s = bare_s + t.optimizer_s;
  return t;
}

StepProfile StepModel::compute(const Placement& placement, bool detailed) {
  StepProfile none;
  none.cut_off = cut_off(placement, none.is_cut_for_good);
  if (!none.cut_off.empty()) return none;
  const Times t = times(placement);
  // One slow member: what the step takes beyond the same step without it.
  const bool has_slow = !placement.slow.empty();
  const Times nominal = has_slow ? times({placement.servers, {}}) : t;

  StepProfile profile;
  profile.step = seconds(t.step_s * jitter());
  std::array<double, step_parts> parts{};
  const auto part = [&](StepPart p) -> double& { return parts[static_cast<std::size_t>(p)]; };
  part(StepPart::useful) = nominal.useful_s;
  part(StepPart::kernel_inefficiency) = nominal.kernels_s;
  part(StepPart::recompute) = nominal.recompute_s;
  part(StepPart::bubble) = nominal.bubble_s;
  part(StepPart::exposed_tp) = nominal.exposed_tp_s;
  part(StepPart::exposed_dp) = nominal.exposed_dp_s;
  part(StepPart::exposed_pp) = nominal.exposed_pp_s;
  part(StepPart::slow) = t.step_s * jitter() - nominal.step_s;
  for (double& p : parts) {
    check(p > -1e-9 * t.step_s, "no part of a step is negative", p, t.step_s);
    p = std::max(p, 0.0);
  }
  set_parts(profile, parts);

  profile.tokens = plan_.tokens();
  profile.model_flops = model_flops_per_token(plan_.model, plan_.sequence) * profile.tokens;
  profile.hardware_flops =
      hardware_flops_per_token(plan_.model, plan_.sequence, plan_.recompute) * profile.tokens;
  const Operands operands = plan_.precision == Precision::fp8 ? Operands::fp8 : Operands::bits16;
  profile.bounds.flops_s =
      profile.model_flops / (double(plan_.gpus) * peak_flops(server_.gpu, operands));
  profile.bounds.compute_s = nominal.busiest_stage_s;
  profile.bounds.pipeline_s = nominal.pipeline_bound_s;
  add_power(t, profile);
  if (detailed) find_busiest_links(placement, profile);
  const double step_s = to_seconds(profile.step);
  for (const double bound :
       {profile.bounds.compute_s, profile.bounds.pipeline_s, profile.bounds.busiest_link_s})
    check(step_s >= bound * (1 - 1e-9), "a step is not shorter than its closed-form bounds", step_s,
          bound);
  if (compute_scale_ != 1.0)
    profile.notes.push_back("compute scaled to meet measured_step: speed x " +
                            std::to_string(compute_scale_));
  return profile;
}

void StepModel::add_power(const Times& t, StepProfile& profile) const {
  // Stages are busy from their first forward to their last backward, at their mean rate in that
  // window; before and after they wait at the power of a collective. The optimizer runs on all GPUs
  // at once.
  const double scale = to_seconds(profile.step) / t.step_s;
  const double gpus_of_stage = double(plan_.gpus) / plan_.pipeline;
  const Watts busy = server_.gpu.power_max, waiting = communicating_power(server_.gpu);
  const Watts servers = server_.power_overhead * (double(plan_.gpus) / server_.gpus);
  std::vector<double> edges{0.0, t.step_s - t.optimizer_s, t.step_s};
  for (const StagePlay& s : t.slowest.stages) {
    edges.push_back(s.first_start_s);
    edges.push_back(s.end_s);
  }
  std::sort(edges.begin(), edges.end());
  Duration so_far{};
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    const Duration until = i + 2 == edges.size() ? profile.step : seconds(edges[i + 1] * scale);
    if (until <= so_far) continue;
    const double middle = (edges[i] + edges[i + 1]) / 2;
    Watts power = servers;
    for (const StagePlay& s : t.slowest.stages) {
      double share = 0;
      if (middle >= t.step_s - t.optimizer_s)
        share = 1;
      else if (middle > s.first_start_s && middle < s.end_s)
        share = std::min(1.0, s.busy_s / (s.end_s - s.first_start_s));
      power += (waiting + (busy - waiting) * share) * gpus_of_stage;
    }
    profile.power.push_back({until - so_far, power});
    so_far = until;
  }
}

double StepModel::jitter() const {
  return 1 + job_.software.jitter_per_doubling * std::log2(std::max(1.0, plan_.gpus / 8.0));
}

double StepModel::step_at_s(const Placement& placement, double compute_scale) {
  compute_scale_ = compute_scale;
  plays_.clear();
  return times({placement.servers, {}}).step_s * jitter();
}

std::pair<Duration, Duration> StepModel::scalable_range(const Placement& placement) {
  const double before = compute_scale_;
  const double fastest = step_at_s(placement, most_scaling);
  const double slowest = step_at_s(placement, 1 / most_scaling);
  compute_scale_ = before;
  plays_.clear();
  return {seconds(fastest), seconds(slowest)};
}

void StepModel::meet_measured_step(const Placement& placement) {
  is_calibrated_ = true;
  const double target = to_seconds(*job_.measured_step);
  // Faster compute, shorter step: bisect the speed.
  double slow = 1 / most_scaling, fast = most_scaling;
  check(step_at_s(placement, slow) >= target && step_at_s(placement, fast) <= target,
        "measured_step lies in scalable_range()", target);
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(slow * fast);
    (step_at_s(placement, middle) > target ? slow : fast) = middle;
  }
  step_at_s(placement, fast);
}

}  // namespace trainyard::models
