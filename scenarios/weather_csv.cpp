#include "scenarios/weather_csv.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "scenarios/validate_table.hpp"

namespace trainyard::scenarios {
namespace {

constexpr std::size_t most_mistakes = 100;
constexpr std::array<std::string_view, 3> known = {"dry_C", "wet_C", "relative_humidity"};
constexpr double coldest_C = -60, hottest_C = 60;  // 56.7 is the record; colder places have no grid
constexpr double above_dry_K = 0.5;
constexpr std::size_t hours_of_day = 24;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// The same lines, those with a comment or blanks alone made empty: they keep their numbers.
std::string without_comments(std::istream& in) {
  std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (all.starts_with("\xEF\xBB\xBF")) all.erase(0, 3);  // of spreadsheet programs
  std::string out;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    std::string_view line = std::string_view(all).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::string_view text = trimmed(line);
    if (!text.empty() && text.front() != '#') out += line;
    out += '\n';
    at = end + 1;
  }
  return out;
}

class WeatherReader {
 public:
  WeatherReader(std::istream& in, const std::string& name, const models::WeatherSpec& spec)
      : spec_(spec) {
    std::istringstream text(without_comments(in));
    table_ = read_published_table(text, name, file_.diagnostics);
    for (std::string& column : table_.columns) column = trimmed(column);
    const std::string& all = text.str();
    const std::size_t first = std::min(all.find_first_not_of('\n'), all.size());
    header_line_ = 1 + int(std::count(all.begin(), all.begin() + std::ptrdiff_t(first), '\n'));
  }

  WeatherFile read() {
    if (!table_.columns.empty() && has_good_header()) {
      for (const TableRow& row : table_.rows) {
        if (file_.diagnostics.size() >= most_mistakes) break;
        read_row(row);
      }
      if (table_.rows.empty() && file_.diagnostics.empty())
        report({.text = {}, .line = header_line_, .column = 1}, "there are no hours",
               "one line an hour below the header, from the start of the run", "empty-file");
    }
    if (file_.diagnostics.size() >= most_mistakes) {
      file_.diagnostics.resize(most_mistakes);
      report(
          {.text = {}, .line = 0, .column = 0},
          "there may be more mistakes: the first " + std::to_string(most_mistakes) + " are listed",
          "", "too-many");
    }
    if (!file_.diagnostics.empty()) return std::move(file_);
    if (!table_.has("wet_C") && !table_.has("relative_humidity")) wet_by_depression();
    file_.series = std::move(series_);
    return std::move(file_);
  }

 private:
  void report(const TableCell& at, std::string what, std::string right, std::string code) {
    file_.diagnostics.push_back({table_.name,
                                 at.line,
                                 at.column,
                                 {},
                                 std::move(what),
                                 std::move(right),
                                 std::move(code),
                                 {}});
  }

  bool has_good_header() {
    const std::size_t before = file_.diagnostics.size();
    const std::vector<std::string> names(known.begin(), known.end());
    const TableCell header{.text = {}, .line = header_line_, .column = 1};
    for (const std::string& column : table_.columns) {
      if (std::find(known.begin(), known.end(), column) != known.end()) continue;
      const std::string near = nearest(column, names);
      report(header, "unknown column " + in_quotes(column),
             near.empty() ? "the columns are dry_C, wet_C, relative_humidity, with commas between"
                          : "did you mean \"" + near + "\"?",
             "unknown-column");
    }
    if (file_.diagnostics.size() == before && !table_.has("dry_C"))
      report(header, "no column dry_C", "\"dry_C\": dry bulb of each hour, degrees Celsius",
             "bad-header");
    return file_.diagnostics.size() == before;
  }

  /// None if there is no such column or the cell is empty, or after a mistake.
  std::optional<double> number(const TableRow& row, std::string_view column, double low,
                               double high, std::string_view right) {
    const auto index = table_.index_of(column);
    if (!index) return {};
    const TableCell& cell = row.cells[*index];
    const std::string_view text = trimmed(cell.text);
    if (text.empty()) return {};
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    // "nan" is a number to from_chars, but lies in no range.
    if (problem == std::errc{} && stop == end && value >= low && value <= high) return value;
    report(cell, std::string(column) + ": found " + in_quotes(text), std::string(right),
           "bad-value");
    return {};
  }

  void read_row(const TableRow& row) {
    const std::size_t before = file_.diagnostics.size();
    constexpr std::string_view degrees = "degrees Celsius from -60 to 60, such as 21.4";
    const auto dry = number(row, "dry_C", coldest_C, hottest_C, degrees);
    const auto wet = number(row, "wet_C", coldest_C, hottest_C + above_dry_K, degrees);
    const auto humidity = number(row, "relative_humidity", 1, 100,
                                 "percent from 1 to 100, such as 65 (a share of 0.65 is 65)");
    if (file_.diagnostics.size() > before) return;
    const TableCell& dry_cell = row.cells[*table_.index_of("dry_C")];
    if (!dry) return report(dry_cell, "dry_C: is empty", "every hour has a dry bulb", "bad-value");
    if (wet && *wet > *dry + above_dry_K) {
      const TableCell& cell = row.cells[*table_.index_of("wet_C")];
      return report(cell,
                    "wet_C: found " + in_quotes(trimmed(cell.text)) + " beside a dry bulb of " +
                        std::string(trimmed(dry_cell.text)),
                    "at most the dry bulb; are the columns swapped?", "bad-value");
    }
    const bool has_humidity = table_.has("relative_humidity");
    if (!wet && !humidity && (table_.has("wet_C") || has_humidity)) {
      const char* column = table_.has("wet_C") ? "wet_C" : "relative_humidity";
      return report(row.cells[*table_.index_of(column)], std::string(column) + ": is empty",
                    has_humidity ? "a wet bulb or a relative humidity in every hour"
                                 : "a wet bulb in every hour, or no such column",
                    "bad-value");
    }
    series_.dry.push_back(*dry);
    if (wet)
      series_.wet.push_back(std::min(*wet, *dry));
    else if (humidity)
      series_.wet.push_back(models::wet_bulb(*dry, *humidity));
  }

  void wet_by_depression() {
    const std::vector<double>& dry = series_.dry;
    for (std::size_t begin = 0; begin < dry.size(); begin += hours_of_day) {
      const std::size_t end = std::min(begin + hours_of_day, dry.size());
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum += dry[i];
      const double dew = sum / double(end - begin) - spec_.dew_point_depression;
      for (std::size_t i = begin; i < end; ++i)
        series_.wet.push_back(
            models::wet_bulb(dry[i], models::relative_humidity(dry[i], std::min(dew, dry[i]))));
    }
  }

  WeatherFile file_;
  models::WeatherSeries series_;
  PublishedTable table_;
  const models::WeatherSpec& spec_;
  int header_line_ = 1;
};

}  // namespace

WeatherFile read_weather_csv(std::istream& in, const std::string& name,
                             const models::WeatherSpec& spec) {
  return WeatherReader(in, name, spec).read();
}

WeatherFile read_weather_csv(const std::filesystem::path& file, const models::WeatherSpec& spec) {
  const auto unreadable = [&](std::string what, std::string right) {
    WeatherFile out;
    out.diagnostics.push_back(
        {file.string(), 0, 0, {}, std::move(what), std::move(right), "file", {}});
    return out;
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return unreadable("there is no such file", "a weather series as CSV");
  if (status.type() == std::filesystem::file_type::directory)
    return unreadable("is a folder, not a weather series", "name a .csv file in it");
  std::ifstream in(file, std::ios::binary);
  if (!in) return unreadable(std::string("cannot be read: ") + std::strerror(errno), "");
  return read_weather_csv(in, file.string(), spec);
}

}  // namespace trainyard::scenarios
