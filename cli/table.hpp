#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/page.hpp"

namespace trainyard::cli {

/// A table of a report: the first column to the left, the others to the right, each as wide as it
/// needs.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> cells) {
    widths_.resize(std::max(widths_.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths_[i] = std::max(widths_[i], columns_of(cells[i]));
    rows_.push_back(std::move(cells));
  }
  void print(Page& page) const {
    for (const auto& cells : rows_) {
      std::string line = "  " + left(cells[0], widths_[0]);
      for (std::size_t i = 1; i < cells.size(); ++i) line += "  " + right(cells[i], widths_[i]);
      page.line(line.substr(0, line.find_last_not_of(' ') + 1));
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

}  // namespace trainyard::cli
