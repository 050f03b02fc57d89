#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

/// Options of one command: the table that its parser and its --help are made from.
///
///     const Usage usage{.command = "flows", .arguments = "LINKS.csv FLOWS.csv", .least = 2, .most
///     = 2, …}; const Parsed args = parse(usage, arguments);     // throws UsageError if
///     (args.help) … args.value("output")                             // std::optional<std::string>
///
/// Values stay text here; whoever uses one converts it and says what is wrong with it.
/// (Program_options would accept "--seed -1" as 18446744073709551615.)
namespace trainyard::cli {

struct Option {
  std::string name;   // "output", or "output,o" with a short form
  std::string value;  // what to write for it, "FILE"; empty: a switch
  std::string help;
  bool repeatable = false;
};

struct Example {
  std::string line;
  std::string what;
};

struct Usage {
  std::string command;
  std::string arguments;          // "SCENARIO [OPTIONS]"
  std::string what;               // one or two sentences
  std::vector<Example> examples;  // shown first
  std::vector<Option> options;    // --help is added
  std::size_t least = 0;          // number of positional arguments
  std::size_t most = 0;
};

struct Parsed {
  bool help = false;
  std::vector<std::string> positional;
  std::map<std::string, std::vector<std::string>>
      given;  // by long name; a switch has one empty value

  bool has(const std::string& name) const { return given.count(name) != 0; }
  std::optional<std::string> value(const std::string& name) const;
  std::vector<std::string> values(const std::string& name) const;
};

/// Throws UsageError. With --help among the arguments nothing else is demanded.
Parsed parse(const Usage& usage, const Arguments& args);

std::string help_text(const Usage& usage, int width);

/// If help was asked for: prints it on stdout and returns true.
bool printed_help(const Usage& usage, const Parsed& args);

/// What a command says of itself when it is asked for help with these arguments; nothing is
/// printed. In the order in which it says it.
std::vector<Usage> usages_of(const Command& command, const Arguments& arguments = {"--help"});

/// A seed: decimal, 0 to 2^64 - 1, nothing else. Throws UsageError.
std::uint64_t parse_seed(const std::string& text);

}  // namespace trainyard::cli
