#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/json_tree.hpp"
#include "sim/problem.hpp"

/// How a scenario is put together, lowest layer first: the file named by "extends", the file
/// itself, then --set.
///
/// Merging is RFC 7396: objects merge key by key, anything else replaces, null takes away. Two
/// things are our own: null leaves a marker (so that the message about a required value names the
/// null), and an object on top of a text is laid over the catalog part of that name ("gpu":
/// "h100-sxm" with {"price": "25000 USD"} on top is that GPU at another price).
namespace trainyard::scenarios {

/// Lays `patch` over `target`.
void merge(Node& target, const Node& patch);

/// Lays `value` over what `path` ("cluster.fabric.routing") names. Objects that the path mentions
/// but that do not exist are made at `place` and marked `implied`, for the reader to judge. A
/// problem: the path cannot be followed; something of it may exist then.
std::optional<Problem> set_path(Node& root, const std::string& path, Node value,
                                const Place& place);

/// Applies "path=value" in order; the last one wins. The value is read as JSON, else taken as text.
void apply_overrides(Node& root, const std::vector<std::string>& overrides,
                     std::vector<Diagnostic>& diagnostics);

/// The file with all that it extends, relative to each file's own folder. Cycles and chains of more
/// than 16 are mistakes.
Node load_layers(const std::string& file, std::vector<Diagnostic>& diagnostics);
/// The same for a text at hand; "extends" in it is relative to the folder of `name`.
Node load_layers_of_text(const std::string& name, const std::string& text,
                         std::vector<Diagnostic>& diagnostics);

}  // namespace trainyard::scenarios
