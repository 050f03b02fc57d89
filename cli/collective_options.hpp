#pragma once

#include <string>
#include <vector>

#include "cli/options.hpp"
#include "scenarios/collective_sweep.hpp"

/// The options of `trainyard collective` as text, and what they mean. All throw UsageError.
namespace trainyard::cli {

/// "8:16G:2" (from : to : factor, as nccl-tests) or a list "1MiB,64MiB". K, M, G and KiB, MiB, GiB
/// are powers of 1024; kB, MB, GB powers of 1000.
std::vector<double> parse_sizes(const std::string& text);

/// "0,3,8-11", with or without "node-" before a number.
std::vector<std::size_t> parse_servers(const std::string& text);

/// Everything but the scenario.
scenarios::SweepRequest sweep_request(const Parsed& args);

}  // namespace trainyard::cli
