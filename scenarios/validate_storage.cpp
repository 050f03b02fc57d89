#include "scenarios/validate_storage.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "sim/time.hpp"

namespace trainyard::scenarios {
namespace {

// Workload files of DLIO and MLPerf Storage v1.0 (github.com/argonne-lcf/dlio_benchmark). Compute
// times of unet3d on A100 and of resnet50 on H100 are worked out from the results: accelerators ·
// utilisation · batch / (samples a second) is one number on all 11 and 20 rows, to 0.001 %; the
// batch is taken to be that of the other accelerator, which only scales it.
constexpr std::array workloads{StorageWorkload{"unet3d", "a100", 7, 0.636, 146600628},
                               StorageWorkload{"unet3d", "h100", 7, 0.323, 146600628},
                               StorageWorkload{"resnet50", "a100", 400, 0.435, 114660},
                               StorageWorkload{"resnet50", "h100", 400, 0.224, 114660},
                               StorageWorkload{"cosmoflow", "a100", 1, 0.00551, 2828486},
                               StorageWorkload{"cosmoflow", "h100", 1, 0.0035, 2828486}};

// Fitted to the mean absolute error of the rows of MLPerf Storage v1.0, in steps of 0.05, 0.1 and
// 0.25; flat around the optimum.
constexpr double growth = 0.25;  // of the wait with ln n: the slowest of n accelerators
constexpr double unet3d_wait = 1;
constexpr double resnet50_wait = 0.7;
constexpr double cosmoflow_wait = 3.5;

constexpr std::array names_of_runs{"unet3d", "resnet50", "cosmoflow", "a100", "h100"};

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  return out;
}

struct Result {
  std::string system;
  StorageWorkload workload;
  double accelerators = 0;
  double utilisation = 0;
  int line = 0;
};

std::variant<Result, SkipReason> result_of(const PublishedTable& table, const TableRow& row,
                                           std::vector<Diagnostic>& mistakes) {
  const auto accelerators = table.number(row, "accelerators", mistakes);
  if (!accelerators) return SkipReason("no result of a benchmark with accelerators");
  const std::string_view name = table.text(row, "workload");
  const std::string_view accelerator = table.text(row, "accelerator_emulated");
  const auto workload = storage_workload(name, accelerator);
  if (!workload)
    return "workload " + in_quotes(name) + " on " + in_quotes(accelerator) + " is not known";
  auto utilisation = table.number(row, "implied_accelerator_utilisation", mistakes);
  if (!utilisation)
    if (const auto samples = table.number(row, "samples_per_s", mistakes))
      utilisation = *samples * workload->compute_s / (workload->batch * *accelerators);
  if (!utilisation) return SkipReason("neither utilisation nor samples per second stated");
  if (*utilisation >= 1) return SkipReason("a utilisation of 100 % or more");
  return Result{system_of(table.text(row, "system")), *workload, *accelerators, *utilisation,
                row.line};
}

/// The one result that sets the limit: the first of the system with this workload, else its first.
std::optional<Result> setter_of(const PublishedTable& table, const TableRow& row,
                                const Result& result) {
  std::optional<Result> first;
  for (const TableRow& earlier : table.rows) {
    if (&earlier == &row) break;
    std::vector<Diagnostic> said_at_its_own_row;
    const auto read = result_of(table, earlier, said_at_its_own_row);
    const Result* other = std::get_if<Result>(&read);
    if (!other || other->system != result.system) continue;
    if (other->workload.name == result.workload.name) return *other;
    if (!first) first = *other;
  }
  return first;
}

bool has_later_row(const PublishedTable& table, const TableRow& row, const std::string& system) {
  return std::any_of(table.rows.begin(), table.rows.end(), [&](const TableRow& other) {
    return &other > &row && !table.text(other, "accelerators").empty() &&
           system_of(table.text(other, "system")) == system;
  });
}

std::string size_class(double accelerators) {
  if (accelerators < 10) return "below 10";
  return accelerators < 100 ? "10 to 99" : "100 and more";
}

RowResult predict(const PublishedTable& table, const TableRow& row,
                  std::vector<Diagnostic>& mistakes) {
  const auto read = result_of(table, row, mistakes);
  if (const auto* reason = std::get_if<SkipReason>(&read)) return *reason;
  const Result& result = std::get<Result>(read);
  const auto setter = setter_of(table, row, result);
  if (!setter)
    return SkipReason(has_later_row(table, row, result.system)
                          ? "sets the limit of its system"
                          : "the only row of its system: sets a limit that nothing tests");
  const auto factor = [](const Result& r) {
    return lock_step_factor(r.workload.name, r.accelerators);
  };
  const double wait_alone = (1 / setter->utilisation - 1) / factor(*setter);
  const double wait = wait_alone * factor(result);
  RowPrediction out;
  out.published = 100 * result.utilisation;
  out.predicted = 100 / (1 + wait);
  const double compute_s = result.workload.compute_s;
  out.method = trainyard::to_text(seconds(compute_s)) + " + " +
               trainyard::to_text(seconds(compute_s * wait)) + " wait, limit of line " +
               std::to_string(setter->line);
  out.uncertainty = Uncertainty::extrapolated;
  const std::string workload(result.workload.name);
  const bool is_same = setter->workload.name == result.workload.name;
  const bool is_near = std::abs(out.predicted - out.published) <= 3;
  out.groups = {{"limit from", is_same ? "the same workload" : "another workload"},
                {"within 3 points", is_near ? "yes" : "no"},
                {"workload", workload},
                {"accelerators", size_class(result.accelerators)}};
  return out;
}

}  // namespace

std::optional<StorageWorkload> storage_workload(std::string_view name,
                                                std::string_view accelerator) {
  const std::string of_name = in_lower_case(name), of_accelerator = in_lower_case(accelerator);
  for (const StorageWorkload& w : workloads)
    if (w.name == of_name && w.accelerator == of_accelerator) return w;
  return std::nullopt;
}

std::string system_of(std::string_view name) {
  std::string out(name);
  for (const std::string_view run : names_of_runs) {
    const std::size_t at = in_lower_case(out).find(run);
    if (at == std::string::npos) continue;
    const bool has_mark = at > 0 && (out[at - 1] == '-' || out[at - 1] == '_');
    out.erase(at - (has_mark ? 1 : 0), run.size() + (has_mark ? 1 : 0));
  }
  return out;
}

double lock_step_factor(std::string_view workload, double accelerators) {
  const double own = workload == "resnet50"    ? resnet50_wait
                     : workload == "cosmoflow" ? cosmoflow_wait
                                               : unet3d_wait;
  return own * (1 + growth * std::log(accelerators));
}

TableKind storage_table() {
  return {.name = "storage",
          .required = {"system", "workload", "accelerator_emulated", "accelerators"},
          .one_of = {"implied_accelerator_utilisation", "samples_per_s"},
          .predict = predict,
          .start = nullptr,
          .quantity = {.name = "accelerator utilisation",
                       .column = "utilisation_pct",
                       .unit = "%",
                       .per_unit = 1,
                       .in_points = true},
          .refers_to = {}};
}

}  // namespace trainyard::scenarios
