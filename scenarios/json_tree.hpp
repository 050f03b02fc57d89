#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/diagnostic.hpp"

/// A JSON document that remembers where each of its values stands: what the reader works on. The
/// grammar is nlohmann's (in json_tree.cpp alone); this tree adds the places, which survive merging
/// of files and overrides.
namespace trainyard::scenarios {

/// A text that values come from.
struct Source {
  enum class Kind { file, set };
  Kind kind = Kind::file;
  std::string name;  // the file as the user named it; "--set a.b=c"
  std::string text;
};

/// Where a value stands, and where its key does. A value of a catalog part has the place of the
/// user's reference to the part, and the part's name.
struct Place {
  std::shared_ptr<const Source> source;
  int line = 0, column = 0;
  int key_line = 0, key_column = 0;
  std::string part;

  /// "big.json:7", "--set", "catalog: h100-sxm", "default" when nobody wrote it.
  std::string origin() const;
  /// The user wrote it, in a file or by --set.
  bool is_written() const { return source && part.empty(); }
};

struct Member;

struct Node {
  enum class Kind { null, boolean, number, text, list, object };

  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0.0;
  std::string text;             // the text; of a number, as it was written
  std::vector<Node> items;      // of a list
  std::vector<Member> members;  // of an object, in the order of the file
  Place place;
  bool implied = false;  // an object that only a path of --set mentions

  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
  /// "7000", "\"fast\"", "true", "null", "a list", "an object".
  std::string as_found() const;

  static Node of_text(std::string text, Place place);
  static Node of_object(Place place);
};

struct Member {
  std::string key;
  Node value;
};

/// Most bytes of one scenario file, and most levels of nesting.
inline constexpr std::size_t max_file_bytes = 16u << 20;
inline constexpr int max_depth = 64;
/// No more mistakes than these are listed.
inline constexpr std::size_t max_diagnostics = 100;

/// Parses JSON with comments. Mistakes (syntax, duplicate keys, depth) are appended to
/// `diagnostics`; the result is then what was understood before the first syntax error.
Node parse_json(std::shared_ptr<const Source> source, std::vector<Diagnostic>& diagnostics);

/// The text of a file; null and a diagnostic if it cannot be read, is empty, binary or too large.
std::shared_ptr<const Source> load_source(const std::string& path,
                                          std::vector<Diagnostic>& diagnostics);

/// The same from a text that is at hand.
std::shared_ptr<const Source> make_source(std::string name, std::string text,
                                          std::vector<Diagnostic>& diagnostics);

/// A diagnostic at a place: at the key, or at the value.
enum class At { key, value };
Diagnostic diagnose(const Place& place, At at, std::string path, std::string what,
                    std::string right, std::string code);

}  // namespace trainyard::scenarios
