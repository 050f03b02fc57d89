#include "scenarios/markdown.hpp"

#include <cstdio>

#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

/// Cells come from tables of others: a bar or a line break would end them.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

}  // namespace

MarkdownTable::MarkdownTable(std::initializer_list<std::string_view> headings)
    : columns_(headings.size()) {
  std::string rule;
  text_ = "|";
  rule = "|";
  for (std::string_view heading : headings) {
    const bool is_number = heading.ends_with('>');
    if (is_number) heading.remove_suffix(1);
    text_ += " " + cell(heading) + " |";
    rule += is_number ? "---:|" : "---|";
  }
  text_ += "\n" + rule + "\n";
}

void MarkdownTable::row(const std::vector<std::string>& cells) {
  check(cells.size() == columns_, "a row has a cell for every column", cells.size(), columns_);
  ++rows_;
  text_ += "|";
  for (const std::string& text : cells) text_ += " " + cell(text) + " |";
  text_ += "\n";
}

std::string MarkdownTable::text() const {
  return "\n" + text_ + "\n";
}

std::string formatted(const char* format, double x) {
  char text[40];
  std::snprintf(text, sizeof text, format, x);
  // "-0.0" is 0.0
  const std::string out = text;
  return out.find_first_of("123456789") == out.npos && out[0] == '-' ? out.substr(1) : out;
}

std::string one_digit(double x) {
  return formatted("%.1f", x);
}

std::string signed_digit(double x) {
  const std::string out = formatted("%+.1f", x);
  return out == "+0.0" ? "0.0" : out;
}

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += between;
    out += text;
  }
  return out;
}

}  // namespace trainyard::scenarios
