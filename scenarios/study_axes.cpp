#include "scenarios/study_axes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "scenarios/study_condition.hpp"
#include "scenarios/study_fields.hpp"
#include "scenarios/units_text.hpp"
#include "sim/random.hpp"

namespace trainyard::scenarios {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t most_values = 1000;

std::optional<double> plain_number(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// "12.5 min" as 12.5 and " min".
std::optional<std::pair<double, std::string>> number_and_unit(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return std::pair(value, std::string(end, text.data() + text.size()));
}

/// Four significant digits, so that the label says the very value that is run.
double rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::pow(10, std::floor(std::log10(std::abs(x))) - 3);
  double out = std::round(x / unit) * unit;
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", out);
  std::from_chars(text, text + std::char_traits<char>::length(text), out);
  return out;
}

std::string digits(double x) {
  char text[40];
  const bool is_usual = x == 0 || (std::abs(x) >= 1e-4 && std::abs(x) < 1e15);
  const auto [end, error] =
      std::to_chars(text, text + sizeof text, x,
                    is_usual ? std::chars_format::fixed : std::chars_format::scientific);
  return {text, end};
}

std::string label_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::text:
    case Node::Kind::number:
      return node.text;
    case Node::Kind::boolean:
      return node.boolean ? "true" : "false";
    case Node::Kind::null:
      return "none";
    case Node::Kind::list:
    case Node::Kind::object:
      break;
  }
  return {};
}

/// Reads one axis.
class AxisReader {
 public:
  AxisReader(const Node& node, const std::string& name, std::vector<Diagnostic>& diagnostics)
      : fields_(node, "axes." + name,
                {"path", "values", "from", "to", "points", "spacing", "given"}, diagnostics) {
    axis_.name = name;
    axis_.place = node.place;
    axis_.path = fields_.text("path").value_or("");
    axis_.is_given = fields_.flag("given").value_or(false);
    if (node.kind != Node::Kind::object) return;
    const Node* values = fields_.find("values");
    const bool is_range = fields_.has("from") || fields_.has("to") || fields_.has("points");
    if (values != nullptr && is_range)
      fields_.wrong("values", "an axis has values, or from, to and points; this one has both");
    else if (values != nullptr)
      read_values(*values);
    else if (is_range)
      read_range();
    else
      fields_.wrong("values", "the axis has no values",
                    "\"values\": [1, 2, 4], or \"from\", \"to\" and \"points\"");
    find_numbers();
  }

  Axis take() { return std::move(axis_); }

 private:
  void read_values(const Node& values) {
    if (values.kind == Node::Kind::object) {
      for (const Member& member : values.members) {
        if (axis_.path.empty() && member.value.kind != Node::Kind::object)
          fields_.wrong(member.value, fields_.path_of("values." + member.key),
                        "expected an object of settings, found " + member.value.as_found(),
                        "give the axis a \"path\", or each value {\"cluster\": {…}}");
        axis_.values.push_back({member.key, no_number, member.value, {}});
      }
    } else if (values.kind == Node::Kind::list) {
      if (axis_.path.empty())
        fields_.wrong("path", "values in a list are those of one setting, and none is named",
                      "\"path\": \"cluster.fabric.leaf_oversubscription\", or values with names: "
                      "{\"small\": {…}, \"large\": {…}}");
      for (const Node& item : values.items) {
        const std::string label = label_of(item);
        if (label.empty())
          fields_.wrong(item, fields_.path_of("values"),
                        "a value that is " + item.as_found() + " needs a name",
                        "\"values\": {\"NAME\": …}");
        axis_.values.push_back({label, no_number, item, {}});
      }
    } else {
      fields_.wrong("values", "expected a list or an object, found " + values.as_found());
      return;
    }
    if (axis_.values.empty()) fields_.wrong("values", "there is no value in it");
    std::set<std::string> seen;
    for (const AxisValue& value : axis_.values)
      if (!seen.insert(value.label).second)
        fields_.wrong("values", "the value " + in_quotes(value.label) + " is there twice");
  }

  void read_range() {
    if (axis_.path.empty())
      fields_.wrong("path", "a range is one of a setting, and none is named",
                    "\"path\": \"jobs.llm.checkpoint.interval\"");
    const std::string spacing = fields_.text("spacing").value_or("linear");
    if (spacing != "linear" && spacing != "log")
      fields_.wrong("spacing", "unknown spacing " + in_quotes(spacing), "linear or log");
    const Node* from = fields_.find("from");
    const Node* to = fields_.find("to");
    const auto points = fields_.whole("points", 2, most_values);
    if (from == nullptr || to == nullptr || !fields_.has("points")) {
      fields_.wrong(from == nullptr ? "from"
                    : to == nullptr ? "to"
                                    : "points",
                    "a range has from, to and points");
      return;
    }
    const auto low = number_and_unit(from->text), high = number_and_unit(to->text);
    const auto fits = [](const Node& n, const auto& read) {
      return read && ((n.kind == Node::Kind::number && read->second.empty()) ||
                      (n.kind == Node::Kind::text && !read->second.empty()));
    };
    if (!fits(*from, low) || !fits(*to, high)) {
      fields_.wrong(fits(*from, low) ? "to" : "from",
                    "expected a number, or a number with a unit as text, found " +
                        (fits(*from, low) ? *to : *from).as_found());
      return;
    }
    if (low->second != high->second) {
      fields_.wrong("to",
                    "from and to are in different units, found \"" + from->text + "\" and \"" +
                        to->text + '"',
                    "write both in one unit");
      return;
    }
    if (spacing == "log" && (low->first <= 0 || high->first <= 0)) {
      fields_.wrong(low->first <= 0 ? "from" : "to", "a logarithmic range is above zero");
      return;
    }
    if (low->first == high->first) {
      fields_.wrong("to", "from and to are equal: that is one value");
      return;
    }
    const bool is_whole = low->second.empty() &&
                          from->text.find_first_of(".eE") == std::string::npos &&
                          to->text.find_first_of(".eE") == std::string::npos;
    axis_.at = [a = low->first, b = high->first, unit = low->second, is_log = spacing == "log",
                is_whole, place = from->place](double share) {
      double x = is_log ? a * std::pow(b / a, share) : a + share * (b - a);
      x = is_whole ? std::round(x) : rounded(x);
      AxisValue value{digits(x) + unit, no_number, {}, {}};
      value.node = Node::of_text(value.label, place);
      if (unit.empty()) {
        value.node.kind = Node::Kind::number;
        value.node.number = x;
      }
      std::string ignored;
      value.number = number_of_label(value.label, ignored);
      return value;
    };
    if (!points) return;
    for (std::int64_t i = 0; i < *points; ++i) {
      AxisValue value = axis_.at(double(i) / double(*points - 1));
      if (!axis_.values.empty() && axis_.values.back().label == value.label) {
        fields_.wrong("points", "so many whole numbers are not between from and to");
        return;
      }
      axis_.values.push_back(std::move(value));
    }
  }

  /// Numbers are good for curves only if all values have them, in one unit.
  void find_numbers() {
    bool all = !axis_.values.empty();
    for (AxisValue& value : axis_.values) {
      std::string units;
      value.number = number_of_label(value.label, units);
      all &= !std::isnan(value.number) && (axis_.units.empty() || axis_.units == units);
      if (axis_.units.empty()) axis_.units = units;
    }
    if (all) return;
    axis_.units.clear();
    for (AxisValue& value : axis_.values) value.number = no_number;
  }

  Fields fields_;
  Axis axis_;
};

void read_zip(const Fields& study, AxisPlan& plan) {
  const Node* zip = study.find("zip");
  if (zip == nullptr) return;
  const char* form = "\"zip\": [[\"gpus\", \"servers\"]]: axes that advance together";
  if (zip->kind != Node::Kind::list)
    return study.wrong("zip", "expected a list of lists, found " + zip->as_found(), form);
  std::set<std::size_t> seen;
  for (const Node& set : zip->items) {
    if (set.kind != Node::Kind::list || set.items.size() < 2)
      return study.wrong(set, "zip", "expected a list of at least two axes", form);
    std::vector<std::size_t> together;
    for (const Node& name : set.items) {
      const std::size_t a = index_of(plan.axes, name.text);
      if (a == plan.axes.size())
        return study.wrong(name, "zip", "there is no axis " + in_quotes(name.text),
                           known_axes(plan.axes));
      if (!seen.insert(a).second)
        return study.wrong(name, "zip", "the axis " + in_quotes(name.text) + " is named twice");
      if (!together.empty() &&
          plan.axes[a].values.size() != plan.axes[together.front()].values.size())
        return study.wrong(name, "zip",
                           "axes that advance together have equally many values; " + name.text +
                               " has " + std::to_string(plan.axes[a].values.size()) + ", " +
                               plan.axes[together.front()].name + " has " +
                               std::to_string(plan.axes[together.front()].values.size()));
      together.push_back(a);
    }
    plan.zipped.push_back(std::move(together));
  }
}

/// "cases" in the values of an axis: their conditions name other axes, so they are read last.
void read_cases(const Fields& study, AxisPlan& plan, std::vector<Diagnostic>& diagnostics) {
  const char* form =
      "\"cases\": [{\"where\": \"topology = dragonfly\", \"set\": {\"cluster\": {…}}}]";
  for (Axis& axis : plan.axes)
    for (AxisValue& value : axis.values) {
      const Node* found = axis.path.empty() ? value.node.find("cases") : nullptr;
      if (found == nullptr) continue;
      const Node cases = *found;
      const std::string path = "axes." + axis.name + ".values." + value.label + ".cases";
      std::erase_if(value.node.members, [](const Member& m) { return m.key == "cases"; });
      if (cases.kind != Node::Kind::list) {
        study.wrong(cases, path, "expected a list, found " + cases.as_found(), form);
        continue;
      }
      for (const Node& one : cases.items) {
        const Fields fields(one, path, {"where", "set"}, diagnostics);
        const Node *where = fields.find("where"), *set = fields.find("set");
        if (where == nullptr || set == nullptr || set->kind != Node::Kind::object) {
          study.wrong(one, path, "a case has a condition and settings", form);
          continue;
        }
        if (auto condition = parse_condition(study, *where, plan))
          value.cases.push_back({std::move(*condition), *set});
      }
    }
}

std::vector<std::vector<AxisValue>> grid_of(const AxisPlan& plan, std::size_t most,
                                            bool& too_many) {
  struct Digit {
    std::vector<std::size_t> axes;
    std::size_t values, at = 0;
  };
  std::vector<Digit> digits;
  for (std::size_t a = 0; a < plan.axes.size(); ++a) {
    const auto set = std::find_if(plan.zipped.begin(), plan.zipped.end(), [&](const auto& z) {
      return std::find(z.begin(), z.end(), a) != z.end();
    });
    if (set == plan.zipped.end())
      digits.push_back({{a}, plan.axes[a].values.size()});
    else if (*std::min_element(set->begin(), set->end()) == a)
      digits.push_back({*set, plan.axes[a].values.size()});
  }
  std::vector<std::vector<AxisValue>> out;
  for (;;) {
    std::vector<const AxisValue*> point(plan.axes.size());
    for (const Digit& digit : digits)
      for (const std::size_t a : digit.axes) point[a] = &plan.axes[a].values[digit.at];
    if (std::all_of(plan.where.begin(), plan.where.end(),
                    [&](const Condition& c) { return c.holds(point); })) {
      if ((too_many = out.size() == most)) return out;
      std::vector<AxisValue>& kept = out.emplace_back();
      for (const AxisValue* value : point) kept.push_back(*value);
    }
    std::size_t d = digits.size();
    while (d > 0 && ++digits[d - 1].at == digits[d - 1].values) digits[--d].at = 0;
    if (d == 0) return out;
  }
}

std::vector<std::vector<AxisValue>> samples_of(const AxisPlan& plan) {
  std::vector<std::vector<AxisValue>> out(plan.samples);
  for (const Axis& axis : plan.axes) {
    sim::Stream luck(sim::Seed{plan.sample_seed}, "latin-hypercube/" + axis.name);
    std::vector<std::size_t> part(plan.samples);
    std::iota(part.begin(), part.end(), std::size_t(0));
    for (std::size_t i = part.size(); i > 1; --i) std::swap(part[i - 1], part[luck.below(i)]);
    for (std::size_t i = 0; i < plan.samples; ++i) {
      const double share = (double(part[i]) + luck.uniform()) / double(plan.samples);
      out[i].push_back(axis.at ? axis.at(share)
                               : axis.values[std::size_t(share * double(axis.values.size()))]);
    }
  }
  std::erase_if(out, [&](const std::vector<AxisValue>& values) {
    std::vector<const AxisValue*> point;
    for (const AxisValue& v : values) point.push_back(&v);
    return !std::all_of(plan.where.begin(), plan.where.end(),
                        [&](const Condition& c) { return c.holds(point); });
  });
  return out;
}

}  // namespace

double number_of_label(const std::string& label, std::string& units) {
  if (const auto plain = plain_number(label)) {
    units = "1";
    return *plain;
  }
  UnitError ignored;
  if (const auto time = parse_duration(label, ignored)) {
    units = "s";
    return to_seconds(*time);
  }
  constexpr std::pair<Dimension, const char*> dimensions[] = {
      {Dimension::bytes, "B"},       {Dimension::rate, "B/s"},  {Dimension::power, "W"},
      {Dimension::flop_rate, "1/s"}, {Dimension::money, "USD"}, {Dimension::voltage, "V"},
      {Dimension::current, "A"},     {Dimension::energy, "J"},  {Dimension::apparent, "VA"}};
  for (const auto& [dimension, name] : dimensions)
    if (const auto value = parse_quantity(label, dimension, ignored)) {
      units = name;
      return *value;
    }
  units.clear();
  return no_number;
}

std::vector<std::vector<AxisValue>> points_of(const AxisPlan& plan, std::size_t most,
                                              bool& too_many) {
  too_many = plan.samples > most;
  if (too_many) return {};
  return plan.samples > 0 ? samples_of(plan) : grid_of(plan, most, too_many);
}

AxisPlan read_axes(const Node& study, std::vector<Diagnostic>& diagnostics) {
  AxisPlan plan;
  const Node* axes = study.find("axes");
  std::vector<std::string> every;  // keys were judged by whoever read the study
  for (const Member& member : study.members) every.push_back(member.key);
  const Fields fields(study, "", every, diagnostics);
  const std::size_t before = diagnostics.size();
  if (axes != nullptr && axes->kind != Node::Kind::object)
    fields.wrong("axes", "expected an object, found " + axes->as_found(),
                 "\"axes\": {\"spares\": {\"path\": \"cluster.spares\", \"values\": [0, 2, 4]}}");
  else if (axes != nullptr)
    for (const Member& member : axes->members) {
      if (!is_plain_name(member.key))
        fields.wrong(member.value, "axes." + member.key,
                     "the name of an axis has letters, digits, '_' and '-' only");
      plan.axes.push_back(AxisReader(member.value, member.key, diagnostics).take());
    }
  if (diagnostics.size() > before) return plan;
  read_zip(fields, plan);
  read_cases(fields, plan, diagnostics);
  if (const Node* where = fields.find("where")) {
    if (where->kind == Node::Kind::list) {
      for (const Node& item : where->items)
        if (auto condition = parse_condition(fields, item, plan))
          plan.where.push_back(std::move(*condition));
    } else if (auto condition = parse_condition(fields, *where, plan)) {
      plan.where.push_back(std::move(*condition));
    }
  }
  if (const Node* sample = fields.find("latin_hypercube")) {
    const Fields of_sample(*sample, "latin_hypercube", {"points", "seed"}, diagnostics);
    plan.samples = std::size_t(of_sample.whole("points", 2, 10000).value_or(0));
    if (!of_sample.has("points"))
      of_sample.wrong("points", "it has no points", "\"latin_hypercube\": {\"points\": 50}");
    plan.sample_seed = std::uint64_t(of_sample.whole("seed", 0, INT64_MAX).value_or(1));
    if (!plan.zipped.empty())
      fields.wrong("zip", "a Latin hypercube draws every axis by itself; zip has no effect in it");
  }
  return plan;
}

}  // namespace trainyard::scenarios
