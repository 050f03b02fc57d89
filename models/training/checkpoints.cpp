#include "models/training/checkpoints.hpp"

#include <cmath>

namespace trainyard::models {

Bytes checkpoint_size(const CheckpointSpec& spec, double parameters) {
  return spec.size ? *spec.size : Bytes(parameters * spec.bytes_per_parameter);
}

Duration checkpoint_stall(const CheckpointSpec& spec, Bytes size, std::int64_t gpus) {
  return spec.stall ? *spec.stall
                    : transfer_time(size, spec.host_copy_rate * static_cast<double>(gpus));
}

double young_interval_s(double save_s, double mtbi_s) {
  return std::sqrt(2 * save_s * mtbi_s);
}

double daly_interval_s(double save_s, double mtbi_s) {
  if (save_s >= 2 * mtbi_s) return mtbi_s;
  const double x = save_s / (2 * mtbi_s);
  return young_interval_s(save_s, mtbi_s) * (1 + std::sqrt(x) / 3 + x / 9) - save_s;
}

double expected_efficiency(double interval_s, double save_s, double restart_s, double mtbi_s) {
  return interval_s /
         (mtbi_s * std::exp(restart_s / mtbi_s) * std::expm1((interval_s + save_s) / mtbi_s));
}

}  // namespace trainyard::models
