#include "scenarios/validate_scaling.hpp"

#include <map>
#include <memory>

#include "scenarios/validate_training.hpp"

namespace trainyard::scenarios {
namespace {

/// Tokens per second and GPU of runs by their id, each predicted once.
class Rates {
 public:
  explicit Rates(const ValidationSetup& setup) : mechanisms_(setup.mechanisms) {
    for (const PublishedTable* table : setup.other)
      for (const TableRow& row : table->rows)
        if (const std::string_view id = table->text(row, "id"); !id.empty())
          rows_.try_emplace(std::string(id), table, &row);
  }

  struct Rate {
    double tokens_per_gpu_s = 0;
    PublishedRun run;
    Uncertainty uncertainty = Uncertainty::new_system;
  };
  std::variant<const Rate*, SkipReason> of(std::string_view id, std::vector<Diagnostic>& mistakes) {
    const auto found = rows_.find(id);
    if (found == rows_.end()) return SkipReason("the run that it names is in no table at hand");
    auto [known, is_new] = rates_.try_emplace(std::string(id), SkipReason());
    if (is_new) known->second = predict(*found->second.first, *found->second.second, mistakes);
    if (const auto* reason = std::get_if<SkipReason>(&known->second))
      return "a run that it names: " + *reason;
    return &std::get<Rate>(known->second);
  }

 private:
  std::variant<Rate, SkipReason> predict(const PublishedTable& table, const TableRow& row,
                                         std::vector<Diagnostic>& mistakes) {
    auto read = published_run(table, row, shelf_, mistakes);
    if (auto* reason = std::get_if<SkipReason>(&read)) return std::move(*reason);
    Rate out;
    out.run = std::move(std::get<PublishedRun>(read));
    const auto step = predicted_step(out.run, shelf_, mechanisms_);
    if (!step) return SkipReason("no path between its servers");
    const models::JobSpec& job = out.run.job;
    out.tokens_per_gpu_s =
        double(job.global_batch) * job.sequence / (step->step_s * double(job.gpus));
    out.uncertainty = step->uncertainty;
    return out;
  }

  models::Mechanisms mechanisms_;
  PublishedShelf shelf_;
  std::map<std::string, std::pair<const PublishedTable*, const TableRow*>, std::less<>> rows_;
  std::map<std::string, std::variant<Rate, SkipReason>, std::less<>> rates_;
};

RowResult predict(Rates& rates, const PublishedTable& table, const TableRow& row,
                  std::vector<Diagnostic>& mistakes) {
  const std::string_view id = table.text(row, "row_id"), base_id = table.text(row, "base_row_id");
  const auto published = table.number(row, "efficiency_pct", mistakes);
  if (id.empty() || base_id.empty() || !published)
    return SkipReason("runs or efficiency not stated");
  if (id == base_id) return SkipReason("the base of others: 100 % by definition");
  const auto own = rates.of(id, mistakes), base = rates.of(base_id, mistakes);
  for (const auto* rate : {&own, &base})
    if (const auto* reason = std::get_if<SkipReason>(rate)) return *reason;
  const Rates::Rate &r = *std::get<const Rates::Rate*>(own),
                    &b = *std::get<const Rates::Rate*>(base);
  const std::string mode(table.text(row, "mode"));
  RowPrediction out;
  out.published = *published;
  out.predicted = 100 * r.tokens_per_gpu_s / b.tokens_per_gpu_s;
  out.method = r.run.software_part;
  out.uncertainty = r.uncertainty;
  out.groups = {{"mode", mode},
                {"stack", mode + ", " + r.run.stack},
                {"GPU", mode + ", " + r.run.gpu},
                {"precision", mode + ", " + r.run.precision},
                {"GPUs", mode + ", " + size_class_of(r.run.job.gpus)}};
  out.comparable =
      Comparable{.inputs = {}, .question = {}, .baseline = mode, .ideal = 100, .part = mode};
  return out;
}

RowPredictor start(const ValidationSetup& setup) {
  return [rates = std::make_shared<Rates>(setup)](const PublishedTable& table, const TableRow& row,
                                                  std::vector<Diagnostic>& mistakes) {
    return predict(*rates, table, row, mistakes);
  };
}

}  // namespace

TableKind scaling_table() {
  return {.name = "scaling",
          .required = {"mode", "row_id", "base_row_id", "efficiency_pct"},
          .one_of = {},
          .predict = nullptr,
          .start = start,
          .quantity = {.name = "scaling efficiency",
                       .column = "efficiency_pct",
                       .unit = "%",
                       .per_unit = 1,
                       .in_points = true},
          .refers_to = "training"};
}

}  // namespace trainyard::scenarios
