#include "cli/collective_report.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/page.hpp"
#include "scenarios/units_text.hpp"

namespace trainyard::cli {

using scenarios::SweepResult;
using scenarios::SweepRow;

namespace {

using Cells = std::vector<std::string>;

std::string formatted(const char* format, double x) {
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

std::string gigabytes(double rate_Bps) {
  const double x = rate_Bps / 1e9;
  return formatted(x < 9.995 ? "%.2f" : "%.1f", x);
}

/// Three digits.
std::string time_text(double s) {
  if (s < 0.9995e-6)
    return formatted(s < 9.995e-9 ? "%.2f ns" : s < 99.95e-9 ? "%.1f ns" : "%.0f ns", s * 1e9);
  if (s < 0.9995e-3)
    return formatted(s < 9.995e-6 ? "%.2f us" : s < 99.95e-6 ? "%.1f us" : "%.0f us", s * 1e6);
  if (s < 0.9995)
    return formatted(s < 9.995e-3 ? "%.2f ms" : s < 99.95e-3 ? "%.1f ms" : "%.0f ms", s * 1e3);
  return formatted(s < 9.995 ? "%.2f s" : "%.1f s", s);
}

Cells cells_of(const SweepRow& row) {
  return {scenarios::to_exact_text(row.bytes, scenarios::Dimension::bytes),
          std::string(name_of(row.algorithm)),
          std::string(name_of(row.protocol)),
          time_text(row.time_s),
          gigabytes(row.algbw_Bps),
          gigabytes(row.busbw_Bps),
          time_text(row.bound_s),
          formatted("%.2f", row.slowdown())};
}

void add_table(Page& page, const std::vector<const SweepRow*>& rows) {
  std::vector<Cells> lines{
      {"bytes", "algorithm", "protocol", "time", "algbw", "busbw", "bound", "slowdown"},
      {"", "", "", "", "GB/s", "GB/s", "", "by fabric"}};
  for (const SweepRow* row : rows) lines.push_back(cells_of(*row));
  std::vector<std::size_t> widths(lines[0].size(), 0);
  for (const Cells& line : lines)
    for (std::size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(line[i]));
  for (const Cells& line : lines) {
    std::string text = " ";
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool is_word = i == 1 || i == 2;
      text += ' ' + (is_word ? left(line[i], widths[i]) : right(line[i], widths[i]));
    }
    page.line(text);
  }
}

/// What several rows say is said once.
void add_once(Page& page, Colour colour, const std::vector<std::string>& said, std::size_t rows) {
  std::vector<std::pair<std::string, std::size_t>> counted;
  for (const std::string& text : said) {
    const auto found = std::find_if(counted.begin(), counted.end(),
                                    [&](const auto& c) { return c.first == text; });
    if (found == counted.end())
      counted.emplace_back(text, 1);
    else
      ++found->second;
  }
  for (const auto& [text, count] : counted)
    page.bullet(colour, "-",
                text + (count == rows ? ""
                                      : " (" + std::to_string(count) + " of " +
                                            std::to_string(rows) + " rows)"));
}

std::vector<std::vector<const SweepRow*>> by_kind(const SweepResult& result) {
  std::vector<std::vector<const SweepRow*>> out;
  for (const SweepRow& row : result.rows) {
    if (out.empty() || out.back().front()->kind != row.kind) out.emplace_back();
    out.back().push_back(&row);
  }
  return out;
}

std::string shortest(double x) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

}  // namespace

std::string collective_text(const std::string& scenario, const SweepResult& result,
                            const Terminal& terminal) {
  Page page(terminal);
  for (const auto& rows : by_kind(result)) {
    const SweepRow& first = *rows.front();
    if (&rows.front()[0] != &result.rows.front()) page.line();
    page.line(painted(terminal, Colour::bold, scenario) + ": " + first.kind + ", " +
              with_commas(std::int64_t(first.ranks)) + " ranks");
    page.line(with_commas(std::int64_t(result.nodes)) +
              (result.nodes == 1 ? " server" : " servers") + " with " +
              std::to_string(result.per_node) + (result.per_node == 1 ? " GPU" : " GPUs") +
              " each, " + gigabytes(result.adapter_Bps) + " GB/s of adapter a GPU");
    page.line("placement: " + result.placement);
    page.line();
    add_table(page, rows);
    page.line();
    std::vector<std::string> limits, notes;
    for (const SweepRow* row : rows) {
      if (!row->bottleneck.empty()) limits.push_back("busiest link: " + row->bottleneck);
      notes.insert(notes.end(), row->notes.begin(), row->notes.end());
    }
    add_once(page, Colour::dim, limits, rows.size());
    add_once(page, Colour::yellow, notes, rows.size());
  }
  page.bullet(
      Colour::dim, "-",
      "algbw = bytes / time; busbw = algbw times the factor of nccl-tests; bound: no time can be "
      "shorter at nominal rates; slowdown: bytes on this fabric against no switch in the way");
  return page.text();
}

std::string collective_json(const std::string& scenario, const SweepResult& result) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const SweepRow& r : result.rows)
    rows.push_back({{"kind", r.kind},
                    {"algorithm", name_of(r.algorithm)},
                    {"protocol", name_of(r.protocol)},
                    {"ranks", r.ranks},
                    {"bytes", r.bytes},
                    {"time_s", r.time_s},
                    {"algbw_Bps", r.algbw_Bps},
                    {"busbw_Bps", r.busbw_Bps},
                    {"bound_s", r.bound_s},
                    {"bottleneck", r.bottleneck},
                    {"latency_s", r.latency_s},
                    {"fill_s", r.fill_s},
                    {"bandwidth_s", r.bandwidth_s},
                    {"fabric_s", r.fabric_s},
                    {"slowdown", r.slowdown()},
                    {"notes", r.notes}});
  Json out;
  out["schema"] = "trainyard-collective-1";
  out["scenario"] = scenario;
  out["nodes"] = result.nodes;
  out["ranks_per_node"] = result.per_node;
  out["placement"] = result.placement;
  out["adapter_Bps"] = result.adapter_Bps;
  out["rows"] = std::move(rows);
  return out.dump(2) + '\n';
}

std::string collective_csv(const SweepResult& result) {
  std::string out =
      "kind,algorithm,protocol,ranks,bytes,time_s,algbw_Bps,busbw_Bps,bound_s,bottleneck,latency_s,"
      "fill_s,"
      "bandwidth_s,fabric_s,slowdown\n";
  for (const SweepRow& r : result.rows) {
    out += r.kind + ',' + std::string(name_of(r.algorithm)) + ',' +
           std::string(name_of(r.protocol)) + ',' + std::to_string(r.ranks);
    for (const double x : {r.bytes, r.time_s, r.algbw_Bps, r.busbw_Bps, r.bound_s})
      out += ',' + shortest(x);
    out += ',' + r.bottleneck;
    for (const double x : {r.latency_s, r.fill_s, r.bandwidth_s, r.fabric_s, r.slowdown()})
      out += ',' + shortest(x);
    out += '\n';
  }
  return out;
}

}  // namespace trainyard::cli
