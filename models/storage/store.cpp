#include "models/storage/store.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "models/storage/store_session.hpp"
#include "sim/check.hpp"
#include "sim/glide.hpp"

namespace trainyard::models {

SharedStore::SharedStore(sim::Engine& engine, FluidNetwork& network, std::string name,
                         StoreSpec spec)
    : SharedStore(engine, network, std::move(name), std::move(spec), nullptr) {}

SharedStore::SharedStore(sim::Engine& engine, FluidNetwork& network, std::string name,
                         StoreSpec spec, sim::Recorder* recorder)
    : engine_(engine),
      network_(network),
      name_(std::move(name)),
      spec_(std::move(spec)),
      recorder_(recorder),
      write_(network.add_link(spec_.write_rate, name_ + " write")),
      read_(network.add_link(spec_.read_rate, name_ + " read")),
      changed_(name_ + " changed"),
      telling_(engine, sim::Phase::decision, [this] { tell(); }) {
  check(spec_.servers >= 1, "a store has servers", spec_.servers);
  if (spec_.metadata_rate)
    metadata_ = network.add_link(BytesPerSecond(*spec_.metadata_rate), name_ + " metadata");
  network_.watch(write_, [this] { rates_changed(); });
  network_.watch(read_, [this] { rates_changed(); });
  if (metadata_) network_.watch(*metadata_, [this] { rates_changed(); });
  for (const auto& [called, neighbour] : spec_.neighbours)
    neighbours_.emplace_back(*this, called, neighbour);
}

SharedStore::~SharedStore() {
  network_.watch(write_, {});
  network_.watch(read_, {});
  if (metadata_) network_.watch(*metadata_, {});
  for (StoreSession* session : sessions_) session->store_ = nullptr;
  for (Reader* reader : readers_) reader->store_ = nullptr;
}

// ---- Saves and loads

sim::Process SharedStore::move(StoreRequest& request) {
  StoreSession session(*this, request);
  if (spec_.latency > Duration::zero()) co_await sim::pass(engine_, spec_.latency);
  if (session.files_ > 0 && metadata_) {
    Transfer& operations = session.begin_operations();
    co_await operations;
  } else if (const Duration opens = session.unshared_operations(); opens > Duration::zero()) {
    co_await sim::pass(engine_, opens);
  }
  Transfer& bytes = session.begin_bytes();
  co_await bytes;
  session.is_complete_ = true;
  if (network_.running() == 0) network_.rate({});  // nobody to share with: solved at once
}

sim::Process SharedStore::save(std::int64_t servers, Bytes size) {
  StoreRequest request{.user = "client", .is_write = true, .servers = servers, .size = size};
  co_await move(request);
}
sim::Process SharedStore::load(std::int64_t servers, Bytes size) {
  StoreRequest request{.user = "client", .is_write = false, .servers = servers, .size = size};
  co_await move(request);
}

void SharedStore::set_limit(StoreRequest& request, BytesPerSecond per_server) {
  request.limit = per_server;
  if (request.state.session_ != nullptr) request.state.session_->set_limit(per_server);
}

BytesPerSecond SharedStore::rate(const StoreRequest& request) {
  return request.state.session_ == nullptr ? BytesPerSecond(0) : request.state.session_->rate();
}

BytesPerSecond SharedStore::stream_cap(BytesPerSecond limit, double servers, double streams) const {
  const BytesPerSecond cap = std::min(spec_.client_rate, limit) * (servers / streams);
  return spec_.stream_rate ? std::min(cap, *spec_.stream_rate) : cap;
}

StoreSession::StoreSession(SharedStore& store, StoreRequest& request)
    : store_(&store),
      request_(&request),
      user_(request.user),
      is_write_(request.is_write),
      size_(request.size),
      files_(request.files),
      servers_(static_cast<double>(request.servers)),
      streams_(servers_ * request.streams_per_server),
      limit_(request.limit),
      start_(store.engine_.now()) {
  check(request.servers > 0, "somebody saves or loads", request.servers);
  check(request.streams_per_server > 0, "a server has streams", request.streams_per_server);
  check(request.files >= 0, "files are counted", request.files);
  check(request.state.session_ == nullptr, "a request runs once at a time");
  request.state.session_ = this;
  store.sessions_.push_back(this);
}

StoreSession::~StoreSession() {
  if (request_ != nullptr) request_->state.session_ = nullptr;
  if (store_ == nullptr) return;
  store_->uses_.push_back(use());
  std::erase(store_->sessions_, this);
}

StoreRequestState::~StoreRequestState() {
  if (session_ != nullptr) session_->request_ = nullptr;
}

/// Every stream opens one file after the other; with fewer files than streams some have none.
Duration StoreSession::unshared_operations() const {
  const double openers = std::min(streams_, std::max(files_, 1.0));
  return seconds(files_ / openers * to_seconds(store_->spec_.open_latency));
}

Transfer& StoreSession::begin_operations() {
  const double openers = std::min(streams_, std::max(files_, 1.0));
  const double latency = to_seconds(store_->spec_.open_latency);
  return begin(*store_->metadata_, openers, Bytes(files_),
               latency > 0 ? BytesPerSecond(1 / latency) : FluidNetwork::unlimited);
}

Transfer& StoreSession::begin_bytes() {
  are_bytes_ = true;
  return begin(is_write_ ? store_->write_ : store_->read_, streams_, size_,
               store_->stream_cap(limit_, servers_, streams_));
}

Transfer& StoreSession::begin(LinkIndex link, double weight, Bytes size, BytesPerSecond cap) {
  weight_ = weight;
  std::vector<Load> loads{{link, weight}};
  return transfer_.emplace(store_->network_, size / weight, std::move(loads), cap);
}

void StoreSession::set_limit(BytesPerSecond per_server) {
  limit_ = per_server;
  if (are_bytes_ && transfer_)
    store_->network_.set_cap(transfer_->flow(), store_->stream_cap(limit_, servers_, streams_));
}

BytesPerSecond StoreSession::rate() const {
  if (!are_bytes_ || !transfer_ || store_ == nullptr) return BytesPerSecond(0);
  return store_->network_.rate(transfer_->flow()) * (streams_ / servers_);
}

Bytes StoreSession::moved() const {
  if (is_complete_) return size_;
  if (!are_bytes_ || !transfer_) return Bytes(0);
  return store_->network_.bytes_moved(transfer_->flow()) * weight_;
}

SharedStore::Use StoreSession::use() const {
  return {user_, is_write_, false, start_, store_->engine_.now(), moved()};
}

// ---- Servers and capacity

void SharedStore::server_failed() {
  check(failed_ < spec_.servers, "a failed server was there", name_, failed_);
  ++failed_;
  set_capacities();
}

void SharedStore::server_back() {
  check(failed_ > 0, "a server that is back had failed", name_);
  --failed_;
  set_capacities();
}

void SharedStore::set_capacities() {
  const double share = static_cast<double>(spec_.servers - failed_) / spec_.servers;
  network_.set_capacity(write_, spec_.write_rate * share);
  network_.set_capacity(read_, spec_.read_rate * share);
  if (metadata_) network_.set_capacity(*metadata_, BytesPerSecond(*spec_.metadata_rate * share));
}

Bytes SharedStore::free_room() const {
  if (!spec_.capacity) return Bytes(std::numeric_limits<double>::infinity());
  return std::max(Bytes(0), Bytes(spec_.capacity->value() - held_));
}

bool SharedStore::reserve(Bytes size) {
  check(size.value() >= 0, "what is reserved is not negative", name_);
  if (spec_.capacity && held_ + size.value() > spec_.capacity->value()) return false;
  held_ += size.value();
  return true;
}

void SharedStore::release(Bytes size) {
  check(size.value() <= held_ * (1 + 1e-9), "only what was reserved is released", name_,
        size.value(), held_);
  held_ = std::max(0.0, held_ - size.value());
}

Duration transfer_time_alone(const StoreSpec& spec, BytesPerSecond aggregate, std::int64_t servers,
                             Bytes size) {
  return transfer_time(size, std::min(aggregate, spec.client_rate * static_cast<double>(servers)));
}

}  // namespace trainyard::models
