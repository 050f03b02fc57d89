#include "scenarios/check.hpp"

#include <algorithm>
#include <cmath>

#include "models/training/checkpoints.hpp"
#include "models/training/memory.hpp"
#include "models/training/plan.hpp"
#include "models/training/stage_costs.hpp"
#include "models/training/step_model.hpp"
#include "models/training/transformer.hpp"
#include "scenarios/check_script.hpp"
#include "scenarios/facility_layout.hpp"
#include "scenarios/facility_report.hpp"
#include "scenarios/world.hpp"
#include "topologies/catalog.hpp"

namespace trainyard::scenarios {

std::vector<Diagnostic> check_scenario(const ReadResult& read) {
  std::vector<Diagnostic> found;
  const Scenario& s = read.scenario;
  const auto report = [&](const Problems& problems, const std::string& prefix) {
    for (const Problem& p : problems) found.push_back(read.locate(p, prefix));
  };

  const topologies::BuildResult built = topologies::build_fabric(s.cluster.fabric, host_shape(s));
  for (const Problem& p : built.problems) {
    // What the builder says of servers is written one level up.
    const bool of_server = p.path.rfind("server", 0) == 0;
    found.push_back(read.locate(p, of_server ? "cluster" : "cluster.fabric"));
  }
  if (built.fabric && !s.failures.script.empty())
    report(check_script(s.failures, models::UnitNames(unit_counts(s, *built.fabric))), "");
  report(check_facility(s), "");
  for (const auto& [name, job] : s.jobs) {
    const std::string path = "jobs." + name;
    const Problems impossible = models::check_plan(job, s.cluster.server.gpus);
    report(impossible, path);
    report(models::check_precision(job, s.cluster.server.gpu), path);
    if (impossible.empty())
      report(models::check_memory(job, s.cluster.server.gpu, s.cluster.server.gpus), path);
  }
  // Against its own prediction, so only when everything else is in order.
  for (const auto& [name, job] : s.jobs) {
    if (!job.measured_step || !found.empty()) continue;
    const Site site(s);
    models::StepModel model(job, s.cluster.server, site.router);
    const auto [fastest, slowest] = model.scalable_range(first_placement(s, job));
    if (*job.measured_step < fastest || *job.measured_step > slowest)
      report({{"measured_step",
               trainyard::to_text(*job.measured_step) + " cannot be met by scaling compute",
               "between " + trainyard::to_text(fastest) + " and " + trainyard::to_text(slowest) +
                   "; is it the time of one step of this very job?"}},
             "jobs." + name);
  }
  // In the order of lines within each file; files in the order in which they were first named.
  std::vector<std::string> files;
  const auto file_number = [&](const Diagnostic& d) {
    const auto at = std::find(files.begin(), files.end(), d.file);
    if (at == files.end()) files.push_back(d.file);
    return std::size_t(at - files.begin());
  };
  for (const Diagnostic& d : found) file_number(d);
  std::stable_sort(found.begin(), found.end(), [&](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(file_number(a), a.line) < std::pair(file_number(b), b.line);
  });
  return found;
}

namespace {

/// A store on which saves would be refused: not a mistake, for this is what may be studied.
void warn_of_full_stores(const Scenario& scenario, std::vector<std::string>& warnings) {
  for (const auto& [name, store] : scenario.storage) {
    if (!store.capacity) continue;
    const Bytes needed = saves_at_most(scenario, name);
    if (needed > *store.capacity)
      warnings.push_back("storage." + name + ".capacity: the saves that jobs keep need up to " +
                         trainyard::to_text(needed) + ", it holds " +
                         trainyard::to_text(*store.capacity) +
                         ": when it is full, saves are refused");
  }
}

}  // namespace

ReadResult load_scenario(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides) {
  ReadResult read = read_scenario(file, overrides);
  if (read.ok()) read.diagnostics = check_scenario(read);
  return read;
}

Bytes saves_at_most(const Scenario& scenario, const std::string& store) {
  Bytes all{};
  for (const auto& [name, job] : scenario.jobs) {
    if (!job.checkpoint.enabled) continue;
    const Bytes size =
        models::checkpoint_size(job.checkpoint, models::parameters(job.model, job.sequence));
    for (const auto& [level, spec] : job.checkpoint.all_levels())
      if (spec.store == store) all = all + size * double(spec.keep + 1 + (spec.verify ? 2 : 0));
  }
  return all;
}

std::vector<std::string> scenario_warnings(const Scenario& scenario) {
  std::vector<std::string> warnings;
  for (const auto& [name, job] : scenario.jobs) {
    const models::MemoryEstimate memory =
        models::memory_estimate(models::make_plan(job), job.software, scenario.cluster.server.gpu);
    if (memory.share() > 0.9)
      warnings.push_back("jobs." + name + ": memory is " +
                         std::to_string(int(std::lround(memory.share() * 100))) +
                         " % full; a caching allocator may fail above 90 %");
  }
  warn_of_full_stores(scenario, warnings);
  for (std::string& warning : facility_warnings(scenario)) warnings.push_back(std::move(warning));
  return warnings;
}

}  // namespace trainyard::scenarios
