#pragma once

#include "scenarios/validate.hpp"

/// Published memory of a GPU, GiB, against models/training/memory.hpp:
///
///     activations                    what the blocks of the first stage keep (Korthikanti et al.)
///     activations relative to none   the same over that without recomputation and sequence
///                                    parallelism; errors are percentage points
///     peak reserved memory           what the allocator hands out at least: reserved memory is
///     more
///
/// Such a table names the model and describes the run in words (`mode`); shapes and layouts of the
/// runs that the words mean are facts of their papers, kept here.
namespace trainyard::scenarios {

TableKind memory_table();

}  // namespace trainyard::scenarios
