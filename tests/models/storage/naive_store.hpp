#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "models/storage/store_spec.hpp"

/// A store in plain seconds, as slow and as obvious as can be: every rate is found afresh at every
/// event, everything moves on by rate times time to the next event, in long double.
namespace trainyard::models {

struct NaiveStore {
  using Real = long double;
  static constexpr Real never = std::numeric_limits<Real>::infinity();

  enum class Phase { before, latency, operations, bytes, over };
  struct Request {
    Real start, servers, streams, size, files, limit;
    bool is_write;
    Phase phase = Phase::before;
    Real left = 0, rate = 0, done = never, moved = 0;
  };
  struct Endless {  // a neighbour in one direction, or a reader
    int link;       // 0 write, 1 read
    Real start, end, demand, operations, streams, servers;
    bool is_reader;
    Real rate = 0, moved = 0;
  };
  struct Change {  // of something at a time
    Real when;
    enum { stop, limit, failed, back, demand, operations } what;
    std::size_t whom;
    Real value;
  };

  explicit NaiveStore(const StoreSpec& s) : spec(s) {}

  struct User {
    Real weight, cap, x = 0;
  };
  /// The level up to which all users fit on the link, by their caps from the smallest.
  static void share(std::vector<User*> users, Real capacity) {
    std::sort(users.begin(), users.end(), [](User* a, User* b) { return a->cap < b->cap; });
    Real weight = 0;
    for (User* u : users) weight += u->weight;
    for (User* u : users) {
      u->x = std::min(u->cap, std::max(Real(0), capacity) / weight);
      capacity -= u->x * u->weight;
      weight -= u->weight;
    }
  }

  void find_rates() {
    const Real up = Real(spec.servers - down) / spec.servers;
    const Real client = spec.client_rate.value();
    const Real stream = spec.stream_rate ? Real(spec.stream_rate->value()) : never;
    const Real latency = to_seconds(spec.open_latency);
    const Real open_rate = latency > 0 ? 1 / latency : never;
    std::vector<User> of_requests(requests.size()), of_endless(endless.size()),
        operations(endless.size());
    std::vector<User*> on[3];
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Request& r = requests[i];
      if (r.phase == Phase::operations) {
        of_requests[i] = {std::min(r.streams, std::max(r.files, Real(1))), open_rate};
        on[2].push_back(&of_requests[i]);
      } else if (r.phase == Phase::bytes) {
        of_requests[i] = {r.streams,
                          std::min(std::min(client, r.limit) * r.servers / r.streams, stream)};
        on[r.is_write ? 0 : 1].push_back(&of_requests[i]);
      }
    }
    const auto is_here = [&](const Endless& e) { return e.start <= now && now < e.end; };
    for (std::size_t i = 0; i < endless.size(); ++i) {
      const Endless& e = endless[i];
      if (!is_here(e) || e.operations == 0) continue;
      operations[i] = {e.streams, e.operations / e.streams};
      if (e.is_reader) operations[i].cap = std::min(operations[i].cap, open_rate);
      on[2].push_back(&operations[i]);
    }
    share(on[2], spec.metadata_rate ? *spec.metadata_rate * up : never);
    for (std::size_t i = 0; i < endless.size(); ++i) {
      const Endless& e = endless[i];
      if (!is_here(e) || e.demand == 0) continue;
      Real cap = std::min(e.demand / e.streams, stream);
      if (e.is_reader) {
        const Real granted =
            e.operations == 0 ? 1 : std::min(Real(1), operations[i].x * e.streams / e.operations);
        cap = std::min({cap, client * e.servers / e.streams, e.demand * granted / e.streams});
      }
      of_endless[i] = {e.streams, cap};
      on[e.link].push_back(&of_endless[i]);
    }
    share(on[0], spec.write_rate.value() * up);
    share(on[1], spec.read_rate.value() * up);
    for (std::size_t i = 0; i < requests.size(); ++i)
      requests[i].rate = of_requests[i].x * of_requests[i].weight;
    for (std::size_t i = 0; i < endless.size(); ++i)
      endless[i].rate = of_endless[i].x * of_endless[i].weight;
  }

  void enter(Request& r, Phase phase) {
    r.phase = phase;
    if (phase == Phase::latency) r.left = to_seconds(spec.latency);
    if (phase == Phase::operations) r.left = r.files;
    if (phase == Phase::bytes) r.left = r.size;
    if (phase == Phase::over) r.done = now;
  }
  void next_phase(Request& r) {
    if (r.phase == Phase::before)
      enter(r, spec.latency > Duration::zero() ? Phase::latency
               : r.files > 0                   ? Phase::operations
                                               : Phase::bytes);
    else if (r.phase == Phase::latency)
      enter(r, r.files > 0 ? Phase::operations : Phase::bytes);
    else
      enter(r, r.phase == Phase::operations ? Phase::bytes : Phase::over);
  }

  void run(Real end) {
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.when < b.when; });
    std::size_t next_change = 0;
    while (now < end) {
      find_rates();
      Real step = end - now;
      std::size_t first = requests.size();
      const auto at_most = [&](Real s, std::size_t who) {
        if (s >= step) return;
        step = s;
        first = who;
      };
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const Request& r = requests[i];
        if (r.phase == Phase::before) at_most(r.start - now, i);
        if (r.phase == Phase::latency) at_most(r.left, i);
        if ((r.phase == Phase::operations || r.phase == Phase::bytes) && r.rate > 0)
          at_most(r.left / r.rate, i);
      }
      for (const Endless& e : endless) {
        if (e.start > now) at_most(e.start - now, requests.size());
        if (e.end > now) at_most(e.end - now, requests.size());
      }
      bool is_change = false;
      if (next_change < changes.size() && changes[next_change].when - now < step) {
        step = changes[next_change].when - now;
        is_change = true;
      }
      for (Request& r : requests) {
        if (r.phase == Phase::latency) r.left -= step;
        if (r.phase == Phase::operations || r.phase == Phase::bytes) r.left -= r.rate * step;
        if (r.phase == Phase::bytes) r.moved += r.rate * step;
      }
      for (Endless& e : endless) e.moved += e.rate * step;
      now = now + step;
      if (is_change) {
        now = changes[next_change].when;
        apply(changes[next_change++]);
      } else if (first < requests.size()) {
        next_phase(requests[first]);
      } else {  // exactly there, or it would come again
        for (const Endless& e : endless) {
          if (std::abs(e.start - now) < 1e-12L) now = e.start;
          if (std::abs(e.end - now) < 1e-12L) now = e.end;
        }
      }
    }
  }

  void apply(const Change& c) {
    if (c.what == Change::failed) ++down;
    if (c.what == Change::back) --down;
    if (c.what == Change::limit) requests[c.whom].limit = c.value;
    if (c.what == Change::demand) endless[c.whom].demand = c.value;
    if (c.what == Change::operations) endless[c.whom].operations = c.value;
    if (c.what == Change::stop && requests[c.whom].phase != Phase::over)
      requests[c.whom].phase = Phase::over;
  }

  StoreSpec spec;
  std::vector<Request> requests;
  std::vector<Endless> endless;
  std::vector<Change> changes;
  int down = 0;
  Real now = 0;
};

}  // namespace trainyard::models
