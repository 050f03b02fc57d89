#include "cli/collective_options.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <sstream>

#include "scenarios/diagnostic.hpp"
#include "scenarios/units_text.hpp"

namespace trainyard::cli {

using scenarios::SweepRequest;

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  if (text.empty() || text.back() == separator) out.emplace_back();
  return out;
}

/// A number that fills `text` to its end; what is left goes to `rest` if given.
double number_at_start(const std::string& text, const std::string& what, std::string* rest) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value) || (!rest && at != end))
    throw UsageError(what + ": '" + text + "' is not a number");
  if (rest) *rest = std::string(at, end);
  return value;
}

double size_in_bytes(const std::string& text) {
  std::string unit;
  const double value = number_at_start(text, "--bytes", &unit);
  if (unit.starts_with(' ')) unit.erase(0, 1);
  double factor = 0;
  constexpr std::array binary{"", "K", "M", "G", "T"};
  constexpr std::array decimal{"", "k", "M", "G", "T"};
  for (std::size_t i = 0; i < binary.size(); ++i) {
    if (unit == binary[i] || unit == std::string(binary[i]) + (i == 0 ? "B" : "iB"))
      factor = std::pow(1024.0, double(i));
    else if (i > 0 && unit == std::string(decimal[i]) + "B")
      factor = std::pow(1000.0, double(i));
  }
  const double bytes = value * factor;
  if (factor == 0 || !(bytes >= 1) || bytes > 1e18 || bytes != std::floor(bytes))
    throw UsageError("--bytes: '" + text +
                     "' is not a size; right: a whole number of bytes such as 8, "
                     "64K, 64KiB or 1GB");
  return bytes;
}

std::size_t whole(const std::string& option, const std::string& text, std::size_t least,
                  std::size_t most) {
  std::size_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || at != end || value < least || value > most)
    throw UsageError("--" + option + ": '" + text + "' is not a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most));
  return value;
}

std::size_t whole_option(const Parsed& args, const std::string& option, std::size_t absent,
                         std::size_t least, std::size_t most) {
  const auto text = args.value(option);
  return text ? whole(option, *text, least, most) : absent;
}

scenarios::SweepTraffic traffic(const std::string& option, const std::string& name) {
  if (const auto found = scenarios::traffic_of(name)) return *found;
  std::string all;
  for (const std::string& known : scenarios::traffic_names())
    all += (all.empty() ? "" : ", ") + known;
  throw UsageError("--" + option + ": there is no '" + name + "'; there is: " + all);
}

/// One of an enumeration's names, or nothing for "auto".
template <class E>
std::optional<E> name_or_auto(const Parsed& args, const std::string& option) {
  const auto text = args.value(option);
  if (!text || *text == "auto") return std::nullopt;
  std::string all = "auto";
  for (const auto& [value, name] : Names<E>::all) {
    if (name == *text) return value;
    all += ", " + std::string(name);
  }
  throw UsageError("--" + option + ": there is no '" + *text + "'; there is: " + all);
}

void read_competitors(const Parsed& args, SweepRequest& request) {
  constexpr std::size_t most_ranks = 10'000'000;
  for (const std::string& text : args.values("compete")) {
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() == 1) {
      request.compete += whole("compete", text, 0, 10'000);
      continue;
    }
    if (parts.size() != 3)
      throw UsageError("--compete: '" + text +
                       "' is neither a number of jobs nor KIND:BYTES:RANKS");
    request.competitors.push_back(
        {traffic("compete", parts[0]),
         size_in_bytes(parts[1]),
         {whole("compete", parts[2], 2, most_ranks), request.group.per_node}});
  }
}

void read_faults(const Parsed& args, SweepRequest& request) {
  for (const std::string& text : args.values("fail")) {
    const std::size_t at = text.rfind('=');
    if (at == std::string::npos) {
      request.faults.push_back({text, 0});
      continue;
    }
    const double factor = number_at_start(text.substr(at + 1), "--fail", nullptr);
    if (!(factor > 0 && factor <= 1))
      throw UsageError(
          "--fail: '" + text + "' leaves " + text.substr(at + 1) +
          " of the rate; right: above 0 and at most 1, or no '=' for a link that is down");
    request.faults.push_back({text.substr(0, at), factor});
  }
}

}  // namespace

std::vector<double> parse_sizes(const std::string& text) {
  std::vector<double> out;
  for (const std::string& item : split(text, ',')) {
    const std::vector<std::string> range = split(item, ':');
    if (range.size() > 3) throw UsageError("--bytes: '" + item + "' has more than from:to:factor");
    const double from = size_in_bytes(range[0]);
    const double to = range.size() > 1 ? size_in_bytes(range[1]) : from;
    const double factor = range.size() > 2 ? number_at_start(range[2], "--bytes", nullptr) : 2;
    if (to < from) throw UsageError("--bytes: '" + item + "' ends below its beginning");
    if (!(factor >= 1.01)) throw UsageError("--bytes: the factor of '" + item + "' is below 1.01");
    for (double bytes = from; bytes <= to * (1 + 1e-12); bytes = std::floor(bytes * factor)) {
      out.push_back(bytes);
      if (out.size() > 10'000) throw UsageError("--bytes: more than 10,000 sizes");
      if (std::floor(bytes * factor) <= bytes)
        throw UsageError("--bytes: the factor of '" + item + "' does not lead on from " +
                         std::to_string(std::int64_t(bytes)) + " bytes");
    }
  }
  return out;
}

std::vector<std::size_t> parse_servers(const std::string& text) {
  std::vector<std::size_t> out;
  const auto number = [&](std::string part) {
    if (part.starts_with("node-")) part.erase(0, 5);
    return whole("placement", part, 0, 10'000'000);
  };
  for (const std::string& item : split(text, ',')) {
    const std::size_t after_name = item.starts_with("node-") ? 5 : 0;
    const std::size_t dash = item.find('-', after_name);
    const std::size_t first = number(item.substr(0, dash));
    const std::size_t last = dash == std::string::npos ? first : number(item.substr(dash + 1));
    if (last < first) throw UsageError("--placement: '" + item + "' ends below its beginning");
    for (std::size_t s = first; s <= last; ++s) out.push_back(s);
  }
  return out;
}

SweepRequest sweep_request(const Parsed& args) {
  constexpr std::size_t most = 10'000'000;
  SweepRequest out;
  if (const auto kinds = args.value("kind")) {
    out.traffic.clear();
    for (const std::string& name : split(*kinds, ',')) out.traffic.push_back(traffic("kind", name));
  }
  out.bytes = parse_sizes(args.value("bytes").value_or("8:16G:2"));
  out.group = {whole_option(args, "ranks", 0, 2, most), whole_option(args, "per-node", 0, 1, 72)};
  const std::string placement = args.value("placement").value_or("packed");
  bool is_order = false;
  for (const auto& [order, name] : Names<scenarios::ServerOrder>::all) {
    if (name != placement) continue;
    out.order = order;
    is_order = true;
  }
  if (!is_order && placement.find_first_of("0123456789") != std::string::npos)
    out.servers = parse_servers(placement);
  else if (!is_order)
    throw UsageError(
        "--placement: '" + placement +
        "' is neither packed, spread nor random, nor a list of servers such as 0,3,8-11");
  out.algorithm = name_or_auto<models::CollectiveAlgorithm>(args, "algorithm");
  out.protocol = name_or_auto<models::Protocol>(args, "protocol");
  out.channels_per_nic = int(whole_option(args, "channels", 1, 1, 64));
  out.queue_pairs = int(whole_option(args, "queue-pairs", 0, 1, 256));
  read_competitors(args, out);
  read_faults(args, out);
  if (const auto loss = args.value("loss")) {
    out.loss_rate = number_at_start(*loss, "--loss", nullptr);
    if (!(out.loss_rate >= 0 && out.loss_rate <= 0.5))
      throw UsageError("--loss: '" + *loss + "' is not a probability from 0 to 0.5");
  }
  out.network_reduction = args.has("sharp");
  if (const auto floor = args.value("launch-floor")) {
    scenarios::UnitError error;
    const auto time = scenarios::parse_duration(*floor, error);
    if (!time) throw UsageError("--launch-floor: '" + *floor + "' " + error.what);
    out.launch_floor_s = to_seconds(*time);
  }
  if (const auto seed = args.value("seed")) out.seed = parse_seed(*seed);
  return out;
}

}  // namespace trainyard::cli
