#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace trainyard::sim {

/// What an event does: a callable without arguments, move-only. Captures of up to 48 bytes live
/// inside (an Action and the engine's bookkeeping share one 64-byte cache line); larger ones are
/// allocated once, when the Action is made.
class Action {
 public:
  static constexpr std::size_t inline_bytes = 48;

  Action() = default;

  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Action> &&
           std::is_invocable_r_v<void, std::remove_cvref_t<F>&>) Action(F&& f) {
    using Function = std::remove_cvref_t<F>;
    if constexpr (fits<Function>) {
      ::new (static_cast<void*>(storage_)) Function(std::forward<F>(f));
      operations_ = &inline_operations<Function>;
    } else {
      auto* made = new Function(std::forward<F>(f));
      std::memcpy(storage_, &made, sizeof made);
      operations_ = &allocated_operations<Function>;
    }
  }

  Action(Action&& other) noexcept { take(other); }
  Action& operator=(Action&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Action() { reset(); }

  void operator()() { operations_->invoke(storage_); }
  explicit operator bool() const { return operations_ != nullptr; }

  /// Destroys the callable and what it captured.
  void reset() noexcept {
    if (operations_ != nullptr && operations_->destroy != nullptr) operations_->destroy(storage_);
    operations_ = nullptr;
  }

 private:
  struct Operations {
    void (*invoke)(std::byte*);
    void (*relocate)(std::byte* to, std::byte* from) noexcept;  // null: copying the bytes does it
    void (*destroy)(std::byte*) noexcept;                       // null: nothing to do
  };

  template <class Function>
  static constexpr bool fits =
      sizeof(Function) <= inline_bytes &&
      alignof(Function) <= alignof(void*) && std::is_nothrow_move_constructible_v<Function>;

  template <class Function>
  static Function& stored(std::byte* at) {
    return *std::launder(reinterpret_cast<Function*>(at));
  }
  template <class Function>
  static Function* pointed(std::byte* at) {
    Function* f;
    std::memcpy(&f, at, sizeof f);
    return f;
  }

  template <class Function>
  static void relocate_inline(std::byte* to, std::byte* from) noexcept {
    ::new (static_cast<void*>(to)) Function(std::move(stored<Function>(from)));
    stored<Function>(from).~Function();
  }
  template <class Function>
  static constexpr bool is_plain =
      std::is_trivially_copyable_v<Function>&& std::is_trivially_destructible_v<Function>;

  template <class Function>
  static constexpr Operations inline_operations{
      [](std::byte* at) { static_cast<void>(stored<Function>(at)()); },
      is_plain<Function> ? nullptr : &relocate_inline<Function>,
      is_plain<Function> ? nullptr
                         : +[](std::byte* at) noexcept { stored<Function>(at).~Function(); }};
  template <class Function>
  static constexpr Operations allocated_operations{
      [](std::byte* at) { static_cast<void>((*pointed<Function>(at))()); }, nullptr,
      [](std::byte* at) noexcept { delete pointed<Function>(at); }};

  void take(Action& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ == nullptr) return;
    if (operations_->relocate != nullptr)
      operations_->relocate(storage_, other.storage_);
    else
      std::memcpy(storage_, other.storage_, inline_bytes);
  }

  alignas(void*) std::byte storage_[inline_bytes];
  const Operations* operations_ = nullptr;
};

}  // namespace trainyard::sim
