#pragma once

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

/// A shared store for checkpoints, as clients see it: an aggregate bandwidth each way that all who
/// save or load at once share (max-min), a limit per server (client), and a fixed latency of each
/// operation.
struct StoreSpec {
  BytesPerSecond write_rate;
  BytesPerSecond read_rate;
  BytesPerSecond client_rate{12.5e9};  // one server's limit, each direction
  Duration latency{};                  // open, metadata, barrier
};

template <class Visitor>
void describe(Visitor& v, StoreSpec& s) {
  v.required("write_rate", s.write_rate, "aggregate write bandwidth, shared by all clients",
             above(0));
  v.required("read_rate", s.read_rate, "aggregate read bandwidth, shared by all clients", above(0));
  v.optional("client_rate", s.client_rate, "limit of one server, each direction", above(0));
  v.optional("latency", s.latency, "fixed time of one save or load: metadata and barrier",
             at_least(0));
}

}  // namespace trainyard::models
