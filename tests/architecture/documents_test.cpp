#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "tests/architecture/tree.hpp"

/// What the documents promise is there.
namespace trainyard::architecture {
namespace {

using testing::ElementsAre;

/// Targets of [text](target) that are files of ours, without code blocks, web addresses and the
/// part after '#'.
std::vector<std::string> relative_links(const std::string& markdown) {
  std::vector<std::string> out;
  std::istringstream lines(markdown);
  bool in_code = false;
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  static const std::regex code_span("`[^`]*`");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_code = !in_code;
    if (in_code) continue;
    line = std::regex_replace(line, code_span, "");
    for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
      std::string target = (*it)[1];
      target = target.substr(0, target.find('#'));
      if (!target.empty() && target.find(':') == std::string::npos) out.push_back(target);
    }
  }
  return out;
}

TEST(RelativeLinks, are_found_and_others_are_not) {
  EXPECT_THAT(relative_links("[a](docs/a.md) and [b](b.md#part), ![p](p.png)\n"
                             "[web](https://example.org/x.md) [here](#here) `[no](no.md)`\n"
                             "```\n[no](no.md)\n```\n[c](c.md)\n"),
              ElementsAre("docs/a.md", "b.md", "p.png", "c.md"));
}

TEST(Documents, every_relative_link_leads_somewhere) {
  std::size_t links = 0;
  for (const std::string& file : files_of_the_tree({".md"}))
    for (const std::string& target : relative_links(content_of(file))) {
      ++links;
      EXPECT_TRUE(
          std::filesystem::exists(root() / std::filesystem::path(file).parent_path() / target))
          << file << " links to " << target << ", which does not exist";
    }
  EXPECT_GT(links, 10u) << "the documents were not found";
}

TEST(Documents, every_page_that_a_source_names_exists) {
  static const std::regex page(R"(docs/[a-z0-9_/-]+\.md)");
  for (const std::string& file : files_of_the_tree({".hpp", ".cpp"})) {
    const std::string text = content_of(file);
    if (file.starts_with("tests/architecture/")) continue;
    for (std::sregex_iterator it(text.begin(), text.end(), page), end; it != end; ++it)
      EXPECT_TRUE(std::filesystem::exists(root() / it->str()))
          << file << " names " << it->str() << ", which does not exist";
  }
}

TEST(Documents, models_readme_lists_exactly_the_model_pages) {
  std::set<std::string> listed, pages;
  for (const std::string& target : relative_links(content_of("models/README.md")))
    if (target.starts_with("../docs/models/"))
      listed.insert(target.substr(std::string("../").size()));
  for (const std::string& file : files_of_the_tree({".md"}))
    if (file.starts_with("docs/models/")) pages.insert(file);
  EXPECT_EQ(listed, pages);
}

}  // namespace
}  // namespace trainyard::architecture
