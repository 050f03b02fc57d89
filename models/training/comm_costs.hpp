#pragma once

#include <functional>
#include <optional>

/// What collectives inside a layer cost the ranks of one stage, so that the costs of a layer can be
/// stated without knowing the network: pure functions of bytes.
///
///     const CommCosts comm = …;                      // GroupTraffic::costs(stage), or free()
///     comm.tensor.all_gather_s(2 * tokens * hidden);
///
/// All sibling groups of the job do the same at the same time: seconds are those of the slowest of
/// the stage. Page: docs/models/step.md.
namespace trainyard::models {

/// Seconds by bytes of the whole tensor (what all members hold together).
struct GroupCosts {
  using ByBytes = std::function<double(double bytes)>;
  ByBytes all_gather_s;
  ByBytes reduce_scatter_s;
  ByBytes all_reduce_s;

  static GroupCosts free() {
    const auto nothing = [](double) { return 0.0; };
    return {nothing, nothing, nothing};
  }
};

/// One dispatch (or combine) of a mixture-of-experts layer, as one rank of an expert-parallel group
/// sees it.
struct ExpertExchange {
  double tokens = 0;       // of this rank
  double token_bytes = 0;  // of one token's hidden state
  int per_token = 1;       // experts that each token goes to
  bool deduplicate =
      false;  // a token crosses once to a scale-up domain with several of its experts
  std::optional<int> server_limit{};  // node-limited routing
};

struct CommCosts {
  GroupCosts tensor;
  GroupCosts context;
  /// One step of the context ring: every rank passes so many bytes to its neighbour.
  std::function<double(double bytes)> context_step_s;
  std::function<double(const ExpertExchange&)> expert_exchange_s;

  static CommCosts free() {
    return {GroupCosts::free(), GroupCosts::free(), [](double) { return 0.0; },
            [](const ExpertExchange&) { return 0.0; }};
  }
};

}  // namespace trainyard::models
