#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard::scenarios {

/// One mistake in the user's input, with its place in the file. Printed as compilers do, so that
/// editors can jump:
///
///     big.json:7:15: error: jobs.llm.gpus: must be at least 1, found -1
///         7 |       "gpus": -1,
///           |               ^
///       hint: …
struct Diagnostic {
  std::string file;         // "--set path=value" for a mistake in an override
  int line = 0;             // 0: the place has no line (an override, a file that cannot be read)
  int column = 0;           // in characters, from 1
  std::string path;         // "jobs.llm.gpus"; empty for the file as a whole
  std::string what;         // what is wrong, with what was found
  std::string right;        // what would be right; may be empty when `what` says it
  std::string code;         // stable short name: "unknown-key", "out-of-range", …
  std::string source_line;  // the line of the file, for the caret

  std::string text() const;
};

/// All of them, one after the other, closed by a count.
std::string to_text(const std::vector<Diagnostic>& diagnostics);

/// The candidate nearest to `word` by edit distance (a swap of neighbours counts one, case does not
/// count), if it is near enough to be a slip of the finger; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Text in quotes for a message: control characters shown as '?', cut after 60 characters.
std::string in_quotes(std::string_view text);

}  // namespace trainyard::scenarios
