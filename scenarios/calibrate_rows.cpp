#include "scenarios/calibrate_rows.hpp"

#include <algorithm>
#include <initializer_list>

#include "models/compute/kernels.hpp"
#include "models/training/step_model.hpp"
#include "scenarios/world.hpp"

namespace trainyard::scenarios {
namespace {

constexpr std::size_t stride_of_composed = 12;

/// A published run with its step model. The model is not shared between threads: a fit evaluates
/// one row at a time.
struct LiveRun {
  LiveRun(const PublishedRun& published, const Site& site)
      : run(published), model(run.job, run.machine.cluster.server, site.router) {
    for (int s = 0; s < run.machine.cluster.servers; ++s)
      placement.servers.emplace_back(std::size_t(s));
  }
  PublishedRun run;
  models::StepModel model;
  models::Placement placement;
};

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

std::string calibration_of(const Catalog& catalog, const std::string& gpu_part) {
  const Part* part = catalog.find("gpu", gpu_part);
  const Node* named = part ? part->fields.find("calibration") : nullptr;
  return named && named->kind == Node::Kind::text ? named->text : std::string();
}

CalibrationSet::CalibrationSet(const Catalog& catalog) : catalog_(catalog), shelf_(catalog) {}

void CalibrationSet::skip(const PublishedTable& table, std::string id, int line,
                          SkipReason reason) {
  skipped_.push_back({file_name(table.name) + ": " + std::move(id), line, std::move(reason)});
}

void CalibrationSet::add(const PublishedTable& table, std::vector<Diagnostic>& mistakes) {
  const auto has_all = [&](std::initializer_list<const char*> columns) {
    return std::all_of(columns.begin(), columns.end(),
                       [&](const char* column) { return table.has(column); });
  };
  if (has_all({"gpu", "kind", "m", "n", "k", "value", "unit"}))
    add_products(table, mistakes);
  else if (has_all({"gpu", "gpus", "layers", "hidden", "seq"}))
    add_runs(table, mistakes);
}

void CalibrationSet::add_runs(const PublishedTable& table, std::vector<Diagnostic>& mistakes) {
  std::vector<PublishedRun> runs;
  for (const TableRow& row : table.rows) {
    auto read = published_run(table, row, shelf_, mistakes);
    if (const auto* reason = std::get_if<SkipReason>(&read))
      skip(table, std::to_string(row.line), row.line, *reason);
    else
      runs.push_back(std::move(std::get<PublishedRun>(read)));
  }
  if (!mistakes.empty()) return;
  const bool is_composed = std::all_of(runs.begin(), runs.end(), [](const PublishedRun& run) {
    return run.software_part == "vtrain" && run.machine.cluster.servers == 1;
  });
  for (std::size_t i = 0; i < runs.size(); i += is_composed ? stride_of_composed : 1) {
    const PublishedRun& run = runs[i];
    const models::ServerSpec& server = run.machine.cluster.server;
    const Site* site = shelf_.sites.of(run.machine);
    if (!site) {
      skip(table, run.id, run.line, "no such fabric");
      continue;
    }
    const auto live = std::make_shared<LiveRun>(run, *site);
    if (const models::StepProfile& profile = live->model.profile(live->placement);
        !profile.cut_off.empty()) {
      skip(table, run.id, run.line, profile.cut_off);
      continue;
    }
    CalibrationRow& out = rows_.emplace_back();
    out.id = run.id;
    out.table = file_name(table.name);
    out.stack = run.stack;
    out.gpu = run.gpu;
    out.precision = run.precision;
    out.calibration = calibration_of(catalog_, run.gpu_part);
    out.software = run.software_part;
    out.gpus = run.job.gpus;
    out.has_experts = run.has_experts();
    out.published_s = run.published_s;
    out.gpu_constants = server.gpu.calibration;
    out.software_constants = run.job.software;
    out.is_moved_by = [live](std::string_view key) { return can_move(key, live->run.job); };
    out.predict_s = [live](const models::GpuCalibration& gpu,
                           const models::SoftwareSpec& software) {
      return live->model.step_s_with(gpu, software, live->placement);
    };
  }
}

void CalibrationSet::add_products(const PublishedTable& table, std::vector<Diagnostic>& mistakes) {
  constexpr double tera = 1e12;
  for (const TableRow& row : table.rows) {
    const std::string_view kind = table.text(row, "kind");
    if (!kind.starts_with("GEMM")) continue;  // memory, attention, disks: not fitted here
    const std::string gpu(table.text(row, "gpu"));
    const std::string id = gpu + " " + std::string(kind) + " " + std::to_string(row.line);
    const auto m = table.number(row, "m", mistakes), n = table.number(row, "n", mistakes),
               k = table.number(row, "k", mistakes), value = table.number(row, "value", mistakes);
    const std::string part = shelf_.parts.gpu_name(gpu);
    const models::GpuSpec* spec = part.empty() ? nullptr : shelf_.parts.gpu(part);
    const bool is_fp8 = mentions(kind, "fp8");
    if (!m || !n || !k || !value || table.text(row, "unit") != "TFLOP/s") {
      skip(table, id, row.line, "no shape or no rate in TFLOP/s");
      continue;
    }
    if (!spec || (!is_fp8 && !mentions(kind, "fp16") && !mentions(kind, "bf16"))) {
      skip(table, id, row.line, spec ? "precision without a law" : "GPU not in the catalog");
      continue;
    }
    const auto operands = is_fp8 ? models::Operands::fp8 : models::Operands::bits16;
    CalibrationRow& out = rows_.emplace_back();
    out.id = id;
    out.table = file_name(table.name);
    out.stack = "GEMM benchmark";
    out.gpu = gpu;
    out.precision = is_fp8 ? "fp8" : "fp16";
    out.calibration = calibration_of(catalog_, part);
    out.published_s = 2 * *m * *n * *k / (*value * tera);
    out.gpu_constants = spec->calibration;
    out.is_moved_by = [is_fp8](std::string_view key) {
      return key == "k_half" || key == "wave_penalty" || key == "kernel_floor" ||
             key == (is_fp8 ? "gemm_fp8" : "gemm_16bit");
    };
    out.predict_s = [device = *spec, operands, m = *m, n = *n, k = *k](
                        const models::GpuCalibration& constants,
                        const models::SoftwareSpec&) mutable {
      device.calibration = constants;
      return models::gemm_s(device, operands, m, n, k);
    };
  }
}

}  // namespace trainyard::scenarios
