#pragma once

#include "scenarios/validate.hpp"

/// Weak and strong scaling efficiency: the rate of a GPU in one run over that in a smaller one,
///
///     100 (batch / (step GPUs)) / (batch / (step GPUs))_base       percent
///
/// with batch in tokens. Rows name two runs of a table of training runs (row_id, base_row_id),
/// which must be at hand. Errors are percentage points.
namespace trainyard::scenarios {

TableKind scaling_table();

}  // namespace trainyard::scenarios
