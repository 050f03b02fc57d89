#include <iostream>

#include "cli/collective_options.hpp"
#include "cli/collective_report.hpp"
#include "cli/expect.hpp"
#include "cli/load.hpp"

/// trainyard collective SCENARIO: a sweep of sizes as nccl-tests does it.
namespace trainyard::cli {

namespace {

const Usage& usage() {
  static const Usage table{
      .command = "collective",
      .arguments = "SCENARIO [OPTIONS]",
      .what =
          "Collectives of many sizes on the fabric of a scenario, as nccl-tests would measure "
          "them: time, "
          "bandwidths, the bound, the busiest link, and how much the fabric costs. On any "
          "placement, beside "
          "other jobs, with links down.",
      .examples = {{"trainyard collective big.json --bytes 1M:16G:4", "all-reduce over all GPUs"},
                   {"trainyard collective big.json --kind all-to-all --ranks 64 --placement spread",
                    "eight servers, no two on one leaf"},
                   {"trainyard collective big.json --compete 3 --fail 'leaf-0 -> spine-0'",
                    "four equal jobs, one cable down"}},
      .options =
          {{"kind", "NAMES",
            "all-reduce (default), reduce-scatter, all-gather, broadcast, all-to-all, "
            "point-to-point (first "
            "rank to last), permutation (each rank to the one half way round); several by comma"},
           {"bytes", "SIZES",
            "list, or from:to:factor as nccl-tests; default 8:16G:2; K, M, G are 1024s"},
           {"ranks", "N", "GPUs that take part; default: all, spares left out"},
           {"per-node", "K", "of each server; default: all of its GPUs"},
           {"placement", "HOW",
            "packed (default), spread over leaves, random, or servers: 0,3,8-11"},
           {"algorithm", "NAME",
            "auto (default: the least predicted time), ring, tree, nvls, nvls-tree, sharp, "
            "hierarchical, "
            "halving-doubling, direct"},
           {"protocol", "NAME", "auto (default), simple, ll, ll128"},
           {"channels", "N", "of a ring or tree on each adapter, hashed apart; default 1"},
           {"queue-pairs", "N", "of a connection, hashed apart; default: as the scenario says"},
           {"compete", "JOBS",
            "N jobs that do the same on the remaining servers, or KIND:BYTES:RANKS; repeatable",
            true},
           {"fail", "NAME",
            "a cable or switch that is down, or a cable at NAME=0.5 of its rate; repeatable", true},
           {"loss", "RATE", "probability that a packet is lost: Ethernet without flow control"},
           {"sharp", "", "switches reduce: let auto take SHARP"},
           {"launch-floor", "TIME",
            "calls from the host one by one cannot follow faster; default 0"},
           {"seed", "N", "of hashed paths and of random placement; default 1"},
           {"set", "PATH=VALUE", "override a value of the scenario; repeatable, the last one wins",
            true},
           {"expect", "PATH>=X", "exit status 3 if a figure of --json misses the bound; repeatable",
            true},
           {"json", "", "print the figures as one JSON object"},
           {"csv", "", "print one line a row"}},
      .least = 1,
      .most = 1};
  return table;
}

}  // namespace

Exit collective_command(const Arguments& arguments) {
  const Parsed args = parse(usage(), arguments);
  if (printed_help(usage(), args)) return Exit::done;
  if (args.has("json") && args.has("csv")) throw UsageError("give either --json or --csv");
  const std::string& file = args.positional[0];
  const std::vector<Bound> bounds = parse_bounds(args.values("expect"));
  const scenarios::SweepRequest request = sweep_request(args);
  const auto read = load_or_complain(file, args.values("set"));
  if (!read) return Exit::usage;

  scenarios::SweepResult result;
  try {
    result = scenarios::sweep_collectives(read->scenario, request);
  } catch (const scenarios::SweepRefused& refused) {
    throw UsageError(refused.what());
  }
  const std::string name = name_of_scenario(read->scenario, file);
  const std::string json = collective_json(name, result);
  std::cout << (args.has("json")  ? json
                : args.has("csv") ? collective_csv(result)
                                  : collective_text(name, result, stdout_terminal()));
  const std::vector<std::string> misses = missed(bounds, json);
  for (const std::string& miss : misses) std::cerr << "trainyard collective: " << miss << '\n';
  return misses.empty() ? Exit::done : Exit::expectation_missed;
}

}  // namespace trainyard::cli
