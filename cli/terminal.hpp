#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What may be written where: width, colour and block characters of a stream, and numbers as people
/// read them.
namespace trainyard::cli {

struct Terminal {
  int width = 80;
  bool interactive = false;  // somebody is looking: a progress bar makes sense
  bool colour = false;       // interactive, TERM not "dumb", NO_COLOR unset or empty
  bool unicode = false;      // the locale is UTF-8
};

/// A file or a pipe gets 80 columns and no colour.
Terminal stdout_terminal();
Terminal stderr_terminal();

enum class Colour { plain, bold, dim, red, green, yellow, blue, cyan };

/// `text` in colour, or as it is.
std::string painted(const Terminal& terminal, Colour colour, std::string_view text);

/// A bar of `share` (0 to 1) of `columns` columns: eighths of a block, or '#' without Unicode. Not
/// padded.
std::string bar(const Terminal& terminal, double share, int columns);

/// Columns that UTF-8 text takes (one a code point: all that we print).
std::size_t columns_of(std::string_view text);

std::string left(std::string_view text, std::size_t columns);   // padded on the right
std::string right(std::string_view text, std::size_t columns);  // padded on the left

/// Words in lines of at most `width` columns.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// "16,384".
std::string with_commas(std::int64_t n);
/// Three significant digits with a magnitude: "950", "12.3 k", "21.2 M", "1.16 T".
std::string short_number(double x);
/// "93.7 %"; never "100.0 %" or "0.0 %" for what is not: those become "> 99.9 %" and "< 0.1 %".
std::string percent(double share);

}  // namespace trainyard::cli
