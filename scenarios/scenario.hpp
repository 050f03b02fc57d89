#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "models/compute/server_spec.hpp"
#include "models/facility/economics_spec.hpp"
#include "models/failures/failure_spec.hpp"
#include "models/scheduling/cluster_care_spec.hpp"
#include "models/storage/store_spec.hpp"
#include "models/training/job_spec.hpp"
#include "scenarios/facility_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "topologies/fabric_spec.hpp"

/// The whole input of one run as plain data: what a scenario file says, every default filled in.
namespace trainyard::scenarios {

enum class Fidelity { fast_forward, every_step };

struct ClusterSpec {
  int servers = 0;  // all of them, spares included
  models::ServerSpec server;
  topologies::FabricSpec fabric;
  int spares = 0;  // servers kept back
  models::SparesSpec spare;
  models::RepairSpec repair;
  models::ParentsSpec parents;
  std::optional<models::ExclusionSpec> exclude;  // none: a repaired server is as good as any
};

template <class Visitor>
void describe(Visitor& v, ClusterSpec& s) {
  v.required("servers", s.servers, "servers (nodes) of the cluster, spares included", at_least(1));
  v.part("server", s.server, "server", "kind of server");
  v.required("fabric", s.fabric, "the training network");
  v.optional("spares", s.spares, "servers kept back as spares", at_least(0));
  v.optional("spare", s.spare, "where spares are, and whether they are warm");
  v.optional("repair", s.repair, "who repairs broken servers");
  v.optional("parents", s.parents, "what servers share: racks, power and cooling units");
  v.optional("exclude", s.exclude, "when a server that fails again and again is taken out");
  v.check(s.spares < s.servers, "spares", "must leave at least one server for jobs");
}

struct Scenario {
  std::string schema;  // "$schema", for editors
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  Duration duration = std::chrono::hours(24);
  Fidelity fidelity = Fidelity::fast_forward;
  ClusterSpec cluster;
  std::map<std::string, models::StoreSpec> storage;
  models::FailuresSpec failures;
  std::map<std::string, models::JobSpec> jobs;
  std::optional<FacilitySpec> facility;  // none: power and cooling never fail and cost nothing
  std::optional<models::EconomicsSpec> economics;  // none: nothing is said about money
};

template <class Visitor>
void describe(Visitor& v, Scenario& s) {
  v.optional("$schema", s.schema, "schema file, for editors; has no effect on a run");
  v.optional("name", s.name, "short name; default: the file's name");
  v.optional("description", s.description, "what this scenario is about");
  v.optional("seed", s.seed, "seed of all random streams");
  v.optional("duration", s.duration, "simulated time", above(0));
  v.optional("fidelity", s.fidelity,
             "fast-forward: linear between events; every-step: each step is played");
  v.required("cluster", s.cluster, "servers and fabric");
  v.optional("storage", s.storage, "shared stores by name");
  v.optional("failures", s.failures, "what fails, and how");
  v.required("jobs", s.jobs, "training jobs by name");
  v.optional("facility", s.facility,
             "power and cooling behind the racks; default: they never fail and use nothing");
  v.optional("economics", s.economics,
             "what the site costs to buy, to run and to feed; {}: typical figures for all of it");
}

}  // namespace trainyard::scenarios

namespace trainyard {
template <>
struct Names<scenarios::Fidelity> {
  static constexpr auto all =
      names<scenarios::Fidelity>({{scenarios::Fidelity::fast_forward, "fast-forward"},
                                  {scenarios::Fidelity::every_step, "every-step"}});
};
}  // namespace trainyard
