#pragma once

#include <cstdint>
#include <string>

#include "sim/describe.hpp"
#include "sim/time.hpp"
#include "sim/units.hpp"

namespace trainyard::models {

/// How the batches of a job come from a store: readers (workers) of every server fetch, decode and
/// put samples into a queue; a step takes one batch out of it.
struct DataSpec {
  std::string store;
  Bytes sample;                     // mean size of one sample on the store
  double sample_spread = 0;         // standard deviation of the size / mean; 0: all alike
  double files_per_sample = 1;      // opens a sample: 1 for a file each, 1/1251 for 1251 a file
  std::int64_t samples = 0;         // of the data set; 0: endless, no epoch repeats
  bool shuffle = true;              // every epoch in another random order
  int workers = 4;                  // reader processes a GPU
  int prefetch = 2;                 // batches that the queue of a GPU holds
  Duration decode{};                // CPU time of one sample, on one core
  int cores = 96;                   // of a server: workers share them
  Bytes cache{};                    // page cache (or local copy) of one server; 0: none
  BytesPerSecond cache_rate{20e9};  // reading from it, one server
};

template <class Visitor>
void describe(Visitor& v, DataSpec& s) {
  v.required("store", s.store, "store that holds the data set, by its name under storage");
  v.required("sample", s.sample, "mean size of one sample (one sequence) on the store", above(0));
  v.optional("sample_spread", s.sample_spread,
             "standard deviation of the size over its mean: steps wait for the slowest GPU's batch",
             between(0, 3));
  v.optional("files_per_sample", s.files_per_sample,
             "files opened for a sample: 1 for a file each, 1/1000 for a thousand packed in one",
             at_least(0));
  v.optional("samples", s.samples, "samples of the data set; 0: no epoch ever repeats",
             at_least(0));
  v.optional("shuffle", s.shuffle, "every epoch in another random order");
  v.optional("workers", s.workers, "reader processes of one GPU", at_least(1));
  v.optional("prefetch", s.prefetch, "batches that the queue of one GPU holds", at_least(1));
  v.optional("decode", s.decode, "CPU time to decode one sample, on one core", at_least(0));
  v.optional("cores", s.cores, "CPU cores of a server that readers share", at_least(1));
  v.optional("cache", s.cache, "page cache of one server for samples", at_least(0));
  v.optional("cache_rate", s.cache_rate, "rate of reading from the cache, one server", above(0));
}

}  // namespace trainyard::models
