#include "models/facility/thermal_stream.hpp"

#include "sim/check.hpp"

namespace trainyard::models {

StreamShape stream_shape(std::span<const double> effectiveness, bool open) {
  const std::size_t n = effectiveness.size();
  check(n > 0, "a stream passes at least one node");
  // The stream's temperature as a sum over the nodes, and the share of the temperature it set out
  // with.
  std::vector<double> nodes(n, 0.0);
  double start = 1.0;
  auto pass = [&](std::size_t stop) {
    const double e = effectiveness[stop];
    for (double& share : nodes) share *= 1.0 - e;
    start *= 1.0 - e;
    nodes[stop] += e;
  };
  for (double e : effectiveness)
    check(e > 0.0 && e <= 1.0, "an effectiveness is above 0 and at most 1", e);

  if (!open) {
    for (std::size_t stop = 0; stop < n; ++stop) pass(stop);
    for (double& share : nodes) share /= 1.0 - start;
    start = 0.0;
  }
  StreamShape shape;
  shape.stops = n;
  shape.to_stop.assign(n * n, 0.0);
  if (open) shape.from_inlet.assign(n, 0.0);
  for (std::size_t stop = 0; stop < n; ++stop) {
    const double e = effectiveness[stop];
    for (std::size_t of = 0; of < n; ++of) shape.to_stop[stop * n + of] = e * nodes[of];
    shape.to_stop[stop * n + stop] -= e;
    if (open) shape.from_inlet[stop] = e * start;
    pass(stop);
  }
  shape.outlet = nodes;
  shape.outlet_inlet = start;
  return shape;
}

}  // namespace trainyard::models
