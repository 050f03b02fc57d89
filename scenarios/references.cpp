#include <algorithm>
#include <cstdint>

#include "scenarios/read.hpp"
#include "scenarios/units_text.hpp"
#include "topologies/routes.hpp"

/// What must hold between distant parts of a scenario. Each check leaves out what was itself a
/// mistake.
namespace trainyard::scenarios {
namespace {

class References {
 public:
  References(const Scenario& scenario, const ReadResult& read) : scenario_(scenario), read_(read) {}

  Problems check() {
    has_jobs();
    switches_exist();
    routing_is_offered();
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

  /// Which boxes a kind of fabric consists of.
  void switches_exist() {
    using K = topologies::FabricKind;
    const topologies::FabricSpec& fabric = scenario_.cluster.fabric;
    for (const char* key : {"kind", "tiers"})
      if (!is_sound(std::string("cluster.fabric.") + key)) return;
    if (!read_.places.contains("cluster.fabric")) return;
    const std::string kind(name_of(fabric.kind));
    const int tiers = fabric.tiers.value_or(2);
    const auto need = [&](const char* key, const std::string& whose, const char* box) {
      const std::string path = std::string("cluster.fabric.") + key;
      if (!read_.places.contains(path))
        problems_.push_back(
            {path, "is required: " + whose + " needs " + box + " switches",
             "name their kind, such as \"" + std::string(key) + "\": \"quantum-2-qm9700\""});
    };
    switch (fabric.kind) {
      case K::fat_tree:
      case K::rail_optimized:
      case K::rail_only:
        need("leaf_switch", "a " + kind + " fabric", "leaf");
        if (tiers >= 2) need("spine_switch", "a " + kind + " fabric of 2 tiers or more", "spine");
        if (tiers >= 3) need("core_switch", "a " + kind + " fabric of 3 tiers", "core");
        break;
      case K::dragonfly_plus:
        need("leaf_switch", "a dragonfly+", "leaf");
        need("spine_switch", "a dragonfly+", "spine");
        break;
      case K::dragonfly:
      case K::torus:
        need("router_switch", "a " + kind, "router");
        break;
      case K::custom:  // links have rates of their own
        break;
    }
  }

  void routing_is_offered() {
    const topologies::FabricSpec& fabric = scenario_.cluster.fabric;
    for (const char* key : {"kind", "routing"})
      if (!is_sound(std::string("cluster.fabric.") + key)) return;
    if (topologies::offers(fabric.kind, fabric.routing)) return;
    std::string offered;
    for (const auto& [routing, name] : Names<topologies::RoutingKind>::all)
      if (topologies::offers(fabric.kind, routing))
        offered += (offered.empty() ? "" : ", ") + in_quotes(std::string(name));
    problems_.push_back({"cluster.fabric.routing",
                         "a " + std::string(name_of(fabric.kind)) + " fabric does not offer " +
                             in_quotes(std::string(name_of(fabric.routing))),
                         "one of " + offered});
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
