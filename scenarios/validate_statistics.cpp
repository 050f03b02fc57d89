#include "scenarios/validate_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace trainyard::scenarios {
namespace {

constexpr double clear_gap = 1.05;  // published figures nearer than this have no clear order
constexpr std::size_t least_rows_to_rank = 3;

using Rows = std::vector<const ValidatedRow*>;

const Comparable& of(const ValidatedRow* row) {
  return *row->prediction.comparable;
}

std::map<std::string, Rows> by(const Rows& rows, std::string Comparable::*text) {
  std::map<std::string, Rows> out;
  for (const ValidatedRow* row : rows)
    if (!(of(row).*text).empty()) out[of(row).*text].push_back(row);
  return out;
}

template <class Value>
double geometric_mean(const Rows& rows, Value&& value) {
  double sum = 0;
  for (const ValidatedRow* row : rows) sum += std::log(value(row));
  return std::exp(sum / double(rows.size()));
}

ErrorSummary floor_of(const Rows& rows) {
  std::vector<double> errors_pct;
  for (const auto& [inputs, same] : by(rows, &Comparable::inputs)) {
    if (same.size() < 2) continue;
    const double mean =
        geometric_mean(same, [](const ValidatedRow* r) { return r->prediction.published; });
    for (const ValidatedRow* row : same)
      errors_pct.push_back(100 * (mean / row->prediction.published - 1));
  }
  return summary_of(std::move(errors_pct));
}

ErrorSummary baseline_of(const Rows& rows) {
  std::vector<double> errors_pct;
  for (const auto& [name, alike] : by(rows, &Comparable::baseline)) {
    const double efficiency = geometric_mean(
        alike, [](const ValidatedRow* r) { return of(r).ideal / r->prediction.published; });
    for (const ValidatedRow* row : alike)
      errors_pct.push_back(100 * (of(row).ideal / efficiency / row->prediction.published - 1));
  }
  return summary_of(std::move(errors_pct));
}

/// Percentages: always the ideal.
ErrorSummary ideal_of(const Rows& rows) {
  std::vector<double> errors_pct;
  for (const ValidatedRow* row : rows)
    errors_pct.push_back(of(row).ideal - row->prediction.published);
  return summary_of(std::move(errors_pct));
}

void count_pair(PairOrder& order, const ValidatedRow& a, const ValidatedRow& b) {
  const double x = a.prediction.published, y = b.prediction.published;
  if (std::max(x, y) < clear_gap * std::min(x, y)) return;
  if (of(&a).inputs == of(&b).inputs) {
    ++order.identical;
    return;
  }
  ++order.pairs;
  if ((x < y) == (a.prediction.predicted < b.prediction.predicted)) ++order.right;
}

PairOrder order_of(const Rows& rows, const std::string& name) {
  PairOrder order{.name = name};
  for (const auto& [question, answers] : by(rows, &Comparable::question))
    for (std::size_t i = 0; i < answers.size(); ++i)
      for (std::size_t j = i + 1; j < answers.size(); ++j)
        count_pair(order, *answers[i], *answers[j]);
  return order;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = double(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double n = double(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

struct Figures {
  std::vector<double> published, predicted;
  explicit Figures(const Rows& rows) {
    for (const ValidatedRow* row : rows) {
      published.push_back(row->prediction.published);
      predicted.push_back(row->prediction.predicted);
    }
  }
};

/// Mean over questions, weighted by their rows. Of rows with identical inputs the first counts.
RankCorrelation inside_questions(const Rows& rows) {
  RankCorrelation out{.name = "inside one model, batch and number of GPUs"};
  for (const auto& [question, answers] : by(rows, &Comparable::question)) {
    Rows distinct;
    for (const auto& [inputs, same] : by(answers, &Comparable::inputs))
      distinct.push_back(same.front());
    if (distinct.size() < least_rows_to_rank) continue;
    const Figures figures(distinct);
    out.value += rank_correlation(figures.published, figures.predicted) * double(distinct.size());
    out.rows += distinct.size();
  }
  if (out.rows > 0) out.value /= double(out.rows);
  return out;
}

}  // namespace

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() < 2 ? 0 : correlation(ranks_of(a), ranks_of(b));
}

void add_comparisons(ValidationReport& report) {
  Rows all;
  std::map<std::string, Rows> parts;
  for (const ValidatedRow& row : report.predictions) {
    if (!row.prediction.comparable) continue;
    all.push_back(&row);
    parts[row.prediction.comparable->part].push_back(&row);
  }
  if (all.empty()) return;
  for (const auto& [part, rows] : parts) {
    const std::string end = part.empty() ? "" : ", " + part;
    if (report.quantity.in_points) {
      report.references.push_back({"baseline: always 100 %" + end, ideal_of(rows)});
      continue;
    }
    report.references.push_back({"floor: identical inputs" + end, floor_of(rows)});
    report.references.push_back({"baseline: one efficiency a class" + end, baseline_of(rows)});
    report.orders.push_back(order_of(rows, part.empty() ? "all" : part));
  }
  if (report.quantity.in_points) return;
  const Figures figures(all);
  report.ranks.push_back(
      {"all rows", rank_correlation(figures.published, figures.predicted), all.size()});
  report.ranks.push_back(inside_questions(all));
}

}  // namespace trainyard::scenarios
