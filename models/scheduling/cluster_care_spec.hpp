#pragma once

#include <optional>

#include "models/failures/failure_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"

/// What stands behind the servers of a cluster: who repairs them, what they share, which of them
/// wait as spares.
namespace trainyard::models {

/// Who repairs broken servers, and how well. A repair is: out-of-band reset (no crew), travel, the
/// class's `repair` with a crew, then a test (no crew).
struct RepairSpec {
  int crews = 0;                               // 0: one for every broken server
  std::optional<int> night_crews = {};         // outside of day_start..day_end; default: as by day
  Duration day_start = std::chrono::hours(8);  // runs start at midnight
  Duration day_end = std::chrono::hours(20);
  Duration travel{};       // of a crew, before each repair
  double reset_share = 0;  // of failures that a reset cures
  Duration reset = std::chrono::minutes(10);
  double dead_on_arrival = 0;  // share of repairs after which the server fails its test
  Duration test{};             // burn-in after a repair
  double vendor_share = 0;  // of failures that the crew cannot cure: the server goes to the vendor
  DelaySpec vendor{Law::log_normal, std::chrono::hours(240), 0.5};
};

template <class Visitor>
void describe(Visitor& v, RepairSpec& s) {
  v.optional("crews", s.crews, "servers that can be repaired at once; 0: all", at_least(0));
  v.optional("night_crews", s.night_crews, "crews outside of the day shift; default: as by day",
             at_least(0));
  v.optional("day_start", s.day_start, "begin of the day shift, from midnight", at_least(0));
  v.optional("day_end", s.day_end, "end of the day shift, from midnight", at_least(0));
  v.optional("travel", s.travel, "time until a crew is at the server", at_least(0));
  v.optional("reset_share", s.reset_share, "share of failures that a reset cures, without a crew",
             between(0, 1));
  v.optional("reset", s.reset, "time of a reset (tried first if reset_share is above 0)",
             at_least(0));
  v.optional("dead_on_arrival", s.dead_on_arrival,
             "share of repairs after which the server fails its test and is repaired again",
             between(0, 0.9));
  v.optional("test", s.test, "test of a server after its repair", at_least(0));
  v.optional("vendor_share", s.vendor_share, "share of failures that only the vendor can repair",
             between(0, 1));
  v.optional("vendor", s.vendor, "time until the vendor returns a server");
  v.check(s.crews > 0 || !s.night_crews, "night_crews", "only with crews by day");
  v.check(s.day_start < s.day_end && s.day_end <= std::chrono::hours(24), "day_end",
          "a day shift begins before it ends, within 24 h");
}

/// What servers share besides the network, each in groups of neighbours: server s is in rack
/// s / servers_per_rack. A rack or PDU that fails leaves its servers without feed, a CDU without
/// cooling. None: there is no such parent.
struct ParentsSpec {
  std::optional<int> servers_per_rack = {};
  std::optional<int> servers_per_pdu = {};
  std::optional<int> servers_per_cdu = {};
  double return_failures = 0;  // share of servers that do not come back after a loss of feed
};

template <class Visitor>
void describe(Visitor& v, ParentsSpec& s) {
  v.optional("servers_per_rack", s.servers_per_rack, "servers that share a rack and its shelves",
             at_least(1));
  v.optional("servers_per_pdu", s.servers_per_pdu, "servers that share a power distribution unit",
             at_least(1));
  v.optional("servers_per_cdu", s.servers_per_cdu, "servers that share a cooling distribution unit",
             at_least(1));
  v.optional("return_failures", s.return_failures,
             "share of servers that are broken when power returns", between(0, 0.5));
}

enum class SparePlaces { last, spread };

/// Warm spares are booted and take part at once; cold ones boot first.
struct SparesSpec {
  SparePlaces places = SparePlaces::last;
  Duration boot{};  // 0: warm
};

template <class Visitor>
void describe(Visitor& v, SparesSpec& s) {
  v.optional("places", s.places,
             "last: the last servers of the fabric; spread: evenly over it, as near as possible to "
             "everybody");
  v.optional("boot", s.boot, "time until a cold spare can start; 0: they are warm", at_least(0));
}

/// Repeat offenders: a server that failed so often within a time is taken out for good (sent to the
/// vendor).
struct ExclusionSpec {
  int after = 3;
  Duration within = std::chrono::hours(24 * 30);
};

template <class Visitor>
void describe(Visitor& v, ExclusionSpec& s) {
  v.optional("after", s.after, "failures after which a server is excluded", at_least(2));
  v.optional("within", s.within, "time within which they count", above(0));
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::SparePlaces> {
  static constexpr auto all = names<models::SparePlaces>(
      {{models::SparePlaces::last, "last"}, {models::SparePlaces::spread, "spread"}});
};
}  // namespace trainyard
