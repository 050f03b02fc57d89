/// A cooling plant of many CDUs: an hour of weather, and another heat of all racks, while all CDUs
/// run alike (one branch of the thermal network) and when each has a heat of its own.

#include <cmath>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "models/facility/cooling_plant.hpp"

namespace trainyard::models {
namespace {

struct Site {
  static CoolingPlantSpec spec(int cdus) {
    CoolingPlantSpec s;
    s.weather = {.mean = 15, .day_swing = 5, .year_swing = 10};
    WaterLoopSpec loop{.volume = 5.0 * cdus, .design_heat = Watts(450e3 * cdus)};
    loop.chillers = ChillersSpec{.units = 8, .capacity = Watts(75e3 * cdus)};
    loop.coolers = CoolersSpec{.units = 8, .capacity = Watts(120e3 * cdus)};
    s.loops["north"] = loop;
    CooledRoomSpec room{.loop = "north"};
    room.units = 16;
    room.capacity = Watts(16e3 * cdus);
    s.rooms["hall"] = room;
    s.cdus["cdu"] = {.loop = "north", .count = cdus, .capacity = Watts(700e3)};
    return s;
  }
  static std::vector<CooledRack> racks(int cdus) {
    std::vector<CooledRack> all;
    for (int i = 1; i <= cdus; ++i) {
      RackCoolingSpec s{.room = "hall", .count = 8};
      s.cdu = cdus == 1 ? "cdu" : "cdu-" + std::to_string(i);
      s.liquid_share = 0.8;
      all.push_back({"row-" + std::to_string(i), s});
    }
    return all;
  }
  explicit Site(int cdus) : plant(engine, recorder, spec(cdus), racks(cdus), {}), heats(cdus) {
    set(40e3);
    engine.run_until(add(engine.now(), std::chrono::hours(48)));
  }
  void set(double watts, double apart = 0) {
    for (std::size_t i = 0; i < heats.size(); ++i) heats[i] = Watts(watts + apart * double(i));
    plant.set_rack_heats(heats);
  }
  void pass(Duration duration) { engine.run_until(add(engine.now(), duration)); }
  sim::Engine engine{sim::Seed{1}};
  sim::NullRecorder recorder;
  CoolingPlant plant;
  std::vector<Watts> heats;
};

void an_hour_of_weather(benchmark::State& state) {
  Site site(int(state.range(0)));
  for (auto _ : state) site.pass(std::chrono::hours(1));
}
BENCHMARK(an_hour_of_weather)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);

void another_heat_of_all(benchmark::State& state) {
  Site site(int(state.range(0)));
  std::size_t i = 0;
  for (auto _ : state) {
    site.set(++i % 2 ? 25e3 : 40e3);
    site.pass(std::chrono::seconds(300));
  }
}
BENCHMARK(another_heat_of_all)->Arg(1)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);

void a_heat_of_its_own_for_each(benchmark::State& state) {
  Site site(int(state.range(0)));
  std::size_t i = 0;
  for (auto _ : state) {
    site.set(++i % 2 ? 25e3 : 40e3, 10);
    site.pass(std::chrono::seconds(300));
  }
}
BENCHMARK(a_heat_of_its_own_for_each)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainyard::models
