#include <algorithm>
#include <cmath>
#include <utility>

#include "models/training/saves.hpp"

/// Saves and the training fabric: what their transfers may have of it, and what they take from the
/// step.
namespace trainyard::models {

using topologies::HostId;

namespace {

/// To seven bits: within 0.8 %. A step is played for each rate that stands beside it.
BytesPerSecond rounded(BytesPerSecond rate) {
  int exponent = 0;
  const double mantissa = std::frexp(rate.value(), &exponent);
  return BytesPerSecond(std::ldexp(std::round(mantissa * 128) / 128, exponent));
}

}  // namespace

bool Saves::is_on_fabric(const Level& level) const {
  return level.access != nullptr && !level.access->on_fabric.empty();
}

/// Where each server of the placement copies to: the next member of its group; nowhere (an invalid
/// one) if it is the only one that is left.
std::vector<HostId> Saves::partners(const Level& level) const {
  const Placement placement = client_.placement();
  const auto found = partner_of_.find(level.at);
  std::vector<HostId> hosts;
  if (found == partner_of_.end()) return hosts;
  const std::vector<std::size_t>& next = found->second;
  // A shrunk job trains on some of its ranks, in their order.
  std::vector<HostId> server_of(next.size());
  std::size_t members = 0;
  const auto is_member = [&](std::size_t rank) {
    return is_member_.empty() || (rank < is_member_.size() && is_member_[rank]);
  };
  for (std::size_t rank = 0; rank < next.size() && members < placement.servers.size(); ++rank)
    if (is_member(rank)) server_of[rank] = placement.servers[members++];
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    if (!server_of[rank].is_valid()) continue;
    std::size_t other = next[rank];
    while (other != rank && !server_of[other].is_valid()) other = next[other];
    hosts.push_back(other == rank ? HostId() : server_of[other]);
  }
  return hosts;
}

void Saves::update_limits() {
  if (is_loading_) load_from_.store->set_limit(load_, fabric_limit(load_from_.on_fabric, false));
  for (auto& level : levels_)
    if (level->is_writing && is_on_fabric(*level) && level->spec.kind == LevelKind::store)
      level->access->store->set_limit(level->request, fabric_limit(level->access->on_fabric, true));
}

BytesPerSecond Saves::fabric_limit(std::span<const HostId> to, bool is_write) const {
  client_.look_at_neighbours();
  return client_.is_plugged() ? steps_.store_limit(client_.placement(), to, is_write)
                              : BytesPerSecond(0);
}

void Saves::set_data_flow(std::optional<StoreFlow> flow) {
  data_flow_ = std::move(flow);
  update_flows();
}

void Saves::set_training(bool trains) {
  trains_ = trains;
  publish();
}

/// What other jobs see of it: saves, loads, and batches while steps go on.
void Saves::publish() {
  if (!client_.has_neighbours()) return;
  std::vector<StoreFlow> transfers;
  for (const StoreFlow& flow : flows_) {
    const bool is_data = data_flow_ && flow.name == data_flow_->name;
    if (is_data && !trains_) continue;
    transfers.push_back(flow);
    transfers.back().takes_all = !is_data;
  }
  if (is_loading_) {
    StoreFlow load;
    load.store = load_from_.on_fabric;
    load.is_write = false;
    load.rate = rounded(load_from_.store->rate(load_));
    load.name = load_name_;
    load.takes_all = true;
    if (load.rate.value() > 0) transfers.push_back(std::move(load));
  }
  if (!transfers.empty()) {
    const std::vector<HostId> servers = client_.placement().servers;
    for (StoreFlow& flow : transfers) {
      flow.servers = servers;
      flow.name += " of " + job_;
    }
  }
  client_.on_transfers_changed(std::move(transfers));
}

void Saves::update_flows() {
  std::vector<StoreFlow> flows;
  for (auto& level : levels_) {
    if (!level->is_writing) continue;
    StoreFlow flow;
    if (level->spec.kind == LevelKind::peer_memory) {
      flow.store = partners(*level);
      flow.rate = rounded(level->peer_rate);
      flow.name = "save to " + level->name;
    } else if (level->spec.kind == LevelKind::store && is_on_fabric(*level)) {
      flow.store = level->access->on_fabric;
      flow.rate = rounded(level->access->store->rate(level->request));
      flow.name = "save to " + level->name;
    }
    if (flow.rate.value() > 0) flows.push_back(std::move(flow));
  }
  if (data_flow_ && data_flow_->rate.value() > 0) flows.push_back(*data_flow_);
  const auto same = [](const StoreFlow& a, const StoreFlow& b) {
    return a.store == b.store && a.is_write == b.is_write && a.rate == b.rate;
  };
  if (std::equal(flows.begin(), flows.end(), flows_.begin(), flows_.end(), same)) return;
  flows_ = flows;
  steps_.set_store_flows(std::move(flows));
  publish();
  client_.on_flows_changed();
}

}  // namespace trainyard::models
