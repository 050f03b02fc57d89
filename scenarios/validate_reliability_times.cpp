#include <array>

#include "models/training/checkpoints.hpp"
#include "models/training/transformer.hpp"
#include "scenarios/catalog.hpp"
#include "scenarios/published_stack.hpp"
#include "scenarios/read.hpp"
#include "scenarios/validate_reliability.hpp"

namespace trainyard::scenarios {
namespace {

bool is_fitted(std::string_view conditions) {
  if (!conditions.starts_with("GPT-3")) return false;
  for (const std::string_view system : {"dgxh100", "hgxh100", "eos", "ND_H100", "BM.GPU.H100"})
    if (mentions(conditions, system)) return true;
  return false;
}

std::string machine_of(std::string_view conditions) {
  if (mentions(conditions, "tpu")) return "TPU";
  if (mentions(conditions, "Gaudi")) return "Gaudi";
  return "NVIDIA";
}

RowResult predict_start(const PublishedTable& table, const TableRow& row,
                        std::vector<Diagnostic>& mistakes) {
  const std::string_view stage = table.text(row, "stage"),
                         conditions = table.text(row, "conditions");
  if (!stage.starts_with("job start to first measured step"))
    return SkipReason(stage.starts_with("communication group")
                          ? "a part of the start-up that is not modelled apart"
                          : "not a start-up");
  const auto value = table.number(row, "value", mistakes);
  const auto gpus = table.number(row, "gpus", mistakes);
  if (!value || !gpus) return SkipReason("time or size not stated");
  const models::RestartSpec restart = recommended_restart();
  RowPrediction out;
  out.published = *value;
  out.predicted =
      to_seconds(restart.start_up) + to_seconds(restart.start_up_per_1000_gpus) * *gpus / 1000;
  out.method = "start_up + start_up_per_1000_gpus";
  const std::string machine = machine_of(conditions);
  out.uncertainty = is_fitted(conditions) ? Uncertainty::calibrated
                    : machine == "NVIDIA" ? Uncertainty::extrapolated
                                          : Uncertainty::new_system;
  out.groups = {{"model", std::string(conditions.substr(0, conditions.find(',')))},
                {"machine", machine}};
  return out;
}

struct ModelPart {
  std::string_view published, part;
};
constexpr std::array model_parts{
    ModelPart{"BLOOM-176B", "bloom-176b"}, ModelPart{"Llama-3.1-8B", "llama3-8b"},
    ModelPart{"Llama-3-8B", "llama3-8b"}, ModelPart{"Llama-3.1-405B", "llama3-405b"},
    ModelPart{"Nemotron-4-15B", "nemotron4-15b"}};

std::optional<double> parameters_of(std::string_view model) {
  for (const ModelPart& known : model_parts) {
    if (known.published != model) continue;
    const auto part = make_part<models::TransformerSpec>(Catalog::standard(), known.part);
    if (part) return models::parameters(*part, 8192);
  }
  return std::nullopt;
}

RowResult predict_checkpoint(const PublishedTable& table, const TableRow& row,
                             std::vector<Diagnostic>& mistakes) {
  constexpr double binary_gb = 1.073741824;  // 2^30 bytes
  const std::string_view model = table.text(row, "model"), quantity = table.text(row, "quantity");
  const models::CheckpointSpec defaults;
  const auto parameters = parameters_of(model);
  RowPrediction out;
  out.uncertainty = Uncertainty::extrapolated;
  out.groups = {{"quantity", std::string(quantity)}};
  const bool is_whole = quantity == "checkpoint size";
  if (is_whole || quantity.starts_with("weights-only")) {
    const auto value = table.number(row, "value", mistakes);
    if (!parameters || !value) return SkipReason("model or size not known");
    const double bytes = is_whole ? defaults.bytes_per_parameter : 2;
    out.published = *value;
    out.predicted = bytes * *parameters / 1e9;
    const double off_pct = 100 * (out.predicted / binary_gb / out.published - 1);
    out.method = std::to_string(int(bytes)) + " B a parameter; " +
                 std::to_string(off_pct).substr(0, 4) + " % if a GB is 2^30 B";
    return out;
  }
  if (quantity == "DCP synchronous -> asynchronous stall") {
    const auto gpus = table.number(row, "gpus", mistakes);
    if (!parameters || !gpus) return SkipReason("model or size not known");
    out.published = 0.5;  // "< 0.5 s"
    out.predicted = to_seconds(models::checkpoint_stall(
        defaults, models::checkpoint_size(defaults, *parameters), std::int64_t(*gpus)));
    out.method = "copy to host memory at host_copy_rate; the printed figure is a bound";
    out.groups.push_back(
        {"judged", out.predicted <= out.published ? "a bound, met" : "a bound, missed"});
    return out;
  }
  if (quantity == "aggregate write bandwidth (derived)")
    return SkipReason("it is the figure of the catalog's store jean-zay-gpfs");
  if (quantity == "per-GPU state saved")
    return SkipReason("a range; 14 B a parameter are 0.35 GB, inside");
  if (mentions(quantity, "save") || mentions(quantity, "load"))
    return SkipReason("a time without the bandwidth of its store");
  return SkipReason("not a size, and no time with the bandwidth of its store");
}

}  // namespace

models::RestartSpec recommended_restart() {
  return {.start_up = std::chrono::seconds(240),
          .start_up_per_1000_gpus = std::chrono::seconds(18)};
}

TableKind restart_times_table() {
  return {.name = "restart-times",
          .required = {"stage", "gpus", "value", "unit", "conditions"},
          .one_of = {},
          .predict = predict_start,
          .start = nullptr,
          .quantity = {.name = "start-up", .column = "start_up_s", .unit = "s", .per_unit = 1},
          .refers_to = {}};
}

TableKind checkpoints_table() {
  return {.name = "checkpoints",
          .required = {"model", "checkpoint_gb", "quantity", "value", "unit", "method"},
          .one_of = {},
          .predict = predict_checkpoint,
          .start = nullptr,
          .quantity = {.name = "size or time", .column = "value", .unit = "", .per_unit = 1},
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
