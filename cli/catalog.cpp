#include "scenarios/catalog.hpp"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/options.hpp"

/// trainyard catalog [PART]: what scenarios can name, with the source of each figure.
namespace trainyard::cli {

using scenarios::Catalog;
using scenarios::Part;
using Json = nlohmann::ordered_json;

namespace {

const Usage& usage() {
  static const Usage table{.command = "catalog",
                           .arguments = "[PART] [OPTIONS]",
                           .what =
                               "Lists the parts that a scenario can name (GPUs, adapters, servers, "
                               "switches, models, software, calibrations), or all figures of "
                               "one part with range, how sure each is, and its source.",
                           .examples = {{"trainyard catalog", "the list"},
                                        {"trainyard catalog h100-sxm", "every figure of one part"}},
                           .options = {{"json", "", "print the parts as one JSON object"}},
                           .least = 0,
                           .most = 1};
  return table;
}

Json json_of(const Part& part) {
  Json figures = Json::array();
  for (const scenarios::Figure& f : part.figures)
    figures.push_back({{"key", f.key},
                       {"value", f.value},
                       {"low", f.low},
                       {"high", f.high},
                       {"prior", f.prior},
                       {"standard_error", f.standard_error},
                       {"rows", f.rows},
                       {"sure", f.sure},
                       {"source", f.source}});
  return {{"kind", part.kind}, {"name", part.name},           {"title", part.title},
          {"note", part.note}, {"retrieved", part.retrieved}, {"figures", figures}};
}

std::vector<const Part*> all_parts(const Catalog& catalog) {
  std::vector<const Part*> out;
  for (const std::string& kind : catalog.kinds())
    for (const std::string& name : catalog.names(kind)) out.push_back(catalog.find(kind, name));
  return out;
}

/// Of all kinds: a server and a GPU may share a name.
std::vector<const Part*> parts_named(const Catalog& catalog, const std::string& name) {
  std::vector<const Part*> out = all_parts(catalog);
  out.erase(std::remove_if(out.begin(), out.end(),
                           [&](const Part* part) {
                             return part->name != name && part->kind + '/' + part->name != name;
                           }),
            out.end());
  if (!out.empty()) return out;
  std::vector<std::string> names;
  for (const Part* part : all_parts(catalog)) names.push_back(part->name);
  const std::string near = scenarios::nearest(name, names);
  throw UsageError("there is no part '" + name + "'" +
                   (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace

Exit catalog_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const Catalog& catalog = Catalog::standard();
  const bool one = !args.positional.empty();
  const std::vector<const Part*> parts =
      one ? parts_named(catalog, args.positional[0]) : all_parts(catalog);
  if (args.has("json")) {
    Json list = Json::array();
    for (const Part* part : parts) list.push_back(json_of(*part));
    std::cout << Json{{"schema", "trainyard-catalog-1"}, {"parts", list}}.dump(2) << '\n';
  } else if (one) {
    for (const Part* part : parts) std::cout << catalog.table(*part);
  } else {
    std::cout << catalog.list();
  }
  return Exit::done;
}

}  // namespace trainyard::cli
