#pragma once

#include <string>

#include "scenarios/study.hpp"

/// What of a run's result a study measures, and what is known of a figure by its key.
namespace trainyard::scenarios {

/// "jobs.llm.goodput" -> "goodput".
std::string last_key(const std::string& path);
/// As the keys of a result say it: the unit is their suffix.
std::string units_of(const std::string& key);
analysis::Better better_of(const std::string& key);

/// Goodput first: what most studies are about.
void add_default_metrics(const Scenario& scenario, StudyDesign& design);

}  // namespace trainyard::scenarios
