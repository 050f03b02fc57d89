#include "analysis/study_file.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "analysis/export_csv.hpp"
#include "analysis/run_reader.hpp"
#include "analysis/run_writer.hpp"

namespace trainyard::analysis {
namespace {

constexpr const char* axes_path = "study/axes";
constexpr const char* metrics_path = "study/metrics";
constexpr const char* points_path = "study/points";
constexpr const char* runs_path = "study/runs";
constexpr const char* ledgers_path = "study/ledgers";
constexpr const char* no_effect_path = "study/no_effect";
constexpr std::size_t columns_before_metrics = 5;
constexpr std::size_t columns_before_accounts = 2;

Table axes_table(const Study& study) {
  Table table = Table::with(
      axes_path, "what is varied",
      {{"name", "", "name of the axis", ColumnType::text},
       {"path", "", "setting of the scenario; empty: several settings", ColumnType::text},
       {"units", "", "of its numbers; empty: it has none", ColumnType::text},
       {"given", "1", "1: not chosen; points are ranked for each of its values",
        ColumnType::int64}});
  for (const StudyAxis& axis : study.axes)
    table.add_row({axis.name, axis.path, axis.units, std::int64_t(axis.is_given ? 1 : 0)});
  return table;
}

Table metrics_table(const Study& study) {
  Table table = Table::with(metrics_path, "what is measured; the first one ranks the points",
                            {{"name", "", "name of the metric", ColumnType::text},
                             {"of", "", "figures of a run's result", ColumnType::text},
                             {"units", "", "its unit; 1: a pure number", ColumnType::text},
                             {"better", "", "higher, lower or neither", ColumnType::text}});
  for (const StudyMetric& m : study.metrics)
    table.add_row({m.name, m.of, m.units, std::string(name_of(m.better))});
  return table;
}

Table points_table(const Study& study) {
  std::vector<Column> columns{{"point", "1", "number of the point", ColumnType::int64}};
  for (const StudyAxis& axis : study.axes) {
    columns.emplace_back(axis.name, "", "value as written", ColumnType::text);
    columns.emplace_back(axis.name + "_value", axis.units.empty() ? "1" : axis.units,
                         "value as a number; not a number: it is none", ColumnType::real);
  }
  Table table = Table::with(points_path, "one design a row", std::move(columns));
  for (std::size_t p = 0; p < study.points.size(); ++p) {
    std::vector<Value> row{std::int64_t(p)};
    for (std::size_t a = 0; a < study.axes.size(); ++a) {
      row.emplace_back(study.points[p].labels[a]);
      row.emplace_back(study.points[p].numbers[a]);
    }
    table.add_row(row);
  }
  return table;
}

Table runs_table(const Study& study) {
  std::vector<Column> columns{
      {"point", "1", "row of study/points", ColumnType::int64},
      {"replication", "1", "equal replications of two points had equal luck", ColumnType::int64},
      {"seed", "1", "seed of all random streams of the run", ColumnType::uint64},
      {"state", "", "complete, failed or missing", ColumnType::text},
      {"fingerprint", "", "of the run's events", ColumnType::text}};
  for (const StudyMetric& m : study.metrics)
    columns.emplace_back(m.name, m.units, m.of, ColumnType::real);
  Table table = Table::with(runs_path, "one run a row", std::move(columns));
  for (const StudyRun& run : study.runs) {
    std::vector<Value> row{std::int64_t(run.point), std::int64_t(run.replication), run.seed,
                           run.state, run.fingerprint};
    for (const double value : run.values) row.emplace_back(value);
    table.add_row(row);
  }
  return table;
}

Table ledgers_table(const Study& study) {
  std::vector<Column> columns{{"point", "1", "row of study/points", ColumnType::int64},
                              {"replication", "1", "as in study/runs", ColumnType::int64}};
  for (const std::string& account : study.accounts)
    columns.emplace_back(account, "s", "GPU-seconds of the cluster", ColumnType::real);
  Table table =
      Table::with(ledgers_path, "where the GPU time of each run went", std::move(columns));
  for (const StudyRun& run : study.runs) {
    if (run.ledger_gpu_s.size() != study.accounts.size()) continue;  // it did not run
    std::vector<Value> row{std::int64_t(run.point), std::int64_t(run.replication)};
    for (const double gpu_s : run.ledger_gpu_s) row.emplace_back(gpu_s);
    table.add_row(row);
  }
  return table;
}

Table no_effect_table(const Study& study) {
  Table table = Table::with(no_effect_path, "settings that did nothing in any complete run",
                            {{"setting", "", "path: reason", ColumnType::text}});
  for (const std::string& setting : study.no_effect) table.add_row({setting});
  return table;
}

/// A table of a study's file, whose columns are asked for by name or number.
class Columns {
 public:
  Columns(const RunReader& file, const char* path) : file_(file.path()), table_(file.table(path)) {}

  std::size_t rows() const { return table_.rows(); }
  const std::vector<Column>& all() const { return table_.columns; }
  [[noreturn]] void refuse(const std::string& why) const {
    throw RunFileError(file_ + ": " + table_.path + ": " + why);
  }
  template <class T>
  const std::vector<T>& cells(const Column& column) const {
    const auto* cells = std::get_if<std::vector<T>>(&column.cells);
    if (cells == nullptr) refuse("column " + column.name + " has another type");
    return *cells;
  }
  template <class T>
  const std::vector<T>& of(const std::string& name) const {
    const Column* column = table_.find(name);
    if (column == nullptr) refuse("it has no column " + name);
    return cells<T>(*column);
  }
  std::size_t index(std::int64_t i, std::size_t most, const char* what) const {
    if (i < 0 || std::uint64_t(i) >= most)
      refuse(std::string("there is no ") + what + ' ' + std::to_string(i));
    return std::size_t(i);
  }

 private:
  std::string file_;
  Table table_;
};

void read_runs(const RunReader& file, Study& study) {
  const Columns table(file, runs_path);
  if (table.all().size() != columns_before_metrics + study.metrics.size())
    table.refuse("it has not one column a metric");
  const auto& points = table.of<std::int64_t>("point");
  const auto& replications = table.of<std::int64_t>("replication");
  const auto& seeds = table.of<std::uint64_t>("seed");
  const auto& states = table.of<std::string>("state");
  const auto& fingerprints = table.of<std::string>("fingerprint");
  for (std::size_t r = 0; r < table.rows(); ++r) {
    StudyRun& run = study.runs.emplace_back();
    run.point = table.index(points[r], study.points.size(), "point");
    run.replication = table.index(replications[r], std::size_t(1) << 32, "replication");
    if (r > 0 && std::pair(study.runs[r - 1].point, study.runs[r - 1].replication) >=
                     std::pair(run.point, run.replication))
      table.refuse("row " + std::to_string(r) + " is out of order");
    run.seed = seeds[r];
    run.state = states[r];
    run.fingerprint = fingerprints[r];
    for (std::size_t m = 0; m < study.metrics.size(); ++m)
      run.values.push_back(table.cells<double>(table.all()[columns_before_metrics + m])[r]);
  }
}

void read_ledgers(const RunReader& file, Study& study) {
  const Columns table(file, ledgers_path);
  for (std::size_t c = columns_before_accounts; c < table.all().size(); ++c)
    study.accounts.push_back(table.all()[c].name);
  const auto& points = table.of<std::int64_t>("point");
  const auto& replications = table.of<std::int64_t>("replication");
  std::size_t run = 0;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    while (run < study.runs.size() &&
           !(std::int64_t(study.runs[run].point) == points[r] &&
             std::int64_t(study.runs[run].replication) == replications[r]))
      ++run;
    if (run == study.runs.size()) table.refuse("row " + std::to_string(r) + " is of no run");
    for (std::size_t a = 0; a < study.accounts.size(); ++a)
      study.runs[run].ledger_gpu_s.push_back(
          table.cells<double>(table.all()[columns_before_accounts + a])[r]);
  }
}

}  // namespace

void write_study(const Study& study, const std::string& path, const std::string& version,
                 const std::string& commit) {
  RunInfo info;
  info.creator_version = version;
  info.git_commit = commit;
  info.scenario_name = study.name;
  info.scenario = study.base;
  RunWriter writer(path, info);
  writer.begin();
  Ending ending;
  ending.tables = {axes_table(study), metrics_table(study), points_table(study),
                   runs_table(study), ledgers_table(study), no_effect_table(study)};
  ending.attributes = {
      {"study_name", study.name},
      {"study_description", study.description},
      {"study_question", study.question},
      {"study_hash", study.hash},
      {"study_common_random_numbers", std::int64_t(study.common_random_numbers ? 1 : 0)},
      {"study_confidence", study.confidence},
      {"study_builds", study.builds}};
  writer.close(ending);
}

Study read_study(const std::string& path) {
  const RunReader file(path);
  if (!file.has_table(runs_path))
    throw RunFileError(path + ": it is the file of a run, not of a study");
  Study study;
  study.name = file.text("study_name");
  study.description = file.text("study_description");
  study.question = file.text("study_question");
  study.hash = file.text("study_hash");
  study.builds = file.text("study_builds");
  study.base = file.text("scenario");
  if (const Value* common = file.attribute("study_common_random_numbers"))
    study.common_random_numbers = *common == Value(std::int64_t(1));
  if (const Value* confidence = file.attribute("study_confidence"))
    if (const double* share = std::get_if<double>(confidence); share && *share > 0 && *share < 1)
      study.confidence = *share;
  const Columns axes(file, axes_path);
  for (std::size_t a = 0; a < axes.rows(); ++a)
    study.axes.push_back({axes.of<std::string>("name")[a], axes.of<std::string>("path")[a],
                          axes.of<std::string>("units")[a],
                          axes.of<std::int64_t>("given")[a] == 1});
  const Columns metrics(file, metrics_path);
  for (std::size_t m = 0; m < metrics.rows(); ++m) {
    const auto better = better_named(metrics.of<std::string>("better")[m]);
    if (!better) metrics.refuse("unknown direction " + metrics.of<std::string>("better")[m]);
    study.metrics.push_back({metrics.of<std::string>("name")[m], metrics.of<std::string>("of")[m],
                             metrics.of<std::string>("units")[m], *better});
  }
  const Columns points(file, points_path);
  study.points.resize(points.rows());
  for (const StudyAxis& axis : study.axes)
    for (std::size_t p = 0; p < points.rows(); ++p) {
      study.points[p].labels.push_back(points.of<std::string>(axis.name)[p]);
      study.points[p].numbers.push_back(points.of<double>(axis.name + "_value")[p]);
    }
  read_runs(file, study);
  read_ledgers(file, study);
  const Columns no_effect(file, no_effect_path);
  study.no_effect = no_effect.of<std::string>("setting");
  return study;
}

bool is_study_file(const std::string& path) {
  try {
    return RunReader(path).has_table(runs_path);
  } catch (const RunFileError&) {
    return false;
  }
}

std::string study_csv(const Study& study) {
  std::string out = "point,replication,seed,state";
  const auto head = [](const std::string& name, const std::string& units) {
    return ',' + csv_field(units.empty() || units == "1" ? name : name + " [" + units + ']');
  };
  for (const StudyAxis& axis : study.axes) out += head(axis.name, "");
  for (const StudyMetric& m : study.metrics) out += head(m.name, m.units);
  out += "\r\n";
  for (const StudyRun& run : study.runs) {
    out += std::to_string(run.point) + ',' + std::to_string(run.replication) + ',' +
           std::to_string(run.seed) + ',' + run.state;
    for (const std::string& label : study.points[run.point].labels) out += ',' + csv_field(label);
    for (const double value : run.values)
      out += std::isfinite(value) ? ',' + text_of(Value(value)) : ",";
    out += "\r\n";
  }
  return out;
}

}  // namespace trainyard::analysis
