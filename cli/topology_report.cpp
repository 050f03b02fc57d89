#include "cli/topology_report.hpp"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/page.hpp"

namespace trainyard::cli {

using topologies::LinkKind;

namespace {

std::string ratio(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g:1", x);
  return text;
}

std::string of_injection(const topologies::Bisection& b) {
  return percent(b.of_injection) + " of what the NICs of one half can send";
}

}  // namespace

std::string topology_text(const std::string& scenario, const topologies::Fabric& fabric,
                          const topologies::MeasuredFabric& m, const Terminal& terminal) {
  Page page(terminal);
  page.line(painted(terminal, Colour::bold, scenario) + ": " +
            std::string(name_of(fabric.spec().kind)) + " of " + std::to_string(m.tiers.size()) +
            " tiers for " + with_commas(m.hosts) + " servers, " + with_commas(m.gpus) + " GPUs, " +
            with_commas(m.nics) + " NICs");
  page.line();
  const auto row = [&](const std::array<std::string, 7>& cells) {
    std::string line = "  " + left(cells[0], 8);
    for (std::size_t i = 1; i < cells.size(); ++i) line += right(cells[i], i == 6 ? 18 : 12);
    page.line(line);
  };
  row({"tier", "switches", "cables down", "cables up", "ports used", "ports free",
       "oversubscription"});
  for (const topologies::TierReport& tier : m.tiers)
    row({std::string(name_of(tier.kind)), with_commas(tier.switches), with_commas(tier.cables_down),
         with_commas(tier.cables_up), with_commas(tier.ports_used), with_commas(tier.ports_free),
         tier.oversubscription > 0 ? ratio(tier.oversubscription) : "top"});
  page.line();
  page.row("bisection", to_text(m.bisection.rate), of_injection(m.bisection));
  page.row("between pods", to_text(m.bisection_between_pods.rate),
           of_injection(m.bisection_between_pods));
  page.row("diameter", std::to_string(m.diameter_hops),
           "links on the longest route between two NICs");
  page.row("cables", with_commas(m.cables),
           with_commas(m.copper_cables) + " copper (server to leaf), " +
               with_commas(m.optic_cables) + " optical");
  page.row("switch power", to_text(m.power),
           with_commas(m.switches) + " switches with their optics");
  page.row("switch price", to_text(m.price), "switches alone, without cables and NICs");
  return page.text();
}

std::string topology_json(const std::string& scenario, const topologies::Fabric& fabric,
                          const topologies::MeasuredFabric& m) {
  using Json = nlohmann::ordered_json;
  Json switches, ports, oversubscription = Json::object();
  for (const topologies::TierReport& tier : m.tiers) {
    const std::string name(name_of(tier.kind));
    switches[name] = tier.switches;
    ports[name] = {{"used", tier.ports_used}, {"free", tier.ports_free}};
    if (tier.oversubscription > 0) oversubscription[name] = tier.oversubscription;
  }
  std::array<std::size_t, Names<LinkKind>::all.size()> directed{};
  for (const topologies::Link& link : fabric.links()) ++directed[std::size_t(link.kind)];
  Json links;
  for (const auto& [kind, name] : Names<LinkKind>::all)
    if (directed[std::size_t(kind)] > 0) links[std::string(name)] = directed[std::size_t(kind)];

  Json out;
  out["schema"] = "trainyard-topology-1";
  out["scenario"] = scenario;
  out["kind"] = name_of(fabric.spec().kind);
  out["hosts"] = m.hosts;
  out["gpus"] = m.gpus;
  out["nics"] = m.nics;
  out["switches"] = std::move(switches);
  out["ports"] = std::move(ports);
  out["links"] = std::move(links);  // directed: two a cable
  out["cables"] = {{"copper", m.copper_cables}, {"optical", m.optic_cables}};
  out["bisection_Bps"] = m.bisection.rate.value();
  out["bisection_of_injection"] = m.bisection.of_injection;
  out["bisection_between_pods_Bps"] = m.bisection_between_pods.rate.value();
  out["diameter_hops"] = m.diameter_hops;
  out["oversubscription"] = std::move(oversubscription);
  out["cost_usd"] = m.price.value();
  out["power_W"] = m.power.value();
  return out.dump(2) + '\n';
}

}  // namespace trainyard::cli
