#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard::models {

/// Who finishes first: a heap of four children a node over small indices in which an entry can be
/// moved or withdrawn, so there are no stale entries. At equal times the smaller index is first.
/// Times, indices and places lie in columns of their own: 16 bytes an entry of 8-byte times.
template <class When>
class CompletionHeap {
 public:
  bool is_empty() const { return whens_.empty(); }
  std::size_t first() const { return indices_.front(); }
  When first_time() const { return whens_.front(); }

  void reserve(std::size_t entries) {
    whens_.reserve(entries);
    indices_.reserve(entries);
    place_.reserve(entries);
  }

  void set(std::size_t index, When when) {
    if (index >= place_.size()) place_.resize(index + 1, absent);
    std::size_t at = place_[index];
    if (at == absent) {
      at = whens_.size();
      whens_.push_back(when);
      indices_.push_back(static_cast<std::uint32_t>(index));
    }
    sift(at, when, static_cast<std::uint32_t>(index));
  }

  void erase(std::size_t index) {
    if (index >= place_.size() || place_[index] == absent) return;
    const std::size_t at = place_[index];
    place_[index] = absent;
    const When when = whens_.back();
    const std::uint32_t last = indices_.back();
    whens_.pop_back();
    indices_.pop_back();
    if (at < whens_.size()) sift(at, when, last);
  }

  /// Takes out all entries up to `last` for which `is_due(index, when)` and gives them, smaller
  /// indices first. Many at once cost no more than looking at all.
  template <class IsDue>
  const std::vector<std::uint32_t>& take_due(When last, IsDue&& is_due) {
    due_.clear();
    reached_.clear();
    if (!is_empty() && whens_[0] <= last) reached_.push_back(0);
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const std::size_t at = reached_[i], child = 4 * at + 1;
      if (is_due(std::size_t{indices_[at]}, whens_[at])) due_.push_back(indices_[at]);
      for (std::size_t c = child; c < std::min(child + 4, whens_.size()); ++c)
        if (whens_[c] <= last) reached_.push_back(static_cast<std::uint32_t>(c));
    }
    if (8 * due_.size() < whens_.size()) {
      for (const std::uint32_t index : due_) erase(index);
    } else {
      for (const std::uint32_t index : due_) place_[index] = absent;
      keep_placed();
    }
    if (!std::is_sorted(due_.begin(), due_.end())) std::sort(due_.begin(), due_.end());
    if (reached_.capacity() > 4096) std::vector<std::uint32_t>().swap(reached_);
    return due_;
  }

  std::size_t memory_bytes() const {
    return whens_.capacity() * sizeof(When) +
           (indices_.capacity() + place_.capacity() + due_.capacity() + reached_.capacity()) *
               sizeof(std::uint32_t);
  }

 private:
  static constexpr std::uint32_t absent = 0xffffffffu;

  bool is_before(std::size_t at, When when, std::uint32_t index) const {
    return whens_[at] != when ? whens_[at] < when : indices_[at] < index;
  }
  void put(std::size_t at, When when, std::uint32_t index) {
    whens_[at] = when;
    indices_[at] = index;
    place_[index] = static_cast<std::uint32_t>(at);
  }
  /// To its place, from a hole at `at`.
  void sift(std::size_t at, When when, std::uint32_t index) {
    if (at == 0 || is_before((at - 1) / 4, when, index)) return sift_down(at, when, index);
    for (; at > 0 && !is_before((at - 1) / 4, when, index); at = (at - 1) / 4)
      put(at, whens_[(at - 1) / 4], indices_[(at - 1) / 4]);
    put(at, when, index);
  }
  void sift_down(std::size_t at, When when, std::uint32_t index) {
    for (;;) {
      std::size_t least = 4 * at + 1;
      if (least >= whens_.size()) break;
      for (std::size_t c = least + 1; c < std::min(4 * at + 5, whens_.size()); ++c)
        if (is_before(c, whens_[least], indices_[least])) least = c;
      if (!is_before(least, when, index)) break;
      put(at, whens_[least], indices_[least]);
      at = least;
    }
    put(at, when, index);
  }
  void keep_placed() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < whens_.size(); ++i)
      if (place_[indices_[i]] != absent) put(kept++, whens_[i], indices_[i]);
    whens_.resize(kept);
    indices_.resize(kept);
    for (std::size_t at = (kept + 2) / 4; at-- > 0;) sift_down(at, whens_[at], indices_[at]);
  }
  std::vector<When> whens_;
  std::vector<std::uint32_t> indices_;
  std::vector<std::uint32_t> place_;  // by index
  std::vector<std::uint32_t> due_, reached_;
};

}  // namespace trainyard::models
