#include "scenarios/plant_record.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/run_file.hpp"
#include "sim/describe.hpp"

namespace trainyard::scenarios {

using analysis::ColumnType;
using analysis::Table;
using models::PlantKind;

namespace {

constexpr std::size_t nowhere = std::size_t(-1);
constexpr double moved = 0.01;   // of the rating
constexpr double moved_K = 0.2;  // degrees

/// Racks, and "rack-3/a", a circuit of one.
bool is_of_a_rack(const models::PlantNode& node, const std::vector<std::string>& racks) {
  const std::string owner = node.name.substr(0, node.name.find('/'));
  return node.kind == PlantKind::rack || std::binary_search(racks.begin(), racks.end(), owner);
}

Watts capacity_of(const models::WaterLoopSpec& loop) {
  Watts sum{};
  if (loop.chillers) sum += loop.chillers->capacity * double(loop.chillers->units);
  if (loop.coolers) sum += loop.coolers->capacity * double(loop.coolers->units);
  return sum;
}

}  // namespace

PlantRecord::PlantRecord(const Scenario& scenario, Facility& facility, sim::Recorder& recorder)
    : facility_(facility), recorder_(recorder) {
  const FacilitySpec& spec = *scenario.facility;
  if (spec.power) {
    layout_ = models::lay_out_power(*spec.power, int(facility.layout().racks));
    places_.assign(layout_.nodes.size(), nowhere);
    std::vector<std::string> racks;
    for (const std::size_t rack : layout_.racks) racks.push_back(layout_.nodes[rack].name);
    std::sort(racks.begin(), racks.end());
    for (std::size_t n = 0; n < layout_.nodes.size(); ++n) {
      if (is_of_a_rack(layout_.nodes[n], racks)) continue;
      places_[n] = nodes_.size();
      nodes_.push_back({.at = n});
    }
    for (std::size_t i = 0; i < std::min(most_series, nodes_.size()); ++i) {
      Node& node = nodes_[i];
      const models::NodeLimits& limits = layout_.limits[node.at];
      const double rating = limits.active     ? limits.active->value()
                            : limits.apparent ? limits.apparent->value()
                                              : 0.0;
      node.step_W = moved * rating;
      node.series =
          recorder.series("plant/power/" + analysis::path_component(layout_.nodes[node.at].name),
                          "W", "power at the output of " + layout_.nodes[node.at].name);
    }
  }
  if (!spec.cooling) return;
  const auto& cooling = *spec.cooling;
  for (const auto& [name, loop] : cooling.loops)
    bodies_.push_back({.kind = Body::Kind::loop,
                       .name = name,
                       .capacity = capacity_of(loop),
                       .set_point_C = loop.set_point});
  for (const auto& [name, room] : cooling.rooms)
    bodies_.push_back({.kind = Body::Kind::room,
                       .name = name,
                       .on = room.loop,
                       .capacity = room.capacity * double(room.units),
                       .set_point_C = room.set_point});
  for (const auto& [group, cdu] : cooling.cdus)
    for (const std::string& name : models::cdu_names(group, cdu))
      bodies_.push_back({.kind = Body::Kind::cdu,
                         .name = name,
                         .on = cdu.loop,
                         .capacity = cdu.capacity,
                         .set_point_C = cdu.set_point});
  for (std::size_t i = 0; i < std::min(most_series, bodies_.size()); ++i) {
    Body& body = bodies_[i];
    const char* what = body.kind == Body::Kind::loop   ? "water of loop "
                       : body.kind == Body::Kind::room ? "supply air of room "
                                                       : "coolant of ";
    body.has_series = true;
    body.series = recorder.series("plant/temperature/" + analysis::path_component(body.name),
                                  "degree_Celsius", what + body.name);
  }
}

double PlantRecord::temperature(const Body& body) const {
  const models::CoolingPlant& cooling = *facility_.cooling();
  return body.kind == Body::Kind::loop   ? cooling.loop_temperature(body.name)
         : body.kind == Body::Kind::room ? cooling.room_temperature(body.name)
                                         : cooling.coolant_temperature(body.name);
}

void PlantRecord::observe(Time now) {
  if (const models::PowerPlant* power = facility_.power()) {
    for (std::size_t i = 0; i < std::min(most_series, nodes_.size()); ++i) {
      Node& node = nodes_[i];
      const double out_W = power->flow(node.at).out_W;
      if (out_W == node.told_W) continue;
      const bool goes_dark = out_W == 0 || node.told_W <= 0;
      const double step_W = std::max(node.step_W, moved * std::abs(node.told_W));
      if (!goes_dark && std::abs(out_W - node.told_W) < step_W) continue;
      node.told_W = out_W;
      recorder_.sample(node.series, now, out_W);
    }
  }
  // Temperatures are looked at when the plant took a step: at each of its limits, and each hour.
  if (!facility_.cooling() || facility_.cooling()->steps() == seen_steps_) return;
  seen_steps_ = facility_.cooling()->steps();
  for (Body& body : bodies_) {
    if (!body.has_series) break;
    const double T = temperature(body);
    if (std::abs(T - body.told_C) < moved_K) continue;
    body.told_C = T;
    recorder_.sample(body.series, now, T);
  }
}

void PlantRecord::add_power(std::vector<Table>& tables) const {
  Table nodes = Table::with(
      "plant/power_nodes", "the power graph without racks and their circuits",
      {{"name", "", "as in the event log", ColumnType::text},
       {"kind", "", "what it is", ColumnType::text},
       {"rating", "W", "active power that it may give; 0: none stated", ColumnType::real},
       {"rating_apparent", "VA", "apparent power; 0: none stated", ColumnType::real},
       {"rating_current", "A", "in each line; 0: none stated", ColumnType::real},
       {"voltage", "V", "between two conductors", ColumnType::real},
       {"racks", "1", "that hang on it directly, by a circuit of their own", ColumnType::int64},
       {"has_series", "1", "series/plant/power/NAME is in this file", ColumnType::int64}});
  std::vector<std::int64_t> racks(layout_.nodes.size());
  std::map<std::string, std::size_t> index;
  for (std::size_t n = 0; n < layout_.nodes.size(); ++n) index.emplace(layout_.nodes[n].name, n);
  Table feeds =
      Table::with("plant/power_feeds", "what feeds what, in rows of power_nodes",
                  {{"from", "1", "row", ColumnType::int64}, {"to", "1", "row", ColumnType::int64}});
  for (std::size_t n = 0; n < layout_.nodes.size(); ++n)
    for (const std::string& from : layout_.nodes[n].from) {
      const std::size_t f = index.at(from);
      if (places_[f] == nowhere) continue;
      if (places_[n] != nowhere)
        feeds.add_row({std::int64_t(places_[f]), std::int64_t(places_[n])});
      else
        ++racks[f];
    }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const models::PlantNode& node = layout_.nodes[nodes_[i].at];
    const models::NodeLimits& limits = layout_.limits[nodes_[i].at];
    nodes.add_row({node.name, std::string(name_of(node.kind)),
                   limits.active ? limits.active->value() : 0.0,
                   limits.apparent ? limits.apparent->value() : 0.0,
                   limits.current ? limits.current->value() : 0.0, node.voltage.value(),
                   racks[nodes_[i].at], std::int64_t(i < most_series)});
  }
  tables.push_back(std::move(nodes));
  tables.push_back(std::move(feeds));
}

void PlantRecord::add_cooling(std::vector<Table>& tables) const {
  Table cooling = Table::with(
      "plant/cooling", "loops, rooms and CDUs",
      {{"name", "", "as in the event log", ColumnType::text},
       {"kind", "", "loop, room or cdu", ColumnType::text},
       {"on", "", "the loop that takes its heat; empty for a loop", ColumnType::text},
       {"capacity", "W", "of all its units", ColumnType::real},
       {"set_point", "degree_Celsius", "of water, supply air or coolant", ColumnType::real},
       {"has_series", "1", "series/plant/temperature/NAME is in this file", ColumnType::int64}});
  for (const Body& body : bodies_)
    cooling.add_row({body.name,
                     std::string(body.kind == Body::Kind::loop   ? "loop"
                                 : body.kind == Body::Kind::room ? "room"
                                                                 : "cdu"),
                     body.on, body.capacity.value(), body.set_point_C,
                     std::int64_t(body.has_series)});
  tables.push_back(std::move(cooling));
  Table zones = Table::with("plant/zones", "racks that are cooled alike",
                            {{"name", "", "zone", ColumnType::text},
                             {"room", "", "row of plant/cooling by name", ColumnType::text},
                             {"cdu", "", "the same; empty: air alone", ColumnType::text},
                             {"racks", "1", "how many", ColumnType::int64},
                             {"first_rack", "1", "number of the first", ColumnType::int64}});
  const FacilityLayout& layout = facility_.layout();
  for (std::size_t z = 0; z < layout.zones.size(); ++z)
    zones.add_row({layout.zones[z].name, layout.cooled[z].spec.room, layout.cooled[z].spec.cdu,
                   std::int64_t(layout.zones[z].racks.size()),
                   std::int64_t(layout.zones[z].racks.front())});
  tables.push_back(std::move(zones));
}

std::vector<Table> PlantRecord::tables() const {
  std::vector<Table> tables;
  if (!nodes_.empty()) add_power(tables);
  if (!bodies_.empty()) add_cooling(tables);
  return tables;
}

}  // namespace trainyard::scenarios
