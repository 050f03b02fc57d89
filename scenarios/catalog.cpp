#include "scenarios/catalog.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace trainyard::scenarios {
namespace {

/// "count 148, units 16384, duration 54 d": a value of several fields in one cell.
std::string in_a_cell(const Node& value) {
  if (value.kind == Node::Kind::text) return value.text;
  std::string out;
  for (const Member& m : value.members)
    out += (out.empty() ? "" : ", ") + m.key + " " + in_a_cell(m.value);
  for (const Node& item : value.items) out += (out.empty() ? "" : " or ") + in_a_cell(item);
  return value.members.empty() && value.items.empty() ? value.as_found() : out;
}

class PartReader {
 public:
  PartReader(Part& part, std::vector<Diagnostic>& mistakes) : part_(part), mistakes_(mistakes) {}

  void read(const Node& root) {
    part_.name = text(root, "part");
    part_.kind = text(root, "kind");
    part_.title = text(root, "title");
    part_.retrieved = text(root, "retrieved");
    const std::string& date = part_.retrieved;
    bool dated = date.size() == 10 && date[4] == '-' && date[7] == '-';
    for (std::size_t i = 0; dated && i < date.size(); ++i)
      if (i != 4 && i != 7) dated = std::isdigit(static_cast<unsigned char>(date[i])) != 0;
    if (!dated)
      wrong(root, "retrieved",
            "expected the day on which the sources were read, such as \"2026-11-30\"");
    for (const Member& m : root.members)
      if (m.key != "part" && m.key != "kind" && m.key != "title" && m.key != "retrieved" &&
          m.key != "figures" && m.key != "note")
        wrong(m.value, m.key, "unknown key of a part");
    if (root.find("note")) part_.note = text(root, "note");
    const Node* figures = root.find("figures");
    if (!figures || figures->kind != Node::Kind::object) {
      wrong(root, "figures", "a part needs figures");
      return;
    }
    part_.fields = group(*figures, "");
  }

 private:
  /// An object of figures and further groups of them.
  Node group(const Node& figures, const std::string& prefix) {
    Node fields = Node::of_object(figures.place);
    for (const Member& m : figures.members) {
      const std::string key = prefix + m.key;
      if (m.value.kind != Node::Kind::object) {
        wrong(m.value, key, "expected {\"value\": …, \"source\": …, \"sure\": …}");
        continue;
      }
      if (!m.value.find("value")) {
        fields.members.push_back({m.key, group(m.value, key + ".")});
        continue;
      }
      figure(m.value, key);
      fields.members.push_back({m.key, *m.value.find("value")});
    }
    return fields;
  }

  void figure(const Node& node, const std::string& key) {
    Figure figure;
    figure.key = key;
    for (const Member& m : node.members) {
      const bool plain = m.value.kind == Node::Kind::text;
      const std::string shown = in_a_cell(m.value);
      if (m.key == "value")
        figure.value = shown;
      else if (m.key == "low")
        figure.low = shown;
      else if (m.key == "high")
        figure.high = shown;
      else if (m.key == "prior")
        figure.prior = shown;
      else if (m.key == "standard_error")
        figure.standard_error = shown;
      else if (m.key == "rows")
        figure.rows = shown;
      else if (m.key == "source" && plain)
        figure.source = shown;
      else if (m.key == "sure" && plain)
        figure.sure = shown;
      else if (m.key == "note" && plain)
        continue;
      else
        wrong(m.value, key + "." + m.key, "unknown key, or not a text");
    }
    if (figure.source.empty()) wrong(node, key, "a figure without a source is a guess");
    const auto& words = sure_words();
    if (std::none_of(words.begin(), words.end(),
                     [&](const SureWord& w) { return w.word == figure.sure; }))
      wrong(node, key,
            "\"sure\" must be one of read, sec, mem, calc, fit, found " + in_quotes(figure.sure));
    if (figure.sure != "fit" &&
        !(figure.prior.empty() && figure.standard_error.empty() && figure.rows.empty()))
      wrong(node, key,
            "only a fitted figure (\"sure\": \"fit\") has prior, standard_error and rows");
    part_.figures.push_back(std::move(figure));
  }

  std::string text(const Node& root, std::string_view key) {
    const Node* node = root.find(key);
    if (node && node->kind == Node::Kind::text && !node->text.empty()) return node->text;
    wrong(node ? *node : root, std::string(key), "a part needs this text");
    return {};
  }

  void wrong(const Node& node, std::string path, std::string what) {
    mistakes_.push_back(
        diagnose(node.place, At::value, std::move(path), std::move(what), "", "part"));
  }

  Part& part_;
  std::vector<Diagnostic>& mistakes_;
};

std::string padded(std::string text, std::size_t width) {
  std::size_t shown = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xC0u) != 0x80u) ++shown;
  if (shown < width) text.append(width - shown, ' ');
  return text;
}

}  // namespace

const std::vector<SureWord>& sure_words() {
  static const std::vector<SureWord> words{
      {"read", "in a vendor manual, standard, paper or source file"},
      {"sec", "in a page that repeats someone else's figure"},
      {"mem", "engineering knowledge, unchecked: vary it"},
      {"calc", "worked out from other figures"},
      {"fit", "fitted to published measurements"}};
  return words;
}

const Catalog& Catalog::standard() {
  static const Catalog catalog = [] {
    std::vector<Diagnostic> mistakes;
    Catalog built = from_texts(embedded_parts(), mistakes);
    if (!mistakes.empty())
      throw std::logic_error("the built-in catalog is broken:\n" + to_text(mistakes));
    return built;
  }();
  return catalog;
}

Catalog Catalog::from_texts(const std::vector<PartText>& texts, std::vector<Diagnostic>& mistakes) {
  Catalog catalog;
  for (const PartText& file : texts) {
    const auto source =
        make_source("parts/" + std::string(file.file), std::string(file.text), mistakes);
    if (!source) continue;
    const std::size_t before = mistakes.size();
    const Node root = parse_json(source, mistakes);
    if (mistakes.size() > before) continue;
    Part part;
    PartReader(part, mistakes).read(root);
    const std::string expected = part.kind + "/" + part.name + ".json";
    if (mistakes.size() == before && expected != file.file)
      mistakes.push_back(diagnose(
          root.place, At::value, "part",
          "the file is named " + in_quotes(file.file) + ", its part " + in_quotes(expected), "",
          "part"));
    if (const Part* other = catalog.find(part.name))
      mistakes.push_back(diagnose(
          root.place, At::value, "part",
          "the name " + in_quotes(part.name) + " is taken by a " + other->kind, "", "part"));
    catalog.parts_[part.kind].emplace(part.name, std::move(part));
  }
  return catalog;
}

std::vector<std::string> Catalog::kinds() const {
  std::vector<std::string> out;
  for (const auto& [kind, parts] : parts_) out.push_back(kind);
  return out;
}

std::vector<std::string> Catalog::names(std::string_view kind) const {
  std::vector<std::string> out;
  if (const auto it = parts_.find(kind); it != parts_.end())
    for (const auto& [name, part] : it->second) out.push_back(name);
  return out;
}

const Part* Catalog::find(std::string_view kind, std::string_view name) const {
  const auto it = parts_.find(kind);
  if (it == parts_.end()) return nullptr;
  const auto part = it->second.find(name);
  return part == it->second.end() ? nullptr : &part->second;
}

const Part* Catalog::find(std::string_view name) const {
  for (const auto& [kind, parts] : parts_)
    if (const auto it = parts.find(name); it != parts.end()) return &it->second;
  return nullptr;
}

std::string Catalog::table(const Part& part) const {
  std::string out = part.name + " (" + part.kind + "): " + part.title + "\n" +
                    (part.note.empty() ? "" : part.note + "\n") + "sources read " + part.retrieved +
                    "\n\n";
  std::size_t key_width = 6, value_width = 5, range_width = 5;
  const auto range = [](const Figure& f) {
    return f.low.empty() && f.high.empty() ? std::string() : f.low + " – " + f.high;
  };
  const auto with_error = [](const Figure& f) {
    return f.standard_error.empty() ? f.value : f.value + " ± " + f.standard_error;
  };
  const auto with_rows = [](const Figure& f) {
    return f.source + (f.rows.empty() ? "" : " [" + f.rows + "]") +
           (f.prior.empty() ? "" : " (prior " + f.prior + ")");
  };
  const auto width = [](const std::string& s) {
    return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
    }));
  };
  for (const Figure& f : part.figures) {
    key_width = std::max(key_width, width(f.key));
    if (width(with_error(f)) <= 40) value_width = std::max(value_width, width(with_error(f)));
    range_width = std::max(range_width, width(range(f)));
  }
  const auto row = [&](const std::string& key, const std::string& value,
                       const std::string& low_high, const std::string& sure,
                       const std::string& source) {
    out += padded(key, key_width) + "  " + padded(value, value_width) + "  " +
           padded(low_high, range_width) + "  " + padded(sure, 4) + "  " + source + "\n";
  };
  row("figure", "value", "range", "sure", "source");
  for (const Figure& f : part.figures) row(f.key, with_error(f), range(f), f.sure, with_rows(f));
  out += "\nsure:";
  for (const auto& [word, meaning] : sure_words())
    out += " " + std::string(word) + " = " + std::string(meaning) +
           (word == sure_words().back().word ? ".\n" : ";");
  return out;
}

std::string Catalog::list() const {
  std::string out;
  for (const auto& [kind, parts] : parts_) {
    out += kind + "\n";
    for (const auto& [name, part] : parts)
      out += "  " + padded(name, 24) + "  " + part.title + "\n";
  }
  return out;
}

}  // namespace trainyard::scenarios
