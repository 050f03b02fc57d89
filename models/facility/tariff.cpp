#include "models/facility/tariff.hpp"

#include <algorithm>

#include "sim/check.hpp"

namespace trainyard::models {
namespace {

using std::chrono::hours;

constexpr std::array<int, 12> days_of_month = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
constexpr int days_of_year = 365;

int month_of_day(int day_of_year) {
  int month = 0;
  while (day_of_year >= days_of_month[std::size_t(month)])
    day_of_year -= days_of_month[std::size_t(month++)];
  return month;
}

/// `first` to `last` inclusive, round the end of the circle if `last` comes before.
bool is_within(int value, int first, int last) {
  return first <= last ? value >= first && value <= last : value >= first || value <= last;
}

/// Months and hours from 0, hours of `to` excluded. A night belongs to the days on which its hours
/// are.
bool is_in(const TariffBlockSpec& b, int month, bool is_weekend, int hour) {
  return is_within(month + 1, b.first_month, b.last_month) &&
         (b.days == Days::all || (b.days == Days::weekend) == is_weekend) &&
         is_within(hour, b.from, b.to - 1) && b.from != b.to;
}

}  // namespace

bool overlap(const std::map<std::string, TariffBlockSpec>& blocks) {
  for (int month = 0; month < 12; ++month)
    for (const bool is_weekend : {false, true})
      for (int hour = 0; hour < 24; ++hour) {
        int found = 0;
        for (const auto& [name, block] : blocks) found += is_in(block, month, is_weekend, hour);
        if (found > 1) return true;
      }
  return false;
}

Tariff::Tariff(const EconomicsSpec& spec)
    : start_day_(spec.start_day - 1),
      start_weekday_(spec.start_weekday - 1),
      names_{"base"},
      prices_{spec.tariff.price},
      intensity_(spec.carbon.intensity),
      by_hour_(spec.carbon.by_hour) {
  for (const auto& [name, block] : spec.tariff.blocks) {
    for (int month = 0; month < 12; ++month)
      for (int weekend = 0; weekend < 2; ++weekend)
        for (int hour = 0; hour < 24; ++hour)
          if (is_in(block, month, weekend == 1, hour))
            table_[std::size_t(month)][std::size_t(weekend)][std::size_t(hour)] =
                std::uint16_t(names_.size());
    names_.push_back(name);
    prices_.push_back(block.price);
  }
}

std::size_t Tariff::block_at(std::int64_t hour) const {
  if (names_.size() == 1) return 0;
  const std::int64_t day = hour / 24;
  const int month = month_of_day(int((start_day_ + day) % days_of_year));
  const bool is_weekend = (start_weekday_ + day) % 7 >= 5;
  return table_[std::size_t(month)][is_weekend][std::size_t(hour % 24)];
}

double Tariff::intensity_at(std::int64_t hour) const {
  if (by_hour_.empty()) return intensity_;
  return by_hour_[std::size_t((start_day_ * 24 + hour) % std::int64_t(by_hour_.size()))];
}

// Kinds of days as 5 to 2: the mean over years, not over one that begins on some weekday.
Dollars Tariff::mean_price() const {
  double sum = 0;
  for (std::size_t month = 0; month < 12; ++month)
    for (std::size_t weekend = 0; weekend < 2; ++weekend)
      for (std::size_t hour = 0; hour < 24; ++hour)
        sum += prices_[table_[month][weekend][hour]].value() * days_of_month[month] *
               (weekend == 1 ? 2.0 : 5.0) / 7.0;
  return Dollars(sum / hours_per_year);
}

double Tariff::mean_intensity() const {
  if (by_hour_.empty()) return intensity_;
  double sum = 0;
  for (const double kg : by_hour_) sum += kg;
  return sum / double(by_hour_.size());
}

std::int64_t month_at(int start_day, std::int64_t hour) {
  const std::int64_t day = start_day - 1 + hour / 24;
  return day / days_of_year * 12 + month_of_day(int(day % days_of_year));
}

EnergyUse& EnergyUse::operator+=(const EnergyUse& other) {
  own += other.own;
  site += other.site;
  if (by_block.size() < other.by_block.size()) by_block.resize(other.by_block.size());
  for (std::size_t b = 0; b < other.by_block.size(); ++b) by_block[b] += other.by_block[b];
  cost += other.cost;
  co2e_kg += other.co2e_kg;
  return *this;
}

EnergyMeter::EnergyMeter(const EconomicsSpec& spec, std::vector<std::string> consumers)
    : tariff_(spec),
      start_day_(spec.start_day),
      pue_(spec.pue),
      demand_charge_(spec.tariff.demand_charge.value()),
      window_(spec.tariff.demand_window) {
  check(!consumers.empty(), "somebody takes what the site draws");
  for (std::string& name : consumers) add_consumer(std::move(name));
}

std::size_t EnergyMeter::add_consumer(std::string name) {
  names_.push_back(std::move(name));
  tallies_.emplace_back();
  tallies_.back().block_J.resize(tariff_.blocks());
  return names_.size() - 1;
}

void EnergyMeter::set_power(std::size_t consumer, Watts power) {
  check(power.value() >= 0, "consumers draw power, they do not give it", power.value());
  tallies_[consumer].own_W = power.value();
  is_shared_ = false;
}

void EnergyMeter::set_site(Watts it, Watts site) {
  check(it.value() >= 0 && site.value() >= 0, "a site draws power", it.value(), site.value());
  has_site_ = true;
  it_W_ = it.value();
  site_W_ = site.value();
  is_shared_ = false;
}

void EnergyMeter::share_out() {
  double own = 0;
  for (const Tally& t : tallies_) own += t.own_W;
  if (!has_site_) {
    it_W_ = own;
    site_W_ = own * pue_;
  }
  for (Tally& t : tallies_) t.site_W = own > 0 ? t.own_W * (site_W_ / own) : 0;
  if (own == 0) tallies_[0].site_W = site_W_;
  is_shared_ = true;
}

void EnergyMeter::advance(Time now) {
  check(now >= since_, "a meter does not run backwards", since_.time_since_epoch().count());
  if (!is_shared_) share_out();
  while (since_ < now) {
    const std::int64_t hour = since_.time_since_epoch() / hours(1);
    const Time end = std::min(now, Time(Duration(hours(1)) * (hour + 1)));
    draw(hour, end - since_);
    see_peak(since_, end);
    since_ = end;
  }
}

void EnergyMeter::draw(std::int64_t hour, Duration d) {
  const double s = to_seconds(d);
  const std::size_t block = tariff_.block_at(hour);
  const double kg_per_J = tariff_.intensity_at(hour) / joules_per_kWh;
  for (Tally& t : tallies_) {
    t.own_J += t.own_W * s;
    if (t.site_W == 0) continue;
    t.block_J[block] += t.site_W * s;
    t.co2e_kg += t.site_W * s * kg_per_J;
  }
  it_J_ += it_W_ * s;
  site_J_ += site_W_ * s;
  const std::int64_t month = month_at(start_day_, hour);
  if (months_.empty() || months_.back().month != month) months_.push_back({.month = month});
  months_.back().covered += d;
}

// `from` and `to` are in one hour, and windows divide hours, so no window crosses a month.
void EnergyMeter::see_peak(Time from, Time to) {
  double& peak = months_.back().peak_W;
  if (window_ == Duration::zero()) {
    peak = std::max(peak, site_W_);
    return;
  }
  while (from < to) {
    const Duration into = from.time_since_epoch() % window_;
    const std::int64_t whole = into == Duration::zero() ? (to - from) / window_ : 0;
    if (whole > 0) {
      peak = std::max(peak, site_W_);
      from += window_ * whole;
      continue;
    }
    const Time next = std::min(to, from - into + window_);
    window_J_ += site_W_ * to_seconds(next - from);
    from = next;
    if (from.time_since_epoch() % window_ == Duration::zero()) {
      peak = std::max(peak, window_J_ / to_seconds(window_));
      window_J_ = 0;
    }
  }
}

EnergyUse EnergyMeter::use(std::size_t consumer) const {
  const Tally& t = tallies_[consumer];
  EnergyUse u;
  u.own = Joules(t.own_J);
  u.co2e_kg = t.co2e_kg;
  for (std::size_t b = 0; b < t.block_J.size(); ++b) {
    u.by_block.emplace_back(t.block_J[b]);
    u.site += Joules(t.block_J[b]);
    u.cost += tariff_.price(b) * (t.block_J[b] / joules_per_kWh);
  }
  return u;
}

EnergyUse EnergyMeter::total() const {
  EnergyUse sum;
  for (std::size_t c = 0; c < tallies_.size(); ++c) sum += use(c);
  return sum;
}

std::vector<MonthPeak> EnergyMeter::months() const {
  std::vector<MonthPeak> out;
  for (const Month& m : months_) {
    double peak_W = m.peak_W;
    // A window that the end of the run cuts counts as if nothing were drawn in its rest.
    if (&m == &months_.back() && window_ > Duration::zero())
      peak_W = std::max(peak_W, window_J_ / to_seconds(window_));
    const Duration length = hours(24) * days_of_month[std::size_t(m.month % 12)];
    const double covered = to_seconds(m.covered) / to_seconds(length);
    out.push_back(
        {m.month, Watts(peak_W), covered, Dollars(peak_W / 1000 * demand_charge_ * covered)});
  }
  return out;
}

Dollars EnergyMeter::demand_cost() const {
  Dollars sum{};
  for (const MonthPeak& m : months()) sum += m.cost;
  return sum;
}

}  // namespace trainyard::models
