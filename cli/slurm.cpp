#include "cli/slurm.hpp"

#include <algorithm>
#include <cctype>

namespace trainyard::cli {
namespace {

/// Name for squeue: letters, digits, '-'.
std::string job_name(const std::string& name) {
  std::string out = "trainyard-";
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return out;
}

}  // namespace

std::string shell_word(const std::string& text) {
  const bool is_plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./=,:+").find(char(c)) != std::string_view::npos;
  });
  if (is_plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string slurm_script(const Arguments& arguments, const scenarios::StudyDesign& design,
                         const std::string& folder, std::size_t tasks) {
  // Everything that decides what is run, and nothing of how.
  std::string sweep = "trainyard sweep";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& a = arguments[i];
    const auto is = [&](std::string_view name) {
      return a == name || a.starts_with(std::string(name) + '=');
    };
    const bool has_value = a.find('=') == std::string::npos || a == "-o";
    if (is("--slurm") || is("--output") || is("--threads") || is("--progress") || a == "-o") {
      i += has_value ? 1 : 0;
      continue;
    }
    if (a == "--json" || a == "--resume") continue;
    sweep += ' ' + shell_word(a);
  }
  sweep += " -o " + shell_word(folder);
  int largest = 0;
  for (const auto& point : design.points)
    largest =
        std::max(largest, point.scenario.cluster.servers * point.scenario.cluster.server.gpus);
  // Measured: 0.3 GB for 16,384 GPUs on a hashed fabric and one thread.
  const int gigabytes = 2 + largest / 16384;
  const std::string n = std::to_string(tasks);
  return "#!/bin/bash\n"
         "# " +
         std::to_string(design.most_runs()) + " runs of the study " + shell_word(design.name) +
         " in " + n +
         " parts. Submit it with: sbatch THIS_FILE\n"
         "# and then, with the number that sbatch prints:\n"
         "#   sbatch --dependency=afterok:NUMBER --wrap=" +
         shell_word(sweep + " --merge") +
         "\n"
         "#SBATCH --job-name=" +
         job_name(design.name) +
         "\n"
         "#SBATCH --array=1-" +
         n +
         "\n"
         "#SBATCH --ntasks=1\n"
         "#SBATCH --cpus-per-task=4\n"
         "#SBATCH --mem-per-cpu=" +
         std::to_string(gigabytes) +
         "G\n"
         "#SBATCH --output=%x-%a.log\n"
         "set -eu\n"
         "exec " +
         sweep + " --shard \"$SLURM_ARRAY_TASK_ID/" + n +
         "\" --threads \"${SLURM_CPUS_PER_TASK:-1}\" "
         "--progress off\n";
}

}  // namespace trainyard::cli
