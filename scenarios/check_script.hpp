#pragma once

#include "models/failures/failure_spec.hpp"
#include "models/failures/unit_names.hpp"
#include "sim/problem.hpp"

namespace trainyard::scenarios {

/// Every fault of the script strikes a unit that exists, and does what such a unit can do: the
/// rules of failure classes. Paths are from the root ("failures.script.a.fail").
Problems check_script(const models::FailuresSpec& failures, const models::UnitNames& units);

}  // namespace trainyard::scenarios
