#include "scenarios/validate_memory.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <regex>

#include "models/training/memory.hpp"
#include "models/training/plan.hpp"
#include "scenarios/published_run.hpp"

namespace trainyard::scenarios {
namespace {

struct Shape {
  std::string_view model;  // beginning of its name
  int layers, hidden, heads, kv_heads, ffn, gated, vocabulary;
};
// Korthikanti et al. 2022, table 3; The Llama 3 Herd of Models (2024), table 3.
constexpr std::array shapes{Shape{"GPT-22B", 48, 6144, 64, 64, 24576, 0, 51200},
                            Shape{"GPT-175B", 96, 12288, 96, 96, 49152, 0, 51200},
                            Shape{"GPT-530B", 105, 20480, 128, 128, 81920, 0, 51200},
                            Shape{"GPT-1000B", 128, 25600, 160, 160, 102400, 0, 51200},
                            Shape{"GPT-1T", 128, 25600, 160, 160, 102400, 0, 51200},
                            Shape{"Llama-3.1-8B", 32, 4096, 32, 8, 14336, 1, 128256},
                            Shape{"Llama-3.1-70B", 80, 8192, 64, 8, 28672, 1, 128256},
                            Shape{"Llama-3.1-405B", 126, 16384, 128, 8, 53248, 1, 128256}};

struct Layout {
  std::string_view model;
  int pipeline, chunks, micro_batch, batch;
};
// Korthikanti et al. 2022, table 3: tensor-parallel size 8, one replica.
constexpr std::array layouts{Layout{"GPT-22B", 1, 1, 4, 4}, Layout{"GPT-175B", 8, 3, 1, 64},
                             Layout{"GPT-530B", 35, 3, 1, 280}, Layout{"GPT-1", 64, 1, 1, 512}};

template <class Named, std::size_t n>
const Named* named(const std::array<Named, n>& all, std::string_view model) {
  const Named* best = nullptr;
  for (const Named& x : all)
    if (model.substr(0, x.model.size()) == x.model &&
        (!best || x.model.size() > best->model.size()))
      best = &x;
  return best;
}

std::optional<int> number_in(std::string_view text, const char* pattern) {
  const std::regex words(pattern, std::regex::icase);
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(text.begin(), text.end(), found, words)) return std::nullopt;
  const std::string digits = found[1].str();
  int value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return problem == std::errc{} && value > 0 ? std::optional(value) : std::nullopt;
}

void add_shape(MadeRow& row, const Shape& s) {
  row.add("model", s.model);
  row.add("layers", s.layers);
  row.add("hidden", s.hidden);
  row.add("heads", s.heads);
  row.add("kv_heads", s.kv_heads);
  row.add("ffn", s.ffn);
  row.add("gated_mlp", s.gated);
  row.add("vocab", s.vocabulary);
  row.add("iter_time_s", 1);  // not looked at
}

/// "no recompute, no sequence parallel", "sequence parallel + selective", "full recompute".
MadeRow korthikanti_row(const MadeRow& empty, const Shape& shape, const Layout& l,
                        std::string_view mode) {
  MadeRow row = empty;
  add_shape(row, shape);
  row.add("source", "Korthikanti et al.");
  row.add("seq", 2048);
  row.add("global_batch_seqs", l.batch);
  row.add("micro_batch", l.micro_batch);
  row.add("tp", 8);
  row.add("pp", l.pipeline);
  row.add("vp", l.chunks);
  row.add("schedule", "1F1B interleaved");
  row.add("precision", "fp16");
  row.add("gpu", "A100-80GB");
  row.add("gpus", 8 * l.pipeline);
  row.add("gpus_per_node", 8);
  row.add("sequence_parallel",
          mentions(mode, "sequence parallel") && !mentions(mode, "no sequence") ? "1" : "0");
  row.add("recompute", mentions(mode, "selective") ? "selective"
                       : mentions(mode, "full")    ? "full"
                                                   : "none");
  return row;
}

/// "256 GPUs FSDP32 TP8, local batch 16, full recompute fp8". What torchtitan's reports leave out:
/// local batch 2, sequences of 8,192, selective recomputation, BF16.
std::optional<MadeRow> torchtitan_row(const MadeRow& empty, const Shape& shape,
                                      std::string_view mode) {
  const auto gpus = number_in(mode, R"((\d+)\s+GPUs)");
  if (!gpus) return std::nullopt;
  MadeRow row = empty;
  add_shape(row, shape);
  const int tensor = number_in(mode, R"(\bTP\s*(\d+))").value_or(1);
  const int pipeline = number_in(mode, R"(\bPP\s*(\d+))").value_or(1);
  const int context = number_in(mode, R"(\bCP\s*(\d+))").value_or(1);
  const int batch = number_in(mode, R"(local batch\s+(\d+))").value_or(context > 1 ? 1 : 2);
  const int sequence = number_in(mode, R"(seq\s+(\d+))").value_or(8192);
  const int replicas = std::max(1, *gpus / (tensor * pipeline * context));
  // Sequences beyond 8,192 leave room for one of them (torchtitan, table 2).
  const int of_replica = number_in(mode, R"(local batch\s+(\d+))") || sequence <= 8192 ? batch : 1;
  row.add("source", "torchtitan");
  row.add("note", mentions(mode, "eager") ? "eager" : "torch.compile");
  row.add("seq", sequence);
  row.add("global_batch_seqs", of_replica * replicas);
  row.add("micro_batch", of_replica);
  row.add("tp", tensor);
  row.add("pp", pipeline);
  row.add("cp", context);
  row.add("schedule", mentions(mode, "interleaved") ? "1F1B interleaved" : "1F1B");
  row.add("zero_stage", "FSDP2 full shard");
  row.add("precision", mentions(mode, "fp8") ? "fp8" : "bf16");
  row.add("gpu", "H100-96GB");
  row.add("gpus", *gpus);
  row.add("gpus_per_node", 8);
  row.add("recompute", mentions(mode, "full")        ? "full"
                       : mentions(mode, "no recomp") ? "none"
                                                     : "selective");
  return row;
}

class MemoryPredictor {
 public:
  RowResult predict(const PublishedTable& table, const TableRow& row,
                    std::vector<Diagnostic>& mistakes) {
    const std::string_view model = table.text(row, "model"), mode = table.text(row, "mode");
    const std::string_view quantity = table.text(row, "quantity");
    const Shape* shape = named(shapes, model);
    if (!shape) return "model " + in_quotes(model) + " is not known";
    const MadeRow empty(table.name, row.line);
    RowPrediction out;
    out.groups = {{"quantity", std::string(quantity)}, {"model", std::string(model)}};
    const auto gib = table.number(row, "gib_per_gpu", mistakes);
    const auto percent = table.number(row, "percent_of_none", mistakes);
    if (mentions(quantity, "activations")) {
      const Layout* layout = named(layouts, model);
      if (!layout) return "no layout known of model " + in_quotes(model);
      const auto kept = kept_gib(korthikanti_row(empty, *shape, *layout, mode), mistakes, out);
      if (const auto* reason = std::get_if<SkipReason>(&kept)) return *reason;
      out.predicted = std::get<double>(kept);
      if (gib) {
        out.published = *gib;
        return out;
      }
      if (!percent) return SkipReason("no memory stated");
      if (mode == "none") return SkipReason("the base of others: 100 % by definition");
      const auto whole = kept_gib(korthikanti_row(empty, *shape, *layout, ""), mistakes, out);
      out.published = *percent;
      out.predicted *= 100 / std::get<double>(whole);
      out.in_points = true;
      return out;
    }
    if (!mentions(quantity, "reserved") && !mentions(quantity, "allocated"))
      return "quantity " + in_quotes(quantity) + " is not modelled";
    if (!gib) return SkipReason("no memory stated");
    const auto made = torchtitan_row(empty, *shape, mode);
    if (!made) return SkipReason("the run is not described");
    out.published = *gib;
    return allocated_gib(*made, mistakes, std::move(out));
  }

 private:
  static constexpr double gib_bytes = 1024.0 * 1024.0 * 1024.0;

  std::variant<double, SkipReason> kept_gib(const MadeRow& made, std::vector<Diagnostic>& mistakes,
                                            RowPrediction& out) {
    auto read = published_run(made.table(), made.row(), shelf_, mistakes);
    if (auto* reason = std::get_if<SkipReason>(&read)) return std::move(*reason);
    const auto& run = std::get<PublishedRun>(read);
    describe(run, out);
    return models::kept_activations(models::make_plan(run.job), run.job.software, 0).value() /
           gib_bytes;
  }

  RowResult allocated_gib(const MadeRow& made, std::vector<Diagnostic>& mistakes,
                          RowPrediction out) {
    auto read = published_run(made.table(), made.row(), shelf_, mistakes);
    if (auto* reason = std::get_if<SkipReason>(&read)) return std::move(*reason);
    const auto& run = std::get<PublishedRun>(read);
    describe(run, out);
    const models::MemoryEstimate memory = models::memory_estimate(
        models::make_plan(run.job), run.job.software, run.machine.cluster.server.gpu);
    out.predicted =
        models::allocated(memory.stages[std::size_t(memory.fullest_stage())]).value() / gib_bytes;
    return out;
  }

  static void describe(const PublishedRun& run, RowPrediction& out) {
    out.method = run.software_part;
    out.uncertainty = Uncertainty::extrapolated;  // counted from shapes, nothing of it is fitted
  }

  PublishedShelf shelf_;
};

RowPredictor start(const ValidationSetup&) {
  return [predictor = std::make_shared<MemoryPredictor>()](
             const PublishedTable& table, const TableRow& row, std::vector<Diagnostic>& mistakes) {
    return predictor->predict(table, row, mistakes);
  };
}

}  // namespace

TableKind memory_table() {
  return {.name = "memory",
          .required = {"model", "quantity", "mode"},
          .one_of = {"gib_per_gpu", "percent_of_none"},
          .predict = nullptr,
          .start = start,
          .quantity = {.name = "memory", .column = "gib", .unit = "GiB", .per_unit = 1},
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
