#include <utility>

#include "models/facility/thermal_network.hpp"

/// The equations of a thermal network as they stand: signature, matrix, sources.
namespace trainyard::models {

ThermalModes::Signature ThermalNetwork::signature() const {
  const auto number = [this](const ThermalPlace& place) {
    return is_node(place) ? double(at(std::get<ThermalNode>(place)).row) : -1.0;
  };
  ThermalModes::Signature key{double(rows_.size())};
  key.reserve(1 + 2 * rows_.size() + 3 * links_.size());
  for (std::size_t i : rows_) {
    key.push_back(nodes_[i].capacity);
    key.push_back(nodes_[i].slope);
  }
  for (const Link& link : links_) {
    if (!link.alive || link.conductance == 0.0) continue;
    key.push_back(number(link.a));
    key.push_back(number(link.b));
    key.push_back(link.conductance);
  }
  for (const Stream& stream : streams_) {
    if (stream.rate == 0.0) continue;
    key.push_back(-2.0);
    key.push_back(stream.rate);
    for (std::size_t i = 0; i < stream.stops.size(); ++i) {
      key.push_back(double(at(stream.stops[i]).row));
      for (std::size_t j = 0; j < stream.stops.size(); ++j) key.push_back(stream.shape.heat(i, j));
    }
  }
  return key;
}

ThermalMatrix ThermalNetwork::matrix() const {
  const std::size_t n = rows_.size();
  ThermalMatrix m{std::vector<double>(n), std::vector<double>(n * n), std::vector<double>(n)};
  for (std::size_t row = 0; row < n; ++row) {
    m.capacities[row] = nodes_[rows_[row]].capacity;
    m.losses[row] = -nodes_[rows_[row]].slope;
  }
  for (const Link& link : links_) {
    if (!link.alive || link.conductance == 0.0) continue;
    if (is_node(link.a) && is_node(link.b)) {
      const std::size_t a = at(std::get<ThermalNode>(link.a)).row;
      const std::size_t b = at(std::get<ThermalNode>(link.b)).row;
      m.exchange[a * n + a] += link.conductance;
      m.exchange[b * n + b] += link.conductance;
      m.exchange[a * n + b] -= link.conductance;
      m.exchange[b * n + a] -= link.conductance;
    } else {
      const ThermalPlace& end = is_node(link.a) ? link.a : link.b;
      m.losses[at(std::get<ThermalNode>(end)).row] += link.conductance;
    }
  }
  for (const Stream& stream : streams_) {
    if (stream.rate == 0.0) continue;
    for (std::size_t i = 0; i < stream.stops.size(); ++i) {
      const std::size_t row = at(stream.stops[i]).row;
      // What the inlet brings is a loss to a boundary, so that rows of the exchange add up to zero.
      const double inlet = stream.from ? stream.rate * stream.shape.from_inlet[i] : 0.0;
      m.losses[row] += inlet;
      m.exchange[row * n + row] -= inlet;
      for (std::size_t j = 0; j < stream.stops.size(); ++j)
        m.exchange[row * n + at(stream.stops[j]).row] -= stream.rate * stream.shape.heat(i, j);
    }
  }
  return m;
}

std::vector<double> ThermalNetwork::watts() const {
  std::vector<double> q(rows_.size(), 0.0);
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    const Node& node = nodes_[rows_[row]];
    q[row] = node.heat - node.slope * node.reference;
  }
  for (const Link& link : links_) {
    if (!link.alive || (is_node(link.a) && is_node(link.b))) continue;
    const auto& [node, boundary] =
        is_node(link.a) ? std::pair(link.a, link.b) : std::pair(link.b, link.a);
    q[at(std::get<ThermalNode>(node)).row] +=
        link.conductance * boundaries_[std::get<ThermalBoundary>(boundary).index()].temperature;
  }
  for (const Stream& stream : streams_)
    if (stream.from)
      for (std::size_t i = 0; i < stream.stops.size(); ++i)
        q[at(stream.stops[i]).row] += stream.rate * stream.shape.from_inlet[i] *
                                      boundaries_[stream.from->index()].temperature;
  return q;
}

}  // namespace trainyard::models
