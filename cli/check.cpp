#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"
#include "cli/terminal.hpp"
#include "scenarios/check.hpp"

/// trainyard check SCENARIO: read and validate, without running.
namespace trainyard::cli {

using Json = nlohmann::ordered_json;

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "check",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "Reads a scenario and reports every mistake at once as file:line:column: error: path: "
          "what is wrong. "
          "--resolved prints it with every default filled in and the origin of each value; that "
          "text is a scenario too.",
      .examples = {{"trainyard check big.json", "is it right?"},
                   {"trainyard check big.json --resolved",
                    "what will be simulated, and where each value comes from"}},
      .options = {{"resolved", "", "print the resolved scenario with the origin of each value"},
                  {"set", "PATH=VALUE",
                   "override a value of the scenario; repeatable, the last one wins", true},
                  {"json", "",
                   "print {valid, diagnostics, warnings, no_effect, resolved, origin} as one JSON "
                   "object"}},
      .least = 1,
      .most = 1};
  return table;
}

using Origins = std::map<std::string, std::string>;

/// JSON text in which each plain value is followed by a comment with its origin.
void write_with_origins(std::string& out, const Json& value, const std::string& path,
                        const Origins& origins, std::size_t depth, bool last) {
  const std::string comma = last ? "" : ",";
  if (!value.is_object() || value.empty()) {
    const auto origin = origins.find(path);
    out += value.dump() + comma + (origin == origins.end() ? "" : "  // " + origin->second) + '\n';
    return;
  }
  out += "{\n";
  std::size_t left_over = value.size();
  for (const auto& [key, member] : value.items()) {
    out += std::string(2 * (depth + 1), ' ') + Json(key).dump() + ": ";
    write_with_origins(out, member, path.empty() ? key : path + '.' + key, origins, depth + 1,
                       --left_over == 0);
  }
  out += std::string(2 * depth, ' ') + '}' + comma + '\n';
}

Json json_of(const scenarios::ReadResult& read) {
  Json out;
  out["schema"] = "trainyard-check-1";
  out["valid"] = read.ok();
  out["diagnostics"] = Json::array();
  for (const scenarios::Diagnostic& d : read.diagnostics)
    out["diagnostics"].push_back({{"file", d.file},
                                  {"line", d.line},
                                  {"column", d.column},
                                  {"path", d.path},
                                  {"code", d.code},
                                  {"message", d.what},
                                  {"hint", d.right}});
  if (read.ok()) {
    out["warnings"] = scenarios::scenario_warnings(read.scenario);
    out["no_effect"] = scenarios::settings_without_effect(read);
    out["resolved"] = Json::parse(read.resolved);
    out["origin"] = read.origin;
  }
  return out;
}

std::string short_description(const scenarios::ReadResult& read, const std::string& file) {
  const scenarios::Scenario& s = read.scenario;
  std::string out = file + ": no mistakes. " + to_text(s.duration) + " on " +
                    with_commas(s.cluster.servers) + " servers with " +
                    with_commas(std::int64_t(s.cluster.servers) * s.cluster.server.gpus) + " GPUs";
  for (const auto& [name, job] : s.jobs)
    out += "; " + name + ": " + (job.model.name.empty() ? "a model" : job.model.name) + " on " +
           with_commas(job.gpus) + " GPUs";
  return out + ".\n";
}

}  // namespace

Exit check_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::string& file = args.positional[0];
  const scenarios::ReadResult read = scenarios::load_scenario(file, args.values("set"));
  if (args.has("json")) {
    std::cout << json_of(read).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (!read.ok()) {
    std::cerr << to_text(read.diagnostics);
  } else {
    std::string text;
    if (args.has("resolved"))
      write_with_origins(text, Json::parse(read.resolved), "", read.origin, 0, true);
    else
      text = short_description(read, file);
    std::cout << text;
    for (const std::string& warning : scenarios::scenario_warnings(read.scenario))
      std::cerr << file << ": warning: " << warning << '\n';
    for (const std::string& setting : scenarios::settings_without_effect(read))
      std::cerr << file << ": note: no effect: " << setting << '\n';
  }
  return read.ok() ? Exit::done : Exit::usage;
}

}  // namespace trainyard::cli
