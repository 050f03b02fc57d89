#include <algorithm>
#include <cctype>
#include <iostream>

#include "cli/options.hpp"
#include "cli/version.hpp"

/// trainyard man: the manual page, made of the same tables as --help.
namespace trainyard::cli {
namespace {

const Usage& usage() {
  static const Usage table{
      .command = "man",
      .arguments = "",
      .what = "Prints the manual page: every command with its options and examples.",
      .examples = {{"trainyard man | man -l -", "to read it"},
                   {"trainyard man > /usr/local/share/man/man1/trainyard.1", "to keep it"}},
      .options = {},
      .least = 0,
      .most = 0};
  return table;
}

/// Text of a page: backslashes, leading dots and quotes mean something to troff, and its '-' is a
/// hyphen.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string section(const Usage& one) {
  std::string out = ".SS trainyard " + plain(one.command) + ' ' + plain(one.arguments) + "\n" +
                    plain(one.what) + '\n';
  for (const Option& option : one.options) {
    const std::size_t comma = option.name.find(',');
    std::string name = "--" + option.name.substr(0, comma);
    if (comma != std::string::npos) name = '-' + option.name.substr(comma + 1) + ", " + name;
    out += ".TP\n.B " + plain(name + (option.value.empty() ? "" : ' ' + option.value)) + '\n' +
           plain(option.help) + '\n';
  }
  for (const Example& example : one.examples)
    out += ".PP\n" + plain(example.what) + ":\n.br\n.B " + plain(example.line) + '\n';
  return out;
}

}  // namespace

Exit man_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  std::string out =
      ".TH TRAINYARD 1 \"\" \"trainyard " + plain(version()) +
      "\" \"User commands\"\n.SH NAME\ntrainyard \\- simulator of AI training "
      "clusters\n.SH SYNOPSIS\n.B trainyard\n.I COMMAND\n[\\fIARGUMENTS\\fR]\n"
      ".SH DESCRIPTION\nSimulates training jobs on a cluster over months: fabric, "
      "storage, failures, repair, checkpoints, power and cooling; says where the time "
      "went. Results go to standard output, messages and progress to standard error.\n"
      ".SH COMMANDS\n";
  for (const Command& command : commands())
    for (const Usage& one : usages_of(command)) out += section(one);
  out +=
      ".SH EXIT STATUS\n0 done, 1 failed, 2 usage or bad scenario, 3 an \\-\\-expect bound was "
      "missed, 130 interrupted with the files closed properly.\n";
  std::cout << out;
  return Exit::done;
}

}  // namespace trainyard::cli
