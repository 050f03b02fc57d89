#include "scenarios/run_tables.hpp"

#include <optional>
#include <string>

#include "analysis/link_loads.hpp"
#include "analysis/run_file.hpp"
#include "sim/describe.hpp"

namespace trainyard::scenarios {
namespace {

using analysis::Attribute;
using analysis::ColumnType;
using analysis::Table;

std::int64_t ns(Time t) {
  return t.time_since_epoch().count();
}
std::int64_t ns(const std::optional<Time>& t) {
  return t ? ns(*t) : -1;
}

Table ledger(std::string path, std::string description, const models::Ledger& ledger,
             std::int64_t gpus, std::int64_t duration_ns) {
  std::vector<std::pair<std::string, analysis::GpuNanoseconds>> accounts;
  for (std::size_t a = 0; a < models::accounts; ++a) {
    const auto account = static_cast<models::Account>(a);
    accounts.emplace_back(std::string(models::name_of(account)), ledger[account]);
  }
  return analysis::ledger_table(std::move(path), std::move(description), accounts,
                                {{"gpus", gpus}, {"duration_ns", duration_ns}});
}

Table segments(const std::string& path, const models::Job& job) {
  Table t = Table::with(
      path + "/segments", "stretches of the job's life in one state under one step profile",
      {{"start_ns", "ns", "begin", ColumnType::int64},
       {"end_ns", "ns", "end", ColumnType::int64},
       {"state", "", "what the job did", ColumnType::text},
       {"profile", "", "row of step_profiles, when training", ColumnType::int64},
       {"steps", "1", "steps completed in it, whatever became of them later", ColumnType::int64},
       {"servers", "1", "servers held at its end", ColumnType::int64}});
  for (const models::SegmentRow& s : job.segments())
    t.add_row({ns(s.start), ns(s.end), std::string(models::name_of(s.state)),
               std::int64_t(s.profile), s.steps, s.servers});
  return t;
}

Table checkpoints(const std::string& path, const models::Job& job) {
  Table t = Table::with(
      path + "/checkpoints", "one row a save",
      {{"start_ns", "ns", "the instant whose state it holds", ColumnType::int64},
       {"stall_end_ns", "ns", "training goes on; -1: it never did", ColumnType::int64},
       {"complete_ns", "ns", "from here on it is a checkpoint; -1: it never became one",
        ColumnType::int64},
       {"step", "1", "first step after a restart from it", ColumnType::int64},
       {"bytes", "B", "size", ColumnType::real},
       {"lost", "1", "interrupted by a failure", ColumnType::int64},
       {"late", "1", "was due while the one before was still under way", ColumnType::int64},
       {"level", "", "level by name", ColumnType::text},
       {"kind", "", "where its copies are", ColumnType::text},
       {"emergency", "1", "because a failure was announced, or to let servers go",
        ColumnType::int64},
       {"corrupt", "1", "its content is bad, known or not", ColumnType::int64},
       {"verified_ns", "ns", "its content is known to be good; -1: never", ColumnType::int64},
       {"why_lost", "", "what interrupted it", ColumnType::text}});
  for (const models::CheckpointRow& c : job.checkpoints())
    t.add_row({ns(c.start), ns(c.stall_end), ns(c.complete), c.step, c.bytes.value(),
               std::int64_t(c.is_lost), std::int64_t(c.was_late), c.level,
               std::string(trainyard::name_of(c.kind)), std::int64_t(c.is_emergency),
               std::int64_t(c.is_corrupt), ns(c.verified), c.why_lost});
  return t;
}

Table data_waits(const std::string& path, const models::Job& job) {
  Table t = Table::with(
      path + "/data_waits", "stretches in which steps waited for their batch",
      {{"start_ns", "ns", "begin", ColumnType::int64},
       {"end_ns", "ns", "end", ColumnType::int64},
       {"share", "1", "of the step spent waiting", ColumnType::real},
       {"limit", "", "what limits the supply, and who is in the way", ColumnType::text}});
  for (const models::DataWaitRow& w : job.data_waits())
    t.add_row({ns(w.start), ns(w.end), w.share, w.limit});
  return t;
}

Table store_uses(const std::string& name, const models::SharedStore& store) {
  Table t = Table::with("stores/" + analysis::path_component(name) + "/uses",
                        "who used the store, one row a transfer or stretch of reading",
                        {{"user", "", "job or neighbour", ColumnType::text},
                         {"write", "1", "1: wrote, 0: read", ColumnType::int64},
                         {"neighbour", "1", "1: not a job of this cluster", ColumnType::int64},
                         {"start_ns", "ns", "begin", ColumnType::int64},
                         {"end_ns", "ns", "end", ColumnType::int64},
                         {"bytes", "B", "moved", ColumnType::real}});
  const auto add = [&](const std::vector<models::SharedStore::Use>& uses) {
    for (const models::SharedStore::Use& u : uses)
      t.add_row({u.user, std::int64_t(u.is_write), std::int64_t(u.is_neighbour), ns(u.start),
                 ns(u.end), u.bytes.value()});
  };
  add(store.uses());
  add(store.open_uses());
  return t;
}

Table interruptions(const std::string& path, const models::Job& job) {
  Table t =
      Table::with(path + "/interruptions", "failures that struck servers of the job",
                  {{"time_ns", "ns", "when it struck", ColumnType::int64},
                   {"class", "", "failure class", ColumnType::text},
                   {"server", "", "the first server struck", ColumnType::text},
                   {"servers", "1", "servers struck", ColumnType::int64},
                   {"found_ns", "ns", "somebody knows; -1: never", ColumnType::int64},
                   {"resumed_ns", "ns", "training goes on; -1: never", ColumnType::int64},
                   {"lost_steps", "1", "steps made void by it", ColumnType::int64},
                   {"lost_s", "s", "time of the job spent in them", ColumnType::real},
                   {"event", "", "row of log/events", ColumnType::int64},
                   {"effect", "", "what it did", ColumnType::text},
                   {"unit", "", "what failed", ColumnType::text},
                   {"restored_level", "",
                    "level that training went on from; none: from the "
                    "beginning, or not yet",
                    ColumnType::text},
                   {"restored_step", "1", "step that training went on from", ColumnType::int64},
                   {"lost_ns", "ns", "training time made void", ColumnType::int64},
                   {"detection_ns", "ns", "nobody knew", ColumnType::int64},
                   {"diagnosis_ns", "ns", "finding out which server", ColumnType::int64},
                   {"replace_ns", "ns", "evict and swap", ColumnType::int64},
                   {"waiting_ns", "ns", "waiting for servers", ColumnType::int64},
                   {"start_up_ns", "ns", "processes and communicators", ColumnType::int64},
                   {"load_ns", "ns", "loading the checkpoint", ColumnType::int64}});
  for (const models::InterruptionRow& i : job.interruptions()) {
    const models::RecoveryPhases& p = i.phases;
    t.add_row({ns(i.when),
               i.why,
               topologies::Fabric::name(i.server),
               i.servers,
               ns(i.found),
               ns(i.resumed),
               i.lost_steps,
               to_seconds(i.lost_time),
               i.event.is_valid() ? std::int64_t(i.event.index()) : std::int64_t(-1),
               std::string(trainyard::name_of(i.effect)),
               i.unit,
               i.restored_level,
               i.restored_step,
               i.lost_time.count(),
               p.detection.count(),
               p.diagnosis.count(),
               p.replace.count(),
               p.waiting.count(),
               p.start_up.count(),
               p.load.count()});
  }
  return t;
}

Table step_profiles(const std::string& path, const models::Job& job) {
  std::vector<analysis::Column> columns{{"step_ns", "ns", "time of one step", ColumnType::int64}};
  for (std::size_t p = 0; p < models::step_parts; ++p) {
    const std::string name(models::name_of(static_cast<models::StepPart>(p)));
    columns.emplace_back(name + "_ns", "ns", "part of the step, mean over the job's GPUs",
                         ColumnType::int64);
  }
  columns.emplace_back("model_flops", "1", "model FLOPs of one step, whole job", ColumnType::real);
  columns.emplace_back("tokens", "1", "tokens of one step", ColumnType::real);
  columns.emplace_back("mean_power", "W", "of the job's servers during the step", ColumnType::real);
  Table t =
      Table::with(path + "/step_profiles",
                  "every distinct step the job had, in the order of first use", std::move(columns));
  for (const models::StepProfile* p : job.profiles()) {
    std::vector<analysis::Value> row{std::int64_t(p->step.count())};
    for (const Duration part : p->parts) row.emplace_back(std::int64_t(part.count()));
    row.emplace_back(p->model_flops);
    row.emplace_back(p->tokens);
    row.emplace_back(models::mean_power(*p).value());
    t.add_row(row);
  }
  return t;
}

/// Of the profiles for which links were looked at: the first, and those under a changed fabric.
std::vector<analysis::LinkLoad> loads(const models::Job& job, const topologies::Fabric& fabric) {
  std::vector<analysis::LinkLoad> out;
  const auto& profiles = job.profiles();
  const std::string& name = job.setup().name;
  for (std::size_t p = 0; p < profiles.size(); ++p)
    for (const models::LinkUse& use : profiles[p]->busiest_links) {
      analysis::LinkLoad load{.profile = std::int64_t(p),
                              .link = std::int64_t(use.link.index()),
                              .name = fabric.name(use.link),
                              .bytes = use.bytes,
                              .capacity_Bps = use.capacity.value(),
                              .utilisation = use.utilisation};
      for (const models::LinkUser& user : use.pairs)
        load.users.push_back({user_text(name, user, fabric), user.bytes});
      out.push_back(std::move(load));
    }
  return out;
}

void add_fabric(const topologies::Fabric& fabric, std::vector<Table>& tables) {
  Table nodes = Table::with(
      "fabric/nodes", "servers' parts and switches, by vertex number",
      {{"name", "", "for people", ColumnType::text}, {"kind", "", "what it is", ColumnType::text}});
  for (std::size_t v = 0; v < fabric.vertex_count(); ++v) {
    const topologies::VertexId id(v);
    nodes.add_row({fabric.name(id), std::string(trainyard::name_of(fabric.kind(id)))});
  }
  std::vector<analysis::FabricLink> links;
  for (std::size_t l = 0; l < fabric.links().size(); ++l) {
    const topologies::Link& link = fabric.links()[l];
    links.push_back({.from = std::int64_t(link.from.index()),
                     .to = std::int64_t(link.to.index()),
                     .capacity_Bps = link.capacity.value(),
                     .tier = link.tier,
                     .name = fabric.name(topologies::LinkId(l)),
                     .kind = std::string(trainyard::name_of(link.kind))});
  }
  tables.push_back(std::move(nodes));
  tables.push_back(analysis::fabric_links_table(links));
}

Table cost(const models::CostReport& report) {
  Table t = Table::with("cluster/cost", "money, energy and carbon by job and account",
                        {{"job", "", "job; pool: what belonged to none", ColumnType::text},
                         {"account", "", "account of the ledger", ColumnType::text},
                         {"gpu_s", "s", "GPU-seconds", ColumnType::real},
                         {"capital", "USD", "capital charge", ColumnType::real},
                         {"opex", "USD", "running cost beside energy", ColumnType::real},
                         {"energy_cost", "USD", "electricity", ColumnType::real},
                         {"demand", "USD", "charge on peaks", ColumnType::real},
                         {"water", "USD", "water", ColumnType::real},
                         {"carbon_cost", "USD", "price of carbon", ColumnType::real},
                         {"energy", "J", "energy of the site", ColumnType::real},
                         {"co2e", "kg", "carbon dioxide equivalent", ColumnType::real}});
  const auto add = [&](const models::JobCost& job) {
    for (std::size_t a = 0; a < models::accounts; ++a) {
      const models::AccountCost& c = job.by_account[a];
      if (c.gpu_s == 0) continue;
      t.add_row({job.name, std::string(models::name_of(static_cast<models::Account>(a))), c.gpu_s,
                 c.cost.capital.value(), c.cost.opex.value(), c.cost.energy.value(),
                 c.cost.demand.value(), c.cost.water.value(), c.cost.carbon.value(),
                 c.energy.value(), c.co2e_kg});
    }
  };
  for (const models::JobCost& job : report.jobs) add(job);
  add(report.pool);
  return t;
}

}  // namespace

std::string user_text(const std::string& job, const models::LinkUser& user,
                      const topologies::Fabric& fabric) {
  return job + ": " + user.what + ", " + fabric.name(fabric.vertex(user.from)) + " -> " +
         fabric.name(fabric.vertex(user.to));
}

std::vector<Table> run_tables(World& world, const RunResult& result) {
  std::vector<Table> tables;
  const std::int64_t end_ns = ns(world.engine().now());
  tables.push_back(ledger("cluster/ledger", "every GPU-nanosecond of the cluster, by account",
                          result.cluster.ledger, result.cluster.gpus, end_ns));
  std::size_t at = 0;
  for (const World::JobWorld& j : world.jobs()) {
    const std::string path = "jobs/" + analysis::path_component(j.name);
    const JobResult& job = result.jobs[at++];
    tables.push_back(ledger(path + "/ledger", "GPU-nanoseconds while the job held GPUs, by account",
                            job.ledger, job.gpus, end_ns));
    tables.push_back(segments(path, *j.job));
    tables.push_back(checkpoints(path, *j.job));
    tables.push_back(interruptions(path, *j.job));
    tables.push_back(data_waits(path, *j.job));
    tables.push_back(step_profiles(path, *j.job));
    for (Table& table : analysis::link_load_tables(path, loads(*j.job, *world.site().fabric)))
      tables.push_back(std::move(table));
  }
  for (const auto& [name, store] : world.stores()) tables.push_back(store_uses(name, *store));
  if (result.cost) tables.push_back(cost(result.cost->report));
  add_fabric(*world.site().fabric, tables);
  return tables;
}

std::vector<Attribute> run_summary(const RunResult& result) {
  std::vector<Attribute> out{{"fingerprint", result.fingerprint},
                             {"simulated_s", result.simulated_s},
                             {"events", result.events},
                             {"cluster.nodes", result.cluster.nodes},
                             {"cluster.gpus", result.cluster.gpus},
                             {"cluster.energy_J", result.cluster.energy_J},
                             {"cluster.availability", result.cluster.availability}};
  for (const JobResult& j : result.jobs) {
    const std::string p = "jobs." + j.name + ".";
    out.push_back({p + "gpus", j.gpus});
    out.push_back({p + "state", j.state});
    out.push_back({p + "step_s", j.step_s});
    out.push_back({p + "steps_kept", j.steps_kept});
    out.push_back({p + "tokens", j.tokens});
    out.push_back({p + "mfu", j.mfu});
    out.push_back({p + "hfu", j.hfu});
    out.push_back({p + "goodput", j.goodput});
    out.push_back({p + "ettr", j.ettr});
    out.push_back({p + "interruptions", j.interruptions});
    out.push_back({p + "mtbi_s", j.mtbi_s});
    out.push_back({p + "checkpoints", j.checkpoints});
  }
  if (result.cost) {
    const models::JobCost& all = result.cost->report.cluster;
    out.push_back({"cost.total_USD", all.sum.cost.total().value()});
    out.push_back({"cost.energy_kWh", all.kWh()});
    out.push_back({"cost.carbon_tCO2e", all.tCO2e()});
    if (const auto amount = all.per_useful_gpu_h())
      out.push_back({"cost.per_useful_gpu_h_USD", amount->value()});
  }
  return out;
}

}  // namespace trainyard::scenarios
