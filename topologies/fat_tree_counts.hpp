#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/problem.hpp"
#include "topologies/fabric.hpp"

/// Whole-number arithmetic of ports and cables.
namespace trainyard::topologies {

inline constexpr int most_ports = 100'000;       // of one switch; more is a slip of the keyboard
inline constexpr int most_splits = 1024;         // links of one port
inline constexpr double ratio_tolerance = 0.10;  // built against asked; beyond it input is refused

std::int64_t ceil_div(std::int64_t a, std::int64_t b);
std::vector<std::int64_t> divisors(std::int64_t n);

/// How many links of `link_rate` one port of `port_rate` carries when it is split: an 800 Gb/s port
/// takes two of 400 Gb/s. Zero if the link is faster than the port.
int links_per_port(BytesPerSecond port_rate, BytesPerSecond link_rate);
/// Ports that `links` links occupy.
std::int64_t ports_for(std::int64_t links, BytesPerSecond port_rate, BytesPerSecond link_rate);

/// The whole numbers around `ideal` that are acceptable, and the one that gives the closest ratio.
struct Nearest {
  std::int64_t below = 0;  // 0: none
  std::int64_t above = 0;
  std::int64_t best = 0;
  bool is_close = false;  // ideal / best is within ratio_tolerance of 1
};
Nearest nearest(double ideal, const std::function<bool(std::int64_t)>& acceptable);
/// The same where n of them amount to amount(n), which grows with n, instead of n.
Nearest nearest(double ideal, const std::function<bool(std::int64_t)>& acceptable,
                const std::function<double(std::int64_t)>& amount);

/// Text for messages: "12", "6.98", "400 Gb/s".
std::string text(std::int64_t);
std::string text(double ratio);
std::string text(BytesPerSecond);

/// Ranges and contradictions that need no arithmetic. False if problems were added.
/// (fat_tree_input.cpp)
bool is_sound_fat_tree_input(const FabricSpec&, const HostShape&, Problems&);

}  // namespace trainyard::topologies
