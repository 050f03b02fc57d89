#include "cli/page.hpp"

#include <algorithm>

namespace trainyard::cli {

void Page::heading(const std::string& text) {
  line();
  line(painted(terminal_, Colour::bold, text));
}

void Page::row(const std::string& name, const std::string& value, const std::string& remark) {
  constexpr std::size_t name_columns = 15, value_columns = 11;
  constexpr std::size_t indent = 4 + name_columns + value_columns + 2;
  const std::size_t width = std::max(std::size_t(terminal_.width), indent + 20) - indent;
  const auto remarks = wrapped(remark, width);
  line("    " + left(name, name_columns) +
       painted(terminal_, Colour::bold, right(value, value_columns)) +
       (remarks.empty() ? "" : "  " + remarks.front()));
  for (std::size_t i = 1; i < remarks.size(); ++i) line(std::string(indent, ' ') + remarks[i]);
}

void Page::bar_row(const std::string& name, Colour colour, double share,
                   const std::string& percentage, const std::string& amount) {
  constexpr std::size_t name_columns = 23, percent_columns = 9, amount_columns = 14;
  const int columns =
      std::max(8, terminal_.width - 2 - int(name_columns + percent_columns + amount_columns) - 1);
  const std::string drawn = bar(terminal_, share, columns);
  line("  " + left(name, name_columns) + painted(terminal_, colour, drawn) +
       std::string(std::size_t(columns) + 1 - std::min(columns_of(drawn), std::size_t(columns)),
                   ' ') +
       right(percentage, percent_columns) + right(amount, amount_columns));
}

void Page::bullet(Colour colour, const std::string& mark, const std::string& text) {
  const std::size_t indent = 3 + columns_of(mark);
  const auto lines = wrapped(text, std::size_t(std::max(terminal_.width, 40)) - indent);
  for (std::size_t i = 0; i < lines.size(); ++i)
    line((i == 0 ? "  " + painted(terminal_, colour, mark) + ' ' : std::string(indent, ' ')) +
         lines[i]);
}

}  // namespace trainyard::cli
