#include <algorithm>
#include <string>
#include <vector>

#include "models/compute/kernels.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/transformer.hpp"
#include "scenarios/no_effect.hpp"

/// Settings that were written but cannot matter: the user believes in something that the run does
/// not do.
namespace trainyard::scenarios {
namespace {

class NoEffect {
 public:
  explicit NoEffect(const ReadResult& read) : out_(read), scenario_(read.scenario) {}

  std::vector<std::string> list() {
    failures_without_effect(out_);
    care_without_effect(out_);
    fabric();
    stores_without_effect(out_);
    economics_without_effect(out_);
    facility_without_effect(out_);
    server();
    for (const auto& [name, job] : scenario_.jobs) this->job("jobs." + name, job);
    return std::move(out_.lines);
  }

 private:
  void idle(const std::string& path, const std::string& reason) { out_.idle(path, reason); }

  /// Whether anything fails that makes traffic move.
  bool fabric_can_fail() const {
    return out_.any_way([](const WayToFail& way) {
      return way.is_of_fabric() && way.effect != models::Effect::slow;
    });
  }

  void fabric() {
    using K = topologies::FabricKind;
    const topologies::FabricSpec& f = scenario_.cluster.fabric;
    if (!fabric_can_fail()) idle("cluster.fabric.convergence_delay", "no link or switch goes down");
    if (f.routing != topologies::RoutingKind::ecmp)
      idle("cluster.fabric.flows_per_pair",
           f.routing == topologies::RoutingKind::fixed
               ? "all queue pairs of a connection take the same path"
               : "sprayed packets use all paths whatever the number of queue pairs");
    const bool is_tree =
        f.kind == K::fat_tree || f.kind == K::rail_optimized || f.kind == K::rail_only;
    const int tiers = is_tree ? f.tiers.value_or(2) : f.kind == K::dragonfly_plus ? 2 : 0;
    const auto no_box = [&](const char* key, bool has) {
      if (!has)
        idle(std::string("cluster.fabric.") + key,
             "a " + std::string(name_of(f.kind)) + " fabric" +
                 (is_tree ? " of " + std::to_string(tiers) + " tiers" : "") +
                 " has no such switches");
    };
    no_box("leaf_switch", tiers >= 1);
    no_box("spine_switch", tiers >= 2);
    no_box("core_switch", tiers >= 3);
    no_box("router_switch", tiers == 0);
  }

  void server() {
    for (const char* price : {"gpu.price", "nic.price", "price"})
      idle(std::string("cluster.server.") + price,
           "runs do not count money; topology prices switches");
    idle("cluster.server.nic.power", "adapters are part of power_overhead");
    using O = models::Operands;
    const auto computes_in = [&](std::initializer_list<O> wanted) {
      return std::any_of(scenario_.jobs.begin(), scenario_.jobs.end(), [&](const auto& job) {
        const O operands = models::operands_of(job.second.parallel.precision);
        return std::find(wanted.begin(), wanted.end(), operands) != wanted.end();
      });
    };
    const auto only_for = [&](std::initializer_list<O> wanted, const char* key, const char* what) {
      if (!computes_in(wanted))
        idle(std::string("cluster.server.gpu.") + key, std::string("no job computes in ") + what);
    };
    only_for({O::fp8, O::fp8_rowwise, O::mxfp8}, "peak_fp8", "FP8");
    only_for({O::fp8}, "calibration.gemm_fp8", "FP8 scaled by tensor");
    only_for({O::fp8_rowwise}, "calibration.gemm_fp8_rowwise", "FP8 scaled by row");
    only_for({O::mxfp8}, "calibration.gemm_mxfp8", "MXFP8");
    only_for({O::nvfp4}, "peak_fp4", "NVFP4");
    only_for({O::nvfp4}, "calibration.gemm_nvfp4", "NVFP4");
    const auto any_job = [&](auto&& holds) {
      return std::any_of(scenario_.jobs.begin(), scenario_.jobs.end(),
                         [&](const auto& job) { return holds(job.second); });
    };
    if (!any_job([](const models::JobSpec& j) { return j.software.flash_attention; }))
      for (const char* key : {"attention", "attention_backward", "small_head"})
        idle(std::string("cluster.server.gpu.calibration.") + key, "no job has flash attention");
    else if (!any_job([](const models::JobSpec& j) {
               return j.software.flash_attention && models::head_size(j.model) <= 64;
             }))
      idle("cluster.server.gpu.calibration.small_head", "no job has heads of 64 or less");
    if (!any_job([](const models::JobSpec& j) { return !j.software.flash_attention; }))
      for (const char* key : {"unfused_products", "unfused_bytes"})
        idle(std::string("cluster.server.gpu.calibration.") + key, "all jobs have flash attention");
  }

  void job(const std::string& path, const models::JobSpec& job) {
    if (job.start >= scenario_.duration) {
      out_.lines.push_back(path + ": starts when the simulated time is over");
      return;
    }
    job_life_without_effect(out_, path, job);
    layout(path, job);
    kernels(path + ".software.", job);
  }

  /// Settings of dimensions that the job does not have.
  void layout(const std::string& path, const models::JobSpec& job) {
    const models::ParallelSpec& p = job.parallel;
    const int data =
        p.data.value_or(job.gpus / std::max(1, p.tensor * p.context * p.pipeline)) * p.context;
    const auto unused = [&](const std::string& group, std::initializer_list<const char*> keys,
                            const std::string& reason) {
      for (const char* key : keys) idle(path + group + key, reason);
    };
    if (p.tensor == 1)
      unused("",
             {".parallel.sequence_parallel", ".software.tensor_overlap_forward",
              ".software.tensor_overlap_backward", ".software.tensor_regather",
              ".software.gather_in_fp8"},
             "there is no tensor parallelism (tensor is 1)");
    else if (!p.sequence_parallel)
      unused(".software.", {"tensor_overlap_forward", "tensor_regather", "gather_in_fp8"},
             "only sequence parallelism gathers, and hides traffic in the forward pass, and "
             "sequence_parallel is false");
    else if (models::operands_of(p.precision) == models::Operands::bits16 ||
             p.precision == models::Precision::fp8_rowwise)
      unused(".software.", {"gather_in_fp8"},
             "products are not in FP8 or FP4, or scaled by row and gathered in 16 bit");
    if (p.pipeline == 1)
      unused(".software.", {"overlap_pipeline", "pipeline_overhead"},
             "there is one pipeline stage");
    if (p.context == 1)
      unused("", {".parallel.context_exchange", ".software.context_overhead"},
             "there is no context parallelism (context is 1)");
    else if (p.context_exchange == models::ContextExchange::all_gather)
      unused(".software.", {"context_overhead"},
             "attention is only split by a ring of keys and values (context_exchange)");
    if (data <= 1)
      unused("",
             {".software.overlap_data", ".software.data_slowdown", ".software.bucket",
              ".software.data_rate", ".parallel.sharding", ".parallel.shard_group"},
             "there is one data-parallel replica");
    else if (!job.software.overlap_data)
      unused(".software.", {"data_slowdown"}, "overlap_data is false: nothing runs beside kernels");
    if (p.pipeline == 1 || p.tensor == 1 || p.sequence_parallel)
      unused(
          ".software.", {"scatter_pipeline"},
          "only tensor-parallel ranks without sequence parallelism hold the same activations, and "
          "only a pipeline sends them");
    const bool passes = p.pipeline == 1 && (models::shards_weights(p.sharding) ||
                                            p.sharding == models::Sharding::zero2);
    if (!passes)
      unused(".software.", {"fsdp_exposed", "gathers_per_layer"},
             "no weights or gradients are sharded layer by layer (sharding \"fsdp\", \"zero-3\" or "
             "\"zero-2\" without a pipeline)");
    if (p.pipeline == 1 && models::shards_weights(p.sharding) && !p.shard_group)
      unused(".software.", {"bucket"}, "gradients are reduced layer by layer (sharding)");
    if (models::shards_weights(p.sharding))
      unused(".software.", {"accumulation_bytes"},
             "gradients of sharded weights are scattered as they are made, not added up");
    if (p.recompute == models::Recompute::none)
      unused(".parallel.", {"recompute_share"}, "recompute is \"none\"");
    if (!has_experts(job.model))
      unused(".software.",
             {"expert_overlap", "expert_deduplication", "fused_permute", "expert_permute",
              "fused_experts", "expert_host_floor"},
             "the model has no experts");
    else if (p.expert == 1) {
      unused(".software.", {"expert_deduplication"},
             "there is no expert parallelism (expert is 1)");
      if (p.expert_tensor.value_or(p.tensor) == 1)
        unused(".software.", {"expert_overlap"},
               "experts are not spread over GPUs (expert and expert_tensor are 1)");
    }
  }

  static bool has_experts(const models::TransformerSpec& model) {
    return model.experts || std::any_of(model.layer_table.begin(), model.layer_table.end(),
                                        [](const auto& row) { return row.experts.has_value(); });
  }

  void kernels(const std::string& software, const models::JobSpec& job) {
    if (job.software.cuda_graphs)
      for (const char* key : {"host_floor", "expert_host_floor"})
        idle(software + key, "cuda_graphs is true: the host launches no kernels");
    if (!job.model.latent_attention)
      idle(software + "latent_recompute", "the model has no latent attention");
    if (!job.software.flash_attention)
      idle(software + "attention_rate", "flash_attention is false");
    if (models::operands_of(job.parallel.precision) == models::Operands::bits16)
      idle(software + "cast_bytes", "nothing is quantised in 16-bit precision");
  }

  NoEffectLines out_;
  const Scenario& scenario_;
};

}  // namespace

std::vector<std::string> settings_without_effect(const ReadResult& read) {
  return NoEffect(read).list();
}

}  // namespace trainyard::scenarios
