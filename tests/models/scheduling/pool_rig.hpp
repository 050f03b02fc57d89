#pragma once

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "models/scheduling/servers.hpp"

/// A small cluster whose servers fail when a test says so.
namespace trainyard::models {

using namespace std::chrono_literals;
using sim::Phase;

inline std::vector<std::size_t> indices(const std::vector<HostId>& servers) {
  std::vector<std::size_t> out;
  for (const HostId s : servers) out.push_back(s.index());
  return out;
}

/// Holds what it is given and lets go of nothing by itself.
class Holder final : public ServerHolder {
 public:
  explicit Holder(std::size_t number, int priority = 0, bool is_preemptible = false)
      : number_(number), priority_(priority), is_preemptible_(is_preemptible) {}
  std::size_t number() const override { return number_; }
  int priority() const override { return priority_; }
  bool is_preemptible() const override { return is_preemptible_; }
  void on_strike(const Strike& strike) override {
    struck.emplace_back(strike.servers.begin(), strike.servers.end());
    loses_power.push_back(strike.loses_power);
    is_cooling.push_back(strike.is_cooling);
  }
  void on_granted(HostId server, HostId) override { held.push_back(server); }
  void on_preempted(HostId server) override { asked_back.push_back(server); }
  void on_warning(const Failure&, std::span<const HostId> servers, Time strikes_at) override {
    warned.emplace_back(std::vector(servers.begin(), servers.end()), strikes_at);
  }

  std::vector<HostId> held;
  std::vector<std::vector<HostId>> struck;
  std::vector<bool> loses_power, is_cooling;
  std::vector<HostId> asked_back;
  std::vector<std::pair<std::vector<HostId>, Time>> warned;

 private:
  std::size_t number_;
  int priority_;
  bool is_preemptible_;
};

/// Eight servers of two GPUs, two leaves to a pod, two servers to a leaf; the last two are spares.
inline PoolShape eight() {
  return {.servers = 8,
          .gpus_per_server = 2,
          .nics_per_server = 1,
          .spares = 2,
          .leaf = {0, 0, 1, 1, 2, 2, 3, 3},
          .pod = {0, 0, 0, 0, 1, 1, 1, 1}};
}

struct PoolRig {
  explicit PoolRig(PoolShape shape = eight()) : pool(engine, recorder, std::move(shape)) {
    gpu.name = "gpu";
    server.name = "server";
    server.spec.component = Component::server;
    leaf.name = "leaf";
    leaf.spec.component = Component::leaf_switch;
    software.name = "software";
    software.spec.component = Component::server;
    software.spec.replace = false;
    planned.name = "planned";
    planned.spec.component = Component::server;
    planned.spec.effect = Effect::maintenance;
    rack.name = "rack";
    rack.spec.component = Component::rack;
    pdu.name = "pdu";
    pdu.spec.component = Component::pdu;
    cdu.name = "cdu";
    cdu.spec.component = Component::cdu;
  }
  void run_to(Duration t) { engine.run_until(start_of_run + t); }
  void fail(const FailureClass& cls, std::uint32_t unit, Duration repair) {
    Failure failure;
    failure.cls = &cls;
    failure.unit = unit;
    failure.repair = repair;
    pool.strike(failure);
  }
  /// Server-seconds: every server has two GPUs.
  double server_s(Account account) {
    pool.settle();
    return pool.ledger().gpu_s(account) / 2;
  }
  ServerFlags flags(std::size_t server_index) const { return pool.flags(HostId(server_index)); }

  sim::Engine engine{sim::Seed{1}};
  sim::MemoryRecorder recorder;
  ServerPool pool;
  FailureClass gpu, server, leaf, software, planned, rack, pdu, cdu;
};

}  // namespace trainyard::models
