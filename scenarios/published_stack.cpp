#include "scenarios/published_stack.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace trainyard::scenarios {
namespace {

using models::Sharding;
using S = MeaningOfSelective;

/// What tells the recipes of models with experts apart.
struct ExpertRecipe {
  bool has_experts = false;      // true: only models with experts
  std::string_view gpu{};        // how the column gpu starts; empty: any
  std::string_view model{};      // a word of the column model; empty: any
  std::string_view precision{};  // of the column precision; empty: any
  int release = 0;               // least container release: 26.04.01 is 260401; 0: any
};

struct StackRow {
  std::string_view source;    // a word of the column source
  std::string_view software;  // of the column software; empty: any
  std::string_view sharding;  // of the column zero_stage; empty: any
  std::string_view note;      // of the column note; empty: any
  PublishedStack stack;
  ExpertRecipe recipe{};
};

constexpr StackRow bridge(std::string_view software, ExpertRecipe recipe) {
  return {"Megatron-Bridge",
          "",
          "",
          "",
          {.name = "Megatron-Bridge",
           .software = software,
           .leaves_out_recompute = true,
           .lists_only_fsdp = true,
           .whole_experts = true},
          recipe};
}

// The first row whose words are all there. Where they come from:
//   Megatron-LM of 2020 and 2021: no sequence parallelism, replicated optimizer, data-parallel
//     groups inside pipeline stages (arXiv 2104.04473); interleaving with SC'21.
//   Llama 3: rank order TP, CP, PP, DP and sharded optimizer and gradients (arXiv 2407.21783, 3.3).
//   torchtitan: local batch, pipeline cut into one micro-batch a stage by default, per-operation
//     selective checkpointing (its README and configuration reference).
//   NeMo, Megatron-Bridge, MLPerf recipes: distributed optimizer, sequence parallelism with tensor
//     parallelism; Megatron-Bridge's pages tell only FSDP from the rest, its recipes set
//     expert_tensor_parallel_size 1 and offers fine-grained recomputation and activation offloading
//     that its performance summary does not list. Recipes with experts differ by machine and
//     release (scripts/performance/configs of v0.3.0 to v0.5.0, containers 26.02 to 26.06):
//     GB200 and GB300: HybridEP, layer-wise CUDA graphs, exchanges not hidden; since 26.06 in MXFP8
//       one graph of the whole step, exchanges beside the other pass, fused grouped products;
//     B200, B300, H100: no graphs; HybridEP or DeepEP, and for Qwen3-235B the plain all-to-all
//       (hidden on H100; HybridEP on B300 since 26.04.01); DeepSeek-V3 on B200 since 26.04.01
//       layer-wise graphs, DeepEP, hidden.
constexpr std::array stacks{
    StackRow{"vTrain",
             "",
             "",
             "",
             {.name = "vTrain",
              .software = "vtrain",
              .sharding = Sharding::none,
              .sequence_parallel = false}},
    StackRow{"SC 2021",
             "",
             "3",
             "",
             {.name = "ZeRO-3 2021",
              .software = "deepspeed-zero3",
              .sharding = Sharding::zero3,
              .sequence_parallel = false}},
    StackRow{"SC 2021",
             "",
             "",
             "",
             {.name = "SC'21",
              .software = "megatron-2021",
              .sharding = Sharding::none,
              .sequence_parallel = false,
              .missing_chunks = MissingChunks::two_or_three}},
    StackRow{"January 2021",
             "",
             "",
             "",
             {.name = "Megatron January 2021",
              .software = "megatron-2021-january",
              .sharding = Sharding::none,
              .sequence_parallel = false}},
    StackRow{"Megatron-LM repository, 2020",
             "",
             "",
             "",
             {.name = "Megatron 2020",
              .software = "megatron-2020",
              .sharding = Sharding::none,
              .sequence_parallel = false}},
    StackRow{"Korthikanti",
             "",
             "",
             "",
             {.name = "Korthikanti", .software = "megatron-2022", .sharding = Sharding::none}},
    StackRow{"Megatron-Core",
             "",
             "",
             "",
             {.name = "Megatron-Core",
              .software = "megatron-core",
              .missing_chunks = MissingChunks::four}},
    StackRow{"Llama 3 Herd",
             "",
             "",
             "",
             {.name = "Llama 3",
              .software = "llama3",
              .sharding = Sharding::zero2,
              .missing_chunks = MissingChunks::eight,
              .order = "tp-cp-pp-dp",
              .context_exchange = models::ContextExchange::all_gather}},
    StackRow{"MegaScale:",
             "Megatron",
             "",
             "",
             {.name = "MegaScale baseline", .software = "megascale-baseline"}},
    StackRow{"MegaScale:",
             "baseline",
             "",
             "",
             {.name = "MegaScale baseline", .software = "megascale-baseline"}},
    StackRow{"MegaScale:", "", "", "", {.name = "MegaScale", .software = "megascale"}},
    StackRow{"Megatron-Turing",
             "",
             "",
             "",
             {.name = "MT-NLG",
              .software = "deepspeed-pipeline",
              .sharding = Sharding::none,
              .sequence_parallel = false}},
    StackRow{"BLOOM",
             "",
             "",
             "",
             {.name = "BLOOM", .software = "deepspeed-pipeline", .sequence_parallel = false}},
    StackRow{"PyTorch FSDP",
             "",
             "",
             "",
             {.name = "IBM FSDP",
              .software = "ibm-fsdp",
              .sharding = Sharding::fsdp,
              .selective = S::per_block}},
    StackRow{"torchtitan",
             "",
             "",
             "no async TP",
             {.name = "torchtitan",
              .software = "torchtitan",
              .sharding = Sharding::fsdp,
              .missing_chunks = MissingChunks::two,
              .selective = S::per_operation,
              .has_local_batch = true}},
    StackRow{"torchtitan",
             "",
             "",
             "async TP",
             {.name = "torchtitan",
              .software = "torchtitan-async-tp",
              .sharding = Sharding::fsdp,
              .missing_chunks = MissingChunks::two,
              .selective = S::per_operation,
              .has_local_batch = true}},
    StackRow{"torchtitan",
             "",
             "",
             "eager",
             {.name = "torchtitan",
              .software = "torchtitan-eager",
              .sharding = Sharding::fsdp,
              .missing_chunks = MissingChunks::two,
              .selective = S::per_operation,
              .has_local_batch = true}},
    StackRow{"torchtitan",
             "",
             "",
             "",
             {.name = "torchtitan",
              .software = "torchtitan",
              .sharding = Sharding::fsdp,
              .missing_chunks = MissingChunks::two,
              .selective = S::per_operation,
              .has_local_batch = true}},
    StackRow{"MLPerf",
             "",
             "",
             "",
             {.name = "MLPerf", .software = "nemo", .missing_chunks = MissingChunks::layers}},
    StackRow{"DGX Cloud", "", "", "", {.name = "DGX Cloud recipes", .software = "nemo"}},
    StackRow{"dgxc", "", "", "", {.name = "DGX Cloud recipes", .software = "nemo"}},
    bridge("megatron-bridge-fused",
           {.has_experts = true, .gpu = "GB", .precision = "mxfp8", .release = 260600}),
    bridge("megatron-bridge-experts", {.has_experts = true, .gpu = "GB"}),
    bridge("megatron-bridge-experts-overlap",
           {.has_experts = true, .gpu = "B200", .model = "DeepSeek", .release = 260401}),
    bridge("megatron-bridge-all-to-all-overlap",
           {.has_experts = true, .gpu = "H100", .model = "Qwen3-235B"}),
    bridge("megatron-bridge-launched",
           {.has_experts = true, .gpu = "B300", .model = "Qwen3-235B", .release = 260401}),
    bridge("megatron-bridge-all-to-all", {.has_experts = true, .model = "Qwen3-235B"}),
    bridge("megatron-bridge-launched", {.has_experts = true}), bridge("megatron-bridge", {}),
    StackRow{"llm-foundry",
             "",
             "",
             "",
             {.name = "llm-foundry", .software = "llm-foundry", .sharding = Sharding::fsdp}},
    // What follows guesses from the sharding alone.
    StackRow{"",
             "",
             "FSDP",
             "",
             {.name = "FSDP, other",
              .software = "ibm-fsdp",
              .sharding = Sharding::fsdp,
              .is_known = false}},
    StackRow{"",
             "",
             "3",
             "",
             {.name = "ZeRO-3, other",
              .software = "deepspeed-zero3",
              .sharding = Sharding::zero3,
              .is_known = false}},
    StackRow{"", "", "", "", {.name = "other", .software = "megatron-core", .is_known = false}}};

bool equal_ignoring_case(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// "… container release 26.04.01 NeMo Container" as 260401, 26.04 as 260400; 0 if none is named.
int release_of(std::string_view source) {
  constexpr std::string_view word = "container release ";
  const auto at = source.find(word);
  if (at == source.npos) return 0;
  int parts[3] = {0, 0, 0};
  std::size_t part = 0;
  for (const char c : source.substr(at + word.size())) {
    if (c >= '0' && c <= '9')
      parts[part] = 10 * parts[part] + (c - '0');
    else if (c != '.' || ++part == 3)
      break;
  }
  return (100 * parts[0] + parts[1]) * 100 + parts[2];
}

bool is_for(const ExpertRecipe& recipe, const StackHints& hints) {
  return (hints.has_experts || !recipe.has_experts) && hints.gpu.starts_with(recipe.gpu) &&
         mentions(hints.model, recipe.model) && mentions(hints.precision, recipe.precision) &&
         release_of(hints.source) >= recipe.release;
}

}  // namespace

bool mentions(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(), equal_ignoring_case) !=
             text.end() ||
         word.empty();
}

const PublishedStack& stack_of(const StackHints& hints) {
  const auto found = std::find_if(stacks.begin(), stacks.end(), [&](const StackRow& row) {
    return mentions(hints.source, row.source) && mentions(hints.software, row.software) &&
           mentions(hints.sharding, row.sharding) && mentions(hints.note, row.note) &&
           is_for(row.recipe, hints);
  });
  return found->stack;  // the last row asks for nothing
}

SharedText read_sharding(std::string_view text, models::Sharding& sharding) {
  if (text.empty()) return SharedText::not_given;
  const auto is = [&](Sharding s) {
    sharding = s;
    return SharedText::known;
  };
  if (mentions(text, "no reshard") || mentions(text, "grad")) return is(Sharding::zero2);
  if (mentions(text, "fsdp")) return is(Sharding::fsdp);
  if (mentions(text, "none") || text == "ddp" || text == "DDP") return is(Sharding::none);
  const auto digit =
      std::find_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digit == text.end() || *digit > '3') return SharedText::unknown;
  constexpr std::array stages{Sharding::none, Sharding::zero1, Sharding::zero2, Sharding::zero3};
  return is(stages[std::size_t(*digit - '0')]);
}

}  // namespace trainyard::scenarios
