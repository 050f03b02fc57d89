#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/catalog.hpp"
#include "scenarios/diagnostic.hpp"
#include "scenarios/json_tree.hpp"
#include "scenarios/scenario.hpp"
#include "sim/problem.hpp"

/// Scenario files: text in, plain structs out, every mistake at once with its place.
///
///     const ReadResult read = read_scenario("big.json", {"cluster.spares=4"});
///     if (!read.ok()) std::cerr << to_text(read.diagnostics);
///     else run(read.scenario, …);
///
/// The form of the files: docs/guide/scenario-files.md. How a struct is read is said once, by its
/// describe() (sim/describe.hpp).
namespace trainyard::scenarios {

struct ReadResult {
  Scenario scenario;                    // usable only if ok()
  std::vector<Diagnostic> diagnostics;  // in the order of the file
  std::string
      resolved;  // the scenario as JSON, defaults filled in and parts expanded; empty unless ok()
  /// Of every value in `resolved`, and of whatever else the user wrote: "big.json:7", "catalog:
  /// h100-sxm", "default" or "--set". Keys are paths as in --set: "cluster.server.gpu.memory".
  std::map<std::string, std::string> origin;
  std::map<std::string, Place> places;  // of every path that has one; the root is ""

  bool ok() const { return diagnostics.empty(); }

  /// The place of a problem found later by a part that knows no files. `prefix` is the path of what
  /// the part was given
  /// ("jobs.llm"). A path that nobody wrote is reported at its nearest parent.
  Diagnostic locate(const Problem& problem, std::string_view prefix = "") const;

  /// The user wrote this value, in a file or by --set (not: a default, a figure of a part).
  bool is_written(std::string_view path) const;
};

ReadResult read_scenario(const std::filesystem::path& file,
                         const std::vector<std::string>& overrides = {},
                         const Catalog& catalog = Catalog::standard());

/// The same for a text at hand; `name` is what messages call it.
ReadResult read_scenario_text(const std::string& text, const std::string& name,
                              const std::vector<std::string>& overrides = {},
                              const Catalog& catalog = Catalog::standard());

/// The same from a tree that is put together already; `file` is what messages call it. Extends
/// nothing.
ReadResult read_scenario_tree(Node root, const std::string& file,
                              const std::vector<std::string>& overrides = {},
                              const Catalog& catalog = Catalog::standard());

/// A catalog part as its struct: T is GpuSpec, GpuCalibration, NicSpec, ServerSpec, SwitchSpec,
/// TransformerSpec or SoftwareSpec. None if there is no such part; `mistakes`, if given, says why.
template <class T>
std::optional<T> make_part(const Catalog& catalog, std::string_view name,
                           std::vector<Diagnostic>* mistakes = nullptr);

/// Reads a part of any kind by its struct, for the catalog's own test: figures that the struct does
/// not know, wrong units.
std::vector<Diagnostic> check_part(const Catalog& catalog, const Part& part);

/// What must hold between parts of the scenario: stores that jobs name, GPUs that jobs need. Part
/// of read_scenario.
Problems check_references(const Scenario& scenario, const ReadResult& read);

/// Settings that the user wrote but that cannot matter, each as "path: reason".
std::vector<std::string> settings_without_effect(const ReadResult& read);

}  // namespace trainyard::scenarios
