#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace trainyard::models {

/// Who finishes first: a binary heap over small indices in which an entry can be moved or
/// withdrawn, so there are no stale entries. At equal times the smaller index is first.
template <class When>
class CompletionHeap {
 public:
  bool is_empty() const { return entries_.empty(); }
  std::size_t first() const { return entries_.front().index; }
  When first_time() const { return entries_.front().when; }

  void set(std::size_t index, When when) {
    if (index >= place_.size()) place_.resize(index + 1, absent);
    std::size_t at = place_[index];
    if (at == absent) {
      at = entries_.size();
      entries_.push_back({when, static_cast<std::uint32_t>(index)});
      place_[index] = static_cast<std::uint32_t>(at);
    }
    entries_[at].when = when;
    sift_down(sift_up(at));
  }

  void erase(std::size_t index) {
    if (index >= place_.size() || place_[index] == absent) return;
    const std::size_t at = place_[index];
    place_[index] = absent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (at == entries_.size()) return;
    put(at, last);
    sift_down(sift_up(at));
  }

 private:
  static constexpr std::uint32_t absent = 0xffffffffu;
  struct Entry {
    When when;
    std::uint32_t index;
    bool operator<(const Entry& o) const {
      return when != o.when ? when < o.when : index < o.index;
    }
  };

  void put(std::size_t at, const Entry& e) {
    entries_[at] = e;
    place_[e.index] = static_cast<std::uint32_t>(at);
  }
  std::size_t sift_up(std::size_t at) {
    const Entry e = entries_[at];
    for (; at > 0 && e < entries_[(at - 1) / 2]; at = (at - 1) / 2) put(at, entries_[(at - 1) / 2]);
    put(at, e);
    return at;
  }
  void sift_down(std::size_t at) {
    const Entry e = entries_[at];
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= entries_.size()) break;
      if (child + 1 < entries_.size() && entries_[child + 1] < entries_[child]) ++child;
      if (!(entries_[child] < e)) break;
      put(at, entries_[child]);
      at = child;
    }
    put(at, e);
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> place_;
};

}  // namespace trainyard::models
