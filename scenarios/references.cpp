#include <algorithm>
#include <cstdint>

#include "scenarios/read.hpp"
#include "scenarios/units_text.hpp"

/// What must hold between distant parts of a scenario. Each check leaves out what was itself a
/// mistake.
namespace trainyard::scenarios {
namespace {

class References {
 public:
  References(const Scenario& scenario, const ReadResult& read) : scenario_(scenario), read_(read) {}

  Problems check() {
    has_jobs();
    cores_exist();
    stores_exist();
    jobs_fit();
    adapters_fit_ports();
    return std::move(problems_);
  }

 private:
  bool is_sound(const std::string& path) const {
    return std::none_of(read_.diagnostics.begin(), read_.diagnostics.end(),
                        [&](const Diagnostic& d) {
                          return d.path == path || d.path.starts_with(path + ".") ||
                                 path.starts_with(d.path + ".") || d.path.empty();
                        });
  }

  void has_jobs() {
    if (scenario_.jobs.empty() && read_.places.contains("jobs"))
      problems_.push_back({"jobs", "at least one job is needed",
                           "\"jobs\": {\"llm\": {\"model\": …, \"gpus\": …, …}}"});
  }

  void cores_exist() {
    const topologies::FabricSpec& fabric = scenario_.cluster.fabric;
    if (fabric.tiers == 3 && is_sound("cluster.fabric.tiers") &&
        !read_.places.contains("cluster.fabric.core_switch"))
      problems_.push_back({"cluster.fabric.core_switch", "a fabric of 3 tiers needs core switches",
                           "name their kind, such as \"core_switch\": \"quantum-2-qm9700\""});
  }

  void stores_exist() {
    if (!is_sound("storage")) return;
    std::vector<std::string> names;
    for (const auto& [name, store] : scenario_.storage) names.push_back(name);
    for (const auto& [name, job] : scenario_.jobs) {
      if (!job.checkpoint.enabled || job.checkpoint.store.empty() ||
          scenario_.storage.contains(job.checkpoint.store))
        continue;
      const std::string near = nearest(job.checkpoint.store, names);
      std::string right = near.empty() ? "" : "did you mean " + in_quotes(near) + "?";
      if (near.empty()) {
        right =
            names.empty()
                ? "storage has no entry: describe a store there, or set checkpoint.enabled to false"
                : "storage has";
        for (std::size_t i = 0; i < names.size(); ++i)
          right += (i ? ", " : " ") + in_quotes(names[i]);
      }
      problems_.push_back(
          {"jobs." + name + ".checkpoint.store",
           "there is no store " + in_quotes(job.checkpoint.store) + " under storage", right});
    }
  }

  void jobs_fit() {
    if (!is_sound("cluster.servers") || !is_sound("cluster.spares") || !is_sound("cluster.server"))
      return;
    const std::int64_t per_server = scenario_.cluster.server.gpus;
    const std::int64_t servers = scenario_.cluster.servers - scenario_.cluster.spares;
    const std::int64_t available = servers * per_server;
    const std::string room =
        std::to_string(servers) + " servers of " + std::to_string(per_server) + " GPUs" +
        (scenario_.cluster.spares > 0
             ? " beside " + std::to_string(scenario_.cluster.spares) + " spares"
             : "");
    std::int64_t all = 0;
    bool all_sound = true;
    for (const auto& [name, job] : scenario_.jobs) {
      const std::string path = "jobs." + name + ".gpus";
      if (!is_sound(path)) {
        all_sound = false;
        continue;
      }
      all += job.gpus;
      if (job.gpus > available) {
        problems_.push_back({path,
                             "must be at most " + std::to_string(available) + " (" + room +
                                 "), found " + std::to_string(job.gpus),
                             "the cluster would need " +
                                 std::to_string((job.gpus + per_server - 1) / per_server +
                                                scenario_.cluster.spares) +
                                 " servers"});
        all_sound = false;
      } else if (job.gpus > per_server && job.gpus % per_server != 0) {
        const std::int64_t below = job.gpus / per_server * per_server, above = below + per_server;
        problems_.push_back({path,
                             "must fill whole servers of " + std::to_string(per_server) +
                                 " GPUs, found " + std::to_string(job.gpus),
                             std::to_string(below) +
                                 (above <= available ? " or " + std::to_string(above) : "") +
                                 " would do"});
      }
    }
    if (all_sound && all > available)
      problems_.push_back({"jobs",
                           "all jobs together need " + std::to_string(all) +
                               " GPUs, the cluster has " + std::to_string(available) + " (" + room +
                               ")",
                           "make jobs smaller or the cluster larger"});
  }

  /// An adapter faster than the port it is plugged into cannot be what was meant.
  void adapters_fit_ports() {
    if (!is_sound("cluster.server") || !is_sound("cluster.fabric.leaf_switch")) return;
    const BytesPerSecond rate = scenario_.cluster.server.nic.rate,
                         port = scenario_.cluster.fabric.leaf_switch.port_rate;
    if (rate > port)
      problems_.push_back(
          {"cluster.fabric.leaf_switch",
           "a port of " + in_bits(port) + " is slower than an adapter of " + in_bits(rate),
           "choose a faster leaf switch or a slower nic"});
  }

  /// Network rates as people say them.
  static std::string in_bits(BytesPerSecond rate) {
    const std::string text = to_exact_text(BytesPerSecond(rate.value() * 8));
    return text.substr(0, text.size() - 3) + "b/s";
  }

  const Scenario& scenario_;
  const ReadResult& read_;
  Problems problems_;
};

}  // namespace

Problems check_references(const Scenario& scenario, const ReadResult& read) {
  return References(scenario, read).check();
}

}  // namespace trainyard::scenarios
