#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/network/fluid_network.hpp"
#include "models/storage/store_request.hpp"
#include "models/storage/store_spec.hpp"
#include "sim/engine.hpp"
#include "sim/process.hpp"
#include "sim/recorder.hpp"
#include "sim/timer.hpp"
#include "sim/waiting.hpp"

/// A store that all jobs share, as its clients see it: links for writing, for reading and for
/// metadata operations, each shared max-min *stream by stream*, and limits of a server and of a
/// stream. A parallel file system and an object store are the same with other figures.
///
///     n servers of k streams save S bytes, every stream S/(n k) at the rate x:
///         x <= stream_rate,   k x <= min(client_rate, limit),   sum of n k x over all <=
///         write_rate
///     alone:   time = latency + files / metadata_rate + S / min(write_rate, n min(client_rate, k
///                     stream_rate))
///
/// One save is one coupled variable of weight n k, so a save by 2,048 servers costs as much to
/// simulate as one by 2.
///
///     SharedStore store(engine, network, "parallel", {.write_rate = 200_GBps, .read_rate =
///     400_GBps});
///     StoreRequest save{.user = "job a", .servers = 2048, .size = 5.67_TB};
///     co_await store.move(save);      // stopping the process withdraws it: no checkpoint then
///
/// Others on the store: neighbours come and go by their times; a Reader is a user with a demand
/// that changes. Max-min fairness: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., 1992,
/// section 6.5. docs/models/store.md
namespace trainyard::models {

class SharedStore {
 public:
  SharedStore(sim::Engine& engine, FluidNetwork& network, std::string name, StoreSpec spec);
  /// With a recorder, neighbours that come and go are events.
  SharedStore(sim::Engine& engine, FluidNetwork& network, std::string name, StoreSpec spec,
              sim::Recorder* recorder);
  ~SharedStore();
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  // ---- Saves and loads

  /// The latency, then the opens, then the bytes.
  sim::Process move(StoreRequest& request);
  /// Of one server; also while it runs.
  void set_limit(StoreRequest& request, BytesPerSecond per_server);
  /// Of one server, with all changes of this instant taken in; 0 unless its bytes flow.
  BytesPerSecond rate(const StoreRequest& request);
  sim::Process save(std::int64_t servers, Bytes size);
  sim::Process load(std::int64_t servers, Bytes size);

  // ---- Readers

  /// Somebody who reads for as long as he is there: the data path of a job. Operations and bytes
  /// belong together, so he gets the smaller share of the two: his bytes ask for no more than the
  /// share of his operations that is granted. The destructor withdraws him.
  class Reader {
   public:
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    /// Everything per second and of all servers together, streams too.
    void set_demand(BytesPerSecond bytes, double operations, int streams, std::int64_t servers);
    /// With all changes of this instant taken in; the demand exactly, if nobody is in the way.
    BytesPerSecond granted();
    double granted_operations();
    /// Since it was opened.
    Bytes bytes_read() const;
    const std::string& user() const { return user_; }

   private:
    friend class SharedStore;
    Reader(SharedStore& store, std::string user) : store_(&store), user_(std::move(user)) {}
    double operations_share();
    BytesPerSecond byte_cap();
    void follow_operations();

    SharedStore* store_;  // null: the store has gone
    std::string user_;
    BytesPerSecond bytes_{};
    double operations_ = 0;
    double streams_ = 0;
    double servers_ = 0;
    FlowHandle byte_flow_, operation_flow_;
    double before_ = 0;  // bytes of earlier flows
    std::optional<Time> since_;
  };
  std::unique_ptr<Reader> open_reader(std::string user);

  /// Some rate on this store is another one now: told after the rates are solved, so usually once
  /// an instant. Whoever changes something in answer is told again.
  sim::Signal& changed() { return changed_; }

  // ---- Its servers and what it holds

  /// 1/servers of every rate is missing until it is back.
  void server_failed();
  void server_back();
  bool is_down() const { return failed_ == spec_.servers; }
  int failed_servers() const { return failed_; }
  /// Endless without a capacity.
  Bytes free_room() const;
  bool reserve(Bytes size);
  void release(Bytes size);

  // ---- Who uses it

  struct Use {
    std::string user;  // of a neighbour: its name
    bool is_write = false;
    bool is_neighbour = false;
    Time start{}, end{};
    Bytes bytes{};
  };
  /// Those that have ended, in the order of their ends.
  const std::vector<Use>& uses() const { return uses_; }
  /// Those that have not, up to now.
  std::vector<Use> open_uses() const;
  /// Who takes most of what limits `user` now: "neighbour etl (120 GB/s)", "job b (operations, 3.5
  /// k/s)". Empty if nobody else does, or if the user is at a limit of his own. Of
  /// somebody who does nothing now: who takes most of what he would need.
  std::string busiest_other(const std::string& user, bool is_write) const;

  const std::string& name() const { return name_; }
  const StoreSpec& spec() const { return spec_; }
  LinkIndex write_link() const { return write_; }
  LinkIndex read_link() const { return read_; }
  /// In operations; none without a metadata rate.
  std::optional<LinkIndex> metadata_link() const { return metadata_; }
  Bytes bytes_written() const { return network_.bytes_moved(write_); }
  Bytes bytes_read() const { return network_.bytes_moved(read_); }

 private:
  friend class StoreSession;
  struct Neighbour;

  BytesPerSecond stream_cap(BytesPerSecond limit, double servers, double streams) const;
  void set_capacities();
  void rates_changed();
  void tell();
  void follow_operations() const;
  void begin(Neighbour& neighbour);
  void end(Neighbour& neighbour);
  template <class F>
  void for_each_flow(F&& f) const;
  std::optional<LinkIndex> limit_of(const std::string& user, bool is_write, bool& is_here) const;

  sim::Engine& engine_;
  FluidNetwork& network_;
  std::string name_;
  StoreSpec spec_;
  sim::Recorder* recorder_;
  LinkIndex write_;
  LinkIndex read_;
  std::optional<LinkIndex> metadata_;
  int failed_ = 0;
  double held_ = 0;                      // bytes reserved
  std::vector<StoreSession*> sessions_;  // in the order of their beginnings
  std::vector<Reader*> readers_;
  std::list<Neighbour> neighbours_;
  std::vector<Use> uses_;
  sim::Signal changed_;
  sim::Timer telling_;
  bool is_telling_ = false;
};

/// The time of one save or load with nobody else on the store, without the latency.
Duration transfer_time_alone(const StoreSpec& spec, BytesPerSecond aggregate, std::int64_t servers,
                             Bytes size);

}  // namespace trainyard::models
