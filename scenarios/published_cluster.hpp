#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "scenarios/published_row.hpp"
#include "scenarios/scenario.hpp"

/// The machine of a published row from gpu, gpus, gpus_per_node, nvlink_gbs_per_dir_per_gpu,
/// nic_gbps_per_gpu (or internode_gbps_per_node) and the words of `fabric`: exactly the servers of
/// the job, on a tree of the fewest tiers that serves them without oversubscription, unless the
/// words say otherwise.
namespace trainyard::scenarios {

struct Site;

struct PublishedMachine {
  ClusterSpec cluster;
  std::string key;  // equal for equal machines
};

/// `tensor`: tensor-parallel size, which the scale-up domain of a rack-scale machine should hold.
/// Or why there is no such machine.
std::variant<PublishedMachine, std::string> published_machine(const PublishedRow& row,
                                                              const models::GpuSpec& gpu, int gpus,
                                                              int tensor,
                                                              std::vector<std::string>& rules);

/// Fabrics, each built once.
class PublishedSites {
 public:
  PublishedSites();
  ~PublishedSites();
  /// Null if the fabric cannot be built.
  const Site* of(const PublishedMachine& machine);

 private:
  std::map<std::string, std::unique_ptr<Site>> sites_;  // by PublishedMachine::key
};

/// A tree of the fewest tiers of 64-port switches, each port as fast as an adapter, without
/// oversubscription. `rails`: a server's adapters go to so many leaves; 1: a plain fat tree.
topologies::FabricSpec non_blocking_fabric(int servers, int nics, int rails, BytesPerSecond rate);
/// The most rails, up to 8, that divide the adapters of a server.
int rails_of(int nics);

/// GPUs of one scale-up domain that a job of this many uses on a machine with domains of `most`:
/// the largest number that cuts the job into whole domains and holds whole groups of `group`;
/// powers of two first, as jobs of powers of two leave 8 of an NVL72's 72 GPUs idle.
int domain_size(int gpus, int most, int group);

}  // namespace trainyard::scenarios
