#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/read.hpp"

/// Settings that were written but cannot matter: the user believes in something that the run does
/// not do.
namespace trainyard::scenarios {
namespace {

class NoEffect {
 public:
  explicit NoEffect(const ReadResult& read) : read_(read), scenario_(read.scenario) {}

  std::vector<std::string> list() {
    failures();
    fabric();
    stores();
    server();
    for (const auto& [name, job] : scenario_.jobs) this->job("jobs." + name, job);
    return std::move(lines_);
  }

 private:
  /// If the user wrote it.
  void idle(const std::string& path, const std::string& reason) {
    if (read_.is_written(path)) lines_.push_back(path + ": " + reason);
  }

  bool can_fail() const {
    return scenario_.failures.enabled && !scenario_.failures.classes.empty();
  }

  void failures() {
    const models::FailuresSpec& f = scenario_.failures;
    if (!f.enabled && !f.classes.empty())
      idle("failures.classes", "failures.enabled is false, so nothing fails");
    if (f.enabled && f.classes.empty())
      idle("failures.enabled", "there are no failure classes, so nothing fails");
    if (!f.enabled) return;
    for (const auto& [name, c] : f.classes)
      if (!c.replace) in_place("failures.classes." + name + ".repair");
    using K = topologies::FabricKind;
    const K kind = scenario_.cluster.fabric.kind;
    if (kind == K::dragonfly || kind == K::torus || kind == K::custom)
      for (const auto& [name, c] : f.classes)
        if (c.component == models::Component::upper_switch)
          idle("failures.classes." + name,
               "every switch of a " + std::string(name_of(kind)) +
                   " fabric may have servers: its failures are of component \"leaf-switch\"");
  }

  /// Whether anything fails that makes traffic move.
  bool fabric_can_fail() const {
    if (!can_fail()) return false;
    return std::any_of(
        scenario_.failures.classes.begin(), scenario_.failures.classes.end(),
        [](const auto& entry) {
          const models::FailureClassSpec& c = entry.second;
          return c.component == models::Component::leaf_switch ||
                 c.component == models::Component::upper_switch ||
                 (c.component == models::Component::link && c.effect == models::Effect::crash);
        });
  }

  void in_place(const std::string& repair) {
    const char* reason = "replace is false: the server is not taken out";
    if (read_.is_written(repair)) return idle(repair, reason);
    for (const char* key : {".law", ".value", ".sigma"}) idle(repair + key, reason);  // by --set
  }

  void fabric() {
    using K = topologies::FabricKind;
    const topologies::FabricSpec& f = scenario_.cluster.fabric;
    if (!fabric_can_fail()) idle("cluster.fabric.convergence_delay", "no link or switch goes down");
    if (f.routing != topologies::RoutingKind::ecmp)
      idle("cluster.fabric.flows_per_pair",
           f.routing == topologies::RoutingKind::fixed
               ? "all queue pairs of a connection take the same path"
               : "sprayed packets use all paths whatever the number of queue pairs");
    const bool is_tree =
        f.kind == K::fat_tree || f.kind == K::rail_optimized || f.kind == K::rail_only;
    const int tiers = is_tree ? f.tiers.value_or(2) : f.kind == K::dragonfly_plus ? 2 : 0;
    const auto no_box = [&](const char* key, bool has) {
      if (!has)
        idle(std::string("cluster.fabric.") + key,
             "a " + std::string(name_of(f.kind)) + " fabric" +
                 (is_tree ? " of " + std::to_string(tiers) + " tiers" : "") +
                 " has no such switches");
    };
    no_box("leaf_switch", tiers >= 1);
    no_box("spine_switch", tiers >= 2);
    no_box("core_switch", tiers >= 3);
    no_box("router_switch", tiers == 0);
  }

  void server() {
    for (const char* price : {"gpu.price", "nic.price", "price"})
      idle(std::string("cluster.server.") + price,
           "runs do not count money; topology prices switches");
    idle("cluster.server.nic.power", "adapters are part of power_overhead");
    const bool fp8 = std::any_of(scenario_.jobs.begin(), scenario_.jobs.end(), [](const auto& job) {
      return job.second.parallel.precision == models::Precision::fp8;
    });
    if (!fp8)
      for (const char* key : {"peak_fp8", "calibration.gemm_fp8"})
        idle(std::string("cluster.server.gpu.") + key, "no job computes in FP8");
  }

  void stores() {
    for (const auto& [name, store] : scenario_.storage) {
      const bool used = std::any_of(
          scenario_.jobs.begin(), scenario_.jobs.end(), [&, &wanted = name](const auto& entry) {
            return entry.second.checkpoint.enabled && entry.second.checkpoint.store == wanted;
          });
      if (!used) {
        idle("storage." + name, "no job saves its checkpoints there");
        continue;
      }
      const double most = std::max(store.write_rate, store.read_rate).value();
      const bool never_binds = std::all_of(
          scenario_.jobs.begin(), scenario_.jobs.end(), [&, &wanted = name](const auto& entry) {
            const double servers = entry.second.gpus / scenario_.cluster.server.gpus;
            return entry.second.checkpoint.store != wanted ||
                   servers * store.client_rate.value() >= most;
          });
      if (never_binds)
        idle("storage." + name + ".client_rate",
             "the servers of every job together can do more than the store");
    }
  }

  void job(const std::string& path, const models::JobSpec& job) {
    if (job.start >= scenario_.duration) {
      lines_.push_back(path + ": starts when the simulated time is over");
      return;
    }
    checkpoint(path + ".checkpoint", job.checkpoint, scenario_.duration - job.start);
    if (!can_fail()) {
      idle(path + ".restart.replace", "nothing fails, so nothing is replaced");
      idle(path + ".restart.load", "nothing fails, so nothing is loaded again");
    } else if (!job.checkpoint.enabled) {
      idle(path + ".restart.load", "checkpoint.enabled is false: there is nothing to load");
    }
    const models::ParallelSpec& p = job.parallel;
    const int data = p.data.value_or(job.gpus / std::max(1, p.tensor * p.pipeline));
    if (p.tensor == 1) {
      idle(path + ".parallel.sequence_parallel", "there is no tensor parallelism (tensor is 1)");
      for (const char* pass : {"forward", "backward"})
        idle(path + ".software.tensor_overlap_" + pass,
             "there is no tensor parallelism (tensor is 1)");
    } else if (!p.sequence_parallel) {
      for (const char* pass : {"forward", "backward"})
        idle(path + ".software.tensor_overlap_" + pass,
             "only traffic of sequence parallelism is hidden, and sequence_parallel is false");
    }
    if (p.pipeline == 1) idle(path + ".software.overlap_pipeline", "there is one pipeline stage");
    if (data <= 1) {
      idle(path + ".software.overlap_data", "there is one data-parallel replica");
      idle(path + ".parallel.sharding", "there is one data-parallel replica");
    }
    if (p.sharding != models::Sharding::fsdp)
      idle(path + ".software.fsdp_exposed", "parallel.sharding is not \"fsdp\"");
  }

  void checkpoint(const std::string& path, const models::CheckpointSpec& c, Duration time_left) {
    if (!c.enabled) {
      for (const char* key :
           {"interval", "mode", "store", "size", "bytes_per_parameter", "stall", "host_copy_rate"})
        idle(path + "." + key, "checkpoint.enabled is false");
      return;
    }
    if (c.interval >= time_left) {
      idle(path + ".interval", "longer than the job can run: it never saves");
      return;
    }
    const bool copies = c.mode == models::SaveMode::asynchronous && !c.stall;
    if (!copies)
      idle(path + ".host_copy_rate",
           c.stall ? "stall is given" : "a synchronous save has no host copy of its own");
    if (c.size && !copies) idle(path + ".bytes_per_parameter", "size is given");
  }

  const ReadResult& read_;
  const Scenario& scenario_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> settings_without_effect(const ReadResult& read) {
  return NoEffect(read).list();
}

}  // namespace trainyard::scenarios
