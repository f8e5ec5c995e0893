#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "tests/laws/row_cost.h"
#include "workloads/serving/system/service_record.h"
#include "workloads/serving/system/serving_system.h"

namespace moebius {
namespace {

Time at(int seconds) {
  return {std::int64_t{seconds} * 1'000'000'000};
}

RequestMoments request_of(int arrival, int end) {
  RequestMoments moments;
  moments.arrival = at(arrival);
  moments.admitted = at(arrival);
  moments.first_token = moments.handed_over = at(arrival + 1);
  moments.last_token = at(end);
  moments.input = 100;
  moments.output = 10;
  return moments;
}

// Requests of 640 tokens in and 20 out, one every `gap`.
class RegularRequests : public TrafficStream {
 public:
  RegularRequests(int requests, Time gap) : left_(requests), gap_(gap) {}
  bool next(TrafficRequest& request) override {
    if (left_-- == 0) return false;
    request = {};
    request.arrival = now_;
    now_ += gap_;
    request.input_tokens = 640;
    request.output_tokens = 20;
    request.block_tokens = 64;
    return true;
  }

 private:
  int left_;
  Time gap_, now_;
};

// Sequences on one replica whose iterations take 1 ms, step by step.
std::vector<double> sequences_of(int requests, Time gap) {
  RowCost cost(0);
  SystemRules rules;
  rules.pools = {paged_pool(PoolRole::kBoth, cost, 1)};
  ServiceRecord record({{"serve", 1, 1}}, {.detail = Detail::kNone});
  rules.observer = &record;
  OpenFeed feed(std::make_unique<RegularRequests>(requests, gap));
  ServingSystem system(rules, feed);
  while (system.advance()) continue;
  std::vector<double> there;
  for (const std::vector<PoolMoment>& moment : record.series().moments)
    there.push_back(static_cast<double>(moment[0].running + moment[0].waiting));
  return there;
}

}  // namespace

TEST_CASE("a series keeps a bounded number of steps whatever time passes") {
  ServiceRecord record({{"serve", 1, 8}}, {.detail = Detail::kNone});
  for (int second = 0; second < 1000; ++second)
    if (at(second) >= record.due()) record.sample(at(second), {{.waiting = second}});
  // Steps of 1 s become 2, 4, 8: 1000 s need 125 of them; each holds what its beginning showed.
  CHECK(record.series().step == at(8));
  REQUIRE(record.series().moments.size() == 125);
  for (std::size_t i = 0; i < 125; ++i)
    CHECK(record.series().moments[i][0].waiting == static_cast<std::int64_t>(8 * i));
}

TEST_CASE("steps of a pause hold what stood since the event before it, and a short run has some") {
  ServiceRecord record({{"serve", 1, 8}}, {.detail = Detail::kNone});
  record.sample(at(0), {{.running = 0}});  // before the first request
  record.sample({500'000'000}, {{.running = 1}});
  CHECK(record.series().step == Time{1'000'000'000 / 256});
  REQUIRE(record.series().moments.size() == 129);  // 0, 1/256, ..., 128/256 s
  CHECK(record.series().moments.front()[0].running == 0);
  CHECK(record.series().moments.back()[0].running == 1);
  record.sample(at(100), {{.running = 0}});  // idle from 0.5 s on
  CHECK(record.series().step == Time{500'000'000});
  REQUIRE(record.series().moments.size() == 201);
  CHECK(record.series().moments[1][0].running == 1);  // 0.5 s
  for (std::size_t i = 2; i <= 200; ++i) CHECK(record.series().moments[i][0].running == 0);
}

// A request every 9.87 s that takes 20 iterations of 1 ms: by Little's law 0.002 sequences are there, though
// whatever happens in the service happens while one is.
TEST_CASE("a series shows a service that is idle most of the time as idle") {
  const std::vector<double> there = sequences_of(400, {9'870'000'000});
  REQUIRE(there.size() > 120);
  double sum = 0;
  for (const double sequences : there) {
    CHECK(sequences <= 1);
    sum += sequences;
  }
  CHECK(std::abs(sum / static_cast<double>(there.size()) - 0.002) < 0.02);
}

TEST_CASE("requests that come together are not there before they come, and then all are") {
  const std::vector<double> there = sequences_of(8, {});  // 20 ms: 10 steps of 1/512 s
  REQUIRE(there.size() > 9);
  CHECK(there[0] == 0);
  for (std::size_t step = 1; step < there.size(); ++step) CHECK(there[step] == 8);
}

TEST_CASE("a service's timeline has a lane for each instance and for requests, and can be read back") {
  ServiceRecord record({{"serve", 2, 4}}, {.detail = Detail::kSteps});
  record.sample(at(0), {{.waiting = 3, .running = 4, .pages = 5}});
  record.iteration(0, at(0), at(1), true, false, 100);
  record.iteration(1, at(0), at(2), false, true, 10);
  record.finished(request_of(0, 5));
  record.finished(request_of(2, 6));  // beside the first: another lane
  const Timeline timeline = record.take();
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("service-record-{}.mtl", getpid())).string();
  save_timeline(timeline, path);
  const MappedTimeline read(path);
  std::remove(path.c_str());
  // Two iterations, and of each request its prompt and its answer: nothing queued or moved.
  REQUIRE(read.num_spans() == 6);
  CHECK(read.fact("class 1") == "serve 1");
  CHECK(read.fact("class 2") == "requests 0");
  CHECK(read.span(0).rank_class == 0);
  CHECK(read.span(2).rank_class == 2);
  CHECK(read.span(4).rank_class == 3);
  CHECK(read.tables().fragments[read.submission_of(read.span(0)).fragment] == "prefill");
}

TEST_CASE("what does not fit in a timeline is left out and counted") {
  ServiceRecord record({{"serve", 1, 1}}, {.detail = Detail::kSteps, .max_bytes = Bytes{1000.0}});
  for (int i = 0; i < 100; ++i) record.iteration(0, at(i), at(i + 1), false, true, 1);
  CHECK(record.dropped() > 50);
  const Timeline timeline = record.take();
  CHECK(static_cast<std::int64_t>(timeline.spans.size()) == 100 - record.dropped());
}

// Every 10 s over a minute, where the grid of the report has a step of half a second; a value that stays has no sample.
TEST_CASE("counters of a service are sampled as often as they are asked for, pool by pool") {
  ServiceRecord record({{"prefill", 8, 1}, {"decode", 1, 8}},
                       {.detail = Detail::kSteps, .window = at(45), .counters = at(10)});
  for (int second = 0; second <= 60; ++second)
    if (at(second) >= record.due())
      record.sample(at(second), {{.running = second}, {.running = 1, .pages = 5}});
  CHECK(record.series().moments.size() == 121);
  const Timeline timeline = record.take();
  std::vector<std::pair<Time, double>> running;
  for (const CounterSample& sample : timeline.samples) {
    if (timeline.counters[sample.counter] != "running requests" || sample.value == 1) continue;
    running.emplace_back(sample.time, sample.value);
    CHECK(timeline.facts[sample.rank_class].second == "prefill, all 8");
  }
  CHECK(running == std::vector<std::pair<Time, double>>{
                       {at(0), 0}, {at(10), 10}, {at(20), 20}, {at(30), 30}, {at(40), 40}});
  CHECK(std::find(timeline.facts.begin(), timeline.facts.end(),
                  std::pair<std::string, std::string>("dropped_samples", "2")) != timeline.facts.end());
}

TEST_CASE("iterations after the window are left out and counted") {
  ServiceRecord record({{"serve", 1, 1}}, {.detail = Detail::kSteps, .window = at(3)});
  for (int i = 0; i < 10; ++i) record.iteration(0, at(i), at(i + 1), false, true, 1);
  CHECK(record.dropped() == 6);
  CHECK(record.take().spans.size() == 4);
}

}  // namespace moebius
