#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/time.hpp"
#include "sim/units.hpp"

/// Racks are heavy: a pause of seconds does not reach the water. What a zone gives to the cooling
/// plant is what it drew for good; shorter changes go into the mass of its racks and come out again
/// later, so no joule is lost.
///
///     stored D = integral of (drawn - told)
///     told     = base + D / τ when that was set;  base: what was drawn for `hold` without change
///
/// Told anew when a change has lasted for `hold`; when D reaches a minute of full heat (a pause may
/// then add another minute); and when D
/// is back at zero. So a job that saves every ten minutes costs the plant a few changes a day, not
/// three hundred, and a job that stops is felt after a minute.
///
///     HeatBuffer buffer(1e6_W a zone…);
///     buffer.set(now, drawn);                       // at every change of power
///     if (buffer.advance(now)) plant.set_rack_heats(buffer.told());
///     wake at buffer.next_event();
///
/// Zones that have always drawn the same are kept once. Page: docs/models/facility.md. Growth:
/// O(zones) for set(), O(zones that differ) for the others.
namespace trainyard::scenarios {

class HeatBuffer {
 public:
  static constexpr Duration hold = std::chrono::seconds(60);
  static constexpr Duration release = std::chrono::hours(1);  // τ

  /// The most that each zone draws.
  explicit HeatBuffer(std::vector<Watts> most);

  /// What zones draw from now on.
  void set(Time now, std::span<const Watts> drawn);
  /// True: told() is another.
  bool advance(Time now);
  std::optional<Time> next_event() const;
  const std::vector<Watts>& told() const { return told_; }
  /// In the mass of all racks, at the last advance().
  Joules stored() const;

 private:
  struct Zone {
    double most_J = 0;  // bound of what is stored
    double drawn_W = 0, base_W = 0, extra_W = 0;
    double stored_J = 0;
    bool is_answered = false;               // it is full, and what can be done about it is done
    std::optional<Time> settles;            // when what is drawn now becomes the base
    std::vector<std::size_t> members = {};  // what is said above is of each of them
    bool is_pushing() const { return (drawn_W - base_W - extra_W) * stored_J > 0; }
  };
  void integrate(Time now);
  void split(std::span<const Watts> drawn);

  std::vector<Zone> zones_;
  std::vector<Watts> told_;
  Time now_{};
};

}  // namespace trainyard::scenarios
