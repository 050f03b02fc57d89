#include "scenarios/published_run.hpp"

#include <cmath>

#include "models/training/plan.hpp"
#include "models/training/stage_costs.hpp"
#include "scenarios/published_layout.hpp"
#include "scenarios/published_model.hpp"

namespace trainyard::scenarios {
namespace {

/// MegaScale trains another network than its baseline: attention and feed-forward block side by
/// side, and attention within a window (arXiv 2402.15627, 3.1). The window is not stated; its
/// ablation (table 3) fits one that leaves 0.6 of the causal work.
constexpr double megascale_window_work = 0.6;
constexpr std::string_view megascale_software = "megascale";

/// A window of w tokens of s leaves 2 w/s - (w/s)^2 of the causal work.
int window_for(double share_of_work, int sequence) {
  return int(std::lround(double(sequence) * (1 - std::sqrt(1 - share_of_work))));
}

std::string or_not_stated(std::string_view text) {
  return text.empty() ? "not stated" : std::string(text);
}

/// "Narayanan et al., Efficient Large-Scale …, SC 2021" to its first two parts.
std::string short_paper(std::string_view source) {
  const std::size_t first = source.find(',');
  if (first == source.npos) return or_not_stated(source);
  const std::size_t second = source.find(',', first + 1);
  return std::string(source.substr(0, second));
}

class RunReader {
 public:
  RunReader(const PublishedRow& row, PublishedShelf& shelf, PublishedRun& run)
      : row_(row), shelf_(shelf), run_(run) {}

  /// Empty, or why not.
  std::string read() {
    for (const auto step : {&RunReader::time, &RunReader::stack, &RunReader::gpu, &RunReader::model,
                            &RunReader::precision, &RunReader::layout, &RunReader::machine,
                            &RunReader::plan, &RunReader::recompute})
      if (std::string reason = (this->*step)(); !reason.empty()) return reason;
    return {};
  }

 private:
  models::JobSpec& job() { return run_.job; }

  std::string time() {
    if (const auto reported = row_.number("iter_time_s")) {
      run_.published_s = *reported;
    } else if (const auto derived = row_.number("iter_time_s_derived")) {
      run_.published_s = *derived;
      run_.derived = true;
    } else {
      return "no time of a step stated";
    }
    return {};
  }

  std::string stack() {
    run_.paper = short_paper(row_.text("source"));
    stack_ = &stack_of({.source = row_.text("source"),
                        .software = row_.text("software"),
                        .sharding = row_.text("zero_stage"),
                        .note = row_.text("note"),
                        .model = row_.text("model"),
                        .gpu = row_.text("gpu"),
                        .precision = row_.text("precision"),
                        .has_experts = !row_.text("moe").empty()});
    run_.stack = std::string(stack_->name);
    run_.is_known_stack = stack_->is_known;
    if (!stack_->is_known)
      run_.rules.emplace_back("software not recognised: guessed from the sharding");
    return {};
  }

  std::string gpu() {
    run_.gpu = std::string(row_.text("gpu"));
    if (run_.gpu.empty()) return "GPU not stated";
    run_.gpu_part = shelf_.parts.gpu_name(run_.gpu);
    gpu_ = shelf_.parts.gpu(run_.gpu_part);
    if (!gpu_) return "no constants for GPU " + in_quotes(run_.gpu);
    run_.software_part = shelf_.parts.software_name(stack_->software, run_.gpu_part);
    const models::SoftwareSpec* software = shelf_.parts.software(run_.software_part);
    if (!software) return "no profile of software " + in_quotes(stack_->software);
    job().software = *software;
    if (mentions(row_.text("note"), "CUDA graphs")) job().software.cuda_graphs = true;
    run_.software = run_.software_part;
    const auto gpus = row_.count("gpus");
    if (!gpus) return "GPUs not stated";
    job().gpus = *gpus;
    return {};
  }

  std::string model() {
    const auto sequence = row_.count("seq");
    if (!sequence) return "sequence length not stated";
    job().sequence = *sequence;
    auto model = published_model(row_, shelf_.parts, run_.rules);
    if (auto* reason = std::get_if<std::string>(&model)) return std::move(*reason);
    job().model = std::move(std::get<models::TransformerSpec>(model));
    if (stack_->software == megascale_software) {
      job().model.parallel_block = true;
      job().model.attention_window = window_for(megascale_window_work, job().sequence);
    }
    return {};
  }

  std::string precision() {
    std::string reason = read_precision(row_, job(), run_.rules);
    run_.precision = std::string(name_of(job().parallel.precision));
    return reason;
  }

  std::string layout() {
    if (std::string reason = read_parallelism(row_, *stack_, job(), run_.rules); !reason.empty())
      return reason;
    if (std::string reason = read_batch(row_, *stack_, job(), run_.rules); !reason.empty())
      return reason;
    read_schedule(row_, *stack_, job(), run_.rules);
    return {};
  }

  std::string machine() {
    auto machine = published_machine(row_, *gpu_, job().gpus, job().parallel.tensor, run_.rules);
    if (auto* reason = std::get_if<std::string>(&machine)) return std::move(*reason);
    run_.machine = std::move(std::get<PublishedMachine>(machine));
    if (!shelf_.sites.of(run_.machine)) return "no tree of switches for this machine";
    return {};
  }

  std::string plan() {
    job().checkpoint.enabled = false;
    const Problems problems = models::check_plan(job(), run_.machine.cluster.server.gpus);
    if (!problems.empty()) return "layout cannot be: " + problems.front().path;
    if (!models::check_precision(job(), *gpu_).empty())
      return "the GPU has no " + run_.precision + " units";
    return {};
  }

  std::string recompute() {
    std::string reason = read_recompute(row_, *stack_, *gpu_, job(), run_.rules);
    run_.recompute = std::string(name_of(job().parallel.recompute));
    return reason;
  }

  const PublishedRow& row_;
  PublishedShelf& shelf_;
  PublishedRun& run_;
  const PublishedStack* stack_ = nullptr;
  const models::GpuSpec* gpu_ = nullptr;
};

}  // namespace

std::variant<PublishedRun, SkipReason> published_run(const PublishedTable& table,
                                                     const TableRow& row, PublishedShelf& shelf,
                                                     std::vector<Diagnostic>& mistakes) {
  const PublishedRow cells(table, row, mistakes);
  PublishedRun run;
  run.id = std::string(cells.text("id"));
  if (run.id.empty()) run.id = std::to_string(row.line);
  run.line = row.line;
  if (std::string reason = RunReader(cells, shelf, run).read(); !reason.empty()) return reason;
  return run;
}

}  // namespace trainyard::scenarios
