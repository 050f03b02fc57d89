#pragma once

#include <memory>

#include "models/facility/thermal_mode.hpp"

/// The mode of a network in which streams carry heat one way, so that no change of coordinates
/// makes its matrix symmetric. With A = -C^(-1) (L + G) and b = C^(-1) q,
///
///     T(h) = E T + P b,       integral of T = P T + Q b,
///     E = e^(A h),  P = integral of e^(A s),  Q = integral of P(s),  s from 0 to h.
///
/// For twice the time they are E E, P + E P and 2 Q + P P: sums of products of numbers that are not
/// negative (A is so off its diagonal, as heat runs downhill), so nothing cancels. A step is the
/// product of those for powers of two nanoseconds, each kept once made, and a Taylor sum for what
/// is shorter than 1 / (4 |A|).
///
/// Source: scaling and squaring, C. Moler, C. Van Loan, Nineteen Dubious Ways to Compute the
/// Exponential of a Matrix, Twenty-Five Years Later, SIAM Review 45 (2003).
namespace trainyard::models {

/// A directed network has at most so many nodes: its steps cost n^2 and its tables n^2 a power.
inline constexpr std::size_t directed_nodes = 400;

std::unique_ptr<ThermalMode> make_directed_mode(const ThermalMatrix& matrix);

}  // namespace trainyard::models
