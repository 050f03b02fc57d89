#include "cli/topology_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"
#include "cli/table.hpp"

namespace trainyard::cli {

using topologies::CableReport;
using topologies::CostItem;
using topologies::FabricKind;
using topologies::LinkKind;
using topologies::MeasuredFabric;
using topologies::TierReport;
using topologies::VertexKind;

namespace {

std::string ratio(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g:1", x);
  return text;
}

/// "1,024"; beyond a billion "1.07e+09".
std::string whole(double x) {
  if (x < 1e9) return with_commas(static_cast<std::int64_t>(x));
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

/// Cables are sold by bits: "400 Gb/s".
std::string bit_rate(BytesPerSecond rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g Gb/s", rate.value() * 8e-9);
  return text;
}

/// Sums of money are added up by readers: "1,234,500".
std::string dollars(Dollars d) {
  return with_commas(std::llround(d.value()));
}

std::string of_injection(const topologies::Bisection& b) {
  return percent(b.of_injection) + " of what the NICs of one side can send";
}

struct ShapeText {
  std::string operator()(const topologies::FatTreeShape& t) const {
    const std::string rails = t.rails > 1 ? ", " + std::to_string(t.rails) + " rails" : "";
    const std::string homes = t.ports_per_nic > 1 ? ", dual-homed" : "";
    return "of " + std::to_string(t.tiers) + (t.tiers == 1 ? " tier" : " tiers") + rails + homes;
  }
  std::string operator()(const topologies::DragonflyShape& d) const {
    return "of " + with_commas(d.groups) + " groups, p=" + std::to_string(d.nics_per_router) +
           " a=" + std::to_string(d.routers_per_group) +
           " h=" + std::to_string(d.global_links_per_router);
  }
  std::string operator()(const topologies::DragonflyPlusShape& d) const {
    return "of " + with_commas(d.groups) + " groups of " + std::to_string(d.leaves_per_group) +
           " leaves and " + std::to_string(d.spines_per_group) + " spines";
  }
  std::string operator()(const topologies::TorusShape& t) const {
    std::string text = "of ";
    for (const int d : t.dimensions) text += (text.size() > 3 ? " x " : "") + std::to_string(d);
    return text + " routers";
  }
  std::string operator()(const topologies::CustomShape& c) const {
    return "of " + with_commas(static_cast<std::int64_t>(c.switches.size())) + " switches";
  }
};

/// What the second bisection keeps whole.
const char* parts_of(const topologies::Fabric& fabric) {
  if (fabric.kind() == FabricKind::dragonfly || fabric.kind() == FabricKind::dragonfly_plus)
    return "between groups";
  const auto* tree = std::get_if<topologies::FatTreeShape>(&fabric.any_shape());
  if (tree && tree->pods > 1 && !tree->is_rail_only) return "between pods";
  if (tree) return tree->rails > 1 ? "between units" : "between leaves";
  return "between routers";
}

void print_tiers(Page& page, const MeasuredFabric& m) {
  page.heading("Switches");
  Table table(
      {"tier", "switches", "cables down", "cables up", "ports used", "ports free", "down : up"});
  for (const TierReport& tier : m.tiers)
    table.add({std::string(name_of(tier.kind)), with_commas(tier.switches),
               with_commas(tier.cables_down), with_commas(tier.cables_up),
               with_commas(tier.ports_used),
               tier.ports_free < 0 ? "?" : with_commas(tier.ports_free),
               tier.oversubscription > 0 ? ratio(tier.oversubscription)
               : tier.cables_up > 0      ? "0:1"
                                         : "top"});
  table.print(page);
}

void print_cables(Page& page, const MeasuredFabric& m) {
  page.heading("Cables");
  Table table({"from - to", "number", "rate each way", "medium"});
  for (const CableReport& c : m.cable_kinds)
    table.add({c.kind == LinkKind::nic_leaf ? "NIC - switch" : std::string(name_of(c.kind)),
               with_commas(c.count), bit_rate(c.rate), c.is_optical ? "optical" : "copper"});
  table.add({"all copper", with_commas(m.copper_cables), "", ""});
  table.add({"all optical", with_commas(m.optic_cables), "", ""});
  table.print(page);
}

void print_capacity(Page& page, const topologies::Fabric& fabric, const MeasuredFabric& m) {
  page.heading("Capacity and distance");
  page.row("bisection", to_text(m.bisection.rate), of_injection(m.bisection));
  page.row(parts_of(fabric), to_text(m.bisection_between_pods.rate),
           of_injection(m.bisection_between_pods));
  page.row("diameter", std::to_string(m.diameter_hops),
           "links on the longest of the shortest "
           "routes between two NICs");
  if (m.diversity.pairs == 0) return;
  const topologies::PathDiversity& d = m.diversity;
  page.row("shortest routes", whole(d.shortest_least),
           "between NICs far apart, the least of " + std::to_string(d.pairs) + " pairs; median " +
               whole(d.shortest_median));
  page.row(
      "disjoint routes", with_commas(d.disjoint_least),
      "that share no cable between the two switches; median " + with_commas(d.disjoint_median));
}

void print_cost(Page& page, const MeasuredFabric& m) {
  page.heading("Cost and power");
  Table table({"item", "number", "each USD", "USD", "power"});
  for (const CostItem& item : m.items) {
    const bool is_at_switch = item.item.starts_with("transceiver") && item.power.value() == 0;
    const bool has_price = item.each.value() > 0;
    table.add({item.item, with_commas(item.count), has_price ? dollars(item.each) : "?",
               has_price ? dollars(item.price) : "?",
               is_at_switch             ? "in the switch"
               : item.power.value() > 0 ? to_text(item.power)
                                        : "?"});
  }
  table.add({"in all", "", "", dollars(m.price), to_text(m.power)});
  table.print(page);
}

}  // namespace

std::string topology_text(const std::string& scenario, const topologies::Fabric& fabric,
                          const MeasuredFabric& m, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, scenario) + ": " + std::string(name_of(fabric.kind())) +
            ' ' + std::visit(ShapeText{}, fabric.any_shape()));
  page.line("for " + with_commas(m.hosts) + " servers, " + with_commas(m.gpus) + " GPUs, " +
            with_commas(m.nics) + " NICs of " + bit_rate(fabric.servers().nic_rate) +
            (m.storage_ports > 0 ? ", " + with_commas(m.storage_ports) + " storage ports" : ""));
  print_tiers(page, m);
  print_cables(page, m);
  print_capacity(page, fabric, m);
  print_cost(page, m);
  page.line();
  for (const std::string& note : m.notes) page.bullet(Colour::yellow, "-", note);
  page.bullet(Colour::dim, "-",
              "copper or optical follows from where a cable runs, prices of cables and optics are "
              "street prices; NICs come with the servers, fibre is not counted");
  return page.text();
}

std::string topology_json(const std::string& scenario, const topologies::Fabric& fabric,
                          const MeasuredFabric& m) {
  using Json = nlohmann::ordered_json;
  Json switches = Json::object(), ports = Json::object(), oversubscription = Json::object();
  for (const TierReport& tier : m.tiers) {
    const std::string name(name_of(tier.kind));
    switches[name] = tier.switches;
    ports[name]["used"] = tier.ports_used;
    ports[name]["free"] = tier.ports_free < 0 ? Json() : Json(tier.ports_free);
    if (tier.oversubscription > 0) oversubscription[name] = tier.oversubscription;
  }
  std::array<std::size_t, Names<LinkKind>::all.size()> directed{};
  for (const topologies::Link& link : fabric.links()) ++directed[std::size_t(link.kind)];
  Json links = Json::object();
  for (const auto& [kind, name] : Names<LinkKind>::all)
    if (directed[std::size_t(kind)] > 0) links[std::string(name)] = directed[std::size_t(kind)];
  Json cable_kinds = Json::array(), items = Json::array();
  for (const CableReport& c : m.cable_kinds)
    cable_kinds.push_back({{"link", name_of(c.kind)},
                           {"rate_Bps", c.rate.value()},
                           {"medium", c.is_optical ? "optical" : "copper"},
                           {"count", c.count}});
  for (const CostItem& i : m.items)
    items.push_back({{"item", i.item},
                     {"count", i.count},
                     {"each_usd", i.each.value()},
                     {"cost_usd", i.price.value()},
                     {"power_W", i.power.value()},
                     {"source", i.source}});

  Json out;
  out["schema"] = "trainyard-topology-1";
  out["scenario"] = scenario;
  out["kind"] = name_of(fabric.kind());
  out["hosts"] = m.hosts;
  out["gpus"] = m.gpus;
  out["nics"] = m.nics;
  out["storage_ports"] = m.storage_ports;
  out["switches"] = std::move(switches);
  out["ports"] = std::move(ports);
  out["links"] = std::move(links);  // directed: two a cable
  out["cables"] = {{"copper", m.copper_cables}, {"optical", m.optic_cables}};
  out["cable_kinds"] = std::move(cable_kinds);
  out["bisection_Bps"] = m.bisection.rate.value();
  out["bisection_of_injection"] = m.bisection.of_injection;
  out["bisection_between_pods_Bps"] = m.bisection_between_pods.rate.value();
  out["diameter_hops"] = m.diameter_hops;
  out["path_diversity"] = {{"pairs", m.diversity.pairs},
                           {"shortest_min", m.diversity.shortest_least},
                           {"shortest_median", m.diversity.shortest_median},
                           {"disjoint_min", m.diversity.disjoint_least},
                           {"disjoint_median", m.diversity.disjoint_median}};
  out["oversubscription"] = std::move(oversubscription);
  out["cost_usd"] = m.price.value();
  out["power_W"] = m.power.value();
  out["cost_items"] = std::move(items);
  out["notes"] = m.notes;
  return out.dump(2) + '\n';
}

}  // namespace trainyard::cli
