#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/training/job_spec.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

/// Sizes and times of saves, what becomes of them, and the theory of how often to save.
///
///     size   = parameters * bytes_per_parameter      (70e9 * 14 B = 980 GB)
///     stall  = size / (GPUs * host_copy_rate)        (980 GB / (512 * 10 GB/s) = 191 ms), each GPU
///     copies its share
///
///     exact_interval_s(30, 11124)                    797.1 s: a save of 30 s, a failure each 3.1 h
///     expected_efficiency(797.1, 30, 600, 11124)     0.8796
namespace trainyard::models {

/// One save of a job.
struct CheckpointRow {
  Time start;             // the instant whose state it holds
  std::int64_t step = 0;  // first step after a restart from it
  Bytes bytes;
  std::optional<Time> stall_end;  // training goes on
  std::optional<Time> complete;   // from here on it is a checkpoint
  bool is_lost = false;           // interrupted: it never became one
  bool was_late = false;          // due before, but the save before it was still under way
  std::string level;              // by name
  LevelKind kind = LevelKind::store;
  bool is_emergency = false;     // made because a failure was announced
  bool is_corrupt = false;       // its content turned out to be wrong
  std::optional<Time> verified;  // from here on its content is known to be good
  std::string why_lost;          // empty: it is not
};

Bytes checkpoint_size(const CheckpointSpec& spec, double parameters);
/// Of an asynchronous save of a job of so many GPUs.
Duration checkpoint_stall(const CheckpointSpec& spec, Bytes size, std::int64_t gpus);

// The optimum of the interval (training time between saves) for a save that stops training for
// `save_s` and a mean time between interruptions of `mtbi_s`.

/// sqrt(2 C M). J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM
/// 17(9), 1974. Also the optimum of kokolis_ettr when restarts are short.
double young_interval_s(double save_s, double mtbi_s);
/// sqrt(2 C M) - C, which is negative for a save longer than 2 M. J. T. Daly, "A higher order
/// estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006.
double daly_first_order_interval_s(double save_s, double mtbi_s);
/// Daly 2006, equation 37: for C < 2 M, else M.
double daly_interval_s(double save_s, double mtbi_s);
/// M (1 + W0(-e^(-1 - C/M))): the exact optimum of expected_efficiency. Bougeret, Casanova, Rabie,
/// Robert, Vivien, "Checkpointing strategies for parallel jobs", SC 2011.
double exact_interval_s(double save_s, double mtbi_s);
/// 1 + W0(-e^(-1 - c)) for c >= 0, W0 the principal branch of Lambert's function. From c and not
/// from the argument of W0, which for small c rounds to the branch point -1/e; to 13 digits.
double one_plus_lambert_w0(double c);

/// Share of the wall time spent on kept work when failures are exponential and may strike saves and
/// restarts (Daly 2006, equation 20): interval / (M e^(R/M) (e^((interval + C)/M) - 1)).
double expected_efficiency(double interval_s, double save_s, double restart_s, double mtbi_s);
/// Wall time of `solve_s` of work: Daly's complete model.
double mean_time_to_finish_s(double solve_s, double interval_s, double save_s, double restart_s,
                             double mtbi_s);

/// 1 / (servers * rate); the rate is per server and day, as studies print it (per 1000 server-days:
/// divided by 1000). Kokolis et al., "Revisiting reliability in large-scale machine learning
/// research clusters", HPCA 2025.
double mean_time_between_interruptions_s(double servers, double failures_per_server_day);
/// Expected training time ratio, first order: (1 - (R + interval / 2) / M) / (1 + C / interval).
/// Pessimistic where R or the interval pass a fifth of M; below zero it means nothing. Kokolis et
/// al., HPCA 2025.
double kokolis_ettr(double interval_s, double stall_s, double restart_s, double mtbi_s);

/// A level of checkpoints: what a save costs, and the rate of failures that this level repairs (and
/// no faster one).
struct LevelCost {
  double save_s = 0;
  double failures_per_s = 0;
};
struct LevelTheory {
  std::vector<double> interval_s;  // sqrt(2 C_i / lambda_i)
  double overhead = 0;             // sum sqrt(2 lambda_i C_i): lost time over useful time
};
/// First order: C_i << interval_i << 1 / lambda_i. Benoit et al., "Towards optimal multi-level
/// checkpointing", IEEE TC 66(7), 2017; Di et al., IPDPS 2014.
LevelTheory multi_level_first_order(std::span<const LevelCost> levels);

/// Probability that copies in peer memory survive when `lost` of `servers` servers, any set of them
/// alike, are lost at once: no group of `group` servers is lost whole. For lost = group it is
/// 1 - (servers / group) / C(servers, group). Servers are a multiple of the group. After Wang et
/// al., "GEMINI", SOSP 2023.
double peer_memory_survival(std::int64_t servers, std::int64_t group, std::int64_t lost);

/// The smallest k with P(X <= k) >= quantile for X ~ Binomial(n, p): standby machines that suffice
/// with this probability for n machines, each of which fails with p until it is replaced. Wan et
/// al., "Robust LLM training infrastructure at ByteDance" (ByteRobust), SOSP 2025: quantile 0.99.
std::int64_t binomial_quantile(std::int64_t n, double p, double quantile);

}  // namespace trainyard::models
