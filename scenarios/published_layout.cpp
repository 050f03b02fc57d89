#include "scenarios/published_layout.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace trainyard::scenarios {
namespace {

using models::JobSpec;
using models::ParallelSpec;
using models::Schedule;
using models::Sharding;
using Rules = std::vector<std::string>;

void read_sharding_of(const PublishedRow& row, const PublishedStack& stack, ParallelSpec& p,
                      Rules& rules) {
  switch (read_sharding(row.text("zero_stage"), p.sharding)) {
    case SharedText::known:
      if (p.sharding == Sharding::none && stack.lists_only_fsdp) p.sharding = stack.sharding;
      return;
    case SharedText::not_given:
      p.sharding = stack.sharding;
      rules.emplace_back("sharding not given: that of the stack");
      return;
    case SharedText::unknown:
      p.sharding = stack.sharding;
      rules.emplace_back("sharding not understood: that of the stack");
  }
}

/// Wide experts (Grok, Mixtral) are split over tensor-parallel ranks like the rest, if a stage has
/// the ranks for it. Those narrower than the model (DeepSeek, Qwen) are kept whole: recipes set
/// expert_tensor_parallel_size 1, as slices of them would be too small to multiply well.
void set_expert_tensor(const PublishedStack& stack, const JobSpec& job, ParallelSpec& p,
                       Rules& rules) {
  if (!job.model.experts || p.tensor == 1) return;
  const int stage_ranks = job.gpus / p.pipeline;
  const bool is_narrow = job.model.experts->ffn.value_or(job.model.ffn) < job.model.hidden;
  if (!stack.whole_experts && !is_narrow && stage_ranks % (p.expert * p.tensor) == 0) return;
  p.expert_tensor = 1;
  if (!stack.whole_experts)
    rules.emplace_back(
        "tensor-parallel size of experts not given: 1, they are narrow or it does not divide");
}

int largest_divisor(int n, int most) {
  for (int d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

int data_size(const JobSpec& job) {
  const ParallelSpec& p = job.parallel;
  return job.gpus / (p.tensor * p.pipeline * p.context);
}

/// Chunks of a stage that holds so many layers, where a row gives none.
int chunks_of(MissingChunks rule, int layers_of_stage) {
  switch (rule) {
    case MissingChunks::one:
      return 1;
    case MissingChunks::two:
      return 2;
    case MissingChunks::two_or_three:
      return layers_of_stage % 2 == 0 ? 2 : layers_of_stage % 3 == 0 ? 3 : 1;
    case MissingChunks::four:
      return 4;
    case MissingChunks::eight:
      return 8;
    case MissingChunks::layers:
      return layers_of_stage;
  }
  return 1;
}

std::string_view text_of(MissingChunks rule) {
  switch (rule) {
    case MissingChunks::one:
      return "chunks not given: 1";
    case MissingChunks::two:
      return "chunks not given: 2 (torchtitan)";
    case MissingChunks::two_or_three:
      return "chunks not given: 2 or 3, whichever divides (SC'21)";
    case MissingChunks::four:
      return "chunks not given: 4 (Megatron-Core)";
    case MissingChunks::eight:
      return "chunks not given: 8 (Llama 3)";
    case MissingChunks::layers:
      return "chunks not given: one layer each (MLPerf)";
  }
  return "";
}

/// What the stages compute beside the layers, in layers: embedding and head; with further
/// predictions a layer and a head for each, and the embedding counts nothing (layouts of
/// Megatron-Bridge, recipes/deepseek/deepseek_v3.py).
int beside_layers(int extra_predictions) {
  return extra_predictions == 0 ? 2 : 1 + 2 * extra_predictions;
}

/// `units` over `parts`, the first ones one more.
int share_of(int units, int parts, int i) {
  return units / parts + (i < units % parts ? 1 : 0);
}

}  // namespace

std::string read_parallelism(const PublishedRow& row, const PublishedStack& stack, JobSpec& job,
                             Rules& rules) {
  ParallelSpec& p = job.parallel;
  const auto tensor = row.count("tp"), pipeline = row.count("pp");
  if (!tensor || !pipeline) return "parallel layout not stated";
  p.tensor = *tensor;
  p.pipeline = *pipeline;
  p.context = row.count("cp").value_or(1);
  p.expert = row.count("ep").value_or(1);
  if (p.expert > 1 && !job.model.experts) return "expert parallelism without experts";
  const std::int64_t replica = std::int64_t{p.tensor} * p.pipeline * p.context;
  if (replica > job.gpus || job.gpus % replica != 0) return "layout does not multiply to the GPUs";
  if (const auto data = row.count("dp"); data && *data != data_size(job))
    rules.emplace_back("data-parallel size contradicts the GPUs: GPUs / (TP PP CP)");
  read_sharding_of(row, stack, p, rules);
  const auto split = row.flag("sequence_parallel");
  p.sequence_parallel = split.value_or(stack.sequence_parallel);
  if (!split && p.tensor > 1)
    rules.emplace_back("sequence parallelism not given: that of the stack");
  if (p.sequence_parallel && job.sequence / p.context % p.tensor != 0) p.sequence_parallel = false;
  p.order = std::string(stack.order);
  p.context_exchange = stack.context_exchange;
  set_expert_tensor(stack, job, p, rules);
  return {};
}

std::string read_batch(const PublishedRow& row, const PublishedStack& stack, JobSpec& job,
                       Rules& rules) {
  const auto batch = row.count("global_batch_seqs");
  if (!batch) return "batch not stated";
  ParallelSpec& p = job.parallel;
  const int data = data_size(job);
  if (*batch < data) return "fewer sequences than replicas";
  const int of_replica = (*batch + data / 2) / data;
  job.global_batch = of_replica * data;
  if (job.global_batch != *batch)
    rules.emplace_back("batch is no multiple of the replicas: the nearest one");

  const auto given = row.count("micro_batch"), accumulated = row.count("grad_accum");
  int wanted = given.value_or(1);
  if (accumulated && of_replica % *accumulated == 0) {
    wanted = of_replica / *accumulated;
  } else if (stack.has_local_batch && p.pipeline > 1) {
    wanted = std::max(1, of_replica / p.pipeline);
    rules.emplace_back("local batch: one micro-batch for each stage (torchtitan)");
  } else if (!given) {
    wanted = p.pipeline == 1 ? of_replica : 1;
    rules.emplace_back(
        "micro-batch not given: all sequences of a replica without pipeline, else 1");
  }
  p.micro_batch = largest_divisor(of_replica, wanted);
  if (p.micro_batch != wanted)
    rules.emplace_back("micro-batch does not divide the sequences of a replica: the next smaller");
  return {};
}

void read_schedule(const PublishedRow& row, const PublishedStack& stack, JobSpec& job,
                   Rules& rules) {
  ParallelSpec& p = job.parallel;
  const std::string_view words = row.text("schedule");
  p.schedule = Schedule::one_f_one_b;
  p.chunks = 1;
  if (p.pipeline > 1) {
    const bool is_plain = mentions(words, "1F1B") && !mentions(words, "interleaved");
    const auto given = row.count("vp");
    const int layers = job.model.layers;
    const int of_stage =
        (layers % p.pipeline == 0 ? layers : layers + beside_layers(job.model.extra_predictions)) /
        p.pipeline;
    p.chunks = given ? *given : is_plain ? 1 : chunks_of(stack.missing_chunks, of_stage);
    if (!given && !is_plain) rules.emplace_back(text_of(stack.missing_chunks));
    if (p.chunks > std::max(1, of_stage)) {
      p.chunks = std::max(1, of_stage);
      rules.emplace_back("more chunks than layers of a stage: one layer each");
    }
    const int micro_batches = job.global_batch / (data_size(job) * p.micro_batch);
    if (p.chunks > 1 && micro_batches % p.pipeline != 0) {
      p.chunks = 1;
      rules.emplace_back("micro-batches are no multiple of the stages: not interleaved");
    }
    if (p.chunks > 1)
      p.schedule = Schedule::interleaved;
    else if (mentions(words, "gpipe"))
      p.schedule = Schedule::gpipe;
    else if (mentions(words, "dualpipe") || mentions(words, "zero"))
      p.schedule = Schedule::zero_bubble;
  }
  p.stage_layers =
      divided_layers(job.model.layers, p.pipeline, p.chunks, job.model.extra_predictions);
  if (!p.stage_layers.empty())
    rules.emplace_back(
        "layers do not divide: embedding, or further predictions, and heads count as a layer each");
}

std::vector<int> divided_layers(int layers, int pipeline, int chunks, int extra_predictions) {
  const int parts = pipeline * chunks;
  if (parts == 1) return {};
  if (layers % parts == 0 || (extra_predictions == 0 && (layers + 2) % parts == 0)) return {};
  // Stages alike where they can be, chunk by chunk; else all virtual stages as equal as possible.
  const bool is_even = layers % pipeline == 0;
  const int units = is_even ? layers : layers + beside_layers(extra_predictions);
  std::vector<int> out(static_cast<std::size_t>(parts));
  for (int v = 0; v < parts; ++v)
    out[std::size_t(v)] = units % pipeline == 0 ? share_of(units / pipeline, chunks, v / pipeline)
                                                : share_of(units, parts, parts - 1 - v);
  if (is_even) return out;
  // What is no layer is taken from the ends; what an end cannot give, its neighbours give.
  const auto take = [&](int from, int step, int count) {
    for (int v = from; count > 0 && v >= 0 && v < parts; v += step) {
      const int given = std::min(out[std::size_t(v)], count);
      out[std::size_t(v)] -= given;
      count -= given;
    }
  };
  const int at_start = extra_predictions == 0 ? 1 : 0;
  take(0, 1, at_start);
  take(parts - 1, -1, beside_layers(extra_predictions) - at_start);
  return out;
}

std::string read_precision(const PublishedRow& row, JobSpec& job, Rules& rules) {
  using P = models::Precision;
  const std::string_view words = row.text("precision");
  P& p = job.parallel.precision;
  if (mentions(words, "mxfp8"))
    p = P::mxfp8;
  else if (mentions(words, "fp4"))
    p = P::nvfp4;
  else if (mentions(words, "fp8"))
    p = mentions(words, "row") ? P::fp8_rowwise : P::fp8;
  else if (mentions(words, "bf16"))
    p = P::bf16;
  else if (mentions(words, "fp16"))
    p = P::fp16;
  else
    return words.empty() ? "precision not stated"
                         : "precision " + in_quotes(words) + " is not modelled";
  if (mentions(words, "assumed")) rules.emplace_back("precision assumed by the table");
  return {};
}

}  // namespace trainyard::scenarios
