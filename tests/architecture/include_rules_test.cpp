#include "tests/architecture/include_rules.hpp"

#include <gmock/gmock.h>

#include "tests/architecture/tree.hpp"

/// Reads the #include lines of every source of the product and fails with the sentence that was
/// broken.
namespace trainyard::architecture {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(IncludeRules, hold_in_every_source) {
  std::size_t files = 0;
  for (const std::string& file : files_of_the_tree({".hpp", ".cpp"})) {
    ++files;
    for (const Include& include : includes_of(content_of(file)))
      for (const std::string& rule : broken_rules(file, include.target))
        ADD_FAILURE() << file << ':' << include.line << ": includes " << include.target << ", but "
                      << rule;
  }
  EXPECT_GT(files, 20u) << "the sources were not found";
}

struct Case {
  const char* name;
  const char* file;
  const char* target;
  const char* sentence;  // part of it; empty: allowed
};

class Rule : public testing::TestWithParam<Case> {};

TEST_P(Rule, is_seen_on_a_made_up_include) {
  const auto broken = broken_rules(GetParam().file, GetParam().target);
  if (*GetParam().sentence == '\0')
    EXPECT_THAT(broken, IsEmpty());
  else
    EXPECT_THAT(broken, Contains(HasSubstr(GetParam().sentence)));
}

INSTANTIATE_TEST_SUITE_P(
    MadeUp, Rule,
    testing::Values(
        Case{"sim_knows_itself", "sim/engine.cpp", "sim/engine.hpp", ""},
        Case{"sim_knows_the_standard_library", "sim/engine.hpp", "vector", ""},
        Case{"sim_knows_no_model", "sim/engine.hpp", "models/storage/store_spec.hpp",
             "sim includes the standard library only"},
        Case{"sim_knows_no_library", "sim/engine.cpp", "boost/heap/d_ary_heap.hpp",
             "sim includes the standard library only"},
        Case{"sim_knows_no_system_header", "sim/engine.cpp", "unistd.h",
             "sim includes the standard library only"},
        Case{"random_knows_random123", "sim/random.cpp", "Random123/philox.h", ""},
        Case{"nobody_else_knows_random123", "models/failures/lifetimes.cpp", "Random123/philox.h",
             "sim/random.cpp only"},
        Case{"not_even_its_header", "sim/random.hpp", "Random123/philox.h", "sim/random.cpp only"},
        Case{"topologies_know_sim", "topologies/fabric.hpp", "sim/id.hpp", ""},
        Case{"topologies_know_no_model", "topologies/fabric.hpp", "models/compute/server_spec.hpp",
             "topologies may include"},
        Case{"graph_in_a_source", "topologies/bisection.cpp",
             "boost/graph/push_relabel_max_flow.hpp", ""},
        Case{"graph_in_a_header", "topologies/bisection.hpp", "boost/graph/adjacency_list.hpp",
             "Boost is included in .cpp"},
        Case{"eigen_in_a_header", "models/facility/thermal.hpp", "Eigen/Dense",
             "Eigen is included in .cpp"},
        Case{"models_know_topologies", "models/network/routes.cpp", "topologies/fabric.hpp", ""},
        Case{"models_know_no_json", "models/network/routes.cpp", "nlohmann/json.hpp",
             "JSON is included"},
        Case{"models_know_no_scenario", "models/catalog.cpp", "scenarios/scenario.hpp",
             "models may include"},
        Case{"training_uses_the_network", "models/training/step.cpp", "models/network/max_min.hpp",
             ""},
        Case{"the_network_knows_no_training", "models/network/routes.cpp",
             "models/training/job_spec.hpp", "in the order compute, network"},
        Case{"storage_stands_on_the_network", "models/storage/store.hpp",
             "models/network/fluid_network.hpp", ""},
        Case{"the_network_knows_no_storage", "models/network/a.cpp", "models/storage/store.hpp",
             "in the order compute, network"},
        Case{"a_new_folder_must_be_put_in_order", "models/weather/a.cpp", "models/compute/b.hpp",
             "in the order compute, network"},
        Case{"everybody_keeps_the_ledger", "models/scheduling/servers.hpp",
             "models/training/ledger.hpp", ""},
        Case{"the_catalog_knows_all_models", "models/catalog.cpp", "models/network/max_min.hpp",
             ""},
        Case{"analysis_owns_hdf5", "analysis/handles.hpp", "hdf5.h", ""},
        Case{"scenarios_do_not", "scenarios/run.cpp", "hdf5.h",
             "HDF5 is included in analysis only"},
        Case{"analysis_knows_no_model", "analysis/table.cpp", "models/training/ledger.hpp",
             "analysis may include sim only"},
        Case{"json_in_a_source_of_scenarios", "scenarios/read.cpp", "nlohmann/json.hpp", ""},
        Case{"json_in_a_header_of_scenarios", "scenarios/read.hpp", "nlohmann/json.hpp",
             "JSON is included in .cpp"},
        Case{"json_declared_in_a_header", "scenarios/json_path.hpp", "nlohmann/json_fwd.hpp", ""},
        Case{"json_declared_in_a_model", "models/catalog.hpp", "nlohmann/json_fwd.hpp",
             "JSON is declared in"},
        Case{"scenarios_know_no_front_end", "scenarios/run.cpp", "cli/terminal.hpp",
             "no front end"},
        Case{"cli_knows_scenarios", "cli/run.cpp", "scenarios/run.hpp", ""},
        Case{"cli_knows_no_gui", "cli/run.cpp", "gui/main_window.hpp", "everything but gui"},
        Case{"cli_knows_no_qt", "cli/run.cpp", "QString", "Qt is included in gui only"},
        Case{"gui_knows_qt", "gui/main_window.cpp", "QtCharts/QChart", ""},
        Case{"gui_knows_no_model", "gui/main_window.cpp", "models/training/ledger.hpp",
             "gui may include analysis"},
        Case{"gui_knows_no_scenario", "gui/launcher.cpp", "scenarios/run.hpp",
             "gui may include analysis"},
        Case{"nobody_includes_tests", "models/network/a.cpp", "tests/support/water_filling.hpp",
             "never includes its tests"},
        Case{"tests_see_everything", "tests/models/x_test.cpp", "nlohmann/json.hpp", ""}),
    [](const auto& test) { return test.param.name; });

TEST(IncludesOf, finds_lines_however_they_are_written) {
  const std::string text = std::string("#include <a>\n") + "  # include \"b/c.hpp\"  // why\n" +
                           "// #include <no>\n" + "int x; #include <no>\n" +
                           "#define include <no>\n" + "#include MACRO\n" + "#include <last>";
  std::vector<std::string> found;
  for (const Include& include : includes_of(text))
    found.push_back(include.target + ':' + std::to_string(include.line));
  EXPECT_THAT(found, testing::ElementsAre("a:1", "b/c.hpp:2", "last:7"));
}

}  // namespace
}  // namespace trainyard::architecture
