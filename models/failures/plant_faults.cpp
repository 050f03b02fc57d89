#include "models/failures/plant_faults.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "models/failures/failure_clocks.hpp"
#include "sim/check.hpp"

namespace trainyard::models {

Duration draw_life(const LifetimeSpec& spec, bool is_first, sim::Stream& stream) {
  const double mean_s = spec.mean_s();
  if (spec.law != Law::weibull) return seconds(stream.exponential(mean_s));
  const double scale_s = mean_s / std::tgamma(1.0 + 1.0 / spec.shape);
  const double age_s = to_seconds(spec.age);
  if (!is_first || age_s == 0) return seconds(stream.weibull(spec.shape, scale_s));
  // What is left at age a: eta ((a/eta)^k - ln U)^(1/k) - a, without the difference of two large
  // numbers.
  const double surplus = stream.exponential(1.0) * std::pow(scale_s / age_s, spec.shape);
  return seconds(age_s * std::expm1(std::log1p(surplus) / spec.shape));
}

PlantFaults::PlantFaults(sim::Engine& engine, std::map<std::string, PlantFaultSpec> faults,
                         std::map<std::string, PlantScriptSpec> script,
                         std::vector<std::string> part_names, Callbacks callbacks)
    : engine_(engine),
      callbacks_(std::move(callbacks)),
      names_(std::move(part_names)),
      causes_(names_.size(), 0),
      timer_(engine, sim::Phase::failure, [this] { act(); }) {
  check(bool(callbacks_.act), "somebody owns the parts that fail");
  const auto parts_of = [&](const std::string& name) {
    std::vector<std::size_t> parts = find_plant_parts(name, names_);
    check(!parts.empty(), "a fault names a part of the plant", name);
    return parts;
  };
  for (auto& [name, spec] : faults) {
    std::vector<std::size_t> parts;
    for (const std::string& part : spec.parts)
      for (const std::size_t p : parts_of(part)) parts.push_back(p);
    std::sort(parts.begin(), parts.end());
    parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    const auto cls = static_cast<std::uint32_t>(classes_.size());
    for (const std::size_t p : parts) units_.push_back({cls, static_cast<std::uint32_t>(p), 0});
    classes_.push_back({name, std::move(spec), engine.random("plant/" + name)});
  }
  for (auto& [key, spec] : script) {
    const Time at = trainyard::add(start_of_run, spec.at);
    check(at >= engine.now(), "what a script says about the plant lies ahead", key);
    add({at, Kind::script, static_cast<std::uint32_t>(script_.size())});
    std::vector<std::size_t> parts;
    if (!spec.part.empty()) parts = parts_of(spec.part);
    script_.push_back({key, std::move(spec), std::move(parts)});
  }
  for (std::uint32_t u = 0; u < units_.size(); ++u) begin_life(u);
  arm();
}

bool PlantFaults::is_down(const std::string& part) const {
  const auto found = std::find(names_.begin(), names_.end(), part);
  check(found != names_.end(), "the plant has this part", part);
  return causes_[std::size_t(found - names_.begin())] > 0;
}

// --- what comes next -----------------------------------------------------------------------------

bool PlantFaults::is_later(const Event& a, const Event& b) {
  return std::tie(a.when, a.kind, a.number) > std::tie(b.when, b.kind, b.number);
}

/// What lies at the end of time never comes.
void PlantFaults::add(Event event) {
  if (event.when == Time::max()) return;
  heap_.push_back(event);
  std::push_heap(heap_.begin(), heap_.end(), is_later);
}

void PlantFaults::arm() {
  if (heap_.empty()) return timer_.cancel();
  timer_.arm_at(heap_.front().when);
}

void PlantFaults::act() {
  std::pop_heap(heap_.begin(), heap_.end(), is_later);
  const Event event = heap_.back();
  heap_.pop_back();
  switch (event.kind) {
    case Kind::script:
      follow(script_[event.number]);
      break;
    case Kind::failure:
      fail_by_itself(event.number);
      break;
    case Kind::end:
      end(event.number);
      break;
  }
  arm();
}

// --- lives ---------------------------------------------------------------------------------------

sim::Stream PlantFaults::luck_of(const Unit& unit) const {
  return classes_[unit.cls].luck.child(sim::hash_path(names_[unit.part])).child(unit.life);
}

void PlantFaults::begin_life(std::uint32_t u) {
  const Unit& unit = units_[u];
  sim::Stream luck = luck_of(unit);
  const Duration life = draw_life(classes_[unit.cls].spec.lifetime, unit.life == 0, luck);
  add({trainyard::add(engine_.now(), life), Kind::failure, u});
}

void PlantFaults::fail_by_itself(std::uint32_t u) {
  const Unit& unit = units_[u];
  sim::Stream luck = luck_of(unit);
  luck.bits();  // the life itself
  const Class& cls = classes_[unit.cls];
  take_down(unit.part, cls.name, u, draw(cls.spec.repair, luck));
}

// --- the script ----------------------------------------------------------------------------------

void PlantFaults::follow(const Entry& entry) {
  const PlantScriptSpec& spec = entry.spec;
  if (spec.action == PlantAction::people) {
    callbacks_.act({}, spec.action, entry.key, double(*spec.people));
  } else if (spec.action == PlantAction::shed) {
    callbacks_.act({}, spec.action, entry.key, *spec.share);
  }
  for (const std::size_t p : entry.parts) {
    const auto part = static_cast<std::uint32_t>(p);
    if (spec.action == PlantAction::fail)
      take_down(part, entry.key, std::nullopt, spec.duration.value_or(forever));
    else if (spec.action == PlantAction::restore)
      restore(part, entry.key);
    else
      tell(part, spec.action, entry.key);
  }
}

// --- causes --------------------------------------------------------------------------------------

sim::EventIndex PlantFaults::tell(std::uint32_t part, PlantAction action, const std::string& why) {
  return callbacks_.act(names_[part], action, why, std::nullopt);
}

void PlantFaults::take_down(std::uint32_t part, const std::string& why,
                            std::optional<std::uint32_t> unit, Duration duration) {
  const auto row = static_cast<std::uint32_t>(rows_.size());
  const Time back = trainyard::add(engine_.now(), duration);
  rows_.push_back({engine_.now(), why, names_[part], {}, !unit.has_value(), {}});
  if (back != Time::max()) rows_.back().back = back;
  states_.push_back({part, unit, true});
  if (!unit) scripted_[part].push_back(row);
  add({back, Kind::end, row});
  if (++causes_[part] == 1) rows_[row].event = tell(part, PlantAction::fail, why);
}

bool PlantFaults::close(std::uint32_t row) {
  Row& state = states_[row];
  state.is_open = false;
  rows_[row].back = engine_.now();
  return --causes_[state.part] == 0;
}

void PlantFaults::end(std::uint32_t row) {
  const Row state = states_[row];
  if (!state.is_open) return;  // the script restored it earlier
  const bool is_up = close(row);
  if (state.unit) {
    ++units_[*state.unit].life;
    begin_life(*state.unit);
  } else {
    std::erase(scripted_[state.part], row);
  }
  if (is_up) tell(state.part, PlantAction::restore, rows_[row].cls);
}

/// A repair of a random failure goes on: the script does not change anybody's luck.
void PlantFaults::restore(std::uint32_t part, const std::string& why) {
  if (const auto found = scripted_.find(part); found != scripted_.end()) {
    for (const std::uint32_t row : found->second) close(row);
    scripted_.erase(found);
  }
  if (causes_[part] == 0) tell(part, PlantAction::restore, why);
}

// --- names ---------------------------------------------------------------------------------------

namespace {

bool is_number(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Without its number: "ups" of "ups-1"; the name itself if it has none.
std::string_view group_of(std::string_view name) {
  const std::size_t dash = name.rfind('-');
  const bool has_number = dash != name.npos && dash > 0 && is_number(name.substr(dash + 1));
  return has_number ? name.substr(0, dash) : name;
}

/// Greedy with one way back: a later star can do all that an earlier one could. Only within '/'.
bool fits(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, tried = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != pattern.npos && text[tried] != '/') {
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Groups, each once, in the order of their first unit.
std::vector<std::string> groups_of(const std::vector<std::string>& part_names) {
  std::vector<std::string> groups;
  std::map<std::string_view, bool> seen;
  for (const std::string& name : part_names)
    if (seen.emplace(group_of(name), true).second) groups.emplace_back(group_of(name));
  return groups;
}

std::string what_exists(const std::vector<std::string>& groups) {
  constexpr std::size_t most = 12;
  if (groups.empty()) return "there is neither power nor cooling: describe them first";
  std::string text = "one of ";
  for (std::size_t i = 0; i < std::min(most, groups.size()); ++i)
    text += (i == 0 ? "" : ", ") + groups[i];
  if (groups.size() > most) text += " and " + std::to_string(groups.size() - most) + " more";
  return text + ", or one unit of it by its number";
}

}  // namespace

std::vector<std::size_t> find_plant_parts(const std::string& name,
                                          const std::vector<std::string>& part_names) {
  std::vector<std::size_t> units, groups;
  for (std::size_t i = 0; i < part_names.size(); ++i) {
    const std::string_view part = part_names[i], group = group_of(part);
    if (fits(name, part))
      units.push_back(i);
    else if (group.size() < part.size() && fits(name, group))
      groups.push_back(i);
  }
  return units.empty() ? groups : units;
}

Problems check_plant_faults(const std::map<std::string, PlantFaultSpec>& faults,
                            const std::map<std::string, PlantScriptSpec>& script,
                            const std::vector<std::string>& part_names,
                            const NearestName& nearest) {
  constexpr std::size_t most = 20'000;  // names compared for a suggestion
  Problems problems;
  const std::vector<std::string> groups = groups_of(part_names);
  std::vector<std::string> candidates = groups;
  if (part_names.size() <= most)
    candidates.insert(candidates.end(), part_names.begin(), part_names.end());
  const auto find = [&](const std::string& path, const std::string& name) {
    std::vector<std::size_t> parts = find_plant_parts(name, part_names);
    if (!parts.empty()) return parts;
    const std::string near = nearest ? nearest(name, candidates) : std::string();
    problems.push_back({path, "the plant has no \"" + name + "\"",
                        near.empty() ? what_exists(groups) : "did you mean \"" + near + "\"?"});
    return parts;
  };
  for (const auto& [name, spec] : faults) {
    std::map<std::size_t, std::string> named;
    for (std::size_t i = 0; i < spec.parts.size(); ++i) {
      const std::string path = "faults." + name + ".parts." + std::to_string(i);
      for (const std::size_t p : find(path, spec.parts[i])) {
        const auto [at, is_new] = named.emplace(p, spec.parts[i]);
        if (is_new) continue;
        problems.push_back({path,
                            "\"" + part_names[p] + "\" is named by \"" + at->second + "\" already",
                            "each unit once in a class; a second class for a second way to fail"});
        break;
      }
    }
  }
  for (const auto& [key, spec] : script)
    if (!spec.part.empty()) find("script." + key + ".part", spec.part);
  return problems;
}

}  // namespace trainyard::models
