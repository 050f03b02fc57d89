#include "scenarios/diagnostic.hpp"

#include <algorithm>
#include <cctype>

namespace trainyard::scenarios {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

/// Bytes of the well-formed UTF-8 character at the start of a text; 0 if there is none.
std::size_t character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead < 0x80                   ? 1
                           : lead >= 0xC2 && lead < 0xE0 ? 2
                           : lead >= 0xE0 && lead < 0xF0 ? 3
                           : lead >= 0xF0 && lead < 0xF5 ? 4
                                                         : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if (!is_continuation(text[i])) return 0;
  return size;
}

/// What a terminal may show of foreign bytes.
std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character(text);
    const auto u = static_cast<unsigned char>(text[0]);
    if (text[0] == '\t')
      out += ' ';
    else if (size == 0 || u < 0x20 || u == 0x7f)
      out += '?';
    else
      out += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

/// The first `n` characters (not bytes) of a text, and the rest.
std::size_t bytes_of(std::string_view text, std::size_t n) {
  std::size_t i = 0;
  while (i < text.size() && n > 0) {
    ++i;
    while (i < text.size() && is_continuation(text[i])) ++i;
    --n;
  }
  return i;
}

/// Optimal string alignment: insertions, deletions, replacements, swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] =
          std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (c == '_' || c == ' ') c = '-';  // gpu_count, gpu-count: the same slip everywhere
  }
  return out;
}

}  // namespace

std::string Diagnostic::text() const {
  std::string out = file;
  if (line > 0) out += ":" + std::to_string(line) + ":" + std::to_string(column);
  out += ": error: ";
  if (!path.empty()) out += printable(path) + ": ";
  out += what + "\n";
  if (line > 0 && !source_line.empty()) {
    // A window of the line around the caret: machine-written files have very long lines.
    constexpr std::size_t window = 110;
    std::size_t caret = static_cast<std::size_t>(std::max(column - 1, 0));
    std::string shown = source_line;
    if (caret > window - 20) {
      const std::size_t skip = caret - window / 2;
      shown = "..." + shown.substr(bytes_of(shown, skip));
      caret = caret - skip + 3;
    }
    const std::size_t keep = bytes_of(shown, window);
    if (keep < shown.size()) shown = shown.substr(0, keep) + "...";
    const std::string number = std::to_string(line);
    const std::string margin(std::max<std::size_t>(5, number.size()), ' ');
    out += margin.substr(number.size()) + number + " | " + printable(shown) + "\n";
    out += margin + " | " + std::string(caret, ' ') + "^\n";
  }
  if (!right.empty()) out += "  hint: " + right + "\n";
  return out;
}

std::string to_text(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& d : diagnostics) out += d.text();
  if (!diagnostics.empty())
    out += diagnostics.size() == 1 ? "1 mistake\n"
                                   : std::to_string(diagnostics.size()) + " mistakes\n";
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > 64) return {};
  const std::string wanted = lower(word);
  std::string best;
  std::size_t best_distance = wanted.size() < 4   ? 2
                              : wanted.size() < 8 ? 3
                                                  : 4;  // at most 1, 2, 3 slips
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 64) continue;
    std::size_t distance = edit_distance(wanted, lower(candidate));
    // A name cut short or lengthened at its end ("h100" for "h100-sxm") is nearer than its length
    // says.
    if (distance >= best_distance && wanted.size() >= 3 && lower(candidate).starts_with(wanted))
      distance = best_distance - 1;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string in_quotes(std::string_view text) {
  const std::size_t keep = bytes_of(text, 60);
  return "\"" + printable(text.substr(0, keep)) + (keep < text.size() ? "…\"" : "\"");
}

}  // namespace trainyard::scenarios
