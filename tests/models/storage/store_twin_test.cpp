#include <gmock/gmock.h>

#include <deque>
#include <memory>
#include <random>
#include <string>

#include "models/storage/store.hpp"
#include "tests/models/storage/naive_store.hpp"

namespace trainyard::models {
namespace {

using namespace std::chrono_literals;
using namespace literals;

constexpr std::int64_t end_s = 300;

sim::Process timed(sim::Engine& engine, SharedStore& store, StoreRequest& request, Duration start,
                   double& done) {
  co_await engine.delay(start);
  co_await store.move(request);
  done = to_seconds(engine.now());
}

/// The same random story told to both.
class Story {
 public:
  explicit Story(std::uint64_t seed) : random_(seed), spec_(random_spec()), naive_(spec_) {
    for (const auto& [name, n] : spec_.neighbours)
      for (const int link : {0, 1})
        naive_.endless.push_back({link, to_seconds(n.start), n.end ? to_seconds(*n.end) : 1e30L,
                                  (link == 0 ? n.write : n.read).value(),
                                  link == 0 && spec_.metadata_rate ? n.operations : 0.0L,
                                  NaiveStore::Real(n.streams), 1, false});
    store_ = std::make_unique<SharedStore>(engine_, network_, "pfs", spec_);
    const int count = pick(1, 12);
    for (int i = 0; i < count; ++i) add_request();
    add_readers();
    add_failures();
  }

  void run_and_compare() {
    naive_.run(end_s);
    engine_.run_until(start_of_run + std::chrono::seconds(end_s));
    for (std::size_t i = 0; i < done_.size(); ++i) {
      const double expected = double(naive_.requests[i].done);
      if (expected > end_s)
        EXPECT_EQ(done_[i], -1) << "request " << i;
      else
        EXPECT_NEAR(done_[i], expected, 1e-9 * expected) << "request " << i;
    }
    double moved[2] = {}, expected[2] = {};
    for (const auto& uses : {store_->uses(), store_->open_uses()})
      for (const auto& use : uses) moved[use.is_write ? 0 : 1] += use.bytes.value();
    for (const auto& r : naive_.requests) expected[r.is_write ? 0 : 1] += double(r.moved);
    for (const auto& e : naive_.endless) expected[e.link] += double(e.moved);
    for (const int link : {0, 1})
      EXPECT_NEAR(moved[link], expected[link], 1e-9 * expected[link] + 1) << "link " << link;
    EXPECT_NEAR(moved[0], store_->bytes_written().value(), 1e-9 * expected[0] + 1);
    EXPECT_NEAR(moved[1], store_->bytes_read().value(), 1e-9 * expected[1] + 1);
    for (std::size_t r = 0; r < readers_.size(); ++r) {
      const auto& e = naive_.endless[first_reader_ + r];
      EXPECT_NEAR(readers_[r]->bytes_read().value(), double(e.moved), 1e-9 * double(e.moved) + 1)
          << "reader " << r;
      EXPECT_NEAR(readers_[r]->granted().value(), double(e.rate), 1e-9 * double(e.rate) + 1e-3)
          << "reader " << r;
    }
  }

 private:
  int pick(int from, int to) { return from + int(random_() % std::uint64_t(to - from + 1)); }
  double real(double from, double to) {
    return from + (to - from) * double(random_() >> 11) * 0x1p-53;
  }
  bool maybe() { return random_() % 2 == 0; }
  Duration when() { return Duration(std::int64_t(real(0, end_s) * 1e9)); }

  StoreSpec random_spec() {
    StoreSpec s{BytesPerSecond(real(1e9, 2e10)), BytesPerSecond(real(1e9, 4e10))};
    s.client_rate = BytesPerSecond(real(1e8, 5e9));
    if (maybe()) s.latency = Duration(std::int64_t(real(0, 2e9)));
    s.servers = pick(1, 8);
    if (maybe()) s.stream_rate = BytesPerSecond(real(1e7, 1e9));
    if (maybe()) s.metadata_rate = real(100, 10'000);
    if (maybe()) s.open_latency = Duration(std::int64_t(real(1e5, 1e7)));
    const int neighbours = pick(0, 3);
    for (int i = 0; i < neighbours; ++i) {
      NeighbourSpec n;
      if (maybe()) n.read = BytesPerSecond(real(1e8, 5e10));
      if (maybe() || n.read.value() == 0) n.write = BytesPerSecond(real(1e8, 5e10));
      if (maybe()) n.operations = real(10, 20'000);
      n.streams = pick(1, 600);
      if (maybe()) n.start = when();
      if (maybe()) n.end = n.start + when() + 1ns;
      s.neighbours["n" + std::to_string(i)] = n;
    }
    return s;
  }

  void add_request() {
    auto& r = requests_.emplace_back();
    r.is_write = maybe();
    r.servers = pick(1, 20);
    r.size = Bytes(real(1e9, 3e11));
    if (spec_.metadata_rate && maybe()) r.files = pick(1, 40'000);
    r.streams_per_server = maybe() ? 1 : pick(1, 64);
    if (maybe()) r.limit = BytesPerSecond(real(1e8, 2e9));
    const Duration start = when();
    const double servers = double(r.servers), streams = servers * r.streams_per_server;
    naive_.requests.push_back({to_seconds(start), servers, streams, r.size.value(), r.files,
                               r.limit.value(), r.is_write});
    const std::size_t i = done_.size();
    double& done = done_.emplace_back(-1);
    sim::ProcessHandle running = engine_.spawn("request", timed(engine_, *store_, r, start, done));
    if (random_() % 4 == 0) {
      const Duration at = when();
      engine_.at(start_of_run + at, sim::Phase::failure, [running]() mutable { running.stop(); });
      naive_.changes.push_back({to_seconds(at), NaiveStore::Change::stop, i, 0});
    }
    for (int change = pick(0, 2); change > 0; --change) {
      const Duration at = when();
      const BytesPerSecond limit(real(1e8, 2e9));
      engine_.at(start_of_run + at, sim::Phase::failure,
                 [this, &r, limit] { store_->set_limit(r, limit); });
      naive_.changes.push_back({to_seconds(at), NaiveStore::Change::limit, i, limit.value()});
    }
  }

  void add_readers() {
    first_reader_ = naive_.endless.size();
    for (int count = pick(0, 3); count > 0; --count) {
      auto* reader = readers_.emplace_back(store_->open_reader("reader")).get();
      const std::size_t at = naive_.endless.size();
      const int streams = pick(1, 200), servers = pick(1, 20);
      naive_.endless.push_back(
          {1, 0, 1e30L, 0, 0, NaiveStore::Real(streams), NaiveStore::Real(servers), true});
      for (int change = pick(1, 4); change > 0; --change) {
        const Duration then = when();
        const double bytes = random_() % 4 == 0 ? 0 : real(1e8, 2e10);
        const double operations = maybe() ? 0 : real(10, 10'000);
        engine_.at(start_of_run + then, sim::Phase::failure, [=] {
          reader->set_demand(BytesPerSecond(bytes), operations, streams, servers);
        });
        naive_.changes.push_back({to_seconds(then), NaiveStore::Change::demand, at, bytes});
        naive_.changes.push_back(
            {to_seconds(then), NaiveStore::Change::operations, at, operations});
      }
    }
  }

  void add_failures() {
    for (int count = pick(0, spec_.servers); count > 0; --count) {
      const Duration from = when(), to = from + when() + 1ns;
      engine_.at(start_of_run + from, sim::Phase::failure, [this] { store_->server_failed(); });
      engine_.at(start_of_run + to, sim::Phase::failure, [this] { store_->server_back(); });
      naive_.changes.push_back({to_seconds(from), NaiveStore::Change::failed, 0, 0});
      naive_.changes.push_back({to_seconds(to), NaiveStore::Change::back, 0, 0});
    }
  }

  std::mt19937_64 random_;
  StoreSpec spec_;
  NaiveStore naive_;
  sim::Engine engine_{sim::Seed{1}};
  FluidNetwork network_{engine_, "stores"};
  std::unique_ptr<SharedStore> store_;
  std::deque<StoreRequest> requests_;
  std::deque<double> done_;
  std::vector<std::unique_ptr<SharedStore::Reader>> readers_;
  std::size_t first_reader_ = 0;
};

TEST(StoreTwin, random_schedules_are_those_of_a_store_that_computes_everything_afresh) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story story(seed);
    story.run_and_compare();
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace trainyard::models
