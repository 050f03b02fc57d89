#include "scenarios/units_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "scenarios/diagnostic.hpp"

namespace trainyard::scenarios {
namespace {

/// One unit = times * 2^shift * 10^power base units.
struct Unit {
  std::string name;
  Dimension dimension;
  int power = 0;
  int shift = 0;
  std::int64_t times = 1;
  bool printed = true;  // used in output
};

struct Kind {
  Dimension dimension;
  std::string_view noun;      // "is a rate"
  std::string_view expected;  // "a rate such as …"
};

constexpr std::array kinds{
    Kind{Dimension::bytes, "a size", "a size such as \"80 GiB\""},
    Kind{Dimension::rate, "a rate", "a rate such as \"7 GB/s\""},
    Kind{Dimension::flops, "a number of FLOPs", "a number of FLOPs such as \"4.2 ZFLOP\""},
    Kind{Dimension::flop_rate, "a compute rate", "a compute rate such as \"989 TFLOP/s\""},
    Kind{Dimension::power, "a power", "a power such as \"700 W\""},
    Kind{Dimension::apparent, "an apparent power", "an apparent power such as \"2500 kVA\""},
    Kind{Dimension::voltage, "a voltage", "a voltage such as \"400 V\""},
    Kind{Dimension::current, "a current", "a current such as \"32 A\""},
    Kind{Dimension::energy, "an energy", "an energy such as \"2 kWh\""},
    Kind{Dimension::money, "a price", "a price such as \"36000 USD\""},
    Kind{Dimension::frequency, "a frequency", "a frequency such as \"0.5 /h\""},
    Kind{Dimension::time, "a time", "a time such as \"30 min\""},
};

const Kind& kind_of(Dimension d) {
  return *std::find_if(kinds.begin(), kinds.end(), [d](const Kind& k) { return k.dimension == d; });
}

std::vector<Unit> make_units() {
  struct Prefix {
    std::string_view name;
    int power;
  };
  constexpr Prefix decimal[] = {{"", 0},   {"k", 3},  {"M", 6},  {"G", 9}, {"T", 12},
                                {"P", 15}, {"E", 18}, {"Z", 21}, {"Y", 24}};
  struct Binary {
    std::string_view name;
    int shift;
  };
  constexpr Binary binary[] = {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}};
  std::vector<Unit> units;
  for (const auto& [p, power] : decimal) {
    const std::string prefix(p);
    if (power <= 18) {
      units.push_back({prefix + "B", Dimension::bytes, power});
      units.push_back({prefix + "B/s", Dimension::rate, power});
      units.push_back({prefix + "b", Dimension::bytes, power, -3, 1, false});
      units.push_back({prefix + "b/s", Dimension::rate, power, -3, 1, false});
    }
    units.push_back({prefix + "FLOP", Dimension::flops, power});
    units.push_back({prefix + "FLOP/s", Dimension::flop_rate, power});
    if (power <= 9) {
      units.push_back({prefix + "W", Dimension::power, power});
      units.push_back({prefix + "VA", Dimension::apparent, power});
      units.push_back({prefix + "V", Dimension::voltage, power});
      units.push_back({prefix + "A", Dimension::current, power});
      units.push_back({prefix + "J", Dimension::energy, power});
      units.push_back({prefix + "Wh", Dimension::energy, power, 0, 3600, false});
      units.push_back({prefix + "USD", Dimension::money, power, 0, 1, power == 0});
    }
  }
  for (const auto& [p, shift] : binary) {
    units.push_back({std::string(p) + "B", Dimension::bytes, 0, shift});
    units.push_back({std::string(p) + "B/s", Dimension::rate, 0, shift});
  }
  units.push_back({"/s", Dimension::frequency});
  // A time's base unit is the nanosecond here.
  units.push_back({"ns", Dimension::time, 0});
  units.push_back({"us", Dimension::time, 3});
  units.push_back({"ms", Dimension::time, 6});
  units.push_back({"s", Dimension::time, 9});
  units.push_back({"min", Dimension::time, 9, 0, 60});
  units.push_back({"h", Dimension::time, 9, 0, 3600});
  units.push_back({"d", Dimension::time, 9, 0, 86400});
  return units;
}

const std::vector<Unit>& units() {
  static const std::vector<Unit> table = make_units();
  return table;
}

/// Frequencies per something longer than a second divide instead of multiplying.
std::optional<double> frequency_divisor(std::string_view unit) {
  if (unit == "/min") return 60.0;
  if (unit == "/h") return 3600.0;
  if (unit == "/d") return 86400.0;
  return std::nullopt;
}

/// Spellings that people bring along, with ours.
std::string usual_spelling(std::string_view unit) {
  struct Alias {
    std::string_view theirs, ours;
  };
  static constexpr Alias aliases[] = {
      {"sec", "s"},   {"secs", "s"},      {"second", "s"},     {"seconds", "s"},
      {"m", "min"},   {"mins", "min"},    {"minute", "min"},   {"minutes", "min"},
      {"hr", "h"},    {"hrs", "h"},       {"hour", "h"},       {"hours", "h"},
      {"day", "d"},   {"days", "d"},      {"\xC2\xB5s", "us"}, {"\xCE\xBCs", "us"},
      {"usec", "us"}, {"msec", "ms"},     {"nsec", "ns"},      {"K", "kB"},
      {"$", "USD"},   {"dollars", "USD"}, {"watts", "W"},      {"bytes", "B"},
      {"bits", "b"},  {"KB", "kB"},       {"KB/s", "kB/s"},    {"Kb/s", "kb/s"},
      {"Kb", "kb"},   {"Hz", "/s"},       {"IOPS", "/s"},      {"1/s", "/s"}};
  for (const auto& [theirs, ours] : aliases)
    if (unit == theirs) return std::string(ours);
  std::string word(unit);
  const auto ends = [&](std::string_view tail, std::string_view instead) {
    if (!word.ends_with(tail)) return false;
    word = word.substr(0, word.size() - tail.size()) + std::string(instead);
    return true;
  };
  // Gbps, Gbit/s, Gbit, GBps, GB/sec, TFLOPS, TFLOPs, TFlops, TFLOPs/s
  ends("/sec", "/s") || ends("bps", "b/s") || ends("Bps", "B/s") || ends("bits/s", "b/s") ||
      ends("bit/s", "b/s") || ends("bits", "b") || ends("bit", "b") || ends("FLOPS", "FLOP/s") ||
      ends("FLOPs/s", "FLOP/s") || ends("FLOPs", "FLOP/s") || ends("Flops", "FLOP/s") ||
      ends("flops", "FLOP/s") || ends("Flop/s", "FLOP/s") || ends("flop/s", "FLOP/s");
  return word;
}

const Unit* find_unit(std::string_view name) {
  for (const Unit& u : units())
    if (u.name == name) return &u;
  return nullptr;
}

/// A decimal number at the start of a text: sign, digits, fraction, exponent. Empty if there is
/// none.
std::string_view leading_number(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    return i - start;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
  const std::size_t whole = digits();
  std::size_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    fraction = digits();
  }
  if (whole + fraction == 0) return {};
  const std::size_t mantissa = i;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) i = mantissa;  // "1 EB", not an exponent
  }
  return text.substr(0, i);
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

void drop_trailing_spaces(std::string_view& text) {
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
}

/// number * 10^power, correctly rounded: the power joins the text's exponent before it becomes
/// binary.
std::optional<double> scaled(std::string_view number, int power) {
  if (number.starts_with('+')) number.remove_prefix(1);
  const std::size_t e = number.find_first_of("eE");
  long exponent = power;
  if (e != std::string_view::npos) {
    std::string_view digits = number.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    long written = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), written).ec != std::errc{})
      return std::nullopt;
    if (written > 100000 || written < -100000) return std::nullopt;
    exponent += written;
  }
  const std::string text = std::string(number.substr(0, e)) + "e" + std::to_string(exponent);
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return value;
}

UnitError no_number(std::string_view text, Dimension want) {
  return {"expected " + expected(want) + ", found " + in_quotes(text),
          text.empty() ? "" : "write a plain number, then a unit"};
}

/// The message for a unit that is not of this dimension.
UnitError wrong_unit(std::string_view text, std::string_view number, std::string_view unit,
                     Dimension want) {
  if (unit.empty())
    return {"expected " + expected(want) + ", found " + in_quotes(text) + ", which has no unit",
            ""};
  const Unit* other = find_unit(unit);
  if (other || frequency_divisor(unit)) {
    const Dimension d = other ? other->dimension : Dimension::frequency;
    return {"expected " + expected(want) + ", found " + in_quotes(text) + ", which is " +
                std::string(kind_of(d).noun),
            ""};
  }
  UnitError error{"expected " + expected(want) + ", found " + in_quotes(text) + ", whose unit " +
                      in_quotes(unit) + " is unknown",
                  ""};
  if (unit == "y" || unit == "yr" || unit == "year" || unit == "years" || unit == "w" ||
      unit == "week" || unit == "weeks") {
    error.right = "count in days: \"365 d\"";
    return error;
  }
  std::vector<std::string> same, rest;
  for (const Unit& u : units()) (u.dimension == want ? same : rest).push_back(u.name);
  const std::string usual = usual_spelling(unit);
  std::string ours;
  if (find_unit(usual))
    ours = usual;
  else if (unit.size() <= 16)
    ours = nearest(unit, same);
  if (!ours.empty()) {
    error.right = "did you mean " + in_quotes(std::string(number) + " " + ours) + "?";
  } else {
    error.right = "units:";
    for (std::size_t i = 0; i < same.size(); ++i) error.right += (i ? ", " : " ") + same[i];
  }
  return error;
}

/// Decimal digits and exponent of a value: value = 0.d1d2d3… * 10^exponent, the shortest that reads
/// back.
struct Digits {
  bool negative = false;
  std::string digits;
  int exponent = 0;
};

Digits shortest(double value) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  Digits out;
  out.negative = text.starts_with('-');
  if (out.negative) text.remove_prefix(1);
  const std::size_t e = text.find('e');
  for (const char c : text.substr(0, e))
    if (c != '.') out.digits += c;
  std::string_view exponent = text.substr(e + 1);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), out.exponent);
  out.exponent += 1;
  return out;
}

/// Plain decimal notation of the digits shifted down by `power`; empty when it would need a long
/// row of zeros.
std::string plain(const Digits& d, int power) {
  const int point = d.exponent - power;
  const int count = static_cast<int>(d.digits.size());
  if (point < -4 || point > count + 6) return {};
  std::string out = d.negative ? "-" : "";
  if (point <= 0)
    out += "0." + std::string(static_cast<std::size_t>(-point), '0') + d.digits;
  else if (point >= count)
    out += d.digits + std::string(static_cast<std::size_t>(point - count), '0');
  else
    out += d.digits.substr(0, static_cast<std::size_t>(point)) + "." +
           d.digits.substr(static_cast<std::size_t>(point));
  return out;
}

}  // namespace

std::string expected(Dimension dimension) {
  return std::string(kind_of(dimension).expected);
}

std::optional<double> parse_quantity(std::string_view text, Dimension want, UnitError& error) {
  std::string_view rest = text;
  skip_spaces(rest);
  drop_trailing_spaces(rest);
  const std::string_view number = leading_number(rest);
  if (number.empty()) {
    error = no_number(text, want);
    return std::nullopt;
  }
  rest.remove_prefix(number.size());
  skip_spaces(rest);
  const auto divisor = want == Dimension::frequency ? frequency_divisor(rest) : std::nullopt;
  const Unit* unit = find_unit(rest);
  if (!divisor && (!unit || unit->dimension != want)) {
    error = wrong_unit(text, number, rest, want);
    return std::nullopt;
  }
  std::optional<double> value = scaled(number, unit ? unit->power : 0);
  if (value && divisor) value = *value / *divisor;
  if (value && unit) value = std::ldexp(*value * static_cast<double>(unit->times), unit->shift);
  if (!value || !std::isfinite(*value)) {
    error = {"the number in " + in_quotes(text) + " is out of range",
             "values reach up to 1.8e308 in base units"};
    return std::nullopt;
  }
  return value;
}

std::optional<Duration> parse_duration(std::string_view text, UnitError& error) {
  using Wide = __int128;
  constexpr Wide longest = std::numeric_limits<std::int64_t>::max();
  std::string_view rest = text;
  skip_spaces(rest);
  drop_trailing_spaces(rest);
  Wide total = 0;
  Wide last_unit = longest;
  bool first = true, negative = false;
  do {
    const std::string_view number = leading_number(rest);
    if (number.empty()) {
      error = no_number(text, Dimension::time);
      return std::nullopt;
    }
    rest.remove_prefix(number.size());
    skip_spaces(rest);
    const std::string_view word = rest.substr(0, rest.find(' '));
    const Unit* unit = find_unit(word);
    if (!unit || unit->dimension != Dimension::time) {
      error = wrong_unit(text, number, first ? rest : word, Dimension::time);
      return std::nullopt;
    }
    rest.remove_prefix(word.size());
    skip_spaces(rest);
    const bool minus = number.starts_with('-');
    if (!first && (minus || negative)) {
      error = {"expected " + expected(Dimension::time) + ", found " + in_quotes(text),
               "a time of several units has no sign"};
      return std::nullopt;
    }
    negative = minus;

    // digits * 10^exponent * times nanoseconds, in integers: "0.1 min" is exactly 6000000000 ns.
    Wide digits = 0;
    long exponent = unit->power;
    bool too_long = false, in_fraction = false;
    const std::string_view mantissa = number.substr(0, number.find_first_of("eE"));
    for (const char c : mantissa) {
      if (c == '.') in_fraction = true;
      if (c < '0' || c > '9') continue;
      digits = digits * 10 + (c - '0');
      if (in_fraction) --exponent;
      if (digits > longest) too_long = true, digits = longest;
    }
    if (mantissa.size() < number.size()) {
      std::string_view written = number.substr(mantissa.size() + 1);
      if (written.starts_with('+')) written.remove_prefix(1);
      long e = 0;
      if (std::from_chars(written.data(), written.data() + written.size(), e).ec != std::errc{})
        too_long = true;
      exponent += std::clamp(e, -100000L, 100000L);
    }
    Wide one = unit->times;
    for (int i = 0; i < unit->power; ++i) one *= 10;
    if (one >= last_unit) {
      error = {"expected " + expected(Dimension::time) + ", found " + in_quotes(text),
               "units go from the largest to the smallest: \"3 d 2 h\""};
      return std::nullopt;
    }
    last_unit = one;
    Wide ns = digits * unit->times;
    if (ns != 0) {
      for (; exponent > 0 && ns <= longest; --exponent) ns *= 10;
      Wide divisor = 1;
      for (; exponent < 0 && divisor <= ns; ++exponent) divisor *= 10;
      if (exponent < 0 || (divisor > ns)) {
        error = {"the time " + in_quotes(text) + " is below one nanosecond",
                 "the clock counts whole nanoseconds: the least is \"1 ns\""};
        return std::nullopt;
      }
      ns = (ns + divisor - 1) / divisor;  // nothing finishes early
    }
    total += ns;
    if (too_long || total > longest) {
      error = {too_long
                   ? "the number in " + in_quotes(text) + " has too many digits or is too large"
                   : "the time " + in_quotes(text) + " is too long",
               "times reach up to 292 years (106751 d) in at most 18 digits"};
      return std::nullopt;
    }
    first = false;
  } while (!rest.empty());
  return Duration(static_cast<std::int64_t>(negative ? -total : total));
}

std::string to_exact_text(double value, Dimension dimension) {
  const Digits digits = shortest(value);
  std::string best;
  std::size_t best_cost = std::numeric_limits<std::size_t>::max();
  std::string base;
  for (const Unit& unit : units()) {
    if (unit.dimension != dimension || !unit.printed || unit.times != 1) continue;
    if (unit.power == 0 && unit.shift == 0) base = unit.name;
    if (value == 0.0 && (unit.power != 0 || unit.shift != 0)) continue;
    const std::string number = unit.shift == 0 ? plain(digits, unit.power)
                                               : plain(shortest(std::ldexp(value, -unit.shift)), 0);
    if (number.empty()) continue;
    const double size = std::abs(std::ldexp(value, -unit.shift)) / std::pow(10.0, unit.power);
    // Shortest wins; then 3.35 TB/s before 3350 GB/s, and decimal prefixes before binary ones.
    const std::size_t cost = (number.size() + unit.name.size()) * 4 +
                             (size >= 1.0 && size < 1000.0 ? 0 : 2) + (unit.shift == 0 ? 0 : 1);
    if (cost < best_cost) {
      best_cost = cost;
      best = number + " " + unit.name;
    }
  }
  if (!best.empty()) return best;
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end) + " " + base;
}

std::string to_exact_text(Duration duration) {
  const std::int64_t ns = duration.count();
  if (ns == 0) return "0 s";
  const std::uint64_t size =
      ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  struct Step {
    std::string_view name;
    std::uint64_t one;
  };
  constexpr Step steps[] = {{"d", 86'400'000'000'000},
                            {"h", 3'600'000'000'000},
                            {"min", 60'000'000'000},
                            {"s", 1'000'000'000},
                            {"ms", 1'000'000},
                            {"us", 1000},
                            {"ns", 1}};
  for (const auto& [name, one] : steps) {
    if (size < one) continue;
    // The largest unit that needs at most three decimals.
    const std::uint64_t whole = size / one, rest = size % one;
    if (one > 1 && rest % (one >= 1000 ? one / 1000 : 1) != 0) continue;
    std::string out = (ns < 0 ? "-" : "") + std::to_string(whole);
    if (rest != 0) {
      std::string decimals = std::to_string(rest / (one / 1000));
      decimals.insert(0, 3 - decimals.size(), '0');
      while (decimals.back() == '0') decimals.pop_back();
      out += "." + decimals;
    }
    return out + " " + std::string(name);
  }
  return std::to_string(ns) + " ns";
}

}  // namespace trainyard::scenarios
