#include <cstdio>
#include <exception>

#include "tests/analysis/sample_run.hpp"

/// write_sample_run FILE: what open_with_h5py.py opens.
int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    trainyard::analysis::test::write_sample(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
