#pragma once

#include <cstdint>
#include <string>

#include "models/network/fluid_network.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

class StoreSession;

/// Where a request is in its life: known to the store only. Not copied, so that a request may be
/// filled in anew.
class StoreRequestState {
 public:
  StoreRequestState() = default;
  StoreRequestState(const StoreRequestState&) {}
  StoreRequestState& operator=(const StoreRequestState&) { return *this; }
  ~StoreRequestState();

 private:
  friend class StoreSession;
  friend class SharedStore;
  StoreSession* session_ = nullptr;
};

/// One save or load, SharedStore::move. Lives in the caller while it runs; only set_limit changes
/// it then.
struct StoreRequest {
  std::string user = {};  // as messages name him: "job llama"
  bool is_write = true;
  std::int64_t servers = 0;
  Bytes size{};                // of all servers together
  double files = 0;            // opened or created, all together; 0: the latency is all there is
  int streams_per_server = 1;  // processes that write or read at once
  BytesPerSecond limit = FluidNetwork::unlimited;  // of one server, besides the store's own
  StoreRequestState state = {};
};

}  // namespace trainyard::models
