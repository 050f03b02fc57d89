#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/training/step_model.hpp"

/// Steps of a job that may run with fewer replicas: one step model for every size that it had.
///
/// With d of its D data-parallel replicas a job has d/D of its GPUs and of its sequences a step.
/// Each replica keeps its micro-batches, so the pipeline is the same; what changes are the rings,
/// the shards of the optimizer, and the places of the ranks. The size is read from the placement.
///
///     gpus = replica · d      global batch = (global batch of the job) / D · d
///
///     ElasticSteps steps(job, server, router);
///     steps.profile(all);                       // D replicas
///     all.servers.resize(all.servers.size() / 2);
///     steps.profile(all);                       // D/2 replicas, half of the tokens
///
/// A measured step is one of the job at full size: the factor found for it scales the compute of
/// every size. Ask for full size first. Page: docs/models/step.md.
namespace trainyard::models {

class ElasticSteps final : public StepSource {
 public:
  /// As for StepModel.
  ElasticSteps(const JobSpec& job, const ServerSpec& server, const topologies::Router& router);

  /// The job with so many replicas. None if it cannot be: servers would not be whole, or the layout
  /// (experts, hybrid shards) does not divide.
  static std::optional<JobSpec> with_replicas(const JobSpec& job, int data, int gpus_per_server);

  const StepProfile& profile(const Placement& placement) override;
  bool uses(const Placement& placement, std::span<const topologies::LinkId> links) override;
  void set_store_flows(std::vector<StoreFlow> flows) override;
  void set_others(std::vector<StoreFlow> transfers, std::vector<StepOnLinks> steps) override;
  StepOnLinks on_links(const Placement& placement) override;
  BytesPerSecond store_limit(const Placement& placement, std::span<const topologies::HostId> store,
                             bool is_write) override;
  void links_changed(std::span<const topologies::LinkId> links) override;

  /// As StepModel::begin_run(). Other sizes than the full one are forgotten.
  void begin_run(const Placement& first);
  StepModel& full() { return *models_.at(data_); }
  /// The model of the job on so many servers.
  StepModel& at_size(std::size_t servers);

 private:
  JobSpec job_;
  ServerSpec server_;
  const topologies::Router& router_;
  int replica_gpus_;
  int data_;  // replicas at full size
  std::vector<StoreFlow> store_flows_;
  std::vector<StoreFlow> others_transfers_;
  std::vector<StepOnLinks> others_steps_;
  std::map<int, std::unique_ptr<StepModel>> models_;  // by replicas
};

}  // namespace trainyard::models
