#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/compute/gpu_spec.hpp"
#include "models/training/job_spec.hpp"

/// The constants that `trainyard calibrate` fits, each with what was known about it before and a
/// sentence why it exists. A constant sets one figure or several: a shared one those of all GPU
/// types. Whatever is not in this table is a documented fact of its part and is left alone.
///
/// Few: every constant more is one that a new machine has to guess. None belongs to a row or a
/// paper; those of a software stack are the ones without which its rows carry a sign
/// (docs/models/kernels.md).
namespace trainyard::scenarios {

/// One figure of the catalog: scenarios/parts/<kind>/<part>.json, under this key of its figures.
struct FigurePlace {
  std::string kind;  // "calibration" or "software"
  std::string
      part;  // "*": every part of the kind that has the figure; "nemo*": whose name starts so
  std::string key;

  bool covers(const FigurePlace& one) const {
    const bool is_any = !part.empty() && part.back() == '*';
    return kind == one.kind && key == one.key && !one.part.empty() &&
           (is_any ? one.part.starts_with(part.substr(0, part.size() - 1)) : part == one.part);
  }
  friend auto operator<=>(const FigurePlace&, const FigurePlace&) = default;
};

struct Constant {
  std::string name;    // "h100 gemm_16bit"
  double prior = 1;    // times in seconds
  double sigma = 0.3;  // of its logarithm
  double low = 0, high = 0;
  std::vector<FigurePlace> sets;  // each of them to its value
  std::string why;
};

/// A figure that is no constant of its own: value = product of constants / product of others.
struct TiedFigure {
  FigurePlace place;
  std::vector<std::string> times;
  std::vector<std::string> over;
  std::string why;
};

struct ConstantTable {
  std::vector<Constant> constants;
  std::vector<TiedFigure> tied;

  std::size_t index_of(std::string_view name) const;  // must be there
};

const ConstantTable& calibrated_constants();

/// A number of a spec, found by the key under which describe() knows it. Durations in seconds.
class Knob {
 public:
  explicit Knob(double& number) : number_(&number) {}
  explicit Knob(Duration& time) : time_(&time) {}
  double value() const;
  void set(double value) const;
  bool is_time() const;

 private:
  double* number_ = nullptr;
  Duration* time_ = nullptr;
};

/// Nothing if the struct has no such number.
std::optional<Knob> find_knob(models::GpuCalibration& calibration, std::string_view key);
std::optional<Knob> find_knob(models::SoftwareSpec& software, std::string_view key);
/// How the key is written in a part: a number, or a time with its unit.
bool is_time(const FigurePlace& place);

/// Can this figure change the step of such a job? Spares the fit most of its derivatives; true when
/// in doubt.
bool can_move(std::string_view key, const models::JobSpec& job);

}  // namespace trainyard::scenarios
