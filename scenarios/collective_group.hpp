#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/network/collectives/plan.hpp"
#include "sim/describe.hpp"
#include "topologies/fabric.hpp"

/// Which GPUs take part in a collective, and in what order.
namespace trainyard::scenarios {

/// What the user asked for cannot be had; the text says what can.
struct SweepRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class ServerOrder {
  packed,  // as numbered: leaf after leaf
  spread,  // one server of each edge switch in turn: neighbours in rank order share no switch
  random   // drawn from the seed
};

struct GroupRequest {
  std::size_t ranks = 0;     // 0: all GPUs that are there
  std::size_t per_node = 0;  // GPUs of each server, from its first on; 0: all
};

/// The servers of the cluster (spares left out) in the order in which groups take them.
/// `listed`, if any, come first, and only they belong to the first group.
std::vector<std::size_t> servers_in_order(const topologies::Fabric& fabric, std::size_t servers,
                                          ServerOrder order, std::uint64_t seed,
                                          const std::vector<std::size_t>& listed);

/// The next group from these servers, which are taken from the front of `free`. Ranks count through
/// the GPUs of a server, then through the next server. Throws SweepRefused.
std::vector<models::Member> take_group(const topologies::Fabric& fabric,
                                       std::vector<std::size_t>& free, const GroupRequest& request);

}  // namespace trainyard::scenarios

namespace trainyard {
template <>
struct Names<scenarios::ServerOrder> {
  using O = scenarios::ServerOrder;
  static constexpr auto all =
      names<O>({{O::packed, "packed"}, {O::spread, "spread"}, {O::random, "random"}});
};
}  // namespace trainyard
