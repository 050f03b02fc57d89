#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "scenarios/facility.hpp"
#include "sim/check.hpp"

/// The plant of a run: how it is built, and what is left of it at the end.
namespace trainyard::scenarios {

using models::CoolingPlant;
using models::PowerPlant;

namespace {

models::FailureClass loss_of(std::string name) {
  models::FailureClass cls;
  cls.name = std::move(name);
  cls.spec.component = models::Component::rack;
  cls.spec.effect = models::Effect::crash;
  return cls;
}

std::vector<Watts> most_of(const FacilityLayout& layout) {
  std::vector<Watts> most;
  for (const FacilityZone& zone : layout.zones)
    most.push_back(layout.rack_power * double(zone.racks.size()));
  return most;
}

}  // namespace

Facility::Facility(const Scenario& scenario, sim::Engine& engine, sim::Recorder& recorder,
                   models::ServerPool& pool, std::vector<models::Job*> jobs)
    : engine_(engine),
      recorder_(recorder),
      pool_(pool),
      scenario_(scenario),
      layout_(scenario),
      jobs_(std::move(jobs)),
      racks_(layout_.racks),
      zone_states_(layout_.zones.size()),
      powers_(1 + jobs_.size()),
      seen_(jobs_.size()),
      seen_pool_(pool.version()),
      no_feed_(loss_of("no power")),
      no_cooling_(loss_of("no cooling")),
      flush_(engine, sim::Phase::failure, [this] { flush(); }),
      heat_timer_(engine, sim::Phase::completion, [this] { flush_heat(); }) {
  gpus_ = std::make_unique<FacilityGpus>(engine, recorder, layout_, scenario.cluster.server,
                                         jobs_.size(), [this] { look_at_gpus(); });
  if (scenario.facility->power) build_power(scenario);
  if (scenario.facility->cooling) build_cooling(scenario);
  if (cooling_) cooling_units_ = cooling_->unit_names();
  const FacilitySpec& spec = *scenario.facility;
  if (!spec.faults.empty() || !spec.script.empty())
    faults_ = std::make_unique<models::PlantFaults>(
        engine, spec.faults, spec.script, plant_parts(scenario),
        models::PlantFaults::Callbacks{
            .act = [this](const std::string& part, models::PlantAction action,
                          const std::string& why,
                          std::optional<double> value) { return act(part, action, why, value); }});
  observe();
}

Facility::~Facility() = default;

void Facility::build_power(const Scenario& scenario) {
  const models::PowerLayout plan =
      models::lay_out_power(*scenario.facility->power, int(layout_.racks));
  for (std::size_t r = 0; r < racks_.size(); ++r) {
    racks_[r].node = plan.racks[r];
    rack_of_node_.emplace(plan.racks[r], r);
  }
  const auto rack_of = [this](PowerPlant::Node node) { return rack_of_node_.at(node); };
  power_ = std::make_unique<PowerPlant>(
      engine_, recorder_, plan.nodes, scenario.facility->policy,
      PowerPlant::Callbacks{
          .on_fed =
              [this, rack_of](auto node, bool is_fed, auto cause) {
                if (rack_of_node_.contains(node))
                  on_fed(rack_of(node), is_fed, cause);
                else
                  on_load_fed(node, is_fed, cause);
              },
          .on_order = [this, rack_of](auto node, auto order, Watts watts,
                                      auto cause) { on_order(rack_of(node), order, watts, cause); },
          .on_warning =
              [this, rack_of](const auto& nodes, Duration window, auto cause) {
                std::vector<std::size_t> racks;
                for (const auto node : nodes) racks.push_back(rack_of(node));
                on_warning(std::move(racks), window, no_feed_, cause);
              }});
  const std::vector<std::string> parts = plant_parts(scenario);
  for (const auto& [name, node] : plan.loads) {
    const models::PowerLoadSpec& spec = scenario.facility->power->loads.at(name);
    PlantLoad load{.node = node,
                   .constant = spec.constant,
                   .reactive_share = models::reactive_share(spec.power_factor)};
    for (const std::string& units : spec.units)
      for (const std::string& part : cooling_units_named(units, parts)) load.units.push_back(part);
    loads_.push_back(std::move(load));
  }
  set_others();
  for (const auto& [node, utility] : plan.utilities) power_->follow(node, utility);
}

void Facility::build_cooling(const Scenario& scenario) {
  heat_.emplace(most_of(layout_));
  const bool has_plates = scenario.facility->racks.liquid_share > 0;
  cooling_ = std::make_unique<CoolingPlant>(
      engine_, recorder_, *scenario.facility->cooling, layout_.cooled,
      CoolingPlant::Callbacks{
          .on_inlet =
              [this, has_plates](std::size_t zone, const models::RackCondition& c, auto cause) {
                gpus_->set_condition(zone, has_plates ? c.coolant_C : c.air_C,
                                     has_plates ? c.flow : 1.0, cause);
              },
          .on_cooled = [this](std::size_t zone, bool is_cooled,
                              auto cause) { on_cooled(zone, is_cooled, cause); },
          .on_warning =
              [this](const std::vector<std::size_t>& zones, Duration window, auto cause) {
                std::vector<std::size_t> racks;
                for (const std::size_t z : zones)
                  racks.insert(racks.end(), layout_.zones[z].racks.begin(),
                               layout_.zones[z].racks.end());
                std::sort(racks.begin(), racks.end());
                on_warning(std::move(racks), window, no_cooling_, cause);
              },
          .on_leak = {},
          // Perhaps while others are being told: an event of this instant looks again.
          .on_power =
              [this](Watts, auto) {
                is_dirty_ = true;
                flush_.arm(Duration::zero());
              }},
      scenario.facility->weather);
}

void Facility::sum_overhead() {
  overhead_ = others_;
  if (power_) overhead_ += power_->losses();
  if (cooling_) overhead_ += cooling_->power();
}

/// Before what constant loads draw changes, and after.
void Facility::set_others() {
  counted_.others += Joules(others_.value() * to_seconds(engine_.now() - others_since_));
  others_since_ = engine_.now();
  others_ = Watts(0);
  for (const PlantLoad& load : loads_)
    if (load.is_fed) others_ += load.constant;
}

/// Once an hour, when the weather changes: what is nearest to its limit.
void Facility::look_at_weather() {
  if (!cooling_) return;
  if (engine_.now() < seen_hour_ends_) return;
  seen_hour_ends_ = models::Weather::next_change(engine_.now());
  const models::Outdoors& out = cooling_->outdoors();
  counted_.hottest_gpu_C = std::max(counted_.hottest_gpu_C, gpus_->hottest());
  if (counted_.hottest_hour && counted_.hottest_hour->dry_C >= out.dry) return;
  const CoolingPlant::Limit limit = cooling_->limit();
  counted_.hottest_hour = {engine_.now(), out.dry, out.wet, limit.part, limit.utilisation};
}

FacilityResult Facility::result(Joules servers, Joules switches) {
  set_others();
  FacilityResult r = counted_;
  r.it = servers + switches;
  if (power_) {
    const PowerPlant::Energy e = power_->energy();
    r.losses = e.losses + e.battery_lost;
    for (const auto& [kind, lost] : power_->losses_by_kind())
      r.losses_by_kind.emplace_back(name_of(kind), lost);
    if (e.battery_lost > Joules(0)) r.losses_by_kind.emplace_back("battery", e.battery_lost);
    if (e.from_sources > Joules(0))
      r.power_imbalance = std::abs(e.imbalance().value()) / e.from_sources.value();
  }
  if (cooling_) {
    heat_->advance(engine_.now());
    r.heat_stored = heat_->stored();
    const CoolingPlant::Energy e = cooling_->energy();
    r.fans = e.fans;
    r.pumps = e.pumps;
    r.chillers = e.chillers;
    r.coolers = e.coolers;
    r.cooling = e.cooling();
    const models::HeatBalance heat = cooling_->balance();
    if (heat.given > Joules(0))
      r.heat_imbalance = std::abs(heat.residual.value()) / heat.given.value();
    r.worst = cooling_->worst();
    r.water_m3 = e.make_up_kg / 1000;
    if (servers > Joules(0)) r.wue = e.make_up_kg / (servers.value() / 3.6e6);
  }
  r.site = r.it + r.cooling + r.losses + r.others;
  if (r.it > Joules(0)) r.pue = r.site / r.it;
  return r;
}

}  // namespace trainyard::scenarios
