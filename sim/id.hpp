#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace trainyard {

/// An index into one kind of table. Two kinds cannot be mixed up: Id<Node> is not Id<Link>.
template <class Tag>
class Id {
 public:
  using value_type = std::uint32_t;
  static constexpr value_type none_value = 0xffffffffu;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_(static_cast<value_type>(index)) {}

  constexpr std::size_t index() const { return value_; }
  constexpr bool is_valid() const { return value_ != none_value; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  value_type value_ = none_value;
};

}  // namespace trainyard

template <class Tag>
struct std::hash<trainyard::Id<Tag>> {
  std::size_t operator()(trainyard::Id<Tag> id) const noexcept { return id.index(); }
};
