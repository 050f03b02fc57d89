#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <exception>

#include "analysis/repair.hpp"
#include "analysis/run_reader.hpp"
#include "tests/analysis/sample_run.hpp"

/// kill_sample_run FILE: writes the sample run in a process that kills itself before the end, then
/// repairs the file. open_with_h5py.py opens the result.
int main(int argc, char** argv) {
  using namespace trainyard::analysis;
  if (argc != 2) return 2;
  try {
    const pid_t child = fork();
    if (child == 0) {
      const test::SampleRun sample;
      RunWriter writer(argv[1], info_of(sample));
      record(writer, sample);
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || RunReader(argv[1]).is_finished()) return 1;
    std::printf("%s\n", repair(argv[1]).text.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
