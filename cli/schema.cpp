#include "scenarios/schema.hpp"

#include <iostream>

#include "cli/files.hpp"
#include "cli/options.hpp"

/// trainyard schema: the JSON schema of scenario files.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "schema",
      .arguments = "[-o FILE]",
      .what =
          "Prints the JSON schema (draft-07) of scenario files. With \"$schema\": "
          "\"./trainyard.schema.json\" at its top, an "
          "editor completes and checks a scenario while it is written.",
      .examples = {{"trainyard schema -o trainyard.schema.json", "beside your scenarios"},
                   {"trainyard schema | less", "to read"}},
      .options = {{"output,o", "FILE", "write it there"}},
      .least = 0,
      .most = 0};
  return table;
}

}  // namespace

Exit schema_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::string schema = scenarios::scenario_schema();
  if (const auto file = args.value("output"))
    write_file(*file, schema);
  else
    std::cout << schema;
  return Exit::done;
}

}  // namespace trainyard::cli
