#include "scenarios/validate_storage.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "models/network/fluid_network.hpp"
#include "models/storage/data_feed.hpp"
#include "models/storage/store.hpp"
#include "scenarios/markdown.hpp"
#include "sim/engine.hpp"
#include "sim/time.hpp"

namespace trainyard::scenarios {
namespace {

// Workload files of DLIO and MLPerf Storage v1.0 (github.com/argonne-lcf/dlio_benchmark). Compute
// times of unet3d on A100 and of resnet50 on H100 are worked out from the results: accelerators ·
// utilisation · batch / (samples a second) is one number on all 11 and 20 rows, to 0.001 %; the
// batch is taken to be that of the other accelerator, which only scales it.
// The thresholds are the rules of the benchmark: a result counts from this utilisation on.
constexpr std::array workloads{StorageWorkload{"unet3d", "a100", 7, 0.636, 146600628, 0.9},
                               StorageWorkload{"unet3d", "h100", 7, 0.323, 146600628, 0.9},
                               StorageWorkload{"resnet50", "a100", 400, 0.435, 114660, 0.9},
                               StorageWorkload{"resnet50", "h100", 400, 0.224, 114660, 0.9},
                               StorageWorkload{"cosmoflow", "a100", 1, 0.00551, 2828486, 0.7},
                               StorageWorkload{"cosmoflow", "h100", 1, 0.0035, 2828486, 0.7}};

constexpr double near_points = 3;
constexpr double no_limit_Bps = 1e18;

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

/// What its system delivered.
BytesPerSecond rate_of(const Result& r) {
  return BytesPerSecond(r.utilisation * r.accelerators * r.workload.batch *
                        r.workload.record_bytes / r.workload.compute_s);
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
  const double wait_alone =
      (1 / setter->utilisation - 1) / lock_step_wait(setter->workload, setter->accelerators);
  const double wait = wait_alone * lock_step_wait(result.workload, result.accelerators);
  const double loader =
      100 * loader_utilisation(result.workload, result.accelerators, rate_of(*setter));
  RowPrediction out;
  out.published = 100 * result.utilisation;
  out.predicted = 100 / (1 + wait);
  const double compute_s = result.workload.compute_s;
  out.method = trainyard::to_text(seconds(compute_s)) + " + " +
               trainyard::to_text(seconds(compute_s * wait)) + " wait, limit of line " +
               std::to_string(setter->line) + "; loader at its bandwidth " + one_digit(loader) +
               ", threshold " + one_digit(100 * result.workload.threshold);
  out.uncertainty = Uncertainty::extrapolated;
  const bool is_same = setter->workload.name == result.workload.name;
  const auto is_near = [&](double utilisation_pct) {
    return std::abs(utilisation_pct - out.published) <= near_points ? "yes" : "no";
  };
  out.groups = {{"limit from", is_same ? "the same workload" : "another workload"},
                {"within 3 points", is_near(out.predicted)},
                {"threshold alone within 3 points", is_near(100 * result.workload.threshold)},
                {"loader at one bandwidth within 3 points", is_near(loader)},
                {"workload", std::string(result.workload.name)},
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

double lock_step_wait(const StorageWorkload& workload, double accelerators) {
  return (1 / workload.threshold - 1) * std::sqrt(2 * std::log(accelerators + 1));
}

double loader_utilisation(const StorageWorkload& workload, double accelerators,
                          BytesPerSecond read_rate) {
  sim::Engine engine{sim::Seed{1}};
  models::FluidNetwork network(engine, "stores");
  models::StoreSpec spec;
  spec.read_rate = spec.write_rate = read_rate;
  spec.client_rate = BytesPerSecond(no_limit_Bps);
  models::SharedStore store(engine, network, "store", spec);
  models::DataSpec data;
  data.store = "store";
  data.sample = Bytes(workload.record_bytes);
  data.files_per_sample = 0;
  data.cores = 1;
  models::DataFeed feed(engine, store, data, "benchmark", 1, std::int64_t(accelerators),
                        accelerators * workload.batch);
  const Duration compute = seconds(workload.compute_s);
  feed.train(compute);
  // Until the first batch is there and the queue is empty or full.
  const double batch_s = workload.record_bytes * workload.batch * accelerators / read_rate.value();
  engine.run_until(start_of_run + seconds(1e6 * (workload.compute_s + batch_s)));
  return to_seconds(compute) / to_seconds(feed.step());
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
