#include "scenarios/carry.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "analysis/sha256.hpp"
#include "sim/check.hpp"

namespace trainyard::scenarios {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* schema = "trainyard-carry-1";

/// What the page prints, in the digits that say something.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::stod(text);
}

Json as_json(const std::vector<HeldOut>& studies) {
  Json out = Json::array();
  for (const HeldOut& s : studies)
    out.push_back({{"name", s.name},
                   {"fitted", s.fitted},
                   {"used", s.error.used},
                   {"median_abs_pct", rounded(s.error.median_abs_pct)},
                   {"mean_abs_pct", rounded(s.error.mean_abs_pct)},
                   {"p90_abs_pct", rounded(s.error.p90_abs_pct)},
                   {"mean_signed_pct", rounded(s.error.mean_signed_pct)}});
  return out;
}

std::vector<HeldOut> studies_of(const Json& json) {
  std::vector<HeldOut> out;
  for (const Json& s : json) {
    HeldOut& study = out.emplace_back();
    study.name = s.at("name").get<std::string>();
    study.fitted = s.at("fitted").get<std::size_t>();
    study.error.used = s.at("used").get<std::size_t>();
    study.error.median_abs_pct = s.at("median_abs_pct").get<double>();
    study.error.mean_abs_pct = s.at("mean_abs_pct").get<double>();
    study.error.p90_abs_pct = s.at("p90_abs_pct").get<double>();
    study.error.mean_signed_pct = s.at("mean_signed_pct").get<double>();
  }
  return out;
}

}  // namespace

std::string carry_json(const CarryStudy& study) {
  return Json{{"schema", schema},
              {"constants", study.constants},
              {"rows", study.rows},
              {"largest_gpus", study.largest_gpus},
              {"larger", as_json(study.larger)},
              {"left_out", as_json(study.left_out)}}
             .dump(2) +
         "\n";
}

std::optional<CarryStudy> read_carry(std::string_view text, const std::string& file,
                                     std::vector<Diagnostic>& mistakes) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") == schema)
      return CarryStudy{.constants = json.at("constants").get<std::string>(),
                        .rows = json.at("rows").get<std::size_t>(),
                        .largest_gpus = json.at("largest_gpus").get<int>(),
                        .larger = studies_of(json.at("larger")),
                        .left_out = studies_of(json.at("left_out"))};
  } catch (const Json::exception&) {
  }
  mistakes.push_back({file,
                      1,
                      1,
                      {},
                      "this is no study of how far constants carry",
                      "a file that trainyard calibrate --carry wrote",
                      "carry",
                      {}});
  return {};
}

std::string constants_digest(const ConstantTable& table, const std::vector<double>& values) {
  check(values.size() == table.constants.size(), "every constant has a value", values.size());
  std::string text;
  for (std::size_t c = 0; c < values.size(); ++c) {
    char value[32];
    std::snprintf(value, sizeof value, "%.4g", values[c]);
    text += table.constants[c].name + "=" + value + "\n";
  }
  return analysis::sha256(text);
}

}  // namespace trainyard::scenarios
