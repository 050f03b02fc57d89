#include "sim/random.hpp"

#include <Random123/philox.h>

#include <cmath>

#include "sim/check.hpp"

namespace trainyard::sim {
namespace {

/// A one-to-one scrambling of 64 bits (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014, with the constants of variant 13).
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::array<std::uint64_t, 2> block(std::uint64_t seed, std::uint64_t place, std::uint64_t number) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const auto word =
      philox({low(number), high(number), low(place), high(place)}, {low(seed), high(seed)});
  return {word[0] | std::uint64_t{word[1]} << 32, word[2] | std::uint64_t{word[3]} << 32};
}

constexpr double two_to_minus_53 = 0x1p-53;
constexpr double two_to_minus_52 = 0x1p-52;
double half_open(std::uint64_t bits) {
  return double(bits >> 11) * two_to_minus_53;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  const r123::Philox4x32 generate;
  const r123::Philox4x32::ctr_type c{{counter[0], counter[1], counter[2], counter[3]}};
  const r123::Philox4x32::key_type k{{key[0], key[1]}};
  const auto out = generate(c, k);
  return {out[0], out[1], out[2], out[3]};
}

std::uint64_t hash_path(std::string_view path) {
  std::uint64_t h = 0xcbf29ce484222325u;  // FNV-1a, 64 bits
  for (const char c : path) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return scramble(h);
}

Stream::Stream(Seed seed, std::string_view path) : seed_(seed.value), place_(hash_path(path)) {}

Stream Stream::child(std::uint64_t number) const {
  Stream result;
  result.seed_ = seed_;
  result.place_ = scramble(place_ + scramble(number + 0x9e3779b97f4a7c15u));
  return result;
}

std::uint64_t Stream::bits() {
  if (position_++ % 2 != 0) return spare_;
  const auto two = block(seed_, place_, (position_ - 1) / 2);
  spare_ = two[1];
  return two[0];
}

std::uint64_t Stream::bits_at(std::uint64_t index) const {
  return block(seed_, place_, index / 2)[index % 2];
}

double Stream::uniform() {
  return half_open(bits());
}
double Stream::uniform_at(std::uint64_t index) const {
  return half_open(bits_at(index));
}
double Stream::uniform_open() {
  return double((bits() >> 11) + 1) * two_to_minus_53;
}

double Stream::exponential(double mean) {
  check(mean >= 0.0, "a mean lifetime is not negative", mean);
  return -mean * std::log(uniform_open());
}

double Stream::weibull(double shape, double scale) {
  check(shape > 0.0 && scale >= 0.0, "a Weibull law has shape > 0 and scale >= 0", shape, scale);
  return scale * std::pow(-std::log(uniform_open()), 1.0 / shape);
}

// The middle of one of 2^52 equal cells: never 0, never 1, symmetric.
double Stream::normal() {
  return normal_quantile((double(bits() >> 12) + 0.5) * two_to_minus_52);
}

double Stream::log_normal(double median, double sigma) {
  check(median >= 0.0 && sigma >= 0.0, "a log-normal law has median and sigma >= 0", median, sigma);
  return median * std::exp(sigma * normal());
}

std::uint64_t Stream::below(std::uint64_t n) {
  check(n > 0, "a choice is among at least one");
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits()} * n) >> 64);
}

double normal_quantile(double p) {
  check(p > 0.0 && p < 1.0, "a probability lies strictly between 0 and 1", p);
  // Three rational approximations: the middle, the tails, the far tails. Names as in AS 241.
  const auto ratio = [](const double(&above)[8], const double(&below)[8], double x) {
    double numerator = 0.0, denominator = 0.0;
    for (int i = 7; i >= 0; --i) {
      numerator = numerator * x + above[i];
      denominator = denominator * x + below[i];
    }
    return numerator / denominator;
  };
  static constexpr double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                  1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                  4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double b[8] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  static constexpr double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                  5.76949722146069140550e0,  3.64784832476320460504e0,
                                  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double d[8] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                  1.78482653991729133580e0,  2.96560571828504891230e-1,
                                  2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double f[8] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
  const double r = std::sqrt(-std::log(q < 0.0 ? p : 1.0 - p));
  const double x = r <= 5.0 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5.0);
  return q < 0.0 ? -x : x;
}

}  // namespace trainyard::sim
