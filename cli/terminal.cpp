#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace trainyard::cli {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Terminal terminal_of(int file) {
  Terminal out;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = environment(name);
    if (locale.empty()) continue;
    out.unicode =
        locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    break;
  }
  const std::string term = environment("TERM");
  out.interactive = isatty(file) == 1 && term != "dumb";
  out.colour = out.interactive && !term.empty() && environment("NO_COLOR").empty();
  winsize size{};
  if (out.interactive && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    out.width = std::clamp(int(size.ws_col), 40, 110);
  return out;
}

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::plain:
      return "";
    case Colour::bold:
      return "\033[1m";
    case Colour::dim:
      return "\033[2m";
    case Colour::red:
      return "\033[31m";
    case Colour::green:
      return "\033[32m";
    case Colour::yellow:
      return "\033[33m";
    case Colour::blue:
      return "\033[34m";
    case Colour::cyan:
      return "\033[36m";
  }
  return "";
}

std::string printed(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

Terminal stdout_terminal() {
  return terminal_of(STDOUT_FILENO);
}
Terminal stderr_terminal() {
  return terminal_of(STDERR_FILENO);
}

std::string painted(const Terminal& terminal, Colour colour, std::string_view text) {
  if (!terminal.colour || colour == Colour::plain) return std::string(text);
  return code_of(colour) + std::string(text) + "\033[0m";
}

std::string bar(const Terminal& terminal, double share, int columns) {
  share = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  std::string out;
  if (!terminal.unicode) return std::string(std::size_t(std::lround(share * columns)), '#');
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const long filled = std::lround(share * columns * 8);
  for (long i = 0; i < filled / 8; ++i) out += "█";
  return out + eighths[filled % 8];
}

std::size_t columns_of(std::string_view text) {
  return std::size_t(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

std::string left(std::string_view text, std::size_t columns) {
  const std::size_t used = columns_of(text);
  return std::string(text) + std::string(columns > used ? columns - used : 0, ' ');
}

std::string right(std::string_view text, std::size_t columns) {
  const std::size_t used = columns_of(text);
  return std::string(columns > used ? columns - used : 0, ' ') + std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> out;
  std::string line;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      out.push_back(line);
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  if (!line.empty()) out.push_back(line);
  return out;
}

std::string with_commas(std::int64_t n) {
  std::string out = std::to_string(n);
  const std::size_t sign = n < 0 ? 1 : 0;
  for (std::size_t i = out.size(); i > sign + 3;) {
    i -= 3;
    out.insert(i, 1, ',');
  }
  return out;
}

std::string short_number(double x) {
  static constexpr const char* magnitudes[] = {"", " k", " M", " G", " T", " P", " E"};
  if (!std::isfinite(x)) return printed("%g", x);
  std::size_t m = 0;
  // 999.5 would be printed as 1000, so it is already the next magnitude.
  while (std::abs(x) >= 999.5 && m + 1 < std::size(magnitudes)) {
    x /= 1000;
    ++m;
  }
  const double size = std::abs(x);
  if (m == 0 && x == std::round(x)) return printed("%.0f", x);
  return printed(size < 9.995 ? "%.2f" : size < 99.95 ? "%.1f" : "%.0f", x) + magnitudes[m];
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "-";
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  if (share < 1 && share >= 0.9995) return "> 99.9 %";
  return printed("%.1f %%", share * 100);
}

}  // namespace trainyard::cli
