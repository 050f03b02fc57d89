#pragma once

#include <cstdint>
#include <string>

#include "models/network/fluid_network.hpp"
#include "models/storage/store_spec.hpp"
#include "sim/engine.hpp"
#include "sim/process.hpp"

/// A store that all jobs share, as its clients see it: one link for writing and one for reading,
/// max-min fair over servers, and a limit of each server.
///
///     n servers save S bytes, each S/n at rate x <= client_rate:  the sum of n x over all savers
///     <= write_rate alone:   time = latency + max(S / write_rate, S / (n * client_rate))
///
/// One save is one coupled variable of weight n, so a save by 2,048 servers costs as much to
/// simulate as one by 2.
///
///     SharedStore store(engine, network, "parallel", {.write_rate = 200_GBps, .read_rate =
///     400_GBps}); co_await store.save(2048, 5.67_TB);       // stopping the process withdraws it:
///     no checkpoint then
///
/// docs/models/store.md
namespace trainyard::models {

class SharedStore {
 public:
  SharedStore(sim::Engine& engine, FluidNetwork& network, std::string name, StoreSpec spec);

  sim::Process save(std::int64_t servers, Bytes size);
  sim::Process load(std::int64_t servers, Bytes size);

  const std::string& name() const { return name_; }
  const StoreSpec& spec() const { return spec_; }
  LinkIndex write_link() const { return write_; }
  LinkIndex read_link() const { return read_; }
  Bytes bytes_written() const { return network_.bytes_moved(write_); }
  Bytes bytes_read() const { return network_.bytes_moved(read_); }

 private:
  sim::Process move(std::int64_t servers, Bytes size, LinkIndex link);

  sim::Engine& engine_;
  FluidNetwork& network_;
  std::string name_;
  StoreSpec spec_;
  LinkIndex write_;
  LinkIndex read_;
};

/// The time of one save or load with nobody else on the store, without the latency.
Duration transfer_time_alone(const StoreSpec& spec, BytesPerSecond aggregate, std::int64_t servers,
                             Bytes size);

}  // namespace trainyard::models
