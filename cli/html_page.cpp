#include "cli/html_page.hpp"

#include "analysis/svg_chart.hpp"

namespace trainyard::cli {

using analysis::escaped;

namespace {

constexpr const char* style = R"(
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: 0; } h1 + p { margin-top: 0.2rem; opacity: 0.75; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
.answer { font-size: 1.2rem; font-weight: 600; }
.cards { display: flex; flex-wrap: wrap; gap: 0.8rem; }
.card { border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 1rem; min-width: 8rem; flex: 1; }
.card b { display: block; font-size: 1.4rem; } .card small { opacity: 0.75; }
figure { margin: 1rem 0; } figcaption { font-size: 0.9rem; opacity: 0.8; } svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92rem; }
td, th { padding: 0.15rem 0.7rem; text-align: right; border-bottom: 1px solid var(--soft); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
.warning { border-left: 4px solid #D55E00; padding-left: 0.8rem; }
pre { font-size: 0.8rem; overflow-x: auto; background: var(--soft); padding: 0.8rem; }
@media print { body { max-width: none; margin: 0; } figure, .cards, tr { break-inside: avoid; } h2 { break-after: avoid; } }
)";

}  // namespace

HtmlPage::HtmlPage(const std::string& title, const std::string& subtitle) : title_(title) {
  body_ = "<h1>" + escaped(title) + "</h1>\n<p>" + escaped(subtitle) + "</p>\n";
}

void HtmlPage::answer(const std::string& text) {
  body_ += "<p class=\"answer\">" + escaped(text) + "</p>\n";
}

void HtmlPage::cards(const std::vector<Card>& cards) {
  body_ += "<div class=\"cards\">\n";
  for (const Card& card : cards)
    body_ += "<div class=\"card\">" + escaped(card.name) + "<b>" + escaped(card.value) +
             "</b><small>" + escaped(card.remark) + "</small></div>\n";
  body_ += "</div>\n";
}

void HtmlPage::heading(const std::string& text) {
  body_ += "<h2>" + escaped(text) + "</h2>\n";
}

void HtmlPage::paragraph(const std::string& text) {
  body_ += "<p>" + escaped(text) + "</p>\n";
}

void HtmlPage::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += "<li>" + escaped(item) + "</li>\n";
  body_ += "</ul>\n";
}

void HtmlPage::warnings(const std::vector<std::string>& items) {
  for (const std::string& item : items) body_ += "<p class=\"warning\">" + escaped(item) + "</p>\n";
}

void HtmlPage::figure(const std::string& svg, const std::string& caption) {
  body_ += "<figure>\n" + svg + "<figcaption>" + escaped(caption) + "</figcaption>\n</figure>\n";
}

void HtmlPage::table(const std::vector<std::string>& head,
                     const std::vector<std::vector<std::string>>& rows) {
  body_ += "<div class=\"scroll\"><table>\n<tr>";
  for (const std::string& cell : head) body_ += "<th>" + escaped(cell) + "</th>";
  body_ += "</tr>\n";
  for (const auto& row : rows) {
    body_ += "<tr>";
    for (const std::string& cell : row) body_ += "<td>" + escaped(cell) + "</td>";
    body_ += "</tr>\n";
  }
  body_ += "</table></div>\n";
}

void HtmlPage::folded(const std::string& summary, const std::string& text) {
  body_ += "<details><summary>" + escaped(summary) + "</summary><pre>" + escaped(text) +
           "</pre></details>\n";
}

std::string HtmlPage::text() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
         "name=\"viewport\" content=\"width=device-width\">\n<title>" +
         escaped(title_) + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n" + body_ +
         "</body>\n</html>\n";
}

}  // namespace trainyard::cli
