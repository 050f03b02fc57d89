#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

/// The few pieces of Markdown that generated pages are made of.
namespace trainyard::scenarios {

/// "| a | b |" lines; columns of numbers are aligned to the right.
class MarkdownTable {
 public:
  /// A heading that ends in '>' is one of numbers: "rows>".
  explicit MarkdownTable(std::initializer_list<std::string_view> headings);
  /// As many cells as headings.
  void row(const std::vector<std::string>& cells);
  bool is_empty() const { return rows_ == 0; }
  /// With a blank line before and after.
  std::string text() const;

 private:
  std::size_t columns_;
  std::size_t rows_ = 0;
  std::string text_;
};

/// "3.6"
std::string one_digit(double x);
/// "+3.6", "0.0"
std::string signed_digit(double x);
/// printf with one number.
std::string formatted(const char* format, double x);
std::string joined(const std::vector<std::string>& texts, std::string_view between = ", ");

}  // namespace trainyard::scenarios
