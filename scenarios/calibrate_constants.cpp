#include "scenarios/calibrate_constants.hpp"

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "models/training/transformer.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

using Places = std::vector<FigurePlace>;

Places gpu(std::initializer_list<const char*> types, const char* key) {
  Places out;
  for (const char* type : types) out.push_back({"calibration", type, key});
  return out;
}
Places every_gpu(const char* key) {
  return {{"calibration", "*", key}};
}
Places stack(std::initializer_list<const char*> stacks, std::initializer_list<const char*> keys) {
  Places out;
  for (const char* name : stacks)
    for (const char* key : keys) out.push_back({"software", name, key});
  return out;
}

// Priors are what a textbook or data sheet suggests, rounded; sigma says how far off it may well
// be: 0.15 for what vendors document, 0.4 for what nobody does. Bounds only keep the search where
// the formulas mean something.
ConstantTable make_table() {
  ConstantTable t;
  t.constants = {
      // Products: rate over peak for long inner dimensions, at the clock that the power limit
      // leaves.
      {"v100 gemm_16bit", 0.85, 0.15, 0.3, 1.0, gpu({"v100"}, "gemm_16bit"),
       "large FP16 products of cuBLAS come near the peak"},
      {"a100 gemm_16bit", 0.82, 0.15, 0.3, 1.0, gpu({"a100"}, "gemm_16bit"),
       "large products reach 250 to 270 of 312 TFLOP/s in public benchmarks"},
      {"h100 gemm_16bit", 0.75, 0.15, 0.3, 1.0, gpu({"h100"}, "gemm_16bit"),
       "at 700 W the clock falls below the one behind the nominal peak"},
      {"h100-500w gemm_16bit", 0.62, 0.2, 0.3, 1.0, gpu({"h100-500w"}, "gemm_16bit"),
       "the same chip at 500 W: a GPU type of its own"},
      {"blackwell gemm_16bit", 0.65, 0.2, 0.3, 1.0,
       gpu({"blackwell", "blackwell-ultra"}, "gemm_16bit"),
       "no BF16 row of B300 or GB300 is published: one value for both types"},
      {"h100 gemm_fp8", 0.70, 0.15, 0.3, 1.0, gpu({"h100"}, "gemm_fp8"),
       "twice the power density of BF16: a little lower than its efficiency"},
      {"blackwell gemm_fp8", 0.62, 0.2, 0.3, 1.0, gpu({"blackwell"}, "gemm_fp8"),
       "scaled by tensor"},
      {"blackwell-ultra gemm_fp8", 0.75, 0.25, 0.3, 1.0, gpu({"blackwell-ultra"}, "gemm_fp8"),
       "same nominal peak, measured much faster: the power limit differs"},
      {"blackwell gemm_mxfp8", 0.62, 0.2, 0.3, 1.0, gpu({"blackwell"}, "gemm_mxfp8"),
       "scaled by blocks of 32 in the tensor core"},
      {"blackwell-ultra gemm_mxfp8", 0.75, 0.25, 0.3, 1.0, gpu({"blackwell-ultra"}, "gemm_mxfp8"),
       "scaled by blocks of 32 in the tensor core"},
      {"blackwell gemm_nvfp4", 0.55, 0.25, 0.2, 1.0, gpu({"blackwell"}, "gemm_nvfp4"),
       "scaled by blocks of 16, over the FP4 peak"},
      {"blackwell-ultra gemm_nvfp4", 0.55, 0.25, 0.2, 1.0, gpu({"blackwell-ultra"}, "gemm_nvfp4"),
       "its FP4 peak is 1.5 times the one of B200"},
      {"h100-500w gemm_fp8_rowwise", 0.35, 0.3, 0.1, 1.0, gpu({"h100-500w"}, "gemm_fp8_rowwise"),
       "kernels scaled row by row reach about half of those scaled by tensor"},

      // Flash attention.
      {"a100 attention", 0.55, 0.2, 0.1, 1.0, gpu({"a100"}, "attention"),
       "FlashAttention-2 reports 0.5 to 0.7 of peak"},
      {"h100 attention", 0.45, 0.3, 0.1, 1.0, gpu({"h100"}, "attention"),
       "cuDNN of 2024; FlashAttention-3 reports up to 0.75 at full clock"},
      {"h100-500w attention", 0.32, 0.3, 0.1, 1.0, gpu({"h100-500w"}, "attention"),
       "the same chip at 500 W, under PyTorch's kernel"},
      {"blackwell attention", 0.65, 0.3, 0.1, 1.0,
       gpu({"blackwell", "blackwell-ultra"}, "attention"),
       "cuDNN of 2025; rows of B300 and GB300 do not determine one of their own"},
      {"attention_backward", 0.75, 0.15, 0.3, 1.5, every_gpu("attention_backward"),
       "five products instead of two, with worse reuse"},
      {"small_head", 0.9, 0.15, 0.3, 1.2, every_gpu("small_head"),
       "heads of 64 fill the tensor cores half as deep"},
      {"unfused_products", 0.6, 0.2, 0.2, 1.0, every_gpu("unfused_products"),
       "batched products per head are small"},

      // The kernel law.
      {"k_half", 120, 0.3, 20, 500, every_gpu("k_half"),
       "prologue and epilogue of an output tile cost as much as so many inner steps"},
      {"wave_penalty", 0.25, 0.4, 0.02, 1.0, every_gpu("wave_penalty"),
       "the last wave of tiles is on average half empty"},

      // Memory-bound work.
      {"elementwise fused", 1.05, 0.15, 1.0, 2.0,
       stack({"deepspeed-pipeline", "deepspeed-zero3", "llama3", "megascale", "megascale-baseline",
              "megatron-2020", "megatron-2021", "megatron-2021-january", "megatron-2022",
              "megatron-bridge*", "megatron-core", "nemo", "torchtitan", "torchtitan-async-tp",
              "vtrain"},
             {"elementwise"}),
       "fused or compiled: close to the least that must move"},
      {"elementwise eager", 2.0, 0.2, 1.0, 4.0,
       stack({"ibm-fsdp", "ibm-fsdp-a100", "llm-foundry", "llm-foundry-a100", "torchtitan-eager"},
             {"elementwise"}),
       "one kernel for each operation writes and reads again what a fused one keeps"},
      {"cast_bytes", 1.0, 0.3, 0.2, 4.0,
       stack({"ibm-fsdp", "ibm-fsdp-a100", "llm-foundry", "llm-foundry-a100", "megatron-bridge*",
              "megatron-core", "nemo"},
             {"cast_bytes"}),
       "Transformer Engine: partly fused into the kernel before"},
      {"cast_bytes torchao", 2.0, 0.3, 0.2, 6.0,
       stack({"torchtitan", "torchtitan-async-tp", "torchtitan-eager"}, {"cast_bytes"}),
       "the largest value is looked for in a pass of its own"},
      {"logit_bytes", 20, 0.3, 6, 60, every_gpu("logit_bytes"),
       "16-bit logits, their FP32 copy, its softmax and gradient, each once"},
      {"fsdp_exposed", 0.5, 0.4, 0.05, 1.0,
       stack({"ibm-fsdp", "ibm-fsdp-a100", "llama3", "llm-foundry", "llm-foundry-a100",
              "megatron-bridge*", "megatron-core", "nemo", "torchtitan", "torchtitan-async-tp",
              "torchtitan-eager"},
             {"fsdp_exposed"}),
       "collectives take SMs and memory bandwidth from the kernels that should hide them"},
      {"data_slowdown",
       0.2,
       0.4,
       0.01,
       1.0,
       {{"software", "*", "data_slowdown"}},
       "collectives take SMs and memory bandwidth from the kernels that hide them: 20 of 132 SMs "
       "in "
       "DeepSeek-V3"},
      {"jitter_per_doubling",
       0.006,
       0.4,
       0.0005,
       0.03,
       {{"software", "*", "jitter_per_doubling"}},
       "a step waits for the slowest of all ranks"},

      // Software stacks.
      {"tensor overlap, user buffers", 0.6, 0.3, 0.05, 0.98,
       stack({"megatron-bridge*", "nemo"}, {"tensor_overlap_forward", "tensor_overlap_backward"}),
       "gathers and scatters cut into pieces behind the product they belong to"},
      {"tensor overlap, Megatron backward", 0.5, 0.3, 0.05, 0.98,
       stack({"megascale-baseline", "megatron-2022", "megatron-core"}, {"tensor_overlap_backward"}),
       "the gradient of the input is reduced behind the product for the weights"},
      {"tensor overlap, asynchronous", 0.5, 0.3, 0.05, 0.98,
       stack({"llama3", "torchtitan-async-tp"},
             {"tensor_overlap_forward", "tensor_overlap_backward"}),
       "point-to-point pieces beside the product: hides less than user buffers"},
      {"attention_rate, llm-foundry on H100", 0.6, 0.3, 0.1, 1.5,
       stack({"llm-foundry"}, {"attention_rate"}), "kernels of 2023, written for A100"},
      {"attention_rate, llm-foundry on A100", 0.8, 0.2, 0.1, 1.5,
       stack({"llm-foundry-a100"}, {"attention_rate"}), "kernels of 2023"},
      {"expert_permute", 1.2, 0.4, 0.3, 8.0,
       stack({"megatron-bridge*", "megatron-core", "nemo"}, {"expert_permute"}),
       "rows are moved one by one, to places that only an index tells"},
      {"expert_host_floor", 3e-3, 0.4, 0.1e-3, 30e-3,
       stack({"megatron-bridge-launched", "megatron-bridge-all-to-all",
              "megatron-bridge-all-to-all-overlap"},
             {"expert_host_floor"}),
       "some hundred launches, and the host waits for the counts of tokens (no CUDA graphs)"},
      {"data_rate, ZeRO-3 of 2021", 0.3, 0.4, 0.03, 1.0, stack({"deepspeed-zero3"}, {"data_rate"}),
       "small gathers, copied through flat buffers"},
      {"pipeline_overhead, DeepSpeed", 0.1, 0.4, 0.005, 0.5,
       stack({"deepspeed-pipeline"}, {"pipeline_overhead"}),
       "its engine synchronises at every instruction"},
      {"host_floor, vTrain", 0.7e-3, 0.4, 0.05e-3, 5e-3, stack({"vtrain"}, {"host_floor"}),
       "measured under a profiler that slows every launch"},
  };
  t.tied = {
      {{"calibration", "h100-500w", "gemm_fp8"},
       {"h100 gemm_fp8", "h100-500w gemm_16bit"},
       {"h100 gemm_16bit"},
       "gemm_fp8 of the 700 W part, scaled as its gemm_16bit"},
      {{"calibration", "h100", "gemm_fp8_rowwise"},
       {"h100-500w gemm_fp8_rowwise", "h100 gemm_16bit"},
       {"h100-500w gemm_16bit"},
       "gemm_fp8_rowwise of the 500 W part, scaled as its gemm_16bit"},
  };
  return t;
}

/// A visitor of describe() that looks for a number under a key.
class KnobFinder {
 public:
  explicit KnobFinder(std::string_view key) : key_(key) {}
  std::optional<Knob> found;

  template <class T>
  void required(std::string_view key, T& member, std::string_view, Range = {}) {
    offer(key, member);
  }
  template <class T>
  void optional(std::string_view key, T& member, std::string_view, Range = {}) {
    offer(key, member);
  }
  template <class T>
  void part(std::string_view, T&, std::string_view, std::string_view) {}
  template <class T>
  void optional_part(std::string_view, T&, std::string_view, std::string_view) {}
  void check(bool, std::string_view, std::string_view) {}

 private:
  template <class T>
  void offer(std::string_view key, T& member) {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, Duration>)
      if (key == key_) found.emplace(member);
  }

  std::string_view key_;
};

template <class Spec>
std::optional<Knob> knob_of(Spec& spec, std::string_view key) {
  KnobFinder finder(key);
  describe(finder, spec);
  return finder.found;
}

bool starts_with_any(std::string_view key, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view s) { return key.starts_with(s); });
}

}  // namespace

std::size_t ConstantTable::index_of(std::string_view name) const {
  const auto found = std::find_if(constants.begin(), constants.end(),
                                  [&](const Constant& c) { return c.name == name; });
  check(found != constants.end(), "a figure is tied to constants of the table", name);
  return std::size_t(found - constants.begin());
}

const ConstantTable& calibrated_constants() {
  static const ConstantTable table = make_table();
  return table;
}

double Knob::value() const {
  return time_ ? to_seconds(*time_) : *number_;
}

void Knob::set(double value) const {
  if (time_)
    *time_ = seconds(value);
  else
    *number_ = value;
}

bool Knob::is_time() const {
  return time_ != nullptr;
}

std::optional<Knob> find_knob(models::GpuCalibration& calibration, std::string_view key) {
  return knob_of(calibration, key);
}
std::optional<Knob> find_knob(models::SoftwareSpec& software, std::string_view key) {
  return knob_of(software, key);
}

bool is_time(const FigurePlace& place) {
  models::GpuCalibration calibration;
  models::SoftwareSpec software;
  const auto knob = place.kind == "calibration" ? find_knob(calibration, place.key)
                                                : find_knob(software, place.key);
  return knob && knob->is_time();
}

bool can_move(std::string_view key, const models::JobSpec& job) {
  using P = models::Precision;
  const models::ParallelSpec& parallel = job.parallel;
  const P precision = parallel.precision;
  const bool is_flash = job.software.flash_attention;
  if (key == "gemm_fp8") return precision == P::fp8;
  if (key == "gemm_fp8_rowwise") return precision == P::fp8_rowwise;
  if (key == "gemm_mxfp8") return precision == P::mxfp8;
  if (key == "gemm_nvfp4") return precision == P::nvfp4;
  if (key == "cast_bytes") return precision != P::bf16 && precision != P::fp16;
  if (key == "small_head")  // heads may differ from layer to layer
    return is_flash && (!job.model.layer_table.empty() || models::head_size(job.model) <= 64);
  if (starts_with_any(key, {"attention"})) return is_flash;
  if (starts_with_any(key, {"unfused"})) return !is_flash;
  if (starts_with_any(key, {"tensor_overlap"})) return parallel.tensor > 1;
  if (key == "expert_host_floor") return job.model.experts && !job.software.cuda_graphs;
  if (starts_with_any(key, {"expert"})) return job.model.experts.has_value();
  if (key == "fsdp_exposed") return models::shards_weights(parallel.sharding);
  if (key == "data_slowdown")
    return job.software.overlap_data && job.gpus > parallel.tensor * parallel.pipeline;
  if (key == "pipeline_overhead") return parallel.pipeline > 1;
  if (key == "jitter_per_doubling") return job.gpus > 8;
  return true;
}

}  // namespace trainyard::scenarios
