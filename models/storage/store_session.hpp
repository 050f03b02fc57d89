#pragma once

#include <optional>
#include <vector>

#include "models/storage/store.hpp"

/// Inside the store: a request while it runs, and a neighbour.
namespace trainyard::models {

/// Lives in the frame of SharedStore::move: when that goes, finished or stopped, what the request
/// had of the store is free. Request and store may go first.
class StoreSession {
 public:
  StoreSession(SharedStore& store, StoreRequest& request);
  ~StoreSession();
  StoreSession(const StoreSession&) = delete;
  StoreSession& operator=(const StoreSession&) = delete;

  /// Time of the opens if nothing is shared; what is shared begins with begin_operations.
  Duration unshared_operations() const;
  Transfer& begin_operations();
  Transfer& begin_bytes();
  void set_limit(BytesPerSecond per_server);
  BytesPerSecond rate() const;  // of one server
  Bytes moved() const;
  SharedStore::Use use() const;

 private:
  friend class SharedStore;
  friend class StoreRequestState;
  Transfer& begin(LinkIndex link, double weight, Bytes size, BytesPerSecond cap);

  SharedStore* store_;
  StoreRequest* request_;
  std::string user_;
  bool is_write_;
  Bytes size_;
  double files_, servers_, streams_;  // streams: of all servers
  BytesPerSecond limit_;
  Time start_;
  std::optional<Transfer> transfer_;
  double weight_ = 0;  // of the transfer
  bool are_bytes_ = false;
  bool is_complete_ = false;
};

struct SharedStore::Neighbour {
  Neighbour(SharedStore& store, std::string name, const NeighbourSpec& spec);

  Use use(const SharedStore& store, bool is_write) const;

  std::string name;
  const NeighbourSpec* spec;
  FlowHandle read, write, operations;
  std::optional<Time> since;
  sim::Timer coming, going;
};

/// Every flow on the store: f(user, is_neighbour, flow, link, weight).
template <class F>
void SharedStore::for_each_flow(F&& f) const {
  for (const StoreSession* s : sessions_)
    if (s->transfer_ && network_.is_running(s->transfer_->flow()))
      f(s->user_, false, s->transfer_->flow(),
        !s->are_bytes_ ? *metadata_
        : s->is_write_ ? write_
                       : read_,
        s->weight_);
  for (const Reader* r : readers_) {
    if (network_.is_running(r->byte_flow_)) f(r->user_, false, r->byte_flow_, read_, r->streams_);
    if (network_.is_running(r->operation_flow_))
      f(r->user_, false, r->operation_flow_, *metadata_, r->streams_);
  }
  for (const Neighbour& n : neighbours_) {
    const double streams = n.spec->streams;
    if (network_.is_running(n.read)) f(n.name, true, n.read, read_, streams);
    if (network_.is_running(n.write)) f(n.name, true, n.write, write_, streams);
    if (network_.is_running(n.operations)) f(n.name, true, n.operations, *metadata_, streams);
  }
}

}  // namespace trainyard::models
