#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/run_reader.hpp"
#include "analysis/table.hpp"

/// Why a link is slow: the load of the most loaded links of a job, for each distinct step it had,
/// and who put it there. Two tables a job, and one of all links:
///
///     jobs/NAME/link_loads   profile, link, name, bytes, capacity, utilisation
///     jobs/NAME/link_users   profile, link, user, bytes, share
///     fabric/links           from, to, capacity, tier, name, kind; `link` above is its row
///
/// `profile` is the row of jobs/NAME/step_profiles; jobs/NAME/segments says when it held.
///
///     LinkLoad load{.profile = 0, .link = 70, .name = "leaf-3 -> spine-1", .bytes = 4.2e9,
///                   .capacity_Bps = 25e9, .utilisation = 0.81};
///     load.users.push_back({"llama: dp stage 3, node-17/gpu-0 -> node-18/gpu-0", 1.4e9});
///     for (Table& t : link_load_tables("jobs/llama", {load})) ending.tables.push_back(t);
namespace trainyard::analysis {

struct LinkUser {
  std::string user;  // job: what for, between whom
  double bytes = 0;  // of one step
  friend bool operator==(const LinkUser&, const LinkUser&) = default;
};

struct LinkLoad {
  std::int64_t profile = 0;
  std::int64_t link = 0;
  std::string name;         // "leaf-3 -> spine-1"
  double bytes = 0;         // of one step, all users
  double capacity_Bps = 0;  // as it was during that step, degraded or whole
  double utilisation = 0;   // bytes / (capacity * step)
  std::vector<LinkUser> users{};
  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};

/// What is kept, so that a run of a year with a thousand distinct steps stays small.
struct LinkLoadLimits {
  std::size_t links = 16;  // most loaded ones a profile
  std::size_t users = 16;  // largest ones a link; the others are one row, "37 others"
};

/// Both tables, most loaded links and largest users first; equal links by number, equal users as
/// given. Users may name less than the load: the rest is the row "others". If they claim more, it
/// is our own mistake (CheckFailed).
std::vector<Table> link_load_tables(const std::string& job_path, std::vector<LinkLoad> loads,
                                    LinkLoadLimits limits = {});

/// What link_load_tables() wrote; empty if the file has no such tables. Throws RunFileError if they
/// do not add up: an unknown profile or link, a user without a load, a number that is none.
std::vector<LinkLoad> link_loads(const RunReader& run, const std::string& job_path);

/// One direction of a cable.
struct FabricLink {
  std::int64_t from = 0;  // row of fabric/nodes
  std::int64_t to = 0;
  double capacity_Bps = 0;  // as built
  std::int64_t tier = 0;
  std::string name;
  std::string kind;
};

/// fabric/links.
Table fabric_links_table(std::span<const FabricLink> links);

}  // namespace trainyard::analysis
