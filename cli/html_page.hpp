#pragma once

#include <string>
#include <vector>

namespace trainyard::cli {

/// The pieces that reports in HTML are made of. All texts are escaped here.
class HtmlPage {
 public:
  HtmlPage(const std::string& title, const std::string& subtitle);

  void answer(const std::string& text);
  /// "goodput", "93.7 %", "time in kept steps / wall time".
  struct Card {
    std::string name, value, remark;
  };
  void cards(const std::vector<Card>& cards);
  void heading(const std::string& text);
  void paragraph(const std::string& text);
  void list(const std::vector<std::string>& items);
  void warnings(const std::vector<std::string>& items);
  /// As svg_of() gave it, with what it shows below.
  void figure(const std::string& svg, const std::string& caption);
  /// The first column is text, the others are figures.
  void table(const std::vector<std::string>& head,
             const std::vector<std::vector<std::string>>& rows);
  /// Folded away on a screen: a long text as it is.
  void folded(const std::string& summary, const std::string& text);

  std::string text() const;

 private:
  std::string body_, title_;
};

}  // namespace trainyard::cli
