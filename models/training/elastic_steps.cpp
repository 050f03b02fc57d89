#include "models/training/elastic_steps.hpp"

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

int gpus_of_replica(const JobSpec& job) {
  return job.parallel.tensor * job.parallel.context * job.parallel.pipeline;
}

}  // namespace

ElasticSteps::ElasticSteps(const JobSpec& job, const ServerSpec& server,
                           const topologies::Router& router)
    : job_(job),
      server_(server),
      router_(router),
      replica_gpus_(gpus_of_replica(job)),
      data_(job.gpus / replica_gpus_) {
  models_.emplace(data_, std::make_unique<StepModel>(job_, server_, router_));
}

std::optional<JobSpec> ElasticSteps::with_replicas(const JobSpec& job, int data,
                                                   int gpus_per_server) {
  const int replica = gpus_of_replica(job), full = job.gpus / replica;
  if (data < 1 || data > full || job.global_batch % full != 0) return {};
  JobSpec smaller = job;
  smaller.gpus = replica * data;
  smaller.global_batch = job.global_batch / full * data;
  if (smaller.parallel.data) smaller.parallel.data = data;
  if (data < full) smaller.measured_step.reset();
  if (smaller.gpus % gpus_per_server != 0 || !check_plan(smaller, gpus_per_server).empty())
    return {};
  return smaller;
}

StepModel& ElasticSteps::at_size(std::size_t servers) {
  const int gpus = int(servers) * server_.gpus;
  check(gpus % replica_gpus_ == 0, "a job has whole replicas", gpus, replica_gpus_);
  const int data = gpus / replica_gpus_;
  if (const auto found = models_.find(data); found != models_.end()) return *found->second;
  const std::optional<JobSpec> job = with_replicas(job_, data, server_.gpus);
  check(job.has_value(), "the job can have so many replicas", data);
  StepModel& model =
      *models_.emplace(data, std::make_unique<StepModel>(*job, server_, router_)).first->second;
  if (full().compute_scale() != 1.0) model.scale_compute(full().compute_scale());
  model.set_store_flows(store_flows_);
  model.set_others(others_transfers_, others_steps_);
  return model;
}

const StepProfile& ElasticSteps::profile(const Placement& placement) {
  return at_size(placement.servers.size()).profile(placement);
}

bool ElasticSteps::uses(const Placement& placement, std::span<const topologies::LinkId> links) {
  return at_size(placement.servers.size()).uses(placement, links);
}

void ElasticSteps::set_store_flows(std::vector<StoreFlow> flows) {
  store_flows_ = std::move(flows);
  for (const auto& [data, model] : models_) model->set_store_flows(store_flows_);
}

void ElasticSteps::set_others(std::vector<StoreFlow> transfers, std::vector<StepOnLinks> steps) {
  others_transfers_ = std::move(transfers);
  others_steps_ = std::move(steps);
  for (const auto& [data, model] : models_) model->set_others(others_transfers_, others_steps_);
}

StepOnLinks ElasticSteps::on_links(const Placement& placement) {
  return at_size(placement.servers.size()).on_links(placement);
}

BytesPerSecond ElasticSteps::store_limit(const Placement& placement,
                                         std::span<const topologies::HostId> store, bool is_write) {
  return at_size(placement.servers.size()).store_limit(placement, store, is_write);
}

void ElasticSteps::links_changed(std::span<const topologies::LinkId> links) {
  for (const auto& [data, model] : models_) model->links_changed(links);
}

void ElasticSteps::begin_run(const Placement& first) {
  std::erase_if(models_, [&](const auto& entry) { return entry.first != data_; });
  store_flows_.clear();
  others_transfers_.clear();
  others_steps_.clear();
  full().begin_run(first);
}

}  // namespace trainyard::models
