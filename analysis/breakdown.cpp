#include "analysis/breakdown.hpp"

#include <algorithm>

#include "analysis/run_file.hpp"

namespace trainyard::analysis {

namespace {

template <class Cells>
const Cells& cells_of(const Table& ledger, const char* column) {
  const Column* found = ledger.find(column);
  const auto* cells = found == nullptr ? nullptr : std::get_if<Cells>(&found->cells);
  if (cells == nullptr)
    throw RunFileError(ledger.path + ": not a ledger: column " + column +
                       " is missing or of another type");
  return *cells;
}

}  // namespace

Breakdown breakdown(const Table& ledger) {
  const auto& names = cells_of<std::vector<std::string>>(ledger, "account");
  const auto& high = cells_of<std::vector<std::int64_t>>(ledger, "gpu_ns_high");
  const auto& low = cells_of<std::vector<std::uint64_t>>(ledger, "gpu_ns_low");
  Breakdown out;
  unsigned __int128 total = 0;  // unsigned: a damaged file may hold anything, and this may wrap
  for (std::size_t i = 0; i < names.size(); ++i) {
    Share share;
    share.account = names[i];
    const auto bits =
        static_cast<unsigned __int128>(static_cast<std::uint64_t>(high.at(i))) << 64 | low.at(i);
    share.gpu_ns = static_cast<GpuNanoseconds>(bits);
    share.gpu_s = static_cast<double>(share.gpu_ns) * 1e-9;
    total += bits;
    out.shares.push_back(std::move(share));
  }
  out.total = static_cast<GpuNanoseconds>(total);
  if (out.total != 0)
    for (Share& s : out.shares)
      s.share = static_cast<double>(s.gpu_ns) / static_cast<double>(out.total);
  std::stable_sort(out.shares.begin(), out.shares.end(),
                   [](const Share& a, const Share& b) { return a.gpu_ns > b.gpu_ns; });
  return out;
}

std::string text_of(GpuNanoseconds amount) {
  const bool is_negative = amount < 0;
  auto rest = static_cast<unsigned __int128>(amount);
  if (is_negative) rest = -rest;
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (is_negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace trainyard::analysis
