#pragma once

#include <string>
#include <string_view>

namespace trainyard::topologies {

/// The tokens of Graphviz's DOT language.
class DotTokens {
 public:
  enum class Kind { id, symbol, end, error };
  struct Token {
    Kind kind = Kind::end;
    std::string text;      // of an error: what is wrong
    bool is_bare = false;  // neither quoted nor HTML: may be a keyword
    int line = 1;
  };

  explicit DotTokens(std::string_view text) : text_(text) { take(); }

  const Token& now() const { return now_; }
  /// The current token; the next one becomes current.
  Token take();

  bool is(std::string_view symbol) const {
    return now_.kind == Kind::symbol && now_.text == symbol;
  }
  bool is_keyword(std::string_view word) const;  // in any case of letters
  bool take_if(std::string_view symbol);

 private:
  void skip_space();
  bool begins_line() const;  // nothing but space before on the line
  Token read();
  Token read_quoted();
  Token read_html();
  Token token(Kind kind, std::string text, bool is_bare = false) const {
    return {kind, std::move(text), is_bare, line_};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  Token now_;
};

}  // namespace trainyard::topologies
