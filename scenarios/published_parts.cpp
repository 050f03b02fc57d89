#include "scenarios/published_parts.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "scenarios/read.hpp"
#include "scenarios/uncertainty.hpp"

namespace trainyard::scenarios {
namespace {

struct GpuName {
  std::string_view published;
  std::string_view part;
};
constexpr std::array gpu_names{GpuName{"V100-32GB", "v100-32gb"},
                               GpuName{"V100", "v100-32gb"},
                               GpuName{"A100-40GB", "a100-40gb-sxm"},
                               GpuName{"A100-80GB", "a100-80gb-sxm"},
                               GpuName{"A100", "a100-80gb-sxm"},
                               GpuName{"H100-96GB", "h100-96gb-500w"},
                               GpuName{"H100-80GB", "h100-sxm"},
                               GpuName{"H100", "h100-sxm"},
                               GpuName{"H200", "h200-sxm"},
                               GpuName{"B200", "b200-sxm"},
                               GpuName{"B300", "b300-sxm"},
                               GpuName{"GB200", "gb200"},
                               GpuName{"GB300", "gb300"}};

/// "MI250X (GCD)" to "mi250x-gcd".
std::string as_part_name(std::string_view published) {
  std::string out;
  for (const char c : published) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u))
      out += char(std::tolower(u));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

template <class T>
const T* kept(std::map<std::string, std::optional<T>>& known, const Catalog& catalog,
              const std::string& name) {
  auto [found, is_new] = known.try_emplace(name);
  if (is_new) found->second = make_part<T>(catalog, name);
  return found->second ? &*found->second : nullptr;
}

}  // namespace

PublishedParts::PublishedParts(const Catalog& catalog) : catalog_(catalog) {}

std::string PublishedParts::gpu_name(std::string_view published) const {
  const auto known = std::find_if(gpu_names.begin(), gpu_names.end(),
                                  [&](const GpuName& n) { return n.published == published; });
  if (known != gpu_names.end() && catalog_.find("gpu", known->part))
    return std::string(known->part);
  const std::string plain = as_part_name(published);
  for (const std::string& name : {plain, plain + "-sxm"})
    if (!name.empty() && catalog_.find("gpu", name)) return name;
  return {};
}

const models::GpuSpec* PublishedParts::gpu(const std::string& name) {
  return kept(gpus_, catalog_, name);
}

const models::SoftwareSpec* PublishedParts::software(const std::string& name) {
  return kept(software_, catalog_, name);
}

std::string PublishedParts::software_name(std::string_view stack, std::string_view gpu) const {
  // "h100-96gb-500w", then "h100".
  for (const std::string_view end : {gpu, gpu.substr(0, gpu.find('-')), std::string_view()}) {
    const std::string name = std::string(stack) + (end.empty() ? "" : "-") + std::string(end);
    if (catalog_.find("software", name)) return name;
  }
  return {};
}

const models::TransformerSpec* PublishedParts::family_of(const models::TransformerSpec& shape) {
  if (!models_) {
    models_.emplace();
    for (const std::string& name : catalog_.names("model"))
      if (auto model = make_part<models::TransformerSpec>(catalog_, name))
        models_->push_back(std::move(*model));
  }
  const auto kv = [](const models::TransformerSpec& m) { return m.kv_heads.value_or(m.heads); };
  for (const models::TransformerSpec& m : *models_)
    if (m.hidden == shape.hidden && m.heads == shape.heads && m.ffn == shape.ffn &&
        m.gated == shape.gated && m.experts.has_value() == shape.experts.has_value() &&
        (m.latent_attention || kv(m) == kv(shape)))
      return &m;
  return nullptr;
}

std::string PublishedParts::how_sure(const std::string& gpu, models::Precision precision) const {
  const Part* part = catalog_.find("gpu", gpu);
  if (!part) return {};
  const std::string key(rate_key(precision));
  // Written out in the GPU's part, or a part of its own that the GPU's names.
  for (const Figure& f : part->figures) {
    if (f.key == "calibration." + key) return f.sure;
    if (f.key != "calibration") continue;
    const Part* calibration = catalog_.find("calibration", f.value);
    if (!calibration) continue;
    for (const Figure& g : calibration->figures)
      if (g.key == key) return g.sure;
  }
  return {};
}

}  // namespace trainyard::scenarios
