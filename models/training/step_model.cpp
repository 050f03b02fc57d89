#include "models/training/step_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "models/compute/kernels.hpp"
#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

constexpr double most_scaling = 20;  // of compute, to meet a measured step
// From here on other placements are looked at link by link: hashed paths may double a load.
constexpr double share_of_link_bound = 0.4;
// Waiting in a collective or polling: share of the board power limit (docs/models/step.md).
constexpr double communicating_share = 0.36;

/// The same step, with the same load on the busiest links.
bool same_step(const StepProfile& a, const StepProfile& b) {
  return a.step == b.step && a.parts == b.parts && a.cut_off == b.cut_off &&
         std::equal(a.busiest_links.begin(), a.busiest_links.end(), b.busiest_links.begin(),
                    b.busiest_links.end(),
                    [](const LinkUse& x, const LinkUse& y) {
                      return x.link == y.link && x.bytes == y.bytes && x.capacity == y.capacity;
                    }) &&
         std::equal(a.power.begin(), a.power.end(), b.power.begin(), b.power.end(),
                    [](const PowerPhase& x, const PowerPhase& y) {
                      return x.duration == y.duration && x.power == y.power;
                    });
}

/// What can be turned off in the job itself.
void without_mechanisms(JobSpec& job) {
  const Mechanisms& m = job.mechanisms;
  if (!m.data_overlap) job.software.overlap_data = false;
  if (m.interleaving || job.parallel.chunks == 1) return;
  // All chunks of a stage in one.
  ParallelSpec& p = job.parallel;
  if (!p.stage_layers.empty()) {
    std::vector<int> merged(std::size_t(p.pipeline), 0);
    for (std::size_t v = 0; v < p.stage_layers.size(); ++v)
      merged[v % std::size_t(p.pipeline)] += p.stage_layers[v];
    p.stage_layers = merged;
  } else {
    const Plan plan = make_plan(job);
    for (int s = 0; s < plan.pipeline; ++s) {
      int layers = 0;
      for (int c = 0; c < plan.chunks; ++c) layers += plan.share(s, c).layers;
      p.stage_layers.push_back(layers);
    }
  }
  p.chunks = 1;
  p.schedule = Schedule::one_f_one_b;
}

JobSpec with_mechanisms(JobSpec job) {
  without_mechanisms(job);
  return job;
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
    : job_(with_mechanisms(job)),
      server_(server),
      router_(router),
      plan_(make_plan(job_)),
      links_(router.fabric().links().size()),
      boundaries_(plan_, server_, router_, links_),
      data_(plan_, server_, router_, links_, job_.software.data_rate),
      groups_(plan_, server_, router_, links_),
      store_(server_, router_, links_),
      pass_forward_s_(plan_.shares.size(), 0.0),
      pass_backward_s_(plan_.shares.size(), 0.0) {}

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

StepModel::Digest StepModel::digest(std::span<const std::uint32_t> key) {
  const auto mixed = [](std::uint64_t x) {  // splitmix64: one to one
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  };
  Digest d{key.size(), ~std::uint64_t(key.size())};
  for (const std::uint32_t value : key) {
    d.first = mixed(d.first + 0x9e3779b97f4a7c15u + value);
    d.second = mixed((d.second ^ value) * 0xd6e8feb86659fd93u + 1);
  }
  return d;
}

void StepModel::forget_profiles() {
  profiles_.clear();
  detailed_.clear();
  store_limits_.clear();
}

/// While the fabric is as built, each path would be found again as it was: a long run keeps those
/// of its latest placements.
void StepModel::trim() {
  if (router_.state().is_changed()) return;
  boundaries_.trim();
  data_.trim();
}

const StepProfile& StepModel::profile(const Placement& placement) {
  if (job_.measured_step && !is_calibrated_) meet_measured_step(placement);
  if (profiles_.empty() && !(store_flows_.empty() && others_transfers_.empty()))
    profile_alone(placement);
  beside_.clear();
  for (const StoreFlow& flow : store_flows_) beside_.push_back(&flow);
  if (!others_transfers_.empty()) add_transfers_met(placement);
  // Links are looked at one by one where somebody will ask: as the job starts, and when the fabric
  // is not as built or a store is on it.
  const bool detailed = std::exchange(is_first_of_run_, false) || router_.state().is_changed() ||
                        profiles_.empty() || !beside_.empty();
  std::vector<std::uint32_t> k = key(placement);
  for (const StoreFlow* flow : beside_) add_to_key(k, *flow);
  const Digest name = digest(k);
  if (const auto found = profiles_.find(name);
      found != profiles_.end() && (found->second.is_detailed || !detailed)) {
    ++reused_;
    stand_on(placement);
    return *found->second.profile;
  }
  ++computed_;
  trim();
  place_store_flows(placement);
  Known made{std::make_shared<const StepProfile>(compute(placement, detailed)), detailed};
  links_.set_background({});
  standing_on_ = placement.servers;
  if (detailed) {  // a fault that the job does not feel gives the same step
    const auto [first, last] = detailed_.equal_range(made.profile->step);
    const auto same = std::find_if(
        first, last, [&](const auto& known) { return same_step(*known.second, *made.profile); });
    if (same != last)
      made.profile = same->second;
    else
      detailed_.emplace(made.profile->step, made.profile);
  }
  return *profiles_.insert_or_assign(name, std::move(made)).first->second.profile;
}

void StepModel::begin_run(const Placement& first) {
  check(!router_.state().is_changed(), "a run begins on the fabric as built");
  set_store_flows({});
  set_others({}, {});
  is_first_of_run_ = true;
  if (!profiles_.empty()) return;
  profile(first);  // decides what holds for all placements
  is_first_of_run_ = true;
}

/// Finds the paths that a step on these servers uses, if its profile was known without: uses() will
/// be asked.
void StepModel::stand_on(const Placement& placement) {
  if (standing_on_ == placement.servers) return;
  bool is_for_good = false;
  cut_off(placement, is_for_good);
  standing_on_ = placement.servers;
}

StepProfile StepModel::compute(const Placement& placement, bool detailed) {
  StepProfile none;
  data_.solve_afresh();  // no rounding from earlier steps
  none.cut_off = cut_off(placement, none.is_cut_for_good);
  if (!none.cut_off.empty()) return none;
  const Times t = times(placement);
  // One slow member: what the step takes beyond the same step without it.
  const bool has_slow = !placement.slow.empty();
  const Times nominal = has_slow ? times({placement.servers, {}}) : t;

  // Transfers are played one boundary at a time and do not meet collectives; all together a link
  // may need longer for its bytes than the play takes. Looked at where the first placement is close
  // to that, on a changed fabric, and beside a store.
  std::vector<double> bytes;
  double link_s = 0;
  if (detailed || watches_links_) {
    bytes = link_bytes(placement);
    link_s = busiest_link_s(bytes);
    if (links_.background() != 0) link_s = std::max(link_s, link_s_beside_store(placement));
    if (profiles_.empty()) watches_links_ = link_s > share_of_link_bound * t.step_s;
  }
  const bool may_bind = watches_links_ || router_.state().is_changed() || links_.background() != 0;
  const double played_s = t.step_s * jitter();

  StepProfile profile;
  profile.step = seconds(may_bind ? std::max(played_s, link_s) : played_s);
  std::array<double, step_parts> parts{};
  const auto part = [&](StepPart p) -> double& { return parts[static_cast<std::size_t>(p)]; };
  part(StepPart::useful) = nominal.useful_s;
  part(StepPart::kernel_inefficiency) = nominal.kernels_s;
  part(StepPart::recompute) = nominal.recompute_s;
  part(StepPart::bubble) = nominal.bubble_s;
  part(StepPart::exposed_tp) = nominal.exposed_tp_s;
  part(StepPart::exposed_cp) = nominal.exposed_cp_s;
  part(StepPart::exposed_ep) = nominal.exposed_ep_s;
  part(StepPart::exposed_dp) = nominal.exposed_dp_s;
  part(StepPart::exposed_pp) = nominal.exposed_pp_s;
  part(StepPart::slow) = played_s - nominal.step_s;
  if (may_bind && link_s > played_s) {
    part(plan_.pipeline > 1 ? StepPart::exposed_pp : StepPart::exposed_dp) += link_s - played_s;
    profile.notes.push_back(
        "the step is as long as its busiest link needs for its bytes, longer than the play of "
        "transfers and collectives one by one");
  }
  for (double& p : parts) {
    check(p > -1e-9 * t.step_s, "no part of a step is negative", p, t.step_s);
    p = std::max(p, 0.0);
  }
  set_parts(profile, parts);

  profile.tokens = plan_.tokens();
  profile.model_flops = model_flops_per_token(plan_.model, plan_.sequence) * profile.tokens;
  profile.hardware_flops =
      hardware_flops_per_token(plan_.model, plan_.sequence, plan_.recompute) * profile.tokens;
  profile.bounds.flops_s =
      profile.model_flops /
      (double(plan_.gpus) * peak_flops(server_.gpu, operands_of(plan_.precision)));
  profile.bounds.compute_s = nominal.busiest_stage_s;
  profile.bounds.pipeline_s = nominal.pipeline_bound_s;
  add_power(t, profile);
  profile.bounds.busiest_link_s = link_s;
  if (detailed) find_busiest_links(placement, bytes, profile);
  const double step_s = to_seconds(profile.step);
  for (const double bound :
       {profile.bounds.compute_s, profile.bounds.pipeline_s, may_bind ? link_s : 0.0})
    check(step_s >= bound * (1 - 1e-9) - 1e-9, "a step is not shorter than its closed-form bounds",
          step_s, bound);
  if (compute_scale_ != 1.0)
    profile.notes.push_back("compute scaled to meet measured_step: speed x " +
                            std::to_string(compute_scale_));
  return profile;
}

void StepModel::add_power(const Times& t, StepProfile& profile) const {
  // Stages are busy from their first forward to their last backward, at their mean rate in that
  // window; before and after they wait at the power of a collective. The optimizer runs on all GPUs
  // at once.
  const double scale = to_seconds(profile.step) / t.step_s;  // jitter, or the busiest link
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
  if (!plan_.mechanisms.jitter) return 1;
  return 1 + job_.software.jitter_per_doubling * std::log2(std::max(1.0, plan_.gpus / 8.0));
}

double StepModel::step_s_with(const GpuCalibration& calibration, const SoftwareSpec& software,
                              const Placement& placement) {
  server_.gpu.calibration = calibration;
  job_.software = software;
  without_mechanisms(job_);
  demand_of_.clear();
  data_.set_rate(software.data_rate);
  costs_ = {};
  plays_.clear();
  ready_times_.clear();
  return times(placement, Detail::total).step_s * jitter();
}

double StepModel::step_s_of(const JobSpec& variant, const Placement& placement) {
  job_ = with_mechanisms(variant);
  demand_of_.clear();
  const Plan plan = make_plan(job_);
  check(plan.gpus == plan_.gpus && plan.tensor == plan_.tensor && plan.context == plan_.context &&
            plan.pipeline == plan_.pipeline && plan.expert == plan_.expert,
        "a variant of a job has its ranks and groups", plan.gpus, plan_.gpus);
  plan_ = plan;
  data_.set_rate(job_.software.data_rate);
  costs_ = {};
  pass_forward_s_.assign(plan_.shares.size(), 0.0);
  pass_backward_s_.assign(plan_.shares.size(), 0.0);
  for (std::vector<double>& bytes : group_bytes_) bytes.clear();
  forget_profiles();
  plays_.clear();
  ready_times_.clear();
  return times(placement, Detail::total).step_s * jitter();
}

void StepModel::scale_compute(double factor) {
  compute_scale_ = factor;
  plays_.clear();
  forget_profiles();
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
