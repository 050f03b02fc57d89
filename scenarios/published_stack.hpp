#pragma once

#include <string>
#include <string_view>

#include "models/training/parallel_spec.hpp"

/// Which software ran a published row, and what that software is known to do where the row says
/// nothing: facts of papers, manuals and recipes, one row of a table a stack, none of them fitted.
///
///     const PublishedStack& stack = stack_of({.source = "… Megatron-LM, SC 2021", …});
///     stack.software;                      // "megatron-2021", a part of the catalog
///     stack.missing_chunks;                // two_or_three
///
/// Page: docs/guide/validate.md.
namespace trainyard::scenarios {

/// Model chunks of a stage where a row gives none.
enum class MissingChunks {
  one,
  two,           // torchtitan's interleaved schedule
  two_or_three,  // whichever divides the layers of a stage
  four,
  eight,
  layers  // one layer a chunk
};

/// What a row calls "selective" recomputation.
enum class MeaningOfSelective { attention_core, per_operation, per_block };

struct PublishedStack {
  std::string_view name;                                // in reports: "SC'21"
  std::string_view software;                            // part of the catalog
  models::Sharding sharding = models::Sharding::zero1;  // where a row gives none
  bool sequence_parallel = true;                        // the same
  MissingChunks missing_chunks = MissingChunks::one;
  MeaningOfSelective selective = MeaningOfSelective::attention_core;
  std::string_view order = "tp-cp-dp-pp";
  models::ContextExchange context_exchange = models::ContextExchange::ring;
  /// Recipes that list neither recomputation nor offloading, and use both.
  bool leaves_out_recompute = false;
  bool lists_only_fsdp = false;  // "0" is said of a sharded optimizer too
  /// `micro_batch` is the batch of a replica, which the pipeline cuts into one piece a stage.
  bool has_local_batch = false;
  bool whole_experts = false;  // experts are not split over tensor-parallel ranks
  bool is_known = true;        // false: the row names no stack of this table
};

/// What of a row tells the stack.
struct StackHints {
  std::string_view source{};
  std::string_view software{};
  std::string_view sharding{};  // the text of zero_stage
  std::string_view note{};
  std::string_view model{};
  std::string_view gpu{};
  std::string_view precision{};
  bool has_experts = false;
};

const PublishedStack& stack_of(const StackHints& hints);

/// Whether `text` contains `word`, case ignored.
bool mentions(std::string_view text, std::string_view word);

/// The sharding that a text of a table names; none for "" (the stack decides).
enum class SharedText { not_given, known, unknown };
SharedText read_sharding(std::string_view text, models::Sharding& sharding);

}  // namespace trainyard::scenarios
