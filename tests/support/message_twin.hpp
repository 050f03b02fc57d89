#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "tests/support/water_filling.hpp"

/// The slow twin of collectives as single variables: every message of every edge, one by one.
///
/// An edge is a first-in-first-out connection; it sends its messages one after another, each at the
/// textbook max-min rate of the moment. Message m waits for message m - lag of certain other edges
/// (the data it passes on), and may run at most so many messages ahead of others (credits: the
/// receiver's buffer). A message arrives `alpha_s` after its last byte was sent. Edges of one lane
/// start in order, a window of them at a time: the peers that a rank has in flight.
namespace trainyard::tests {

struct MessageTwin {
  struct Wait {
    std::size_t edge;
    std::size_t messages;
  };
  static constexpr std::size_t no_lane = static_cast<std::size_t>(-1);
  struct Edge {
    FillingProblem::Variable path;
    std::size_t messages = 1;
    double bytes = 0;  // of one message
    double start_s = 0;
    std::vector<Wait> behind;    // message m needs message m - messages of that edge
    std::vector<Wait> ahead_of;  // m is at most this far ahead of that edge
    std::size_t lane = no_lane;
  };

  std::vector<double> capacities;
  std::vector<Edge> edges;
  double alpha_s = 0;
  std::size_t window = 1;

  /// When the last message of each edge has arrived.
  std::vector<double> finish_times() {
    use_only_links_in_use();
    const std::size_t n = edges.size();
    arrived_.assign(n, {});
    std::vector<double> left(n, 0.0);
    std::vector<bool> is_sending(n, false);
    std::map<std::size_t, std::size_t> open;  // edges of a lane that have begun and not ended
    std::map<std::size_t, std::vector<std::size_t>> lanes;
    for (std::size_t i = 0; i < n; ++i)
      if (edges[i].lane != no_lane) lanes[edges[i].lane].push_back(i);
    std::map<std::size_t, std::size_t> next;  // of a lane
    double now = 0;
    for (;;) {
      FillingProblem active;
      active.capacities = capacities;
      std::vector<std::size_t> who;
      double wake = std::numeric_limits<double>::infinity();
      for (auto& [lane, members] : lanes)
        while (next[lane] < members.size() && open[lane] < window) {
          ++open[lane];
          is_sending[members[next[lane]]] = true;
          left[members[next[lane]]] = edges[members[next[lane]]].bytes;
          ++next[lane];
        }
      for (std::size_t i = 0; i < n; ++i) {
        if (!is_sending[i] && edges[i].lane == no_lane && arrived_[i].size() < edges[i].messages) {
          const double when = ready_s(i);
          if (when <= now) {
            is_sending[i] = true;
            left[i] = edges[i].bytes;
          } else {
            wake = std::min(wake, when);
          }
        }
        if (!is_sending[i]) continue;
        active.variables.push_back(edges[i].path);
        who.push_back(i);
      }
      if (who.empty() && std::isinf(wake)) break;
      const std::vector<double> rates = water_filling(active);
      double step = wake - now;
      for (std::size_t j = 0; j < who.size(); ++j) step = std::min(step, left[who[j]] / rates[j]);
      const bool is_wake = step == wake - now;
      for (std::size_t j = 0; j < who.size(); ++j) {
        const std::size_t i = who[j];
        left[i] -= rates[j] * step;
        if (left[i] > 1e-12 * edges[i].bytes) continue;
        is_sending[i] = false;
        arrived_[i].push_back(now + step + alpha_s);
        if (edges[i].lane != no_lane) --open[edges[i].lane];
      }
      now = is_wake ? wake : now + step;
    }
    std::vector<double> finish;
    for (const std::vector<double>& times : arrived_)
      finish.push_back(times.empty() ? 0.0 : times.back());
    return finish;
  }

 private:
  /// When the next message of an edge may begin; infinite while that is not known.
  double ready_s(std::size_t i) const {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    const std::size_t m = arrived_[i].size();
    double when = edges[i].start_s;
    for (const Wait& w : edges[i].behind) {
      if (m < w.messages) continue;
      if (arrived_[w.edge].size() <= m - w.messages) return unknown;
      when = std::max(when, arrived_[w.edge][m - w.messages]);
    }
    for (const Wait& w : edges[i].ahead_of) {
      if (m <= w.messages) continue;
      if (arrived_[w.edge].size() < m - w.messages) return unknown;
      when = std::max(when, arrived_[w.edge][m - w.messages - 1]);
    }
    return when;
  }

  void use_only_links_in_use() {
    std::map<std::size_t, std::size_t> place;
    std::vector<double> used;
    for (Edge& edge : edges)
      for (auto& [link, weight] : edge.path.loads) {
        const auto [at, is_new] = place.try_emplace(link, used.size());
        if (is_new) used.push_back(capacities[link]);
        link = at->second;
      }
    capacities = used;
  }

  std::vector<std::vector<double>> arrived_;  // by edge and message
};

/// How a ring cuts its steps into messages: slices a step, messages an edge may run ahead of the
/// next (0: any), loops over the buffer.
struct RingCut {
  const char* name;
  std::size_t slices = 1, credits = 0, loops = 1;
};
inline constexpr RingCut one_message_a_step{"P1", 1, 0, 1};
inline constexpr RingCut like_nccl{"P2K6L4", 2, 6, 4};
inline constexpr RingCut many_slices{"P4K2", 4, 2, 1};

/// Adds the edges of a ring, in order; edge i sends `steps` chunks of bytes / steps.
inline void add_ring(MessageTwin& twin, const std::vector<FillingProblem::Variable>& paths,
                     double bytes, std::size_t steps, const RingCut& cut, double start_s = 0) {
  const std::size_t first = twin.edges.size(), n = paths.size();
  for (std::size_t i = 0; i < n; ++i) {
    MessageTwin::Edge& edge = twin.edges.emplace_back();
    edge.path = paths[i];
    edge.messages = steps * cut.slices * cut.loops;
    edge.bytes = bytes / static_cast<double>(edge.messages);
    edge.start_s = start_s;
    edge.behind.push_back({first + (i + n - 1) % n, cut.slices});
    if (cut.credits > 0) edge.ahead_of.push_back({first + (i + 1) % n, cut.credits});
  }
}

}  // namespace trainyard::tests
