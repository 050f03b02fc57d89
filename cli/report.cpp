#include <filesystem>
#include <iostream>

#include "analysis/study_file.hpp"
#include "cli/files.hpp"
#include "cli/html_report.hpp"
#include "cli/options.hpp"

/// trainyard report RUN.h5|STUDY: one HTML file.
namespace trainyard::cli {
namespace {

const Usage& usage() {
  static const Usage table{
      .command = "report",
      .arguments = "RUN.h5|STUDY [-o FILE.html]",
      .what =
          "Writes one self-contained HTML file of a run or a study: the answer first, figures, "
          "where "
          "the time went, what would help, assumptions with their sources, the scenario.",
      .examples = {{"trainyard report quickstart.h5", "quickstart.html beside it"},
                   {"trainyard report out -o fabric.html", "of the study in the folder out"}},
      .options = {{"output,o", "FILE", "the file; default: the input's name with .html"},
                  {"figures", "FOLDER", "write the figures there, too, as SVG files"}},
      .least = 1,
      .most = 1};
  return table;
}

/// Every figure of the page as a file of its own: figure-1.svg, figure-2.svg, …
void write_figures(const std::string& html, const std::string& folder) {
  std::filesystem::create_directories(folder);
  std::size_t number = 0;
  for (std::size_t at = html.find("<svg"); at != std::string::npos;
       at = html.find("<svg", at + 1)) {
    const std::size_t end = html.find("</svg>", at);
    const std::string file = folder + "/figure-" + std::to_string(++number) + ".svg";
    write_file(file, html.substr(at, end + 6 - at) + '\n');
    std::cout << file << '\n';
  }
}

}  // namespace

Exit report_command(const Arguments& arguments) {
  namespace fs = std::filesystem;
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  std::string input = args.positional[0];
  if (!fs::exists(input)) throw Failure("there is no file or folder '" + input + "'");
  while (input.size() > 1 && input.back() == '/') input.pop_back();
  std::string html, file;
  if (fs::is_directory(input) || analysis::is_study_file(input)) {
    html = study_html(analysis::read_study(fs::is_directory(input) ? input + "/study.h5" : input));
    file = fs::is_directory(input) ? input + "/report.html"
                                   : fs::path(input).replace_extension(".html").string();
  } else {
    html = run_html(analysis::RunReader(input));
    file = fs::path(input).replace_extension(".html").string();
  }
  file = args.value("output").value_or(file);
  write_file(file, html);
  std::cout << file << '\n';
  if (const auto folder = args.value("figures")) write_figures(html, *folder);
  return Exit::done;
}

}  // namespace trainyard::cli
