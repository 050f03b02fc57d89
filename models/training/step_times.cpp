#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "models/training/step_model.hpp"
#include "sim/check.hpp"

/// StepModel: the play of one step.
namespace trainyard::models {
namespace {

constexpr double parameter_bytes = 2;  // gathered in BF16
// Finer buckets would not change when the last of them is done by more than this part of a pass.
constexpr int most_buckets = 8;  // of a stage
constexpr std::size_t plays_kept = 10'000;

/// How long collectives were under way, in the stage where that is longest.
double longest_busy_s(const std::vector<std::vector<StageCollective>>& stages) {
  double longest_s = 0;
  for (const auto& stage : stages) {
    double busy_s = 0, until_s = 0;
    for (const StageCollective& c : stage) {
      const double start_s = std::max(until_s, c.ready_s);
      busy_s += std::max(0.0, c.finish_s - start_s);
      until_s = std::max(until_s, c.finish_s);
    }
    longest_s = std::max(longest_s, busy_s);
  }
  return longest_s;
}

/// As if no stage ever waited for another: what the busiest stage computes.
PipelinePlay without_bubble(const PipelineInput& in) {
  PipelinePlay play;
  play.stages.resize(std::size_t(in.stages));
  const auto chunks = std::size_t(in.chunks);
  for (std::size_t s = 0; s < play.stages.size(); ++s) {
    double busy_s = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      const std::size_t at = s * chunks + c;
      play.first_forward_s.push_back(busy_s);
      busy_s += in.micro_batches * (in.forward_s[at] + in.backward_s[at]);
      play.last_backward_start_s.push_back(busy_s - in.backward_s[at]);
      play.last_backward_s.push_back(busy_s);
    }
    play.stages[s].busy_s = play.stages[s].end_s = busy_s;
    play.makespan_s = std::max(play.makespan_s, busy_s);
  }
  for (StagePlay& stage : play.stages) stage.waiting_compute_s = play.makespan_s - stage.busy_s;
  return play;
}

}  // namespace

void StepModel::make_costs() {
  if (!costs_.chunks.empty() && !groups_.uses_fabric()) return;
  costs_ = step_costs(server_.gpu, plan_, job_.software, groups_.costs());
  plays_.clear();
}

std::vector<StepModel::Replica> StepModel::replicas(const Placement& placement) {
  std::vector<Replica> all(std::size_t(plan_.data));
  for (Replica& r : all) r.speed.assign(std::size_t(plan_.pipeline), compute_scale_);
  for (const SlowGpu& slow : placement.slow) slow_down(all, slow);
  for (Replica& r : all) {
    r.forward_transfer_s.assign(std::size_t(plan_.pipeline), 0.0);
    r.backward_transfer_s.assign(std::size_t(plan_.pipeline), 0.0);
  }
  if (!plan_.mechanisms.pipeline_traffic) return all;
  // The context-parallel ranks of a replica go on together: the slowest of their transfers counts.
  const auto context = std::size_t(plan_.context);
  const auto slowest = [&](const std::vector<double>& seconds, std::size_t data) {
    return *std::max_element(seconds.begin() + std::ptrdiff_t(data * context),
                             seconds.begin() + std::ptrdiff_t((data + 1) * context));
  };
  for (int s = 0; plan_.pipeline > 1 && s < plan_.pipeline; ++s) {
    const int next = (s + 1) % plan_.pipeline;
    if (next == 0 && plan_.chunks == 1)
      continue;  // only chunks lead from the last stage to the first
    // Slices are put together again inside the server.
    const auto gather_s = [&](int stage) {
      if (!plan_.scatters_boundaries) return 0.0;
      const std::vector<CommCosts>& costs = groups_.costs();
      return costs[costs.size() > 1 ? std::size_t(stage) : 0].tensor.all_gather_s(
          boundary_bytes(plan_) * plan_.tensor);
    };
    const std::vector<double>& forward = boundaries_.times(placement.servers, s, next).seconds;
    const std::vector<double>& backward = boundaries_.times(placement.servers, next, s).seconds;
    for (std::size_t d = 0; d < all.size(); ++d) {
      all[d].forward_transfer_s[std::size_t(s)] = slowest(forward, d) + gather_s(next);
      all[d].backward_transfer_s[std::size_t(s)] = slowest(backward, d) + gather_s(s);
    }
  }
  return all;
}

PipelineInput StepModel::pipeline_input(const Replica& replica) const {
  PipelineInput in;
  in.stages = plan_.pipeline;
  in.chunks = plan_.chunks;
  in.micro_batches = plan_.micro_batches;
  in.schedule = plan_.schedule;
  in.overlap = job_.software.overlap_pipeline;
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int c = 0; c < plan_.chunks; ++c) {
      const std::size_t at = std::size_t(s * plan_.chunks + c);
      const double speed = replica.speed[std::size_t(s)];
      const PassPair& pass = costs_.chunks[at];
      in.forward_s.push_back(pass.forward.total_s(speed) + pass_forward_s_[at]);
      in.backward_s.push_back(pass.backward.total_s(speed) + pass_backward_s_[at]);
      if (plan_.schedule == Schedule::zero_bubble)
        in.weight_gradient_s.push_back(pass.backward.weight_gradient_s / speed);
    }
  in.forward_transfer_s = replica.forward_transfer_s;
  in.backward_transfer_s = replica.backward_transfer_s;
  return in;
}

PipelinePlay StepModel::played(const PipelineInput& input) const {
  return plan_.mechanisms.bubble ? play_pipeline(input) : without_bubble(input);
}

const PipelinePlay& StepModel::play(const Replica& replica) {
  const auto found = plays_.find({replica, 0});
  if (found != plays_.end()) return found->second;
  return plays_.emplace(std::pair(replica, std::size_t(0)), played(pipeline_input(replica)))
      .first->second;
}

const PipelinePlay& StepModel::play_with_parameters(const Replica& replica,
                                                    const std::vector<double>& ready_s,
                                                    std::size_t ready_number) {
  const auto found = plays_.find({replica, ready_number});
  if (found != plays_.end()) return found->second;
  PipelineInput in = pipeline_input(replica);
  in.parameters_ready_s = ready_s;
  return plays_.emplace(std::pair(replica, ready_number), played(in)).first->second;
}

// With a pipeline a stage keeps its weights whole for the step: gathering them again for every
// micro-batch would leave no time to compute (PyTorch: reshard_after_forward off).
bool StepModel::gathers_every_pass() const {
  return shards_weights(plan_.sharding) && plan_.pipeline == 1;
}

bool StepModel::reduces_every_pass() const {
  return gathers_every_pass() || (plan_.sharding == Sharding::zero2 && plan_.pipeline == 1);
}

// Parameters of one group's tensor: what its ranks reduce and gather.
double StepModel::ring_parameters(int stage, int chunk, RingKind ring) const {
  const ChunkShare& share = plan_.share(stage, chunk);
  switch (ring) {
    case RingKind::shards:
      return plan_.shared_parameters(share);
    case RingKind::replicas:  // hybrid: every rank brings its shard
      return plan_.shared_parameters(share) / plan_.shard_group;
    case RingKind::experts:
      return plan_.expert_parameters(share);
  }
  return 0;
}

int StepModel::buckets(double bytes) const {
  const int most = std::max(1, most_buckets / plan_.chunks);
  return int(std::clamp(std::ceil(bytes / job_.software.bucket.value()), 1.0, double(most)));
}

// Traffic of sharded weights in every pass: a layer is gathered before it is used, and its
// gradients are reduced behind it. Hiding is poor (kernels and copies share memory and SMs): at
// least `fsdp_exposed` of the traffic shows.
void StepModel::add_traffic_of_passes() {
  const auto exposed = [&](double traffic_s, double compute_s) {
    const double at_least = job_.software.fsdp_exposed * traffic_s;
    return job_.software.overlap_data ? std::max(at_least, traffic_s - compute_s) : traffic_s;
  };
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int c = 0; c < plan_.chunks; ++c) {
      const std::size_t at = std::size_t(s * plan_.chunks + c);
      const double pieces =
          double(std::max(1, plan_.share(s, c).blocks())) * job_.software.gathers_per_layer;
      double gather_s = 0, reduce_s = 0;
      for (const RingKind ring : {RingKind::shards, RingKind::experts}) {
        const double parameters = ring_parameters(s, c, ring);
        if (data_.size(ring) < 2 || parameters == 0) continue;
        const double fixed_s = pieces * data_.latency_s(s, ring);
        if (gathers_every_pass())
          gather_s += fixed_s + data_.steady_s(parameter_bytes * parameters, ring)[std::size_t(s)];
        reduce_s += fixed_s +
                    data_.steady_s(job_.software.gradient_bytes * parameters, ring)[std::size_t(s)];
      }
      pass_forward_s_[at] = exposed(gather_s, costs_.chunks[at].forward.total_s(compute_scale_));
      pass_backward_s_[at] =
          exposed(gather_s + reduce_s, costs_.chunks[at].backward.total_s(compute_scale_));
    }
  plays_.clear();  // their durations contain the traffic of this placement
}

// When the first forward of a chunk may begin so that every bucket of its parameters is there when
// it comes to be used. Empty: they are there.
StepModel::Gathered StepModel::parameters_ready() {
  if (plan_.sharding == Sharding::none || gathers_every_pass()) return {};
  std::vector<std::vector<StageCollective>> gather(std::size_t(plan_.pipeline));
  struct Piece {
    std::size_t chunk;
    double used;  // when in the forward pass, 0 to 1
  };
  std::vector<std::vector<Piece>> pieces(gather.size());
  for (int s = 0; s < plan_.pipeline; ++s)
    for (int c = 0; c < plan_.chunks; ++c)
      for (const RingKind ring : {RingKind::shards, RingKind::experts}) {
        const double bytes = parameter_bytes * ring_parameters(s, c, ring);
        if (data_.size(ring) < 2 || bytes == 0) continue;
        const int n = buckets(bytes);
        for (int i = 0; i < n; ++i) {
          gather[std::size_t(s)].push_back({.bytes = bytes / n, .ring = ring});
          pieces[std::size_t(s)].push_back({std::size_t(c), double(i) / n});
        }
      }
  data_.play(gather);
  Gathered out;
  out.busy_s = longest_busy_s(gather);
  std::vector<double>& ready = out.ready_s;
  ready.assign(plan_.shares.size(), 0.0);
  for (std::size_t s = 0; s < gather.size(); ++s)
    for (std::size_t i = 0; i < gather[s].size(); ++i) {
      const std::size_t at = s * std::size_t(plan_.chunks) + pieces[s][i].chunk;
      const double forward_s = costs_.chunks[at].forward.total_s(compute_scale_);
      const double start_s = job_.software.overlap_data
                                 ? gather[s][i].finish_s - pieces[s][i].used * forward_s
                                 : gather[s].back().finish_s;
      ready[at] = std::max(ready[at], start_s);
    }
  return out;
}

// When all gradients are reduced, in the order in which they become ready.
StepModel::Reduced StepModel::reduced(const std::vector<Window>& gradients, double end_s) {
  const double volume = plan_.sharding == Sharding::none ? 2.0 : 1.0;
  std::vector<std::vector<StageCollective>> reduce(std::size_t(plan_.pipeline));
  for (int s = 0; s < plan_.pipeline; ++s) {
    auto& stage = reduce[std::size_t(s)];
    const auto add = [&](int c, RingKind ring, double copies) {
      const double bytes = copies * job_.software.gradient_bytes * ring_parameters(s, c, ring);
      if (data_.size(ring) < 2 || bytes == 0) return;
      const Window& window = gradients[std::size_t(s * plan_.chunks + c)];
      const int n = buckets(bytes);
      for (int i = 0; i < n; ++i)
        stage.push_back(
            {.ready_s = job_.software.overlap_data
                            ? window.start_s + (window.end_s - window.start_s) * (i + 1) / n
                            : end_s,
             .bytes = bytes / n,
             .ring = ring});
    };
    for (int c = 0; c < plan_.chunks; ++c) {
      if (!reduces_every_pass()) {
        add(c, RingKind::shards, volume);
        add(c, RingKind::experts, volume);
      }
      add(c, RingKind::replicas, 2.0);
    }
    std::stable_sort(
        stage.begin(), stage.end(),
        [](const StageCollective& a, const StageCollective& b) { return a.ready_s < b.ready_s; });
  }
  data_.play(reduce);
  Reduced out{end_s, longest_busy_s(reduce)};
  for (const auto& stage : reduce)
    for (const StageCollective& c : stage) out.end_s = std::max(out.end_s, c.finish_s);
  return out;
}

// Copies of a tied embedding on the first and the last stage exchange their gradients at the end.
double StepModel::tied_embedding_s(const Placement& placement) {
  if (!plan_.model.tied_embeddings || plan_.pipeline == 1) return 0;
  const double bytes = double(job_.software.gradient_bytes) * plan_.model.vocabulary *
                       plan_.model.hidden / plan_.tensor;
  const std::vector<double>& seconds =
      boundaries_.times(placement.servers, 0, plan_.pipeline - 1).seconds;
  return *std::max_element(seconds.begin(), seconds.end()) * bytes / boundaries_.bytes_per_rank();
}

StepModel::Times StepModel::times(const Placement& placement, Detail detail) {
  const std::size_t stages = std::size_t(plan_.pipeline);
  const bool has_data_traffic = plan_.mechanisms.data_traffic && plan_.weight_replicas() > 1;
  check(groups_.place(placement.servers), "every group inside a layer has a path");
  make_costs();
  check(data_.place(placement.servers), "every data-parallel ring has a path");
  if (has_data_traffic && reduces_every_pass()) add_traffic_of_passes();

  Times t;
  const std::vector<Replica> all = replicas(placement);
  Gathered gathered;
  if (has_data_traffic) gathered = parameters_ready();
  const std::vector<double>& ready_s = gathered.ready_s;

  // Placements share few distinct times: what holds a ring up is seldom the server that changed.
  if (plays_.size() > plays_kept) {
    plays_.clear();
    ready_times_.clear();
  }
  const std::size_t ready =
      ready_s.empty() ? 0 : ready_times_.emplace(ready_s, ready_times_.size() + 1).first->second;

  // Every distinct replica; gradients are ready when the last replica has them.
  const std::set<Replica> distinct(all.begin(), all.end());
  std::vector<Window> gradients(plan_.shares.size());
  const Replica* slowest = nullptr;
  for (const Replica& replica : distinct) {
    const PipelinePlay& one =
        ready == 0 ? play(replica) : play_with_parameters(replica, ready_s, ready);
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      gradients[at].start_s = std::max(gradients[at].start_s, one.last_backward_start_s[at]);
      gradients[at].end_s = std::max(gradients[at].end_s, one.last_backward_s[at]);
    }
    if (!slowest || one.makespan_s > t.slowest.makespan_s) {
      slowest = &replica;
      t.slowest = one;
    }
  }

  double end_s = t.slowest.makespan_s;
  if (timeline_ != nullptr && plan_.mechanisms.bubble) {
    PipelineInput input = pipeline_input(*slowest);
    input.parameters_ready_s = ready_s;
    play_pipeline(input, &timeline_->passes);
  }
  if (has_data_traffic) {
    const Reduced reduction = reduced(gradients, end_s);
    // What a collective hides behind compute it takes from it in part: SMs and memory bandwidth.
    const double gather_waited_s = ready == 0 ? 0 : end_s - play(*slowest).makespan_s;
    const double hidden_s = std::max(0.0, reduction.busy_s - (reduction.end_s - end_s)) +
                            std::max(0.0, gathered.busy_s - gather_waited_s);
    end_s = reduction.end_s + tied_embedding_s(placement);
    if (job_.software.overlap_data) end_s += job_.software.data_slowdown * hidden_s;
  }
  t.optimizer_s = optimizer_s(placement);
  t.step_s = end_s + t.optimizer_s;
  if (timeline_ != nullptr) {
    timeline_->stages = plan_.pipeline;
    timeline_->chunks = plan_.chunks;
    timeline_->parameters_ready_s = ready_s;
    timeline_->gradients_from_s.assign(stages, end_s);
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      double& from = timeline_->gradients_from_s[at / std::size_t(plan_.chunks)];
      from = std::min(from, gradients[at].start_s);
    }
    timeline_->gradients_end_s = has_data_traffic ? end_s : t.slowest.makespan_s;
    timeline_->optimizer_end_s = t.step_s;
  }
  check(stages == costs_.optimizer_s.size(), "costs of every stage are there", stages);
  if (detail == Detail::split) split_times(t, *slowest, end_s);
  return t;
}

StepTimeline StepModel::timeline(const Placement& placement) {
  check(profile(placement).cut_off.empty(), "a step with all its paths has a timeline");
  place_store_flows(placement);
  StepTimeline out;
  timeline_ = &out;
  times(placement, Detail::total);
  timeline_ = nullptr;
  return out;
}

// Where the time went, as a mean over the GPUs.
void StepModel::split_times(Times& t, const Replica& slowest, double end_s) {
  const std::size_t stages = std::size_t(plan_.pipeline), chunks = std::size_t(plan_.chunks);
  const double m = plan_.micro_batches;
  double busy = 0, traffic_of_passes_s = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    double stage_compute = 0;
    for (std::size_t c = 0; c < chunks; ++c) {
      const std::size_t at = s * chunks + c;
      for (const PassCost* pass : {&costs_.chunks[at].forward, &costs_.chunks[at].backward}) {
        t.useful_s += m * pass->useful_s;
        t.kernels_s += m * (pass->useful_s + pass->kernels_s) / compute_scale_ - m * pass->useful_s;
        t.recompute_s += m * pass->recompute_s / compute_scale_;
        t.exposed_tp_s += m * pass->exposed_tp_s;
        t.exposed_cp_s += m * pass->exposed_cp_s;
        t.exposed_ep_s += m * pass->exposed_ep_s;
        stage_compute += m * pass->compute_s() / compute_scale_;
        busy += m * pass->total_s(compute_scale_);
      }
      traffic_of_passes_s += m * (pass_forward_s_[at] + pass_backward_s_[at]);
    }
    t.kernels_s += costs_.optimizer_s[s] / compute_scale_;
    busy += costs_.optimizer_s[s] / compute_scale_;
    t.busiest_stage_s =
        std::max(t.busiest_stage_s, stage_compute + costs_.optimizer_s[s] / compute_scale_);
  }
  for (double* part : {&t.useful_s, &t.kernels_s, &t.recompute_s, &t.exposed_tp_s, &t.exposed_cp_s,
                       &t.exposed_ep_s, &busy, &traffic_of_passes_s})
    *part /= double(stages);

  Replica no_transfers = slowest;
  no_transfers.forward_transfer_s.assign(stages, 0.0);
  no_transfers.backward_transfer_s.assign(stages, 0.0);
  const double free_s = play(slowest).makespan_s, bare_s = play(no_transfers).makespan_s;
  t.exposed_dp_s =
      traffic_of_passes_s + (t.slowest.makespan_s - free_s) + (end_s - t.slowest.makespan_s);
  t.exposed_pp_s = free_s - bare_s;
  t.bubble_s = bare_s + t.optimizer_s - busy - traffic_of_passes_s;
  t.pipeline_bound_s = bare_s + t.optimizer_s;
}

/// Bytes that one group reduces and gathers in one step.
double StepModel::ring_bytes(int stage, RingKind ring) const {
  double parameters = 0;
  for (int c = 0; c < plan_.chunks; ++c) parameters += ring_parameters(stage, c, ring);
  const double gradients = job_.software.gradient_bytes * parameters;
  if (ring == RingKind::replicas) return 2 * gradients;
  if (plan_.sharding == Sharding::none) return 2 * gradients;
  const double gather = parameter_bytes * parameters;
  if (gathers_every_pass()) return plan_.micro_batches * (2 * gather + gradients);
  if (reduces_every_pass()) return plan_.micro_batches * gradients + gather;
  return gradients + gather;
}

}  // namespace trainyard::models
