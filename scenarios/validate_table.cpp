#include "scenarios/validate_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <istream>
#include <iterator>

namespace trainyard::scenarios {
namespace {

constexpr std::size_t most_columns = 1000;

Diagnostic mistake(const std::string& file, int line, int column, std::string what,
                   std::string right, std::string code) {
  return {file, line, column, {}, std::move(what), std::move(right), std::move(code), {}};
}

/// As spreadsheets and pandas write what is not there.
bool is_unknown(std::string_view text) {
  return text.empty() || text == "nan" || text == "NaN" || text == "NA";
}

/// Cuts text into records of fields, with the place of each.
class RecordReader {
 public:
  RecordReader(std::string_view text, const std::string& file, std::vector<Diagnostic>& mistakes)
      : text_(text), file_(file), mistakes_(mistakes) {}

  /// False at the end of the text. Blank lines are no records.
  bool next(TableRow& row) {
    while (at_ < text_.size() && is_line_end()) skip_line_end();
    if (at_ >= text_.size()) return false;
    row = {.line = line_, .cells = {}};
    while (true) {
      row.cells.push_back(field());
      if (at_ >= text_.size()) return true;
      if (is_line_end()) {
        skip_line_end();
        return true;
      }
      advance();  // the comma
    }
  }

 private:
  bool is_line_end() const {
    return text_[at_] == '\n' ||
           (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
  }
  void skip_line_end() {
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    column_ = 1;
  }
  void advance() {
    if (text_[at_] == '\n') {
      ++line_;
      column_ = 1;
    } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80) {
      ++column_;  // characters, not bytes
    }
    ++at_;
  }

  TableCell field() {
    TableCell cell{.text = {}, .line = line_, .column = column_};
    if (at_ < text_.size() && text_[at_] == '"') {
      quoted(cell);
      if (at_ < text_.size() && text_[at_] != ',' && !is_line_end())
        mistakes_.push_back(mistake(file_, line_, column_,
                                    "text after the closing quote of a field",
                                    "a comma, or \"\" for a quote inside the field", "bad-quote"));
    }
    bool is_reported = !cell.text.empty();
    while (at_ < text_.size() && text_[at_] != ',' && !is_line_end()) {
      if (text_[at_] == '"' && !is_reported) {
        mistakes_.push_back(mistake(file_, line_, column_, "a quote inside an unquoted field",
                                    "the whole field in quotes, the quote twice", "bad-quote"));
        is_reported = true;
      }
      cell.text += text_[at_];
      advance();
    }
    return cell;
  }

  void quoted(TableCell& cell) {
    advance();
    while (at_ < text_.size()) {
      if (text_[at_] != '"') {
        cell.text += text_[at_];
        advance();
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell.text += '"';
        advance();
        advance();
      } else {
        advance();
        return;
      }
    }
    mistakes_.push_back(mistake(file_, cell.line, cell.column,
                                "the quote of this field is not closed before the end of the file",
                                "a closing quote", "open-quote"));
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Diagnostic>& mistakes_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

std::optional<std::size_t> PublishedTable::index_of(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) return std::nullopt;
  return std::size_t(found - columns.begin());
}

std::string_view PublishedTable::text(const TableRow& row, std::string_view column) const {
  const auto index = index_of(column);
  return index ? std::string_view(row.cells[*index].text) : std::string_view();
}

std::optional<double> PublishedTable::number(const TableRow& row, std::string_view column,
                                             std::vector<Diagnostic>& mistakes) const {
  const auto index = index_of(column);
  if (!index || is_unknown(row.cells[*index].text)) return std::nullopt;
  const TableCell& cell = row.cells[*index];
  double value = 0;
  const char* end = cell.text.data() + cell.text.size();
  const auto [stop, problem] = std::from_chars(cell.text.data(), end, value);
  if (problem == std::errc{} && stop == end && std::isfinite(value) && value > 0) return value;
  mistakes.push_back(mistake(name, cell.line, cell.column,
                             std::string(column) + ": found " + in_quotes(cell.text),
                             "a number above 0, or nothing if it is not known", "bad-number"));
  return std::nullopt;
}

PublishedTable read_published_table(std::istream& in, const std::string& name,
                                    std::vector<Diagnostic>& mistakes) {
  const std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::string_view text = all;
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // of spreadsheet programs
  PublishedTable table;
  table.name = name;
  RecordReader records(text, name, mistakes);
  TableRow row;
  if (!records.next(row)) {
    mistakes.push_back(mistake(name, 1, 1, "the file is empty", "a header line", "empty-file"));
    return table;
  }
  if (row.cells.size() > most_columns) {
    mistakes.push_back(mistake(name, row.line, 1,
                               "the header has " + std::to_string(row.cells.size()) + " columns",
                               "at most " + std::to_string(most_columns), "bad-header"));
    return table;
  }
  for (const TableCell& cell : row.cells) {
    if (!cell.text.empty() && table.has(cell.text))
      mistakes.push_back(mistake(name, cell.line, cell.column,
                                 "column " + in_quotes(cell.text) + " stands in the header twice",
                                 "every name once", "bad-header"));
    table.columns.push_back(cell.text);
  }
  while (records.next(row)) {
    if (row.cells.size() == table.columns.size()) {
      table.rows.push_back(row);
      continue;
    }
    mistakes.push_back(
        mistake(name, row.line, 1, "found " + std::to_string(row.cells.size()) + " fields",
                std::to_string(table.columns.size()) + ", as in the header", "bad-row"));
  }
  return table;
}

}  // namespace trainyard::scenarios
