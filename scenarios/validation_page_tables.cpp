#include <algorithm>
#include <cstdlib>
#include <utility>

#include "scenarios/validation_page_parts.hpp"

/// Sections of the validation page on tables other than the one of training runs.
namespace trainyard::scenarios::page {
namespace {

constexpr std::string_view inside_questions = "inside one model, batch and number of GPUs";

std::string order_text(const PairOrder& order) {
  if (order.pairs == 0) return "-";
  return count(order.right) + " of " + count(order.pairs) + " (" +
         one_digit(100 * double(order.right) / double(order.pairs)) + " %)";
}

void add_layouts(const PageTable& t, MarkdownTable& out) {
  std::string inside = "-", all = "-", order = "-";
  for (const RankCorrelation& rank : t.report.ranks)
    (rank.name == inside_questions ? inside : all) = formatted("%.3f", rank.value);
  for (const PairOrder& o : t.report.orders)
    if (o.pairs > 0) order = order_text(o);
  const ErrorSummary& e = t.report.error;
  const ReferenceError* baseline = reference(t.report, "baseline: one efficiency a class, dense");
  out.row({base_name(t.report.table), count(e.used), one_digit(e.mean_abs_pct),
           one_digit(e.median_abs_pct), one_digit(e.p90_abs_pct), signed_digit(e.mean_signed_pct),
           baseline ? one_digit(baseline->error.mean_abs_pct) : "-", all, inside, order});
}

/// "8" before "16": names that are numbers, by their value.
std::vector<ErrorGroup> by_number(const ValidationReport& report, const std::string& by) {
  std::vector<ErrorGroup> out;
  for (const ErrorGroup& g : report.groups)
    if (g.by == by) out.push_back(g);
  std::stable_sort(out.begin(), out.end(), [](const ErrorGroup& a, const ErrorGroup& b) {
    return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name);
  });
  return out;
}

std::string versus(double ours, double others) {
  return one_digit(ours) + " (" + one_digit(others) + ")";
}

}  // namespace

std::string layouts(const PageInput& input) {
  MarkdownTable table{"table",         "rows>",         "MAPE>",          "median>",
                      "P90>",          "signed>",       "baseline MAPE>", "rank, all rows>",
                      "rank, inside>", "pairs in order"};
  bool has_composed = false;
  std::string by_tensor;
  for (const PageTable* t : of_kind(input, "vtrain")) {
    add_layouts(*t, table);
    has_composed |= is_composed(t->report);
    if (is_composed(t->report)) continue;
    MarkdownTable sizes = error_table("TP");
    for (const ErrorGroup& g : by_number(t->report, "tp")) sizes.row(cells({g.name}, g.error));
    by_tensor += base_name(t->report.table) + " by tensor-parallel size:\n" + sizes.text();
  }
  if (table.is_empty()) return {};
  std::string out =
      "Many layouts of one model on one cluster (Bang et al., vTrain): can the best be told from "
      "the rest? MAPE is the mean absolute error. Rank: Spearman's correlation of predicted and "
      "published over all rows, and inside one model, batch and number of GPUs (mean over these, "
      "weighted by rows). Pairs in order: of two layouts that answer one question, more than 5 % "
      "apart, is the faster one faster in ours too?\n" +
      table.text() + by_tensor;
  if (has_composed)
    out +=
        "The single-server table is **composed, not measured**: a law of four terms (per layer and "
        "micro-batch, per micro-batch, per layer, constant) gives most of its rows to 0.01 %, "
        "which no clock does. It shows whether a step is put together rightly from its layers, not "
        "whether kernels are. vTrain's own errors on these tables are 8.4 % and 14.7 %, of a "
        "profile taken on the same machine.\n";
  return section("Order of layouts: vTrain", out);
}

std::string scaling(const PageInput& input) {
  std::string out;
  for (const PageTable* t : of_kind(input, "scaling")) {
    MarkdownTable table{"mode", "pairs>", "median (always 100 %)>", "mean (always 100 %)>",
                        "P90>", "signed>"};
    for (const ErrorGroup& g : t->report.groups) {
      if (g.by != "mode") continue;
      const ReferenceError* r = reference(t->report, "baseline: always 100 %, " + g.name);
      const ErrorSummary always = r ? r->error : ErrorSummary{};
      table.row({g.name, count(g.error.used), versus(g.error.median_abs_pct, always.median_abs_pct),
                 versus(g.error.mean_abs_pct, always.mean_abs_pct), one_digit(g.error.p90_abs_pct),
                 signed_digit(g.error.mean_signed_pct)});
    }
    out += table.text();
  }
  if (out.empty()) return {};
  return section(
      "Scaling efficiency",
      "Tokens per second and GPU over those of a smaller run, in percentage points. Weak: "
      "the batch grows with the GPUs; strong: it stays. In brackets, what it costs to "
      "say \"100 %\" always.\n" +
          out);
}

std::string mlperf(const PageInput& input) {
  std::string out;
  for (const PageTable* t : of_kind(input, "mlperf")) {
    MarkdownTable table{"benchmark",    "round",    "submitter",
                        "GPU",          "GPUs>",    "median s>",
                        "predicted s>", "error %>", "P95 over median %>"};
    for (const ValidatedRow& row : t->report.predictions) {
      const auto cell = [&](std::string_view column) { return text_of_row(*t, row, column); };
      const std::string p95 = cell("step_p95_s");
      table.row(
          {cell("benchmark"), cell("version"), cell("submitter"), cell("gpu"), cell("gpus"),
           formatted("%.3f", row.prediction.published), formatted("%.3f", row.prediction.predicted),
           signed_digit(row.error_pct),
           p95.empty()
               ? "-"
               : signed_digit(100 *
                              (std::strtod(p95.c_str(), nullptr) / row.prediction.published - 1))});
    }
    out += table.text();
  }
  if (out.empty()) return {};
  return section("MLPerf, row by row",
                 "Median step times from the raw logs; GPT-3 175B in round 3.1 spans 512 to 10,752 "
                 "GPUs. Layouts come from the published configurations of each round. How far the "
                 "95th percentile lies above the median says how quiet the cluster was.\n" +
                     out);
}

std::string memory(const PageInput& input) {
  std::string out;
  for (const PageTable* t : of_kind(input, "memory")) {
    MarkdownTable table{"what", "model", "run", "published GiB or %>", "predicted>", "error>"};
    for (const ValidatedRow& row : t->report.predictions) {
      const RowPrediction& p = row.prediction;
      table.row({text_of_row(*t, row, "quantity"), text_of_row(*t, row, "model"),
                 text_of_row(*t, row, "mode"), formatted("%.4g", p.published),
                 formatted("%.4g", p.predicted),
                 signed_digit(row.error_pct) + (p.in_points ? " points" : " %")});
    }
    out += table.text();
  }
  if (out.empty()) return {};
  return section(
      "Memory of a GPU",
      "Activations are counted tensor by tensor, nothing of them is fitted. **Allocated** "
      "is what the tool predicts: what tensors occupy. **Reserved** is what PyTorch's "
      "caching allocator holds, which is more: those rows must be negative, and by how "
      "much is the allocator's doing.\n" +
          out);
}

std::string collectives(const PageInput& input) {
  std::string out;
  for (const PageTable* t : of_kind(input, "collectives"))
    for (const char* by : {"size", "gpu", "nodes"}) {
      MarkdownTable table = error_table(std::string_view(by) == "gpu" ? "GPU" : by);
      for (const ErrorGroup& g :
           std::string_view(by) == "nodes" ? by_number(t->report, by) : std::vector<ErrorGroup>{})
        table.row(cells({g.name}, g.error));
      if (std::string_view(by) != "nodes") add_groups(table, t->report, by);
      out += table.text();
    }
  if (out.empty()) return {};
  return section(
      "Collectives",
      "nccl-tests results against the [cost model](models/collective-costs.md), percent "
      "of time. Small messages depend on how a host launches a call, which tables do not "
      "say.\n" +
          out);
}

}  // namespace trainyard::scenarios::page
