#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "models/facility/first_crossing.hpp"
#include "sim/time.hpp"

/// One decomposition of a thermal network: what is needed to step it while its conductances stay.
///
///     C dT/dt = -(L + G) T + q
///
/// with L the exchange between nodes and G, diagonal, the losses to boundaries. A mode has
/// coordinates of its own in which a step is cheap. Symmetric L: A = C^(-1/2) (L + G) C^(-1/2) =
/// V diag(-r) V^T, coordinates y = V^T C^(1/2) T, and with p1(z) = (e^z - 1) / z, p2(z) =
/// (p1(z) - 1) / z,
///
///     y(h) = y + h p1(r h) (r y + s),       integral of y = h y + h^2 p2(r h) (r y + s),
///
/// where s = V^T C^(-1/2) q; both are right for r = 0 too (a closed room: linear in time). A part
/// of the network that touches no boundary has r = 0 *exactly*, put in by hand.
///
/// Not symmetric (a stream carries heat one way): coordinates are the temperatures, and the step is
/// a dense exponential built from steps of 2^k nanoseconds, each made once by doubling.
///
///     std::unique_ptr<ThermalMode> mode = make_mode({.capacities = {25e3, 300e3},
///                                                    .exchange = {100, -100, -100, 100},
///                                                    .losses = {0, 0}});
namespace trainyard::models {

struct ThermalMatrix {
  std::vector<double> capacities;  // J/K, above zero
  std::vector<double> exchange;    // W/K, row by row; rows add up to zero
  std::vector<double> losses;      // W/K; below zero where a source grows faster than losses
};

class ThermalMode {
 public:
  virtual ~ThermalMode() = default;
  virtual bool is_directed() const = 0;
  /// r in 1/s, ascending within each part of the network; empty if directed.
  virtual std::span<const double> rates() const = 0;

  virtual std::vector<double> coordinates(std::span<const double> temperatures) const = 0;
  /// Back to temperatures; also from integrals of coordinates to integrals of temperatures.
  virtual std::vector<double> temperatures(std::span<const double> coordinates) const = 0;
  virtual double temperature(std::size_t node, std::span<const double> coordinates) const = 0;
  /// The sources s of watts at every node, and of some more watts at one.
  virtual std::vector<double> sources(std::span<const double> watts) const = 0;
  virtual void add_heat(std::size_t node, double watts, std::span<double> sources) const = 0;
  virtual double slope(std::size_t node, std::span<const double> coordinates,
                       std::span<const double> sources) const = 0;

  /// Steps the coordinates by h and adds their integral over h to `integrals`.
  virtual void step(Duration h, std::span<const double> sources, std::span<double> coordinates,
                    std::span<double> integrals) = 0;
  /// The course of one temperature from here; it must not outlive the mode.
  virtual std::unique_ptr<Course> course(std::size_t node, std::span<const double> coordinates,
                                         std::span<const double> sources) = 0;
  virtual std::size_t bytes() const = 0;
};

/// Cost O(n^3) once; steps O(n) if symmetric, some 50 n^2 if directed.
std::unique_ptr<ThermalMode> make_mode(const ThermalMatrix& matrix);

/// T of (L + G) T = q. Check: every part of the network reaches a boundary.
std::vector<double> steady_temperatures(const ThermalMatrix& matrix, std::span<const double> watts);

}  // namespace trainyard::models
