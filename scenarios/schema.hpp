#pragma once

#include <string>

#include "scenarios/catalog.hpp"

namespace trainyard::scenarios {

/// JSON Schema (draft-07, which editors handle fully) of scenario files, from the same describe()
/// that reads them. Ranges of quantities, references between parts and the checks between members
/// are beyond it: `trainyard check` has the last word.
std::string scenario_schema(const Catalog& catalog = Catalog::standard());

}  // namespace trainyard::scenarios
