/// The same flows over the same routes in SimGrid and in Trainyard, one after the other in one
/// process: processor times, and the largest relative difference of finish times.
///
///     compare_simgrid WORKLOAD [SEED]
///
/// SimGrid's model is set to pure max-min without latency, its precision to 1e-15 s (at the default
/// it merges ends that lie near each other). Prints one row of CSV; `compare.py` repeats and takes
/// medians. Needs libsimgrid 3.32.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <unordered_map>

#include <simgrid/s4u.hpp>

#include "tests/bench/simgrid/ours.hpp"

namespace {

namespace s4u = simgrid::s4u;
using namespace trainyard::bench;

/// Processor time, so that what else runs on the machine is not counted.
double seconds_of(const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<s4u::Host*> build(const Workload& w) {
  const s4u::ClusterCallbacks hosts(
      [](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
        s4u::Host* host = zone->create_host("host" + std::to_string(id), 1e9);
        return std::make_pair(host->get_netpoint(),
                              static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
      });
  const unsigned* s = w.shape;
  constexpr auto duplex = s4u::Link::SharingPolicy::SPLITDUPLEX;
  s4u::NetZone* zone =
      w.is_dragonfly
          ? s4u::create_dragonfly_zone("fabric", nullptr,
                                       {{s[0], s[1]}, {s[2], s[3]}, {s[4], s[5]}, s[6]}, hosts,
                                       link_Bps, 0, duplex)
          : s4u::create_fatTree_zone(
                "fabric", nullptr, {3, {s[0], s[1], s[2]}, {s[3], s[4], s[5]}, {s[6], s[7], s[8]}},
                hosts, link_Bps, 0, duplex);
  zone->seal();
  std::vector<s4u::Host*> all = s4u::Engine::get_instance()->get_all_hosts();
  std::sort(all.begin(), all.end(), [](const s4u::Host* a, const s4u::Host* b) {
    return std::atoi(a->get_cname() + 4) < std::atoi(b->get_cname() + 4);
  });
  return all;
}

Case make_case(std::vector<Flow> flows, const std::vector<s4u::Host*>& hosts) {
  Case c;
  std::unordered_map<const s4u::Link*, std::uint32_t> number;
  std::vector<s4u::Link*> path;
  c.first.push_back(0);
  for (const Flow& flow : flows) {
    path.clear();
    double latency_s = 0;
    hosts[flow.from]->route_to(hosts[flow.to], path, &latency_s);
    for (const s4u::Link* link : path) {
      const auto [at, is_new] = number.try_emplace(link, static_cast<std::uint32_t>(number.size()));
      if (is_new) c.capacities_Bps.push_back(link->get_bandwidth());
      c.route.push_back(at->second);
    }
    c.first.push_back(static_cast<std::uint32_t>(c.route.size()));
  }
  c.flows = std::move(flows);
  return c;
}

/// Starts the flows numbered in `mine` at their times and waits for them.
void start_flows(const std::vector<Flow>& flows, const std::vector<std::size_t>& mine,
                 const std::vector<s4u::Host*>& hosts, std::vector<double>& finish) {
  std::vector<s4u::CommPtr> comms;
  for (const std::size_t i : mine) {
    if (flows[i].start_s > s4u::Engine::get_clock()) s4u::this_actor::sleep_until(flows[i].start_s);
    comms.push_back(s4u::Comm::sendto_async(hosts[flows[i].from], hosts[flows[i].to],
                                            static_cast<std::uint64_t>(flows[i].bytes)));
  }
  for (std::size_t k = 0; k < mine.size(); ++k) {
    comms[k]->wait();
    finish[mine[k]] = comms[k]->get_finish_time();
    comms[k] = nullptr;
  }
}

/// The same through mailboxes, of which each host receives its own: without them every running flow
/// is in one list that SimGrid walks at each completion.
void start_mailed_flows(const std::vector<Flow>& flows, const std::vector<std::size_t>& out,
                        const std::vector<std::size_t>& in, std::vector<double>& finish) {
  static int token = 0;
  std::vector<s4u::CommPtr> received, sent;
  std::vector<int*> got(in.size());
  const auto box = [](std::size_t i) { return s4u::Mailbox::by_name("f" + std::to_string(i)); };
  for (std::size_t k = 0; k < in.size(); ++k)
    received.push_back(box(in[k])->get_async<int>(&got[k]));
  for (const std::size_t i : out) {
    if (flows[i].start_s > s4u::Engine::get_clock()) s4u::this_actor::sleep_until(flows[i].start_s);
    sent.push_back(box(i)->put_async(&token, static_cast<std::uint64_t>(flows[i].bytes)));
  }
  for (std::size_t k = 0; k < out.size(); ++k) {
    sent[k]->wait();
    finish[out[k]] = sent[k]->get_finish_time();
  }
  for (const s4u::CommPtr& comm : received) comm->wait();
}

/// One rank of a ring: its next step begins when it has sent and received.
void ring_rank(std::size_t rank, std::size_t ranks, std::size_t steps, double bytes) {
  static int token = 0;
  s4u::Mailbox* to = s4u::Mailbox::by_name("r" + std::to_string((rank + 1) % ranks));
  s4u::Mailbox* from = s4u::Mailbox::by_name("r" + std::to_string(rank));
  for (std::size_t step = 0; step < steps; ++step) {
    int* got = nullptr;
    const s4u::CommPtr in = from->get_async<int>(&got);
    const s4u::CommPtr out = to->put_async(&token, static_cast<std::uint64_t>(bytes));
    out->wait();
    in->wait();
  }
}

double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]) / std::max(a[i], b[i]));
  return worst;
}

void print(const std::string& name, std::size_t flows, double simgrid_s, double ours_s,
           double connected_s, double plain_s, double worst) {
  std::printf("%s,%zu,%.6g,%.6g,%.6g,%.6g,%.3g\n", name.c_str(), flows, simgrid_s, ours_s,
              connected_s, plain_s, worst);
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  for (const char* setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/weight-S:0",
        "surf/precision:1e-15", "maxmin/precision:1e-9"})
    s4u::Engine::set_config(setting);
  if (argc < 2) {
    std::puts("workload,flows,simgrid_s,trainyard_s,connected_s,plain_s,worst_relative_difference");
    return 0;
  }
  const Workload& w = find_workload(argv[1]);
  const std::vector<s4u::Host*> hosts = build(w);
  const std::vector<Flow> flows =
      make_flows(w, hosts.size(), argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const Case c = make_case(flows, hosts);

  if (w.kind == Workload::Kind::ring) {
    const std::size_t n = hosts.size(), steps = 2 * (n - 1);
    double end_s[3] = {}, ours_s[3] = {};
    for (const RingForm form :
         {RingForm::new_flows, RingForm::restarted_flows, RingForm::one_variable})
      ours_s[int(form)] = seconds_of([&] { end_s[int(form)] = run_ring(c, steps, form); });
    for (std::size_t i = 0; i < n; ++i)
      s4u::Actor::create("rank" + std::to_string(i), hosts[i], ring_rank, i, n, steps,
                         flows[0].bytes);
    const double simgrid_s = seconds_of([&] { engine.run(); });
    const char* names[] = {"-new-flows", "-restarted", "-one-variable"};
    for (int f = 0; f < 3; ++f)
      print(w.name + std::string(names[f]), n * steps, simgrid_s, ours_s[f], NAN, NAN,
            worst_difference({end_s[f]}, {s4u::Engine::get_clock()}));
    return 0;
  }

  std::vector<double> ours, connected, plain, theirs(flows.size());
  const double ours_s = seconds_of([&] { ours = run_trainyard(c); });
  const double connected_s = seconds_of([&] { connected = run_trainyard(c, never_incremental); });
  const double plain_s = seconds_of([&] { plain = PlainResolve(c).run(); });
  std::vector<std::vector<std::size_t>> out(hosts.size()), in(hosts.size());
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    all.push_back(i);
    out[flows[i].from].push_back(i);
    in[flows[i].to].push_back(i);
  }
  if (w.has_actor_per_host) {
    for (std::size_t h = 0; h < hosts.size(); ++h)
      s4u::Actor::create("host", hosts[h],
                         [&, h] { start_mailed_flows(flows, out[h], in[h], theirs); });
  } else {
    s4u::Actor::create("all", hosts[0], [&] { start_flows(flows, all, hosts, theirs); });
  }
  const double simgrid_s = seconds_of([&] { engine.run(); });
  print(w.name, flows.size(), simgrid_s, ours_s, connected_s, plain_s,
        std::max({worst_difference(ours, theirs), worst_difference(connected, theirs),
                  worst_difference(plain, theirs)}));
  return 0;
}
