#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/compare.hpp"
#include "cli/page.hpp"
#include "cli/study_report.hpp"
#include "cli/table.hpp"

/// What trainyard compare found, for people and for programs.
namespace trainyard::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t settings_shown = 40;

std::string or_none(const std::string& value) {
  if (value.empty()) return "-";
  constexpr std::size_t longest = 40;
  return value.size() <= longest ? value : value.substr(0, longest - 3) + "...";
}

std::string difference_text(const ComparedMetric& m, const Terminal& terminal) {
  std::string out = with_interval(m.difference.mean, m.difference.half_width, terminal);
  if (m.difference.mean > 0) out.insert(0, "+");
  return out;
}

std::string relative(const ComparedMetric& m) {
  if (m.a == 0 || !std::isfinite(m.difference.mean)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%+.2f %%", 100 * m.difference.mean / std::abs(m.a));
  return text;
}

Json finite_json(double x) {
  return std::isfinite(x) ? Json(x) : Json(nullptr);
}

}  // namespace

std::string compare_text(const Comparison& c, const Terminal& terminal) {
  Page page(terminal);
  page.line("a  " + painted(terminal, Colour::bold, c.a.name) + ": " + c.a.what);
  page.line("b  " + painted(terminal, Colour::bold, c.b.name) + ": " + c.b.what);

  page.heading("Settings that differ");
  if (c.settings.empty()) page.line("  none");
  Table settings({"setting", "a", "b"});
  for (std::size_t i = 0; i < std::min(c.settings.size(), settings_shown); ++i)
    settings.add({c.settings[i].path, or_none(c.settings[i].a), or_none(c.settings[i].b)});
  if (!c.settings.empty()) settings.print(page);
  if (c.settings.size() > settings_shown)
    page.line("  and " + std::to_string(c.settings.size() - settings_shown) + " more: --json");

  page.heading("Metrics");
  Table metrics({"metric", "a", "b", "b - a", "of a", "n", "verdict"});
  std::string equal;
  bool has_one_run = false;
  for (const ComparedMetric& m : c.metrics) {
    has_one_run |= m.difference.n == 1;
    if (m.verdict == "equal" && m.difference.n == 1) {
      equal += (equal.empty() ? "" : ", ") + m.metric.name;
      continue;
    }
    const std::string n = m.n_a == m.n_b
                              ? std::to_string(m.n_a) + (m.is_paired && m.n_a > 1 ? " pairs" : "")
                              : std::to_string(m.n_a) + ", " + std::to_string(m.n_b);
    metrics.add({title_of(m.metric), figure(m.a, m.difference.half_width),
                 figure(m.b, m.difference.half_width), difference_text(m, terminal), relative(m), n,
                 m.verdict});
  }
  metrics.print(page);
  if (!equal.empty()) page.bullet(Colour::dim, "-", "equal: " + equal);
  if (has_one_run)
    page.bullet(Colour::dim, "-",
                "one run a side: what luck does to the differences is not known; a study with "
                "replications says it (trainyard sweep)");

  if (!c.ledger.empty()) {
    page.heading("Where the GPU time of the cluster went");
    Table ledger({"account", "a", "b", "b - a, points"});
    for (const ComparedAccount& account : c.ledger) {
      char text[32];
      std::snprintf(text, sizeof text, "%+.2f", 100 * (account.b - account.a));
      ledger.add({account.account, percent(account.a), percent(account.b), text});
    }
    ledger.print(page);
  }
  if (!c.notes.empty()) page.line();
  for (const std::string& note : c.notes) page.bullet(Colour::dim, "-", note);
  return page.text();
}

std::string compare_json(const Comparison& c) {
  Json out;
  out["schema"] = "trainyard-compare-1";
  out["sides"] = {{"a", {{"name", c.a.name}, {"what", c.a.what}}},
                  {"b", {{"name", c.b.name}, {"what", c.b.what}}}};
  out["confidence"] = c.confidence;
  Json settings = Json::array();
  for (const Difference& d : c.settings)
    settings.push_back({{"path", d.path},
                        {"a", d.a.empty() ? Json(nullptr) : Json(d.a)},
                        {"b", d.b.empty() ? Json(nullptr) : Json(d.b)}});
  out["settings"] = std::move(settings);
  Json ledger = Json::object();
  for (const ComparedAccount& account : c.ledger)
    ledger[account.account] = {{"a", account.a}, {"b", account.b}};
  out["ledger_share"] = std::move(ledger);
  out["notes"] = c.notes;
  for (const ComparedMetric& m : c.metrics) {
    const std::string name =
        out.contains(m.metric.name) ? "metric " + m.metric.name : m.metric.name;
    out[name] = {{"a", finite_json(m.a)},
                 {"b", finite_json(m.b)},
                 {"difference", finite_json(m.difference.mean)},
                 {"low", finite_json(m.difference.low())},
                 {"high", finite_json(m.difference.high())},
                 {"n_a", m.n_a},
                 {"n_b", m.n_b},
                 {"paired", m.is_paired},
                 {"units", m.metric.units},
                 {"verdict", m.verdict}};
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace trainyard::cli
