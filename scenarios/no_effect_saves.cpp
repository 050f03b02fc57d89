#include <algorithm>
#include <string>

#include "scenarios/check.hpp"
#include "scenarios/no_effect.hpp"

/// Stores, and what a job does besides its steps.
namespace trainyard::scenarios {

using models::Component;
using models::Effect;
using models::LevelKind;

namespace {

bool saves_to(const models::JobSpec& job, const std::string& store) {
  if (!job.checkpoint.enabled) return false;
  const auto levels = job.checkpoint.all_levels();
  return std::any_of(levels.begin(), levels.end(),
                     [&](const auto& level) { return level.second.store == store; });
}

bool reads_from(const models::JobSpec& job, const std::string& store) {
  return job.data && job.data->store == store;
}

void neighbours(NoEffectLines& out, const std::string& path, const models::StoreSpec& store) {
  for (const auto& [name, neighbour] : store.neighbours) {
    const std::string entry = path + ".neighbours." + name;
    if (neighbour.start >= out.scenario.duration)
      out.idle(entry, "starts when the simulated time is over");
    else if (!store.metadata_rate)
      out.idle(entry + ".operations",
               "the store has no metadata_rate: operations take nothing from anybody");
    if (neighbour.end && *neighbour.end >= out.scenario.duration)
      out.idle(entry + ".end", "when the simulated time is over");
  }
}

void client_rate(NoEffectLines& out, const std::string& name, const models::StoreSpec& store) {
  // Neither as it is, nor as it would be if it were left out.
  const BytesPerSecond rate = std::min(store.client_rate, models::StoreSpec{}.client_rate);
  const double most = std::max(store.write_rate, store.read_rate).value();
  const bool binds = out.any_job([&](const models::JobSpec& job) {
    const double servers = job.gpus / out.scenario.cluster.server.gpus;
    return reads_from(job, name) ||  // also the rate of one read
           (saves_to(job, name) && servers * rate.value() < most);
  });
  if (!binds)
    out.idle("storage." + name + ".client_rate",
             "the servers of every job together can do more than the store");
}

void store_in_use(NoEffectLines& out, const std::string& name, const models::StoreSpec& store) {
  const std::string path = "storage." + name;
  client_rate(out, name, store);
  const bool opens = out.any_job([&](const models::JobSpec& job) {
    return reads_from(job, name) && job.data->files_per_sample > 0;
  });
  if (!opens) {
    const std::string reason = "no job opens files of samples there (data.files_per_sample)";
    out.idle(path + ".metadata_rate", reason);
    out.idle(path + ".open_latency", reason);
  }
  if (store.stream_rate && *store.stream_rate >= store.client_rate && store.neighbours.empty())
    out.idle(path + ".stream_rate", "a server is held to less by client_rate");
  if (store.capacity && saves_at_most(out.scenario, name) <= *store.capacity)
    out.idle(path + ".capacity", "all saves that are kept need " +
                                     trainyard::to_text(saves_at_most(out.scenario, name)) +
                                     " at most: it never fills");
  const bool can_fail = out.any_way([&](const WayToFail& way) {
    return way.component == Component::store_server && way.store == name;
  });
  if (store.servers > 1 && store.network == models::StoreNetwork::own && !can_fail)
    out.idle(path + ".servers",
             "none of them fails, and none is on the training network: only their sum counts");
  neighbours(out, path, store);
}

}  // namespace

void stores_without_effect(NoEffectLines& out) {
  for (const auto& [name, store] : out.scenario.storage) {
    const bool used = out.any_job([&, &wanted = name](const models::JobSpec& job) {
      return saves_to(job, wanted) || reads_from(job, wanted);
    });
    if (used)
      store_in_use(out, name, store);
    else
      out.idle("storage." + name, "no job saves its checkpoints there or reads data from it");
  }
}

namespace {

bool can_corrupt(const NoEffectLines& out) {
  return out.any_way([](const WayToFail& way) { return way.effect == Effect::corrupt; });
}

/// What is kept matters if the newest may be bad, or if there may be no room.
bool is_kept_for_nothing(const NoEffectLines& out, const models::LevelSpec& level) {
  const auto store = out.scenario.storage.find(level.store);
  return !can_corrupt(out) && (store == out.scenario.storage.end() || !store->second.capacity);
}

void kept(NoEffectLines& out, const std::string& path, const models::LevelSpec& level) {
  if (is_kept_for_nothing(out, level))
    out.idle(path, {"keep", "verify"},
             "nothing makes saves bad (effect \"corrupt\"), so only the newest is used");
}

void level(NoEffectLines& out, const std::string& path, const models::LevelSpec& level,
           Duration time_left) {
  if (level.interval && *level.interval >= time_left) {
    out.idle(path + ".interval", "longer than the job can run: it never saves there");
    return;
  }
  const bool is_local = level.kind == LevelKind::local_nvme;
  const bool is_peers = level.kind == LevelKind::peer_memory;
  const std::string kind = "a level of kind \"" + std::string(name_of(level.kind)) + "\" ";
  if (level.kind == LevelKind::off_site)
    out.idle(path, {"mode"}, kind + "is copied from the store, while training goes on");
  if (level.kind == LevelKind::store || level.kind == LevelKind::off_site)
    out.idle(path, {"write_rate", "read_rate"}, kind + "has the rates of its store");
  else if (!is_local && !is_peers)
    out.idle(path, {"write_rate", "read_rate"},
             kind + "is the copy to host memory (host_copy_rate)");
  else if (!out.can_fail())
    out.idle(path, {"read_rate"}, "nothing fails, so nothing is loaded again");
  if (!is_peers) out.idle(path, {"group", "apart"}, kind + "has no peers");
  kept(out, path, level);
}

void checkpoint(NoEffectLines& out, const std::string& path, const models::CheckpointSpec& c,
                Duration time_left) {
  if (!c.enabled)
    return out.idle(path,
                    {"interval", "every_steps", "mode", "store", "size", "bytes_per_parameter",
                     "stall", "host_copy_rate", "keep", "verify", "levels", "emergency"},
                    "checkpoint.enabled is false");
  for (const auto& [name, spec] : c.levels) level(out, path + ".levels." + name, spec, time_left);
  if (c.store.empty())
    out.idle(path, {"interval", "every_steps", "mode", "keep", "verify"},
             "checkpoint.store is not given: levels say this for themselves");
  else if (c.every_steps)
    out.idle(path + ".interval", "every_steps is given");
  else if (c.interval >= time_left)
    out.idle(path + ".interval", "longer than the job can run: it never saves");
  const auto levels = c.all_levels();
  if (const auto main = levels.find(c.store); main != levels.end()) kept(out, path, main->second);
  const bool copies = !c.stall && std::any_of(levels.begin(), levels.end(), [](const auto& entry) {
    return entry.second.mode == models::SaveMode::asynchronous;
  });
  if (!copies)
    out.idle(path + ".host_copy_rate",
             c.stall ? "stall is given" : "a synchronous save has no host copy of its own");
  if (c.size && !copies) out.idle(path + ".bytes_per_parameter", "size is given");
  if (!out.any_way([](const WayToFail& way) {
        return way.is_announced && way.effect != Effect::maintenance;
      }))
    out.idle(path + ".emergency", "no failure is announced (warning)");
}

void restart(NoEffectLines& out, const std::string& path, const models::JobSpec& job) {
  const models::RestartSpec& r = job.restart;
  const bool can_preempt = job.preemptible && out.can_preempt();
  if (!out.can_fail() && !can_preempt) {
    out.idle(path + ".replace", "nothing fails, so nothing is replaced");
    out.idle(path + ".load", "nothing fails, so nothing is loaded again");
    out.idle(path, {"in_place", "diagnosis", "misdiagnosis", "watchdog"}, "nothing fails");
  } else {
    if (!job.checkpoint.enabled)
      out.idle(path + ".load", "checkpoint.enabled is false: there is nothing to load");
    const bool fabric_fails = out.any_way([](const WayToFail& way) { return way.is_of_fabric(); });
    const bool is_replaced = can_preempt || fabric_fails || out.any_way([](const WayToFail& way) {
      return way.is_repaired() || way.is_parent();
    });
    if (!is_replaced) out.idle(path + ".replace", "no failure takes a server out");
    const bool stays = fabric_fails || out.any_way([&](const WayToFail& way) {
      return way.is_of_server() && (!way.replaces || r.misdiagnosis > 0);
    });
    if (!stays)
      out.idle(path + ".in_place",
               "no failure leaves the servers in place (replace false): others come each time");
    if (!out.any_way([](const WayToFail& way) {
          return way.is_repaired() && way.effect != Effect::maintenance;
        }))
      out.idle(path + ".misdiagnosis", "no failure has a server to be found");
    if (!fabric_fails) out.idle(path + ".watchdog", "no link or switch goes down");
  }
  if (r.start_up_per_1000_gpus == Duration::zero())
    out.idle(path + ".start_up_per_1000_gpus", "0 s: start-up does not grow with the job");
}

void data(NoEffectLines& out, const std::string& path, const models::JobSpec& job) {
  const models::DataSpec& d = *job.data;
  if (d.samples == 0)
    out.idle(path, {"cache", "cache_rate", "shuffle"},
             "samples is 0: no sample is read twice, so a cache holds nothing of use");
  else if (d.cache == Bytes{})
    out.idle(path, {"cache_rate", "shuffle"}, "cache is 0: every sample comes from the store");
  if (d.decode == Duration::zero()) out.idle(path + ".cores", "decode is 0: samples need no core");
  const auto store = out.scenario.storage.find(d.store);
  if (store != out.scenario.storage.end() && !store->second.metadata_rate &&
      store->second.open_latency == Duration::zero())
    out.idle(path + ".files_per_sample",
             "the store has neither metadata_rate nor open_latency: opening costs nothing");
}

void priority(NoEffectLines& out, const std::string& path, const models::JobSpec& job) {
  const bool gives = job.preemptible && out.any_job([&](const models::JobSpec& other) {
    return other.priority > job.priority;
  });
  const bool takes = out.any_job([&](const models::JobSpec& other) {
    return other.preemptible && other.priority < job.priority;
  });
  if (!gives) out.idle(path + ".preemptible", "no job has a higher priority");
  if (!gives && !takes)
    out.idle(path + ".priority",
             "no preemptible job has a lower one, and nobody preempts this job");
}

}  // namespace

void job_life_without_effect(NoEffectLines& out, const std::string& path,
                             const models::JobSpec& job) {
  checkpoint(out, path + ".checkpoint", job.checkpoint, out.scenario.duration - job.start);
  restart(out, path + ".restart", job);
  const bool lacks_servers = out.can_fail() || (job.preemptible && out.can_preempt());
  if (!job.elastic.enabled)
    out.idle(path + ".elastic", {"min_data", "patience", "regrow_after"},
             "elastic.enabled is false");
  else if (!lacks_servers)
    out.idle_object(path + ".elastic", {"enabled", "min_data", "patience", "regrow_after"},
                    "nothing fails: no server is ever missing");
  if (job.data) data(out, path + ".data", job);
  priority(out, path, job);
}

}  // namespace trainyard::scenarios
