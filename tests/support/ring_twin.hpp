#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "tests/support/water_filling.hpp"

/// The slow twin of a ring as one variable: every message of every edge, one by one.
///
/// Each edge is a first-in-first-out connection that sends its messages at the textbook max-min
/// rate of the moment. Message m of an edge waits for message m-1 of the edge before it (the data
/// it passes on) and for its own message m-1. Nothing is latency. `edges` may be several rings:
/// `upstream[i]` is the edge before edge i.
namespace trainyard::tests {

struct RingTwin {
  std::vector<double> capacities;
  std::vector<FillingProblem::Variable> edges;
  std::vector<std::size_t> upstream;
  std::vector<std::size_t> messages;  // of each edge
  std::vector<double> bytes;          // of one message of each edge

  /// When each edge has sent its last message.
  std::vector<double> finish_times() const {
    const std::size_t n = edges.size();
    std::vector<std::size_t> sent(n, 0);
    std::vector<double> left(n, 0.0), finish(n, 0.0);
    std::vector<bool> is_sending(n, false);
    double now = 0;
    for (;;) {
      FillingProblem active;
      active.capacities = capacities;
      std::vector<std::size_t> who;
      for (std::size_t i = 0; i < n; ++i) {
        if (!is_sending[i] && sent[i] < messages[i] &&
            (sent[i] == 0 || sent[upstream[i]] >= sent[i])) {
          is_sending[i] = true;
          left[i] = bytes[i];
        }
        if (!is_sending[i]) continue;
        active.variables.push_back(edges[i]);
        who.push_back(i);
      }
      if (who.empty()) return finish;
      const std::vector<double> rates = water_filling(active);
      double step = std::numeric_limits<double>::infinity();
      for (std::size_t j = 0; j < who.size(); ++j) step = std::min(step, left[who[j]] / rates[j]);
      now += step;
      for (std::size_t j = 0; j < who.size(); ++j) {
        const std::size_t i = who[j];
        left[i] -= rates[j] * step;
        if (left[i] > 1e-12 * bytes[i]) continue;
        is_sending[i] = false;
        if (++sent[i] == messages[i]) finish[i] = now;
      }
    }
  }
};

}  // namespace trainyard::tests
