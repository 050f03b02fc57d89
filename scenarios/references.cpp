#include <algorithm>
#include <cstdint>

#include "models/training/checkpoints.hpp"
#include "models/training/transformer.hpp"
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
    levels_fit_together();
    parents_exist();
    elastic_jobs_have_whole_replicas();
    saves_fit_stores();
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

  void store_exists(const std::string& path, const std::string& store) {
    if (store.empty() || scenario_.storage.contains(store)) return;
    std::vector<std::string> names;
    for (const auto& [name, spec] : scenario_.storage) names.push_back(name);
    const std::string near = nearest(store, names);
    std::string right = near.empty() ? "" : "did you mean " + in_quotes(near) + "?";
    if (near.empty()) {
      const bool saves = path.find(".checkpoint.") != path.npos;
      right = names.empty() ? std::string("storage has no entry: describe a store there") +
                                  (saves ? ", or set checkpoint.enabled to false" : "")
                            : "storage has";
      for (std::size_t i = 0; i < names.size(); ++i)
        right += (i ? ", " : " ") + in_quotes(names[i]);
    }
    problems_.push_back({path, "there is no store " + in_quotes(store) + " under storage", right});
  }

  void stores_exist() {
    if (!is_sound("storage")) return;
    for (const auto& [name, job] : scenario_.jobs) {
      const std::string path = "jobs." + name;
      if (job.checkpoint.enabled) {
        store_exists(path + ".checkpoint.store", job.checkpoint.store);
        for (const auto& [level, spec] : job.checkpoint.levels)
          store_exists(path + ".checkpoint.levels." + level + ".store", spec.store);
      }
      if (job.data) store_exists(path + ".data.store", job.data->store);
    }
    for (const auto& [name, c] : scenario_.failures.all_classes())
      store_exists(class_path(name) + ".store", c.store);
  }

  std::string class_path(const std::string& name) const {
    return (scenario_.failures.classes.contains(name) ? "failures.classes."
                                                      : "failures.profile.classes.") +
           name;
  }

  /// A level that is called as the store of the main one would replace it; copies off site need
  /// something to copy.
  void levels_fit_together() {
    for (const auto& [name, job] : scenario_.jobs) {
      const models::CheckpointSpec& c = job.checkpoint;
      const std::string path = "jobs." + name + ".checkpoint.levels.";
      if (!c.enabled || !is_sound("jobs." + name + ".checkpoint")) continue;
      for (const auto& [level, spec] : c.levels) {
        if (level == c.store)
          problems_.push_back({path + level,
                               "the level on store " + in_quotes(c.store) + " is called so already",
                               "another name"});
        if (spec.kind == models::LevelKind::off_site) copies_lead_away(path + level, c, spec);
        if (spec.kind == models::LevelKind::peer_memory) peers_exist(path + level, job, spec);
      }
    }
  }

  void copies_lead_away(const std::string& path, const models::CheckpointSpec& checkpoint,
                        const models::LevelSpec& copy) {
    bool has_store = false;
    for (const auto& [name, level] : checkpoint.all_levels()) {
      if (level.kind != models::LevelKind::store) continue;
      has_store = true;
      if (level.store == copy.store)
        problems_.push_back({path + ".store",
                             "saves are on store " + in_quotes(copy.store) + " already",
                             "another store, which survives the loss of this one"});
    }
    if (!has_store)
      problems_.push_back({path, "there is no save on a store to copy off site",
                           "give checkpoint.store, or a level of kind \"store\""});
  }

  void peers_exist(const std::string& path, const models::JobSpec& job,
                   const models::LevelSpec& level) {
    using C = models::Component;
    const C apart = level.apart;
    if (apart != C::server && apart != C::rack && apart != C::pdu && apart != C::cdu &&
        apart != C::leaf_switch)
      problems_.push_back({path + ".apart", "found " + in_quotes(name_of(apart)),
                           "\"server\", \"rack\", \"pdu\", \"cdu\" or \"leaf-switch\""});
    else
      parent_exists(path + ".apart", apart);
    const int per_server = std::max(1, scenario_.cluster.server.gpus);
    const int servers = (job.gpus + per_server - 1) / per_server;
    if (level.group > servers)
      problems_.push_back({path + ".group",
                           "a group of " + std::to_string(level.group) +
                               " servers is larger than the job, which has " +
                               std::to_string(servers),
                           servers < 2 ? "a job of one server has no peers"
                                       : "at most " + std::to_string(servers)});
  }

  void parent_exists(const std::string& path, models::Component parent) {
    const models::ParentsSpec& p = scenario_.cluster.parents;
    const bool is_missing = (parent == models::Component::rack && !p.servers_per_rack) ||
                            (parent == models::Component::pdu && !p.servers_per_pdu) ||
                            (parent == models::Component::cdu && !p.servers_per_cdu);
    if (!is_missing) return;
    const std::string name(name_of(parent));
    problems_.push_back({path, "the cluster has no parents of kind " + in_quotes(name),
                         "say how many servers share one: cluster.parents.servers_per_" + name});
  }

  void parents_exist() {
    if (!is_sound("cluster.parents")) return;
    for (const auto& [name, c] : scenario_.failures.all_classes()) {
      const std::string path = class_path(name);
      parent_exists(path + ".component", c.component);
      if (c.common_cause) parent_exists(path + ".common_cause.parent", c.common_cause->parent);
    }
  }

  void elastic_jobs_have_whole_replicas() {
    const int per_server = scenario_.cluster.server.gpus;
    for (const auto& [name, job] : scenario_.jobs) {
      if (!job.elastic.enabled || !is_sound("jobs." + name + ".parallel")) continue;
      const models::ParallelSpec& p = job.parallel;
      const int model = std::max(1, p.tensor * p.context * p.pipeline);
      const int data = p.data.value_or(job.gpus / model);
      const std::string path = "jobs." + name + ".elastic";
      if (model % per_server != 0)
        problems_.push_back(
            {path,
             "a replica has " + std::to_string(model) + " GPUs, which are not whole servers of " +
                 std::to_string(per_server) +
                 ": losing a server would take parts of several replicas",
             "tensor * context * pipeline must be a multiple of " + std::to_string(per_server)});
      if (job.elastic.min_data >= data)
        problems_.push_back({path + ".min_data",
                             "the job has " + std::to_string(data) +
                                 " replicas and so could never go on with fewer",
                             "at most " + std::to_string(std::max(1, data - 1))});
    }
  }

  /// Retention keeps one more while the newest is being written.
  void saves_fit_stores() {
    for (const auto& [name, job] : scenario_.jobs) {
      if (!job.checkpoint.enabled || !is_sound("jobs." + name) || !is_sound("storage")) continue;
      const Bytes size =
          models::checkpoint_size(job.checkpoint, models::parameters(job.model, job.sequence));
      for (const auto& [level, spec] : job.checkpoint.all_levels()) {
        const auto store = scenario_.storage.find(spec.store);
        if (store == scenario_.storage.end() || !store->second.capacity) continue;
        if (size > *store->second.capacity)
          problems_.push_back({"storage." + spec.store + ".capacity",
                               trainyard::to_text(*store->second.capacity) +
                                   " cannot hold one checkpoint of jobs." + name + " (" +
                                   trainyard::to_text(size) + ")",
                               "about " + trainyard::to_text(size * double(spec.keep + 1)) +
                                   " to keep " + std::to_string(spec.keep)});
      }
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
