#include "models/training/memory_advice.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "models/training/memory.hpp"

namespace trainyard::models {
namespace {

// A changed plan, what it changes in words, and how much that is likely to cost.
struct Candidate {
  ParallelSpec parallel;
  std::string changes;
  int price = 0;

  Candidate with(int more, const std::string& change) const {
    Candidate next = *this;
    next.price += more;
    next.changes += (changes.empty() ? "" : ", ") + change;
    return next;
  }
};
using Candidates = std::vector<Candidate>;

// Prices order the answers: sharding is nearly free, a smaller micro-batch costs kernel efficiency,
// recomputation up to a quarter of the step, a larger replica the batch or the bubble.
constexpr int zero1_price = 1, zero2_price = 2, fsdp_price = 3, micro_batch_price = 2,
              selective_price = 2, share_price = 2, doubling_price = 4;

constexpr std::array<std::pair<double, const char*>, 4> advised_shares{
    {{0.25, "0.25"}, {0.5, "0.5"}, {0.75, "0.75"}, {1.0, "1"}}};
constexpr std::array<double, 5> published_shares{1.0 / 3, 1.0 / 2, 2.0 / 3, 3.0 / 4, 1.0};

Candidates sharded(const Candidate& c) {
  Candidates out;
  const auto shard = [&](Sharding to, int price) {
    if (int(to) <= int(c.parallel.sharding)) return;
    out.push_back(c.with(price, "sharding \"" + std::string(trainyard::name_of(to)) + "\""));
    out.back().parallel.sharding = to;
  };
  shard(Sharding::zero1, zero1_price);
  shard(Sharding::zero2, zero2_price);
  // With a pipeline weights stay whole during the step: nothing to gain.
  if (c.parallel.pipeline == 1 && !shards_weights(c.parallel.sharding))
    shard(Sharding::fsdp, fsdp_price);
  return out;
}

Candidates smaller_micro_batch(const Candidate& c) {
  Candidates out;
  int price = micro_batch_price;
  for (int b = c.parallel.micro_batch / 2; b >= 1; b /= 2, ++price) {
    out.push_back(c.with(price, "micro_batch " + std::to_string(b)));
    out.back().parallel.micro_batch = b;
  }
  return out;
}

Candidates recomputed(const Candidate& c, const SoftwareSpec& software) {
  Candidates out;
  const auto recompute = [&](Recompute to, double share, int price, const std::string& more) {
    out.push_back(
        c.with(price, "recompute \"" + std::string(trainyard::name_of(to)) + "\"" + more));
    out.back().parallel.recompute = to;
    out.back().parallel.recompute_share = share;
  };
  // A fused attention kernel keeps nothing that selective recomputation could drop.
  if (c.parallel.recompute == Recompute::none && !software.flash_attention)
    recompute(Recompute::selective, 1, selective_price, "");
  const double now = c.parallel.recompute == Recompute::full ? c.parallel.recompute_share : 0;
  int price = share_price;
  for (const auto& [share, text] : advised_shares) {
    if (share > now)
      recompute(Recompute::full, share, price,
                share < 1 ? ", recompute_share " + std::string(text) : "");
    ++price;
  }
  return out;
}

// Doublings of one of the sizes.
Candidates doubled(const Candidate& c, int ParallelSpec::*size, const std::string& name,
                   long limit) {
  Candidates out;
  int price = doubling_price;
  for (long n = 2L * (c.parallel.*size); n <= limit; n *= 2, price += doubling_price) {
    out.push_back(c.with(price, name + " " + std::to_string(n)));
    out.back().parallel.*size = int(n);
    out.back().parallel.data.reset();
  }
  return out;
}

bool has_experts(const TransformerSpec& model) {
  return model.experts || std::any_of(model.layer_table.begin(), model.layer_table.end(),
                                      [](const LayerSpec& row) { return row.experts.has_value(); });
}

Candidates candidates(const JobSpec& job, int gpus_per_server) {
  constexpr int long_sequence = 16384;  // below it context parallelism is not worth its traffic
  constexpr int most_experts = 64;      // expert-parallel ranks
  Candidates found{{job.parallel, "", 0}};
  const auto vary = [&found](const auto& variants) {
    Candidates more;
    for (const Candidate& c : found)
      for (Candidate& next : variants(c)) more.push_back(std::move(next));
    found.insert(found.end(), more.begin(), more.end());
  };
  vary(sharded);
  vary(smaller_micro_batch);
  vary([&](const Candidate& c) { return recomputed(c, job.software); });
  vary([&](const Candidate& c) {
    return doubled(c, &ParallelSpec::tensor, "tensor", gpus_per_server);
  });
  if (job.sequence >= long_sequence)
    vary([&](const Candidate& c) {
      return doubled(c, &ParallelSpec::context, "context", 8L * job.parallel.context);
    });
  if (has_experts(job.model))
    vary([&](const Candidate& c) {
      return doubled(c, &ParallelSpec::expert, "expert", most_experts);
    });
  // A stated division of layers is for one number of stages.
  if (job.parallel.stage_layers.empty())
    vary([&](const Candidate& c) {
      return doubled(c, &ParallelSpec::pipeline, "pipeline",
                     std::min(job.gpus, job.model.layers + 2));
    });
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.price < b.price; });
  found.erase(found.begin());  // the plan itself
  return found;
}

}  // namespace

std::string nearest_plan_that_fits(const JobSpec& job, const GpuSpec& gpu, int gpus_per_server) {
  JobSpec changed = job;
  for (const Candidate& candidate : candidates(job, gpus_per_server)) {
    changed.parallel = candidate.parallel;
    if (!check_plan(changed, gpus_per_server).empty()) continue;
    const Bytes total = largest_stage_memory(make_plan(changed), job.software);
    if (total > gpu.memory) continue;
    return candidate.changes + " (" + gigabytes(total) + " GB)";
  }
  return "more GPUs to a replica, a smaller model, or a GPU with more memory: no plan of this job "
         "fits";
}

std::optional<double> least_recompute_share(const JobSpec& job, const GpuSpec& gpu) {
  JobSpec tried = job;
  tried.parallel.recompute = Recompute::full;
  for (const double share : published_shares) {
    tried.parallel.recompute_share = share;
    if (largest_stage_memory(make_plan(tried), job.software) <= gpu.memory) return share;
  }
  return {};
}

}  // namespace trainyard::models
