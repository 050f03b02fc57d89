#pragma once

#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

/// One stretch of a training step with constant power of the whole job (GPUs and servers).
struct PowerPhase {
  Duration duration{};
  Watts power{};
};

}  // namespace trainyard::models
