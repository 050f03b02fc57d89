#include "models/facility/thermal_mode.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/facility/directed_mode.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstVector = Eigen::Map<const Vector>;

ConstVector vector_of(std::span<const double> values) {
  return {values.data(), Eigen::Index(values.size())};
}

/// Nodes that exchange heat, directly or through others: label of the part each one is in.
std::vector<std::size_t> parts_of(const ThermalMatrix& m) {
  const std::size_t n = m.capacities.size();
  std::vector<std::size_t> label(n, n), stack;
  std::size_t parts = 0;
  for (std::size_t start = 0; start < n; ++start) {
    if (label[start] != n) continue;
    label[start] = parts;
    stack = {start};
    while (!stack.empty()) {
      const std::size_t i = stack.back();
      stack.pop_back();
      for (std::size_t j = 0; j < n; ++j)
        if (label[j] == n && (m.exchange[i * n + j] != 0.0 || m.exchange[j * n + i] != 0.0)) {
          label[j] = parts;
          stack.push_back(j);
        }
    }
    ++parts;
  }
  return label;
}

class SymmetricMode final : public ThermalMode {
 public:
  explicit SymmetricMode(const ThermalMatrix& m)
      : n_(m.capacities.size()), root_(n_), rates_(n_), vectors_(Matrix::Zero(n_, n_)) {
    for (std::size_t i = 0; i < n_; ++i) root_[i] = std::sqrt(m.capacities[i]);
    const std::vector<std::size_t> label = parts_of(m);
    const std::size_t parts = n_ == 0 ? 0 : 1 + *std::max_element(label.begin(), label.end());
    Eigen::Index column = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      std::vector<std::size_t> nodes;
      for (std::size_t i = 0; i < n_; ++i)
        if (label[i] == part) nodes.push_back(i);
      column = decompose(m, nodes, column);
    }
  }

  bool is_directed() const override { return false; }
  std::span<const double> rates() const override { return {rates_.data(), n_}; }

  std::vector<double> coordinates(std::span<const double> temperatures) const override {
    return spread(vectors_.transpose() * vector_of(temperatures).cwiseProduct(root_));
  }
  std::vector<double> temperatures(std::span<const double> coordinates) const override {
    return spread((vectors_ * vector_of(coordinates)).cwiseQuotient(root_));
  }
  double temperature(std::size_t node, std::span<const double> coordinates) const override {
    return vectors_.row(Eigen::Index(node)).dot(vector_of(coordinates)) / root_[node];
  }
  std::vector<double> sources(std::span<const double> watts) const override {
    return spread(vectors_.transpose() * vector_of(watts).cwiseQuotient(root_));
  }
  void add_heat(std::size_t node, double watts, std::span<double> sources) const override {
    const double scaled = watts / root_[node];
    for (std::size_t i = 0; i < n_; ++i) sources[i] += vectors_(node, i) * scaled;
  }
  double slope(std::size_t node, std::span<const double> coordinates,
               std::span<const double> sources) const override {
    double sum = 0.0;
    for (std::size_t i = 0; i < n_; ++i)
      sum += vectors_(node, i) * (rates_[i] * coordinates[i] + sources[i]);
    return sum / root_[node];
  }

  void step(Duration h, std::span<const double> sources, std::span<double> coordinates,
            std::span<double> integrals) override {
    const double s = to_seconds(h);
    for (std::size_t i = 0; i < n_; ++i) {
      const double z = rates_[i] * s;
      const double p1 = z == 0.0 ? 1.0 : std::expm1(z) / z;
      const double slope = rates_[i] * coordinates[i] + sources[i];
      integrals[i] += s * coordinates[i] + s * s * p2(z, p1) * slope;
      coordinates[i] += s * p1 * slope;
    }
  }

  std::unique_ptr<Course> course(std::size_t node, std::span<const double> coordinates,
                                 std::span<const double> sources) override {
    ExponentialSum sum{.value = temperature(node, coordinates)};
    for (std::size_t i = 0; i < n_; ++i) {
      const double share = vectors_(node, i) / root_[node];
      const double slope = share * (rates_[i] * coordinates[i] + sources[i]);
      if (slope == 0.0) continue;
      sum.slopes.push_back(slope);
      sum.rates.push_back(rates_[i]);
    }
    return std::make_unique<ExponentialCourse>(std::move(sum));
  }

  std::size_t bytes() const override { return (n_ * n_ + 2 * n_) * sizeof(double); }

 private:
  static std::vector<double> spread(const Vector& v) { return {v.data(), v.data() + v.size()}; }

  /// (p1(z) - 1) / z; by its series where the difference would cancel.
  static double p2(double z, double p1) {
    if (std::abs(z) > 0.25) return (p1 - 1.0) / z;
    double term = 0.5, sum = 0.5;
    for (int k = 3; k < 14; ++k) sum += (term *= z / k);
    return sum;
  }

  /// The modes of one part go to the columns from `column` on; returns the next free one.
  Eigen::Index decompose(const ThermalMatrix& m, const std::vector<std::size_t>& nodes,
                         Eigen::Index column) {
    const auto size = Eigen::Index(nodes.size());
    Eigen::MatrixXd a(size, size);
    bool closed = true;
    for (Eigen::Index i = 0; i < size; ++i) {
      const std::size_t p = nodes[std::size_t(i)];
      closed = closed && m.losses[p] == 0.0;
      for (Eigen::Index j = 0; j <= i; ++j) {
        const std::size_t q = nodes[std::size_t(j)];
        // The mean of both halves: streams in a circuit of two leave them equal only to rounding.
        double l = 0.5 * (m.exchange[p * n_ + q] + m.exchange[q * n_ + p]);
        if (p == q) l += m.losses[p];
        a(i, j) = -l / (root_[p] * root_[q]);
      }
    }
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(a);
    check(solver.info() == Eigen::Success, "a symmetric thermal network has its modes");
    for (Eigen::Index k = 0; k < size; ++k) {
      rates_[column + k] = solver.eigenvalues()[k];
      for (Eigen::Index i = 0; i < size; ++i)
        vectors_(Eigen::Index(nodes[std::size_t(i)]), column + k) = solver.eigenvectors()(i, k);
    }
    if (closed) {
      // All nodes of a closed part rise together: the one mode that is known without rounding.
      const Eigen::Index last = column + size - 1;
      double norm = 0.0;
      for (std::size_t p : nodes) norm += m.capacities[p];
      rates_[last] = 0.0;
      for (std::size_t p : nodes) vectors_(Eigen::Index(p), last) = root_[p] / std::sqrt(norm);
    }
    return column + size;
  }

  std::size_t n_;
  Vector root_;     // C^(1/2)
  Vector rates_;    // 1/s
  Matrix vectors_;  // V, one row a node
};

bool is_symmetric(const ThermalMatrix& m) {
  const std::size_t n = m.capacities.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const double a = m.exchange[i * n + j], b = m.exchange[j * n + i];
      if (std::abs(a - b) > 1e-12 * std::max(std::abs(a), std::abs(b))) return false;
    }
  return true;
}

}  // namespace

std::unique_ptr<ThermalMode> make_mode(const ThermalMatrix& matrix) {
  if (is_symmetric(matrix)) return std::make_unique<SymmetricMode>(matrix);
  return make_directed_mode(matrix);
}

std::vector<double> steady_temperatures(const ThermalMatrix& matrix,
                                        std::span<const double> watts) {
  const auto n = Eigen::Index(matrix.capacities.size());
  Eigen::MatrixXd l = Eigen::Map<const Matrix>(matrix.exchange.data(), n, n);
  l.diagonal() += vector_of(matrix.losses);
  const Eigen::PartialPivLU<Eigen::MatrixXd> solver(l);
  check(n == 0 || solver.rcond() > 1e-14,
        "every part of a thermal network that is to be in balance reaches a boundary");
  const Vector t = solver.solve(vector_of(watts));
  return {t.data(), t.data() + n};
}

}  // namespace trainyard::models
