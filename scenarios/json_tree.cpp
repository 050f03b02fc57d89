#include "scenarios/json_tree.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace trainyard::scenarios {
namespace {

/// Walks the text in step with the parser's events, token by token, and so knows the start of each
/// token: the parser itself only tells how many characters it has consumed, one too many after a
/// number.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  int line() const { return line_; }
  int column() const { return column_; }
  std::size_t offset() const { return at_; }
  std::string_view rest() const { return text_.substr(at_); }

  /// To the start of the next token, over white space, comments, commas and colons.
  void skip_to_token() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':') {
        step();
      } else if (rest().starts_with("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if (rest().starts_with("/*")) {
        step();
        step();
        while (at_ < text_.size() && !rest().starts_with("*/")) step();
        if (at_ < text_.size()) step();
        if (at_ < text_.size()) step();
      } else {
        return;
      }
    }
  }

  /// Over the token that starts here; returns it as written.
  std::string_view token() {
    const std::size_t start = at_;
    if (at_ >= text_.size()) return {};
    if (text_[at_] == '"') {
      step();
      while (at_ < text_.size() && text_[at_] != '"') {
        if (text_[at_] == '\\') step();
        if (at_ < text_.size()) step();
      }
      if (at_ < text_.size()) step();
    } else if (std::strchr("{}[]", text_[at_]) != nullptr) {
      step();
    } else {
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                    text_[at_] == '+' || text_[at_] == '-' || text_[at_] == '.'))
        step();
    }
    return text_.substr(start, at_ - start);
  }

  void go_to(std::size_t offset) {
    while (at_ < offset && at_ < text_.size()) step();
  }

 private:
  void step() {
    const auto c = static_cast<unsigned char>(text_[at_++]);
    if (c == '\n') {
      ++line_;
      column_ = 1;
    } else if (at_ >= text_.size() || (static_cast<unsigned char>(text_[at_]) & 0xC0u) != 0x80u) {
      ++column_;  // counted at the last byte of a character
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

using Json = nlohmann::json;

/// Receives the parser's events and builds the tree.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(std::shared_ptr<const Source> source, std::vector<Diagnostic>& diagnostics)
      : source_(std::move(source)), diagnostics_(diagnostics), cursor_(source_->text) {}

  Node take_root() { return std::move(root_); }

  bool null() override { return leaf(Node::Kind::null); }
  bool boolean(bool value) override {
    Node* node = begin(Node::Kind::boolean);
    node->boolean = value;
    cursor_.token();
    return true;
  }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& value) override {
    Node* node = begin(Node::Kind::text);
    node->text = std::move(value);
    cursor_.token();
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Node::Kind::object); }
  bool start_array(std::size_t) override { return open(Node::Kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    cursor_.skip_to_token();
    key_line_ = cursor_.line();
    key_column_ = cursor_.column();
    cursor_.token();
    if (!keys_.back().insert(value).second) {
      Place place{source_, key_line_, key_column_, key_line_, key_column_, {}};
      const Node* first = open_.back()->find(value);
      report(place, "the key " + in_quotes(value) + " is given twice",
             first ? "it was first given in line " + std::to_string(first->place.key_line) +
                         "; keep one of them"
                   : "",
             "duplicate-key");
      if (diagnostics_.size() >= max_diagnostics) return false;
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override {
    std::string what = error.what();
    if (const std::size_t at = what.find("] "); at != std::string::npos) what = what.substr(at + 2);
    if (what.starts_with("parse error"))
      if (const std::size_t at = what.find(": "); at != std::string::npos)
        what = what.substr(at + 2);
    // "; last read: '…'" repeats what the caret shows.
    if (const std::size_t at = what.find("; last read: '"); at != std::string::npos) {
      const std::size_t next = what.find("'; expected", at + 14);
      what = what.substr(0, at) + (next == std::string::npos ? "" : what.substr(next + 1));
    }
    const bool in_text = what.find("invalid string") != std::string::npos ||
                         what.find("invalid comment") != std::string::npos;
    if (in_text && position > 0)
      cursor_.go_to(position - 1);
    else
      cursor_.skip_to_token();
    Place place{source_, cursor_.line(), cursor_.column(), cursor_.line(), cursor_.column(), {}};
    std::string right;
    const std::string_view rest = cursor_.rest();
    const std::string_view before =
        trimmed(std::string_view(source_->text).substr(0, cursor_.offset()));
    for (const std::string_view name :
         {"NaN", "nan", "Infinity", "inf", "-Infinity", "-inf", "-NaN", "+"})
      if (rest.starts_with(name))
        right = "numbers are finite and in plain decimal form: NaN, Infinity and +1 are no JSON";
    if (in_text && what.find("UTF-8") != std::string::npos)
      right = "save the file as UTF-8";
    else if ((rest.starts_with("}") || rest.starts_with("]")) && before.ends_with(","))
      right = "remove the comma before the closing bracket";
    else if (rest.starts_with("'"))
      right = "text and keys stand in double quotes";
    else if (rest.empty())
      right = "a bracket or quote that was opened is not closed";
    else if (!in_text && rest.starts_with("\"") && !before.empty() &&
             !std::strchr("{[,:", before.back()))
      right = "is a comma missing before this?";
    if (what.find("number overflow") != std::string::npos) {
      what = "the number " + last_token + " is too large";
      right = "numbers reach up to 1.8e308";
    }
    report(place, "not valid JSON: " + clean(what), right, "syntax");
    return false;
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
      text.remove_suffix(1);
    return text;
  }

  static std::string clean(std::string_view text) {
    std::string out;
    for (const char c : text.substr(0, 300))
      out +=
          (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) ? '?' : c;
    return out;
  }

  void report(const Place& place, std::string what, std::string right, std::string code) {
    std::string path;
    for (const std::string& p : path_)
      if (!p.empty()) path += (path.empty() ? "" : ".") + p;
    diagnostics_.push_back(diagnose(place, At::value, std::move(path), std::move(what),
                                    std::move(right), std::move(code)));
  }

  /// A new value where the document stands now.
  Node* begin(Node::Kind kind) {
    cursor_.skip_to_token();
    Node* node = &root_;
    if (!open_.empty()) {
      Node& parent = *open_.back();
      if (parent.kind == Node::Kind::object)
        node = &parent.members.emplace_back(Member{key_, {}}).value;
      else
        node = &parent.items.emplace_back();
    }
    *node = Node{};
    node->kind = kind;
    const bool keyed = !open_.empty() && open_.back()->kind == Node::Kind::object;
    node->place = Place{source_,
                        cursor_.line(),
                        cursor_.column(),
                        keyed ? key_line_ : cursor_.line(),
                        keyed ? key_column_ : cursor_.column(),
                        {}};
    return node;
  }

  bool leaf(Node::Kind kind) {
    begin(kind);
    cursor_.token();
    return true;
  }

  bool number(double value) {
    Node* node = begin(Node::Kind::number);
    node->number = value;
    node->text = std::string(cursor_.token());
    return true;
  }

  bool open(Node::Kind kind) {
    const std::string name =
        !open_.empty() && open_.back()->kind == Node::Kind::object ? key_ : std::string();
    Node* node = begin(kind);
    if (open_.size() >= static_cast<std::size_t>(max_depth)) {
      path_.resize(4);
      report(node->place, "nested deeper than " + std::to_string(max_depth) + " levels",
             "a scenario needs about six", "too-deep");
      return false;
    }
    cursor_.token();
    open_.push_back(node);
    keys_.emplace_back();
    path_.push_back(name);
    return true;
  }

  bool close() {
    cursor_.skip_to_token();
    cursor_.token();
    open_.pop_back();
    keys_.pop_back();
    path_.pop_back();
    return true;
  }

  std::shared_ptr<const Source> source_;
  std::vector<Diagnostic>& diagnostics_;
  Cursor cursor_;
  Node root_;
  std::vector<Node*> open_;  // stays valid: a parent grows no further while a child is open
  std::vector<std::set<std::string>> keys_;
  std::vector<std::string> path_;
  std::string key_;
  int key_line_ = 1, key_column_ = 1;
};

std::string line_of(std::string_view text, int line) {
  std::size_t start = 0;
  for (int i = 1; i < line; ++i) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return {};
    start = end + 1;
  }
  std::string out(text.substr(start, text.find('\n', start) - start));
  if (!out.empty() && out.back() == '\r') out.pop_back();
  return out;
}

Diagnostic unreadable(const std::string& path, std::string what, std::string right) {
  Diagnostic d;
  d.file = path;
  d.what = std::move(what);
  d.right = std::move(right);
  d.code = "file";
  return d;
}

}  // namespace

std::string Place::origin() const {
  if (!part.empty()) return "catalog: " + part;
  if (!source) return "default";
  if (source->kind == Source::Kind::set) return "--set";
  return source->name + ":" + std::to_string(line);
}

const Node* Node::find(std::string_view key) const {
  for (const Member& m : members)
    if (m.key == key) return &m.value;
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

std::string Node::as_found() const {
  switch (kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return boolean ? "true" : "false";
    case Kind::number:
      return text.size() <= 40 ? text : text.substr(0, 40) + "…";
    case Kind::text:
      return in_quotes(text);
    case Kind::list:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return "?";
}

Node Node::of_text(std::string text, Place place) {
  Node node;
  node.kind = Kind::text;
  node.text = std::move(text);
  node.place = std::move(place);
  return node;
}

Node Node::of_object(Place place) {
  Node node;
  node.kind = Kind::object;
  node.place = std::move(place);
  return node;
}

Node parse_json(std::shared_ptr<const Source> source, std::vector<Diagnostic>& diagnostics) {
  TreeBuilder builder(source, diagnostics);
  Json::sax_parse(source->text, &builder, Json::input_format_t::json, /*strict=*/true,
                  /*ignore_comments=*/true);
  return builder.take_root();
}

std::shared_ptr<const Source> load_source(const std::string& path,
                                          std::vector<Diagnostic>& diagnostics) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    std::vector<std::string> neighbours;
    const fs::path folder =
        fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
    for (fs::directory_iterator it(folder, error), end;
         !error && it != end && neighbours.size() < 1000; it.increment(error))
      if (it->path().extension() == ".json") neighbours.push_back(it->path().filename().string());
    std::sort(neighbours.begin(), neighbours.end());
    const std::string near = nearest(fs::path(path).filename().string(), neighbours);
    diagnostics.push_back(unreadable(
        path, "there is no such file",
        near.empty() ? ""
                     : "did you mean " + (fs::path(path).parent_path() / near).string() + "?"));
    return nullptr;
  }
  if (status.type() == fs::file_type::directory) {
    diagnostics.push_back(
        unreadable(path, "is a folder, not a scenario file", "name a .json file in it"));
    return nullptr;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    diagnostics.push_back(
        unreadable(path, std::string("cannot be read: ") + std::strerror(errno), ""));
    return nullptr;
  }
  std::string text;
  std::vector<char> chunk(64 * 1024);
  while (text.size() <= max_file_bytes &&
         file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())).gcount() > 0)
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  if (file.bad()) {
    diagnostics.push_back(unreadable(path, "cannot be read to its end", ""));
    return nullptr;
  }
  if (text.size() > max_file_bytes) {
    diagnostics.push_back(unreadable(path, "is larger than 16 MiB",
                                     "a scenario file is some kilobytes; is this the right file?"));
    return nullptr;
  }
  return make_source(path, std::move(text), diagnostics);
}

std::shared_ptr<const Source> make_source(std::string name, std::string text,
                                          std::vector<Diagnostic>& diagnostics) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // byte order mark
  if (text.find('\0') != std::string::npos) {
    diagnostics.push_back(unreadable(name, "is not a text file: it holds zero bytes",
                                     "scenario files are JSON in UTF-8"));
    return nullptr;
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    diagnostics.push_back(unreadable(name, "is empty", "a scenario has at least cluster and jobs"));
    return nullptr;
  }
  return std::make_shared<Source>(Source{Source::Kind::file, std::move(name), std::move(text)});
}

Diagnostic diagnose(const Place& place, At at, std::string path, std::string what,
                    std::string right, std::string code) {
  Diagnostic d;
  d.path = std::move(path);
  d.what = std::move(what);
  d.right = std::move(right);
  d.code = std::move(code);
  if (!place.source) return d;
  d.file = place.source->name;
  if (place.source->kind == Source::Kind::set) return d;  // the override itself is its place
  d.line = at == At::key ? place.key_line : place.line;
  d.column = at == At::key ? place.key_column : place.column;
  d.source_line = line_of(place.source->text, d.line);
  return d;
}

}  // namespace trainyard::scenarios
