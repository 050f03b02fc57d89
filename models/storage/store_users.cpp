#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "models/storage/store_session.hpp"
#include "sim/check.hpp"

/// Neighbours and readers: those who use the store for as long as they are there. And who takes
/// what.
namespace trainyard::models {

// ---- What changes

/// Within a solve: only noted. Nobody listens, nothing to do, no event.
void SharedStore::rates_changed() {
  if (telling_.is_armed() || is_telling_) return;
  if (changed_.waiting() > 0 || (metadata_ && !readers_.empty())) telling_.arm(Duration::zero());
}

void SharedStore::tell() {
  is_telling_ = true;
  follow_operations();
  network_.rate({});  // solves, so that all of it is told at once
  is_telling_ = false;
  changed_.notify_all();
}

/// Operations do not depend on bytes, so one pass over the readers is enough.
void SharedStore::follow_operations() const {
  if (!metadata_) return;
  for (Reader* reader : readers_) reader->follow_operations();
}

// ---- Neighbours

SharedStore::Neighbour::Neighbour(SharedStore& store, std::string called,
                                  const NeighbourSpec& wants)
    : name(std::move(called)),
      spec(&wants),
      coming(store.engine_, sim::Phase::arrival, [&store, this] { store.begin(*this); }),
      going(store.engine_, sim::Phase::arrival, [&store, this] { store.end(*this); }) {
  const Time now = store.engine_.now(), start = add(start_of_run, spec->start);
  const Time end = spec->end ? add(start_of_run, *spec->end) : Time::max();
  if (end <= now) return;
  coming.arm_at(std::max(now, start));
  if (spec->end) going.arm_at(end);
}

void SharedStore::begin(Neighbour& n) {
  const NeighbourSpec& spec = *n.spec;
  const double streams = spec.streams;
  const auto run = [&](LinkIndex link, double demand, BytesPerSecond cap) {
    if (demand == 0) return FlowHandle{};
    const Load load{link, streams};
    return network_.run({&load, 1}, std::min(cap, BytesPerSecond(demand / streams)));
  };
  const BytesPerSecond cap = spec_.stream_rate.value_or(FluidNetwork::unlimited);
  n.read = run(read_, spec.read.value(), cap);
  n.write = run(write_, spec.write.value(), cap);
  if (metadata_) n.operations = run(*metadata_, spec.operations, FluidNetwork::unlimited);
  n.since = engine_.now();
  if (recorder_ == nullptr) return;
  recorder_->event(engine_.now(), sim::Phase::arrival, recorder_->kind("neighbour began", "B/s"),
                   recorder_->subject(name_ + '/' + n.name), {}, (spec.read + spec.write).value());
}

void SharedStore::end(Neighbour& n) {
  const Use reads = n.use(*this, false), writes = n.use(*this, true);
  if (n.spec->read.value() > 0 || n.spec->write.value() == 0) uses_.push_back(reads);
  if (n.spec->write.value() > 0) uses_.push_back(writes);
  network_.withdraw(n.read);
  network_.withdraw(n.write);
  network_.withdraw(n.operations);
  n.since.reset();
  if (recorder_ == nullptr) return;
  recorder_->event(engine_.now(), sim::Phase::arrival, recorder_->kind("neighbour ended", "B"),
                   recorder_->subject(name_ + '/' + n.name), {},
                   (reads.bytes + writes.bytes).value());
}

SharedStore::Use SharedStore::Neighbour::use(const SharedStore& store, bool is_write) const {
  const Bytes each = store.network_.bytes_moved(is_write ? write : read);
  return {name, is_write, true, *since, store.engine_.now(), each * double(spec->streams)};
}

// ---- Readers

std::unique_ptr<SharedStore::Reader> SharedStore::open_reader(std::string user) {
  std::unique_ptr<Reader> reader(new Reader(*this, std::move(user)));
  readers_.push_back(reader.get());
  return reader;
}

SharedStore::Reader::~Reader() {
  if (store_ == nullptr) return;
  if (since_)
    store_->uses_.push_back({user_, false, false, *since_, store_->engine_.now(), bytes_read()});
  store_->network_.withdraw(byte_flow_);
  store_->network_.withdraw(operation_flow_);
  std::erase(store_->readers_, this);
}

void SharedStore::Reader::set_demand(BytesPerSecond bytes, double operations, int streams,
                                     std::int64_t servers) {
  check(bytes.value() >= 0 && operations >= 0 && std::isfinite(bytes.value() + operations),
        "a demand is finite and not negative", user_);
  check(streams > 0 && servers > 0, "a reader has streams and servers", user_, streams, servers);
  if (store_ == nullptr) return;
  FluidNetwork& network = store_->network_;
  if (streams_ != streams) {
    before_ = bytes_read().value();
    network.withdraw(byte_flow_);
    network.withdraw(operation_flow_);
    byte_flow_ = operation_flow_ = {};
  }
  bytes_ = bytes;
  operations_ = operations;
  streams_ = streams;
  servers_ = static_cast<double>(servers);
  if (!since_ && bytes.value() > 0) since_ = store_->engine_.now();

  if (store_->metadata_) {
    const double latency = to_seconds(store_->spec_.open_latency);
    const double most = latency > 0 ? 1 / latency : std::numeric_limits<double>::infinity();
    const BytesPerSecond cap(std::min(operations_ / streams_, most));
    const Load load{*store_->metadata_, streams_};
    if (network.is_running(operation_flow_))
      network.set_cap(operation_flow_, cap);
    else if (operations_ > 0)
      operation_flow_ = network.run({&load, 1}, cap);
  }
  const Load load{store_->read_, streams_};
  if (network.is_running(byte_flow_))
    network.set_cap(byte_flow_, byte_cap());
  else if (bytes_.value() > 0)
    byte_flow_ = network.run({&load, 1}, byte_cap());
}

/// Of the operations that it asks for, those it gets.
double SharedStore::Reader::operations_share() {
  if (operations_ == 0) return 1;
  double most = operations_ / streams_;
  if (const double latency = to_seconds(store_->spec_.open_latency); latency > 0)
    most = std::min(most, 1 / latency);
  if (store_->metadata_) most = std::min(most, store_->network_.rate(operation_flow_).value());
  return std::min(1.0, most / (operations_ / streams_));
}

BytesPerSecond SharedStore::Reader::byte_cap() {
  const BytesPerSecond limit = store_->stream_cap(FluidNetwork::unlimited, servers_, streams_);
  return std::min(bytes_ * operations_share() / streams_, limit);
}

void SharedStore::Reader::follow_operations() {
  if (operations_ > 0) store_->network_.set_cap(byte_flow_, byte_cap());
}

BytesPerSecond SharedStore::Reader::granted() {
  if (store_ == nullptr || streams_ == 0) return BytesPerSecond(0);
  store_->follow_operations();
  const BytesPerSecond want = bytes_ * operations_share();
  const BytesPerSecond x = store_->network_.rate(byte_flow_);
  return x >= want / streams_ ? want : x * streams_;
}

double SharedStore::Reader::granted_operations() {
  if (store_ == nullptr || streams_ == 0) return 0;
  return operations_ * (bytes_.value() > 0 ? granted() / bytes_ : operations_share());
}

Bytes SharedStore::Reader::bytes_read() const {
  if (store_ == nullptr) return Bytes(before_);
  return Bytes(before_ + store_->network_.bytes_moved(byte_flow_).value() * streams_);
}

// ---- Who takes what

std::vector<SharedStore::Use> SharedStore::open_uses() const {
  std::vector<Use> open;
  for (const StoreSession* session : sessions_) open.push_back(session->use());
  for (const Reader* r : readers_)
    if (r->since_)
      open.push_back({r->user_, false, false, *r->since_, engine_.now(), r->bytes_read()});
  for (const Neighbour& n : neighbours_) {
    if (!n.since) continue;
    if (n.spec->read.value() > 0 || n.spec->write.value() == 0) open.push_back(n.use(*this, false));
    if (n.spec->write.value() > 0) open.push_back(n.use(*this, true));
  }
  return open;
}

/// The link that holds one of the user's flows in this direction. Bytes come first: where
/// operations are what is short, bytes are at their cap.
std::optional<LinkIndex> SharedStore::limit_of(const std::string& user, bool is_write,
                                               bool& is_here) const {
  const LinkIndex bytes = is_write ? write_ : read_;
  std::optional<LinkIndex> limit;
  is_here = false;
  for_each_flow(
      [&](const std::string& who, bool is_neighbour, FlowHandle flow, LinkIndex link, double) {
        if (is_neighbour || who != user || (link != bytes && link != metadata_)) return;
        is_here = true;
        const std::optional<LinkIndex> held = network_.bottleneck(flow);
        if (held && (!limit || link == bytes)) limit = held;
      });
  return limit;
}

std::string SharedStore::busiest_other(const std::string& user, bool is_write) const {
  follow_operations();
  bool is_here = false;
  std::optional<LinkIndex> limit = limit_of(user, is_write, is_here);
  if (!limit && is_here) return {};
  if (!limit) limit = is_write ? write_ : read_;
  std::map<std::string, double> taken;
  for_each_flow([&](const std::string& who, bool is_neighbour, FlowHandle flow, LinkIndex link,
                    double weight) {
    if (link == *limit && (is_neighbour || who != user))
      taken[is_neighbour ? "neighbour " + who : who] += weight * network_.rate(flow).value();
  });
  const auto most = std::max_element(
      taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == taken.end() || most->second == 0) return {};
  const std::string rate = *limit == metadata_ ? "operations, " + to_text(PerSecond(most->second))
                                               : to_text(BytesPerSecond(most->second));
  return most->first + " (" + rate + ')';
}

}  // namespace trainyard::models
