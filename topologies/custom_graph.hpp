#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/fabric.hpp"
#include "topologies/import.hpp"

/// From the graph of a file to servers, switches and cables.
namespace trainyard::topologies {

struct CustomEnd {
  enum class What : std::uint8_t { switch_box, server, nic, storage, inside_server };
  What what = What::switch_box;
  std::uint32_t index = 0;  // of the switch, server, NIC (server * nics + k) or storage port
};

/// One direction of a cable.
struct CustomDirection {
  std::optional<BytesPerSecond> capacity{};
  std::optional<Duration> latency{};
};

struct CustomCable {
  CustomEnd a, b;
  CustomDirection there, back;  // a to b, b to a
  int line = 0;
};

/// Complaints with file and line: at most 20, then a count.
class Complaints {
 public:
  Complaints(const std::string& file, Problems& problems) : file_(file), problems_(problems) {}
  ~Complaints();
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  void add(int line, const std::string& what, const std::string& right);
  bool any() const { return count_ > 0; }

 private:
  const std::string& file_;
  Problems& problems_;
  std::size_t count_ = 0;
};

/// What each vertex is; switches are numbered in the order of the file. Complains about servers,
/// NICs and storage ports that the scenario does not have.
std::vector<CustomEnd> ends_of(const GraphFile&, const HostShape&, Complaints&);

/// Cables in the order of the file, those within servers left out. Complains about loops, cables
/// that join two servers and directed edges without an opposite one.
std::vector<CustomCable> cables_of(const GraphFile&, const std::vector<CustomEnd>&, Complaints&);

}  // namespace trainyard::topologies
