#include "topologies/import_builder.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace trainyard::topologies {

namespace {

constexpr std::size_t most_listed = 20;
constexpr std::size_t longest_name = 255;
constexpr double most_parallel = 100'000;  // cables of one edge; more is a slip of the keyboard
constexpr double fastest = 1e15;           // bytes/s
constexpr double slowest_ns = 3600e9;      // one hour

struct Unit {
  std::string_view name;
  double factor;
};

std::optional<double> with_unit(std::string_view text, const auto& units) {
  const std::size_t begin_of_unit = text.find_first_not_of("0123456789.eE+-");
  if (begin_of_unit == text.npos) return {};
  const auto value = number_of(trimmed(text.substr(0, begin_of_unit)));
  if (!value) return {};
  const std::string_view unit = trimmed(text.substr(begin_of_unit));
  for (const Unit& u : units)
    if (u.name == unit) return *value * u.factor;
  return {};
}

bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    const auto byte = static_cast<unsigned char>(s[i]);
    const std::size_t more = byte < 0x80             ? 0
                             : (byte >> 5) == 0b110  ? 1
                             : (byte >> 4) == 0b1110 ? 2
                             : (byte >> 3) == 0x1e   ? 3
                                                     : s.size();
    if (more >= s.size() - i || byte == 0xc0 || byte == 0xc1 || byte > 0xf4) return false;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(s[i + k]) >> 6) != 0b10) return false;
    const auto second = more > 0 ? static_cast<unsigned char>(s[i + 1]) : 0u;
    if ((byte == 0xe0 && second < 0xa0) ||
        (byte == 0xed && second > 0x9f) ||  // overlong, surrogate
        (byte == 0xf0 && second < 0x90) || (byte == 0xf4 && second > 0x8f))
      return false;
    i += more + 1;
  }
  return true;
}

bool has_control(std::string_view s) {
  for (const char c : s)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  return false;
}

}  // namespace

std::string in_quotes(std::string_view s) {
  constexpr std::size_t longest = 60;
  const bool is_text = is_utf8(s);
  std::string out = "\"";
  for (std::size_t i = 0; i < s.size(); ++i) {
    const auto byte = static_cast<unsigned char>(s[i]);
    if (i >= longest && (byte >> 6) != 0b10) {  // not in the middle of a letter
      out += "…";
      break;
    }
    out += byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text) ? '?' : s[i];
  }
  return out + '"';
}

std::string_view trimmed(std::string_view s) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t first = s.find_first_not_of(space);
  if (first == s.npos) return {};
  return s.substr(first, s.find_last_not_of(space) - first + 1);
}

std::optional<double> number_of(std::string_view s) {
  double value = 0;
  const auto [stop, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc{} || stop != s.data() + s.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<BytesPerSecond> rate_of(std::string_view s) {
  static constexpr std::array units{
      Unit{"b/s", 0.125},  Unit{"kb/s", 125.0},   Unit{"Mb/s", 125e3},   Unit{"Gb/s", 125e6},
      Unit{"Tb/s", 125e9}, Unit{"bps", 0.125},    Unit{"kbps", 125.0},   Unit{"Mbps", 125e3},
      Unit{"Gbps", 125e6}, Unit{"Tbps", 125e9},   Unit{"Gbit/s", 125e6}, Unit{"B/s", 1.0},
      Unit{"kB/s", 1e3},   Unit{"MB/s", 1e6},     Unit{"GB/s", 1e9},     Unit{"TB/s", 1e12},
      Unit{"GBps", 1e9},   Unit{"KiB/s", 0x1p10}, Unit{"MiB/s", 0x1p20}, Unit{"GiB/s", 0x1p30}};
  const auto value = with_unit(s, units);
  if (!value || !(*value > 0) || *value > fastest) return {};
  return BytesPerSecond(*value);
}

std::optional<Duration> time_of(std::string_view s) {
  static constexpr std::array units{Unit{"ns", 1.0},        Unit{"us", 1e3}, Unit{"\xC2\xB5s", 1e3},
                                    Unit{"\xCE\xBCs", 1e3}, Unit{"ms", 1e6}, Unit{"s", 1e9}};
  const auto value = with_unit(s, units);
  if (!value || !(*value >= 0) || *value > slowest_ns) return {};
  return Duration(std::llround(*value));
}

void GraphBuilder::complain(int line, const std::string& what, const std::string& right) {
  if (++complaints_ > most_listed) return;
  problems_.push_back({"graph", graph_.file + ':' + std::to_string(line) + ": " + what, right});
}

std::uint32_t GraphBuilder::vertex(std::string_view name, int line) {
  const auto [at, is_new] =
      by_name_.try_emplace(std::string(name), std::uint32_t(graph_.vertices.size()));
  if (is_new) {
    const auto wrong = [&](const char* what) {
      complain(line, in_quotes(name) + what, "another name");
    };
    if (name.empty())
      wrong(" is an empty name");
    else if (trimmed(name) != name)
      wrong(" begins or ends with a space");
    else if (name.size() > longest_name)
      wrong(" is a name of more than 255 bytes");
    else if (has_control(name))
      wrong(" has control characters in it");
    else if (!is_utf8(name))
      wrong(" is not UTF-8");
    else if (name.find(" -> ") != name.npos)
      wrong(" has the arrow in it that stands between the two ends of a link");
    graph_.vertices.push_back({std::string(name), {}, line});
  }
  return at->second;
}

std::optional<std::uint32_t> GraphBuilder::find(std::string_view name) const {
  const auto at = by_name_.find(std::string(name));
  if (at == by_name_.end()) return {};
  return at->second;
}

bool GraphBuilder::is_of_edges(std::string_view key) {
  for (const char* known : {"capacity_gbps", "capacity", "latency_us", "latency", "count"})
    if (key == known) return true;
  return false;
}

void GraphBuilder::set(GraphEdge& e, std::string_view key, std::string_view value, int line) {
  const std::string_view text = trimmed(value);
  const auto wrong = [&](const char* right) {
    complain(line, std::string(key) + " is " + in_quotes(text), right);
  };
  if (key == "capacity_gbps") {
    const auto gigabits = number_of(text);
    if (gigabits && *gigabits > 0 && *gigabits * 125e6 <= fastest)
      e.capacity = BytesPerSecond(*gigabits * 125e6);
    else
      wrong("a number of gigabits per second above zero, such as 400");
  } else if (key == "capacity") {
    e.capacity = rate_of(text);
    if (!e.capacity) wrong("a rate above zero with its unit, such as \"400 Gb/s\"");
  } else if (key == "latency_us") {
    const auto us = number_of(text);
    if (us && *us >= 0 && *us * 1e3 <= slowest_ns)
      e.latency = Duration(std::llround(*us * 1e3));
    else
      wrong("a number of microseconds, zero or more, such as 0.35");
  } else if (key == "latency") {
    e.latency = time_of(text);
    if (!e.latency) wrong("a time with its unit, zero or more, such as \"350 ns\"");
  } else if (key == "count") {
    const auto n = number_of(text);
    if (n && *n >= 1 && *n <= most_parallel && *n == std::floor(*n))
      e.count = static_cast<int>(*n);
    else
      wrong("a whole number of parallel cables, 1 to 100000");
  }
}

GraphFile GraphBuilder::finish() {
  if (complaints_ > most_listed)
    problems_.push_back({"graph",
                         graph_.file + ": " + std::to_string(complaints_ - most_listed) +
                             " more mistakes of this kind",
                         "a file without them"});
  return std::move(graph_);
}

}  // namespace trainyard::topologies
