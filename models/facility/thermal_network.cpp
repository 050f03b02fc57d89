#include "models/facility/thermal_network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

/// The slot of a new entry: one that was given back, or one more.
template <class T>
std::size_t slot_of(std::vector<T>& table, std::vector<std::size_t>& given_back) {
  if (given_back.empty()) {
    table.emplace_back();
    return table.size() - 1;
  }
  const std::size_t slot = given_back.back();
  given_back.pop_back();
  table[slot] = T{};
  return slot;
}

}  // namespace

ThermalNetwork::ThermalNetwork(std::shared_ptr<ThermalModes> modes) : modes_(std::move(modes)) {
  check(modes_ != nullptr, "a thermal network has a place for its modes");
}

const ThermalNetwork::Node& ThermalNetwork::at(ThermalNode node) const {
  check(node.index() < nodes_.size() && nodes_[node.index()].alive,
        "a thermal node is one of this network", node.index());
  return nodes_[node.index()];
}

ThermalNetwork::Node& ThermalNetwork::at(ThermalNode node) {
  return const_cast<Node&>(std::as_const(*this).at(node));
}

void ThermalNetwork::check_place(ThermalPlace place) const {
  if (is_node(place))
    at(std::get<ThermalNode>(place));
  else
    check(std::get<ThermalBoundary>(place).index() < boundaries_.size(),
          "a thermal boundary is one of this network");
}

ThermalNode ThermalNetwork::add_node(std::string name, double capacity_J_per_K,
                                     double temperature_C) {
  check(capacity_J_per_K > 0.0 && std::isfinite(capacity_J_per_K),
        "a thermal node has a capacity above zero: air in a duct has 1.2 kJ/K a cubic metre",
        capacity_J_per_K);
  check(std::isfinite(temperature_C), "a temperature is finite", temperature_C);
  leave_mode();
  const std::size_t slot = slot_of(nodes_, free_nodes_);
  nodes_[slot] = Node{.name = std::move(name),
                      .capacity = capacity_J_per_K,
                      .temperature = temperature_C,
                      .heat_since = now_};
  brought_ += capacity_J_per_K * temperature_C;
  number_rows();
  return ThermalNode(slot);
}

ThermalBoundary ThermalNetwork::add_boundary(std::string name, double temperature_C) {
  check(std::isfinite(temperature_C), "a temperature is finite", temperature_C);
  boundaries_.push_back(
      Boundary{.name = std::move(name), .temperature = temperature_C, .since = now_});
  return ThermalBoundary(boundaries_.size() - 1);
}

ThermalLink ThermalNetwork::connect(ThermalPlace a, ThermalPlace b, double conductance_W_per_K) {
  check_place(a);
  check_place(b);
  check(a != b && (is_node(a) || is_node(b)), "a link joins two places, one of them a node");
  check(conductance_W_per_K >= 0.0 && std::isfinite(conductance_W_per_K),
        "a conductance is zero or more", conductance_W_per_K);
  leave_mode();
  const std::size_t slot = slot_of(links_, free_links_);
  links_[slot] = Link{.a = a, .b = b, .conductance = conductance_W_per_K};
  return ThermalLink(slot);
}

ThermalStream ThermalNetwork::add_stream(std::string name, std::optional<ThermalBoundary> from,
                                         std::vector<StreamStop> stops, double rate_W_per_K) {
  check(rate_W_per_K >= 0.0 && std::isfinite(rate_W_per_K), "a stream's rate is zero or more",
        rate_W_per_K);
  if (from) check_place(*from);
  Stream stream{.name = std::move(name), .from = from, .rate = rate_W_per_K};
  std::vector<double> effectiveness;
  for (const StreamStop& stop : stops) {
    at(stop.node);
    stream.stops.push_back(stop.node);
    effectiveness.push_back(stop.effectiveness);
  }
  stream.shape = stream_shape(effectiveness, from.has_value());
  leave_mode();
  streams_.push_back(std::move(stream));
  return ThermalStream(streams_.size() - 1);
}

void ThermalNetwork::disconnect(ThermalLink link) {
  check(link.index() < links_.size() && links_[link.index()].alive,
        "a thermal link is one of this network", link.index());
  leave_mode();
  links_[link.index()].alive = false;
  free_links_.push_back(link.index());
}

void ThermalNetwork::set_capacity(ThermalNode node, double capacity_J_per_K) {
  check(capacity_J_per_K > 0.0 && std::isfinite(capacity_J_per_K),
        "a thermal node has a capacity above zero", capacity_J_per_K);
  if (at(node).capacity == capacity_J_per_K) return;
  leave_mode();
  Node& changed = at(node);
  brought_ += (capacity_J_per_K - changed.capacity) * changed.temperature;
  changed.capacity = capacity_J_per_K;
}

void ThermalNetwork::absorb(ThermalNode into, ThermalNode from) {
  check(into != from, "a node is absorbed by another");
  for (const Stream& stream : streams_)
    check(std::find(stream.stops.begin(), stream.stops.end(), from) == stream.stops.end(),
          "a node that is absorbed is no stop of a stream");
  leave_mode();
  Node &to = at(into), &gone = at(from);
  gone.given += gone.heat * to_seconds(now_ - gone.heat_since);
  to.given += to.heat * to_seconds(now_ - to.heat_since) + gone.given;
  to.heat_since = now_;
  to.heat += gone.heat + gone.slope * (to.reference - gone.reference);
  to.slope += gone.slope;
  const double sum = to.capacity + gone.capacity;
  // Equal temperatures stay as they are to the last bit.
  if (to.temperature != gone.temperature)
    to.temperature += (gone.temperature - to.temperature) * gone.capacity / sum;
  to.capacity = sum;
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (links_[i].alive && (links_[i].a == ThermalPlace(from) || links_[i].b == ThermalPlace(from)))
      disconnect(ThermalLink(i));
  for (std::size_t i = 0; i < watches_.size(); ++i)
    if (watches_[i].alive && watches_[i].node == from) remove_watch(ThermalWatch(i));
  gone.alive = false;
  free_nodes_.push_back(from.index());
  number_rows();
}

void ThermalNetwork::number_rows() {
  rows_.clear();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].alive) continue;
    nodes_[i].row = rows_.size();
    rows_.push_back(i);
  }
}

void ThermalNetwork::set_heat(ThermalNode node, Watts heat) {
  check(std::isfinite(heat.value()), "the heat of a node is finite", heat.value());
  Node& changed = at(node);
  if (changed.heat == heat.value()) return;
  changed.given += changed.heat * to_seconds(now_ - changed.heat_since);
  changed.heat_since = now_;
  if (mode_) mode_->add_heat(changed.row, heat.value() - changed.heat, sources_);
  changed.heat = heat.value();
  inputs_changed();
}

void ThermalNetwork::set_heat_slope(ThermalNode node, double slope_W_per_K, double reference_C) {
  check(std::isfinite(slope_W_per_K) && std::isfinite(reference_C), "a heat slope is finite");
  const Node& old = at(node);
  if (old.slope == slope_W_per_K && (old.reference == reference_C || slope_W_per_K == 0.0)) return;
  leave_mode();
  at(node).slope = slope_W_per_K;
  at(node).reference = reference_C;
}

void ThermalNetwork::set_conductance(ThermalLink link, double conductance_W_per_K) {
  check(link.index() < links_.size() && links_[link.index()].alive,
        "a thermal link is one of this network", link.index());
  check(conductance_W_per_K >= 0.0 && std::isfinite(conductance_W_per_K),
        "a conductance is zero or more", conductance_W_per_K);
  if (links_[link.index()].conductance == conductance_W_per_K) return;
  leave_mode();
  links_[link.index()].conductance = conductance_W_per_K;
}

void ThermalNetwork::set_rate(ThermalStream stream, double rate_W_per_K) {
  check(stream.index() < streams_.size(), "a stream is one of this network", stream.index());
  check(rate_W_per_K >= 0.0 && std::isfinite(rate_W_per_K), "a stream's rate is zero or more",
        rate_W_per_K);
  if (streams_[stream.index()].rate == rate_W_per_K) return;
  leave_mode();
  streams_[stream.index()].rate = rate_W_per_K;
}

void ThermalNetwork::set_temperature(ThermalBoundary boundary, double temperature_C) {
  check_place(boundary);
  check(std::isfinite(temperature_C), "a temperature is finite", temperature_C);
  Boundary& changed = boundaries_[boundary.index()];
  const double change = temperature_C - changed.temperature;
  if (change == 0.0) return;
  changed.integral = boundary_integral(changed);
  changed.since = now_;
  changed.temperature = temperature_C;
  if (mode_) {
    for (const Link& link : links_) {
      if (!link.alive || link.conductance == 0.0) continue;
      if (link.a == ThermalPlace(boundary))
        mode_->add_heat(at(std::get<ThermalNode>(link.b)).row, link.conductance * change, sources_);
      else if (link.b == ThermalPlace(boundary))
        mode_->add_heat(at(std::get<ThermalNode>(link.a)).row, link.conductance * change, sources_);
    }
    for (const Stream& stream : streams_)
      if (stream.from == boundary && stream.rate != 0.0)
        for (std::size_t i = 0; i < stream.stops.size(); ++i)
          mode_->add_heat(at(stream.stops[i]).row,
                          stream.rate * stream.shape.from_inlet[i] * change, sources_);
  }
  inputs_changed();
}

void ThermalNetwork::advance(Time now) {
  check(now >= now_, "thermal time runs forward", to_seconds(now), to_seconds(now_));
  if (now == now_) return;
  predict();
  for (const Watch& watch : watches_)
    check(!watch.alive || !watch.due || now <= *watch.due,
          "thermal time stops at every arrival, and the arrival is taken before it goes on");
  enter_mode();
  mode_->step(now - now_, sources_, coordinates_, integrals_);
  now_ = now;
  for (double y : coordinates_)
    check(std::isfinite(y),
          "temperatures stay finite: heat that outgrows its losses must trip something");
}

void ThermalNetwork::enter_mode() const {
  if (mode_) return;
  mode_ = modes_->mode(signature(), [this] { return matrix(); });
  std::vector<double> temperatures;
  temperatures.reserve(rows_.size());
  for (std::size_t i : rows_) temperatures.push_back(nodes_[i].temperature);
  coordinates_ = mode_->coordinates(temperatures);
  integrals_.assign(coordinates_.size(), 0.0);
  sources_ = mode_->sources(watts());
}

void ThermalNetwork::leave_mode() {
  inputs_changed();
  if (mode_) {
    for (Link& link : links_) {
      if (!link.alive || link.conductance == 0.0) continue;
      const double moved = moved_in_mode(link);
      link.moved += moved;
      if (!is_node(link.a)) boundaries_[std::get<ThermalBoundary>(link.a).index()].removed -= moved;
      if (!is_node(link.b)) boundaries_[std::get<ThermalBoundary>(link.b).index()].removed += moved;
    }
    for (const Stream& stream : streams_)
      if (stream.from) boundaries_[stream.from->index()].removed += taken_in_mode(stream);
    const std::vector<double> temperatures = mode_->temperatures(coordinates_);
    const std::vector<double> integrals = mode_->temperatures(integrals_);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      Node& node = nodes_[rows_[row]];
      node.temperature = temperatures[row];
      node.integral += integrals[row];
      node.given += node.slope * (integrals[row] - node.reference * seconds_in_mode());
    }
    mode_ = nullptr;
  }
  entered_ = now_;
  for (Boundary& boundary : boundaries_) boundary.at_entry = boundary_integral(boundary);
}

}  // namespace trainyard::models
