#include "topologies/fabric_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "topologies/fat_tree_counts.hpp"

namespace trainyard::topologies {

namespace {

// Street prices of 2024 to 2026: an optical transceiver 400-900 USD at 400 Gb/s and 700-1500 USD at
// 800 Gb/s (the middle of each; other rates on the power law through the two), a passive copper
// cable 100-400 USD. Power: NVIDIA networking documentation, 9 W for a 400 Gb/s transceiver, 17 W
// for one of 2 x 400 Gb/s, so by rate; passive copper 0.1 W.
constexpr double optic_400g_usd = 650.0;
constexpr double optic_exponent = 0.759;  // log2(1100 / 650)
constexpr double copper_usd = 250.0;
constexpr double optic_400g_watts = 9.0;
constexpr double copper_watts = 0.1;
constexpr const char* optic_source = "street price, 400 Gb/s 400-900 USD, 800 Gb/s 700-1500 USD";
constexpr const char* copper_source = "street price, passive up to 3 m, 100-400 USD";

Dollars optic_price(BytesPerSecond rate) {
  return Dollars(std::round(optic_400g_usd * std::pow(rate.value() / 50e9, optic_exponent)));
}
Watts optic_power(BytesPerSecond rate) {
  return Watts(optic_400g_watts * rate.value() / 50e9);
}

bool is_in_one_block(const Fabric& f, const Link& l) {
  constexpr std::size_t block = 4;
  std::size_t a = f.index_in_kind(l.from), b = f.index_in_kind(l.to);
  for (const int d : f.shape<TorusShape>().dimensions) {
    const auto n = static_cast<std::size_t>(d);
    if (a % n / block != b % n / block) return false;
    a /= n;
    b /= n;
  }
  return true;
}

bool is_optical(const Fabric& f, const Link& l) {
  switch (l.kind) {
    case LinkKind::nic_leaf: {
      const auto* tree = std::get_if<FatTreeShape>(&f.any_shape());
      return tree != nullptr && tree->rails > 1;
    }
    case LinkKind::local:
      return false;
    case LinkKind::torus:
      return !is_in_one_block(f, l);
    default:
      return true;
  }
}

}  // namespace

std::vector<CableReport> count_cables(const Fabric& f) {
  std::map<std::tuple<LinkKind, double, bool>, std::int64_t> counts;
  for (std::size_t i = 2 * f.gpu_count(); i < f.links().size(); i += 2) {  // a cable is two links
    const Link& l = f.link(LinkId(i));
    const double rate = std::max(l.capacity, f.link(LinkId(i + 1)).capacity).value();
    ++counts[{l.kind, rate, is_optical(f, l)}];
  }
  std::vector<CableReport> cables;
  for (const auto& [key, n] : counts)
    cables.push_back({std::get<0>(key), BytesPerSecond(std::get<1>(key)), std::get<2>(key), n});
  return cables;
}

const SwitchSpec& box_of(const Fabric& f, VertexKind kind) {
  switch (kind) {
    case VertexKind::leaf:
      return f.spec().leaf_switch;
    case VertexKind::spine:
      return f.spec().spine_switch;
    case VertexKind::core:
      return f.spec().core_switch;
    default:
      return f.spec().router_switch;
  }
}

std::vector<CostItem> bill_of(const Fabric& f, const std::vector<CableReport>& cables) {
  std::vector<CostItem> bill;
  const auto add = [&](std::string item, std::int64_t n, Dollars each, Watts power,
                       const char* source) {
    if (n == 0) return;
    for (CostItem& old : bill)
      if (old.item == item && old.each == each) {
        old.count += n;
        old.price += each * double(n);
        old.power += power;
        return;
      }
    bill.push_back({std::move(item), n, each, each * double(n), power, source});
  };
  for (const VertexKind kind :
       {VertexKind::leaf, VertexKind::spine, VertexKind::core, VertexKind::router}) {
    const SwitchSpec& box = box_of(f, kind);
    const auto n = static_cast<std::int64_t>(f.count(kind));
    const std::string what = box.name.empty() ? "switch" : box.name;
    add(std::string(name_of(kind)) + ' ' + what, n, box.price, box.power * double(n),
        "the switch's own price and power with optics");
  }
  for (const CableReport& c : cables) {
    if (!c.is_optical) {
      add("copper cable", c.count, Dollars(copper_usd), Watts(copper_watts) * double(c.count),
          copper_source);
      continue;
    }
    // The power of a switch includes its own transceivers, that of a server's end does not.
    const bool ends_at_server = c.kind == LinkKind::nic_leaf || c.kind == LinkKind::storage;
    add("transceiver " + text(c.rate), 2 * c.count, optic_price(c.rate),
        ends_at_server ? optic_power(c.rate) * double(c.count) : Watts{}, optic_source);
  }
  return bill;
}

}  // namespace trainyard::topologies
