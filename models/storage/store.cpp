#include "models/storage/store.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/check.hpp"

namespace trainyard::models {

SharedStore::SharedStore(sim::Engine& engine, FluidNetwork& network, std::string name,
                         StoreSpec spec)
    : engine_(engine),
      network_(network),
      name_(std::move(name)),
      spec_(spec),
      write_(network.add_link(spec.write_rate, name_ + " write")),
      read_(network.add_link(spec.read_rate, name_ + " read")) {}

sim::Process SharedStore::save(std::int64_t servers, Bytes size) {
  return move(servers, size, write_);
}
sim::Process SharedStore::load(std::int64_t servers, Bytes size) {
  return move(servers, size, read_);
}

sim::Process SharedStore::move(std::int64_t servers, Bytes size, LinkIndex link) {
  check(servers > 0, "somebody saves or loads", servers);
  const double n = static_cast<double>(servers);
  if (spec_.latency > Duration::zero()) co_await engine_.delay(spec_.latency);
  std::vector<Load> loads{{link, n}};
  Transfer transfer = network_.transfer(size / n, std::move(loads), spec_.client_rate);
  co_await transfer;
}

Duration transfer_time_alone(const StoreSpec& spec, BytesPerSecond aggregate, std::int64_t servers,
                             Bytes size) {
  return transfer_time(size, std::min(aggregate, spec.client_rate * static_cast<double>(servers)));
}

}  // namespace trainyard::models
