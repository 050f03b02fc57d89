#pragma once

#include <sstream>
#include <string>

#include "cli/terminal.hpp"

namespace trainyard::cli {

/// The few kinds of line that all reports for people are made of.
class Page {
 public:
  explicit Page(const Terminal& terminal) : terminal_(terminal) {}

  void line(const std::string& text = {}) { out_ << text << '\n'; }
  void heading(const std::string& text);
  /// "    goodput          93.7 %   time in kept steps / wall time": the remark is wrapped under
  /// itself.
  void row(const std::string& name, const std::string& value, const std::string& remark);
  /// "  pipeline bubble   ██████            8.1 %   1.72 M GPU-h": `share` of the longest bar.
  void bar_row(const std::string& name, Colour colour, double share, const std::string& percentage,
               const std::string& amount);
  void bullet(Colour colour, const std::string& mark, const std::string& text);

  const Terminal& terminal() const { return terminal_; }
  std::string text() const { return out_.str(); }

 private:
  Terminal terminal_;
  std::ostringstream out_;
};

}  // namespace trainyard::cli
