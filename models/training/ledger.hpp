#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "models/training/step_profile.hpp"
#include "sim/time.hpp"

/// Every GPU-nanosecond of the cluster is in exactly one account, and the accounts sum to GPUs x
/// time *exactly*: integers, 128 bits (16,384 GPUs x 54 days is 7.6e19 GPU-ns, more than int64
/// holds).
namespace trainyard::models {

enum class Account : std::uint8_t {
  useful,
  kernel_inefficiency,
  recompute,
  bubble,
  exposed_tp,
  exposed_dp,
  exposed_pp,
  exposed_cp,
  exposed_ep,
  data_stall,
  slow,
  checkpoint_stall,   // training stands still for a save
  lost_work,          // steps that a failure made void
  detection,          // broken, but nobody knows yet
  restart,            // replace, start up, load
  waiting_for_nodes,  // the job holds GPUs but lacks some
  spare_idle,
  unallocated,
  down_repair,
  down_fed,
  down_cooled,
  down_connected
};
inline constexpr std::size_t accounts = 22;

constexpr std::string_view name_of(Account a) {
  constexpr std::string_view names[accounts] = {
      "useful",      "kernel_inefficiency", "recompute",   "bubble",
      "exposed_tp",  "exposed_dp",          "exposed_pp",  "exposed_cp",
      "exposed_ep",  "data_stall",          "slow",        "checkpoint_stall",
      "lost_work",   "detection",           "restart",     "waiting_for_nodes",
      "spare_idle",  "unallocated",         "down_repair", "down_fed",
      "down_cooled", "down_connected"};
  return names[static_cast<std::size_t>(a)];
}

/// The account of a part of a step that was kept.
constexpr Account account_of(StepPart part) {
  return static_cast<Account>(part);
}

using GpuNanoseconds = __int128;

/// One set of accounts: of a job, or of the cluster.
class Ledger {
 public:
  /// `gpus` GPUs spent `d` in `account`.
  void add(Account account, std::int64_t gpus, Duration d);
  void add(const Ledger& other);
  /// Moves everything in `other` (time thought to be kept) to one account of this ledger: work that
  /// was lost.
  void add_as(Account account, const Ledger& other);
  /// Splits `d` of each of `gpus` GPUs over the parts of a step in proportion, in integers,
  /// exactly: cumulative rounding, so that the sum is gpus x d to the nanosecond.
  void add_steps(const StepProfile& profile, std::int64_t gpus, Duration d);

  GpuNanoseconds operator[](Account account) const {
    return amount_[static_cast<std::size_t>(account)];
  }
  GpuNanoseconds total() const;
  /// GPU-seconds, for reports.
  double gpu_s(Account account) const;
  void clear() { amount_ = {}; }

 private:
  std::array<GpuNanoseconds, accounts> amount_{};
};

}  // namespace trainyard::models
