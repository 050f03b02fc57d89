#include "topologies/xml_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "topologies/import_builder.hpp"

namespace trainyard::topologies {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::string_view without_prefix(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == name.npos ? name : name.substr(colon + 1);
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace

XmlReader::Event XmlReader::fail(std::string what, std::string right) {
  what_ = std::move(what);
  right_ = std::move(right);
  return Event::error;
}

void XmlReader::advance(std::size_t to) {
  for (; at_ < to; ++at_) line_now_ += text_[at_] == '\n' ? 1 : 0;
}

bool XmlReader::skip_past(std::string_view end) {
  const std::size_t found = text_.find(end, at_);
  if (found == text_.npos) return false;
  advance(found + end.size());
  return true;
}

void XmlReader::skip_space() {
  std::size_t to = at_;
  while (to < text_.size() && is_space(text_[to])) ++to;
  advance(to);
}

std::string_view XmlReader::take_name() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && !is_space(text_[at_]) &&
         std::string_view("<>/=\"'&").find(text_[at_]) == std::string_view::npos)
    ++at_;
  return text_.substr(begin, at_ - begin);
}

bool XmlReader::decode(std::string_view raw, std::string& out) {
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '&') {
      out += raw[i];
      continue;
    }
    const std::size_t end = raw.find(';', i);
    const std::string_view entity =
        end == raw.npos ? raw.substr(i, 12) : raw.substr(i + 1, end - i - 1);
    std::uint32_t code = 0;
    if (entity == "amp")
      code = '&';
    else if (entity == "lt")
      code = '<';
    else if (entity == "gt")
      code = '>';
    else if (entity == "quot")
      code = '"';
    else if (entity == "apos")
      code = '\'';
    else if (end != raw.npos && entity.size() > 1 && entity[0] == '#') {
      const bool is_hex = entity[1] == 'x';
      const std::string_view digits = entity.substr(is_hex ? 2 : 1);
      const auto [stop, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
      if (error != std::errc{} || stop != digits.data() + digits.size() || code > 0x10ffff)
        code = 0;
    }
    if (code == 0 || end == raw.npos) {
      fail("the entity " + in_quotes(entity) + " is unknown", "&amp; for a plain ampersand");
      return false;
    }
    append_utf8(out, code);
    i = end;
  }
  return true;
}

const std::string* XmlReader::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes_)
    if (key == name) return &value;
  return nullptr;
}

XmlReader::Event XmlReader::next() {
  if (is_self_closing_) {  // <node/> is opened and closed; its name is still there
    is_self_closing_ = false;
    open_.pop_back();
    return Event::close;
  }
  for (;;) {
    line_ = line_now_;
    if (at_ >= text_.size()) {
      if (open_.empty()) return Event::end;
      return fail("the file ends within <" + std::string(open_.back().substr(0, 60)) + ">",
                  "a closing tag for every element");
    }
    if (text_[at_] != '<') {
      const std::size_t end = std::min(text_.find('<', at_), text_.size());
      const std::string_view raw = text_.substr(at_, end - at_);
      advance(end);
      if (trimmed(raw).empty()) continue;
      if (open_.empty()) return fail("text outside of all elements", "XML that begins with a tag");
      value_.clear();
      return decode(raw, value_) ? Event::text : Event::error;
    }
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("<!--")) {
      at_ += 4;
      if (!skip_past("-->")) return fail("a comment does not end", "-->");
    } else if (rest.starts_with("<![CDATA[")) {
      const std::size_t begin = at_ + 9;
      at_ = begin;
      if (!skip_past("]]>")) return fail("a CDATA section does not end", "]]>");
      if (open_.empty()) return fail("text outside of all elements", "XML that begins with a tag");
      value_ = text_.substr(begin, at_ - 3 - begin);
      return Event::text;
    } else if (rest.starts_with("<?")) {
      if (!skip_past("?>")) return fail("an instruction does not end", "?>");
    } else if (rest.starts_with("<!")) {
      const std::size_t close = text_.find('>', at_);
      if (close == text_.npos || text_.find('[', at_) < close)
        return fail("a document type with declarations", "GraphML without a <!DOCTYPE [...]>");
      advance(close + 1);
    } else if (rest.starts_with("</")) {
      return read_close();
    } else {
      return read_tag();
    }
  }
}

XmlReader::Event XmlReader::read_close() {
  at_ += 2;
  const std::string_view full = take_name();
  skip_space();
  if (at_ >= text_.size() || text_[at_] != '>')
    return fail("a closing tag is broken", "such as </node>");
  ++at_;
  if (open_.empty() || open_.back() != full)
    return fail(
        "the closing tag " + in_quotes(full) + " closes nothing",
        open_.empty() ? "no closing tag" : "</" + std::string(open_.back().substr(0, 60)) + ">");
  open_.pop_back();
  name_ = without_prefix(full);
  return Event::close;
}

XmlReader::Event XmlReader::read_tag() {
  ++at_;
  const std::string_view full = take_name();
  if (full.empty()) return fail("a tag has no name", "&lt; for a plain <");
  if (!read_attributes()) return Event::error;
  open_.push_back(full);
  name_ = without_prefix(full);
  return Event::open;
}

bool XmlReader::read_attributes() {
  attributes_.clear();
  for (;;) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '>') {
      ++at_;
      return true;
    }
    if (text_.substr(at_).starts_with("/>")) {
      at_ += 2;
      is_self_closing_ = true;
      return true;
    }
    const std::string_view name = take_name();
    skip_space();
    const bool has_value = at_ + 1 < text_.size() && text_[at_] == '=';
    if (has_value) {
      ++at_;
      skip_space();
    }
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t end =
        quote == '"' || quote == '\'' ? text_.find(quote, at_ + 1) : std::string_view::npos;
    if (name.empty() || !has_value || end == text_.npos) {
      fail("a tag or its attributes are broken", "such as <node id=\"leaf-0\">");
      return false;
    }
    const std::string_view raw = text_.substr(at_ + 1, end - at_ - 1);
    attributes_.emplace_back(name, std::string{});
    advance(end + 1);
    if (!decode(raw, attributes_.back().second)) return false;
  }
}

}  // namespace trainyard::topologies
