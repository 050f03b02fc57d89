#include <cmath>

#include "models/facility/thermal_network.hpp"
#include "sim/check.hpp"

/// What a thermal network answers about now and since the start. Accounts are kept up to the entry
/// of the present mode; what has happened since is a linear function of integrals of temperatures.
namespace trainyard::models {

double ThermalNetwork::temperature(ThermalNode node) const {
  const Node& of = at(node);
  return mode_ ? mode_->temperature(of.row, coordinates_) : of.temperature;
}

double ThermalNetwork::temperature(ThermalBoundary boundary) const {
  check_place(boundary);
  return boundaries_[boundary.index()].temperature;
}

double ThermalNetwork::slope(ThermalNode node) const {
  enter_mode();
  return mode_->slope(at(node).row, coordinates_, sources_);
}

Watts ThermalNetwork::heat(ThermalNode node) const {
  const Node& of = at(node);
  return Watts(of.heat + (of.slope == 0.0 ? 0.0 : of.slope * (temperature(node) - of.reference)));
}

Watts ThermalNetwork::flow(ThermalLink link) const {
  check(link.index() < links_.size() && links_[link.index()].alive,
        "a thermal link is one of this network", link.index());
  const Link& of = links_[link.index()];
  const auto degrees = [this](auto end) { return temperature(end); };
  return Watts(of.conductance * (std::visit(degrees, of.a) - std::visit(degrees, of.b)));
}

Watts ThermalNetwork::flow(ThermalStream stream) const {
  check(stream.index() < streams_.size(), "a stream is one of this network", stream.index());
  const Stream& of = streams_[stream.index()];
  if (!of.from) return Watts(0.0);
  const double inlet = temperature(*of.from);
  double outlet = of.shape.outlet_inlet * inlet;
  for (std::size_t i = 0; i < of.stops.size(); ++i)
    outlet += of.shape.outlet[i] * temperature(of.stops[i]);
  return Watts(of.rate * (outlet - inlet));
}

double ThermalNetwork::capacity(ThermalNode node) const {
  return at(node).capacity;
}

double ThermalNetwork::conductance(ThermalLink link) const {
  check(link.index() < links_.size() && links_[link.index()].alive,
        "a thermal link is one of this network", link.index());
  return links_[link.index()].conductance;
}

const std::string& ThermalNetwork::name(ThermalNode node) const {
  return at(node).name;
}

bool ThermalNetwork::is_directed() const {
  enter_mode();
  return mode_->is_directed();
}

std::vector<double> ThermalNetwork::steady_state() const {
  const std::vector<double> by_row = steady_temperatures(matrix(), watts());
  std::vector<double> by_node(nodes_.size(), 0.0);
  for (std::size_t row = 0; row < rows_.size(); ++row) by_node[rows_[row]] = by_row[row];
  return by_node;
}

void ThermalNetwork::settle() {
  leave_mode();
  const std::vector<double> temperatures = steady_state();
  for (std::size_t i : rows_) {
    brought_ += nodes_[i].capacity * (temperatures[i] - nodes_[i].temperature);
    nodes_[i].temperature = temperatures[i];
  }
  for (std::size_t i = 0; i < watches_.size(); ++i)
    if (watches_[i].alive) move_watch(ThermalWatch(i), watches_[i].limit);
}

double ThermalNetwork::boundary_integral(const Boundary& boundary) const {
  return boundary.integral + boundary.temperature * to_seconds(now_ - boundary.since);
}

double ThermalNetwork::integral_in_mode(ThermalPlace place) const {
  if (const auto* node = std::get_if<ThermalNode>(&place))
    return mode_ ? mode_->temperature(at(*node).row, integrals_) : 0.0;
  const Boundary& boundary = boundaries_[std::get<ThermalBoundary>(place).index()];
  return boundary_integral(boundary) - boundary.at_entry;
}

double ThermalNetwork::moved_in_mode(const Link& link) const {
  if (!mode_ || link.conductance == 0.0) return 0.0;
  return link.conductance * (integral_in_mode(link.a) - integral_in_mode(link.b));
}

double ThermalNetwork::taken_in_mode(const Stream& stream) const {
  if (!mode_ || !stream.from || stream.rate == 0.0) return 0.0;
  const double inlet = integral_in_mode(*stream.from);
  double outlet = stream.shape.outlet_inlet * inlet;
  for (std::size_t i = 0; i < stream.stops.size(); ++i)
    outlet += stream.shape.outlet[i] * integral_in_mode(stream.stops[i]);
  return stream.rate * (outlet - inlet);
}

double ThermalNetwork::temperature_integral(ThermalNode node) const {
  return at(node).integral + integral_in_mode(node);
}

Joules ThermalNetwork::heat_given(ThermalNode node) const {
  const Node& of = at(node);
  double given = of.given + of.heat * to_seconds(now_ - of.heat_since);
  if (of.slope != 0.0 && mode_)
    given += of.slope * (integral_in_mode(node) - of.reference * seconds_in_mode());
  return Joules(given);
}

Joules ThermalNetwork::heat_removed(ThermalBoundary boundary) const {
  check_place(boundary);
  double removed = boundaries_[boundary.index()].removed;
  for (const Link& link : links_) {
    if (!link.alive) continue;
    if (link.a == ThermalPlace(boundary)) removed -= moved_in_mode(link);
    if (link.b == ThermalPlace(boundary)) removed += moved_in_mode(link);
  }
  for (const Stream& stream : streams_)
    if (stream.from == boundary) removed += taken_in_mode(stream);
  return Joules(removed);
}

Joules ThermalNetwork::heat_moved(ThermalLink link) const {
  check(link.index() < links_.size() && links_[link.index()].alive,
        "a thermal link is one of this network", link.index());
  return Joules(links_[link.index()].moved + moved_in_mode(links_[link.index()]));
}

HeatBalance ThermalNetwork::balance() const {
  double given = 0.0, stored = -brought_, removed = 0.0;
  for (std::size_t i : rows_) {
    given += heat_given(ThermalNode(i)).value();
    stored += nodes_[i].capacity * temperature(ThermalNode(i));
  }
  for (std::size_t i = 0; i < boundaries_.size(); ++i)
    removed += heat_removed(ThermalBoundary(i)).value();
  return {Joules(given), Joules(removed), Joules(stored), Joules(given - removed - stored)};
}

}  // namespace trainyard::models
