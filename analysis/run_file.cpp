#include "analysis/run_file.hpp"

#include <cstdio>

namespace trainyard::analysis {

namespace {

bool is_continuation(unsigned char c) {
  return (c & 0xc0) == 0x80;
}

/// Bytes of the well-formed character at the start of `s`; 0 if there is none (RFC 3629 §4).
std::size_t character_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = at(0);
  std::size_t length = 0;
  unsigned char low = 0x80, high = 0xbf;  // what may follow the first byte
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) length = 2;
  if (lead >= 0xe0 && lead <= 0xef) length = 3;
  if (lead >= 0xf0 && lead <= 0xf4) length = 4;
  if (length == 0 || s.size() < length) return 0;
  if (lead == 0xe0) low = 0xa0;   // shorter forms exist
  if (lead == 0xed) high = 0x9f;  // surrogates
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;  // past U+10FFFF
  if (at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (!is_continuation(at(i))) return 0;
  return length;
}

}  // namespace

std::optional<RunState> run_state_named(std::string_view name) {
  for (RunState s : {RunState::running, RunState::complete, RunState::cancelled, RunState::failed})
    if (name_of(s) == name) return s;
  return std::nullopt;
}

std::string path_component(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (c == '/' || c == '%' || c < 0x20 || c == 0x7f || (c == '.' && i == 0)) {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(c));
      out += code;
    } else {
      out += name[i];
    }
  }
  return out.empty() ? "%" : out;
}

std::string clean_text(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = character_length(bytes);
    if (length == 0)
      out += '?';
    else
      out += bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string_view cut_text(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && is_continuation(static_cast<unsigned char>(text[bytes]))) --bytes;
  return text.substr(0, bytes);
}

}  // namespace trainyard::analysis
