#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

/// Named random streams. A stream is a *place* in one huge table of random numbers, not a machine
/// with a past: value number i of stream s under seed k is philox4x32-10(key = k, counter = (i,
/// s)). Hence adding a component never changes another one's luck, and two designs compared under
/// one seed see the same failures on the parts they share.
///
///     Stream life = engine.random("failures/node-17/gpu-3");
///     Duration first = seconds(life.exponential(50'000.0 * 3600.0));
///
/// Every distribution below consumes exactly one value a draw (all are inversions), so two models
/// that draw different kinds of numbers stay aligned. The distributions are our own: those of the
/// standard library differ between implementations.
///
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
namespace trainyard::sim {

struct Seed {
  std::uint64_t value = 0;
  friend auto operator<=>(Seed, Seed) = default;
};

class Stream {
 public:
  Stream() = default;
  Stream(Seed seed, std::string_view path);

  /// The stream of a numbered part of this one, without building a path:
  /// streams.child(node).child(3).
  Stream child(std::uint64_t number) const;

  std::uint64_t bits();             ///< 64 random bits
  double uniform();                 ///< in [0, 1)
  double uniform_open();            ///< in (0, 1]: safe under a logarithm
  double exponential(double mean);  ///< mean of 0 gives 0
  double weibull(double shape, double scale);
  double normal();                                 ///< mean 0, standard deviation 1
  double log_normal(double median, double sigma);  ///< median · exp(sigma · normal)
  /// A whole number in [0, n). One value a draw; the bias is below n / 2^64.
  std::uint64_t below(std::uint64_t n);

  /// Random access: what the draw number `index` of a fresh copy of this stream gives.
  std::uint64_t bits_at(std::uint64_t index) const;
  double uniform_at(std::uint64_t index) const;

 private:
  std::uint64_t seed_ = 0;
  std::uint64_t place_ = 0;     // which stream
  std::uint64_t position_ = 0;  // which value is drawn next
  std::uint64_t spare_ = 0;     // one block holds two values: the second, when position_ is odd
};

/// FNV-1a over the bytes, then mixed: our own, so that a path means the same numbers everywhere.
std::uint64_t hash_path(std::string_view path);

/// Value x with Phi(x) = p, for 0 < p < 1; relative error about 1e-16.
/// Source: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988.
double normal_quantile(double p);

/// The bare generator, for known-answer tests.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

}  // namespace trainyard::sim
