#pragma once

#include <cstdint>
#include <string_view>

#include "models/storage/data_spec.hpp"
#include "models/storage/store_spec.hpp"

/// The readers of one server in closed form: no clock, no store that others use.
///
/// A worker opens, reads and decodes one sample after the other. W workers, a share h of the
/// samples in the cache, f files opened a sample, L the latency of an open, S bytes a sample, d CPU
/// time of decoding:
///
///     cycle  = (1 - h) (f L + S / min(stream rate, client rate)) + h S / cache rate + d
///     supply = min(W / cycle, cores / d, client rate / ((1 - h) S), cache rate / (h S))
///
/// so that more workers help until the cores, the adapter or the cache are busy. These are the
/// bounds of a closed queueing network, which its throughput reaches when workers are many or
/// times vary little.
///
///     loader_supply(data, store, 8, 0)            // 8 GPUs: {2,560 samples/s, SupplyLimit::cores}
///     cache_hit_rate(0.5, 64, 10, true)           // 0.145: ten epochs fill a seventh of the cache
///
/// Samples of uneven size make batches of one GPU uneven. All GPUs step together, so each step
/// waits for whoever is late, and the queue of a GPU only holds so much. `uneven_rate` is the rate
/// of steps that is left, for n queues of K batches whose times vary by c (deviation / mean):
///
///     e = min(c sqrt(2 ln n), 0.6 c^2 ln n / (K - 1 + 0.58 c))     the slowest of n
///     m = (1 + e) / p                                              a batch of all of them
///     step = s + x / (exp(2 x B / (c^2 m)) - 1),   x = s - m,      s = 1 / want,
///                                                  B = K - 1 + 1.17 c
///
/// The last line is Brownian motion between an empty and a full queue, its ends
/// moved by 0.58 c each because batches are whole (Siegmund 1979). ln n is what n such queues tend
/// to, and 0.6 is measured on queues played batch by batch; theory says 0.5 for c -> 0. With c = 0
/// it is min(p, want).
///
///     uneven_rate(1, 1, 0.18, 512, 2)             // 0.90: readers no faster than the steps
///     uneven_rate(1.3, 1, 0.18, 512, 2)           // 1.00: 30 % to spare
///
/// P. Denning, J. Buzen, "The operational analysis of queueing network models", ACM Computing
/// Surveys 10(3), 1978. D. Siegmund, "Corrected diffusion approximations in certain random walk
/// problems", Advances in Applied Probability 11(4), 1979. docs/models/data-path.md
namespace trainyard::models {

enum class SupplyLimit { workers, uneven, cores, client, cache, bandwidth, metadata };

struct LoaderSupply {
  double samples_per_s = 0;  // of one server
  SupplyLimit limit = SupplyLimit::workers;
};

/// Seconds that one worker needs for one sample if nobody is in its way.
double worker_cycle_s(const DataSpec& data, const StoreSpec& store, double hit_rate);

/// Deviation over mean of the time that the readers of one GPU need for a batch of so many samples:
/// bytes take longer for a larger sample, opens and decoding do not.
double batch_spread(const DataSpec& data, const StoreSpec& store, double hit_rate, double samples);

/// Steps a second, where the readers of each GPU alone bring `supply` batches a second, steps would
/// take `want`, and `queues` GPUs with `prefetch` batches each step together.
double uneven_rate(double supply, double want, double spread, double queues, double prefetch);

/// What the readers of one server with so many GPUs can supply from a store that gives them all
/// they ask for.
LoaderSupply loader_supply(const DataSpec& data, const StoreSpec& store,
                           std::int64_t gpus_per_server, double hit_rate);

/// Share of the reads of an epoch that the cache of a server answers, if it holds `fraction` of the
/// data set, throws out what was used longest ago, and `epochs_done` epochs were read before.
///
/// Shuffled over all n servers, each reads another random n-th each epoch. It has seen
/// s = 1 - (1 - 1/n)^epochs of the data set. When it has read a share u of the data set in this
/// epoch, the cache holds these samples, which nobody asks for again before the next epoch, and
/// at most fraction - u others, of 1 - u that may be asked for:
///
///     hits(u) = min(s, max(0, (fraction - u) / (1 - u))),   averaged over 0 <= u <= 1/n
///
/// For one server that is x + (1 - x) ln(1 - x), far below x = fraction; for many servers and
/// epochs it is x. In a fixed order the n-th of a server is read in a circle: all hits if it fits,
/// none if it does not.
double cache_hit_rate(double fraction, std::int64_t servers, std::int64_t epochs_done,
                      bool shuffle);

/// Share of the data set that the cache of one server holds; 0 for an endless one.
double cached_fraction(const DataSpec& data);

}  // namespace trainyard::models
