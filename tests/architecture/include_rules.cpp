#include "tests/architecture/include_rules.hpp"

#include <algorithm>
#include <cctype>

namespace trainyard::architecture {

namespace {

using Names = std::vector<std::string_view>;

struct Folder {
  std::string_view name;
  Names may_include;
  std::string_view sentence;
};

const std::vector<Folder>& folders() {
  static const std::vector<Folder> table{
      {"sim",
       {"sim"},
       "sim includes the standard library only: it knows no GPU, no file format and no screen"},
      {"topologies",
       {"sim", "topologies"},
       "topologies may include sim only: it knows nothing that moves"},
      {"models", {"sim", "topologies", "models"}, "models may include sim and topologies only"},
      {"analysis",
       {"sim", "analysis"},
       "analysis may include sim only: run files describe themselves, it knows no model"},
      {"scenarios",
       {"sim", "topologies", "models", "analysis", "scenarios"},
       "scenarios may include sim, topologies, models and analysis, but no front end"},
      {"cli",
       {"sim", "topologies", "models", "analysis", "scenarios", "cli"},
       "cli may include everything but gui and tests"},
      {"gui",
       {"sim", "analysis", "gui"},
       "gui may include analysis and sim only: it starts a run as a process of its own and opens "
       "its file"},
  };
  return table;
}

struct Library {
  std::string_view name;
  bool (*is_it)(std::string_view target);
  bool (*may_include)(std::string_view file);
  std::string_view sentence;
};

bool is_source(std::string_view file) {
  return file.ends_with(".cpp");
}
bool is_in(std::string_view file, std::string_view folder) {
  return file.size() > folder.size() && file.starts_with(folder) && file[folder.size()] == '/';
}

const std::vector<Library>& libraries() {
  static const std::vector<Library> table{
      {"Qt",
       [](std::string_view t) {
         return t.size() > 1 && t[0] == 'Q' &&
                (t[1] == 't' || std::isupper(static_cast<unsigned char>(t[1])));
       },
       [](std::string_view f) { return is_in(f, "gui"); }, "Qt is included in gui only"},
      {"JSON, declared", [](std::string_view t) { return t == "nlohmann/json_fwd.hpp"; },
       [](std::string_view f) { return is_in(f, "scenarios") || is_in(f, "cli"); },
       "JSON is declared in scenarios and cli only"},
      {"JSON",
       [](std::string_view t) {
         return t.starts_with("nlohmann/") && t != "nlohmann/json_fwd.hpp";
       },
       [](std::string_view f) {
         return is_source(f) && (is_in(f, "scenarios") || is_in(f, "cli"));
       },
       "JSON is included in .cpp files of scenarios and cli only"},
      {"HDF5", [](std::string_view t) { return t.starts_with("hdf5") || t.starts_with("H5"); },
       [](std::string_view f) { return is_in(f, "analysis"); },
       "HDF5 is included in analysis only"},
      {"Random123", [](std::string_view t) { return t.starts_with("Random123/"); },
       [](std::string_view f) { return f == "sim/random.cpp"; },
       "Random123 is included in sim/random.cpp only"},
      {"Boost", [](std::string_view t) { return t.starts_with("boost/"); }, is_source,
       "Boost is included in .cpp files only: it costs seconds of compilation a file"},
      {"Eigen", [](std::string_view t) { return t.starts_with("Eigen/"); }, is_source,
       "Eigen is included in .cpp files only: it costs seconds of compilation a file"},
  };
  return table;
}

/// "models/network/max_min.hpp" -> "network"; empty for models/catalog.hpp, which knows all of
/// them.
std::string_view model_folder(std::string_view path) {
  if (!is_in(path, "models")) return {};
  path.remove_prefix(std::string_view("models/").size());
  const std::size_t slash = path.find('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

/// A sub-folder of models stands on those before it in this list, as in models/CMakeLists.txt.
constexpr std::string_view model_folders[] = {"compute",  "network",    "storage", "facility",
                                              "failures", "scheduling", "training"};

bool stands_on(std::string_view from, std::string_view to) {
  const auto rank = [](std::string_view f) {
    return std::find(std::begin(model_folders), std::end(model_folders), f);
  };
  return rank(to) <= rank(from) && rank(from) != std::end(model_folders);
}

/// <vector> or <cstdint>: no folder and no extension.
bool is_standard(std::string_view target) {
  return target.find_first_of("./") == std::string_view::npos;
}

}  // namespace

std::vector<Include> includes_of(std::string_view text) {
  std::vector<Include> out;
  int line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    const auto skip_spaces = [&] {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    };
    skip_spaces();
    if (!rest.starts_with('#')) continue;
    rest.remove_prefix(1);
    skip_spaces();
    if (!rest.starts_with("include")) continue;
    rest.remove_prefix(std::string_view("include").size());
    skip_spaces();
    if (rest.empty() || (rest[0] != '<' && rest[0] != '"')) continue;
    const std::size_t close = rest.find(rest[0] == '<' ? '>' : '"', 1);
    if (close != std::string_view::npos)
      out.push_back({std::string(rest.substr(1, close - 1)), line});
  }
  return out;
}

std::vector<std::string> broken_rules(std::string_view file, std::string_view target) {
  std::vector<std::string> out;
  const auto home = std::find_if(folders().begin(), folders().end(),
                                 [&](const Folder& f) { return is_in(file, f.name); });
  if (home == folders().end()) return out;  // tests and benchmarks see everything

  if (is_in(target, "tests")) out.emplace_back("the product never includes its tests");
  const auto goal = std::find_if(folders().begin(), folders().end(),
                                 [&](const Folder& f) { return is_in(target, f.name); });
  if (goal != folders().end()) {
    if (std::find(home->may_include.begin(), home->may_include.end(), goal->name) ==
        home->may_include.end())
      out.emplace_back(home->sentence);
    const std::string_view from = model_folder(file), to = model_folder(target);
    // The ledger is where all models account for time; it knows none of them.
    if (!from.empty() && !to.empty() && !stands_on(from, to) &&
        target != "models/training/ledger.hpp")
      out.emplace_back(
          "models stand on one another in the order compute, network, storage, facility, failures, "
          "scheduling, training");
    return out;
  }

  const auto library = std::find_if(libraries().begin(), libraries().end(),
                                    [&](const Library& l) { return l.is_it(target); });
  if (library != libraries().end() && !library->may_include(file))
    out.emplace_back(library->sentence);
  const bool may_know_libraries =
      home->name != "sim" || (library != libraries().end() && library->name == "Random123");
  if (!may_know_libraries && !is_standard(target)) out.emplace_back(home->sentence);
  return out;
}

}  // namespace trainyard::architecture
