#pragma once

#include <map>

#include "models/failures/failure_clocks.hpp"

/// What the clocks of a class have in common; for the .cpp files of this folder only.
namespace trainyard::models {

/// The units of one failure class. Two kinds: SteadyClock, whose units age at one pace while they
/// are up, and PacedClock, for hazards that follow load or temperature.
class FailureClocks::Clock {
 public:
  Clock(FailureClocks& all, const FailureClass& cls);
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  virtual void renew(std::uint32_t unit) = 0;
  /// After the server's own state has changed.
  virtual void pause(std::uint32_t server) = 0;
  virtual void resume(std::uint32_t server, Duration was_down) = 0;

  const FailureClass& cls() const { return class_; }
  double mean_s() const { return mean_s_; }

 protected:
  std::size_t unit_count() const { return static_cast<std::size_t>(all_.counts_.of(class_.spec)); }
  Time now() const { return all_.engine_.now(); }
  Duration warning() const { return class_.spec.warning; }
  bool has_server() const { return per_server_ != 0; }
  bool is_down(std::uint32_t unit) const {
    return has_server() && all_.down_since_[unit / per_server_] != Time::max();
  }
  /// Operational time from the start of life number `life` to its end.
  Duration life_of(std::uint32_t unit, std::uint32_t life) const;
  /// The unit fails now: tells everybody. Its own state is already that after the failure.
  void strike(std::uint32_t unit, std::uint32_t life);
  void announce(std::uint32_t unit, std::uint32_t life, Time strikes_at);

  FailureClocks& all_;
  const FailureClass& class_;
  std::uint32_t per_server_;  // units of a server; 0: not parts of servers

 private:
  Failure failure_of(std::uint32_t unit, std::uint32_t life) const;

  sim::Stream luck_;
  sim::KindId failed_;
  sim::KindId announced_;
  double mean_s_ = 0;
  double scale_s_ = 0;                                      // of the Weibull law
  std::map<std::uint32_t, sim::EventIndex> announcements_;  // of units that have not yet failed
};

/// Units that age at one pace while their server is up.
class FailureClocks::SteadyClock final : public Clock {
 public:
  SteadyClock(FailureClocks& all, const FailureClass& cls);
  void renew(std::uint32_t unit) override;
  void pause(std::uint32_t server) override;
  void resume(std::uint32_t server, Duration was_down) override;

 private:
  enum class Place : std::uint8_t { heap, parked, failed };
  struct Unit {
    Time due{};
    std::uint32_t life = 0;  // which one: 0, 1, 2, ...
    Place place = Place::failed;
    bool is_announced = false;
  };
  struct Entry {
    Time due;  // of the failure, or of its announcement
    std::uint32_t unit;
    std::uint32_t life;
  };
  static bool is_later(const Entry& a, const Entry& b);

  Time next_action(const Unit& unit) const;
  void begin_life(std::uint32_t unit);
  void push(std::uint32_t unit);
  void pop();
  void arm();
  void act();

  std::vector<Unit> units_;
  std::vector<Entry> heap_;
  sim::Timer timer_;
};

/// Units whose pace changes: with training, with the hour.
class FailureClocks::PacedClock final : public Clock {
 public:
  PacedClock(FailureClocks& all, const FailureClass& cls);
  void renew(std::uint32_t unit) override;
  void pause(std::uint32_t server) override;
  void resume(std::uint32_t server, Duration was_down) override;
  /// Servers that are up, after their state has changed.
  void set_training(std::span<const std::uint32_t> servers, bool training);
  /// The inlet has another temperature from now on.
  void set_temperature(double celsius);
  bool follows_temperature() const;

 private:
  /// Operational time in units of 2^-40 ns, and pace in 2^-40, up to 2^20: whole numbers, so that
  /// no sum depends on how often it was taken. 292 years at the highest pace fit.
  __extension__ using Wide = __int128;
  static constexpr int fraction_bits = 40;
  static constexpr Wide never = Wide{1} << 125;
  struct Unit {
    Wide due = never;  // on the clock of its server
    std::uint32_t life = 0;
    bool has_failed = false;
    bool is_announced = false;
    bool is_near = false;
  };

  std::size_t server_of(std::uint32_t unit) const { return has_server() ? unit / per_server_ : 0; }
  Pace pace_of(std::uint32_t unit) const;
  std::int64_t pace(Pace p) const { return p == Pace::down ? 0 : pace_[std::size_t(p)]; }
  Wide clock(Pace p) const;
  Wide left(std::uint32_t unit) const;
  Time due_at(Wide left, std::int64_t pace) const;
  void begin_life(std::uint32_t unit);
  void change(std::uint32_t server, Pace from, Pace to);
  void add_if_near(std::uint32_t unit);
  void look_ahead();
  void arm();
  void act();

  std::int64_t pace_[2] = {};      // of idle and training servers
  std::int64_t fastest_pace_ = 0;  // in the warmest hour
  Wide clock_[2] = {};             // operational time of one that was always idle, always training
  Time settled_{};                 // up to here
  Pace fast_ = Pace::training;     // the faster of the two
  std::vector<Wide> offset_;       // by server: its own time is that of its pace, and this
  std::vector<Unit> units_;
  std::vector<std::uint32_t> near_;  // the only ones that can act before the horizon
  Wide horizon_ = 0;                 // on the faster clock
  sim::Timer timer_;
};

}  // namespace trainyard::models
