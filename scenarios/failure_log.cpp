#include "scenarios/failure_log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>

#include "scenarios/units_text.hpp"
#include "scenarios/validate_table.hpp"

namespace trainyard::scenarios {
namespace {

using models::DelaySpec;
using models::Effect;
using models::Law;
using models::ScriptedFaultSpec;

constexpr std::size_t most_mistakes = 100;
constexpr std::array<std::string_view, 10> known = {
    "at", "at_s", "unit", "name", "effect", "repair", "detection", "replace", "speed", "warning"};

class LogReader {
 public:
  LogReader(std::istream& in, const std::string& name, const models::UnitNames* units)
      : table_(read_published_table(in, name, log_.diagnostics)), units_(units) {}

  FailureLog read() {
    if (!table_.columns.empty() && has_good_header()) {
      for (const TableRow& row : table_.rows) {
        if (log_.diagnostics.size() >= most_mistakes) break;
        read_row(row);
      }
    }
    if (log_.diagnostics.size() >= most_mistakes) {
      log_.diagnostics.resize(most_mistakes);
      report(
          {.text = {}, .line = 0, .column = 0},
          "there may be more mistakes: the first " + std::to_string(most_mistakes) + " are listed",
          "", "too-many");
    }
    return std::move(log_);
  }

 private:
  void report(const TableCell& at, std::string what, std::string right, std::string code) {
    log_.diagnostics.push_back({table_.name,
                                at.line,
                                at.column,
                                {},
                                std::move(what),
                                std::move(right),
                                std::move(code),
                                {}});
  }
  void wrong(const TableCell& cell, std::string_view column, std::string right) {
    report(cell, std::string(column) + ": found " + in_quotes(cell.text), std::move(right),
           "bad-value");
  }

  bool has_good_header() {
    const std::size_t before = log_.diagnostics.size();
    const std::vector<std::string> names(known.begin(), known.end());
    const TableCell header{.text = {}, .line = 1, .column = 1};
    for (const std::string& column : table_.columns) {
      if (std::find(known.begin(), known.end(), column) != known.end()) continue;
      const std::string near = nearest(column, names);
      report(header, "unknown column " + in_quotes(column),
             near.empty() ? "the columns are at (or at_s), unit, name, effect, detection, repair, "
                            "replace, speed, warning"
                          : "did you mean \"" + near + "\"?",
             "unknown-column");
    }
    if (table_.has("at") == table_.has("at_s"))
      report(header, table_.has("at") ? "both at and at_s" : "no column at",
             "either \"at\" (a time such as \"3 d 2 h\") or \"at_s\" (seconds)", "bad-header");
    if (!table_.has("unit"))
      report(header, "no column unit", "\"unit\": what fails, by name", "bad-header");
    return log_.diagnostics.size() == before;
  }

  /// None if there is no such column or the cell is empty.
  const TableCell* cell(const TableRow& row, std::string_view column) const {
    const auto index = table_.index_of(column);
    if (!index || row.cells[*index].text.empty()) return nullptr;
    return &row.cells[*index];
  }
  const TableCell& place(const TableRow& row, std::string_view column) const {
    return row.cells[*table_.index_of(column)];
  }

  std::optional<double> number(const TableRow& row, std::string_view column, double low,
                               double high, const std::string& right) {
    const TableCell* c = cell(row, column);
    if (c == nullptr) return {};
    double value = 0;
    const char* end = c->text.data() + c->text.size();
    const auto [stop, problem] = std::from_chars(c->text.data(), end, value);
    if (problem == std::errc{} && stop == end && value >= low && value <= high) return value;
    wrong(*c, column, right);
    return {};
  }

  std::optional<Duration> duration(const TableRow& row, std::string_view column) {
    const TableCell* c = cell(row, column);
    if (c == nullptr) return {};
    UnitError error;
    const auto value = parse_duration(c->text, error);
    if (value && *value >= Duration::zero()) return value;
    if (value) error = {"found " + in_quotes(c->text), "a time that is not negative"};
    report(*c, std::string(column) + ": " + error.what, error.right, "bad-value");
    return {};
  }

  void read_row(const TableRow& row) {
    const std::size_t before = log_.diagnostics.size();
    ScriptedFaultSpec fault;
    fault.name = "log";
    if (const TableCell* c = cell(row, "name")) fault.name = c->text;
    if (const TableCell* c = cell(row, "unit")) {
      fault.fail = c->text;
      if (units_ != nullptr && !units_->find(fault.fail))
        wrong(*c, "unit",
              "a unit of this cluster: node-17/gpu-3, node-17, rack-2, a switch, a cable");
    } else {
      report(place(row, "unit"), "unit: is empty", "what fails, by name", "bad-value");
    }
    read_time(row, fault);
    if (const TableCell* c = cell(row, "effect")) read_effect(*c, fault);
    if (const TableCell* c = cell(row, "replace")) read_replace(*c, fault);
    if (const auto d = duration(row, "detection")) fault.detection = DelaySpec{Law::fixed, *d};
    if (const auto d = duration(row, "repair")) fault.repair = DelaySpec{Law::fixed, *d};
    if (const auto d = duration(row, "warning")) fault.warning = *d;
    if (const auto s = number(row, "speed", 0.05, 1, "a number from 0.05 to 1")) fault.speed = *s;
    if (log_.diagnostics.size() > before) return;
    if ((fault.effect == Effect::slow) != (fault.speed < 1)) {
      report(
          {.text = {}, .line = row.line, .column = 1},
          fault.speed < 1 ? "a speed without effect \"slow\"" : "effect \"slow\" without a speed",
          "effect \"slow\" needs a speed below 1, and only it has one", "bad-value");
      return;
    }
    std::string line = std::to_string(row.line);
    line.insert(0, line.size() < 7 ? 7 - line.size() : 0, '0');
    log_.entries.emplace("log:" + line, std::move(fault));
  }

  void read_time(const TableRow& row, ScriptedFaultSpec& fault) {
    if (const auto at = duration(row, "at")) fault.at = *at;
    constexpr double most_s = 9.2e9;  // 292 years
    if (const auto at =
            number(row, "at_s", 0, most_s, "seconds from the start of the run, 0 or more"))
      fault.at = seconds(*at);
    const std::string_view column = table_.has("at") ? "at" : "at_s";
    if (cell(row, column) == nullptr)
      report(place(row, column), std::string(column) + ": is empty", "when it happens",
             "bad-value");
  }

  void read_effect(const TableCell& c, ScriptedFaultSpec& fault) {
    std::vector<std::string> names;
    for (const auto& [effect, text] : Names<Effect>::all) {
      if (c.text == text) {
        fault.effect = effect;
        return;
      }
      names.emplace_back(text);
    }
    const std::string near = nearest(c.text, names);
    wrong(c, "effect",
          near.empty() ? "crash, hang, slow, corrupt or maintenance"
                       : "did you mean \"" + near + "\"?");
  }

  void read_replace(const TableCell& c, ScriptedFaultSpec& fault) {
    if (c.text == "true" || c.text == "True" || c.text == "1")
      fault.replace = true;
    else if (c.text == "false" || c.text == "False" || c.text == "0")
      fault.replace = false;
    else
      wrong(c, "replace", "true or false");
  }

  FailureLog log_;
  PublishedTable table_;
  const models::UnitNames* units_;
};

}  // namespace

FailureLog read_failure_log(std::istream& in, const std::string& name,
                            const models::UnitNames* units) {
  return LogReader(in, name, units).read();
}

FailureLog read_failure_log(const std::filesystem::path& file, const models::UnitNames* units) {
  const auto unreadable = [&](std::string what, std::string right) {
    FailureLog log;
    log.diagnostics.push_back(
        {file.string(), 0, 0, {}, std::move(what), std::move(right), "file", {}});
    return log;
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return unreadable("there is no such file", "a failure log as CSV");
  if (status.type() == std::filesystem::file_type::directory)
    return unreadable("is a folder, not a failure log", "name a .csv file in it");
  std::ifstream in(file, std::ios::binary);
  if (!in) return unreadable(std::string("cannot be read: ") + std::strerror(errno), "");
  return read_failure_log(in, file.string(), units);
}

}  // namespace trainyard::scenarios
