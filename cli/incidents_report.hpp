#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "scenarios/incidents.hpp"

namespace trainyard::cli {

/// What was published beside what the plant of the run did, incident by incident.
std::string incidents_text(const scenarios::IncidentReport& report, const Terminal& terminal);

/// The object of `trainyard validate --json` for a table of incidents.
std::string incidents_json(const scenarios::IncidentReport& report);

}  // namespace trainyard::cli
