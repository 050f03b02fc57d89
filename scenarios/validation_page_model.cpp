#include <algorithm>

#include "scenarios/validation_page_parts.hpp"

/// Sections of the validation page on constants and mechanisms.
namespace trainyard::scenarios {
namespace {

/// The figure of the catalog that a place names; of "*" the first that there is.
const Figure* find_figure(const Catalog& catalog, const FigurePlace& place) {
  for (const std::string& name : catalog.names(place.kind))
    for (const Figure& figure : catalog.find(place.kind, name)->figures)
      if (place.covers({place.kind, name, figure.key})) return &figure;
  return nullptr;
}

/// "t.csv: 12 rows (a 7, b 5); u.csv: 2 rows (c 2)" without what is in brackets.
std::string without_brackets(const std::string& text) {
  std::string out;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) out += c;
    if (c == ')') --depth;
  }
  for (std::size_t at; (at = out.find(" ;")) != out.npos;) out.erase(at, 1);
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

ConstantLine line_of(const Catalog& catalog, const std::string& name, const FigurePlace& place,
                     const std::string& why) {
  ConstantLine line{
      .name = name, .value = "-", .standard_error = "-", .prior = "-", .rows = "-", .why = why};
  const Figure* figure = find_figure(catalog, place);
  if (!figure) return line;
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  line.value = or_dash(figure->value);
  line.standard_error = or_dash(figure->standard_error);
  line.prior = or_dash(figure->prior);
  line.rows = or_dash(without_brackets(figure->rows));
  return line;
}

}  // namespace

std::vector<ConstantLine> constant_lines(const Catalog& catalog, const ConstantTable& table) {
  std::vector<ConstantLine> out;
  for (const Constant& c : table.constants)
    out.push_back(line_of(catalog, c.name, c.sets.front(), c.why));
  for (const TiedFigure& tied : table.tied)
    out.push_back(
        line_of(catalog, tied.place.part + " " + tied.place.key + " (tied)", tied.place, tied.why));
  return out;
}

namespace page {

std::string constants(const PageInput& input) {
  MarkdownTable table{"constant", "value>", "standard error>", "prior>", "rows", "why"};
  std::size_t fitted = 0;
  for (const ConstantLine& c : input.constants) {
    table.row({c.name, c.value, c.standard_error, c.prior, c.rows, c.why});
    fitted += !c.name.ends_with("(tied)");
  }
  if (table.is_empty()) return {};
  return section(
      "Calibrated constants",
      "The " + count(fitted) +
          " figures that `trainyard calibrate` fits ([guide](guide/calibrate.md)); everything else "
          "in the catalog is a documented fact of its part. None belongs to a row or a paper. "
          "Rates are fractions of the nominal peak. The standard error says how well the rows fix "
          "a constant within this model; rows are those that it moves. A constant set in several "
          "parts stands here once.\n" +
          table.text());
}

std::string carry(const PageInput& input) {
  const std::string title = "How far the constants carry";
  const std::string how =
      "`trainyard calibrate validation/training_throughput.csv "
      "validation/vtrain_measured_multi_node.csv validation/vtrain_measured_single_node.csv "
      "validation/device_micro.csv --largest-gpus 8 --leave-out all --carry validation/carry.json`";
  if (!input.carry)
    return section(title, "Not at hand: each study refits all constants. Made by " + how + ".\n");
  const auto table_of = [](std::string_view heading, const std::vector<HeldOut>& studies) {
    MarkdownTable table{heading, "fitted on rows>", "tried on rows>", "median>", "mean>",
                        "P90>",  "signed>"};
    for (const HeldOut& s : studies) table.row(cells({s.name, count(s.fitted)}, s.error));
    return table.text();
  };
  std::string out =
      "Above, every row was predicted with constants that it helped to fit. Here they were fitted "
      "on some rows and tried on others: the error to expect of a cluster or a stack that the fit "
      "has not seen. Rows without experts; refits made by " +
      how + ".\n";
  if (input.carry->constants != input.constants_digest)
    out += "\n**These studies were made with other constants than the catalog now holds.**\n";
  if (!input.carry->larger.empty())
    out +=
        "\nFitted on runs of at most " + std::to_string(input.carry->largest_gpus) +
        " GPUs (of a GPU type and precision without such runs: the smallest there are), tried on "
        "all larger ones:\n" +
        table_of("tried on", input.carry->larger);
  if (!input.carry->left_out.empty())
    out +=
        "\nFitted without one software stack, tried on its runs. A stack that alone has a GPU "
        "type or a precision loses that constant, too, and falls back to the prior:\n" +
        table_of("left out", input.carry->left_out);
  return section(title, out);
}

std::string ablations(const PageInput& input) {
  if (input.ablations.size() < 2) return {};
  const AblationEffect& whole = input.ablations.front();
  std::vector<const AblationEffect*> order;
  for (std::size_t i = 1; i < input.ablations.size(); ++i) order.push_back(&input.ablations[i]);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->dense.mean_abs_pct > b->dense.mean_abs_pct;
  });
  MarkdownTable table{"off", "dense mean>", "dense signed>",
                      "who suffers most: mean error before -> after (signed after)"};
  for (const AblationEffect* effect : order) {
    std::vector<std::string> groups;
    for (const GroupEffect& g : effect->suffers)
      groups.push_back(g.group + " " + one_digit(g.with.mean_abs_pct) + " -> " +
                       one_digit(g.without.mean_abs_pct) + " (" +
                       signed_digit(g.without.mean_signed_pct) + ")");
    table.row({effect->name, one_digit(effect->dense.mean_abs_pct),
               signed_digit(effect->dense.mean_signed_pct),
               groups.empty() ? "-" : joined(groups, "; ")});
  }
  return section(
      "Ablations: what each mechanism is worth",
      "One mechanism of the step model off, all constants as they are (not fitted again: the rest "
      "would absorb some of it). Mean absolute error of the " +
          count(whole.dense.used) + " dense training runs, " + one_digit(whole.dense.mean_abs_pct) +
          " % with everything on, and the groups of rows (software stacks; vTrain's tables) whose "
          "mean error rises most. A mechanism that nobody misses would not be needed; a test keeps "
          "the groups that must suffer.\n" +
          table.text());
}

}  // namespace page
}  // namespace trainyard::scenarios
