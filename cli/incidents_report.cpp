#include "cli/incidents_report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"

namespace trainyard::cli {

using scenarios::Incident;
using scenarios::IncidentReport;
using scenarios::IncidentStep;
using scenarios::IncidentVerdict;

namespace {

std::string digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, x < 10 ? "%.3g" : "%.0f", x);
  return text;
}

std::string figure(double x, bool is_count) {
  return digits(x) + (is_count ? "" : " min");
}

Colour colour_of(const IncidentStep& step) {
  if (!step.is_judged()) return Colour::dim;
  return step.holds() ? Colour::green : Colour::red;
}

void add_step(Page& page, const IncidentStep& step) {
  const bool has_ratio = step.simulated && step.published > 0;
  page.line("  " + left(step.step, 40) + right(figure(step.published, step.is_count), 10) +
            right(step.simulated ? figure(*step.simulated, step.is_count) : "-", 10) +
            right(has_ratio ? digits(*step.simulated / step.published) : "", 6) + "  " +
            painted(page.terminal(), colour_of(step), scenarios::text_of(step.verdict)));
}

}  // namespace

std::string incidents_text(const IncidentReport& report, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, report.table) + ": " +
            std::to_string(report.incidents.size()) + " incidents; " +
            std::to_string(report.held()) + " of " + std::to_string(report.judged()) +
            " steps that the model had to find hold");
  page.line("minutes after the first step; ratio = simulated / published");
  for (const Incident& incident : report.incidents) {
    page.line();
    page.line(painted(terminal, Colour::bold, incident.name) + "  (" + incident.scenario + ")");
    page.line("  " + left("step", 40) + right("published", 10) + right("simulated", 10) +
              right("ratio", 6));
    for (const IncidentStep& step : incident.steps) add_step(page, step);
  }
  return page.text();
}

std::string incidents_json(const IncidentReport& report) {
  nlohmann::ordered_json out;
  out["table"] = report.table;
  out["steps_judged"] = report.judged();
  out["steps_held"] = report.held();
  out["incidents"] = nlohmann::ordered_json::array();
  for (const Incident& incident : report.incidents) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const IncidentStep& step : incident.steps) {
      const char* unit = step.is_count ? "_count" : "_min";
      nlohmann::ordered_json row{{"line", step.line}, {"step", step.step}};
      row[std::string("published") + unit] = step.published;
      row[std::string("simulated") + unit] =
          step.simulated ? nlohmann::ordered_json(*step.simulated) : nlohmann::ordered_json();
      row["verdict"] = scenarios::text_of(step.verdict);
      row["source"] = step.source;
      steps.push_back(std::move(row));
    }
    out["incidents"].push_back(
        {{"name", incident.name}, {"scenario", incident.scenario}, {"steps", std::move(steps)}});
  }
  return out.dump(2) + "\n";
}

}  // namespace trainyard::cli
