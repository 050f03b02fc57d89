#pragma once

#include <atomic>

namespace trainyard::cli {

/// From now on the first SIGINT or SIGTERM sets the returned flag, so that a run can close its file
/// and end with status 130; the second quits at once.
const std::atomic<bool>& watch_interrupts();

}  // namespace trainyard::cli
