#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::topologies {

/// XML as a sequence of tags and text, one step at a time and without recursion: enough for
/// GraphML. Names lose their namespace prefix; comments, instructions and the document type are
/// skipped. Entities other than the five of XML and numbers are refused, so nothing expands.
class XmlReader {
 public:
  enum class Event { open, close, text, end, error };

  explicit XmlReader(std::string_view text) : text_(text) {}

  Event next();
  int line() const { return line_; }               // on which the event began
  std::string_view name() const { return name_; }  // of the element that was opened or closed
  const std::string& text() const { return value_; }
  /// Of the element just opened; null if absent.
  const std::string* attribute(std::string_view name) const;
  std::size_t depth() const { return open_.size(); }
  /// After Event::error.
  const std::string& what() const { return what_; }
  const std::string& right() const { return right_; }

 private:
  Event fail(std::string what, std::string right);
  void advance(std::size_t to);  // counting lines
  bool skip_past(std::string_view end);
  void skip_space();
  std::string_view take_name();
  bool decode(std::string_view raw, std::string& out);
  Event read_tag();
  Event read_close();
  bool read_attributes();

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int line_now_ = 1;
  bool is_self_closing_ = false;
  std::string_view name_;
  std::string value_;
  std::vector<std::pair<std::string_view, std::string>> attributes_;
  std::vector<std::string_view> open_;  // full names of the elements around
  std::string what_, right_;
};

}  // namespace trainyard::topologies
