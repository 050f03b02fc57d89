#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "models/facility/thermal_network.hpp"

/// The slow obvious twin of the thermal network, and a script of random events for both.
namespace trainyard::models {

/// Fourth-order Runge-Kutta on dT/dt as it is written down, streams walked stop by stop.
class ThermalTwin {
 public:
  struct End {
    bool node;
    std::size_t index;
  };
  struct Link {
    End a, b;
    double g;
  };
  struct Stream {
    std::optional<std::size_t> from;
    std::vector<std::size_t> stops;
    std::vector<double> effectiveness;
    double rate;
  };
  std::vector<double> capacity, heat, slope, reference, outside;
  std::vector<Link> links;
  std::vector<Stream> streams;

  void add_node(double c, double t) {
    capacity.push_back(c);
    heat.push_back(0.0);
    slope.push_back(0.0);
    reference.push_back(0.0);
    state_.insert(state_.begin() + std::ptrdiff_t(n_), t);  // temperatures first
    state_.push_back(0.0);
    ++n_;
  }
  void add_boundary(double t) {
    outside.push_back(t);
    state_.push_back(0.0);
  }
  double temperature(std::size_t i) const { return state_[i]; }
  double integral(std::size_t i) const { return state_[n_ + i]; }
  double removed(std::size_t i) const { return state_[2 * n_ + i]; }

  void advance(double span, double h) {
    const auto steps = int(std::lround(span / h));
    for (int step = 0; step < steps; ++step) {
      const auto k1 = rates(state_), k2 = rates(moved(k1, h / 2)), k3 = rates(moved(k2, h / 2)),
                 k4 = rates(moved(k3, h));
      for (std::size_t i = 0; i < state_.size(); ++i)
        state_[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
  }

 private:
  std::vector<double> moved(const std::vector<double>& k, double h) const {
    std::vector<double> x = state_;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += h * k[i];
    return x;
  }
  std::vector<double> rates(const std::vector<double>& x) const {
    std::vector<double> q(n_), out(x.size());
    for (std::size_t i = 0; i < n_; ++i) q[i] = heat[i] + slope[i] * (x[i] - reference[i]);
    const auto degrees = [&](End end) { return end.node ? x[end.index] : outside[end.index]; };
    const auto give = [&](End end, double w) {
      (end.node ? q[end.index] : out[2 * n_ + end.index]) += w;
    };
    for (const Link& link : links) {
      const double w = link.g * (degrees(link.a) - degrees(link.b));
      give(link.a, -w);
      give(link.b, w);
    }
    for (const Stream& stream : streams) {
      // A circuit is walked until its temperature repeats.
      double t = stream.from ? outside[*stream.from] : 0.0;
      const double inlet = t;
      const auto round = [&](bool count) {
        for (std::size_t i = 0; i < stream.stops.size(); ++i) {
          const double given = stream.effectiveness[i] * (t - x[stream.stops[i]]);
          if (count) q[stream.stops[i]] += stream.rate * given;
          t -= given;
        }
      };
      if (!stream.from)
        for (int i = 0; i < 200; ++i) round(false);
      round(true);
      if (stream.from) out[2 * n_ + *stream.from] += stream.rate * (t - inlet);
    }
    for (std::size_t i = 0; i < n_; ++i) {
      out[i] = q[i] / capacity[i];
      out[n_ + i] = x[i];
    }
    return out;
  }

  std::size_t n_ = 0;
  std::vector<double> state_;  // temperatures, their integrals, heat into boundaries
};

/// A random network of up to twelve nodes and what happens to it, the same for whoever plays it.
class ThermalScript {
 public:
  ThermalScript(int seed, bool streams) : seed_(std::uint64_t(seed)) {
    std::mt19937_64 random(seed_);
    const auto pick = [&](std::size_t n) { return std::size_t(random() % n); };
    const std::size_t n = 3 + pick(10);
    for (std::size_t i = 0; i < n; ++i) {
      capacities_.push_back(std::pow(10.0, uniform(random, 2.5, 6.0)));
      starts_.push_back(uniform(random, 15.0, 60.0));
    }
    outside_ = {10.0, 25.0};
    for (std::size_t i = 1; i < n; ++i) links_.push_back({i, pick(i), false, conductance(random)});
    for (std::size_t i = 0; i < n / 2; ++i)
      if (const std::size_t a = pick(n), b = pick(n); a != b)
        links_.push_back({a, b, false, conductance(random)});
    for (std::size_t i = 0; i < 3; ++i)
      links_.push_back({pick(n), i % 2, true, conductance(random)});
    if (!streams) return;
    std::vector<std::size_t> way(n);
    std::iota(way.begin(), way.end(), std::size_t{0});
    std::shuffle(way.begin(), way.end(), random);
    for (int s = 0; s < 2; ++s) {
      Stream stream{
          s == 0 ? std::optional<std::size_t>(1) : std::nullopt, {}, {}, conductance(random)};
      for (std::size_t i = 0; i < 3; ++i) {
        stream.stops.push_back(way[(i + std::size_t(s)) % n]);
        stream.effectiveness.push_back(s == 0 && i == 0 ? 1.0 : uniform(random, 0.2, 1.0));
      }
      streams_.push_back(stream);
    }
  }

  std::size_t nodes() const { return capacities_.size(); }
  std::size_t boundaries() const { return outside_.size(); }

  void build(ThermalTwin& twin) const {
    for (std::size_t i = 0; i < nodes(); ++i) twin.add_node(capacities_[i], starts_[i]);
    for (double t : outside_) twin.add_boundary(t);
    for (const Tie& tie : links_) twin.links.push_back({{true, tie.a}, {!tie.out, tie.b}, tie.g});
    for (const Stream& s : streams_)
      twin.streams.push_back({s.from, s.stops, s.effectiveness, s.rate});
  }

  void build(ThermalNetwork& net) const {
    std::vector<std::size_t> order(nodes());
    std::iota(order.begin(), order.end(), std::size_t{0});
    build(net, order);
  }

  /// The same network with its nodes in another order: node i is order[i] there.
  std::vector<std::size_t> build_permuted(ThermalNetwork& net) const {
    std::vector<std::size_t> order(nodes());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(seed_ + 77);
    std::shuffle(order.begin(), order.end(), random);
    build(net, order);
    return order;
  }

  /// Event k on a twin or a network: some source, link, stream or boundary takes another value.
  void change(int k, ThermalTwin& twin) const {
    const Event e = event(k);
    twin.heat[e.node] = e.heat;
    twin.slope[e.node] = e.slope;
    twin.reference[e.node] = 25.0;
    twin.links[e.link].g = e.g;
    twin.outside[e.boundary] = e.outside;
    if (!streams_.empty()) twin.streams[e.stream].rate = e.rate;
  }
  void change(int k, ThermalNetwork& net, const std::vector<std::size_t>& order = {}) const {
    const Event e = event(k);
    const ThermalNode node(order.empty() ? e.node : order[e.node]);
    net.set_heat(node, Watts(e.heat));
    net.set_heat_slope(node, e.slope, 25.0);
    net.set_conductance(ThermalLink(e.link), e.g);
    net.set_temperature(ThermalBoundary(e.boundary), e.outside);
    if (!streams_.empty()) net.set_rate(ThermalStream(e.stream), e.rate);
  }

 private:
  struct Tie {
    std::size_t a, b;
    bool out;
    double g;
  };
  struct Stream {
    std::optional<std::size_t> from;
    std::vector<std::size_t> stops;
    std::vector<double> effectiveness;
    double rate;
  };
  struct Event {
    std::size_t node, link, boundary, stream;
    double heat, slope, g, outside, rate;
  };

  static double uniform(std::mt19937_64& random, double low, double high) {
    return low + (high - low) * double(random() >> 11) * 0x1p-53;
  }
  static double conductance(std::mt19937_64& random) {
    return std::pow(10.0, uniform(random, 0.5, 2.5));
  }

  void build(ThermalNetwork& net, const std::vector<std::size_t>& order) const {
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (std::size_t i : place) net.add_node("node", capacities_[i], starts_[i]);
    for (double t : outside_) net.add_boundary("outside", t);
    for (const Tie& tie : links_)
      net.connect(
          ThermalNode(order[tie.a]),
          tie.out ? ThermalPlace(ThermalBoundary(tie.b)) : ThermalPlace(ThermalNode(order[tie.b])),
          tie.g);
    for (const Stream& s : streams_) {
      std::vector<StreamStop> stops;
      for (std::size_t i = 0; i < s.stops.size(); ++i)
        stops.push_back({ThermalNode(order[s.stops[i]]), s.effectiveness[i]});
      net.add_stream("stream", s.from ? std::optional(ThermalBoundary(*s.from)) : std::nullopt,
                     stops, s.rate);
    }
  }

  Event event(int k) const {
    std::mt19937_64 random(seed_ * 1000003 + std::uint64_t(k));
    const auto pick = [&](std::size_t n) { return std::size_t(random() % n); };
    Event e{};
    e.node = pick(nodes());
    e.link = pick(links_.size());
    e.boundary = pick(outside_.size());
    e.stream = streams_.empty() ? 0 : pick(streams_.size());
    e.heat = uniform(random, 0.0, 5000.0);
    // A slope below every link there is, so that nothing runs away; often none, so modes come back.
    e.slope = pick(3) == 0 ? -uniform(random, 0.0, 3.0) : 0.0;
    // Off, or one of three speeds. Links to the outside stay on.
    const double speed = double(pick(4)) / 3.0;
    e.g = links_[e.link].g * (links_[e.link].out ? 0.25 + speed : speed);
    e.outside = uniform(random, -5.0, 35.0);
    if (!streams_.empty()) e.rate = streams_[e.stream].rate * double(pick(3)) / 2.0;
    return e;
  }

  std::uint64_t seed_;
  std::vector<double> capacities_, starts_, outside_;
  std::vector<Tie> links_;
  std::vector<Stream> streams_;
};

}  // namespace trainyard::models
