#include "models/training/link_table.hpp"

namespace trainyard::models {

double FabricSolver::capacity_Bps(topologies::LinkId link) const {
  const bool inside = router_.fabric().link(link).kind == topologies::LinkKind::nvlink;
  return router_.state().capacity(link).value() * (inside ? scale_up_efficiency_ : nic_efficiency_);
}

LinkIndex FabricSolver::index(topologies::LinkId link) {
  if (link.index() >= of_.size()) of_.resize(link.index() + 1);
  LinkIndex& known = of_[link.index()];
  if (!known.is_valid()) known = solver_.add_link(capacity_Bps(link));
  return known;
}

VarIndex FabricSolver::add(const LinkLoads& loads, double cap_Bps) {
  scratch_.clear();
  for (const auto& [link, weight] : loads) scratch_.push_back(Load{index(link), weight});
  return solver_.add(scratch_, cap_Bps);
}

}  // namespace trainyard::models
