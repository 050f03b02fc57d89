#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

/// The program itself, as a user meets it: what it prints where, and its exit status.
namespace trainyard::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using testing::StartsWith;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Finished {
  int status = -1;
  std::string out;
  std::string err;
};

class Program : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("trainyard-cli-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string library(const std::string& name) {
    return std::string(TRAINYARD_SOURCE_DIR) + "/scenarios/library/" + name;
  }

  /// Starts it in the test's folder with both outputs in files.
  pid_t start(const std::vector<std::string>& args) const {
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<char*> argv{const_cast<char*>("trainyard")};
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    const int out = open(path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = open(path("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const bool ready = chdir(folder_.c_str()) == 0 && dup2(out, STDOUT_FILENO) >= 0 &&
                       dup2(err, STDERR_FILENO) >= 0;
    if (ready) execv(TRAINYARD_PROGRAM, argv.data());
    _exit(127);
  }
  Finished finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            content_of(folder_ / "out"), content_of(folder_ / "err")};
  }
  Finished run(const std::vector<std::string>& args) const { return finish(start(args)); }

  std::filesystem::path folder_;
};

TEST_F(Program, help_and_version) {
  const Finished help = run({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, StartsWith("Examples:"));
  EXPECT_THAT(help.err, IsEmpty());
  const Finished version = run({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, StartsWith("trainyard "));
  EXPECT_EQ(run({}).status, 2);
}

TEST_F(Program, every_command_has_help_with_two_examples_first) {
  for (const char* command : {"check", "run", "step", "flows", "topology", "facility", "catalog",
                              "export", "plan", "repair", "schema"}) {
    for (const std::vector<std::string>& args :
         {std::vector<std::string>{command, "--help"}, {command, "no-such-file", "--help"}}) {
      const Finished help = run(args);
      EXPECT_EQ(help.status, 0) << command;
      EXPECT_THAT(help.out, StartsWith(std::string("Examples:\n  trainyard ") + command));
      const std::string examples = help.out.substr(0, help.out.find("\nUsage:"));
      EXPECT_GE(std::count(examples.begin(), examples.end(), '#'), 2) << command;
    }
  }
}

TEST_F(Program, an_unknown_command_or_option_is_usage) {
  const Finished command = run({"rnu"});
  EXPECT_EQ(command.status, 2);
  EXPECT_THAT(command.err, HasSubstr("did you mean 'run'?"));
  const Finished option = run({"run", "x.json", "--jsno"});
  EXPECT_EQ(option.status, 2);
  EXPECT_THAT(option.err, HasSubstr("did you mean '--json'?"));
  EXPECT_THAT(run({"run", "x.json", "--seed", "-1"}).err,
              HasSubstr("--seed: expected a whole number"));
}

// Two flows share link 0 of 10 B/s: 5 B/s each. The first moves 10 bytes in 2 s; then the second
// has 10 of its 20 left and the whole link: 1 s more.
class Flows : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    links_ = file("links.csv", "id,name,bytes_per_s,latency_s\n0,a,10,0\n");
    flows_ = file("flows.csv",
                  "id,src,dst,bytes,start_s,finish_s,route\nx,0,1,10,0,2,0\ny,0,1,20,0,3,0\n");
  }
  std::string links_, flows_;
};

TEST_F(Flows, print_start_and_finish) {
  const Finished done = run({"flows", links_, flows_});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, "id,start_s,finish_s\nx,0,2\ny,0,3\n");
  EXPECT_THAT(done.err, HasSubstr("largest relative difference to finish_s of 2 flows: 0"));
}

TEST_F(Flows, write_a_table_and_print_figures) {
  const Finished done = run({"flows", links_, flows_, "-o", "out.csv", "--json"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(content_of(path("out.csv")), "id,start_s,finish_s\nx,0,2\ny,0,3\n");
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["flows"], 2);
  EXPECT_EQ(json["makespan_s"], 3);
  EXPECT_TRUE(json.contains("wall_s"));
  EXPECT_TRUE(json.contains("solves"));
}

TEST_F(Flows, exit_statuses) {
  EXPECT_EQ(run({"flows", links_, flows_, "--expect", "makespan_s<=3"}).status, 0);
  const Finished missed = run({"flows", links_, flows_, "--expect", "makespan_s<3"});
  EXPECT_EQ(missed.status, 3);
  EXPECT_THAT(missed.err, HasSubstr("expected makespan_s<3, but it is 3"));
  EXPECT_EQ(run({"flows", links_, path("none.csv")}).status, 1);
  EXPECT_EQ(run({"flows", links_, folder_.string()}).status, 1);
  EXPECT_EQ(run({"flows", links_, flows_, "-o", "no/such/folder.csv"}).status, 1);
  const Finished wrong = run({"flows", links_, file("bad.csv", "id,bytes,route\n0,ten,0\n")});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err,
              HasSubstr("bad.csv:2:3: error: bytes: expected a number of at least 0, found 'ten'"));
  const Finished stalled = run({"flows", file("broken.csv", "id,bytes_per_s\n0,0\n"), flows_});
  EXPECT_EQ(stalled.status, 1);
  EXPECT_THAT(stalled.err, HasSubstr("flow x never finishes: no rate on link 0"));
}

TEST_F(Program, a_run_prints_a_summary_on_stdout_and_writes_its_file) {
  const Finished done = run({"run", library("quickstart.json"), "--set", "duration=1 d"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("Where the time of"));
  EXPECT_THAT(done.err, IsEmpty()) << "no progress where nobody looks";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "quickstart.h5"));
  const Finished exported = run({"export", "quickstart.h5", "--csv", "csv"});
  EXPECT_EQ(exported.status, 0) << exported.err;
  EXPECT_THAT(exported.out, HasSubstr("summary.csv"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "csv" / "summary.csv"));
  EXPECT_EQ(run({"repair", "quickstart.h5"}).status, 0);
}

TEST_F(Program, a_run_in_json_adds_up_and_meets_or_misses_bounds) {
  const std::vector<std::string> args{
      "run", library("quickstart.json"), "--set", "duration=1 d", "--no-file", "--json", "--seed",
      "5"};
  const auto with = [&](const std::string& bound) {
    std::vector<std::string> out = args;
    out.insert(out.end(), {"--expect", bound});
    return out;
  };
  const Finished done = run(with("jobs.llama.goodput>0"));
  ASSERT_EQ(done.status, 0) << done.err;
  const auto json = nlohmann::json::parse(done.out);
  EXPECT_EQ(json["seed"], 5);
  EXPECT_TRUE(json["run_file"].is_null());
  EXPECT_EQ(std::stod(json["cluster"]["ledger_gpu_ns"]["total"].get<std::string>()),
            json["cluster"]["gpus"].get<double>() * 86400e9);
  EXPECT_EQ(run(with("jobs.llama.goodput>1")).status, 3);
  const Finished unknown = run(with("jobs.llama.godput>0"));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.out, IsEmpty()) << "it must not run first";
}

TEST_F(Program, progress_in_json_is_one_object_a_line_on_stderr) {
  const Finished done = run({"run", library("quickstart.json"), "--no-file", "--progress", "json"});
  EXPECT_EQ(done.status, 0);
  std::istringstream lines(done.err);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(nlohmann::json::parse(line).contains("done")) << line;
}

TEST_F(Program, an_interrupted_run_closes_its_file_and_ends_with_130) {
  // Years of single steps: it cannot end before the signal.
  const pid_t child = start({"run", library("quickstart.json"), "--every-step", "--set",
                             "duration=3000 d", "-o", "run.h5", "--progress", "json", "--json"});
  for (int i = 0; i < 3000 && content_of(path("err")).find('}') == std::string::npos; ++i)
    usleep(10'000);
  kill(child, SIGINT);
  const Finished done = finish(child);
  EXPECT_EQ(done.status, 130) << done.err;
  EXPECT_EQ(nlohmann::json::parse(done.out)["state"], "cancelled");
  const Finished exported = run({"export", "run.h5", "--csv", "csv"});
  EXPECT_EQ(exported.status, 0) << exported.err;
}

TEST_F(Program, a_bad_scenario_is_reported_in_one_go) {
  const std::string bad =
      file("bad.json", "{\n  \"sed\": 1,\n  \"duration\": 7,\n  \"cluster\": {}\n}\n");
  for (const char* command : {"check", "run", "step", "topology", "facility"}) {
    const Finished done = run({command, bad});
    EXPECT_EQ(done.status, 2) << command;
    EXPECT_THAT(done.out, IsEmpty());
    EXPECT_THAT(done.err, HasSubstr("bad.json:2:3: error: sed"));
    EXPECT_THAT(done.err, HasSubstr("bad.json:3:"));
  }
  const Finished json = run({"check", bad, "--json"});
  EXPECT_EQ(json.status, 2);
  EXPECT_GE(nlohmann::json::parse(json.out)["diagnostics"].size(), 2u);
}

TEST_F(Program, the_resolved_scenario_is_a_scenario_and_says_where_values_come_from) {
  const Finished resolved =
      run({"check", library("quickstart.json"), "--resolved", "--set", "seed=9"});
  EXPECT_EQ(resolved.status, 0) << resolved.err;
  EXPECT_THAT(resolved.out, HasSubstr("\"seed\": 9,  // --set"));
  EXPECT_THAT(resolved.out, HasSubstr("// default"));
  const Finished again = run({"check", file("again.json", resolved.out)});
  EXPECT_EQ(again.status, 0) << again.err;
}

TEST_F(Program, one_step_and_the_fabric_have_their_stable_keys) {
  const Finished step = run({"step", library("quickstart.json"), "--json"});
  ASSERT_EQ(step.status, 0) << step.err;
  const auto s = nlohmann::json::parse(step.out);
  double sum = 0;
  for (const auto& part : s["split_s"]) sum += part.get<double>();
  EXPECT_NEAR(sum, s["step_s"].get<double>(), 1e-9 * sum);
  for (const char* key : {"compute", "recompute", "bubble", "exposed_tp", "exposed_dp",
                          "exposed_pp", "exposed_cp", "exposed_ep", "data_stall"})
    EXPECT_TRUE(s["split_s"].contains(key)) << key;
  double memory = 0;
  for (const char* item : {"weights", "gradients", "optimizer", "activations", "buffers"})
    memory += s["memory_bytes"][item].get<double>();
  EXPECT_NEAR(memory, s["memory_bytes"]["total"].get<double>(), 1);
  EXPECT_LE(s["bounds_s"]["flops"].get<double>(), s["step_s"].get<double>());

  const Finished topology =
      run({"topology", library("quickstart.json"), "--json", "--dot", "fabric.dot", "--switches"});
  ASSERT_EQ(topology.status, 0) << topology.err;
  const auto t = nlohmann::json::parse(topology.out);
  for (const char* key : {"hosts", "gpus", "switches", "links", "cables", "bisection_Bps",
                          "diameter_hops", "oversubscription", "cost_usd", "power_W"})
    EXPECT_TRUE(t.contains(key)) << key;
  EXPECT_THAT(content_of(path("fabric.dot")), HasSubstr("graph"));

  EXPECT_THAT(run({"step", library("quickstart.json")}).out, HasSubstr("Where the step goes"));
  EXPECT_THAT(run({"topology", library("quickstart.json")}).out, HasSubstr("bisection"));
  EXPECT_THAT(run({"step", library("quickstart.json"), "--job", "x"}).err,
              HasSubstr("there is: llama"));
}

TEST_F(Program, a_slow_gpu_lengthens_the_step_of_its_job) {
  const std::string file = library("quickstart.json");
  const Finished step = run({"step", file, "--slow", "17=0.8", "--json"});
  ASSERT_EQ(step.status, 0) << step.err;
  const auto s = nlohmann::json::parse(step.out);
  ASSERT_EQ(s["slow_gpus"].size(), 1u);
  EXPECT_EQ(s["slow_gpus"][0]["gpu"], 17);
  const double with = s["step_s"], without = s["step_without_slow_s"];
  EXPECT_GT(with, without);
  EXPECT_LE(with, without / 0.8);
  EXPECT_NEAR(with - without, s["split_s"]["slow"].get<double>(), 0.05 * with);  // and jitter
  EXPECT_THAT(run({"step", file, "--slow", "17=0.8"}).out, HasSubstr("GPU 17 at 0.8"));
  for (const char* wrong : {"17", "17=0", "17=1.1", "-1=0.5", "1000000=0.5", "17=0.8x"}) {
    const Finished refused = run({"step", file, "--slow", wrong});
    EXPECT_EQ(refused.status, 2) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("--slow")) << wrong;
  }
  EXPECT_EQ(run({"step", file, "--slow", "1=0.8", "--slow", "1=0.9"}).status, 2);
}

TEST_F(Program, plans_are_ranked_for_a_model_and_for_a_scenario) {
  const Finished model =
      run({"plan", "llama3-8b", "--gpus", "64", "--tokens", "1e12", "--top", "5", "--json"});
  ASSERT_EQ(model.status, 0) << model.err;
  const auto m = nlohmann::json::parse(model.out);
  ASSERT_EQ(m["plans"].size(), 5u);
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_LE(m["plans"][i - 1]["step_s"].get<double>(), m["plans"][i]["step_s"].get<double>());
  EXPECT_TRUE(m["sizing"]["mfu_is_predicted"]);

  // A measured step of a scenario's own layout; more GPUs than its cluster has.
  const std::string own = file("own.json", R"({
    "cluster": {"servers": 4, "server": "hgx-h100", "fabric": {"kind": "rail-optimized",
      "routing": "spray", "hosts_per_leaf": 8, "leaf_switch": "quantum-2-qm9700",
      "spine_switch": "quantum-2-qm9700"}},
    "jobs": {"llm": {"model": "llama3-8b", "gpus": 32, "global_batch": 64, "sequence": 8192,
      "parallel": {"tensor": 2}, "software": "megatron-core", "checkpoint": {"enabled": false}}}})");
  const Finished measured =
      run({"plan", own, "--measured", "2.1 s", "--gpus", "64", "--top", "2", "--json"});
  ASSERT_EQ(measured.status, 0) << measured.err;
  const auto s = nlohmann::json::parse(measured.out);
  EXPECT_EQ(s["measured"]["gpus"], 32);
  EXPECT_DOUBLE_EQ(s["measured"]["measured_s"], 2.1);
  EXPECT_EQ(s["gpus"], 64);
  EXPECT_THAT(s["note"], HasSubstr("from 4 to 8 servers"));
  const Finished impossible = run({"plan", own, "--measured", "1 h"});
  EXPECT_EQ(impossible.status, 2);
  EXPECT_THAT(impossible.err, HasSubstr("cannot be met by scaling compute"));

  // Mistakes name the option's value; nothing that fits is status 1.
  EXPECT_THAT(run({"plan", "llama3-8b", "--gpus", "60"}).err, HasSubstr("56 or 64 would do"));
  EXPECT_THAT(run({"plan", "lama3-8b", "--gpus", "64"}).err, HasSubstr("llama3-8b"));
  const Finished too_large = run({"plan", "llama3-405b", "--gpus", "8"});
  EXPECT_EQ(too_large.status, 1);
  EXPECT_THAT(too_large.out, HasSubstr("no layout fits in memory; nearest: tp 8"));
}

TEST_F(Program, a_sweep_of_collectives_and_what_is_wrong_with_one) {
  const Finished sweep = run({"collective", library("quickstart.json"), "--kind", "all-reduce",
                              "--bytes", "1G", "--json"});
  ASSERT_EQ(sweep.status, 0) << sweep.err;
  const auto row = nlohmann::json::parse(sweep.out)["rows"][0];
  for (const char* key : {"kind", "algorithm", "ranks", "bytes", "time_s", "algbw_Bps", "busbw_Bps",
                          "bound_s", "bottleneck"})
    EXPECT_TRUE(row.contains(key)) << key;
  EXPECT_GE(row["time_s"].get<double>(), row["bound_s"].get<double>());

  const Finished cut = run({"collective", library("quickstart.json"), "--bytes", "1G", "--fail",
                            "node-3/nic-2 -> leaf-0"});
  EXPECT_EQ(cut.status, 2);
  EXPECT_THAT(cut.err, HasSubstr("cut by what is down"));
  EXPECT_EQ(run({"collective", library("quickstart.json"), "--bytes", "1G", "--expect",
                 "rows.0.time_s<=0.001"})
                .status,
            3);
}

TEST_F(Program, published_rows_are_predicted_and_what_is_skipped_is_said) {
  const std::string table = file(
      "t.csv",
      "system,gpu,nodes,gpus_per_node,gpus,nic_gbps_per_gpu,collective,algorithm,bytes,busbw_gbs\n"
      "DGX H100,H100-80GB,1,8,8,,all_reduce,ring,17179869184,370\n"
      "somewhere,,1,8,8,,all_reduce,ring,17179869184,370\n");
  const Finished done = run({"validate", table, "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  const auto v = nlohmann::json::parse(done.out);
  EXPECT_EQ(v["rows"], 2);
  EXPECT_EQ(v["used"], 1);
  EXPECT_EQ(v["skipped"].size(), 1u);
  EXPECT_LT(std::abs(v["error"]["mean_signed_pct"].get<double>()), 10);
}

TEST_F(Program, the_fabrics_of_the_library_build_and_carry_a_step) {
  for (const char* name : {"rails-1024.json", "dragonfly-1024.json"}) {
    const Finished step = run({"step", library(name), "--json"});
    ASSERT_EQ(step.status, 0) << name << step.err;
    const auto s = nlohmann::json::parse(step.out);
    EXPECT_FALSE(s["links"]["busiest"].empty()) << name;
    EXPECT_FALSE(s["links"]["busiest"][0]["pairs"].empty()) << name;
  }
}

TEST_F(Program, catalog_and_schema) {
  EXPECT_THAT(run({"catalog"}).out, HasSubstr("h100-sxm"));
  EXPECT_THAT(run({"catalog", "h100-sxm"}).out, HasSubstr("memory"));
  const Finished unknown = run({"catalog", "h100-smx"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'h100-sxm'?"));
  EXPECT_FALSE(nlohmann::json::parse(run({"catalog", "--json"}).out)["parts"].empty());
  const auto fitted =
      nlohmann::json::parse(run({"catalog", "calibration/h100", "--json"}).out)["parts"][0];
  for (const auto& figure : fitted["figures"])
    for (const char* key : {"value", "prior", "standard_error", "rows", "sure", "source"})
      EXPECT_TRUE(figure.contains(key)) << figure["key"] << " " << key;
  EXPECT_TRUE(nlohmann::json::parse(run({"schema"}).out).contains("$schema"));
}

TEST_F(Program, a_sweep_is_interrupted_resumed_sharded_and_merged_to_the_same_table) {
  const std::string study =
      file("study.json", R"({"extends": ")" + library("quickstart.json") + R"(",
      "scenario": {"duration": "1 d"}, "replications": 3, "axes": {
        "interval": {"path": "jobs.llama.checkpoint.interval", "values": ["10 min", "1 h"]}}})");
  const Finished list = run({"sweep", study, "--list"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("2 points, 3 replications of each: 6 runs"));
  EXPECT_FALSE(std::filesystem::exists(path("study")));

  const Finished whole = run({"sweep", study, "-o", "whole", "--json"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const auto json = nlohmann::json::parse(whole.out);
  EXPECT_EQ(json["points"], 2);
  EXPECT_EQ(json["replications"], 3);
  EXPECT_EQ(json["done"], 6);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_EQ(run({"sweep", study, "-o", "whole"}).status, 2);  // it has results
  EXPECT_EQ(run({"sweep", study, "-o", "whole", "--resume"}).status, 0);

  for (const char* shard : {"1/3", "3/3"})
    EXPECT_EQ(run({"sweep", study, "-o", "parts", "--shard", shard}).status, 0);
  const Finished early = run({"sweep", study, "-o", "parts", "--merge"});
  EXPECT_EQ(early.status, 1);
  EXPECT_THAT(early.err, HasSubstr("runs are missing"));
  EXPECT_EQ(run({"sweep", study, "-o", "parts", "--shard", "2/3", "--threads", "2"}).status, 0);
  EXPECT_EQ(run({"sweep", study, "-o", "parts", "--merge"}).status, 0);
  EXPECT_TRUE(content_of(path("parts/study.h5")) == content_of(path("whole/study.h5")));
  EXPECT_EQ(content_of(path("parts/table.csv")), content_of(path("whole/table.csv")));

  const Finished compared = run({"compare", "whole@0", "whole@1"});
  EXPECT_EQ(compared.status, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("3 pairs"));
  const Finished report = run({"report", "whole"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_THAT(content_of(path("whole/report.html")), HasSubstr("<svg"));
  EXPECT_EQ(run({"export", "whole/study.h5", "--csv", "csv"}).status, 0);
}

TEST_F(Program, a_sweep_that_was_killed_goes_on_to_the_same_table) {
  const std::string study =
      file("study.json", R"({"extends": ")" + library("quickstart.json") + R"(",
      "replications": 200, "axes": {
        "interval": {"path": "jobs.llama.checkpoint.interval", "values": ["10 min", "1 h"]}}})");
  ASSERT_EQ(run({"sweep", study, "-o", "whole"}).status, 0);
  const pid_t child = start({"sweep", study, "-o", "killed", "--shard", "1/2"});
  // As soon as there are results.
  while (!std::filesystem::exists(path("killed/runs/p0000-r0003.json"))) usleep(500);
  kill(child, SIGKILL);
  EXPECT_EQ(finish(child).status, -SIGKILL);
  EXPECT_EQ(run({"sweep", study, "-o", "killed", "--shard", "2/2"}).status, 0);
  EXPECT_EQ(run({"sweep", study, "-o", "killed", "--resume"}).status, 0);
  EXPECT_TRUE(content_of(path("killed/study.h5")) == content_of(path("whole/study.h5")));
}

TEST_F(Program, a_sweep_says_what_is_wrong_with_its_options) {
  const std::string study =
      file("study.json", R"({"extends": ")" + library("quickstart.json") + R"("})");
  EXPECT_THAT(run({"sweep", study, "--shard", "5/4"}).err, HasSubstr("2/4 for the second of four"));
  EXPECT_THAT(run({"sweep", study, "--shard", "auto"}).err, HasSubstr("SLURM_ARRAY_TASK_ID"));
  EXPECT_THAT(run({"sweep", study, "--merge", "--list"}).err, HasSubstr("contradict"));
  EXPECT_EQ(run({"sweep", "no-such-study.json"}).status, 2);
  const Finished slurm = run({"sweep", study, "--slurm", "4", "--set", "duration=1 d"});
  EXPECT_EQ(slurm.status, 0);
  EXPECT_THAT(slurm.out, HasSubstr("#SBATCH --array=1-4"));
  EXPECT_THAT(slurm.out, HasSubstr("--set 'duration=1 d'"));
}

TEST_F(Program, a_report_of_a_run_is_one_file) {
  ASSERT_EQ(run({"run", library("quickstart.json"), "-o", "run.h5"}).status, 0);
  const Finished report = run({"report", "run.h5"});
  EXPECT_EQ(report.status, 0) << report.err;
  EXPECT_EQ(report.out, "run.html\n");
  const std::string html = content_of(path("run.html"));
  EXPECT_THAT(html, HasSubstr("from the peak of its GPUs to useful work"));
  EXPECT_THAT(html, HasSubstr("Kokolis et al."));  // the sources of its figures
  EXPECT_EQ(run({"report", "nothing.h5"}).status, 1);
}

TEST_F(Program, exports_a_trace_within_its_cap_and_metrics) {
  ASSERT_EQ(run({"run", library("quickstart.json"), "-o", "run.h5"}).status, 0);
  ASSERT_EQ(run({"export", "run.h5", "--trace", "run.json"}).status, 0);
  const auto trace = nlohmann::json::parse(content_of(path("run.json")));
  double training_us = 0;
  for (const auto& e : trace["traceEvents"]) {
    ASSERT_TRUE(e.contains("ph") && e.contains("pid") && e.contains("name"));
    const std::string phase = e["ph"];
    if (phase != "M") {
      ASSERT_TRUE(e["ts"].is_number());
    }
    if (phase == "X" && e["name"] == "training") training_us += e["dur"].get<double>();
  }
  EXPECT_GT(training_us, 6 * 86400e6);  // of seven days
  const Finished cut = run(
      {"export", "run.h5", "--trace", "cut.json", "--from", "1 d", "--to", "2 d", "--most", "50"});
  EXPECT_EQ(cut.status, 0);
  EXPECT_THAT(cut.err, HasSubstr("were left out"));
  for (const auto& e : nlohmann::json::parse(content_of(path("cut.json")))["traceEvents"])
    if (e["ph"] != "M") {
      EXPECT_GE(e["ts"].get<double>(), 86400e6);
      EXPECT_LE(e["ts"].get<double>(), 2 * 86400e6);
    }
  ASSERT_EQ(run({"export", "run.h5", "--trace", "run.json.gz"}).status, 0);
  EXPECT_THAT(content_of(path("run.json.gz")), StartsWith("\x1f\x8b"));
  EXPECT_EQ(run({"export", "run.h5", "--csv", "x", "--from", "1 d"}).status, 2);

  ASSERT_EQ(run({"export", "run.h5", "--openmetrics", "run.om"}).status, 0);
  const std::string metrics = content_of(path("run.om"));
  EXPECT_THAT(metrics, HasSubstr("# UNIT trainyard_power_watts watts\n"));
  EXPECT_THAT(metrics,
              HasSubstr("trainyard_job_step_time_seconds{scenario=\"quickstart\",job=\"llama\"}"));
  EXPECT_TRUE(metrics.ends_with("# EOF\n"));
}

TEST_F(Program, a_step_is_a_trace_of_its_passes) {
  ASSERT_EQ(run({"step", library("quickstart.json"), "--trace", "step.json"}).status, 0);
  const auto trace = nlohmann::json::parse(content_of(path("step.json")));
  // Stage 0 of 4, 5 chunks, 16 micro-batches: forward and backward of each, and the optimizer.
  int passes = 0;
  double end = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] != "X" || e["tid"] != 1) continue;
    EXPECT_GE(e["ts"].get<double>(), end - 0.01);  // one after the other
    end = e["ts"].get<double>() + e["dur"].get<double>();
    ++passes;
  }
  EXPECT_EQ(passes, 2 * 5 * 16 + 1);
}

TEST_F(Program, completion_and_manual_know_every_command) {
  const Finished bash = run({"completion", "bash"}), man = run({"man"});
  EXPECT_EQ(bash.status, 0);
  EXPECT_EQ(man.status, 0);
  for (const char* command : {"run", "sweep", "compare", "report", "tune", "export"}) {
    EXPECT_THAT(bash.out, HasSubstr(std::string("    ") + command + ") options="));
    EXPECT_THAT(man.out, HasSubstr(std::string(".SS trainyard ") + command));
  }
  EXPECT_THAT(man.out, HasSubstr(".SS trainyard tune spares"));
  EXPECT_EQ(run({"completion", "tcsh"}).status, 2);
  EXPECT_EQ(run({"completion", "fish"}).status, 0);
}

}  // namespace
}  // namespace trainyard::cli
