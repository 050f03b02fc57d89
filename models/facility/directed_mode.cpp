#include "models/facility/directed_mode.hpp"

#include <Eigen/Dense>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstVector = Eigen::Map<const Vector>;

ConstVector vector_of(std::span<const double> values) {
  return {values.data(), Eigen::Index(values.size())};
}

/// Terms of a Taylor sum with |A| h at most 1/4: the next one is below 0.25^14 / 15! = 3e-21.
constexpr int taylor_terms = 14;

class DirectedMode final : public ThermalMode {
 public:
  explicit DirectedMode(const ThermalMatrix& m) : n_(Eigen::Index(m.capacities.size())) {
    check(
        m.capacities.size() <= directed_nodes,
        "a thermal network with one-way streams has at most 400 nodes; join equal racks in cohorts",
        m.capacities.size());
    capacities_ = vector_of(m.capacities);
    a_ = -Eigen::Map<const RowMajor>(m.exchange.data(), n_, n_);
    a_.diagonal() -= vector_of(m.losses);
    a_ = capacities_.cwiseInverse().asDiagonal() * a_;
    // The logarithmic norm for the largest absolute value: no error or slope grows faster.
    for (Eigen::Index i = 0; i < n_; ++i)
      growth_ = std::max(growth_, a_(i, i) - std::abs(a_(i, i)) + a_.row(i).cwiseAbs().sum());
    // Rows that add up to zero but for rounding do not grow.
    const double norm = a_.cwiseAbs().rowwise().sum().maxCoeff();
    if (growth_ < 1e-12 * norm) growth_ = 0.0;
    while (bottom_ < 62 && norm * std::ldexp(1e-9, bottom_ + 1) <= 0.25) ++bottom_;
    if (growth_ == 0.0) {
      const Eigen::PartialPivLU<Matrix> solver(a_);
      if (solver.rcond() > 1e-13) inverse_ = solver.inverse();
    }
  }

  bool is_directed() const override { return true; }
  std::span<const double> rates() const override { return {}; }

  std::vector<double> coordinates(std::span<const double> temperatures) const override {
    return {temperatures.begin(), temperatures.end()};
  }
  std::vector<double> temperatures(std::span<const double> coordinates) const override {
    return {coordinates.begin(), coordinates.end()};
  }
  double temperature(std::size_t node, std::span<const double> coordinates) const override {
    return coordinates[node];
  }
  std::vector<double> sources(std::span<const double> watts) const override {
    std::vector<double> b(watts.begin(), watts.end());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] /= capacities_[Eigen::Index(i)];
    return b;
  }
  void add_heat(std::size_t node, double watts, std::span<double> sources) const override {
    sources[node] += watts / capacities_[Eigen::Index(node)];
  }
  double slope(std::size_t node, std::span<const double> coordinates,
               std::span<const double> sources) const override {
    return a_.row(Eigen::Index(node)).dot(vector_of(coordinates)) + sources[node];
  }

  void step(Duration h, std::span<const double> sources, std::span<double> coordinates,
            std::span<double> integrals) override {
    Vector t = vector_of(coordinates);
    Vector integral = Vector::Zero(n_);
    advance(h, vector_of(sources), t, &integral);
    for (std::size_t i = 0; i < coordinates.size(); ++i) {
      coordinates[i] = t[Eigen::Index(i)];
      integrals[i] += integral[Eigen::Index(i)];
    }
  }

  std::unique_ptr<Course> course(std::size_t node, std::span<const double> coordinates,
                                 std::span<const double> sources) override;

  std::size_t bytes() const override {
    return std::size_t(n_ * n_) * sizeof(double) * (1 + (inverse_ ? 1 : 0) + 3 * powers_.size());
  }

  /// Steps of 2^k ns, the longest first, then the Taylor sum.
  void advance(Duration h, const Vector& b, Vector& t, Vector* integral) {
    auto left = std::uint64_t(h.count());
    for (int k = 62; k >= bottom_; --k) {
      if (!(left >> k & 1)) continue;
      left -= std::uint64_t{1} << k;
      const Power& power = at(k);
      if (integral) *integral += power.p * t + power.q * b;
      t = power.e * t + power.p * b;
    }
    if (left == 0) return;
    const double s = double(left) * 1e-9;
    Vector term = s * (a_ * t + b);  // s^(m+1) / (m+1)! A^m (A T + b)
    if (integral) *integral += s * t;
    for (int m = 1; m <= taylor_terms; ++m) {
      t += term;
      if (integral) *integral += s / (m + 1) * term;
      term = s / (m + 1) * (a_ * term);
    }
  }

 private:
  friend class DirectedCourse;

  struct Power {
    Matrix e, p, q;
  };

  const Power& at(int k) {
    if (powers_.empty()) {
      const double s = std::ldexp(1e-9, bottom_);
      Matrix term = Matrix::Identity(n_, n_);  // (A s)^m / m!
      Power first{term, Matrix::Zero(n_, n_), Matrix::Zero(n_, n_)};
      for (int m = 1; m <= taylor_terms; ++m) {
        first.p += s / m * term;
        first.q += s * s / (m * (m + 1)) * term;
        term = s / m * (a_ * term);
        first.e += term;
      }
      powers_.push_back(std::move(first));
    }
    while (int(powers_.size()) <= k - bottom_) {
      const Power& half = powers_.back();
      powers_.push_back(
          {half.e * half.e, half.p + half.e * half.p, 2.0 * half.q + half.p * half.p});
    }
    return powers_[std::size_t(k - bottom_)];
  }

  Eigen::Index n_;
  Vector capacities_;
  Matrix a_;
  std::optional<Matrix> inverse_;
  double growth_ = 0.0;  // 1/s
  int bottom_ = 0;       // the shortest kept power is 2^bottom ns
  std::vector<Power> powers_;
};

/// Walks forward with all temperatures, as one of them cannot be had alone. Bounds come from the
/// largest slope anywhere: it never grows faster than the logarithmic norm allows.
class DirectedCourse final : public Course {
 public:
  DirectedCourse(DirectedMode& mode, Eigen::Index node, Vector t, Vector b)
      : mode_(mode), node_(node), start_(t), t_(std::move(t)), b_(std::move(b)) {
    if (mode_.inverse_) steady_ = -(*mode_.inverse_ * b_);
  }

  Sight at(Duration after) override {
    go_to(after);
    const Vector slope = mode_.a_ * t_ + b_;
    const double bend = (mode_.a_ * slope).cwiseAbs().maxCoeff();
    Sight sight{t_[node_],
                slope[node_],
                bend,
                forever,
                std::numeric_limits<double>::infinity(),
                std::numeric_limits<double>::infinity()};
    if (mode_.growth_ > 0.0) {
      sight.curvature *= std::exp(1.0);
      sight.reach = seconds(1.0 / mode_.growth_);
    } else if (steady_) {
      const double swing = (t_ - *steady_).cwiseAbs().maxCoeff(), end = (*steady_)[node_];
      sight.rise_left = end + swing - sight.value;
      sight.fall_left = sight.value - end + swing;
    }
    return sight;
  }

  double value(Duration after) override {
    if (after < at_) return value_from(Duration::zero(), start_, after);
    return value_from(at_, t_, after);
  }

 private:
  double value_from(Duration from, Vector t, Duration to) const {
    mode_.advance(to - from, b_, t, nullptr);
    return t[node_];
  }

  void go_to(Duration after) {
    if (after < at_) {
      t_ = start_;
      at_ = Duration::zero();
    }
    mode_.advance(after - at_, b_, t_, nullptr);
    at_ = after;
  }

  DirectedMode& mode_;
  Eigen::Index node_;
  Vector start_, t_, b_;
  Duration at_{};
  std::optional<Vector> steady_;
};

std::unique_ptr<Course> DirectedMode::course(std::size_t node, std::span<const double> coordinates,
                                             std::span<const double> sources) {
  return std::make_unique<DirectedCourse>(*this, Eigen::Index(node), vector_of(coordinates),
                                          vector_of(sources));
}

}  // namespace

std::unique_ptr<ThermalMode> make_directed_mode(const ThermalMatrix& matrix) {
  return std::make_unique<DirectedMode>(matrix);
}

}  // namespace trainyard::models
