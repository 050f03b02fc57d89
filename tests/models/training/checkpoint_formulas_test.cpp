#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/training/checkpoints.hpp"
#include "sim/check.hpp"

namespace trainyard::models {
namespace {

// --- the table ---------------------------------------------------------------------------------

using Row = std::map<std::string, std::string>;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"')
      is_quoted = !is_quoted;
    else if (c == ',' && !is_quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

std::vector<Row> table() {
  std::ifstream in(std::string(TRAINYARD_SOURCE_DIR) + "/validation/formula_vectors.csv");
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> columns = fields_of(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = fields_of(line);
    EXPECT_EQ(fields.size(), columns.size()) << line;
    Row row;
    for (std::size_t i = 0; i < std::min(fields.size(), columns.size()); ++i)
      row[columns[i]] = fields[i];
    rows.push_back(row);
  }
  return rows;
}

/// "delta=1 s; M=86400 s": the number after `name=`, in its own unit.
double input(const Row& row, const std::string& name) {
  const std::string text = "; " + row.at("inputs");
  std::size_t at = text.find(" " + name + "=");
  EXPECT_NE(at, std::string::npos) << name << " in " << text;
  if (at == std::string::npos) return std::nan("");
  return std::stod(text.substr(at + name.size() + 2));
}

std::vector<double> values(const Row& row) {
  std::vector<double> all;
  std::istringstream in(row.at("value"));
  for (std::string part; std::getline(in, part, ';');) all.push_back(std::stod(part));
  return all;
}

/// Values have six digits: right to half of the last one.
double half_of_sixth_digit(double value) {
  return 0.5001 * std::pow(10, std::floor(std::log10(std::abs(value))) - 5);
}

double per_day(const Row& row) {
  return input(row, "r_f") / 1000;
}
double mtbi(const Row& row) {
  return mean_time_between_interruptions_s(input(row, "nodes"), per_day(row));
}

struct Formula {
  int rows;  // that the table has of it
  std::function<std::vector<double>(const Row&)> predict;
  double slack = 1;  // where inputs in the table are rounded
};

const std::map<std::string, Formula> formulas = {
    {"Young",
     {11,
      [](const Row& r) {
        return std::vector{young_interval_s(input(r, "delta"), input(r, "M"))};
      }}},
    {"Daly first order",
     {11,
      [](const Row& r) {
        return std::vector{daly_first_order_interval_s(input(r, "delta"), input(r, "M"))};
      }}},
    {"Daly higher order",
     {11,
      [](const Row& r) { return std::vector{daly_interval_s(input(r, "delta"), input(r, "M"))}; }}},
    {"exact optimum (Lambert W)",
     {11,
      [](const Row& r) {
        return std::vector{exact_interval_s(input(r, "delta"), input(r, "M"))};
      }}},
    {"Daly complete wall-time ratio",
     {11,
      [](const Row& r) {
        return std::vector{mean_time_to_finish_s(1, input(r, "tau"), input(r, "delta"),
                                                 input(r, "R"), input(r, "M"))};
      }}},
    {"goodput at that interval",
     {11,
      [](const Row& r) {
        return std::vector{
            expected_efficiency(input(r, "tau"), input(r, "delta"), input(r, "R"), input(r, "M"))};
      }}},
    {"Meta E[ETTR]",
     {10,
      [](const Row& r) {
        return std::vector{
            kokolis_ettr(60 * input(r, "dt_cp"), input(r, "w_cp"), 60 * input(r, "u0"), mtbi(r))};
      }}},
    {"exact renewal ETTR (exponential failures, restart exposed)",
     {10,
      [](const Row& r) {
        return std::vector{
            expected_efficiency(60 * input(r, "dt"), input(r, "w"), 60 * input(r, "u0"), mtbi(r))};
      }}},
    {"optimal interval sqrt(2 w /(N r_f))",
     {10, [](const Row& r) { return std::vector{young_interval_s(input(r, "w"), mtbi(r)) / 60}; }}},
    {"MTTF = 1/(nodes r_f)", {5, [](const Row& r) { return std::vector{mtbi(r) / 3600}; }}},
    {"two-level first order (Benoit): tau_i = sqrt(2 C_i/lambda_i); overhead = sum sqrt(2 lambda_i "
     "C_i)",
     {3,
      [](const Row& r) {
        const LevelCost levels[] = {{input(r, "C1"), input(r, "lambda1")},
                                    {input(r, "C2"), input(r, "lambda2")}};
        LevelTheory theory = multi_level_first_order(levels);
        theory.interval_s.push_back(theory.overhead);
        return theory.interval_s;
      },
      5}},
    {"standby machines: 99th percentile of Binomial(n,p)",
     {4, [](const Row& r) {
        const auto n = static_cast<std::int64_t>(input(r, "n"));
        return std::vector{double(binomial_quantile(n, input(r, "p"), 0.99))};
      }}}};

// Not about checkpoints; nothing here computes them.
const std::map<std::string, int> not_checked_here = {
    {"1F1B bubble (p-1)/(v m) of ideal time", 6},
    {"parameter count 12Lh2(1+13/12h+(V+s)/12Lh)", 3},
    {"hardware FLOPs per step, full recompute: 96BsLh2(1+s/6h+V/16Lh)", 3},
    {"model FLOPs per step: 72BsLh2(1+s/6h+V/12Lh)", 3},
    {"wire rate per GPU = busbw (k-1)/(n-1)", 3},
    {"ring all-reduce 2(n-1)(alpha + S/(n B))", 3},
    {"tree/recursive doubling lower bound: 2 log2(n) alpha + 2 S/B (pipelined)", 3},
    {"steady-state node availability MTBF/(MTBF+MTTR)", 2},
    {"M/M/1 mean time in system / service", 3},
    {"M/D/1 mean wait / service", 3}};

TEST(CheckpointFormulas, agree_with_every_row_of_the_table) {
  std::map<std::string, int> checked, passed_over;
  for (const Row& row : table()) {
    const std::string& name = row.at("formula");
    SCOPED_TRACE(name + ": " + row.at("inputs"));
    const auto formula = formulas.find(name);
    if (formula == formulas.end()) {
      ++passed_over[name];
      continue;
    }
    const std::vector<double> published = values(row), found = formula->second.predict(row);
    ASSERT_EQ(found.size(), published.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], published[i],
                  formula->second.slack * half_of_sixth_digit(published[i]));
    ++checked[name];
  }
  std::map<std::string, int> expected;
  for (const auto& [name, formula] : formulas) {
    expected[name] = formula.rows;
    RecordProperty(name, checked[name]);
  }
  EXPECT_EQ(checked, expected);
  EXPECT_EQ(passed_over, not_checked_here);
}

TEST(CheckpointFormulas, lie_within_three_standard_errors_of_the_simulated_values) {
  int rows = 0;
  for (const Row& row : table()) {
    if (row.at("monte_carlo").empty()) continue;
    SCOPED_TRACE(row.at("inputs"));
    EXPECT_NEAR(formulas.at(row.at("formula")).predict(row).at(0), std::stod(row.at("monte_carlo")),
                3 * std::stod(row.at("monte_carlo_stderr")));
    ++rows;
  }
  EXPECT_EQ(rows, 11);
}

// --- by hand and by brute force ----------------------------------------------------------------

TEST(CheckpointFormulas, the_branch_of_lambert_solves_its_equation) {
  EXPECT_EQ(one_plus_lambert_w0(0), 0);
  EXPECT_THROW(one_plus_lambert_w0(-1e-9), CheckFailed);
  // Long double: c from u without cancellation, then back.
  for (long double u = 1e-9L; u < 1; u *= 1.07L) {
    long double c = 0;
    if (u < 0.1L) {
      long double power = u;  // -u - ln(1 - u) = u^2/2 + u^3/3 + ...
      for (int k = 2; k < 60; ++k) c += (power *= u) / k;
    } else {
      c = -u - std::log1p(-u);
    }
    EXPECT_NEAR(one_plus_lambert_w0(double(c)) / double(u), 1, 2e-13) << double(u);
  }
  // Both sides of the seam between series and Newton: s = sqrt(2 c) = 0.03.
  const double seam = 0.03 * 0.03 / 2;
  const double slope = 1 / 0.03;  // du/dc = (1 - u) / u, and u < s
  EXPECT_NEAR(one_plus_lambert_w0(seam * (1 + 1e-12)), one_plus_lambert_w0(seam * (1 - 1e-12)),
              2e-12 * seam * slope + 1e-15);
  EXPECT_NEAR(one_plus_lambert_w0(1), 1 - 0.158594339563039, 1e-14);  // -W0(-e^-2)
  EXPECT_EQ(one_plus_lambert_w0(1e6), 1);
}

TEST(CheckpointFormulas, nothing_beats_the_exact_optimum) {
  for (const double save : {0.001, 1.0, 30.0, 600.0, 7200.0})
    for (const double mtbi_s : {900.0, 11124.0, 604800.0}) {
      const double best = exact_interval_s(save, mtbi_s);
      const double top = expected_efficiency(best, save, 300, mtbi_s);
      for (const double off : {0.9, 0.99, 1.01, 1.1})
        EXPECT_LT(expected_efficiency(best * off, save, 300, mtbi_s), top);
    }
}

TEST(CheckpointFormulas, meet_the_published_settings_of_large_jobs) {
  // 16,384 H100 (Llama 3): 419 interruptions in 54 days.
  EXPECT_NEAR(exact_interval_s(30, 11124), 797.1, 0.05);
  EXPECT_NEAR(expected_efficiency(797.1, 30, 600, 11124), 0.87960, 5e-6);
  EXPECT_NEAR(expected_efficiency(3600, 30, 600, 11124), 0.79467, 5e-6);
  EXPECT_NEAR(exact_interval_s(30, 828), 203.4, 0.05);
  EXPECT_NEAR(expected_efficiency(3600, 30, 300, 828), 0.03823, 5e-6);
}

double survival_by_counting(int servers, int group, int lost) {
  int all = 0, good = 0;
  for (unsigned set = 0; set < 1u << servers; ++set) {
    if (__builtin_popcount(set) != lost) continue;
    ++all;
    bool is_good = true;
    for (int g = 0; g < servers; g += group) {
      const unsigned members = ((1u << group) - 1) << g;
      is_good = is_good && (set & members) != members;
    }
    good += is_good ? 1 : 0;
  }
  return double(good) / all;
}

TEST(PeerMemorySurvival, is_the_share_of_sets_that_spare_every_group) {
  for (const auto& [servers, group] : {std::pair(12, 2), {12, 3}, {12, 4}, {8, 8}, {6, 1}})
    for (int lost = 0; lost <= servers; ++lost)
      EXPECT_NEAR(peer_memory_survival(servers, group, lost),
                  survival_by_counting(servers, group, lost), 1e-12)
          << servers << " in groups of " << group << ", " << lost << " lost";
}

TEST(PeerMemorySurvival, of_a_group_lost_at_once_has_a_closed_form) {
  EXPECT_NEAR(peer_memory_survival(16, 2, 2), 1 - 8.0 / 120, 1e-13);
  EXPECT_NEAR(peer_memory_survival(2048, 2, 2), 1 - 1024.0 / (2048.0 * 2047 / 2), 1e-11);
  EXPECT_NEAR(peer_memory_survival(12, 3, 3), 1 - 4.0 / 220, 1e-13);
  EXPECT_EQ(peer_memory_survival(2048, 2, 1), 1);
  EXPECT_THROW(peer_memory_survival(9, 2, 1), CheckFailed);
}

TEST(BinomialQuantile, is_the_first_count_that_suffices) {
  // n = 3, p = 1/2: 1/8, 4/8, 7/8, 1
  EXPECT_EQ(binomial_quantile(3, 0.5, 0.12), 0);
  EXPECT_EQ(binomial_quantile(3, 0.5, 0.13), 1);
  EXPECT_EQ(binomial_quantile(3, 0.5, 0.49), 1);
  EXPECT_EQ(binomial_quantile(3, 0.5, 0.51), 2);
  EXPECT_EQ(binomial_quantile(3, 0.5, 0.88), 3);
  EXPECT_EQ(binomial_quantile(10, 0, 0.99), 0);
  EXPECT_EQ(binomial_quantile(10, 1, 0.99), 10);
  // mean 10,000, standard deviation 94.87: 2.326 of them above (the sum starts at e^-10,536)
  EXPECT_NEAR(double(binomial_quantile(100'000, 0.1, 0.99)), 10'000 + 2.326 * 94.87, 2);
}

TEST(MultiLevel, first_order_by_hand) {
  // C = 2 s at one failure in 10,000 s: sqrt(40,000) = 200 s, overhead 2/200 + 100/10,000 = 0.02
  const LevelCost fast[] = {{2, 1e-4}};
  const LevelTheory theory = multi_level_first_order(fast);
  EXPECT_NEAR(theory.interval_s.at(0), 200, 1e-9);
  EXPECT_NEAR(theory.overhead, 0.02, 1e-12);
}

}  // namespace
}  // namespace trainyard::models
