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

std::vector<HostId> Saves::partners(const Level& level) const {
  const Placement placement = client_.placement();
  const auto found = partner_of_.find(level.at);
  std::vector<HostId> hosts;
  if (found == partner_of_.end()) return hosts;
  for (std::size_t rank = 0; rank < placement.servers.size(); ++rank)
    hosts.push_back(placement.servers[std::min(found->second[rank], placement.servers.size() - 1)]);
  return hosts;
}

void Saves::update_limits() {
  for (auto& level : levels_)
    if (level->is_writing && is_on_fabric(*level) && level->spec.kind == LevelKind::store)
      level->access->store->set_limit(level->request, fabric_limit(level->access->on_fabric, true));
}

BytesPerSecond Saves::fabric_limit(std::span<const HostId> to, bool is_write) const {
  return client_.is_plugged() ? steps_.store_limit(client_.placement(), to, is_write)
                              : BytesPerSecond(0);
}

void Saves::set_data_flow(std::optional<StoreFlow> flow) {
  data_flow_ = std::move(flow);
  update_flows();
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
  client_.on_flows_changed();
}

}  // namespace trainyard::models
