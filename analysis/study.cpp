#include "analysis/study.hpp"

namespace trainyard::analysis {

std::optional<Better> better_named(std::string_view name) {
  for (const Better b : {Better::neither, Better::higher, Better::lower})
    if (name == name_of(b)) return b;
  return std::nullopt;
}

std::string Study::name_of_point(std::size_t point) const {
  std::string out;
  for (std::size_t a = 0; a < axes.size(); ++a)
    out += (out.empty() ? "" : ", ") + axes[a].name + ' ' + points[point].labels[a];
  return out.empty() ? "as it is" : out;
}

std::string Study::name_of_part(std::size_t point, bool is_given) const {
  std::string out;
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (axes[a].is_given == is_given)
      out += (out.empty() ? "" : ", ") + axes[a].name + ' ' + points[point].labels[a];
  return out;
}

std::size_t Study::axis(std::string_view name) const {
  std::size_t a = 0;
  while (a < axes.size() && axes[a].name != name) ++a;
  return a;
}

std::size_t Study::metric(std::string_view name) const {
  std::size_t m = 0;
  while (m < metrics.size() && metrics[m].name != name) ++m;
  return m;
}

}  // namespace trainyard::analysis
