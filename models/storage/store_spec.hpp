#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

enum class StoreNetwork { own, training };

/// Somebody else on a store: what it would read and write if nobody were in its way. It shares
/// max-min, stream by stream.
struct NeighbourSpec {
  BytesPerSecond read{};
  BytesPerSecond write{};
  double operations = 0;  // metadata operations a second
  int streams = 1;
  Duration start{};
  std::optional<Duration> end = {};  // default: never
};

template <class Visitor>
void describe(Visitor& v, NeighbourSpec& s) {
  v.optional("read", s.read, "what it wants to read", at_least(0));
  v.optional("write", s.write, "what it wants to write", at_least(0));
  v.optional("operations", s.operations, "metadata operations that it wants, per second",
             at_least(0));
  v.optional("streams", s.streams, "streams; the store is shared stream by stream", at_least(1));
  v.optional("start", s.start, "when it begins", at_least(0));
  v.optional("end", s.end, "when it ends; default: never", above(0));
  v.check(!s.end || *s.end > s.start, "end", "must be after start");
  v.check(s.read.value() > 0 || s.write.value() > 0 || s.operations > 0, "read",
          "a neighbour reads, writes or has operations");
}

/// A store as clients see it: an aggregate bandwidth each way that all who save, load or read data
/// at once share (max-min), limits of a client and of a stream, a rate of metadata operations, and
/// a fixed latency of each operation. Parallel file system and object store are the same thing with
/// other figures.
struct StoreSpec {
  BytesPerSecond write_rate;
  BytesPerSecond read_rate;
  BytesPerSecond client_rate{12.5e9};  // one server's limit, each direction
  Duration latency{};                  // open, metadata, barrier: once a save or load
  int servers = 1;                     // equal shares of everything; a failed one is missing
  std::optional<BytesPerSecond> stream_rate =
      {};                                    // limit of one stream (a writer or reader process)
  std::optional<double> metadata_rate = {};  // open, create, stat: operations a second, all clients
  Duration open_latency{};                   // of one open, seen by a reader
  std::optional<Bytes> capacity = {};
  StoreNetwork network = StoreNetwork::own;
  std::map<std::string, NeighbourSpec> neighbours = {};
  std::string name = {};  // of the part, for people
};

template <class Visitor>
void describe(Visitor& v, StoreSpec& s) {
  v.required("write_rate", s.write_rate, "aggregate write bandwidth, shared by all clients",
             above(0));
  v.required("read_rate", s.read_rate, "aggregate read bandwidth, shared by all clients", above(0));
  v.optional("client_rate", s.client_rate, "limit of one server, each direction", above(0));
  v.optional("latency", s.latency, "fixed time of one save or load: metadata and barrier",
             at_least(0));
  v.optional("servers", s.servers, "storage servers, each with an equal share of the rates",
             at_least(1));
  v.optional("stream_rate", s.stream_rate, "limit of one stream (a process that reads or writes)",
             above(0));
  v.optional("metadata_rate", s.metadata_rate,
             "metadata operations (open, create, stat) per second, over all clients", above(0));
  v.optional("open_latency", s.open_latency, "time of one open, as a reader sees it", at_least(0));
  v.optional("capacity", s.capacity, "bytes that it holds", above(0));
  v.optional("network", s.network,
             "own: clients reach it by adapters of its own; training: its servers are on ports of "
             "the training fabric, after the last server");
  v.optional("name", s.name, "what it is called");
  v.optional("neighbours", s.neighbours, "others that use it, by name");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::StoreNetwork> {
  static constexpr auto all = names<models::StoreNetwork>(
      {{models::StoreNetwork::own, "own"}, {models::StoreNetwork::training, "training"}});
};
}  // namespace trainyard
