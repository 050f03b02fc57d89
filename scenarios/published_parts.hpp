#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "models/training/parallel_spec.hpp"
#include "models/training/transformer_spec.hpp"
#include "scenarios/catalog.hpp"

/// Parts of the catalog as tables of published figures call them, each read once.
namespace trainyard::scenarios {

class PublishedParts {
 public:
  explicit PublishedParts(const Catalog& catalog = Catalog::standard());

  /// The part of a GPU as a table names it ("H100-80GB"); empty if the catalog has none.
  std::string gpu_name(std::string_view published) const;
  /// Null if there is no such part.
  const models::GpuSpec* gpu(const std::string& name);
  const models::SoftwareSpec* software(const std::string& name);
  /// The part of a stack on this GPU: "llm-foundry-h100" before "llm-foundry". Empty: none.
  std::string software_name(std::string_view stack, std::string_view gpu) const;

  /// A model of the catalog with blocks of this shape, whatever its depth and vocabulary (proxies
  /// of a model have fewer layers). Null if there is none.
  const models::TransformerSpec* family_of(const models::TransformerSpec& shape);

  /// How sure the rate of products in this precision is for this GPU: "fit", "calc" (derived from
  /// a fitted one), …; empty if the catalog says nothing of it.
  std::string how_sure(const std::string& gpu, models::Precision precision) const;

 private:
  const Catalog& catalog_;
  std::map<std::string, std::optional<models::GpuSpec>> gpus_;
  std::map<std::string, std::optional<models::SoftwareSpec>> software_;
  std::optional<std::vector<models::TransformerSpec>> models_;
};

}  // namespace trainyard::scenarios
