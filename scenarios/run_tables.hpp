#pragma once

#include <string>
#include <vector>

#include "analysis/table.hpp"
#include "scenarios/run.hpp"
#include "scenarios/world.hpp"

/// The tables of a run file that are known at the end: of each job, of the cluster, of the fabric.
namespace trainyard::scenarios {

std::vector<analysis::Table> run_tables(World& world, const RunResult& result);
/// "llama: dp stage 3, node-17/gpu-0 -> node-18/gpu-0".
std::string user_text(const std::string& job, const models::LinkUser& user,
                      const topologies::Fabric& fabric);
/// The figures of the summary by name: "jobs.llm.goodput".
std::vector<analysis::Attribute> run_summary(const RunResult& result);

}  // namespace trainyard::scenarios
