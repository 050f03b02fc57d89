#pragma once

#include "models/compute/kernels.hpp"
#include "models/training/stage_costs.hpp"

/// What layer_costs.cpp and stage_costs.cpp share.
namespace trainyard::models {

/// Of both passes.
struct Seconds {
  double forward = 0;
  double backward = 0;
  double weight_gradient = 0;  // contained in backward

  Seconds& operator+=(const Seconds& o) {
    forward += o.forward;
    backward += o.backward;
    weight_gradient += o.weight_gradient;
    return *this;
  }
  friend Seconds operator*(const Seconds& s, double x) {
    return {s.forward * x, s.backward * x, s.weight_gradient * x};
  }
};

Seconds linear_s(const GpuSpec& gpu, Operands operands, const LinearShape& shape,
                 KernelTerms terms);

KernelTerms kernel_terms(const Plan& plan);

/// One launch.
double floor_s(const GpuSpec& gpu, KernelTerms terms);

/// Splits compute into model FLOPs at peak (`useful_s` forward, twice that backward) and the rest.
/// Attention skips what the mask hides but the convention counts it, so a pass may take less than
/// its FLOPs at peak; the other pass then carries the rest.
PassPair split_useful(const Seconds& compute, double useful_s);

/// Collectives of the residual stream (16 bit) in one pass.
struct TensorTraffic {
  double pairs = 0;          // of a gather and a scatter, or of one all-reduce
  double regathered = 0;     // gathers more in the backward pass, which nothing hides
  bool fp8_gathers = false;  // gathers carry one byte an element
};
Seconds exposed_tensor_s(const Plan& plan, const SoftwareSpec& software, const CommCosts& comm,
                         const TensorTraffic& traffic);

}  // namespace trainyard::models
