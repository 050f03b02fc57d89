#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "models/failures/failure_spec.hpp"
#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

enum class SaveMode { synchronous, asynchronous };

/// Where a level keeps its copies, and hence what destroys them.
enum class LevelKind {
  host_memory,  // of the server itself: survives a restart in place
  local_nvme,   // of the server itself: survives a restart in place and a loss of power
  peer_memory,  // own memory and that of another server of a group: survives unless all members go
  store,        // survives everything in the cluster
  off_site      // copied from the store afterwards: survives the store as well
};

/// One level of checkpoints. All levels that are due at one end of a step share the snapshot (copy
/// to host memory), then write side by side.
struct LevelSpec {
  LevelKind kind = LevelKind::store;
  std::optional<Duration> interval;         // training time between saves ...
  std::optional<std::int64_t> every_steps;  // ... or steps
  SaveMode mode = SaveMode::asynchronous;
  std::string store;                // store, off_site
  BytesPerSecond write_rate{20e9};  // of one server: local_nvme, peer_memory
  BytesPerSecond read_rate{40e9};
  int group = 2;                        // peer_memory: servers that hold each other's copies
  Component apart = Component::server;  // peer_memory: members are in different ... (server, rack,
                                        // pdu, cdu, leaf-switch)
  int keep = 2;                         // complete saves that are kept
  std::optional<Duration> verify;       // time after which a complete save is known to be good
};

template <class Visitor>
void describe(Visitor& v, LevelSpec& s) {
  v.required("kind", s.kind, "where its copies are");
  v.optional("interval", s.interval, "training time between saves", above(0));
  v.optional("every_steps", s.every_steps, "steps between saves", at_least(1));
  v.optional("mode", s.mode,
             "synchronous: training stops for the whole save; asynchronous: for the copy to host "
             "memory only");
  v.optional("store", s.store, "store and off-site: its name under storage");
  v.optional("write_rate", s.write_rate, "of one server (local-nvme, peer-memory)", above(0));
  v.optional("read_rate", s.read_rate, "of one server (local-nvme, peer-memory)", above(0));
  v.optional("group", s.group, "servers that hold each other's copies (peer-memory)",
             between(2, 64));
  v.optional("apart", s.apart,
             "what members of a group must not share: server, rack, pdu, cdu or leaf-switch");
  v.optional("keep", s.keep, "complete saves that are kept", at_least(1));
  v.optional("verify", s.verify, "how long after a save it is known whether its content is good",
             at_least(0));
  v.check(s.interval.has_value() != s.every_steps.has_value(), "interval",
          "give either interval or every_steps");
  const bool is_stored = s.kind == LevelKind::store || s.kind == LevelKind::off_site;
  v.check(is_stored == !s.store.empty(), "store",
          "a level of kind store or off-site names a store under storage, others do not");
  v.check(s.kind != LevelKind::host_memory || s.mode == SaveMode::asynchronous, "mode",
          "a copy in host memory is complete when training goes on; remove mode");
}

/// How a job saves. The fields besides `levels` describe one level on a store; `levels` adds others
/// by name.
struct CheckpointSpec {
  bool enabled = true;
  Duration interval = std::chrono::hours(1);  // training time between saves
  SaveMode mode = SaveMode::asynchronous;
  std::string store;                    // name under storage
  std::optional<Bytes> size;            // default: from the model (bytes_per_parameter)
  double bytes_per_parameter = 14;      // 2 BF16 weights + 12 FP32 master weights and Adam moments
  std::optional<Duration> stall;        // asynchronous; default: GPU state / host_copy_rate
  BytesPerSecond host_copy_rate{10e9};  // device to host, per GPU
  std::optional<std::int64_t> every_steps = {};
  int keep = 3;
  std::optional<Duration> verify = {};
  std::map<std::string, LevelSpec> levels = {};
  bool emergency = true;  // save at once when a failure is announced

  /// Every level by its name; the one on `store` is called by the store's name.
  std::map<std::string, LevelSpec> all_levels() const;
};

inline std::map<std::string, LevelSpec> CheckpointSpec::all_levels() const {
  std::map<std::string, LevelSpec> all = levels;
  if (store.empty()) return all;
  LevelSpec main;
  if (every_steps)
    main.every_steps = every_steps;
  else
    main.interval = interval;
  main.mode = mode;
  main.store = store;
  main.keep = keep;
  main.verify = verify;
  all.emplace(store, main);
  return all;
}

template <class Visitor>
void describe(Visitor& v, CheckpointSpec& s) {
  v.optional("enabled", s.enabled, "false: never saves; a failure loses everything");
  v.optional("interval", s.interval, "training time between saves", above(0));
  v.optional("every_steps", s.every_steps, "steps between saves, instead of interval", at_least(1));
  v.optional("mode", s.mode,
             "synchronous: training stops for the whole save; asynchronous: for the copy to host "
             "memory only");
  v.optional("store", s.store, "store that holds the checkpoints, by its name under storage");
  v.optional("size", s.size, "bytes of one checkpoint; default: parameters * bytes_per_parameter",
             above(0));
  v.optional("bytes_per_parameter", s.bytes_per_parameter,
             "weights and optimizer state in a checkpoint, bytes per parameter", above(0));
  v.optional("stall", s.stall,
             "asynchronous: how long training stops; default: bytes per GPU / host_copy_rate",
             at_least(0));
  v.optional("host_copy_rate", s.host_copy_rate, "device to host copy of one GPU", above(0));
  v.optional("keep", s.keep, "complete saves that are kept on the store", at_least(1));
  v.optional("verify", s.verify, "how long after a save it is known whether its content is good",
             at_least(0));
  v.optional("levels", s.levels,
             "further levels by name: host memory, local NVMe, peers, off-site");
  v.optional("emergency", s.emergency, "save at once when a failure is announced");
  v.check(!s.enabled || !s.store.empty() || !s.levels.empty(), "store",
          "name a store under storage, or levels, or set enabled to false");
  v.check(s.mode == SaveMode::asynchronous || !s.stall, "stall",
          "only an asynchronous save has a stall; remove it or set mode to \"asynchronous\"");
}

}  // namespace trainyard::models

namespace trainyard {
template <>
struct Names<models::SaveMode> {
  static constexpr auto all =
      names<models::SaveMode>({{models::SaveMode::synchronous, "synchronous"},
                               {models::SaveMode::asynchronous, "asynchronous"}});
};
template <>
struct Names<models::LevelKind> {
  static constexpr auto all =
      names<models::LevelKind>({{models::LevelKind::host_memory, "host-memory"},
                                {models::LevelKind::local_nvme, "local-nvme"},
                                {models::LevelKind::peer_memory, "peer-memory"},
                                {models::LevelKind::store, "store"},
                                {models::LevelKind::off_site, "off-site"}});
};
}  // namespace trainyard
