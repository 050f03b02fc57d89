#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "models/network/max_min.hpp"
#include "tests/support/water_filling.hpp"

namespace trainyard::models {

/// Random networks that live: arrivals, departures, failures to zero and back, caps, in batches.
/// Capacities are all equal (many ties), small integers with zero among them or spread over seven
/// orders; weights 1, small integers, their inverses or e^-4 … e^4; up to 300 links and 60 loads.
class Fuzz {
 public:
  Fuzz(std::uint64_t seed, MaxMin::Tuning tuning) : random_(seed), net_(tuning) {
    kind_ = pick(4);
    weights_ = pick(4);
    has_caps_ = pick(2) == 0;
    const std::size_t size = pick(128);
    const std::size_t links = 1 + pick(size == 0 ? 300 : size < 16 ? 40 : 12);
    most_loads_ = size == 0 ? 60 : 8;
    for (std::size_t l = 0; l < links; ++l) {
      const double c = capacity();
      net_.add_link(c);
      problem_.capacities.push_back(c);
    }
    for (std::size_t i = pick(size == 0 ? 200 : 30); i > 0; --i) arrive();
  }

  void change_something() {
    const std::size_t what = pick(10);
    if (what < 4 || vars_.empty()) return arrive();
    const std::size_t i = pick(vars_.size());
    if (what < 7 && vars_.size() > 3) {
      net_.remove(vars_[i]);
      vars_.erase(vars_.begin() + static_cast<std::ptrdiff_t>(i));
      problem_.variables.erase(problem_.variables.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (what < 9) {
      const std::size_t l = pick(problem_.capacities.size());
      const double c = pick(3) == 0 ? 0.0 : capacity();
      net_.set_capacity(LinkIndex(l), c);
      problem_.capacities[l] = c;
    } else {
      const double u =
          problem_.variables[i].loads.empty() || pick(2) == 0 ? cap() : MaxMin::unlimited;
      net_.set_cap(vars_[i], u);
      problem_.variables[i].cap = u;
    }
  }

  double worst_difference() {
    net_.solve();
    net_.check_certificate();
    const std::vector<double> want = tests::water_filling(problem_);
    double worst = 0;
    for (std::size_t i = 0; i < vars_.size(); ++i) {
      const double got = net_.rate(vars_[i]);
      if (got != want[i]) worst = std::max(worst, std::abs(got - want[i]) / std::max(got, want[i]));
    }
    rates_compared += vars_.size();
    return worst;
  }

  std::size_t pick(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  const MaxMin& net() const { return net_; }
  std::size_t rates_compared = 0;

 private:
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double capacity() {
    switch (kind_) {
      case 0:
        return 10;  // many ties
      case 1:
        return static_cast<double>(pick(5));  // small integers, zero among them
      case 2:
        return std::exp(8 * uniform() - 4) * 1e9;
      default:
        return 50e9;
    }
  }
  double weight() {
    switch (weights_) {
      case 0:
        return 1;
      case 1:
        return static_cast<double>(1 + pick(4));
      case 2:
        return 1.0 / static_cast<double>(1 + pick(3));
      default:
        return std::exp(8 * uniform() - 4);
    }
  }
  double cap() { return pick(6) == 0 ? 0.0 : capacity() * uniform(); }
  void arrive() {
    FillingProblem::Variable v;
    std::vector<Load> loads;
    const std::size_t links = problem_.capacities.size();
    const std::size_t count =
        std::min(links, pick(20) == 0 ? std::size_t{0} : 1 + pick(most_loads_));
    std::vector<std::size_t> order(links);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(order[i], order[i + pick(links - i)]);
      const double w = weight();
      v.loads.push_back({order[i], w});
      loads.push_back({LinkIndex(order[i]), w});
    }
    if (count == 0 || (has_caps_ && pick(3) == 0)) v.cap = cap();
    vars_.push_back(net_.add(loads, v.cap));
    problem_.variables.push_back(v);
  }

  using FillingProblem = tests::FillingProblem;
  std::mt19937_64 random_;
  MaxMin net_;
  FillingProblem problem_;
  std::vector<VarIndex> vars_;
  std::size_t kind_, weights_, most_loads_ = 8;
  bool has_caps_;
};

}  // namespace trainyard::models
