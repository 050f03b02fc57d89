#include "scenarios/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/least_squares.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

/// A figure of one row and the constants that its value is made of.
struct BoundFigure {
  Knob knob;
  std::vector<std::size_t> times;
  std::vector<std::size_t> over;

  double value(std::span<const double> constants) const {
    double out = 1;
    for (const std::size_t c : times) out *= constants[c];
    for (const std::size_t c : over) out /= constants[c];
    return out;
  }
};

/// A row with its own copy of the constants, tied to those that are fitted.
class BoundRow {
 public:
  BoundRow(const CalibrationRow& row, const ConstantTable& table)
      : row_(row), gpu_(row.gpu_constants), software_(row.software_constants) {
    for (std::size_t c = 0; c < table.constants.size(); ++c)
      for (const FigurePlace& place : table.constants[c].sets) bind(place, {c}, {});
    for (const TiedFigure& tied : table.tied)
      bind(tied.place, indices(table, tied.times), indices(table, tied.over));
  }
  BoundRow(const BoundRow&) = delete;  // the knobs point into it
  BoundRow& operator=(const BoundRow&) = delete;

  /// ln(predicted / published).
  double residual(std::span<const double> constants) {
    for (const BoundFigure& f : figures_) f.knob.set(f.value(constants));
    const double predicted = row_.predict_s(gpu_, software_);
    check(predicted > 0 && std::isfinite(predicted), "a step takes a time above 0; row",
          std::string_view(row_.id), predicted);
    return std::log(predicted / row_.published_s);
  }

  /// Constants that can move it, ascending.
  std::vector<std::size_t> touching() const {
    std::vector<std::size_t> out;
    for (const BoundFigure& f : figures_) {
      out.insert(out.end(), f.times.begin(), f.times.end());
      out.insert(out.end(), f.over.begin(), f.over.end());
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

 private:
  static std::vector<std::size_t> indices(const ConstantTable& table,
                                          const std::vector<std::string>& names) {
    std::vector<std::size_t> out;
    for (const std::string& name : names) out.push_back(table.index_of(name));
    return out;
  }

  void bind(const FigurePlace& place, std::vector<std::size_t> times,
            std::vector<std::size_t> over) {
    std::optional<Knob> knob;
    if (place.covers({"calibration", row_.calibration, place.key}))
      knob = find_knob(gpu_, place.key);
    else if (place.covers({"software", row_.software, place.key}))
      knob = find_knob(software_, place.key);
    if (knob && (!row_.is_moved_by || row_.is_moved_by(place.key)))
      figures_.push_back({*knob, std::move(times), std::move(over)});
  }

  const CalibrationRow& row_;
  models::GpuCalibration gpu_;
  models::SoftwareSpec software_;
  std::vector<BoundFigure> figures_;
};

using BoundRows = std::vector<std::unique_ptr<BoundRow>>;

BoundRows bound(std::span<const CalibrationRow> rows, const ConstantTable& table) {
  BoundRows out;
  for (const CalibrationRow& row : rows) out.push_back(std::make_unique<BoundRow>(row, table));
  return out;
}

std::vector<double> weights(std::span<const CalibrationRow> rows, double crowding) {
  std::map<std::string, double> in_group;
  for (const CalibrationRow& row : rows) in_group[row.group()] += 1;
  std::vector<double> out;
  for (const CalibrationRow& row : rows)
    out.push_back(std::pow(in_group.at(row.group()), -crowding));
  return out;
}

/// Which rows a constant stands on: those that it moves by more than 0.1 % for each 10 %.
constexpr double moves = 0.01;

void count_rows(std::span<const CalibrationRow> rows, const analysis::FitOutcome& outcome,
                std::size_t constant, FittedConstant& out) {
  std::vector<RowCount>& counts = out.rows_by_stack;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (std::abs(outcome.derivative(r, constant)) <= moves) continue;
    ++out.rows;
    const auto same = std::find_if(counts.begin(), counts.end(), [&](const RowCount& c) {
      return c.table == rows[r].table && c.stack == rows[r].stack;
    });
    if (same == counts.end())
      counts.push_back({rows[r].table, rows[r].stack, 1});
    else
      ++same->rows;
  }
  const auto first_of_table = [counts](const RowCount& c) {
    return std::find_if(counts.begin(), counts.end(),
                        [&](const RowCount& other) { return other.table == c.table; });
  };
  std::stable_sort(counts.begin(), counts.end(), [&](const RowCount& a, const RowCount& b) {
    const auto at = first_of_table(a), bt = first_of_table(b);
    return at != bt ? at < bt : a.rows > b.rows;
  });
}

std::vector<double> relative(const std::vector<double>& logarithms) {
  std::vector<double> out;
  for (const double r : logarithms) out.push_back(std::expm1(r));
  return out;
}

}  // namespace

Calibration calibrate(std::span<const CalibrationRow> rows, const ConstantTable& table,
                      const CalibrateOptions& options) {
  const std::size_t n = table.constants.size();
  check(options.present.empty() || options.present.size() == n, "one present value a constant");
  BoundRows models = bound(rows, table);

  analysis::RobustFit fit;
  for (std::size_t c = 0; c < n; ++c) {
    const Constant& constant = table.constants[c];
    fit.parameters.push_back({.prior = constant.prior,
                              .sigma = constant.sigma,
                              .low = constant.low,
                              .high = constant.high,
                              .start = options.present.empty() ? 0.0 : options.present[c]});
  }
  fit.rows = rows.size();
  fit.residual = [&](std::span<const double> constants, std::size_t row) {
    return models[row]->residual(constants);
  };
  fit.weights = weights(rows, options.crowding);
  for (const auto& model : models) fit.touching.push_back(model->touching());
  fit.noise = options.outlier;
  fit.threads = options.threads;
  const analysis::FitOutcome outcome = analysis::solve(fit);

  Calibration out;
  for (std::size_t c = 0; c < n; ++c) {
    FittedConstant& fitted = out.constants.emplace_back();
    fitted.before = options.present.empty() ? table.constants[c].prior : options.present[c];
    fitted.value = outcome.values[c];
    fitted.error = outcome.errors[c];
    fitted.is_at_bound = outcome.is_at_bound[c];
    count_rows(rows, outcome, c, fitted);
  }
  out.errors_before = relative(outcome.residuals_before);
  out.errors = relative(outcome.residuals);
  out.noise = outcome.noise;
  out.effective_constants = outcome.effective_parameters;
  out.steps = outcome.steps;
  out.evaluations = outcome.evaluations;
  out.is_converged = outcome.is_converged;
  return out;
}

std::vector<double> errors_of(std::span<const CalibrationRow> rows, const ConstantTable& table,
                              std::span<const double> values) {
  std::vector<double> out;
  for (const CalibrationRow& row : rows)
    out.push_back(std::expm1(BoundRow(row, table).residual(values)));
  return out;
}

std::optional<double> figure_value(const FigurePlace& place, const ConstantTable& table,
                                   std::span<const double> values) {
  for (std::size_t c = 0; c < table.constants.size(); ++c)
    for (const FigurePlace& set : table.constants[c].sets)
      if (set.covers(place)) return values[c];
  for (const TiedFigure& tied : table.tied) {
    if (!tied.place.covers(place)) continue;
    double value = 1;
    for (const std::string& name : tied.times) value *= values[table.index_of(name)];
    for (const std::string& name : tied.over) value /= values[table.index_of(name)];
    return value;
  }
  return {};
}

std::vector<std::size_t> rows_up_to(std::span<const CalibrationRow> rows, int gpus) {
  using Kind = std::pair<std::string, std::string>;
  std::map<Kind, int> fewest;
  const auto kind = [](const CalibrationRow& row) { return Kind(row.gpu, row.precision); };
  for (const CalibrationRow& row : rows) {
    const auto [at, is_new] = fewest.emplace(kind(row), row.gpus);
    if (!is_new) at->second = std::min(at->second, row.gpus);
  }
  std::vector<std::size_t> out;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows[r].gpus <= std::max(gpus, fewest.at(kind(rows[r])))) out.push_back(r);
  return out;
}

}  // namespace trainyard::scenarios
