#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/fat_tree_counts.hpp"

namespace trainyard::topologies {

namespace {

class InputCheck {
 public:
  InputCheck(const FabricSpec& spec, const HostShape& servers, Problems& problems)
      : spec_(spec), servers_(servers), problems_(problems) {}

  bool is_sound() {
    const std::size_t before = problems_.size();
    check_servers();
    check_ranges();
    check_tiers();
    if (problems_.size() != before) return false;
    check_rails();
    check_rates();
    return problems_.size() == before;
  }

 private:
  void refuse(std::string path, std::string what, std::string right) {
    problems_.push_back({std::move(path), std::move(what), std::move(right)});
  }
  void need(bool holds, const char* path, const char* what, const char* right) {
    if (!holds) refuse(path, what, right);
  }
  void check_servers();
  void check_ranges();
  void check_tiers();
  void check_rails();
  void check_rates();

  const FabricSpec& spec_;
  const HostShape& servers_;
  Problems& problems_;
};

void InputCheck::check_servers() {
  need(servers_.hosts >= 1, "server.hosts", "a fabric needs servers", "1 or more");
  need(servers_.gpus >= 1, "server.gpus", "a server needs a GPU", "1 or more");
  need(servers_.nics >= 1, "server.nics", "a server needs a NIC to be on the fabric", "1 or more");
  need(servers_.storage_ports >= 0, "server.storage_ports", "is negative", "0 or more");
  need(servers_.nic_rate.value() > 0, "server.nic_rate", "is not positive",
       "a rate such as 400 Gb/s");
  need(servers_.scale_up_rate.value() > 0, "server.scale_up_rate", "is not positive",
       "a rate such as 450 GB/s");
  need(servers_.storage_ports == 0 || servers_.storage_rate.value() > 0, "server.storage_rate",
       "is not positive", "a rate such as 400 Gb/s");
}

void InputCheck::check_ranges() {
  need(spec_.hosts_per_leaf.value_or(0) >= 1, "hosts_per_leaf",
       spec_.kind == FabricKind::fat_tree ? "a leaf serves at least one server"
                                          : "a unit has at least one server",
       "1 or more");
  const std::pair<const char*, const SwitchSpec*> boxes[] = {{"leaf_switch", &spec_.leaf_switch},
                                                             {"spine_switch", &spec_.spine_switch},
                                                             {"core_switch", &spec_.core_switch}};
  for (const auto& [path, box] : boxes)
    if (box->ports < 2 || box->ports > most_ports || !(box->port_rate.value() > 0))
      refuse(path, "a switch needs two ports with a rate",
             "ports from 2 to " + text(std::int64_t{most_ports}) + ", port_rate above zero");
  const std::pair<const char*, std::optional<int>> counts[] = {
      {"rails", spec_.rails},   {"leaves_per_pod", spec_.leaves_per_pod},
      {"pods", spec_.pods},     {"uplinks_per_leaf", spec_.uplinks_per_leaf},
      {"spines", spec_.spines}, {"uplinks_per_spine", spec_.uplinks_per_spine},
      {"cores", spec_.cores}};
  for (const auto& [path, n] : counts)
    if (n && *n < 1)
      refuse(path, "is " + text(std::int64_t{*n}), "1 or more, or left out to be derived");
  const std::pair<const char*, std::optional<double>> ratios[] = {
      {"leaf_oversubscription", spec_.leaf_oversubscription},
      {"spine_oversubscription", spec_.spine_oversubscription}};
  for (const auto& [path, r] : ratios)
    if (r && !(*r > 0 && std::isfinite(*r)))
      refuse(path, "is " + text(*r), "a ratio above zero, such as 2");
  need(!(spec_.leaf_oversubscription && spec_.uplinks_per_leaf), "leaf_oversubscription",
       "the uplinks of a leaf are given twice", "either the ratio or uplinks_per_leaf");
  need(!(spec_.spine_oversubscription && spec_.uplinks_per_spine), "spine_oversubscription",
       "the uplinks of a spine are given twice", "either the ratio or uplinks_per_spine");
}

void InputCheck::check_tiers() {
  const int tiers = spec_.tiers.value_or(2);
  if (spec_.kind == FabricKind::rail_only)
    need(tiers == 1 || tiers == 2, "tiers",
         "rails without links between them have leaves, or leaves and spines", "1 or 2");
  else
    need(tiers == 2 || tiers == 3, "tiers", "a fat tree has 2 or 3 tiers here", "2 or 3");
  for_each_kind_setting(spec_, [&](const char* key, bool is_given, auto... kinds) {
    if (is_given && !((spec_.kind == kinds) || ...))
      refuse(key, "is a setting of another kind of fabric", "leave it out, or change kind");
  });
  if (tiers < 3 && spec_.kind != FabricKind::rail_only)
    for (const auto& [path, given] :
         {std::pair{"leaves_per_pod", spec_.leaves_per_pod.has_value()},
          {"pods", spec_.pods.has_value()},
          {"spine_oversubscription", spec_.spine_oversubscription.has_value()},
          {"uplinks_per_spine", spec_.uplinks_per_spine.has_value()},
          {"cores", spec_.cores.has_value()}})
      need(!given, path, "belongs to a fat tree of 3 tiers", "tiers 3, or leave it out");
  if (tiers == 1)
    for (const auto& [path, given] :
         {std::pair{"leaf_oversubscription", spec_.leaf_oversubscription.has_value()},
          {"uplinks_per_leaf", spec_.uplinks_per_leaf.has_value()},
          {"uplink_rates", !spec_.uplink_rates.empty()},
          {"spines", spec_.spines.has_value()}})
      need(!given, path, "belongs to a fabric with spines", "tiers 2, or leave it out");
}

void InputCheck::check_rails() {
  if (!spec_.rails || servers_.nics % *spec_.rails == 0) return;
  std::int64_t below = 0;
  std::int64_t above = 0;
  for (const std::int64_t d : divisors(servers_.nics)) {
    if (d < *spec_.rails) below = d;
    if (d > *spec_.rails && above == 0) above = d;
  }
  refuse("rails",
         text(std::int64_t{servers_.nics}) + " NICs of a server cannot be shared evenly by " +
             text(std::int64_t{*spec_.rails}) + " rails",
         above == 0 ? text(below) : text(below) + " or " + text(above));
}

void InputCheck::check_rates() {
  const BytesPerSecond leaf = spec_.leaf_switch.port_rate;
  const BytesPerSecond spine = spec_.spine_switch.port_rate;
  const auto need_port_for = [&](const char* path, BytesPerSecond rate) {
    if (links_per_port(leaf, rate) == 0)
      refuse(path, text(rate) + " does not fit a leaf port of " + text(leaf),
             "leaf_switch.port_rate of at least " + text(rate));
  };
  need_port_for("server.nic_rate",
                servers_.nic_rate * (spec_.dual_homed.value_or(false) ? 0.5 : 1));
  if (servers_.storage_ports > 0) need_port_for("server.storage_rate", servers_.storage_rate);
  for (std::size_t i = 0; i < spec_.uplink_rates.size(); ++i) {
    const BytesPerSecond rate = spec_.uplink_rates[i];
    const BytesPerSecond most = std::min(leaf, spine);
    if (!(rate.value() > 0))
      refuse("uplink_rates/" + std::to_string(i), "is not positive", "a rate such as 400 Gb/s");
    else if (links_per_port(most, rate) == 0)
      refuse("uplink_rates/" + std::to_string(i),
             text(rate) + " does not fit ports of " + text(leaf) + " and " + text(spine),
             "at most " + text(most));
  }
}

}  // namespace

bool is_sound_fat_tree_input(const FabricSpec& spec, const HostShape& servers, Problems& problems) {
  return InputCheck(spec, servers, problems).is_sound();
}

}  // namespace trainyard::topologies
