#include "scenarios/read.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <tuple>
#include <type_traits>

#include "scenarios/failure_log.hpp"
#include "scenarios/overrides.hpp"
#include "scenarios/part_kinds.hpp"
#include "scenarios/units_text.hpp"
#include "scenarios/visit.hpp"
#include "scenarios/weather_csv.hpp"
#include "scenarios/write.hpp"

namespace trainyard::scenarios {
namespace {

using visit::Described;

/// What all readers of one document share.
struct State {
  const Catalog& catalog;
  ReadResult& result;
  std::size_t suppressed = 0;

  std::size_t mistakes() const { return result.diagnostics.size() + suppressed; }

  void report(const Place& place, At at, std::string path, std::string what, std::string right,
              std::string code) {
    if (result.diagnostics.size() >= max_diagnostics) {
      ++suppressed;
      return;
    }
    if (!place.part.empty()) what += " (in the catalog part " + place.part + ")";
    result.diagnostics.push_back(
        diagnose(place, at, std::move(path), std::move(what), std::move(right), std::move(code)));
  }

  void remember(const std::string& path, const Place& place) {
    result.places[path] = place;
    result.origin[path] = place.origin();
  }
};

std::string join(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ("\"" + words[i] + "\"");
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? std::string() : "did you mean \"" + near + "\"?";
}

std::string plain_number(double value) {
  char buffer[40];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

/// "at least 1", "above 0 B/s", "between 2 and 3"; `print` writes a bound with its unit.
template <class Print>
std::string bounds(Range range, Print print) {
  const bool low = range.low > -std::numeric_limits<double>::infinity();
  const bool high = range.high < std::numeric_limits<double>::infinity();
  if (low && high) return "between " + print(range.low) + " and " + print(range.high);
  if (high) return "at most " + print(range.high);
  return (range.low_open ? "above " : "at least ") + print(range.low);
}

bool within(double value, Range range) {
  return (range.low_open ? value > range.low : value >= range.low) && value <= range.high;
}

template <Described T>
bool read_struct(State& state, const Node* object, const Place& place, const std::string& path,
                 T& out, bool may_name_part);

/// Reads one value into a member; false if there was a mistake, then `out` keeps its value.
class ValueReader {
 public:
  ValueReader(State& state, const Node& node, const std::string& path, Range range)
      : state_(state), node_(node), path_(path), range_(range) {}

  bool operator()(bool& out) const {
    if (node_.kind != Node::Kind::boolean) return expected("true or false");
    out = node_.boolean;
    return true;
  }

  template <visit::Whole T>
  bool operator()(T& out) const {
    if (node_.kind != Node::Kind::number) return expected("a whole number");
    T value{};
    const char* const end = node_.text.data() + node_.text.size();
    const auto [stop, ec] = std::from_chars(node_.text.data(), end, value);
    if (ec != std::errc{} || stop != end) {
      // 8.0 and 1e3 are whole, too; up to 2^53 a double knows it.
      if (node_.number != std::floor(node_.number))
        return wrong("must be a whole number, found " + node_.as_found(), "", "not-whole");
      const double low = std::max(static_cast<double>(std::numeric_limits<T>::min()), range_.low);
      const double high = std::min(static_cast<double>(std::numeric_limits<T>::max()), range_.high);
      if (node_.number < low)
        return wrong("must be at least " + whole(low) + ", found " + node_.as_found(), "",
                     "out-of-range");
      if (node_.number > high)
        return wrong("must be at most " + whole(high) + ", found " + node_.as_found(), "",
                     "out-of-range");
      if (std::abs(node_.number) > 9007199254740992.0)
        return wrong("must be written with all its digits, found " + node_.as_found(), "",
                     "not-whole");
      value = static_cast<T>(node_.number);
    }
    if (!within(static_cast<double>(value), range_)) return outside(whole);
    out = value;
    return true;
  }

  bool operator()(double& out) const {
    if (node_.kind != Node::Kind::number) return expected("a number");
    if (!within(node_.number, range_)) return outside(plain_number);
    out = node_.number;
    return true;
  }

  bool operator()(std::string& out) const {
    if (node_.kind != Node::Kind::text) return expected("text in quotes");
    out = node_.text;
    return true;
  }

  template <class D>
  bool operator()(Quantity<D>& out) const {
    constexpr Dimension dimension = dimension_of<Quantity<D>>;
    if (node_.kind != Node::Kind::text) return unit_expected(dimension);
    UnitError error;
    const auto value = parse_quantity(node_.text, dimension, error);
    if (!value) return wrong(error.what, error.right, "bad-unit");
    if (!within(*value, range_))
      return outside([](double bound) { return to_exact_text(bound, dimension_of<Quantity<D>>); });
    out = Quantity<D>(*value);
    return true;
  }

  bool operator()(Duration& out) const {
    if (node_.kind != Node::Kind::text) return unit_expected(Dimension::time);
    UnitError error;
    const auto value = parse_duration(node_.text, error);
    if (!value) return wrong(error.what, error.right, "bad-unit");
    if (!within(to_seconds(*value), range_))
      return outside([](double bound) { return plain_number(bound) + " s"; });
    out = *value;
    return true;
  }

  template <class E>
  requires std::is_enum_v<E>
  bool operator()(E& out) const {
    std::vector<std::string> all;
    for (const auto& [value, name] : Names<E>::all) {
      if (node_.kind == Node::Kind::text && node_.text == name) {
        out = value;
        return true;
      }
      all.emplace_back(name);
    }
    const std::string near =
        node_.kind == Node::Kind::text ? did_you_mean(node_.text, all) : std::string();
    return wrong("expected " + listed(all) + ", found " + node_.as_found(), near, "bad-name");
  }

  template <class T>
  bool operator()(std::optional<T>& out) const {
    T value = out.value_or(T{});
    if (!(*this)(value)) return false;
    out = std::move(value);
    return true;
  }

  template <class T>
  bool operator()(std::vector<T>& out) const {
    if (node_.kind != Node::Kind::list) return expected("a list");
    std::vector<T> values;
    bool good = true;
    for (std::size_t i = 0; i < node_.items.size(); ++i) {
      const std::string path = join(path_, std::to_string(i));
      state_.remember(path, node_.items[i].place);
      T value{};
      if (ValueReader(state_, node_.items[i], path, range_)(value))
        values.push_back(std::move(value));
      else
        good = false;
    }
    if (good) out = std::move(values);
    return good;
  }

  /// Things by name. Names are parts of paths and of run files, so they have no dots and slashes.
  template <class T>
  bool operator()(std::map<std::string, T>& out) const {
    if (node_.kind != Node::Kind::object) return expected("an object with a name for each entry");
    std::map<std::string, T> values;
    std::vector<std::string> known;
    for (const Member& m : node_.members)
      if (!m.value.implied) known.push_back(m.key);
    bool good = true;
    for (const Member& m : node_.members) {
      if (m.value.kind == Node::Kind::null) continue;
      const std::string path = join(path_, m.key);
      state_.remember(path, m.value.place);
      if (m.value.implied) {
        state_.report(m.value.place, At::value, path,
                      "there is no entry " + in_quotes(m.key) + " to change",
                      suggestion(m.key, known), "set");
        good = false;
        continue;
      }
      const auto legal = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      };
      if (m.key.empty() || m.key.size() > 64 || !std::all_of(m.key.begin(), m.key.end(), legal)) {
        state_.report(
            m.value.place, At::key, path, "the name " + in_quotes(m.key) + " cannot be used",
            "a name has 1 to 64 letters, digits, '-' and '_'; dots separate the parts of a path",
            "bad-name");
        good = false;
      }
      T value{};
      good = ValueReader(state_, m.value, path, range_)(value) && good;
      values.emplace(m.key, std::move(value));
    }
    out = std::move(values);
    return good;
  }

  template <Described T>
  bool operator()(T& out) const {
    if constexpr (is_part_in_map<T>)
      if (node_.kind == Node::Kind::text || node_.find("part")) return read_named(out);
    if (node_.kind != Node::Kind::object) return expected("an object");
    return read_struct(state_, &node_, node_.place, path_, out, false);
  }

  bool expected(const std::string& form) const {
    std::string right;
    if (node_.kind == Node::Kind::text && form.find("number") != std::string::npos) {
      double number = 0;
      const char* const end = node_.text.data() + node_.text.size();
      const auto [stop, ec] = std::from_chars(node_.text.data(), end, number);
      if (ec == std::errc{} && stop == end && std::isfinite(number)) right = "without quotes";
    }
    if (form == "true or false" && (node_.text == "true" || node_.text == "false"))
      right = "without quotes";
    return wrong("expected " + form + ", found " + node_.as_found(), right, "bad-type");
  }

  bool wrong(std::string what, std::string right, std::string code) const {
    state_.report(node_.place, At::value, path_, std::move(what), std::move(right),
                  std::move(code));
    return false;
  }

 private:
  template <Described T>
  bool read_named(T& out) const;

  static std::string whole(double value) {
    return std::abs(value) < 1e15 ? std::to_string(static_cast<std::int64_t>(value))
                                  : plain_number(value);
  }

  static std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
    const std::string near = did_you_mean(word, known);
    if (!near.empty() || known.empty()) return near;
    return "there is " + listed(known);
  }

  template <class Print>
  bool outside(Print print) const {
    return wrong("must be " + bounds(range_, print) + ", found " + node_.as_found(), "",
                 "out-of-range");
  }

  bool unit_expected(Dimension dimension) const {
    return wrong("expected " + scenarios::expected(dimension) + ", found " + node_.as_found(), "",
                 node_.kind == Node::Kind::number ? "bare-number" : "bad-type");
  }

  State& state_;
  const Node& node_;
  const std::string& path_;
  Range range_;
};

/// The visitor of one struct. `object` is null when the whole struct is absent: then all members
/// get their defaults.
class StructReader {
 public:
  StructReader(State& state, const Node* object, const Place& place, const std::string& path,
               bool may_name_part)
      : state_(state),
        object_(object),
        place_(place),
        path_(path),
        mistakes_before_(state.mistakes()) {
    if (may_name_part) known_.push_back("part");
    if (path.empty()) known_.push_back("extends");  // taken out by the loader
  }

  template <class T>
  void required(std::string_view key, T& member, std::string_view doc, Range range = {}) {
    const Node* node = take(key);
    if (!node)
      missing(key, doc);
    else if (node->kind == Node::Kind::null)
      state_.report(node->place, At::value, join(path_, key),
                    "is required (" + std::string(doc) + "), found null", "", "missing");
    else
      read(*node, key, member, range);
    visit::keep_checks_safe(member, range);
  }

  template <class T>
  void optional(std::string_view key, T& member, std::string_view, Range range = {}) {
    const Node* node = take(key);
    if (node && node->kind != Node::Kind::null)
      read(*node, key, member, range);
    else
      absent(key, member);
    visit::keep_checks_safe(member, range);
  }

  template <class T>
  void part(std::string_view key, T& member, std::string_view kind, std::string_view doc) {
    const Node* node = take(key);
    if (node && node->kind != Node::Kind::null) return read_part(*node, key, member, kind);
    if (!visit::has_required<T>()) return absent(key, member);
    if (node)
      state_.report(node->place, At::value, join(path_, key),
                    "is required (" + std::string(doc) + "), found null", "", "missing");
    else
      missing(key, doc, "name one of the catalog: " + listed(state_.catalog.names(kind)));
    make_safe(member);
  }

  /// A part that only some scenarios need.
  template <class T>
  void optional_part(std::string_view key, T& member, std::string_view kind, std::string_view) {
    const Node* node = take(key);
    if (node && node->kind != Node::Kind::null)
      read_part(*node, key, member, kind);
    else
      absent(key, member);
  }

  void check(bool condition, std::string_view key, std::string_view message) {
    if (condition || state_.mistakes() != mistakes_before_ || !missing_.empty()) return;
    const Node* node = object_ ? object_->find(key) : nullptr;
    state_.report(node ? node->place : place_, node ? At::value : At::key, join(path_, key),
                  std::string(message) + (node && node->kind != Node::Kind::object &&
                                                  node->kind != Node::Kind::list &&
                                                  node->kind != Node::Kind::null
                                              ? " (found " + node->as_found() + ")"
                                              : ""),
                  "", "check");
  }

  /// After describe(): what is missing, what nobody knows. A required key that is there under a
  /// misspelt name is one mistake, not two.
  bool finish() {
    if (object_) {
      for (const Member& m : object_->members) {
        if (std::find(known_.begin(), known_.end(), m.key) != known_.end()) continue;
        const std::string near = nearest(m.key, known_);
        std::erase_if(missing_, [&](const Missing& gap) { return gap.key == near; });
        std::vector<std::string> shown(known_.begin(), known_.end());
        std::erase(shown, "extends");
        state_.report(
            m.value.place, At::key, join(path_, m.key), "unknown key " + in_quotes(m.key),
            near.empty() ? "known here: " + listed(shown) : "did you mean \"" + near + "\"?",
            "unknown-key");
      }
      for (const Missing& gap : missing_)
        state_.report(place_, At::key, join(path_, gap.key),
                      "is required (" + gap.doc + ") and missing", gap.right, "missing");
    }
    return state_.mistakes() == mistakes_before_;
  }

 private:
  struct Missing {
    std::string key, doc, right;
  };

  const Node* take(std::string_view key) {
    known_.emplace_back(key);
    return object_ ? object_->find(key) : nullptr;
  }

  void missing(std::string_view key, std::string_view doc, std::string right = {}) {
    if (object_) missing_.push_back({std::string(key), std::string(doc), std::move(right)});
  }

  template <class T>
  void read(const Node& node, std::string_view key, T& member, Range range) {
    const std::string path = join(path_, key);
    state_.remember(path, node.place);
    ValueReader(state_, node, path, range)(member);
  }

  template <class T>
  void absent(std::string_view key, T& member) {
    const std::string path = join(path_, key);
    state_.result.origin[path] = "default";
    if constexpr (Described<T>) read_struct(state_, nullptr, place_, path, member, false);
  }

  /// A struct that could not be read at all still meets the conditions of checks in its parents.
  template <Described T>
  static void make_safe(T& member) {
    visit::RequiredFinder finder;
    describe(finder, member);
  }

  template <class T>
  void read_part(const Node& node, std::string_view key, T& member, std::string_view kind) {
    const std::string path = join(path_, key);
    state_.remember(path, node.place);
    const Node* name = node.kind == Node::Kind::object ? node.find("part") : &node;
    if (node.kind != Node::Kind::text && node.kind != Node::Kind::object) {
      state_.report(node.place, At::value, path,
                    "expected the name of a " + std::string(kind) +
                        " in the catalog or an object, found " + node.as_found(),
                    "", "bad-type");
      return make_safe(member);
    }
    if (!name || name->kind == Node::Kind::null) {  // described in full
      read_struct(state_, &node, node.place, path, member, true);
      return;
    }
    const Part* part =
        name->kind == Node::Kind::text ? state_.catalog.find(kind, name->text) : nullptr;
    if (!part) {
      report_unknown_part(*name, node.kind == Node::Kind::object ? join(path, "part") : path, kind);
      return make_safe(member);
    }
    Node fields = part->fields;
    retell(fields, name->place, part->name);
    if (!fields.find("name")) {
      Place place = name->place;
      place.part = part->name;
      fields.members.push_back({"name", Node::of_text(part->name, place)});
    }
    if (node.kind == Node::Kind::object) merge(fields, node);
    fields.place = node.place;
    read_struct(state_, &fields, node.place, path, member, true);
  }

  void report_unknown_part(const Node& name, const std::string& path, std::string_view kind) {
    const std::vector<std::string> names = state_.catalog.names(kind);
    if (name.kind != Node::Kind::text) {
      state_.report(name.place, At::value, path,
                    "expected the name of a " + std::string(kind) + ", found " + name.as_found(),
                    "the catalog has " + listed(names), "bad-type");
      return;
    }
    const Part* other = state_.catalog.find(name.text);
    if (other) {
      state_.report(name.place, At::value, path,
                    in_quotes(name.text) + " is a " + other->kind + ", not a " + std::string(kind),
                    "the catalog has " + listed(names), "wrong-kind");
      return;
    }
    const std::string near = did_you_mean(name.text, names);
    state_.report(name.place, At::value, path,
                  "the catalog has no " + std::string(kind) + " " + in_quotes(name.text),
                  !near.empty()   ? near
                  : names.empty() ? ""
                                  : "it has " + listed(names),
                  "unknown-part");
  }

  /// Gives catalog values the place of the user's reference to the part.
  static void retell(Node& node, const Place& place, const std::string& part) {
    node.place = place;
    node.place.part = part;
    for (Member& m : node.members) retell(m.value, place, part);
    for (Node& item : node.items) retell(item, place, part);
  }

  State& state_;
  const Node* object_;
  const Place& place_;
  const std::string& path_;
  std::size_t mistakes_before_;
  std::vector<std::string> known_;
  std::vector<Missing> missing_;
};

template <Described T>
bool read_struct(State& state, const Node* object, const Place& place, const std::string& path,
                 T& out, bool may_name_part) {
  StructReader reader(state, object, place, path, may_name_part);
  describe(reader, out);
  return reader.finish();
}

/// An entry of a map that names a part of the catalog: read as a member of what holds it.
template <Described T>
bool ValueReader::read_named(T& out) const {
  const std::size_t dot = path_.rfind('.');
  const std::string parent = dot == std::string::npos ? std::string() : path_.substr(0, dot);
  const std::string key = dot == std::string::npos ? path_ : path_.substr(dot + 1);
  Node holder = Node::of_object(node_.place);
  holder.members.push_back({key, node_});
  StructReader reader(state_, &holder, holder.place, parent, false);
  reader.optional_part(key, out, part_kind<T>, "");
  return reader.finish();
}

/// The problem's own path is sound: nothing that was read there, above or below was a mistake.
bool touches_a_mistake(const ReadResult& result, const std::string& path) {
  return std::any_of(
      result.diagnostics.begin(), result.diagnostics.end(), [&](const Diagnostic& d) {
        return d.path == path || d.path.starts_with(path + ".") || path.starts_with(d.path + ".");
      });
}

/// Mistakes after which the values themselves cannot be judged: half a document would only add
/// false ones.
bool is_unreadable(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& d) {
    return d.code != "duplicate-key" && d.code != "set";
  });
}

/// In the order of the file; of several files, in the order in which they were first mentioned.
void sort_by_place(std::vector<Diagnostic>& diagnostics) {
  std::map<std::string, std::size_t> file_order;
  for (const Diagnostic& d : diagnostics) file_order.emplace(d.file, file_order.size());
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) {
                     return std::tuple(file_order.at(a.file), a.line, a.column) <
                            std::tuple(file_order.at(b.file), b.line, b.column);
                   });
}

/// A file that a setting names is found from where it was named: beside that scenario file, or, by
/// --set, from where the program was started. Empty: nobody named it.
std::string found_from(const ReadResult& result, const std::string& path, const std::string& name) {
  const auto place = result.places.find(path);
  if (place == result.places.end() || !place->second.source) return {};
  const Source& source = *place->second.source;
  if (source.kind != Source::Kind::file) return name;
  return (std::filesystem::path(source.name).parent_path() / name).string();
}

/// The file of a custom fabric.
void find_graph_file(ReadResult& result) {
  auto& graph = result.scenario.cluster.fabric.graph;
  if (!graph) return;
  const std::string file = found_from(result, "cluster.fabric.graph", *graph);
  if (!file.empty()) graph = file;
}

/// Gives an entry of the script the place of its line in the log.
void remember_logged(State& state, const std::string& path,
                     const std::shared_ptr<const Source>& log, int line) {
  const Place place{log, line, 1, line, 1, {}};
  state.remember(path, place);
  for (const char* key :
       {"at", "fail", "name", "effect", "detection.law", "detection.value", "detection.sigma",
        "replace", "repair.law", "repair.value", "repair.sigma", "speed", "warning"})
    state.result.origin[join(path, key)] = place.origin();
}

/// Faults of a log become entries of the script, "log:0000017" as "log-0000017"; what is written
/// out is then whole without the log.
void read_log(State& state) {
  ReadResult& result = state.result;
  models::FailuresSpec& failures = result.scenario.failures;
  if (failures.log.empty()) return;
  const std::string file = found_from(result, "failures.log", failures.log);
  failures.log.clear();
  if (file.empty()) return;
  FailureLog log = read_failure_log(file);
  for (Diagnostic& d : log.diagnostics) {
    if (d.code == "file")
      d = result.locate({"failures.log", in_quotes(file) + ": " + d.what, d.right});
    if (result.diagnostics.size() >= max_diagnostics)
      ++state.suppressed;
    else
      result.diagnostics.push_back(std::move(d));
  }
  if (log.entries.empty()) return;
  std::ifstream in(file, std::ios::binary);
  const auto source = std::make_shared<const Source>(
      Source{Source::Kind::file, file, {std::istreambuf_iterator<char>(in), {}}});
  for (auto& [logged, fault] : log.entries) {
    const std::string digits = logged.substr(logged.find(':') + 1);
    const std::string key = "log-" + digits, path = "failures.script." + key;
    if (!failures.script.emplace(key, std::move(fault)).second)
      state.report(result.places[path], At::key, path,
                   "is the name of the fault in line " + std::to_string(std::stoi(digits)) +
                       " of the log, too",
                   "another name", "check");
    else
      remember_logged(state, path, source, std::stoi(digits));
  }
}

/// Hours of weather, if they come from a file.
void read_weather(State& state) {
  ReadResult& result = state.result;
  auto& facility = result.scenario.facility;
  if (!facility || !facility->cooling || facility->cooling->weather.file.empty()) return;
  const std::string path = "facility.cooling.weather.file";
  std::string& name = facility->cooling->weather.file;
  const std::string file = found_from(result, path, name);
  if (file.empty()) return;
  name = file;
  WeatherFile weather = read_weather_csv(std::filesystem::path(file), facility->cooling->weather);
  for (Diagnostic& d : weather.diagnostics) {
    if (d.code == "file") d = result.locate({path, in_quotes(file) + ": " + d.what, d.right});
    if (result.diagnostics.size() >= max_diagnostics)
      ++state.suppressed;
    else
      result.diagnostics.push_back(std::move(d));
  }
  facility->weather = std::move(weather.series);
}

ReadResult read_tree(Node root, ReadResult result, const std::string& file,
                     const std::vector<std::string>& overrides, const Catalog& catalog) {
  const bool unreadable = is_unreadable(result.diagnostics);
  apply_overrides(root, overrides, result.diagnostics);
  State state{catalog, result};
  result.places[""] = root.place;
  if (!unreadable) {
    read_struct(state, &root, root.place, "", result.scenario, false);
    read_log(state);
    read_weather(state);
    for (const Problem& problem : check_references(result.scenario, result))
      if (!touches_a_mistake(result, problem.path))
        result.diagnostics.push_back(result.locate(problem));
  }
  find_graph_file(result);
  if (result.scenario.name.empty())
    result.scenario.name = std::filesystem::path(file).stem().string();
  sort_by_place(result.diagnostics);
  if (state.suppressed > 0) {
    Diagnostic more;
    more.file = file;
    more.what = "and " + std::to_string(state.suppressed) + " more mistakes";
    more.code = "more";
    result.diagnostics.push_back(more);
  }
  if (result.ok()) result.resolved = write_scenario(result.scenario);
  return result;
}

}  // namespace

ReadResult read_scenario(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides, const Catalog& catalog) {
  ReadResult result;
  Node root = load_layers(file.string(), result.diagnostics);
  return read_tree(std::move(root), std::move(result), file.string(), overrides, catalog);
}

ReadResult read_scenario_text(const std::string& text, const std::string& name,
                              const std::vector<std::string>& overrides, const Catalog& catalog) {
  ReadResult result;
  Node root = load_layers_of_text(name, text, result.diagnostics);
  return read_tree(std::move(root), std::move(result), name, overrides, catalog);
}

ReadResult read_scenario_tree(Node root, const std::string& file,
                              const std::vector<std::string>& overrides, const Catalog& catalog) {
  return read_tree(std::move(root), ReadResult{}, file, overrides, catalog);
}

Diagnostic ReadResult::locate(const Problem& problem, std::string_view prefix) const {
  const std::string path = prefix.empty()         ? problem.path
                           : problem.path.empty() ? std::string(prefix)
                                                  : join(std::string(prefix), problem.path);
  std::string at = path;
  while (!at.empty() && !places.contains(at)) {
    const std::size_t dot = at.rfind('.');
    at = dot == std::string::npos ? std::string() : at.substr(0, dot);
  }
  const auto it = places.find(at);
  const Place place = it == places.end() ? Place{} : it->second;
  std::string what = problem.what;
  if (at == path && !place.part.empty()) what += " (from the catalog part " + place.part + ")";
  return diagnose(place, at == path ? At::value : At::key, path, what, problem.right, "check");
}

bool ReadResult::is_written(std::string_view path) const {
  const auto it = places.find(std::string(path));
  return it != places.end() && it->second.is_written();
}

template <class T>
std::optional<T> make_part(const Catalog& catalog, std::string_view name,
                           std::vector<Diagnostic>* mistakes) {
  constexpr std::string_view kind = part_kind<T>;
  ReadResult result;
  State state{catalog, result};
  const auto source =
      std::make_shared<Source>(Source{Source::Kind::file, "catalog", std::string(name)});
  Node reference = Node::of_object(Place{source, 1, 1, 1, 1, {}});
  reference.members.push_back({"part", Node::of_text(std::string(name), reference.place)});
  Node holder = Node::of_object(reference.place);
  const std::string key(kind);
  holder.members.push_back({key, reference});
  T value{};
  const std::string root;
  StructReader reader(state, &holder, holder.place, root, false);
  reader.part(key, value, kind, "a part of the catalog");
  if (mistakes)
    mistakes->insert(mistakes->end(), result.diagnostics.begin(), result.diagnostics.end());
  if (!result.diagnostics.empty()) return std::nullopt;
  return value;
}

template std::optional<models::GpuSpec> make_part(const Catalog&, std::string_view,
                                                  std::vector<Diagnostic>*);
template std::optional<models::GpuCalibration> make_part(const Catalog&, std::string_view,
                                                         std::vector<Diagnostic>*);
template std::optional<models::NicSpec> make_part(const Catalog&, std::string_view,
                                                  std::vector<Diagnostic>*);
template std::optional<models::ServerSpec> make_part(const Catalog&, std::string_view,
                                                     std::vector<Diagnostic>*);
template std::optional<models::TransformerSpec> make_part(const Catalog&, std::string_view,
                                                          std::vector<Diagnostic>*);
template std::optional<models::SoftwareSpec> make_part(const Catalog&, std::string_view,
                                                       std::vector<Diagnostic>*);
template std::optional<topologies::SwitchSpec> make_part(const Catalog&, std::string_view,
                                                         std::vector<Diagnostic>*);
template std::optional<models::StoreSpec> make_part(const Catalog&, std::string_view,
                                                    std::vector<Diagnostic>*);
template std::optional<models::FailureProfileSpec> make_part(const Catalog&, std::string_view,
                                                             std::vector<Diagnostic>*);

namespace {

/// Reads the part as the first of these structs that is its kind; false: none is.
template <class... T>
bool check_as(const Catalog& catalog, const Part& part, std::vector<Diagnostic>& mistakes) {
  return ((part.kind == part_kind<T> && (make_part<T>(catalog, part.name, &mistakes), true)) ||
          ...);
}

}  // namespace

std::vector<Diagnostic> check_part(const Catalog& catalog, const Part& part) {
  std::vector<Diagnostic> mistakes;
  if (!check_as<models::GpuSpec, models::GpuCalibration, models::NicSpec, models::ServerSpec,
                models::TransformerSpec, models::SoftwareSpec, topologies::SwitchSpec,
                models::StoreSpec, models::FailureProfileSpec>(catalog, part, mistakes))
    mistakes.push_back(diagnose(part.fields.place, At::value, "kind",
                                "unknown kind " + in_quotes(part.kind), "", "part"));
  return mistakes;
}

}  // namespace trainyard::scenarios
