#include "models/network/fluid_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

void check_finite(Bytes bytes) {
  check(bytes.value() >= 0 && std::isfinite(bytes.value()), "a flow has a finite number of bytes",
        bytes.value());
}

}  // namespace

FluidNetwork::FluidNetwork(sim::Engine& engine, std::string name)
    : engine_(&engine),
      name_(std::move(name)),
      completion_(engine, sim::Phase::completion, [this] { complete_due(); }),
      solving_(engine, sim::Phase::decision, [this] { solve(); }) {}

FluidNetwork::~FluidNetwork() {
  for (Flow& flow : flows_)
    if (flow.transfer != nullptr) flow.transfer->network_ = nullptr;
}

LinkIndex FluidNetwork::add_link(BytesPerSecond capacity, std::string name) {
  links_.emplace_back().name = std::move(name);
  return solver_.add_link(capacity.value());
}

void FluidNetwork::set_capacity(LinkIndex link, BytesPerSecond capacity) {
  solver_.set_capacity(link, capacity.value());
  ask_for_solve();
}

FlowHandle FluidNetwork::begin(Bytes bytes, std::span<const Load> loads, BytesPerSecond cap) {
  const VarIndex var = solver_.add(loads, cap.value());
  if (var.index() >= flows_.size()) flows_.resize(var.index() + 1);
  Flow& flow = flows_[var.index()];
  flow.bytes_left = bytes.value();
  flow.bytes_moved = 0;
  flow.rate_Bps = 0;
  flow.settled = engine_->now();
  flow.serial = next_serial_++;
  ++running_;
  if (bytes.value() == 0) {
    completions_.set(var.index(), engine_->now());
    aim_at_next_completion();
  }
  ask_for_solve();
  return {var, flow.serial};
}

FlowHandle FluidNetwork::start(Bytes bytes, std::span<const Load> loads, sim::Action on_done,
                               BytesPerSecond cap) {
  check_finite(bytes);
  const FlowHandle handle = begin(bytes, loads, cap);
  flows_[handle.var.index()].on_done = std::move(on_done);
  return handle;
}

FlowHandle FluidNetwork::run(std::span<const Load> loads, BytesPerSecond cap) {
  return begin(Bytes(std::numeric_limits<double>::infinity()), loads, cap);
}

void FluidNetwork::set_cap(FlowHandle handle, BytesPerSecond cap) {
  if (!is_running(handle) || solver_.cap(handle.var) == cap.value()) return;
  solver_.set_cap(handle.var, cap.value());
  ask_for_solve();
}

Transfer FluidNetwork::transfer(Bytes bytes, std::vector<Load> loads, BytesPerSecond cap) {
  return Transfer(*this, bytes, std::move(loads), cap);
}

FlowHandle FluidNetwork::restart(FlowHandle handle, Bytes bytes, sim::Action on_done) {
  check_finite(bytes);
  const std::size_t i = handle.var.index();
  Flow& flow = flows_[i];
  check(flow.serial == handle.serial && flow.has_ended, "only a flow that just ended is restarted");
  flow.has_ended = false;
  flow.bytes_left = bytes.value();
  flow.bytes_moved = 0;
  flow.settled = engine_->now();
  flow.serial = next_serial_++;
  flow.on_done = std::move(on_done);
  ++running_;
  aim(i);
  aim_at_next_completion();
  return {handle.var, flow.serial};
}

bool FluidNetwork::is_running(FlowHandle handle) const {
  return handle.serial != 0 && flows_[handle.var.index()].serial == handle.serial &&
         !flows_[handle.var.index()].has_ended;
}

void FluidNetwork::withdraw(FlowHandle handle) noexcept {
  if (!is_running(handle)) return;
  const std::size_t i = handle.var.index();
  settle(i);
  completions_.erase(i);
  solver_.remove(handle.var);
  flows_[i] = {};
  --running_;
  ask_for_solve();
}

// ---- Bytes
// ------------------------------------------------------------------------------------------

double FluidNetwork::moved_since(const Flow& flow) const {
  return std::min(flow.bytes_left, flow.rate_Bps * to_seconds(engine_->now() - flow.settled));
}

void FluidNetwork::book(std::size_t i, double bytes) {
  flows_[i].bytes_left -= bytes;
  flows_[i].bytes_moved += bytes;
  if (bytes == 0) return;
  solver_.for_each_load(VarIndex(i), [&](const Load& load) {
    links_[load.link.index()].bytes_moved += load.weight * bytes;
  });
}

void FluidNetwork::settle(std::size_t i) {
  book(i, moved_since(flows_[i]));
  flows_[i].settled = engine_->now();
}

Bytes FluidNetwork::bytes_left(FlowHandle handle) const {
  if (!is_running(handle)) return Bytes(0);
  const Flow& flow = flows_[handle.var.index()];
  return Bytes(flow.bytes_left - moved_since(flow));
}

Bytes FluidNetwork::bytes_moved(FlowHandle handle) const {
  if (!is_running(handle)) return Bytes(0);
  const Flow& flow = flows_[handle.var.index()];
  return Bytes(flow.bytes_moved + moved_since(flow));
}

BytesPerSecond FluidNetwork::rate(FlowHandle handle) {
  solve();
  return BytesPerSecond(is_running(handle) ? flows_[handle.var.index()].rate_Bps : 0.0);
}

std::optional<LinkIndex> FluidNetwork::bottleneck(FlowHandle handle) {
  solve();
  return is_running(handle) ? solver_.bottleneck(handle.var) : std::nullopt;
}

Bytes FluidNetwork::bytes_moved(LinkIndex link) const {
  double bytes = links_[link.index()].bytes_moved;
  solver_.for_each_user(link, [&](VarIndex var, double weight) {
    bytes += weight * moved_since(flows_[var.index()]);
  });
  return Bytes(bytes);
}

// ---- Time
// -------------------------------------------------------------------------------------------

void FluidNetwork::ask_for_solve() {
  if (!solving_.is_armed()) solving_.arm(Duration::zero());
}

void FluidNetwork::solve() {
  solving_.cancel();
  for (const VarIndex var : ended_) {
    if (!flows_[var.index()].has_ended) continue;
    flows_[var.index()] = {};
    solver_.remove(var);
  }
  ended_.clear();
  for (const MaxMin::Change& change : solver_.solve()) {
    const std::size_t i = change.var.index();
    settle(i);
    flows_[i].rate_Bps = solver_.rate(change.var);
    aim(i);
    if (watches_.empty()) continue;
    solver_.for_each_load(change.var, [this](const Load& load) {
      const std::uint32_t watch = links_[load.link.index()].watch;
      if (watch != not_watched) watches_[watch].is_due = true;
    });
  }
  aim_at_next_completion();
  tell_watches();
}

void FluidNetwork::watch(LinkIndex link, sim::Action on_change) {
  std::uint32_t& watch = links_[link.index()].watch;
  if (watch == not_watched) {
    watch = static_cast<std::uint32_t>(watches_.size());
    watches_.emplace_back();
  }
  watches_[watch].on_change = std::move(on_change);
}

void FluidNetwork::tell_watches() {
  for (std::size_t w = 0; w < watches_.size(); ++w)
    if (std::exchange(watches_[w].is_due, false) && watches_[w].on_change) watches_[w].on_change();
}

/// From its bytes left, which are settled, at its rate.
void FluidNetwork::aim(std::size_t i) {
  if (std::isinf(flows_[i].bytes_left)) return;
  const Duration left =
      transfer_time(Bytes(flows_[i].bytes_left), BytesPerSecond(flows_[i].rate_Bps));
  if (left == forever)
    completions_.erase(i);
  else
    completions_.set(i, add(engine_->now(), left));
}

void FluidNetwork::aim_at_next_completion() {
  if (completions_.is_empty())
    completion_.cancel();
  else
    completion_.arm_at(completions_.first_time());
}

void FluidNetwork::complete_due() {
  // One at a time: what one completion sets off may withdraw another flow of the same instant.
  while (!completions_.is_empty() && completions_.first_time() <= engine_->now()) {
    const std::size_t i = completions_.first();
    completions_.erase(i);
    book(i, flows_[i].bytes_left);
    flows_[i].settled = engine_->now();
    flows_[i].has_ended = true;
    ended_.push_back(VarIndex(i));
    Transfer* const transfer = std::exchange(flows_[i].transfer, nullptr);
    sim::Action on_done = std::exchange(flows_[i].on_done, {});
    --running_;
    ask_for_solve();
    if (transfer != nullptr) {
      transfer->flow_ = {};
      transfer->complete();
    } else if (on_done) {
      on_done();
    }
  }
  aim_at_next_completion();
}

// ---- Waiting
// ----------------------------------------------------------------------------------------

bool Transfer::begin() {
  check_finite(bytes_);
  flow_ = network_->begin(bytes_, loads_, cap_);
  network_->flows_[flow_.var.index()].transfer = this;
  // Whoever joins in this instant asks for another solve.
  if (network_->running_ == 1) network_->solve();
  return false;
}

void Transfer::withdraw() noexcept {
  unlink();
  if (network_ != nullptr) network_->withdraw(flow_);
  flow_ = {};
}

std::string Transfer::describe() const {
  return network_ == nullptr ? "a network that is gone" : network_->describe_flow(flow_);
}

std::string FluidNetwork::describe_flow(FlowHandle handle) const {
  std::string text = "transfer over \"" + name_ + '"';
  if (!is_running(handle)) return text;
  text += ", " + to_text(bytes_left(handle)) + " left at " +
          to_text(BytesPerSecond(flows_[handle.var.index()].rate_Bps));
  solver_.for_each_load(handle.var, [&](const Load& load) {
    if (solver_.capacity(load.link) == 0)
      text += ", stopped at \"" + links_[load.link.index()].name + '"';
  });
  return text;
}

}  // namespace trainyard::models
