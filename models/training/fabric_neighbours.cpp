#include "models/training/fabric_neighbours.hpp"

#include <algorithm>
#include <utility>

#include "sim/check.hpp"

namespace trainyard::models {

void FabricNeighbours::set_transfers(const Member& member, std::vector<StoreFlow> transfers) {
  const auto place = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place& p) { return p.member == &member; });
  check(place != places_.end(), "a job joins before it transfers");
  for (const StoreFlow& flow : transfers)
    check(!flow.servers.empty(), "a transfer that others see names its servers");
  std::vector<StoreFlow>& known = place->transfers;
  if (known == transfers) return;
  known = std::move(transfers);
  tell_others(member);
}

void FabricNeighbours::tell_others(const Member& member) {
  for (const Place& place : places_)
    if (place.member != &member) place.member->on_neighbours_changed();
}

std::vector<StoreFlow> FabricNeighbours::transfers_of_others(const Member& member) const {
  std::vector<StoreFlow> flows;
  for (const Place& place : places_)
    if (place.member != &member)
      flows.insert(flows.end(), place.transfers.begin(), place.transfers.end());
  return flows;
}

std::vector<StepOnLinks> FabricNeighbours::steps_of_others(const Member& member) const {
  std::vector<StepOnLinks> steps;
  for (const Place& place : places_) {
    if (place.member == &member) continue;
    if (StepOnLinks step = place.member->step_on_links(); !step.links.empty())
      steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace trainyard::models
