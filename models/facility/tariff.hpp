#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/facility/economics_spec.hpp"

/// What energy costs: blocks of hours with prices, a charge on the peak of each month, carbon by
/// the hour, and a meter that shares all of it among those who draw power.
///
/// Between two events power is constant, so energy is a sum of rectangles; each is cut where an
/// hour ends, because prices, months and carbon change only there. The peak of a month is the
/// highest mean over windows of 15 minutes on the clock, as utilities bill it: also exact, since a
/// window is a sum of rectangles. Where else an interval is cut changes nothing.
///
///     EnergyMeter meter(spec, {"pool", "llm"});
///     meter.set_power(1, 8_MW);                    // from the present instant on
///     meter.set_site(8.4_MW, 9.9_MW);              // with switches; with cooling and losses
///     meter.advance(Time(24h));
///     meter.use(1).cost;                           // of llm, its share of the 9.9 MW included
///
/// A run starts at midnight; years have 365 days.
namespace trainyard::models {

inline constexpr double joules_per_kWh = 3.6e6;
inline constexpr double hours_per_year = 8760;

/// Blocks as a table by month, kind of day and hour. Block 0 is "base": hours outside of all
/// others.
class Tariff {
 public:
  explicit Tariff(const EconomicsSpec& spec);

  std::size_t blocks() const { return names_.size(); }
  const std::string& name(std::size_t block) const { return names_[block]; }
  /// One kWh.
  Dollars price(std::size_t block) const { return prices_[block]; }
  /// In hour `hour` of the run.
  std::size_t block_at(std::int64_t hour) const;
  double intensity_at(std::int64_t hour) const;  // kg of CO2 equivalent for one kWh
  /// Of one that draws the same all year.
  Dollars mean_price() const;
  double mean_intensity() const;

 private:
  int start_day_;
  int start_weekday_;
  std::vector<std::string> names_;
  std::vector<Dollars> prices_;
  std::array<std::array<std::array<std::uint16_t, 24>, 2>, 12> table_{};  // [month][weekend][hour]
  double intensity_;
  std::vector<double> by_hour_;
};

/// Months since January of the year in which the run starts: hour 0 of a run from day 32 is in 1.
std::int64_t month_at(int start_day, std::int64_t hour);

/// What one of those who draw power used.
struct EnergyUse {
  Joules own{};                       // what its servers drew
  Joules site{};                      // with its share of switches, cooling, losses
  std::vector<Joules> by_block = {};  // of site
  Dollars cost{};                     // of site, without the charge on peaks
  double co2e_kg = 0;                 // of site

  EnergyUse& operator+=(const EnergyUse& other);
};

/// The peak of one month of the run.
struct MonthPeak {
  std::int64_t month = 0;  // as month_at()
  Watts peak{};
  double covered = 0;  // share of the month that is in the run
  Dollars cost{};
};

class EnergyMeter {
 public:
  /// Consumer 0 also takes what the site draws while nobody else draws anything.
  EnergyMeter(const EconomicsSpec& spec, std::vector<std::string> consumers);

  std::size_t add_consumer(std::string name);
  std::size_t consumers() const { return names_.size(); }
  const std::string& name(std::size_t consumer) const { return names_[consumer]; }

  /// Everything until `now` was as it is set.
  void advance(Time now);
  /// From the present instant on the servers of `consumer` draw `power`.
  void set_power(std::size_t consumer, Watts power);
  /// From the present instant on all IT draws `it` (switches and stores included), the site `site`.
  /// Until the first call: the sum of the consumers, and that times the PUE of the input.
  void set_site(Watts it, Watts site);

  /// Up to the last advance().
  EnergyUse use(std::size_t consumer) const;
  EnergyUse total() const;
  Joules it() const { return Joules(it_J_); }
  Joules site() const { return Joules(site_J_); }
  double pue() const { return it_J_ > 0 ? site_J_ / it_J_ : 0; }
  std::vector<MonthPeak> months() const;
  Dollars demand_cost() const;
  const Tariff& tariff() const { return tariff_; }

 private:
  struct Tally {
    double own_W = 0;
    double site_W = 0;
    double own_J = 0;
    double co2e_kg = 0;
    std::vector<double> block_J;
  };
  struct Month {
    std::int64_t month = 0;
    double peak_W = 0;
    Duration covered{};
  };
  void share_out();
  void draw(std::int64_t hour, Duration d);
  void see_peak(Time from, Time to);

  Tariff tariff_;
  int start_day_;
  double pue_;
  double demand_charge_;
  Duration window_;
  std::vector<std::string> names_;
  std::vector<Tally> tallies_;
  std::vector<Month> months_;
  bool has_site_ = false;
  bool is_shared_ = false;
  double it_W_ = 0;
  double site_W_ = 0;
  double it_J_ = 0;
  double site_J_ = 0;
  double window_J_ = 0;  // in the window under way
  Time since_{};
};

}  // namespace trainyard::models
