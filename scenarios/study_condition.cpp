#include "scenarios/study_condition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

namespace trainyard::scenarios {

std::size_t index_of(const std::vector<Axis>& axes, const std::string& name) {
  std::size_t a = 0;
  while (a < axes.size() && axes[a].name != name) ++a;
  return a;
}

std::string known_axes(const std::vector<Axis>& axes) {
  std::string out;
  for (const Axis& axis : axes) out += (out.empty() ? "" : ", ") + axis.name;
  return out.empty() ? "there are no axes" : "axes: " + out;
}

std::optional<Condition> parse_condition(const Fields& study, const Node& node,
                                         const AxisPlan& plan) {
  static const std::regex form(R"(\s*([A-Za-z0-9_-]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*)");
  const auto wrong = [&](std::string what, std::string right) {
    study.wrong(node, "where", std::move(what), std::move(right));
    return std::nullopt;
  };
  const char* example = "\"scale <= 4096 or topology = fat-tree\"";
  if (node.kind != Node::Kind::text) return wrong("expected a condition, as text", example);
  Condition condition;
  for (std::size_t start = 0; start <= node.text.size();) {
    const std::size_t end = std::min(node.text.find(" or ", start), node.text.size());
    const std::string one = node.text.substr(start, end - start);
    start = end + (end < node.text.size() ? 4 : 1);
    std::smatch parts;
    if (!std::regex_match(one, parts, form) || parts[3].str().empty())
      return wrong("cannot read the comparison " + in_quotes(one), example);
    Condition::Comparison c;
    c.axis = index_of(plan.axes, parts[1]);
    if (c.axis == plan.axes.size())
      return wrong("there is no axis " + in_quotes(parts[1].str()), known_axes(plan.axes));
    c.relation = parts[2] == "==" ? "=" : parts[2].str();
    c.label = parts[3];
    const Axis& axis = plan.axes[c.axis];
    std::string units;
    c.number = number_of_label(c.label, units);
    if (axis.units.empty() || units != axis.units)
      c.number = std::numeric_limits<double>::quiet_NaN();
    const bool is_order = c.relation != "=" && c.relation != "!=";
    if (is_order && std::isnan(c.number))
      return wrong(
          "the axis " + axis.name + " and " + in_quotes(c.label) + " cannot be put in order",
          axis.units.empty() ? "compare it with = or !="
                             : "a number as its values are: " + axis.values[0].label);
    if (!is_order && std::isnan(c.number) &&
        std::none_of(axis.values.begin(), axis.values.end(),
                     [&](const AxisValue& v) { return v.label == c.label; })) {
      std::string all;
      for (const AxisValue& v : axis.values) all += (all.empty() ? "" : ", ") + v.label;
      return wrong("the axis " + axis.name + " has no value " + in_quotes(c.label),
                   "values: " + all);
    }
    condition.any.push_back(std::move(c));
  }
  return condition;
}

bool Condition::holds(const std::vector<const AxisValue*>& point) const {
  return std::any_of(any.begin(), any.end(), [&](const Comparison& c) {
    const AxisValue& value = *point[c.axis];
    const bool is_number = !std::isnan(c.number) && !std::isnan(value.number);
    const bool is_equal = is_number ? value.number == c.number : value.label == c.label;
    if (c.relation == "=") return is_equal;
    if (c.relation == "!=") return !is_equal;
    if (!is_number) return false;
    if (c.relation == "<") return value.number < c.number;
    if (c.relation == "<=") return value.number <= c.number;
    if (c.relation == ">") return value.number > c.number;
    return value.number >= c.number;
  });
}

}  // namespace trainyard::scenarios
