#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/network/completion_heap.hpp"
#include "models/network/max_min.hpp"
#include "sim/action.hpp"
#include "sim/engine.hpp"
#include "sim/time.hpp"
#include "sim/timer.hpp"
#include "sim/units.hpp"
#include "sim/wait.hpp"

/// Links shared by flows in simulated time, max-min fairly: the fluid network on the engine.
///
/// One pending event for the earliest completion, however many flows run. Starts, ends and capacity
/// changes of one instant are gathered and solved once, in Phase::decision of that instant; no time
/// passes in between. A flow ends at the first nanosecond at which all its bytes can have moved.
///
///     FluidNetwork store(engine, "store");
///     LinkIndex front = store.add_link(200_GBps, "front end");
///     std::vector<Load> path{{front, 1.0}};                         // named first: g++ 12,
///     docs/guide co_await store.transfer(2_TB, path, 25_GBps);                 // stopping the
///     process withdraws it store.bytes_moved(front);                                     // exact
///     at any instant
///
/// A flow without an end, run(), stands for somebody who reads or writes for as long as he is
/// there: its cap is what he asks for, and set_cap() follows him.
///
/// A flow over a broken link (capacity 0) stands still and ends when the link returns or it is
/// withdrawn; Engine::describe_waiting names the link. Equations: docs/models/fluid-network.md.
namespace trainyard::models {

class FluidNetwork;

/// Names one flow of one network, also after its end: then nothing happens.
struct FlowHandle {
  VarIndex var;
  std::uint64_t serial = 0;
};

/// co_await network.transfer(...): the flow starts when it is awaited and is withdrawn when this
/// object goes, finished or not.
class [[nodiscard]] Transfer final : public sim::Wait {
 public:
  Transfer(FluidNetwork& network, Bytes bytes, std::vector<Load> loads, BytesPerSecond cap)
      : network_(&network), bytes_(bytes), loads_(std::move(loads)), cap_(cap) {}
  Transfer(Transfer&&) = default;
  ~Transfer() override { withdraw(); }
  void await_resume() const noexcept {}
  std::string describe() const override;
  /// Its flow while it is awaited; names nothing before and afterwards.
  FlowHandle flow() const { return flow_; }

 protected:
  bool begin() override;
  void withdraw() noexcept override;

 private:
  friend class FluidNetwork;
  FluidNetwork* network_;
  Bytes bytes_;
  std::vector<Load> loads_;
  BytesPerSecond cap_;
  FlowHandle flow_;
};

class FluidNetwork {
 public:
  static constexpr BytesPerSecond unlimited{MaxMin::unlimited};

  FluidNetwork(sim::Engine& engine, std::string name);
  ~FluidNetwork();
  FluidNetwork(const FluidNetwork&) = delete;
  FluidNetwork& operator=(const FluidNetwork&) = delete;

  LinkIndex add_link(BytesPerSecond capacity, std::string name);
  void set_capacity(LinkIndex link, BytesPerSecond capacity);

  /// Moves `bytes` per unit of weight over the links, then calls `on_done` once.
  FlowHandle start(Bytes bytes, std::span<const Load> loads, sim::Action on_done,
                   BytesPerSecond cap = unlimited);
  /// Moves `bytes` once more over the links of a flow that has just ended, in this same instant
  /// (from its `on_done`, say), and then calls `on_done`. Its rate stays: this costs no solve.
  FlowHandle restart(FlowHandle flow, Bytes bytes, sim::Action on_done);
  /// A flow without an end, until it is withdrawn.
  FlowHandle run(std::span<const Load> loads, BytesPerSecond cap = unlimited);
  /// A new cap of a flow that runs; acts with the other changes of this instant.
  void set_cap(FlowHandle flow, BytesPerSecond cap);
  /// What moved stays counted; `on_done` is not called. Nothing happens if the flow has ended.
  void withdraw(FlowHandle flow) noexcept;
  Transfer transfer(Bytes bytes, std::vector<Load> loads, BytesPerSecond cap = unlimited);

  bool is_running(FlowHandle flow) const;
  Bytes bytes_left(FlowHandle flow) const;
  /// Per unit of weight, since the flow began; 0 if it has ended.
  Bytes bytes_moved(FlowHandle flow) const;
  /// With all changes of this instant taken in.
  BytesPerSecond rate(FlowHandle flow);
  /// The full link that holds the flow, with all changes of this instant taken in; none if it is at
  /// its cap or has ended.
  std::optional<LinkIndex> bottleneck(FlowHandle flow);
  /// Since the start of the run, over all flows, weight times bytes each.
  Bytes bytes_moved(LinkIndex link) const;
  /// `on_change` is called at the end of each solve in which the rate of a flow on this link
  /// changed. An empty action: no longer. One a link.
  void watch(LinkIndex link, sim::Action on_change);
  BytesPerSecond capacity(LinkIndex link) const { return BytesPerSecond(solver_.capacity(link)); }
  const std::string& link_name(LinkIndex link) const { return links_[link.index()].name; }
  const std::string& name() const { return name_; }
  std::size_t running() const { return running_; }
  std::uint64_t solves() const { return solver_.counters().solves; }

 private:
  friend class Transfer;
  struct Flow {
    double bytes_left = 0;  // at settled; infinite: no end
    double bytes_moved = 0;
    double rate_Bps = 0;
    Time settled{};
    std::uint64_t serial = 0;  // 0: none
    bool has_ended = false;    // its variable waits for a restart until the next solve
    sim::Action on_done;
    Transfer* transfer = nullptr;
  };
  struct Link {
    std::string name;
    double bytes_moved = 0;  // up to the last settling of each user
    std::uint32_t watch = not_watched;
  };
  struct Watch {
    sim::Action on_change;
    bool is_due = false;
  };
  static constexpr std::uint32_t not_watched = 0xffffffffu;

  FlowHandle begin(Bytes bytes, std::span<const Load> loads, BytesPerSecond cap);
  double moved_since(const Flow& flow) const;
  void settle(std::size_t index);
  void book(std::size_t index, double bytes);
  void ask_for_solve();
  void solve();
  void tell_watches();
  void aim(std::size_t index);
  void aim_at_next_completion();
  void complete_due();
  std::string describe_flow(FlowHandle flow) const;

  sim::Engine* engine_;
  std::string name_;
  MaxMin solver_;
  std::vector<Link> links_;
  std::vector<Watch> watches_;
  std::vector<Flow> flows_;  // by variable
  CompletionHeap<Time> completions_;
  std::size_t running_ = 0;
  std::vector<VarIndex> ended_;  // since the last solve
  std::uint64_t next_serial_ = 1;
  sim::Timer completion_;
  sim::Timer solving_;
};

}  // namespace trainyard::models
