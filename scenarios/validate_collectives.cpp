#include "scenarios/validate_collectives.hpp"

#include <array>
#include <cmath>

#include "models/network/collectives/tuner.hpp"

namespace trainyard::scenarios {
namespace {

using models::CollectiveAlgorithm;
using models::CollectiveKind;
using models::LinkGeneration;

/// GPUs by the beginning of their name, the longer name first. Link rate of one direction and
/// scale-up domain by data sheet.
struct KnownGpu {
  std::string_view name;
  double scale_up_Bps;
  bool has_fp8;
  int domain;
};
constexpr std::array known_gpus{
    KnownGpu{"GB300", 900e9, true, 72}, KnownGpu{"GB200", 900e9, true, 72},
    KnownGpu{"B300", 900e9, true, 8},   KnownGpu{"B200", 900e9, true, 8},
    KnownGpu{"GH200", 450e9, true, 8},  KnownGpu{"H200", 450e9, true, 8},
    KnownGpu{"H100", 450e9, true, 8},   KnownGpu{"H800", 200e9, true, 8},
    KnownGpu{"H20", 450e9, true, 8},    KnownGpu{"A100", 300e9, false, 8},
    KnownGpu{"A800", 200e9, false, 8},  KnownGpu{"V100", 150e9, false, 8}};

// Least-squares fit over the rows of one server, together with the constants of the generations
// (docs/models/collective-costs.md). Launches of one call after the other from the host.
// Of a system that was not seen: the median of those that were.
constexpr double usual_launch_floor_s = 36.5e-6;
constexpr std::string_view guide =
    "Microsoft Azure AI-benchmarking-guide, all-reduce of one server, 1 KiB to 8 GiB";
constexpr std::string_view engineering =
    "Bekman, Machine Learning Engineering, all-reduce of one server, 32 KiB to 8 GiB";
constexpr std::array systems{
    CalibratedSystem{"Azure ND A100 v4", 40e-6, guide},
    CalibratedSystem{"Azure ND H100 v5", 29e-6, guide},
    CalibratedSystem{"Azure ND H200 v5", 26e-6, guide},
    CalibratedSystem{"8x A100 node", 49e-6, engineering},
    CalibratedSystem{"8x H200 node", 36.5e-6, engineering},
    CalibratedSystem{"AWS P6-B200", 46e-6, engineering},
    CalibratedSystem{"DGX H100", 10e-6,
                     "NVIDIA DGX Cloud Benchmarking recipes, all-reduce of one server"},
    CalibratedSystem{"8-GPU node", usual_launch_floor_s, "NVIDIA GTC slides, 16 GiB"},
    CalibratedSystem{"NVLink pair", usual_launch_floor_s, "Bekman, as above, point to point"}};

/// Networks that are not plain InfiniBand or RoCE, by a word in the columns system or algorithm;
/// the first that is found. EFA: src/platform-aws.cpp of github.com/aws/aws-ofi-nccl (latency told
/// to NCCL, 8 MiB buffers; Simple where the provider does not promise ordered 128-byte writes).
/// GPUDirect-TCPXO: its guest configuration demands Simple, rings and trees, no NVLS.
struct KnownNetwork {
  std::string_view word;
  double latency_s;
  bool has_nvls;
};
constexpr std::array known_networks{
    KnownNetwork{"EFA v3", 35e-6, true}, KnownNetwork{"EFA v4", 35e-6, true},
    KnownNetwork{"EFA", 75e-6, true}, KnownNetwork{"TCPXO", 0, false}};
constexpr double plugin_chunk_bytes = 1048576;

const KnownNetwork* find_network(std::string_view system, std::string_view algorithm) {
  for (const KnownNetwork& network : known_networks)
    if (system.find(network.word) != system.npos || algorithm.find(network.word) != algorithm.npos)
      return &network;
  return nullptr;
}

const KnownGpu* find_gpu(std::string_view name) {
  for (const KnownGpu& gpu : known_gpus)
    if (name.substr(0, gpu.name.size()) == gpu.name) return &gpu;
  return nullptr;
}

const CalibratedSystem* find_system(std::string_view name) {
  for (const CalibratedSystem& system : systems)
    if (name.substr(0, system.name.size()) == system.name) return &system;
  return nullptr;
}

struct KindName {
  std::string_view name;
  CollectiveKind kind;
};
constexpr std::array kind_names{KindName{"all_reduce", CollectiveKind::all_reduce},
                                KindName{"reduce_scatter", CollectiveKind::reduce_scatter},
                                KindName{"all_gather", CollectiveKind::all_gather},
                                KindName{"broadcast", CollectiveKind::broadcast},
                                KindName{"all_to_all", CollectiveKind::all_to_all},
                                KindName{"alltoall", CollectiveKind::all_to_all},
                                KindName{"p2p", CollectiveKind::point_to_point},
                                KindName{"sendrecv", CollectiveKind::point_to_point}};

const KindName* find_kind(std::string_view name) {
  for (const KindName& kind : kind_names)
    if (kind.name == name) return &kind;
  return nullptr;
}

/// What the table says of the algorithm, if it says so without "or": "NCCL default" leaves it open,
/// "ring LL <=1 MiB, NVLS from 2 MiB" describes a choice.
std::optional<CollectiveAlgorithm> forced(std::string_view text, bool is_one_domain) {
  if (text == "ring" || text.find("NVLS off") != text.npos || text == "NCCL pick (ring)")
    return CollectiveAlgorithm::ring;
  if (text == "tree") return CollectiveAlgorithm::tree;
  if (text == "NVLSTree") return CollectiveAlgorithm::nvls_tree;
  if (is_one_domain &&
      (text == "NVLS" || text == "SHARP" || text == "NVLS (SHARP)" || text == "NCCL pick (NVLS)"))
    return CollectiveAlgorithm::nvls;
  return std::nullopt;
}

bool is_count(double x) {
  return x == std::floor(x) && x <= 1e7;
}

std::string size_class(double bytes) {
  if (bytes < 1048576) return "below 1 MiB";
  return bytes <= 16 * 1073741824.0 ? "1 MiB to 16 GiB" : "above 16 GiB";
}

std::string or_not_stated(std::string_view text) {
  return text.empty() ? "not stated" : std::string(text);
}

/// Servers and ranks of one scale-up domain; empty where the table leaves it open.
struct Layout {
  double nodes = 0;
  std::size_t per_domain = 0;
};

std::optional<Layout> layout_of(const PublishedTable& table, const TableRow& row, double gpus,
                                const KnownGpu& gpu, std::vector<Diagnostic>& mistakes) {
  const auto nodes = table.number(row, "nodes", mistakes);
  const auto given = table.number(row, "gpus_per_node", mistakes);
  double per_node = given.value_or(0);
  if (!given && nodes && is_count(gpus / *nodes)) per_node = gpus / *nodes;
  if (per_node == 0 && gpus <= gpu.domain) per_node = gpus;
  if (per_node == 0 || !is_count(per_node)) return std::nullopt;
  // Servers of a rack-scale domain (NVL72) are one domain.
  const double domain = gpu.domain > 8 ? gpu.domain : per_node;
  return Layout{nodes.value_or(std::ceil(gpus / per_node)),
                std::size_t(std::min({gpus, domain, nodes == 1.0 ? gpus : domain}))};
}

std::variant<RowPrediction, SkipReason> predict(const PublishedTable& table, const TableRow& row,
                                                std::vector<Diagnostic>& mistakes) {
  const std::string_view gpu_name = table.text(row, "gpu");
  const std::string_view collective = table.text(row, "collective");
  const std::string_view algorithm = table.text(row, "algorithm");
  const KnownGpu* gpu = find_gpu(gpu_name);
  const KindName* kind = find_kind(collective);
  const auto gpus = table.number(row, "gpus", mistakes);
  const auto bytes = table.number(row, "bytes", mistakes);
  if (!gpu) return "no constants for GPU " + in_quotes(gpu_name);
  if (!kind) return "collective " + in_quotes(collective) + " is not modelled";
  if (!gpus || !bytes) return SkipReason(gpus ? "bytes not stated" : "gpus not stated");
  if (!is_count(*gpus) || *gpus < 2) return SkipReason("gpus is not a whole number of at least 2");
  const auto layout = layout_of(table, row, *gpus, *gpu, mistakes);
  if (!layout) return SkipReason("gpus_per_node not stated");

  RowPrediction out;
  const std::size_t ranks = std::size_t(*gpus);
  const double bus_factor = models::bus_factor(kind->kind, ranks);
  if (const auto time_us = table.number(row, "time_us", mistakes))
    out.published = *time_us * 1e-6;
  else if (const auto algbw = table.number(row, "algbw_gbs", mistakes))
    out.published = *bytes / (*algbw * 1e9);
  else if (const auto busbw = table.number(row, "busbw_gbs", mistakes))
    out.published = *bytes * bus_factor / (*busbw * 1e9);
  else
    return SkipReason("neither time nor bandwidth stated");

  const bool is_one_domain = ranks <= layout->per_domain;
  double nic_Bps = 1;
  if (!is_one_domain) {
    const auto nic_gbps = table.number(row, "nic_gbps_per_gpu", mistakes);
    if (!nic_gbps) return SkipReason("nic_gbps_per_gpu not stated");
    nic_Bps = *nic_gbps * 1e9 / 8;
  }
  models::LinkConstants constants = models::link_constants(BytesPerSecond(gpu->scale_up_Bps),
                                                           gpu->has_fp8, BytesPerSecond(nic_Bps));
  const std::string_view system_name = table.text(row, "system");
  const CalibratedSystem* system = find_system(system_name);
  constants.launch_floor_s = system ? system->launch_floor_s : usual_launch_floor_s;
  if (const KnownNetwork* network = find_network(system_name, algorithm);
      network && !is_one_domain) {
    constants.network_latency_s = network->latency_s;
    constants.network_ll = false;
    constants.chunk_bytes = plugin_chunk_bytes;
    if (!network->has_nvls) constants.nvls_bus_Bps = 0;
  }
  const auto way =
      models::best(kind->kind, *bytes, {.ranks = ranks, .per_domain = layout->per_domain},
                   constants, {.algorithm = forced(algorithm, is_one_domain), .protocol = {}});
  if (!way) return "algorithm " + in_quotes(algorithm) + " is not there for this group";
  out.predicted = way->time_s;
  out.method = std::string(name_of(way->algorithm)) + ' ' + std::string(name_of(way->protocol));
  if (system) out.uncertainty = is_one_domain ? Uncertainty::calibrated : Uncertainty::extrapolated;
  out.groups = {{"system", or_not_stated(system_name)},
                {"gpu", std::string(gpu_name)},
                {"collective", std::string(collective)},
                {"algorithm", or_not_stated(algorithm)},
                {"size", size_class(*bytes)},
                {"nodes", std::to_string(std::size_t(layout->nodes))}};
  return out;
}

}  // namespace

std::span<const CalibratedSystem> calibrated_systems() {
  return systems;
}

TableKind collectives_table() {
  return {.name = "collectives",
          .required = {"gpu", "gpus", "collective", "bytes"},
          .one_of = {"time_us", "algbw_gbs", "busbw_gbs"},
          .predict = predict};
}

}  // namespace trainyard::scenarios
