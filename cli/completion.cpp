#include <algorithm>
#include <iostream>

#include "cli/options.hpp"

/// trainyard completion SHELL: a script made of the same tables as --help.
namespace trainyard::cli {
namespace {

const Usage& usage() {
  static const Usage table{
      .command = "completion",
      .arguments = "bash|zsh|fish",
      .what = "Prints a script that completes commands, options and files in a shell.",
      .examples = {{"source <(trainyard completion bash)", "in ~/.bashrc"},
                   {"trainyard completion fish > ~/.config/fish/completions/trainyard.fish",
                    "for good"}},
      .options = {},
      .least = 1,
      .most = 1};
  return table;
}

std::string long_name(const Option& option) {
  return option.name.substr(0, option.name.find(','));
}

std::string short_name(const Option& option) {
  const std::size_t comma = option.name.find(',');
  return comma == std::string::npos ? "" : option.name.substr(comma + 1);
}

/// Of all that the command says of itself, each once.
std::vector<Option> options_of(const Command& command) {
  std::vector<Option> out;
  for (const Usage& one : usages_of(command))
    for (const Option& option : one.options)
      if (std::none_of(out.begin(), out.end(),
                       [&](const Option& o) { return o.name == option.name; }))
        out.push_back(option);
  return out;
}

std::string bash_script() {
  std::string names, cases;
  for (const Command& command : commands()) {
    names += (names.empty() ? "" : " ") + std::string(command.name);
    std::string options;
    for (const Option& option : options_of(command)) {
      options += " --" + long_name(option);
      if (!short_name(option).empty()) options += " -" + short_name(option);
    }
    cases += "    " + std::string(command.name) + ") options=\"--help" + options + "\" ;;\n";
  }
  return "# Completion of trainyard for bash: source <(trainyard completion bash)\n"
         "_trainyard() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} options=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names +
         " --help --version\" -- \"$current\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  case $current in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _trainyard trainyard\n";
}

std::string fish_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

std::string fish_script() {
  std::string out = "# Completion of trainyard for fish\n";
  for (const Command& command : commands()) {
    out += "complete -c trainyard -n __fish_use_subcommand -f -a " + std::string(command.name) +
           " -d " + fish_text(command.summary) + '\n';
    for (const Option& option : options_of(command))
      out += "complete -c trainyard -n '__fish_seen_subcommand_from " + std::string(command.name) +
             "' -l " + long_name(option) +
             (short_name(option).empty() ? "" : " -s " + short_name(option)) +
             (option.value.empty() ? "" : " -r") + " -d " + fish_text(option.help) + '\n';
  }
  return out;
}

}  // namespace

Exit completion_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  const std::string& shell = args.positional[0];
  if (shell == "bash")
    std::cout << bash_script();
  else if (shell == "zsh")
    std::cout << "autoload -U +X bashcompinit && bashcompinit\n" << bash_script();
  else if (shell == "fish")
    std::cout << fish_script();
  else
    throw UsageError("there is no completion for '" + shell + "': bash, zsh or fish");
  return Exit::done;
}

}  // namespace trainyard::cli
