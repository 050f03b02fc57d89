#include "topologies/dragonfly_ugal.hpp"

#include <algorithm>
#include <cmath>

namespace trainyard::topologies {

namespace {

constexpr int most_sweeps = 40;         // with the final steepness …
constexpr int most_gentle_sweeps = 10;  // … and with each before
constexpr double settled = 1e-5;        // change of a share in one sweep

/// x to the power n, and the n-th root; n a power of two.
double steep(double x, int n) {
  for (; n > 1; n /= 2) x *= x;
  return x;
}
double flat(double x, int n) {
  for (; n > 1; n /= 2) x = std::sqrt(x);
  return x;
}

/// What moving all of a pair's traffic from Valiant to minimal adds to links.
std::vector<LinkLoad> difference(const SplitTraffic& t) {
  std::vector<LinkLoad> d = t.minimal;
  for (const LinkLoad& l : t.indirect) d.push_back({l.link, -l.load});
  std::stable_sort(d.begin(), d.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
  std::vector<LinkLoad> sum;
  for (const LinkLoad& l : d) {
    if (!sum.empty() && sum.back().link == l.link)
      sum.back().load += l.load;
    else
      sum.push_back(l);
  }
  return sum;
}

/// Where `excess`, which rises, is zero between 0 and 1; the nearer end if it is not: false
/// position with the Illinois rule.
template <class F>
double zero_of(F excess) {
  double low = 0.0, high = 1.0;
  double at_high = excess(high);
  if (at_high <= 0.0) return high;
  double at_low = excess(low);
  if (at_low >= 0.0) return low;
  int side = 0;
  double share = 0.0;
  for (int n = 0; n < 60 && high - low > settled / 100; ++n) {
    share = std::clamp((low * at_high - high * at_low) / (at_high - at_low), low, high);
    const double at = excess(share);
    if (std::abs(at) < 1e-12) break;
    if (at > 0.0) {
      high = share;
      at_high = at;
      if (side == 1) at_low /= 2;
      side = 1;
    } else {
      low = share;
      at_low = at;
      if (side == -1) at_high /= 2;
      side = -1;
    }
  }
  return share;
}

}  // namespace

void balance(std::vector<SplitTraffic>& traffic, std::vector<double> base,
             const std::vector<double>& capacity) {
  std::vector<double>& load = base;
  std::vector<std::vector<LinkLoad>> moves;
  for (SplitTraffic& t : traffic) {
    t.minimal_share = 1.0;
    for (const LinkLoad& l : t.minimal) load[l.link] += l.load;
    moves.push_back(difference(t));
  }
  // Utilisations are taken relative to the busiest, to stay in the range of numbers.
  const auto busiest = [&] {
    double most = 0.0;
    for (std::size_t l = 0; l < load.size(); ++l)
      if (load[l] > 0.0) most = std::max(most, load[l] / capacity[l]);
    return most;
  };
  double scale = busiest();
  if (scale == 0.0) return;

  // One pair after the other to where its two ways cost the same. Their costs are compared by their
  // roots, which are nearly straight lines. Steep costs settle slowly from afar, so gentler ones
  // go before.
  const auto sweep = [&](int steepness) {
    double change = 0.0;
    for (std::size_t p = 0; p < traffic.size(); ++p) {
      const double old = traffic[p].minimal_share;
      const double share = zero_of([&](double s) {
        double more = 0.0, less = 0.0;
        for (const LinkLoad& l : moves[p]) {
          const double x = std::max(0.0, load[l.link] + (s - old) * l.load);
          (l.load > 0.0 ? more : less) +=
              std::abs(l.load) * steep(x / capacity[l.link] / scale, steepness);
        }
        return flat(more, steepness) - flat(less, steepness);
      });
      for (const LinkLoad& l : moves[p]) load[l.link] += (share - old) * l.load;
      traffic[p].minimal_share = share;
      change = std::max(change, std::abs(share - old));
    }
    return change;
  };
  for (int steepness = 4; steepness <= ugal_steepness; steepness *= 2)
    for (int n = 0; n < (steepness == ugal_steepness ? most_sweeps : most_gentle_sweeps); ++n) {
      if (sweep(steepness) < settled) break;
      scale = busiest();
    }
}

}  // namespace trainyard::topologies
