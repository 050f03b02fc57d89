#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace trainyard::cli {

/// Compares with tests/cli/golden/<name>; UPDATE_GOLDEN=1 in the environment rewrites the file, and
/// the review reads the difference.
inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(TRAINYARD_SOURCE_DIR) + "/tests/cli/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream in(path, std::ios::binary);
  ASSERT_TRUE(in) << path << " is missing; UPDATE_GOLDEN=1 writes it";
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(text, expected.str()) << "if this is meant, run again with UPDATE_GOLDEN=1";
}

}  // namespace trainyard::cli
