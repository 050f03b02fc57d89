#pragma once

#include <cstdint>
#include <optional>

#include "sim/check.hpp"
#include "topologies/vertex.hpp"

/// How hashed routing draws: the same flow always the same way, whatever else there is.
namespace trainyard::topologies {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit moves every output bit.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

inline std::uint64_t hash_flow(std::uint64_t seed, NicId from, NicId to, std::uint64_t label,
                               int queue_pair) {
  std::uint64_t h = mix(seed);
  h = mix(h ^ (std::uint64_t{from.index()} << 32 | to.index()));
  h = mix(h ^ label);
  return mix(h ^ static_cast<std::uint64_t>(queue_pair));
}

/// One of 0 … n-1 from a hash; the high half, so that n need not be a power of two.
inline int reduce(std::uint64_t hash, int n) {
  return static_cast<int>((hash >> 32) * static_cast<std::uint64_t>(n) >> 32);
}

/// The hop's choice among n. If that one does not work, again among those that do ("resilient
/// hashing": a flow whose choice works keeps it).
template <class Works>
std::optional<int> choose(std::uint64_t flow_hash, int hop, int n, Works works) {
  const std::uint64_t hash = mix(flow_hash + static_cast<std::uint64_t>(hop));
  const int first = reduce(hash, n);
  if (works(first)) return first;
  int working = 0;
  for (int i = 0; i < n; ++i) working += works(i) ? 1 : 0;
  if (working == 0) return {};
  int left = reduce(mix(hash), working);
  for (int i = 0; i < n; ++i)
    if (works(i) && left-- == 0) return i;
  check(false, "a hop that works is found again");
  return {};
}

}  // namespace trainyard::topologies
