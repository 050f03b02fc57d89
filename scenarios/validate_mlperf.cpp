#include "scenarios/validate_mlperf.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "scenarios/validate_training.hpp"

namespace trainyard::scenarios {
namespace {

// Configurations (config_*.sh) of the submissions of NVIDIA and its partners to MLPerf Training,
// closed division: github.com/mlcommons/training_results_v3.0 to _v5.1. The interleave of round
// 4.1 is not recorded in the logs: one layer a chunk, as before.
constexpr std::array layouts{
    SubmittedLayout{"GPT-3 175B", 3.0, 3.1, "H100", "fp8", 4, 8, 1, 12, 1},
    SubmittedLayout{"GPT-3 175B", 4.0, 4.0, "H100", "fp8", 4, 6, 1, 8, 1},
    SubmittedLayout{"GPT-3 175B", 4.0, 4.0, "H100", "fp8", 4, 8, 1, 12, 1},
    SubmittedLayout{"GPT-3 175B", 4.1, 4.1, "H100", "fp8", 4, 8, 1, 12, 2},
    SubmittedLayout{"GPT-3 175B", 4.1, 4.1, "B200", "fp8", 4, 8, 1, 12, 2},
    SubmittedLayout{"Llama 3.1 405B", 5.0, 5.1, "H100", "fp8", 8, 8, 2, 8, 1},
    SubmittedLayout{"Llama 3.1 405B", 5.0, 5.1, "H200", "fp8", 4, 8, 2, 8, 1},
    SubmittedLayout{"Llama 3.1 405B", 5.0, 5.1, "B200", "fp8", 4, 8, 2, 8, 1},
    SubmittedLayout{"Llama 3.1 405B", 5.0, 5.0, "GB200", "fp8", 4, 8, 2, 8, 1},
    SubmittedLayout{"Llama 3.1 405B", 5.1, 5.1, "GB200", "nvfp4", 4, 8, 2, 8, 1},
    SubmittedLayout{"Llama 3.1 405B", 5.1, 5.1, "GB300", "nvfp4", 4, 8, 2, 8, 1}};

struct Network {
  std::string_view benchmark, model, layers, hidden, heads, kv_heads, ffn, gated, vocabulary;
};
// The reference implementations (github.com/mlcommons/training).
constexpr std::array networks{
    Network{"GPT-3 175B", "GPT-3-175B", "96", "12288", "96", "96", "49152", "0", "51200"},
    Network{"Llama 3.1 405B", "Llama-3.1-405B", "126", "16384", "128", "8", "53248", "1",
            "128256"}};

bool serves(const SubmittedLayout& l, std::string_view benchmark, double round,
            std::string_view gpu) {
  return l.benchmark == benchmark && round >= l.first_round && round <= l.last_round &&
         gpu.substr(0, l.gpu.size()) == l.gpu;
}

bool divides(const SubmittedLayout& l, int gpus, int batch) {
  const int replica = l.tensor * l.pipeline * l.context;
  return gpus >= replica && gpus % replica == 0 && batch % (gpus / replica * l.micro_batch) == 0;
}

/// What the submission's configuration says, as a row of a table of training runs.
MadeRow as_training_row(const PublishedTable& table, const TableRow& row, const Network& network,
                        const SubmittedLayout& layout) {
  MadeRow out(table.name, row.line);
  out.add("source", "MLPerf Training v" + std::string(table.text(row, "version")));
  for (const char* column : {"id", "gpu", "gpus", "seq", "global_batch_seqs"})
    out.add(column, table.text(row, column));
  out.add("iter_time_s", table.text(row, "step_median_s"));
  out.add("model", network.model);
  out.add("layers", network.layers);
  out.add("hidden", network.hidden);
  out.add("heads", network.heads);
  out.add("kv_heads", network.kv_heads);
  out.add("ffn", network.ffn);
  out.add("gated_mlp", network.gated);
  out.add("vocab", network.vocabulary);
  out.add("tp", layout.tensor);
  out.add("pp", layout.pipeline);
  out.add("cp", layout.context);
  out.add("vp", layout.chunks);
  out.add("micro_batch", layout.micro_batch);
  out.add("schedule", "1F1B interleaved");
  out.add("sequence_parallel", "1");
  out.add("recompute", "none");
  out.add("precision", layout.precision);
  return out;
}

std::string jitter_class(double p95_over_median) {
  if (p95_over_median < 1.01) return "P95 within 1 % of the median";
  return p95_over_median < 1.03 ? "P95 within 3 % of the median" : "P95 further off";
}

RowResult predict(const RowPredictor& training, const PublishedTable& table, const TableRow& row,
                  std::vector<Diagnostic>& mistakes) {
  if (!table.number(row, "step_median_s", mistakes)) return SkipReason("no time of a step stated");
  const std::string_view benchmark = table.text(row, "benchmark"), gpu = table.text(row, "gpu");
  const double round = table.number(row, "version", mistakes).value_or(0);
  const auto network = std::find_if(networks.begin(), networks.end(),
                                    [&](const Network& n) { return n.benchmark == benchmark; });
  if (network == networks.end()) return "benchmark " + in_quotes(benchmark) + " is not known";
  const int gpus = int(table.number(row, "gpus", mistakes).value_or(0));
  const int batch = int(table.number(row, "global_batch_seqs", mistakes).value_or(0));
  const auto layout = std::find_if(layouts.begin(), layouts.end(), [&](const SubmittedLayout& l) {
    return serves(l, benchmark, round, gpu) && divides(l, gpus, batch);
  });
  if (layout == layouts.end())
    return SkipReason("no layout known for this benchmark, round, GPU and size");
  const MadeRow made = as_training_row(table, row, *network, *layout);
  RowResult result = training(made.table(), made.row(), mistakes);
  if (auto* p = std::get_if<RowPrediction>(&result)) {
    p->rules.emplace_back("layout not in the table: that of the round's submissions");
    p->groups.emplace_back("round", std::string(table.text(row, "version")));
    p->groups.emplace_back("submitter", std::string(table.text(row, "submitter")));
    const auto p95 = table.number(row, "step_p95_s", mistakes);
    p->groups.emplace_back("jitter",
                           p95 ? jitter_class(*p95 / p->published) : std::string("not stated"));
  }
  return result;
}

RowPredictor start(const ValidationSetup& setup) {
  return [training = training_table().start(setup)](
             const PublishedTable& table, const TableRow& row, std::vector<Diagnostic>& mistakes) {
    return predict(training, table, row, mistakes);
  };
}

}  // namespace

std::optional<SubmittedLayout> submitted_layout(std::string_view benchmark, double round,
                                                std::string_view gpu) {
  for (const SubmittedLayout& l : layouts)
    if (serves(l, benchmark, round, gpu)) return l;
  return std::nullopt;
}

TableKind mlperf_table() {
  return {.name = "mlperf",
          .required = {"benchmark", "version", "gpu", "gpus", "global_batch_seqs", "seq",
                       "step_median_s"},
          .one_of = {},
          .predict = nullptr,
          .start = start,
          .quantity = {.name = "step time", .column = "time_s", .unit = "s", .per_unit = 1},
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
