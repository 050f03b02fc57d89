#include "analysis/link_loads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/hdf5_handles.hpp"
#include "sim/check.hpp"

namespace trainyard::analysis {

namespace {

constexpr std::size_t user_bytes = 240;
/// By how much sums of bytes may differ: they are added in another order than they were measured.
constexpr double rounding = 1e-6;

bool is_amount(double v) {
  return std::isfinite(v) && v >= 0;
}

void check_load(const LinkLoad& load) {
  check(load.profile >= 0 && load.link >= 0, "a link's load has a profile and a link", load.name);
  check(is_amount(load.bytes) && is_amount(load.capacity_Bps) && is_amount(load.utilisation),
        "a link's load is a finite amount", load.name, load.bytes, load.utilisation);
  double sum = 0;
  for (const LinkUser& u : load.users) {
    check(is_amount(u.bytes), "a user's bytes are a finite amount", u.user, u.bytes);
    sum += u.bytes;
  }
  check(sum <= load.bytes * (1 + rounding), "a link's users do not move more than its load",
        load.name, sum, load.bytes);
}

/// The largest users, and one row for what is left of the load.
std::vector<LinkUser> shown(const LinkLoad& load, std::size_t most) {
  std::vector<LinkUser> users = load.users;
  std::stable_sort(users.begin(), users.end(),
                   [](const LinkUser& a, const LinkUser& b) { return a.bytes > b.bytes; });
  const std::size_t hidden = users.size() - std::min(users.size(), most);
  users.resize(users.size() - hidden);
  double rest = load.bytes;
  for (const LinkUser& u : users) rest -= u.bytes;
  if (hidden > 0 || rest > load.bytes * rounding)
    users.push_back({hidden > 0 ? std::to_string(hidden) + (hidden == 1 ? " other" : " others")
                                : std::string("others"),
                     std::max(rest, 0.0)});
  return users;
}

/// The columns of a table that is not trusted.
class Columns {
 public:
  Columns(const RunReader& run, const std::string& path)
      : file_(run.path()), table_(run.table(path)) {}

  std::size_t rows() const { return table_.rows(); }
  template <class Cell>
  const std::vector<Cell>& of(const char* name) const {
    const Column* column = table_.find(name);
    if (column == nullptr) refuse(std::string("it has no column ") + name);
    const auto* cells = std::get_if<std::vector<Cell>>(&column->cells);
    if (cells == nullptr) refuse(std::string("column ") + name + " has another type");
    return *cells;
  }
  const std::vector<double>& amounts(const char* name) const {
    const auto& cells = of<double>(name);
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!is_amount(cells[i]))
        refuse("row " + std::to_string(i) + ": " + name + " is no amount: " + text_of(cells[i]));
    return cells;
  }
  /// Rows of another table; any whole number from 0 on if that is not there.
  const std::vector<std::int64_t>& rows_of(const char* name, const RunReader& run,
                                           const std::string& other) const {
    const auto& cells = of<std::int64_t>(name);
    const std::int64_t end =
        run.has_table(other) ? static_cast<std::int64_t>(std::min<std::size_t>(
                                   run.table_rows(other), std::numeric_limits<std::int64_t>::max()))
                             : std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (cells[i] < 0 || cells[i] >= end)
        refuse("row " + std::to_string(i) + " has " + name + ' ' + std::to_string(cells[i]) +
               ", and " + other + " has " + std::to_string(end) + " rows");
    return cells;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw_run_file_error({file_, table_.path, "damaged"}, why);
  }

 private:
  std::string file_;
  Table table_;
};

}  // namespace

std::vector<Table> link_load_tables(const std::string& job_path, std::vector<LinkLoad> loads,
                                    LinkLoadLimits limits) {
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const LinkLoad& load : loads) {
    check_load(load);
    check(seen.emplace(load.profile, load.link).second, "a link has one load a profile", load.name,
          load.profile);
  }
  std::sort(loads.begin(), loads.end(), [](const LinkLoad& a, const LinkLoad& b) {
    return std::tuple(a.profile, -a.utilisation, a.link) <
           std::tuple(b.profile, -b.utilisation, b.link);
  });
  Table links = Table::with(
      job_path + "/link_loads", "the most loaded links of each distinct step",
      {{"profile", "", "row of step_profiles", ColumnType::int64},
       {"link", "", "row of fabric/links", ColumnType::int64},
       {"name", "", "from -> to", ColumnType::text},
       {"bytes", "B", "moved over it in one step", ColumnType::real},
       {"capacity", "B/s", "rate it had during the step, degraded or whole", ColumnType::real},
       {"utilisation", "1", "bytes / (capacity * step)", ColumnType::real}});
  Table users = Table::with(job_path + "/link_users", "who loads these links",
                            {{"profile", "", "row of step_profiles", ColumnType::int64},
                             {"link", "", "row of fabric/links", ColumnType::int64},
                             {"user", "", "job: what for, between whom", ColumnType::text},
                             {"bytes", "B", "moved over it in one step", ColumnType::real},
                             {"share", "1", "of the link's bytes", ColumnType::real}});
  std::int64_t profile = -1;
  std::size_t kept = 0;
  for (const LinkLoad& load : loads) {
    if (std::exchange(profile, load.profile) != load.profile) kept = 0;
    if (++kept > limits.links) continue;
    links.add_row(
        {load.profile, load.link, load.name, load.bytes, load.capacity_Bps, load.utilisation});
    for (const LinkUser& u : shown(load, limits.users))
      users.add_row({load.profile, load.link, std::string(cut_text(u.user, user_bytes)), u.bytes,
                     load.bytes > 0 ? u.bytes / load.bytes : 0.0});
  }
  return {std::move(links), std::move(users)};
}

std::vector<LinkLoad> link_loads(const RunReader& run, const std::string& job_path) {
  const std::string links_path = job_path + "/link_loads", users_path = job_path + "/link_users";
  const std::string profiles = job_path + "/step_profiles", fabric = "fabric/links";
  std::vector<LinkLoad> out;
  if (!run.has_table(links_path)) return out;

  const Columns links(run, links_path);
  const auto& profile = links.rows_of("profile", run, profiles);
  const auto& link = links.rows_of("link", run, fabric);
  const auto& name = links.of<std::string>("name");
  const auto& bytes = links.amounts("bytes");
  const auto& capacity = links.amounts("capacity");
  const auto& utilisation = links.amounts("utilisation");
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> row_of;
  for (std::size_t i = 0; i < links.rows(); ++i) {
    if (!row_of.emplace(std::pair(profile[i], link[i]), i).second)
      links.refuse("row " + std::to_string(i) + " repeats link " + std::to_string(link[i]) +
                   " of profile " + std::to_string(profile[i]));
    out.push_back({profile[i], link[i], name[i], bytes[i], capacity[i], utilisation[i], {}});
  }
  if (!run.has_table(users_path)) return out;

  const Columns users(run, users_path);
  const auto& user_profile = users.of<std::int64_t>("profile");
  const auto& user_link = users.of<std::int64_t>("link");
  const auto& user = users.of<std::string>("user");
  const auto& moved = users.amounts("bytes");
  for (std::size_t i = 0; i < users.rows(); ++i) {
    const auto found = row_of.find({user_profile[i], user_link[i]});
    if (found == row_of.end())
      users.refuse("row " + std::to_string(i) + " uses a link that is not in link_loads");
    out[found->second].users.push_back({user[i], moved[i]});
  }
  return out;
}

Table fabric_links_table(std::span<const FabricLink> links) {
  Table t =
      Table::with("fabric/links", "one row a direction of a cable",
                  {{"from", "", "row of fabric/nodes", ColumnType::int64},
                   {"to", "", "row of fabric/nodes", ColumnType::int64},
                   {"capacity", "B/s", "line rate, as built", ColumnType::real},
                   {"tier", "1", "0 in a server, 1 server to switch, 2 and 3 between switches",
                    ColumnType::int64},
                   {"name", "", "from -> to", ColumnType::text},
                   {"kind", "", "what it connects", ColumnType::text}});
  for (const FabricLink& l : links)
    t.add_row({l.from, l.to, l.capacity_Bps, l.tier, l.name, l.kind});
  return t;
}

}  // namespace trainyard::analysis
