#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "models/compute/server_spec.hpp"
#include "models/training/link_table.hpp"
#include "topologies/fabric.hpp"
#include "topologies/routing.hpp"

/// Transfers between the servers of a job and a store whose servers are on the training fabric:
/// saves, loads, batches. They meet collectives on adapters and links.
///
/// Server i of the job talks to storage server i mod S. It moves its bytes evenly over its
/// adapters, adapter r to adapter r of the other side (the same rail), each connection in as many
/// flows as one of a collective has; an adapter without a path is left out. The bytes are in host
/// memory, so the scale-up links have nothing to do with it. All flows on a link share it max-min,
/// those of the store with their rate as a cap, so what a flow of the store takes is
///
///     min(rate, level),       level = what everybody on the link would get
///
/// and a collective sees what is left of the link (LinkTable::left_Bps). What a store's flow *can*
/// have is a mean over the step: with w flows of the store and c of collectives on a link of C, B
/// bytes of collectives a step of T, busy for tau:
///
///     idle   a = C / w        busy   f = min(a, C / (w + c))        tau = B / (C - w f)
///     mean = a - tau / T (a - f)        = (C - B / T) / w, if the store takes all that is left
///
///     StoreTraffic store(server, router, links);
///     LinkLoads flows = store.loads(job, storage, /*is_write=*/true);   // on every link
///
/// Page: docs/models/store-traffic.md.
namespace trainyard::models {

/// A link as a flow of a store sees it.
struct SharedLink {
  double capacity_Bps = 0;
  double store_flows = 0;
  double bytes = 0;             // of collectives and transfers, a step
  double collective_flows = 0;  // of them while they are busy
};

/// Mean rate over a step of a flow that runs over all of these links and wants all it can get. The
/// links are busy at the same time, as far as they are; where communication is exposed (for
/// `exposed_s` of the step) the step waits for what the store takes, where it is hidden it does
/// not.
double mean_flow_Bps(std::span<const SharedLink> links, double step_s, double exposed_s);

/// What a flow has of one link: while the link is idle, and for a share of the step, while it is
/// busy.
struct LinkShare {
  double idle_Bps = 0;
  double busy_Bps = MaxMin::unlimited;
  double busy = 0;
};
LinkShare share_of(const SharedLink& link, double step_s, double exposed_s);
/// The same mean, of many flows on links that are looked at once. `busy`: room to work in.
double mean_flow_Bps(std::span<const LinkShare> links, std::vector<LinkShare>& busy);
/// Less than that, without sorting: whoever looks for the slowest flow can pass the others by.
double mean_flow_at_least_Bps(std::span<const LinkShare> links);

class StoreTraffic {
 public:
  StoreTraffic(const ServerSpec& server, const topologies::Router& router, LinkTable& links)
      : server_(server), router_(router), links_(links) {}

  /// Number of flows on every link of one server's transfer. Empty: there is no path. The reference
  /// stays good until the next call of forget() or clear().
  const LinkLoads& path(topologies::HostId server, topologies::HostId store, bool is_write);
  /// Of all servers together; those without a path have none. The references stay good until the
  /// next call of anything but path() and these.
  const LinkLoads& loads(std::span<const topologies::HostId> servers,
                         std::span<const topologies::HostId> store, bool is_write);
  /// By rank; null: no store to go to.
  const std::vector<const LinkLoads*>& paths(std::span<const topologies::HostId> servers,
                                             std::span<const topologies::HostId> store,
                                             bool is_write);
  static topologies::HostId partner(std::size_t rank, std::span<const topologies::HostId> store) {
    return store[rank % store.size()];
  }
  /// Into how many flows a server's transfer is divided.
  double flows_of_server() const { return double(server_.nics) * router_.flows_of_pair(); }

  /// Forgets what depends on these links: after they failed, came back or changed their rate.
  void forget(const std::vector<bool>& links);
  void clear() {
    paths_.clear();
    recent_.clear();
  }

 private:
  struct Path {
    LinkLoads loads;
    bool is_detour = false;  // made while something was down: any change may change it
  };
  /// A limit, and then a step beside the transfer, ask for the same sums.
  struct Sum {
    std::vector<topologies::HostId> servers, store;
    bool is_write = false;
    std::vector<const LinkLoads*> paths;
    LinkLoads loads;
  };
  const Sum& sum(std::span<const topologies::HostId> servers,
                 std::span<const topologies::HostId> store, bool is_write);
  static constexpr std::size_t sums_kept = 4;
  static constexpr std::size_t paths_kept = 16'384;
  Path make_path(topologies::HostId from, topologies::HostId to);

  const ServerSpec& server_;
  const topologies::Router& router_;
  LinkTable& links_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Path> paths_;  // from, to: hosts
  std::vector<Sum> recent_;                                        // the latest last
};

}  // namespace trainyard::models
