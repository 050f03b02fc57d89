#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Places for short lists in one large array: blocks of a few sizes, given back and reused. It
/// hands out positions; the array, or several side by side, is the caller's. A list of n takes
/// n places up to 8, and above that at most a quarter more than n.
namespace trainyard::models {

class BlockPool {
 public:
  using Index = std::uint32_t;

  /// The smallest block for n entries.
  static constexpr Index room(std::size_t n) {
    if (n <= 8) return static_cast<Index>(n);
    const std::size_t step = std::bit_ceil(n) / 8;
    return static_cast<Index>((n + step - 1) / step * step);
  }

  /// First place of a block of `size`, which is the room of something. The array must reach end().
  Index take(Index size) {
    const std::size_t kind = kind_of(size);
    if (kind < free_.size() && !free_[kind].empty()) {
      const Index first = free_[kind].back();
      free_[kind].pop_back();
      return first;
    }
    const Index first = end_;
    end_ += size;
    return first;
  }
  void give_back(Index first, Index size) {
    if (size == 0) return;
    const std::size_t kind = kind_of(size);
    if (kind >= free_.size()) free_.resize(kind + 1);
    free_[kind].push_back(first);
  }
  void clear() {
    end_ = 0;
    for (std::vector<Index>& list : free_) list.clear();
  }
  Index end() const { return end_; }
  std::size_t memory_bytes() const {
    std::size_t bytes = free_.capacity() * sizeof free_[0];
    for (const std::vector<Index>& list : free_) bytes += list.capacity() * sizeof(Index);
    return bytes;
  }

 private:
  static constexpr std::size_t kind_of(Index size) {
    if (size <= 8) return size;
    return 4 * static_cast<std::size_t>(std::bit_width(size - 1)) +
           size / (std::bit_ceil(size) / 8);
  }

  Index end_ = 0;
  std::vector<std::vector<Index>> free_;  // by kind
};

/// Makes a column long enough for n entries: at once as long as its room, which grows by halves.
template <class T>
void lengthen_to_room(std::vector<T>& column, std::size_t n) {
  if (n > column.size())
    column.resize(std::max({n, column.capacity(), column.size() + column.size() / 2}));
}

/// Makes a column n entries long; its room grows by halves.
template <class T>
void lengthen(std::vector<T>& column, std::size_t n, const T& value = {}) {
  if (n <= column.size()) return;
  if (n > column.capacity()) column.reserve(std::max(n, column.capacity() + column.capacity() / 2));
  column.resize(n, value);
}

}  // namespace trainyard::models
