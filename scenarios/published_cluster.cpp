#include "scenarios/published_cluster.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <regex>

#include "scenarios/published_stack.hpp"
#include "scenarios/world.hpp"

namespace trainyard::scenarios {
namespace {

using topologies::FabricKind;
using topologies::FabricSpec;

// One generation of GPUs as its reference servers have it, where a row does not say: GPUs of a
// scale-up domain, and the adapter of a GPU in Gb/s (DGX-2, DGX A100, DGX H100, DGX B200 and GB200
// NVL72 user guides).
struct Generation {
  std::string_view gpu;
  int domain;
  double nic_gbps;
};
constexpr std::array generations{Generation{"V100", 16, 100},  Generation{"A100", 8, 200},
                                 Generation{"GB300", 72, 800}, Generation{"GB200", 72, 400},
                                 Generation{"B300", 8, 800},   Generation{"", 8, 400}};

const Generation& generation_of(std::string_view gpu) {
  return *std::find_if(generations.begin(), generations.end(),
                       [&](const Generation& g) { return gpu.substr(0, g.gpu.size()) == g.gpu; });
}

constexpr double bits = 8;
constexpr int ports = 64;  // of every switch, each as fast as an adapter
constexpr int chassis_ports =
    576;  // of modular switches, where pods are larger than 64 ports serve
// One hop: switch, two ports, 30 m of fibre (scenarios/parts/switch/quantum-2-qm9700.json).
constexpr Duration hop{350};

topologies::SwitchSpec switch_box(BytesPerSecond rate, int port_count) {
  return {
      .name = {}, .ports = port_count, .port_rate = rate, .latency = hop, .power = {}, .price = {}};
}

/// Adapters of a server. Where only the rate of the server is known, it is divided over adapters of
/// the generation's rate if they divide the GPUs (vTrain: 800 Gb/s are four of 200 for 8 GPUs).
std::pair<int, double> adapters(const PublishedRow& row, int gpus_per_server,
                                const Generation& generation, bool is_one_server,
                                std::vector<std::string>& rules) {
  if (const auto each = row.number("nic_gbps_per_gpu")) return std::pair{gpus_per_server, *each};
  if (const auto all = row.number("internode_gbps_per_node")) {
    const double count = *all / generation.nic_gbps;
    if (count >= 1 && count == std::floor(count) && gpus_per_server % int(count) == 0)
      return std::pair{int(count), generation.nic_gbps};
    return std::pair{gpus_per_server, *all / gpus_per_server};
  }
  if (!is_one_server) rules.emplace_back("adapter not given: that of the GPU's reference server");
  return std::pair{gpus_per_server, generation.nic_gbps};
}

int number_after(std::string_view text, const char* pattern, int otherwise) {
  const std::regex words(pattern, std::regex::icase);
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_search(text.begin(), text.end(), found, words)) return otherwise;
  return std::stoi(found[1].str().substr(0, 6));
}

/// "3-layer Clos, 3072-GPU pods full bisection, 1:7 oversubscribed aggregation": leaves of two
/// servers as in the Open Compute racks of Meta, pods on chassis switches.
FabricSpec pods_tree(int pod_servers, double oversubscription, BytesPerSecond rate) {
  FabricSpec f;
  f.kind = FabricKind::fat_tree;
  f.routing = topologies::RoutingKind::spray;
  f.tiers = 3;
  f.hosts_per_leaf = 2;
  f.leaves_per_pod = std::max(1, pod_servers / 2);
  f.spine_oversubscription = oversubscription;
  f.leaf_switch = switch_box(rate, ports);
  f.spine_switch = f.core_switch = switch_box(rate, chassis_ports);
  return f;
}

FabricSpec fabric_of(std::string_view words, const ClusterSpec& cluster,
                     std::vector<std::string>& rules) {
  const int servers = cluster.servers, nics = cluster.server.nics;
  const BytesPerSecond rate = cluster.server.nic.rate;
  if (servers > 1 && words.empty())
    rules.emplace_back("fabric not given: rail-optimised, without oversubscription");
  if (mentions(words, "dragonfly"))
    rules.emplace_back("a dragonfly of unknown size: a tree without oversubscription");
  const int pod = number_after(words, R"((\d+)-GPU pods)", 0) / cluster.server.gpus;
  const int ratio = number_after(words, R"(1:(\d+)\s+oversub)", 1);
  if (pod >= 2 && servers > pod) return pods_tree(pod, ratio, rate);

  const bool is_tree =
      (mentions(words, "fat") || mentions(words, "clos")) && !mentions(words, "rail");
  const int rails = !is_tree || nics > ports / 2 ? rails_of(nics) : 1;
  return non_blocking_fabric(servers, nics, rails, rate);
}

std::string key_of(const ClusterSpec& c, std::string_view gpu) {
  const FabricSpec& f = c.fabric;
  std::string key(gpu);
  for (const double x :
       {double(c.servers), double(c.server.gpus), double(c.server.nics), c.server.nic.rate.value(),
        c.server.gpu.scale_up_rate.value(), double(f.kind), double(f.tiers.value_or(0)),
        double(f.hosts_per_leaf.value_or(0)), double(f.rails.value_or(0)),
        double(f.leaves_per_pod.value_or(0)), f.spine_oversubscription.value_or(1)})
    key += ' ' + std::to_string(x);
  return key;
}

}  // namespace

int rails_of(int nics) {
  int rails = 1;
  for (int r = 2; r <= std::min(nics, 8); ++r)
    if (nics % r == 0) rails = r;
  return rails;
}

FabricSpec non_blocking_fabric(int servers, int nics, int rails, BytesPerSecond rate) {
  const int links = nics / rails;  // of a server to one leaf
  FabricSpec f;
  f.kind = rails > 1 ? FabricKind::rail_optimized : FabricKind::fat_tree;
  f.routing = topologies::RoutingKind::spray;
  f.leaf_switch = f.spine_switch = f.core_switch = switch_box(rate, ports);
  if (rails > 1) f.rails = rails;
  f.hosts_per_leaf = std::clamp(ports / 2 / links, 1, servers);
  const int leaves = (servers + *f.hosts_per_leaf - 1) / *f.hosts_per_leaf * rails;
  f.tiers = leaves <= ports ? 2 : 3;
  return f;
}

const Site* PublishedSites::of(const PublishedMachine& machine) {
  auto [found, is_new] = sites_.try_emplace(machine.key);
  if (is_new &&
      topologies::build_fabric(machine.cluster.fabric, host_shape(machine.cluster)).fabric) {
    Scenario scenario;
    scenario.cluster = machine.cluster;
    found->second = std::make_unique<Site>(scenario);
  }
  return found->second.get();
}

PublishedSites::PublishedSites() = default;
PublishedSites::~PublishedSites() = default;

int domain_size(int gpus, int most, int group) {
  int best = 1, best_power = 1;
  for (int d = 1; d <= std::min(gpus, most); ++d) {
    if (gpus % d != 0 || (d % group != 0 && group % d != 0)) continue;
    best = d;
    if (std::has_single_bit(unsigned(d))) best_power = d;
  }
  // A power of two unless that leaves more than half of the domain idle.
  return 2 * best_power > std::min(gpus, most) ? best_power : best;
}

std::variant<PublishedMachine, std::string> published_machine(const PublishedRow& row,
                                                              const models::GpuSpec& gpu, int gpus,
                                                              int tensor,
                                                              std::vector<std::string>& rules) {
  const Generation& generation = generation_of(row.text("gpu"));
  PublishedMachine out;
  ClusterSpec& cluster = out.cluster;
  models::ServerSpec& server = cluster.server;
  const bool is_rack_scale = generation.domain > 16;
  const auto per_node = row.count("gpus_per_node");
  if (per_node && *per_node > 72) return "more than 72 GPUs of one server are not modelled";
  if (!per_node && !is_rack_scale)
    rules.emplace_back("GPUs of a server not given: those of the GPU's reference server");
  const int most = is_rack_scale ? generation.domain : per_node.value_or(generation.domain);
  // A job smaller than a server fills a part of it.
  server.gpus = gpus >= most || is_rack_scale ? domain_size(gpus, most, tensor) : most;
  server.gpu = gpu;
  // NVLink of another rate than the part's (as of export versions).
  if (const auto rate = row.number("nvlink_gbs_per_dir_per_gpu"))
    server.gpu.scale_up_rate = BytesPerSecond(*rate * 1e9);
  cluster.servers = std::max(1, gpus / server.gpus);
  const auto nics = adapters(row, server.gpus, generation, cluster.servers == 1, rules);
  server.nics = nics.first;
  server.nic.rate = BytesPerSecond(nics.second * 1e9 / bits);
  cluster.fabric = fabric_of(row.text("fabric"), cluster, rules);
  out.key = key_of(cluster, gpu.name);
  return out;
}

}  // namespace trainyard::scenarios
