#include "cli/options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <iostream>
#include <sstream>

#include "cli/terminal.hpp"
#include "scenarios/diagnostic.hpp"

namespace trainyard::cli {

namespace po = boost::program_options;

namespace {

std::string long_name(const Option& option) {
  return option.name.substr(0, option.name.find(','));
}

po::options_description describe(const Usage& usage, int width) {
  po::options_description out("Options", unsigned(width), unsigned(width) / 2);
  for (const Option& option : usage.options) {
    if (option.value.empty())
      out.add_options()(option.name.c_str(), option.help.c_str());
    else
      out.add_options()(option.name.c_str(),
                        po::value<std::vector<std::string>>()->value_name(option.value),
                        option.help.c_str());
  }
  out.add_options()("help,h", "this text");
  return out;
}

std::vector<std::string> long_names(const Usage& usage) {
  std::vector<std::string> out{"--help"};
  for (const Option& option : usage.options) out.push_back("--" + long_name(option));
  return out;
}

/// Program_options' own messages quote the option in several ways; ours say the same thing one way.
[[noreturn]] void fail(const Usage& usage, const po::error& error) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    std::string message = "there is no option '" + unknown->get_option_name() + "'";
    const std::string near = scenarios::nearest(unknown->get_option_name(), long_names(usage));
    if (!near.empty()) message += "; did you mean '" + near + "'?";
    throw UsageError(message);
  }
  if (const auto* syntax = dynamic_cast<const po::invalid_command_line_syntax*>(&error)) {
    if (syntax->kind() == po::invalid_syntax::missing_parameter)
      throw UsageError("option '" + syntax->get_option_name() + "' needs a value");
    if (syntax->kind() == po::invalid_syntax::extra_parameter)
      throw UsageError("option '" + syntax->get_option_name() + "' takes no value");
  }
  throw UsageError(error.what());
}

}  // namespace

std::optional<std::string> Parsed::value(const std::string& name) const {
  const auto found = given.find(name);
  if (found == given.end()) return std::nullopt;
  return found->second.back();
}

std::vector<std::string> Parsed::values(const std::string& name) const {
  const auto found = given.find(name);
  return found == given.end() ? std::vector<std::string>{} : found->second;
}

Parsed parse(const Usage& usage, const Arguments& args) {
  // Abbreviations are not guessed: "--se 3" would change its meaning when an option is added.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  const po::options_description described = describe(usage, 80);
  // Positional arguments are collected below; without this they would be an error.
  po::positional_options_description positional;
  positional.add(" positional", -1);
  po::options_description all;
  all.add(described);
  all.add_options()(" positional", po::value<std::vector<std::string>>(), "");

  Parsed out;
  try {
    const po::parsed_options parsed =
        po::command_line_parser(args).options(all).positional(positional).style(style).run();
    for (const po::option& option : parsed.options) {
      if (option.position_key >= 0) {
        out.positional.insert(out.positional.end(), option.value.begin(), option.value.end());
        continue;
      }
      auto& values = out.given[option.string_key];
      if (option.value.empty())
        values.emplace_back();
      else
        values.insert(values.end(), option.value.begin(), option.value.end());
    }
  } catch (const po::error& error) {
    fail(usage, error);
  }

  out.help = out.has("help");
  if (out.help) return out;
  for (const Option& option : usage.options)
    if (!option.repeatable && out.values(long_name(option)).size() > 1)
      throw UsageError("option '--" + long_name(option) + "' is given twice");
  if (out.positional.size() < usage.least)
    throw UsageError("too few arguments: expected " + usage.arguments);
  if (out.positional.size() > usage.most)
    throw UsageError("unexpected argument '" + out.positional[usage.most] + "'");
  return out;
}

std::string help_text(const Usage& usage, int width) {
  std::ostringstream out;
  std::size_t column = 0;
  for (const Example& example : usage.examples) column = std::max(column, example.line.size());
  out << "Examples:\n";
  for (const Example& example : usage.examples)
    out << "  " << example.line << std::string(column - example.line.size() + 2, ' ') << "# "
        << example.what << '\n';
  out << "\nUsage: trainyard " << usage.command << ' ' << usage.arguments << "\n\n";
  for (const std::string& line : wrapped(usage.what, std::size_t(width))) out << line << '\n';
  out << '\n' << describe(usage, width);
  return out.str();
}

namespace {
std::vector<Usage>* asked_for = nullptr;  // while usages_of() asks
}

bool printed_help(const Usage& usage, const Parsed& args) {
  if (!args.help) return false;
  if (asked_for != nullptr)
    asked_for->push_back(usage);
  else {
    static bool has_printed = false;  // some commands have two forms
    std::cout << (has_printed ? "\n" : "") << help_text(usage, stdout_terminal().width);
    has_printed = true;
  }
  return true;
}

std::vector<Usage> usages_of(const Command& command, const Arguments& arguments) {
  std::vector<Usage> out;
  asked_for = &out;
  command.run(arguments);
  asked_for = nullptr;
  return out;
}

std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc{} || stop != end)
    throw UsageError("--seed: expected a whole number from 0 to 18446744073709551615, found '" +
                     text + "'");
  return seed;
}

}  // namespace trainyard::cli
