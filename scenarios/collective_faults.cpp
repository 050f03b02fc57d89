#include "scenarios/collective_faults.hpp"

#include <algorithm>
#include <vector>

#include "scenarios/collective_group.hpp"
#include "scenarios/diagnostic.hpp"

namespace trainyard::scenarios {

using topologies::Fabric;
using topologies::LinkId;
using topologies::NicId;

namespace {

/// Among which the nearest to a wrong name is looked for. Of a huge fabric not all: a message is
/// not worth a minute.
std::vector<std::string> some_names(const Fabric& fabric) {
  constexpr std::size_t most = 20000;
  std::vector<std::string> names;
  const std::size_t trunk = fabric.first_trunk().index();
  for (std::size_t l = trunk; l < std::min(fabric.links().size(), trunk + most); ++l)
    names.push_back(fabric.name(LinkId(l)));
  for (std::size_t s = 0; s < std::min(fabric.switch_count(), most); ++s)
    names.push_back(fabric.name(topologies::VertexId(fabric.first_switch().index() + s)));
  return names;
}

}  // namespace

void apply(const SweepFault& fault, topologies::Router& router) {
  const Fabric& fabric = router.fabric();
  if (const auto link = fabric.find_link(fault.name)) {
    router.change([&](topologies::LinkState& state) {
      if (fault.factor == 0) return state.set_cable_up(*link, false);
      state.set_capacity_factor(*link, fault.factor);
      state.set_capacity_factor(Fabric::reverse(*link), fault.factor);
    });
    return;
  }
  const auto vertex = fabric.find_vertex(fault.name);
  if (!vertex) {
    const std::vector<std::string> names = some_names(fabric);
    const std::string near = nearest(fault.name, names);
    throw SweepRefused("the fabric has no link or switch '" + fault.name + "'" +
                       (near.empty() ? "; a link is named like '" + names.front() + "'"
                                     : "; did you mean '" + near + "'?"));
  }
  if (fault.factor != 0)
    throw SweepRefused("'" + fault.name + "' is not a link; only links can be degraded");
  router.change([&](topologies::LinkState& state) { state.set_up(*vertex, false); });
}

std::string no_path_text(const topologies::Router& router,
                         const models::FabricPaths::NoPath& pair) {
  const Fabric& fabric = router.fabric();
  std::vector<LinkId> cut = router.cut(pair.from, pair.to);
  for (std::size_t n = 0; cut.empty() && n < std::size_t(fabric.servers().nics); ++n) {
    const NicId exit = fabric.nic(fabric.host_of(pair.from), n);
    if (router.is_wired(exit, pair.to)) cut = router.cut(exit, pair.to);
  }
  const auto name = [&](NicId nic) { return fabric.name(fabric.vertex(nic)); };
  std::string text = "there is no path from " + name(pair.from) + " to " + name(pair.to);
  if (cut.empty()) return text + ": no cable joins them";
  constexpr std::size_t shown = 4;
  text += "; cut by what is down: ";
  for (std::size_t i = 0; i < std::min(shown, cut.size()); ++i)
    text += (i == 0 ? "" : ", ") + fabric.name(cut[i]);
  if (cut.size() > shown) text += " and " + std::to_string(cut.size() - shown) + " more";
  return text;
}

}  // namespace trainyard::scenarios
