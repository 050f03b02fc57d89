#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/catalog.hpp"

/// A catalog of round numbers, so that no test depends on the figures that ship.
namespace trainyard::scenarios::test {

inline std::string part_text(const std::string& kind, const std::string& name,
                             const std::vector<std::pair<std::string, std::string>>& figures) {
  std::string out = R"({"part": ")" + name + R"(", "kind": ")" + kind +
                    R"(", "title": "for tests", "retrieved": "2026-11-30", "figures": {)";
  std::string separator;
  for (const auto& [key, value] : figures) {
    out += separator + "\"" + key + R"(": {"value": )" + value +
           R"(, "source": "round numbers", "sure": "calc"})";
    separator = ", ";
  }
  return out + "}}";
}

inline Catalog catalog() {
  struct Row {
    std::string file, text;
  };
  static const std::vector<Row> rows = [] {
    std::vector<Row> r;
    const auto add = [&](const std::string& kind, const std::string& name,
                         const std::vector<std::pair<std::string, std::string>>& figures) {
      r.push_back({kind + "/" + name + ".json", part_text(kind, name, figures)});
    };
    add("calibration", "constants-1000", {{"gemm_16bit", "0.75"}, {"attention", "0.42"}});
    add("gpu", "gpu-1000",
        {{"peak_16bit", "\"1000 TFLOP/s\""},
         {"sms", "100"},
         {"memory", "\"80 GB\""},
         {"memory_rate", "\"3 TB/s\""},
         {"scale_up_rate", "\"450 GB/s\""},
         {"power_max", "\"700 W\""},
         {"power_idle", "\"70 W\""},
         {"calibration", "\"constants-1000\""}});
    add("gpu", "gpu-300",
        {{"peak_16bit", "\"300 TFLOP/s\""},
         {"sms", "100"},
         {"memory", "\"40 GB\""},
         {"memory_rate", "\"1.5 TB/s\""},
         {"scale_up_rate", "\"300 GB/s\""},
         {"power_max", "\"400 W\""},
         {"power_idle", "\"50 W\""}});
    add("nic", "nic-400g",
        {{"rate", "\"400 Gb/s\""}, {"latency", "\"10 us\""}, {"power", "\"25 W\""}});
    add("server", "box-8",
        {{"gpu", "\"gpu-1000\""}, {"nic", "\"nic-400g\""}, {"power_overhead", "\"4 kW\""}});
    add("switch", "switch-64",
        {{"ports", "64"}, {"port_rate", "\"400 Gb/s\""}, {"latency", "\"500 ns\""}});
    add("switch", "switch-slow", {{"ports", "32"}, {"port_rate", "\"100 Gb/s\""}});
    add("model", "tiny-1b",
        {{"layers", "24"},
         {"hidden", "2048"},
         {"heads", "16"},
         {"ffn", "8192"},
         {"vocabulary", "51200"}});
    add("store", "disks", {{"write_rate", "\"10 GB/s\""}, {"read_rate", "\"20 GB/s\""}});
    add("failures", "measured", {{"name", "\"measured\""}});
    add("software", "stack", {{"tensor_overlap_backward", "0.6"}});
    return r;
  }();
  std::vector<PartText> texts;
  for (const Row& row : rows) texts.push_back({row.file, row.text});
  std::vector<Diagnostic> mistakes;
  Catalog built = Catalog::from_texts(texts, mistakes);
  if (!mistakes.empty()) throw std::logic_error(to_text(mistakes));
  return built;
}

}  // namespace trainyard::scenarios::test
