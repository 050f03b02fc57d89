#include "topologies/import.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "topologies/import_builder.hpp"

namespace trainyard::topologies {

namespace {

constexpr std::uintmax_t largest_file = 2'000'000'000;  // about 10 million edges

bool has_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) &&
         (text.size() == word.size() ||
          std::string_view(" \t\r\n{\"/").find(text[word.size()]) != std::string_view::npos);
}

}  // namespace

GraphFormat format_of(std::string_view file, std::string_view text) {
  const std::size_t dot = file.rfind('.');
  std::string ending(dot == file.npos ? "" : file.substr(dot + 1));
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (ending == "graphml" || ending == "xml") return GraphFormat::graphml;
  if (ending == "dot" || ending == "gv") return GraphFormat::dot;
  if (ending == "csv" || ending == "txt" || ending == "edges") return GraphFormat::edge_list;
  const std::string_view begin = trimmed(text.substr(0, 4096));
  if (begin.starts_with('<') || begin.starts_with("\xEF\xBB\xBF<")) return GraphFormat::graphml;
  for (const char* word : {"graph", "digraph", "strict"})
    if (has_word(begin, word)) return GraphFormat::dot;
  return GraphFormat::edge_list;
}

GraphFile parse_graph(std::string_view text, const std::string& file, GraphFormat format,
                      Problems& problems) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  GraphBuilder builder(file, problems);
  switch (format) {
    case GraphFormat::graphml:
      parse_graphml(text, builder);
      break;
    case GraphFormat::dot:
      parse_dot(text, builder);
      break;
    case GraphFormat::edge_list:
      parse_edge_list(text, builder);
      break;
  }
  return builder.finish();
}

GraphFile read_graph(const std::string& file, Problems& problems) {
  const auto refuse = [&](const std::string& what, const std::string& right) {
    problems.push_back({"graph", file + ": " + what, right});
    return GraphFile{file, {}, {}};
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    return refuse("is a folder", "a GraphML, DOT or edge list file");
  std::ifstream in(file, std::ios::binary);
  if (!in) return refuse("cannot be read", "a file that exists and may be read");
  std::string text;
  std::string block(1u << 20, '\0');
  while (in.read(block.data(), std::streamsize(block.size())) || in.gcount() > 0) {
    text.append(block, 0, std::size_t(in.gcount()));
    if (text.size() > largest_file) return refuse("is larger than 2 GB", "a smaller file");
  }
  return parse_graph(text, file, format_of(file, text), problems);
}

}  // namespace trainyard::topologies
