#include "scenarios/validation_page.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/validation_page_parts.hpp"

/// What the page says of rows: how to read it, errors by table and group, rules, what is not used.
/// What it says of constants and mechanisms: validation_page_model.cpp.
namespace trainyard::scenarios {
namespace {

constexpr std::size_t least_rows_to_judge = 10;  // a sign of fewer rows says little
constexpr double most_signed_pct = 2;
constexpr std::size_t ids_named = 8;

}  // namespace

namespace page {

std::string how_to_read(const PageInput& input) {
  std::string out =
      "Made by `trainyard validate validation --page docs/validation.md` from the tables in "
      "[validation/](../validation/README.md): facts that others published. Do not edit it; the "
      "prose of the last sections is `validation/notes.md`.\n\n"
      "A row is one published figure. It is predicted from what the row says of model, layout and "
      "machine, from the parts of the catalog, and from constants that all rows share; nothing is "
      "set row by row. What a row leaves open is filled by a rule "
      "([guide](guide/validate.md)), and those are counted below.\n\n"
      "- **error** = predicted / published - 1, in percent. Of efficiencies and shares, which are "
      "percentages themselves: predicted - published, in percentage points.\n"
      "- **median, mean, P90** are of absolute errors; 90 % of the rows are off by less than P90. "
      "**signed** is the mean with its sign: a sign that stays is a missing mechanism, not bad "
      "luck. Groups of " +
      count(least_rows_to_judge) + " rows or more whose signed mean is beyond " +
      formatted("%.0f", most_signed_pct) +
      " % are marked.\n"
      "- **floor**: the tables hold the same inputs several times with different times, as other "
      "software releases ran. Their scatter around their own mean is an error that no model of "
      "these inputs can avoid.\n"
      "- **baseline**: what a spreadsheet would do, one efficiency (model FLOPs over 16-bit peak) "
      "for each GPU, precision and recomputation, taken from the very rows.\n"
      "- **dense and experts** are apart: traffic of mixtures of experts changed more from release "
      "to release than anything else. **Reported and derived** are apart: a derived step time was "
      "worked out from tokens or FLOP/s and inherits the convention of its paper.\n";
  for (const PageTable* t : of_kind(input, "training")) {
    MarkdownTable table = error_table("");
    for (const std::string part : {"dense", "experts"}) {
      const ErrorSummary own = errors_in(t->report, {{"layers", part}});
      if (own.used == 0) continue;
      table.row(cells({part + ": ours"}, own));
      for (const auto& [name, text] :
           {std::pair<std::string, std::string>{"floor: identical inputs, ", ": floor"},
            {"baseline: one efficiency a class, ", ": baseline"}})
        if (const ReferenceError* r = reference(t->report, name + part))
          table.row(cells({part + text}, r->error));
    }
    out += table.text();
  }
  return section("How to read this page", out);
}

std::string summary(const PageInput& input) {
  MarkdownTable table{"table",   "what",  "in",   "not used>", "rows>",
                      "median>", "mean>", "P90>", "signed>"};
  const auto add = [&](const PageTable& t, const std::string& what, const std::string& unit,
                       const ErrorSummary& e, bool first) {
    table.row(cells({first ? base_name(t.report.table) : "", what, unit,
                     first ? count(t.report.skipped.size()) : ""},
                    e));
  };
  const auto add_parts = [&](const PageTable& t, const std::string& by) {
    bool first = true;
    for (const ErrorGroup& g : t.report.groups) {
      if (g.by != by) continue;
      const bool in_points =
          t.report.quantity.in_points || g.name.find("relative to") != g.name.npos;
      add(t, g.name, in_points ? "points" : "%", g.error, first);
      first = false;
    }
  };
  for (const PageTable& t : input.tables) {
    if (t.report.kind == "training") {
      add(t, "dense", "%", errors_in(t.report, {{"layers", "dense"}}), true);
      for (const std::string part : {"dense", "experts"})
        for (const std::string target : {"reported", "derived"})
          if (const ErrorSummary e = errors_in(t.report, {{"layers", part}, {"target", target}});
              e.used > 0)
            add(t, part + ", " + target, "%", e, false);
      add(t, "experts", "%", errors_in(t.report, {{"layers", "experts"}}), false);
    } else if (t.report.kind == "scaling") {
      add_parts(t, "mode");
    } else if (t.report.kind == "memory") {
      add_parts(t, "quantity");
    } else if (t.report.kind == "collectives") {
      add_parts(t, "size");
    } else {
      add(t, is_composed(t.report) ? "composed data, see below" : "all", "%", t.report.error, true);
    }
  }
  return section(
      "All tables",
      "\"Not used\" rows lack an input or are not modelled; why, is at the end.\n" + table.text());
}

std::string groups(const PageInput& input) {
  std::string out;
  for (const PageTable* t : of_kind(input, "training")) {
    MarkdownTable stacks{
        "stack, GPU, precision", "rows>", "median>", "mean>", "P90>", "signed>", ""};
    for (const bool experts : {false, true})
      for (const ErrorGroup& g : t->report.groups) {
        if (g.by != "stack, GPU, precision" || g.name.ends_with(", experts") != experts) continue;
        std::vector<std::string> row = cells({g.name}, g.error);
        const bool is_marked = g.error.used >= least_rows_to_judge &&
                               std::abs(g.error.mean_signed_pct) > most_signed_pct;
        row.emplace_back(is_marked ? "**sign**" : "");
        stacks.row(row);
      }
    out += "Software stack, GPU and precision:\n" + stacks.text();
    MarkdownTable sizes = error_table("GPUs of the job, dense");
    for (const char* size : {"<= 8", "<= 64", "<= 256", "<= 1024", "<= 4096", "> 4096"})
      if (const ErrorSummary e = errors_in(t->report, {{"layers", "dense"}, {"GPUs", size}});
          e.used > 0)
        sizes.row(cells({size}, e));
    out += "Size of the job (each class begins where the one before ends):\n" + sizes.text();
    for (const auto& [by, title] : {std::pair<std::string, std::string>{"precision", "precision"},
                                    {"recomputation", "recomputation"}}) {
      MarkdownTable table = error_table(title);
      add_groups(table, t->report, by);
      out += table.text();
    }
    MarkdownTable sure{"uncertainty", "rows>", "median>", "mean>", "P90>", "signed>", "expected"};
    for (const auto u :
         {Uncertainty::calibrated, Uncertainty::extrapolated, Uncertainty::new_system})
      for (const ErrorGroup& g : t->report.groups)
        if (g.by == "uncertainty" && g.name == text_of(u)) {
          std::vector<std::string> row = cells({g.name}, g.error);
          row.emplace_back(expected_step_error(u));
          sure.row(row);
        }
    out +=
        "Every prediction carries a class of uncertainty; \"expected\" is the error of new rows "
        "of that class, from leaving what is new out of the fit:\n" +
        sure.text();
  }
  return out.empty() ? out : section("Training runs by group", out);
}

std::string furthest_off(const PageInput& input) {
  std::string out;
  for (const PageTable* t : of_kind(input, "training")) {
    const auto add = [&](const std::string& part, std::size_t most) {
      std::vector<const ValidatedRow*> rows;
      for (const ValidatedRow& row : t->report.predictions)
        if (is_in(row.prediction, {"layers", part})) rows.push_back(&row);
      std::stable_sort(rows.begin(), rows.end(), [](const ValidatedRow* a, const ValidatedRow* b) {
        return std::abs(a->error_pct) > std::abs(b->error_pct);
      });
      if (rows.size() > most) rows.resize(most);
      MarkdownTable table{
          "row", "error %>", "published s>", "predicted s>", "stack, GPU, precision", "GPUs>"};
      for (const ValidatedRow* row : rows) {
        std::string group;
        for (const auto& [by, name] : row->prediction.groups)
          if (by == "stack, GPU, precision") group = name;
        table.row(
            {row->id, signed_digit(row->error_pct), formatted("%.4g", row->prediction.published),
             formatted("%.4g", row->prediction.predicted), group, text_of_row(*t, *row, "gpus")});
      }
      if (!table.is_empty()) out += "Rows " + part + ", furthest off first:\n" + table.text();
    };
    add("dense", 15);
    add("experts", 10);
  }
  return out.empty() ? out : section("Furthest off", out);
}

std::string rules(const PageInput& input) {
  std::map<std::string, std::vector<std::string>> tables_of_rule;
  for (const PageTable& t : input.tables)
    for (const auto& [rule, rows] : t.report.rules)
      tables_of_rule[rule].push_back(base_name(t.report.table) + " " + count(rows));
  MarkdownTable table{"rule", "rows"};
  for (const auto& [rule, tables] : tables_of_rule) table.row({rule, joined(tables)});
  if (table.is_empty()) return {};
  return section(
      "Rules that filled missing inputs",
      "A rule looks at what a row is (its stack, its numbers), never at which row it is; "
      "`trainyard validate TABLE.csv --csv FILE` names those of each row.\n" +
          table.text());
}

std::string skipped(const PageInput& input) {
  MarkdownTable table{"table", "rows>", "why", "which"};
  for (const PageTable& t : input.tables) {
    std::map<std::string, std::vector<std::string>> ids_of_reason;
    for (const SkippedRow& row : t.report.skipped) ids_of_reason[row.reason].push_back(row.id);
    for (auto& [reason, ids] : ids_of_reason) {
      const std::size_t all = ids.size();
      if (all > ids_named) ids.resize(ids_named);
      const std::string more =
          all > ids.size() ? " and " + count(all - ids.size()) + " more" : std::string();
      table.row({base_name(t.report.table), count(all), reason,
                 (t.table.has("id") ? "" : "lines ") + joined(ids) + more});
    }
  }
  if (table.is_empty()) return {};
  return section("Rows not used", "Nothing is left out because it does not fit.\n" + table.text());
}

}  // namespace page

std::string with_errors(const std::string& notes, const PageInput& input) {
  std::map<std::string, std::string, std::less<>> errors;
  for (const PageTable& t : input.tables)
    for (const ValidatedRow& row : t.report.predictions) {
      const std::string error = signed_digit(row.error_pct);
      errors.emplace(row.id, error);
      errors.emplace(page::base_name(t.report.table) + ":" + row.id, error);
    }
  std::string out;
  for (std::size_t at = 0; at < notes.size();) {
    const std::size_t end = notes[at] == '{' ? notes.find('}', at) : notes.npos;
    const auto found =
        end == notes.npos ? errors.end() : errors.find(notes.substr(at + 1, end - at - 1));
    if (found == errors.end()) {
      out += notes[at++];
    } else {
      out += found->second;
      at = end + 1;
    }
  }
  return out;
}

std::string validation_page(const PageInput& input) {
  std::string out = "# Validation: published figures against ours\n";
  for (const auto part :
       {page::how_to_read, page::summary, page::groups, page::layouts, page::scaling, page::mlperf,
        page::memory, page::collectives, page::constants, page::carry, page::ablations, page::rules,
        page::skipped, page::furthest_off})
    out += part(input);
  if (!input.notes.empty()) out += "\n" + with_errors(input.notes, input);
  // One blank line between blocks.
  for (std::size_t at; (at = out.find("\n\n\n")) != out.npos;) out.erase(at, 1);
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace trainyard::scenarios
