#include "topologies/dot_tokens.hpp"

#include <algorithm>
#include <utility>

#include "topologies/import_builder.hpp"

namespace trainyard::topologies {

namespace {

bool is_id_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_same_word(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? char(x - 'A' + 'a') : x) == y;
  });
}

}  // namespace

bool DotTokens::is_keyword(std::string_view word) const {
  return now_.kind == Kind::id && now_.is_bare && is_same_word(now_.text, word);
}

bool DotTokens::take_if(std::string_view symbol) {
  if (!is(symbol)) return false;
  take();
  return true;
}

DotTokens::Token DotTokens::take() {
  Token old = std::move(now_);
  now_ = read();
  return old;
}

bool DotTokens::begins_line() const {
  const std::size_t before = text_.substr(0, at_).find_last_not_of(" \t");
  return before == text_.npos || text_[before] == '\n';
}

void DotTokens::skip_space() {
  while (at_ < text_.size()) {
    const std::string_view rest = text_.substr(at_);
    std::size_t to = at_ + 1;
    if (rest.starts_with("//") || (rest.starts_with('#') && begins_line()))
      to = std::min(text_.find('\n', at_), text_.size());
    else if (rest.starts_with("/*"))
      to = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
    else if (std::string_view(" \t\r\n").find(rest.front()) == std::string_view::npos)
      return;
    line_ += static_cast<int>(
        std::count(text_.begin() + std::ptrdiff_t(at_), text_.begin() + std::ptrdiff_t(to), '\n'));
    at_ = to;
  }
}

DotTokens::Token DotTokens::read() {
  skip_space();
  if (at_ >= text_.size()) return token(Kind::end, "the end of the file");
  const char c = text_[at_];
  const std::string_view two = text_.substr(at_, 2);
  if (two == "->" || two == "--") {
    at_ += 2;
    return token(Kind::symbol, std::string(two));
  }
  if (std::string_view("{}[];,=:+").find(c) != std::string_view::npos) {
    ++at_;
    return token(Kind::symbol, std::string(1, c));
  }
  if (c == '"') return read_quoted();
  if (c == '<') return read_html();
  const bool is_number = c == '-' || c == '.' || (c >= '0' && c <= '9');
  const std::size_t begin = at_;
  if (is_number) {
    at_ += c == '-' ? 1 : 0;
    while (at_ < text_.size() && (text_[at_] == '.' || (text_[at_] >= '0' && text_[at_] <= '9')))
      ++at_;
  } else {
    while (at_ < text_.size() && is_id_letter(text_[at_])) ++at_;
  }
  if (at_ == begin) {
    ++at_;
    return token(Kind::error,
                 "the character " + in_quotes(text_.substr(begin, 1)) + " stands where none can");
  }
  return token(Kind::id, std::string(text_.substr(begin, at_ - begin)), !is_number);
}

DotTokens::Token DotTokens::read_quoted() {
  Token out = token(Kind::id, {});
  for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      const char next = text_[at_ + 1];
      if (next == '"' || next == '\\') {  // other escapes are left to who draws
        out.text += next;
        ++at_;
        continue;
      }
      if (next == '\n') {  // a line goes on
        ++line_;
        ++at_;
        continue;
      }
    }
    out.text += text_[at_];
  }
  if (at_ >= text_.size()) {
    out.kind = Kind::error;
    out.text = "a quoted text does not end";
    return out;
  }
  ++at_;
  return out;
}

DotTokens::Token DotTokens::read_html() {
  Token out = token(Kind::id, {});
  int depth = 0;
  const std::size_t begin = at_;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') ++line_;
    if (text_[at_] == '<') ++depth;
    if (text_[at_] == '>' && --depth == 0) {
      out.text = text_.substr(begin + 1, at_ - begin - 1);
      ++at_;
      return out;
    }
  }
  out.kind = Kind::error;
  out.text = "a text in < > does not end";
  return out;
}

}  // namespace trainyard::topologies
