#include <gmock/gmock.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>

#include "analysis/repair.hpp"
#include "analysis/run_file.hpp"
#include "tests/analysis/counted_run.hpp"

/// What kill -9 can do to a file, tried at every point instead of at random ones. The process dies
/// between two of its writes, or inside one: the kernel copies page by page and stops between two
/// pages when a fatal signal waits (generic_perform_write in Linux' mm/filemap.c). So the file is
/// what some number of whole writes made of it, and of one more write the part up to a border of a
/// page.
namespace trainyard::analysis {
namespace {

struct Write {
  std::size_t offset = 0;
  std::string bytes;
  /// Where a kill may cut it, as bytes from its begin: 0, and each border of a page in it.
  std::vector<std::size_t> cuts() const {
    std::vector<std::size_t> out{0};
    for (std::size_t border = (offset / layout::page_bytes + 1) * layout::page_bytes;
         border < offset + bytes.size(); border += layout::page_bytes)
      out.push_back(border - offset);
    return out;
  }
  /// HDF5's metadata begin with four capitals ("EAHD"), its superblock with "\x89HDF".
  bool is_metadata() const {
    return bytes.size() >= 4 &&
           (bytes[0] == '\x89' || std::all_of(bytes.begin(), bytes.begin() + 4,
                                              [](char c) { return c >= 'A' && c <= 'Z'; }));
  }
};

std::vector<Write>* log = nullptr;  // where this process' writes are noted; null: nowhere

}  // namespace
}  // namespace trainyard::analysis

// libhdf5 is a shared library: its calls come here instead of to the C library.
extern "C" ssize_t pwrite(int file, const void* data, std::size_t bytes, off_t offset) {
  using trainyard::analysis::log;
  if (log != nullptr)
    log->push_back(
        {static_cast<std::size_t>(offset), std::string(static_cast<const char*>(data), bytes)});
  return syscall(SYS_pwrite64, file, data, bytes, offset);
}

namespace trainyard::analysis {
namespace {

using namespace test;

class TornWrite : public testing::Test {
 protected:
  /// Writes a run, noting each write to its file, and after how many of them how many events were
  /// safe.
  void record(int series, int flushes) {
    log = &writes_;
    {
      RunWriter writer(folder_ / "written.h5", info_of({}));
      CountedRun run(writer, series);
      writer.begin();
      first_ = writes_.size();
      for (int i = 0; i < flushes; ++i) {
        const std::uint64_t events = run.record(3'000);
        writer.flush();
        safe_.push_back({writes_.size(), events});
      }
    }
    log = nullptr;
  }
  std::size_t safe_after(std::size_t writes) const {
    std::size_t events = 0;
    for (const auto& [needed, made_safe] : safe_)
      if (needed <= writes) events = made_safe;
    return events;
  }

  TemporaryFolder folder_;
  std::vector<Write> writes_;
  std::size_t first_ = 0;  // the first after begin(), when the file has its name
  std::vector<std::pair<std::size_t, std::size_t>> safe_;
};

TEST_F(TornWrite, NoMetadataLieAcrossAPage) {
  record(40, 20);
  if (writes_.empty()) GTEST_SKIP() << "the writes of libhdf5 cannot be seen here";
  std::size_t metadata = 0;
  for (const Write& w : writes_) {
    if (!w.is_metadata()) continue;
    ++metadata;
    EXPECT_EQ(w.cuts().size(), 1u)
        << w.bytes.substr(0, 4) << " at " << w.offset << ", " << w.bytes.size() << " bytes";
  }
  EXPECT_GT(metadata, 1'000u);
}

TEST_F(TornWrite, LosesNothingThatWasFlushed) {
  record(5, 6);
  if (writes_.empty()) GTEST_SKIP() << "the writes of libhdf5 cannot be seen here";
  std::string file;
  const auto apply = [&](const Write& w, std::size_t bytes) {
    file.resize(std::max(file.size(), w.offset + bytes));
    file.replace(w.offset, bytes, w.bytes, 0, bytes);
  };
  for (std::size_t i = 0; i < first_; ++i) apply(writes_[i], writes_[i].bytes.size());
  const std::string path = folder_ / "killed.h5";
  std::size_t states = 0;
  for (std::size_t i = first_; i < writes_.size(); ++i) {
    for (const std::size_t cut : writes_[i].cuts()) {
      SCOPED_TRACE("write " + std::to_string(i) + " cut after " + std::to_string(cut) + " bytes");
      apply(writes_[i], cut);
      std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
      ASSERT_NO_THROW(expect_whole(RunReader(path), safe_after(i)));
      if (++states % 5 == 0) {
        ASSERT_EQ(repair(path).way, RepairReport::Way::marks);
        ASSERT_NO_THROW(expect_whole(RunReader(path), safe_after(i)));
      }
    }
    apply(writes_[i], writes_[i].bytes.size());
  }
  EXPECT_GT(states, 250u);
}

}  // namespace
}  // namespace trainyard::analysis
